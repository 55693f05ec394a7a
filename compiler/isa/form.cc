// SPDX-License-Identifier: Apache-2.0
#include "tartan/isa/form.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

namespace tartan::TARTAN_ABI {

std::string Shape::text() const {
  return k ? fmt::format("m{}n{}k{}", m, n, k) : fmt::format("m{}n{}", m, n);
}

namespace isa {
namespace {

struct OpcodeName {
  std::string_view name;
  Opcode opcode;
};
constexpr OpcodeName opcode_names[] = {
    {"ldmatrix", Opcode::ldmatrix},     {"stmatrix", Opcode::stmatrix},
    {"movmatrix", Opcode::movmatrix},   {"wmma.load", Opcode::wmma_load},
    {"wmma.store", Opcode::wmma_store}, {"wmma.mma", Opcode::wmma_mma},
    {"wgmma.mma_async", Opcode::wgmma}, {"mma", Opcode::mma},
};

constexpr std::string_view kind_names[] = {"", "kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4",
                                           "kind::mxf4nvf4"};
constexpr std::string_view rounding_names[] = {"", "rn", "rz", "rm", "rp"};
constexpr std::string_view bit_op_names[] = {"", "and", "xor"};
constexpr std::string_view sparsity_names[] = {"", "sp", "sp::ordered_metadata"};

std::string_view opcode_name(Opcode opcode) {
  for (const OpcodeName& row : opcode_names)
    if (row.opcode == opcode) return row.name;
  return "";
}

// The index of `text` in `names`, which is also the enumerator's value. Index 0 means "not written"
// and never matches.
template <std::size_t N>
int index_of(const std::string_view (&names)[N], std::string_view text) {
  for (std::size_t i = 1; i < N; ++i)
    if (names[i] == text) return static_cast<int>(i);
  return 0;
}

// "m16n8k16" or "m8n8".
std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](char letter, std::int16_t& into) {
    if (at == end || *at != letter || at + 1 == end || at[1] < '1' || at[1] > '9') return false;
    const auto [next, error] = std::from_chars(at + 1, end, into);
    at = next;
    return error == std::errc();
  };
  if (!number('m', shape.m) || !number('n', shape.n)) return std::nullopt;
  if (at != end && !number('k', shape.k)) return std::nullopt;
  if (at != end) return std::nullopt;
  return shape;
}

// Reads qualifiers one by one into a form. Each `take` returns whether it accepted the qualifier.
class FormReader {
 public:
  explicit FormReader(Opcode opcode) { out_.form.opcode = opcode; }

  void qualifier(std::string_view word) {
    ++words_;
    if (!(flag(word) || operand(word) || shape(word) || layout(word) || space(word) ||
          modifier(word) || type(word)))
      out_.unknown.push_back(word);
  }

  FormText finish() {
    assign_types();
    if (bit_op_ != 0) {
      if (popc_) out_.form.bit_op = static_cast<BitOp>(bit_op_);
      else out_.unknown.push_back(bit_op_names[bit_op_]);
    }
    return std::move(out_);
  }

 private:
  Form& form() { return out_.form; }

  template <typename T>
  bool set(T& field, T value, std::string_view word) {
    if (field != T{}) out_.repeated.push_back(word);
    field = value;
    return true;
  }

  bool flag(std::string_view word) {
    if (word == "sync") return out_.sync = true;  // the assembler accepts it twice
    if (word == "aligned") return form().aligned = true, set(aligned_, true, word);
    if (word == "trans") return set(form().trans, true, word);
    if (word == "satfinite") return set(form().satfinite, true, word);
    if (word == "block_scale") return set(form().block_scale, true, word);
    if (word == "popc" && bit_op_ != 0) return set(popc_, true, word);  // .and.popc
    return false;
  }

  // The operand comes first: wmma.load.a, wmma.store.d.
  bool operand(std::string_view word) {
    if (words_ != 1) return false;
    const Opcode opcode = form().opcode;
    if (opcode == Opcode::wmma_load && (word == "a" || word == "b" || word == "c"))
      return set(form().operand,
                 word == "a"   ? Operand::a
                 : word == "b" ? Operand::b
                               : Operand::c,
                 word);
    if (opcode == Opcode::wmma_store && word == "d") return set(form().operand, Operand::d, word);
    return false;
  }

