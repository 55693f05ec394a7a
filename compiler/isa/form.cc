// SPDX-License-Identifier: Apache-2.0
#include "tartan/isa/form.h"

#include <fmt/format.h>

#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI {

std::string Shape::text() const {
  return k ? fmt::format("m{}n{}k{}", m, n, k) : fmt::format("m{}n{}", m, n);
}

namespace isa {
namespace {

// The words of the enumerators after `none`, in order.
constexpr Qualifier kind_words[] = {"kind::f8f6f4"_q, "kind::mxf8f6f4"_q, "kind::mxf4"_q,
                                    "kind::mxf4nvf4"_q};
constexpr Qualifier rounding_words[] = {"rn"_q, "rz"_q, "rm"_q, "rp"_q};
constexpr Qualifier bit_op_words[] = {"and"_q, "xor"_q};
constexpr Qualifier sparsity_words[] = {"sp"_q, "sp::ordered_metadata"_q};
constexpr Qualifier operand_words[] = {"a"_q, "b"_q, "c"_q, "d"_q};
constexpr Qualifier count_words[] = {"x1"_q, "x2"_q, "x4"_q, "x8"_q};
constexpr Qualifier scale_words[] = {"scale_vec::1X"_q, "scale_vec::2X"_q, "scale_vec::4X"_q};

// The number of the first of the words that the spelling has; 0 if it has none.
template <std::size_t N>
int written(const Qualifier (&words)[N], const Spelling& spelling) {
  for (std::size_t i = 0; i < N; ++i)
    if (spelling.has(words[i])) return static_cast<int>(i) + 1;
  return 0;
}

template <std::size_t N, typename Value>
std::string_view word_of(const Qualifier (&words)[N], Value value) {
  const auto number = static_cast<std::size_t>(value);
  return number ? words[number - 1].word() : std::string_view();
}

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
  Speller out(name(f.opcode));
  out.sync(f).shape(f.shape);
  if (f.count) out.word(fmt::format("x{}", f.count));
  return out.when(f.trans, "trans").word(name(f.space)).word(f.d).word(f.a).text();
}

std::string spell_wmma_move(const Form& f) {
  Speller out(name(f.opcode));
  return out.word(name(f.operand))
      .sync(f)
      .word(name(f.a_major))
      .shape(f.shape)
      .word(name(f.space))
      .word(f.d)
      .text();
}

std::string spell_wmma_mma(const Form& f) {
  Speller out(name(f.opcode));
  if (f.bit_op != BitOp::none) out.word(word_of(bit_op_words, f.bit_op)).word("popc");
  out.sync(f).word(name(f.a_major)).word(name(f.b_major)).shape(f.shape);
  out.word(word_of(rounding_words, f.rounding)).word(f.d);
  if (f.a != Type::f16) out.word(f.a).word(f.b);
  return out.word(f.c).when(f.satfinite, "satfinite").text();
}

std::string spell_mma(const Form& f) {
  Speller out(name(f.opcode));
  out.word(word_of(sparsity_words, f.sparsity)).sync(f).shape(f.shape);
  out.word(name(f.a_major)).word(name(f.b_major)).word(word_of(kind_words, f.kind));
  out.when(f.block_scale, "block_scale");
  if (f.scale_vec) out.word(fmt::format("scale_vec::{}X", f.scale_vec));
  out.when(f.satfinite, "satfinite").word(word_of(rounding_words, f.rounding));
  out.word(f.d).word(f.a).word(f.b).word(f.c).word(f.scale_type);
  if (f.bit_op != BitOp::none) out.word(word_of(bit_op_words, f.bit_op)).word("popc");
  return out.text();
}

std::string spell_wgmma(const Form& f) {
  Speller out(name(f.opcode));
  out.word(word_of(sparsity_words, f.sparsity))
      .sync(f)
      .shape(f.shape)
      .when(f.satfinite, "satfinite");
  out.word(f.d).word(f.a).word(f.b);
  if (f.bit_op != BitOp::none) out.word(word_of(bit_op_words, f.bit_op)).word("popc");
  return out.text();
}

}  // namespace

Opcode matrix_opcode(std::string_view text) {
  const Opcode opcode = find_opcode(text);
  return is_matrix(opcode) ? opcode : Opcode::none;
}

FormText parse_form(std::string_view text) {
  const Spelling spelling = read_spelling(text);
  FormText out{.form = form_of(spelling), .sync = spelling.has("sync"_q)};
  if (!spelling.unknown.empty()) out.unknown.push_back(spelling.unknown);
  for (QualifierSet rest = spelling.words.without(known_words(spelling.opcode)); !rest.empty();
       rest = rest.without(rest.first()))
    out.unknown.push_back(rest.first().word());
  if (!spelling.repeated.empty()) out.repeated.push_back(spelling.repeated);
  out.types = spelling.types.size + spelling.excess_types - (out.form.scale_type != Type::none);
  return out;
}

Form form_of(const Spelling& spelling) {
  // 1, 2, 4, 8 of words in this order.
  const auto power = [&](const auto& words) {
    const int number = written(words, spelling);
    return static_cast<std::uint8_t>(number ? 1 << (number - 1) : 0);
  };
  Form f{.opcode = spelling.opcode, .shape = spelling.shape};
  const auto majors = spelling.majors;
  f.a_major = majors.size > 0 ? majors[0] : Major::none;
  f.b_major = majors.size > 1 ? majors[1] : Major::none;
  if (f.opcode == Opcode::wmma_load || f.opcode == Opcode::wmma_store)
    f.operand = static_cast<Operand>(written(operand_words, spelling));
  f.count = power(count_words);
  f.scale_vec = power(scale_words);
  f.kind = static_cast<Kind>(written(kind_words, spelling));
  f.rounding = static_cast<Rounding>(written(rounding_words, spelling));
  f.sparsity = static_cast<Sparsity>(written(sparsity_words, spelling));
  f.bit_op = static_cast<BitOp>(written(bit_op_words, spelling));
  f.trans = spelling.has("trans"_q);
  f.satfinite = spelling.has("satfinite"_q);
  f.block_scale = spelling.has("block_scale"_q);
  f.aligned = spelling.has("aligned"_q);
  for (const StateSpace space : {StateSpace::global, StateSpace::shared, StateSpace::shared_cta})
    if (spelling.has(qualifier_of(space))) f.space = space;

  // Types come in the order d, a, b, c, scales; wmma.mma on f16 writes d and c alone, wgmma d, a,
  // b.
  List<Type, 6> types = spelling.types;
  if (types.size > 0)
    if (const Type last = types[types.size - 1u]; last == Type::ue8m0 || last == Type::ue4m3)
      f.scale_type = last, types.items[--types.size] = Type::none;
  f.d = types[0];
  if (f.opcode == Opcode::wmma_mma && types.size == 2) {
    f.a = f.b = f16;
    f.c = types[1];
    return f;
  }
  f.a = types[1];
  f.b = types[2];
  f.c = f.opcode == Opcode::wgmma ? f.d : types[3];
  return f;
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
