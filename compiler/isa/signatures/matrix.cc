// SPDX-License-Identifier: Apache-2.0
// Matrix instructions: the signatures that follow from the rows of compiler/isa/tables.h.
#include "compiler/isa/signatures/matrix.h"

#include <algorithm>

#include "compiler/isa/tables.h"
#include "compiler/isa/undocumented.h"
#include "tartan/isa/fragment.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr Need cta_suffix{.words = "shared::cta", .since = {{7, 8}, 10}};
constexpr Majors either{true, true}, only_row{true, false}, only_col{false, true};

constexpr TypeSet any_32_bits{Type::b32, Type::u32, Type::s32, Type::f32, Type::f16x2};

template <typename T, std::size_t N>
void add(List<T, N>& list, const T& item) {
  list.items[list.size++] = item;
}

// ---- Operands.

constexpr OperandRow in_role(Role role, OperandRow row) {
  row.role = role;
  row.name = name(role);
  return row;
}
constexpr OperandRow fragment_of(Operand matrix, Role role) {
  OperandRow out = in_role(role, {.accepts = a_vector, .written = role == Role::d});
  out.fragment = matrix;
  return out;
}
constexpr OperandRow register_of(Role role, Type type, TypeSet registers) {
  OperandRow out = in_role(role, reg(type));
  out.registers = registers;
  return out;
}
constexpr OperandRow address(bool is_written) {
  OperandRow out = in_role(Role::address, addr());
  out.written = is_written;
  out.registers = {Type::b32, Type::u32, Type::s32, Type::b64, Type::u64, Type::s64};
  return out;
}
constexpr OperandRow stride() {
  return optional(
      also(an_integer, register_of(Role::stride, Type::b32, {Type::b32, Type::u32, Type::s32})));
}
// Metadata and scales may have their own braces.
constexpr OperandRow word(Role role) {
  OperandRow out = also(a_vector, register_of(role, Type::b32, any_32_bits));
  out.elements = 1;
  return out;
}
constexpr OperandRow descriptor(Role role) {
  return also(an_integer, register_of(role, Type::b64, {Type::b64, Type::u64, Type::s64}));
}
constexpr OperandRow number(Role role, std::int64_t low, std::int64_t high, std::int64_t step = 1) {
  OperandRow out = in_role(role, imm(low, high));
  out.step = step;
  return out;
}
constexpr OperandRow predicate(Role role) {
  OperandRow out = in_role(role, condition());
  out.ranged = true;
  out.high = 1;
  return out;
}
// {byte-id, thread-id} of a scale.
constexpr OperandRow select_pair(Role role, int scale_vec) {
  OperandRow out = register_of(role, Type::b16, {Type::b16, Type::u16, Type::s16});
  out.accepts = a_vector | a_register | an_integer;
  out.elements = 2;
  out.ranged = true;
  out.high = scale_vec == 1 ? 3 : scale_vec == 2 ? 2 : 0;
  out.step = scale_vec == 2 ? 2 : 1;
  out.threads = role == Role::select_a ? 2 : 4;
  return out;
}

void add_metadata(Signature& into, const Form& form) {
  add(into.operands, word(Role::metadata));
  add(into.operands, number(Role::selector, 0, selectors(form) - 1));
}

// ---- Words.

constexpr QualifierSet word_of(Kind kind) {
  constexpr QualifierSet sets[] = {
      {}, "kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"};
  return sets[static_cast<int>(kind)];
}
constexpr QualifierSet word_of_scales(int scale_vec) {
  constexpr QualifierSet sets[] = {"scale_vec::1X", "scale_vec::2X", "scale_vec::4X"};
  return sets[scale_vec / 2];
}
constexpr QualifierSet rounding_words = "rn rz rm rp", ordered = "sp::ordered_metadata";