  bool shape(std::string_view word) {
    const auto parsed = parse_shape(word);
    return parsed && set(form().shape, *parsed, word);
  }

  bool layout(std::string_view word) {
    if (word != "row" && word != "col") return false;
    const Major major = word == "row" ? Major::row : Major::col;
    if (form().a_major == Major::none) return set(form().a_major, major, word);
    const bool two = form().opcode == Opcode::wmma_mma || form().opcode == Opcode::mma;
    if (two && form().b_major == Major::none) return set(form().b_major, major, word);
    out_.repeated.push_back(word);
    return true;
  }

  bool space(std::string_view word) {
    for (const StateSpace space : {StateSpace::global, StateSpace::shared, StateSpace::shared_cta})
      if (word == name(space)) return set(form().space, space, word);
    return false;
  }

  bool modifier(std::string_view word) {
    if (word == "x1" || word == "x2" || word == "x4" || word == "x8")
      return set(form().count, static_cast<std::uint8_t>(word[1] - '0'), word);
    if (word == "scale_vec::1X" || word == "scale_vec::2X" || word == "scale_vec::4X")
      return set(form().scale_vec, static_cast<std::uint8_t>(word[11] - '0'), word);
    if (const int i = index_of(kind_names, word))
      return set(form().kind, static_cast<Kind>(i), word);
    if (const int i = index_of(rounding_names, word))
      return set(form().rounding, static_cast<Rounding>(i), word);
    if (const int i = index_of(sparsity_names, word))
      return set(form().sparsity, static_cast<Sparsity>(i), word);
    if (const int i = index_of(bit_op_names, word)) return set(bit_op_, i, word);
    return false;
  }

  bool type(std::string_view word) {
    const auto parsed = parse_type(word);
    if (!parsed) return false;
    if (*parsed == Type::ue8m0 || *parsed == Type::ue4m3)
      return set(form().scale_type, *parsed, word);
    if (form().scale_type != Type::none) return false;  // the type of the scales is the last one
    if (out_.types == static_cast<int>(types_.size())) {
      out_.repeated.push_back(word);
      return true;
    }
    types_[static_cast<std::size_t>(out_.types++)] = *parsed;
    return true;
  }

  // Types come in the order d, a, b, c; wmma.mma on f16 writes d and c alone, wgmma d, a and b.
  void assign_types() {
    Form& f = form();
    f.aligned = aligned_;
    f.d = types_[0];
    switch (f.opcode) {
      case Opcode::wmma_mma:
        if (out_.types == 2) {
          f.a = f.b = Type::f16;
          f.c = types_[1];
          return;
        }
        break;
      default: break;
    }
    f.a = types_[1];
    f.b = types_[2];
    f.c = f.opcode == Opcode::wgmma ? f.d : types_[3];
  }

  FormText out_;
  std::array<Type, 4> types_{};
  int bit_op_ = 0;
  bool popc_ = false;
  bool aligned_ = false;
  int words_ = 0;
};

// Appends `.word` unless the word is empty.
class Speller {
 public:
  explicit Speller(std::string_view opcode) : text_(opcode) {}
  Speller& word(std::string_view word) {
    if (!word.empty()) (text_ += '.') += word;
    return *this;
  }
  Speller& word(Type type) { return word(name(type)); }
  Speller& shape(Shape shape) { return word(shape.text()); }
  Speller& when(bool condition, std::string_view text) { return condition ? word(text) : *this; }
  Speller& sync(const Form& form) { return word("sync").when(form.aligned, "aligned"); }
  std::string text() { return std::move(text_); }

