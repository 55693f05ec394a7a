// SPDX-License-Identifier: Apache-2.0
// Video instructions: scalar, on two halves and on four bytes (PTX ISA 9.0, 9.7.18).
#include <vector>

#include "compiler/isa/signatures/families.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr QualifierSet comparisons = "eq ne lt le gt ge";
constexpr QualifierSet second_operations = "add min max";

constexpr OperandRow selected(Selector selector, OperandRow row) {
  return row.selector = selector, row;
}
constexpr OperandRow part(OperandRow row) { return selected(Selector::Part, row); }
constexpr OperandRow number(OperandType type = OperandType(0)) {
  return also(an_integer, reg(type));
}
// -a, but not a.
constexpr OperandRow minus(OperandRow row) { return row.accepts = a_minus, row; }

// The types that an operation states: of d, a and b; for vset of a and b.
constexpr Signature three_types(Opcode opcode) {
  return {.opcode = opcode, .types = {ints_32, ints_32, ints_32}, .since = {{2, 0}, 20}};
}
constexpr Signature two_types(Opcode opcode) {
  return {.opcode = opcode, .types = {ints_32, ints_32}, .since = {{2, 0}, 20}};
}
constexpr OperandType of_a(const Signature& row) { return OperandType(row.types.size - 2); }
constexpr OperandType of_b(const Signature& row) { return OperandType(row.types.size - 1); }

using Rows = std::vector<Signature>;

// On one part of each source: d alone, a part of d merged into c, or d combined with c.
void scalar(Rows& out, Signature row) {
  const OperandRow a = part(number(of_a(row))), b = part(number(of_b(row)));
  row.operands = {dst(), a, b};
  out.push_back(row);
  OperandRow into = part(dst());
  into.selects = true;
  row.operands = {into, a, b, number()};
  out.push_back(row);
  row.one.items[row.one.size++] = second_operations;
  row.operands = {dst(), a, b, number()};
  out.push_back(row);
}

// d = a * b + c, with the product or c negated; .po adds one more.
void multiply_add(Rows& out) {
  Signature row = three_types(Opcode::vmad);
  row.any = {"shr7 shr15"};
  row.flags = "sat";
  const OperandRow a = part(number(OperandType(1))), b = part(number(OperandType(2)));
  row.operands = {dst(), also(a_minus, a), also(a_minus, b), number()};
  out.push_back(row);
  row.operands = {dst(), a, b, also(a_minus, number())};
  out.push_back(row);
  row.operands = {dst(), minus(a), minus(b), also(a_minus, number())};
  out.push_back(row);
  row.one = {"po"};
  row.operands = {dst(), a, b, number()};
  out.push_back(row);
}

// On elements of a and b: elements of d that no selector names come from c, or all are added to c.
void parallel(Rows& out, Signature row, bool halves) {
  const Selector sources = halves ? Selector::Halves : Selector::Bytes,
                 results = halves ? Selector::SomeHalves : Selector::SomeBytes;
  row.operands = {selected(results, dst()), selected(sources, reg(of_a(row))),
                  selected(sources, reg(of_b(row))), reg()};
  row.since = {{3, 0}, 30};
  out.push_back(row);
}

Rows make() {
  Rows out;
  for (const Opcode each :
       {Opcode::vadd, Opcode::vsub, Opcode::vabsdiff, Opcode::vmin, Opcode::vmax}) {
    Signature row = three_types(each);
    row.flags = "sat";
    scalar(out, row);
  }
  for (const Opcode each : {Opcode::vshl, Opcode::vshr}) {
    Signature row = three_types(each);
    row.types.items[2] = Type::u32;
    row.one = {"clamp wrap"};
    row.flags = "sat";
    scalar(out, row);
  }
  Signature set = two_types(Opcode::vset);
  set.one = {comparisons};
  scalar(out, set);
  multiply_add(out);

  for (const Opcode each : {Opcode::vadd2, Opcode::vsub2, Opcode::vavrg2, Opcode::vabsdiff2,
                            Opcode::vmin2, Opcode::vmax2, Opcode::vadd4, Opcode::vsub4,
                            Opcode::vavrg4, Opcode::vabsdiff4, Opcode::vmin4, Opcode::vmax4}) {
    Signature row = three_types(each);
    row.any = {"sat add"};
    parallel(out, row, each < Opcode::vadd4);
  }
  for (const Opcode each : {Opcode::vset2, Opcode::vset4}) {
    Signature row = two_types(each);
    row.one = {comparisons};
    row.flags = "add";
    parallel(out, row, each == Opcode::vset2);
  }
  return out;
}

}  // namespace

std::span<const Signature> video_signatures() {
  static const Rows rows = make();
  return rows;
}

}  // namespace tartan::TARTAN_ABI::isa