std::string_view popc_first(const Spelling& spelling) {
  const std::string_view text = spelling.text;
  return text.find(".popc") < std::min(text.find(".and"), text.find(".xor"))
             ? "requires .popc after .and or .xor"
             : "";
}
template <int step, int fine>
std::string_view illegal_n(const Spelling& spelling) {
  const int n = spelling.shape.n;
  if (n >= 8 && n <= 256 && n % (n <= fine ? 8 : step) == 0) return popc_first(spelling);
  return step == 8 ? "requires n of 8 to 256 in steps of 8"
                   : "requires n of 8, 16, 24, 32, or 48 to 256 in steps of 16";
}

void add_bit_op(Signature& into, const QualifierSet& words) {
  add(into.one, words);
  add(into.one, QualifierSet("popc"));
  into.refuses = popc_first;
}
void add_bit_op(Signature& into, BitOp op) {
  if (op != BitOp::none) add_bit_op(into, op == BitOp::and_popc ? "and"_q : "xor"_q);
}

Signature start(Opcode opcode, Shape shape, const Since& since) {
  return {.opcode = opcode, .one = {"sync", "aligned"}, .shape = shape, .since = since};
}

// ---- ldmatrix, stmatrix, movmatrix.

Signature move(const MatrixMove& row, bool eight) {
  Signature out = start(row.opcode, row.shape, row.since);
  add(out.types, TypeSet(row.format));
  if (!row.from.has(Type::none)) add(out.types, row.from);
  if (row.trans == Trans::Always) add(out.one, QualifierSet("trans"));
  if (row.trans == Trans::Optional) out.flags = "trans";
  if (row.opcode == Opcode::movmatrix) {
    out.operands = {written(register_of(Role::d, Type::b32, any_32_bits)),
                    register_of(Role::a, Type::b32, any_32_bits)};
    return out;
  }
  QualifierSet counts;
  if (row.counts & 1) counts.add("x1"_q);
  if (row.counts & 2) counts.add("x2"_q);
  if (row.counts & 4) counts.add("x4"_q);
  add(out.one, eight ? QualifierSet("x8"_q) : counts);
  add(out.any, QualifierSet("shared shared::cta"));
  add(out.needs, cta_suffix);
  const bool loads = row.opcode == Opcode::ldmatrix;
  OperandRow matrices = fragment_of(Operand::d, loads ? Role::d : Role::c);
  if (eight) matrices.elements = any_matrices;
  if (loads) out.operands = {matrices, address(false)};
  else out.operands = {address(true), matrices};
  return out;
}

// ---- wmma.

// wmma.load of A, B or C; wmma.store of D.
Signature fragment_move(const Wmma& row, Operand operand, TypeSet types) {
  const bool stores = operand == Operand::d;
  Signature out = start(stores ? Opcode::wmma_store : Opcode::wmma_load, row.shape, row.since);
  add(out.one, operand == Operand::a   ? QualifierSet("a")
               : operand == Operand::b ? QualifierSet("b")
               : operand == Operand::c ? QualifierSet("c")
                                       : QualifierSet("d"));
  add(out.any, QualifierSet("global shared shared::cta"));
  add(out.needs, cta_suffix);
  add(out.types, types);
  const bool input = operand == Operand::a || operand == Operand::b;
  add(out.majors, row.any_major || !input ? either : operand == Operand::a ? only_row : only_col);
  if (stores) out.operands = {address(true), fragment_of(operand, Role::c), stride()};
  else out.operands = {fragment_of(operand, Role::d), address(false), stride()};
  return out;
}

void add_majors(Signature& into, bool any) {
  add(into.majors, any ? either : only_row);
  add(into.majors, any ? either : only_col);
}

void add_products(Signature& into) {
  into.operands = {fragment_of(Operand::d, Role::d), fragment_of(Operand::a, Role::a),
                   fragment_of(Operand::b, Role::b), fragment_of(Operand::c, Role::c)};
}

Signature product(const Wmma& row, Type input) {
  Signature out = start(Opcode::wmma_mma, row.shape, row.since);
  // Products of f16 write the types of D and C alone.
  if (input == f16) out.types = {row.cd, row.cd};
  else out.types = {row.cd, input, input, row.cd};
  add_majors(out, row.any_major);
  if (row.satfinite) out.flags = "satfinite";
  if (row.roundings) add(out.any, rounding_words);
  add_bit_op(out, row.bit_op);
  add_products(out);
  return out;
}