 private:
  std::string text_;
};

std::string spell_matrix_move(const Form& f) {
  Speller out(opcode_name(f.opcode));
  out.sync(f).shape(f.shape);
  if (f.count) out.word(fmt::format("x{}", f.count));
  return out.when(f.trans, "trans").word(name(f.space)).word(f.d).word(f.a).text();
}

std::string spell_wmma_move(const Form& f) {
  Speller out(opcode_name(f.opcode));
  return out.word(name(f.operand))
      .sync(f)
      .word(name(f.a_major))
      .shape(f.shape)
      .word(name(f.space))
      .word(f.d)
      .text();
}

std::string spell_wmma_mma(const Form& f) {
  Speller out(opcode_name(f.opcode));
  if (f.bit_op != BitOp::none) out.word(bit_op_names[static_cast<int>(f.bit_op)]).word("popc");
  out.sync(f).word(name(f.a_major)).word(name(f.b_major)).shape(f.shape);
  out.word(rounding_names[static_cast<int>(f.rounding)]).word(f.d);
  if (f.a != Type::f16) out.word(f.a).word(f.b);
  return out.word(f.c).when(f.satfinite, "satfinite").text();
}

std::string spell_mma(const Form& f) {
  Speller out(opcode_name(f.opcode));
  out.word(sparsity_names[static_cast<int>(f.sparsity)]).sync(f).shape(f.shape);
  out.word(name(f.a_major)).word(name(f.b_major)).word(kind_names[static_cast<int>(f.kind)]);
  out.when(f.block_scale, "block_scale");
  if (f.scale_vec) out.word(fmt::format("scale_vec::{}X", f.scale_vec));
  out.when(f.satfinite, "satfinite").word(rounding_names[static_cast<int>(f.rounding)]);
  out.word(f.d).word(f.a).word(f.b).word(f.c).word(f.scale_type);
  if (f.bit_op != BitOp::none) out.word(bit_op_names[static_cast<int>(f.bit_op)]).word("popc");
  return out.text();
}

std::string spell_wgmma(const Form& f) {
  Speller out(opcode_name(f.opcode));
  out.word(sparsity_names[static_cast<int>(f.sparsity)])
      .sync(f)
      .shape(f.shape)
      .when(f.satfinite, "satfinite");
  out.word(f.d).word(f.a).word(f.b);
  if (f.bit_op != BitOp::none) out.word(bit_op_names[static_cast<int>(f.bit_op)]).word("popc");
  return out.text();
}

}  // namespace

Opcode matrix_opcode(std::string_view text) {
  // Most instructions are not matrix instructions: check the first letter.
  if (text.empty() || (text[0] != 'm' && text[0] != 'w' && text[0] != 'l' && text[0] != 's'))
    return Opcode::none;
  for (const OpcodeName& row : opcode_names)
    if (text.starts_with(row.name) &&
        (text.size() == row.name.size() || text[row.name.size()] == '.'))
      return row.opcode;
  return Opcode::none;
}

FormText parse_form(std::string_view text) {
  const Opcode opcode = matrix_opcode(text);
  FormReader reader(opcode);
  text.remove_prefix(opcode_name(opcode).size());
  while (!text.empty()) {
    text.remove_prefix(1);  // the dot
    const std::size_t dot = text.find('.');
    const std::string_view word = text.substr(0, dot);
    reader.qualifier(word);
    text.remove_prefix(word.size());
  }
  return reader.finish();
}

std::string spell(const Form& form) {
  switch (form.opcode) {
    case Opcode::ldmatrix:
    case Opcode::stmatrix:
    case Opcode::movmatrix: return spell_matrix_move(form);
    case Opcode::wmma_load:
    case Opcode::wmma_store: return spell_wmma_move(form);
    case Opcode::wmma_mma: return spell_wmma_mma(form);
    case Opcode::mma: return spell_mma(form);
    case Opcode::wgmma: return spell_wgmma(form);
    default: break;
  }
  return "";
}

std::string_view family(const Form& form) {
  switch (form.opcode) {
    case Opcode::ldmatrix: return "ldmatrix";
    case Opcode::stmatrix: return "stmatrix";
    case Opcode::movmatrix: return "movmatrix";
    case Opcode::wmma_load: return "wmma.load";
    case Opcode::wmma_store: return "wmma.store";
    case Opcode::wmma_mma: return "wmma.mma";
    case Opcode::wgmma: return "wgmma";
    case Opcode::mma:
      if (form.sparsity == Sparsity::dense) return form.block_scale ? "mma.block_scale" : "mma";
      return form.block_scale ? "mma.sp.block_scale" : "mma.sp";
    default: break;
  }
  return "";
}

}  // namespace isa
}  // namespace tartan::TARTAN_ABI
