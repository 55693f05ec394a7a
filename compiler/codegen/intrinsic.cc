// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/intrinsic.h"

namespace tartan::TARTAN_ABI::codegen {
namespace {

using isa::BitOp;
using isa::Form;
using isa::Kind;
using isa::Opcode;
using isa::Rounding;

// Appends ".word" unless the word is empty.
class Name {
 public:
  explicit Name(std::string_view start) : text_(start) {}
  Name& word(std::string_view word) {
    if (!word.empty()) (text_ += '.') += word;
    return *this;
  }
  Name& word(Type type) { return word(name(type)); }
  Name& word(Major major) { return word(name(major)); }
  Name& when(bool condition, std::string_view text) { return condition ? word(text) : *this; }
  std::string text() { return std::move(text_); }

 private:
  std::string text_;
};

constexpr std::string_view kind_names[] = {"", "kind.f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4"};
constexpr std::string_view scale_names[] = {"", "scale.1x", "scale.2x", "", "scale.4x"};
constexpr std::string_view rounding_names[] = {"", "rn", "rz", "rm", "rp"};
constexpr std::string_view bit_op_names[] = {"", "and.popc", "xor.popc"};
constexpr std::string_view sparsity_names[] = {"", "sp", "sp.ordered.metadata"};

// LLVM names only the types that distinguish forms.
void types(Name& out, const Form& f) {
  const bool small_float = bits(f.a) <= 8 && info(f.a).floating;
  if (f.a == f16) out.word(f.d).word(f.c);
  else if (small_float) out.word(f.d).word(f.a).word(f.b).word(f.c);
  else if (f.a != f.b) out.word(f.a).word(f.b);
  else out.word(f.a);
}

std::string mma_name(const Form& f) {
  if (f.rounding != Rounding::none) return "";
  Name out("llvm.nvvm.mma");
  out.word(sparsity_names[static_cast<int>(f.sparsity)])
      .word(bit_op_names[static_cast<int>(f.bit_op)])
      .when(f.block_scale, "block.scale");
  out.word(f.shape.text()).word(f.a_major).word(f.b_major).when(f.satfinite, "satfinite");
  out.word(kind_names[static_cast<int>(f.kind)]).word(scale_names[f.scale_vec]);
  types(out, f);
  return out.word(f.scale_type).text();
}

// Names of wmma loads and stores have the product's whole shape.
std::string wmma_name(const Form& f) {
  Name out("llvm.nvvm.wmma");
  out.word(f.shape.text());
  if (f.opcode == Opcode::wmma_mma) {
    out.word("mma").word(bit_op_names[static_cast<int>(f.bit_op)]).word(f.a_major).word(f.b_major);
    out.word(rounding_names[static_cast<int>(f.rounding)]);
    types(out, f);
    return out.when(f.satfinite, "satfinite").text();
  }
  out.word(f.opcode == Opcode::wmma_load ? "load" : "store").word(name(f.operand)).word(f.a_major);
  return out.when(f.stride, "stride").word(f.d).text();
}

std::string move_name(const Form& f) {
  Name out(f.opcode == Opcode::ldmatrix ? "llvm.nvvm.ldmatrix" : "llvm.nvvm.stmatrix");
  out.word("sync.aligned")
      .word(f.shape.text())
      .word("x" + std::to_string(f.count))
      .when(f.trans, "trans");
  return out.word(f.d).word(f.a).text();
}

}  // namespace

std::string intrinsic_name(const Form& form) {
  if (form.space == StateSpace::shared_cta) return "";  // LLVM writes .shared for its address space
  switch (form.opcode) {
    case Opcode::ldmatrix:
    case Opcode::stmatrix: return move_name(form);
    case Opcode::wmma_load:
    case Opcode::wmma_store:
    case Opcode::wmma_mma: return wmma_name(form);
    case Opcode::mma: return mma_name(form);
    default: break;  // movmatrix and wgmma have none
  }
  return "";
}

// LLVM 22.1 requires newer targets than the instructions do in two cases; otherwise its
// requirements equal the table's.
bool selectable(const Form& form, const Target& target) {
  if (form.kind == Kind::f8f6f4 && target.arch.sm < 120) return false;
  if (form.opcode == Opcode::mma && form.bit_op != BitOp::none && target.arch.sm < 80) return false;
  return true;
}

}  // namespace tartan::TARTAN_ABI::codegen