// What early versions of PTX had: without .aligned until 6.2, with .satfinite until 6.4.
void add_legacy(const Wmma& row, const Signature& modern, std::vector<Signature>& into) {
  if (row.unaligned == Version{}) return;
  Signature out = modern;
  out.one = {"sync"};
  for (const QualifierSet& set : modern.one)
    if (set != "sync" && set != "aligned") add(out.one, set);
  if (out.any.size) out.any = {"global shared"};
  out.needs = {};
  out.since.ptx = row.unaligned;
  out.since.last = {6, 2};
  if (out.opcode == Opcode::wmma_mma) out.flags = "satfinite";
  into.push_back(out);
  if (out.opcode != Opcode::wmma_mma) return;
  Signature saturating = modern;
  add(saturating.one, QualifierSet("satfinite"));
  saturating.since.last = {6, 4};
  into.push_back(saturating);
}

// ---- mma.

Signature product(const Mma& row, const QualifierSet& sparsity) {
  Signature out = start(Opcode::mma, row.shape, row.since);
  out.types = {row.d, row.a, row.b, row.c};
  add_majors(out, row.options & any_major);
  if (!sparsity.empty()) add(out.one, sparsity);
  if (row.kind != Kind::none) add(out.one, word_of(row.kind));
  if (row.options & satfinite) out.flags = "satfinite";
  if (row.options & roundings) add(out.any, rounding_words);
  add_bit_op(out, row.bit_op);
  add_products(out);
  if (row.sparse) {
    Form form{.opcode = Opcode::mma, .shape = row.shape, .d = row.d, .a = row.a.first()};
    form.kind = row.kind;
    form.sparsity = Sparsity::sp;
    add_metadata(out, form);
  }
  if (row.scale_vec == 0) return out;
  add(out.one, QualifierSet("block_scale"));
  if (row.options & needs_vec) add(out.one, word_of_scales(row.scale_vec));
  else add(out.any, word_of_scales(row.scale_vec));
  add(out.types, TypeSet(row.scale_type));
  add(out.operands, word(Role::scale_a));
  add(out.operands, select_pair(Role::select_a, row.scale_vec));
  add(out.operands, word(Role::scale_b));
  add(out.operands, select_pair(Role::select_b, row.scale_vec));
  return out;
}

// ---- wgmma.

Signature product(const Wgmma& row, bool sparse, bool a_in_registers) {
  Since since = row.since;
  if (sparse) since.ptx = std::max(since.ptx, row.sparse);
  const auto k = static_cast<std::int16_t>(sparse ? 2 * row.k : row.k);
  Signature out = start(Opcode::wgmma, {64, 0, k}, since);
  out.types = {row.d, row.a, row.b};
  if (sparse) add(out.one, QualifierSet("sp"));
  if (row.satfinite) out.flags = "satfinite";
  add_bit_op(out, row.bit_op);
  out.refuses = row.every_n ? illegal_n<8, 256> : illegal_n<16, 32>;
  add(out.operands, fragment_of(Operand::d, Role::d));
  add(out.operands,
      a_in_registers ? fragment_of(Operand::a, Role::a) : descriptor(Role::a_descriptor));
  add(out.operands, descriptor(Role::b_descriptor));
  if (sparse) {
    Form form{.opcode = Opcode::wgmma, .shape = {64, 8, k}, .d = row.d, .a = row.a.first()};
    form.sparsity = Sparsity::sp;
    add_metadata(out, form);
  }
  add(out.operands, predicate(Role::scale_d));
  if (row.floating) {
    add(out.operands, number(Role::imm_scale_a, -1, 1, 2));
    add(out.operands, number(Role::imm_scale_b, -1, 1, 2));
  }
  if (row.majors) {
    add(out.operands, number(Role::imm_trans_a, 0, 1));
    if (!a_in_registers) add(out.operands, number(Role::imm_trans_b, 0, 1));
  }
  return out;
}

