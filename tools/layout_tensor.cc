// SPDX-License-Identifier: Apache-2.0
// The layouts of loads and stores of tensor memory.
#include <fmt/format.h>

#include "compiler/isa/hints.h"
#include "tartan/isa/tensor_memory.h"
#include "tools/layout_table.h"

namespace tartan::tools {
namespace {

using isa::Opcode;
using isa::operator""_q;

bool has_lane_map(Opcode opcode) {
  return opcode == Opcode::tcgen05_ld || opcode == Opcode::tcgen05_ld_red ||
         opcode == Opcode::tcgen05_st;
}

// With .sync and .aligned, if they are missing.
std::string completed(std::string_view text, std::string_view opcode) {
  if (opcode.empty()) return std::string(text);
  const isa::Spelling read = isa::read_spelling(text);
  std::string out(opcode);
  for (const isa::Qualifier word : {"sync"_q, "aligned"_q})
    if (!read.has(word)) out += fmt::format(".{}", word.word());
  return out.append(text.substr(opcode.size()));
}

// In the order of the signature, which is the manual's.
std::string spell(const isa::Spelling& spelling, const isa::Signature& signature) {
  std::string out(isa::name(spelling.opcode));
  const auto append = [&](const isa::QualifierSet& set) {
    for (isa::QualifierSet rest = set & spelling.words; !rest.empty();
         rest = rest.without(rest.first()))
      out += fmt::format(".{}", rest.first().word());
  };
  for (const isa::QualifierSet& set : signature.one) append(set);
  for (const isa::QualifierSet& set : signature.any) append(set);
  append(signature.flags);
  for (const Type type : spelling.types) out += fmt::format(".{}", name(type));
  return out;
}

OperandTable operand_table(Opcode opcode, const isa::TensorAccess& access) {
  const isa::TensorShape& shape = *access.shape;
  const int per = access.per_register();
  OperandTable out;
  out.operand = opcode == Opcode::tcgen05_st ? Operand::c : Operand::d;
  out.in_tensor_memory = true;
  out.fragment = {.type = access.packed ? Type::b16 : Type::b32,
                  .rows = shape.lanes(),
                  .cols = access.columns(),
                  .matrices = shape.split ? 2 : 1,
                  .registers = access.registers(),
                  .per_register = per,
                  .container_bits = 32 / per};
  for (int thread = 0; thread < 32; ++thread)
    for (int i = 0; i < access.elements(); ++i) {
      const isa::TensorCell cell = isa::cell(access, thread, i);
      out.cells.push_back(
          {{shape.split ? thread / 16 : 0, cell.lane, cell.column}, thread, i, i / per, i % per});
    }
  return out;
}

std::vector<std::string> notes(const isa::Spelling& spelling, const isa::TensorAccess& access) {
  const bool half = access.shape->lanes() == 16;
  std::vector<std::string> out;
  out.push_back(fmt::format(
      "rows are lanes of tensor memory: row 0 is lane 32w{} for warp w of a warpgroup; columns "
      "have 32 bits, column 0 is the address's",
      half ? " or 32w + 16" : ""));
  if (access.shape->split)
    out.emplace_back("matrix 1 begins half_split_offset columns behind matrix 0");
  if (access.packed) out.emplace_back("an element is in the lower 16 bits of its column");
  if (spelling.opcode == Opcode::tcgen05_ld_red && !access.shape->split)
    out.push_back(fmt::format("one more register has the {} of the lane's elements",
                              spelling.has("max"_q) ? "greatest" : "least"));
  return out;
}

}  // namespace

bool names_tensor_memory(std::string_view spelling) {
  spelling = without_operands(spelling);
  if (isa::matrix_opcode(spelling) != Opcode::none) return false;
  const Opcode opcode = isa::find_opcode(spelling);
  return isa::is_tensor_memory(
      opcode == Opcode::none ? isa::find_opcode(isa::nearest_opcode(spelling)) : opcode);
}

Result<LayoutTable> tensor_layout(std::string_view spelling) {
  spelling = without_operands(spelling);
  const Opcode opcode = isa::find_opcode(spelling);
  if (opcode != Opcode::none && !has_lane_map(opcode))
    return {"unknown-form"_rule,
            fmt::format("{} has no lane map: expected one of tcgen05.ld, tcgen05.ld.red and "
                        "tcgen05.st",
                        isa::name(opcode))};
  const std::string text = completed(spelling, isa::name(opcode));
  const isa::Spelling read = isa::read_spelling(text);
  if (const std::string why = isa::mismatch(read); !why.empty())
    return {isa::mismatch_rule(read), why};
  const isa::Signature& signature = *read.signatures[0];
  const isa::TensorAccess access = isa::tensor_access(read.words);
  LayoutTable out;
  out.instruction = spell(read, signature);
  out.since = signature.since;
  out.operands.push_back(operand_table(read.opcode, access));
  out.notes = notes(read, access);
  return out;
}

}  // namespace tartan::tools