// ---- What the assembler takes beyond the manual.

void add_undocumented(std::vector<Signature>& into) {
  std::vector<Signature> out;
  for (const MatrixMove& row : matrix_moves)
    if (row.opcode != Opcode::movmatrix) out.push_back(move(row, true));
  for (const MatrixMove& row : undocumented_moves) {
    out.push_back(move(row, false));
    out.push_back(move(row, true));
  }
  for (const Wmma& row : undocumented_products)
    for (const TypeInfo& each : type_table)
      if (row.ab.has(each.type)) out.push_back(product(row, each.type));
  for (const Wmma& row : undocumented_accumulators)
    for (const Operand operand : {Operand::c, Operand::d})
      out.push_back(fragment_move(row, operand, row.cd));
  for (const Mma& row : undocumented_mmas)
    out.push_back(product(row, row.sparse ? ordered : QualifierSet()));
  for (const Mma& row : mmas) {
    if (!row.a.has(Type::s4) || row.sparse) continue;
    out.push_back(product(row, {}));
    out.back().flags = {};
    add_bit_op(out.back(), "and xor");
  }
  for (Signature& each : out) {
    each.undocumented = true;
    into.push_back(each);
  }
}

void append(std::vector<Signature>& into, const std::vector<Signature>& more) {
  into.insert(into.end(), more.begin(), more.end());
}

// Whether a row before this one has the fragment: products of one shape share C and D.
bool is_repeated(const Signature& signature, const std::vector<Signature>& before) {
  return std::ranges::any_of(before, [&](const Signature& each) {
    return each.opcode == signature.opcode && each.shape == signature.shape &&
           each.one.size == signature.one.size && std::ranges::equal(each.one, signature.one) &&
           (each.types[0].mask & signature.types[0].mask) == signature.types[0].mask;
  });
}

}  // namespace

std::vector<Signature> signatures_of(const MatrixMove& row) { return {move(row, false)}; }

std::vector<Signature> signatures_of(const Wmma& row) {
  std::vector<Signature> out;
  for (const Operand operand : {Operand::a, Operand::b, Operand::c, Operand::d}) {
    const bool input = operand == Operand::a || operand == Operand::b;
    out.push_back(fragment_move(row, operand, input ? row.ab : row.cd));
  }
  for (const TypeInfo& each : type_table)
    if (row.ab.has(each.type)) out.push_back(product(row, each.type));
  const std::vector<Signature> modern = out;
  for (const Signature& each : modern) add_legacy(row, each, out);
  return out;
}

std::vector<Signature> signatures_of(const Mma& row) {
  if (!row.sparse) return {product(row, {})};
  if (row.plain_sp == Version{}) return {product(row, ordered)};
  Signature out = product(row, "sp sp::ordered_metadata");
  add(out.needs, {.words = ordered, .since = row.since});
  out.since.ptx = row.plain_sp;
  return {out};
}

std::vector<Signature> signatures_of(const Wgmma& row) {
  std::vector<Signature> out;
  for (const bool sparse : {false, true})
    for (const bool a_in_registers : {false, true})
      if (!sparse || row.sparse != Version{}) out.push_back(product(row, sparse, a_in_registers));
  return out;
}

std::span<const Signature> matrix_signatures() {
  static const std::vector<Signature> all = [] {
    std::vector<Signature> out;
    for (const MatrixMove& row : matrix_moves) append(out, signatures_of(row));
    for (const Wmma& row : wmmas)
      for (const Signature& each : signatures_of(row))
        if (each.opcode == Opcode::wmma_mma || !is_repeated(each, out)) out.push_back(each);
    for (const Mma& row : mmas) append(out, signatures_of(row));
    for (const Wgmma& row : wgmmas) append(out, signatures_of(row));
    add_undocumented(out);
    return out;
  }();
  return all;
}

}  // namespace tartan::TARTAN_ABI::isa
