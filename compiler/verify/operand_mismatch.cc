// SPDX-License-Identifier: Apache-2.0
// What is wrong with operands that no signature takes, in words.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/verify/operand_matcher.h"

namespace tartan::verify {
namespace {

using isa::OperandRow;
using isa::Signature;
using isa::Spelling;

// "a constant from 24 to 256 in steps of 8 (the nearest is 40)"
std::string range_text(const OperandRow& row, std::int64_t value) {
  const std::string range = fmt::format("a constant from {} to {}", row.low, row.high);
  if (row.step == 1) return range;
  if (row.step == 0) return range + " that is a power of two";
  if (row.high == std::numeric_limits<std::int64_t>::max())
    return fmt::format("a multiple of {}", row.step);
  const std::int64_t within = std::clamp(value, row.low, row.high) + row.step / 2;
  return fmt::format("{} in steps of {} (the nearest is {})", range, row.step,
                     within / row.step * row.step);
}

std::string_view kind_text(const OperandRow& row) {
  if (row.accepts & isa::an_address) return "an address";
  if (row.accepts & isa::a_vector) return "a vector";
  if (row.accepts & isa::a_label) return "a label";
  if (!(row.accepts & isa::a_register)) return "a constant";
  return row.accepts & isa::an_integer ? "a register or a constant" : "a register";
}

// What may stand behind the name of a register.
std::string_view shape_text(const OperandRow& row) {
  switch (row.selector) {
    case isa::Selector::None: return row.accepts & isa::a_vector ? "a vector" : "one register";
    case isa::Selector::Part:
      return row.selects ? "a part of a register, .b0 to .b3, .h0 or .h1,"
                         : "a register or its .b0 to .b3, .h0 or .h1";
    case isa::Selector::Halves: return "a register or two halves, as .h10 or .h32,";
    case isa::Selector::Bytes: return "a register or four bytes, as .b3210 or .b7654,";
    case isa::Selector::SomeHalves: return "a register or its .h0, .h1 or .h10";
    case isa::Selector::SomeBytes: return "a register or its bytes, the highest first, as .b320,";
  }
  return {};
}

}  // namespace

OperandMismatch OperandMatcher::mismatch(const ptx::Instruction& instruction,
                                         const Spelling& spelling,
                                         const Signature& signature) const {
  const Operands rows = isa::operands(signature, spelling);
  const std::size_t least = required(rows), most = rows.size;
  if (instruction.count < least || instruction.count > most)
    return {&"operand-count"_rule,
            {},
            least == most
                ? fmt::format("takes {} operands, found {}", most, instruction.count)
                : fmt::format("takes {} to {} operands, found {}", least, most, instruction.count),
            -1};
  const auto operands = module_.operands_of(instruction);
  std::size_t i = 0;
  while (i < operands.size() && fits(operands[i], wanted(*rows[i], spelling))) ++i;
  const Wanted want = wanted(*rows[i], spelling);
  const ptx::Operand& operand = operands[i];
  const bool constant = operand.kind == ptx::OperandKind::Integer;
  const Rule* rule = &"operand-kind"_rule;
  std::string expected(kind_text(want.row));
  if (want.row.ranged && constant) {
    rule = &"immediate-range"_rule;
    expected = range_text(want.row, static_cast<std::int64_t>(operand.value));
  } else if (operand.kind == ptx::OperandKind::Vector && want.elements > 1 &&
             operand.count != static_cast<unsigned>(want.elements)) {
    rule = &"register-count"_rule;
    expected = fmt::format("{} registers", want.elements);
  } else if (is_register(operand) && want.row.accepts & isa::a_register &&
             !shape_fits(operand, want)) {
    expected = shape_text(want.row);
  } else if (is_register(operand) && want.row.accepts & isa::a_register) {
    rule = &"register-type"_rule;
    expected = fmt::format("a register of type .{}", tartan::name(want.type));
  } else if (want.type != Type::none) {
    expected += fmt::format(" of type .{}", tartan::name(want.type));
  }
  return {rule, operand.text,
          fmt::format("takes {} as operand {}, found {}", expected,
                      isa::operand_name(signature, static_cast<std::size_t>(
                                                       rows[i] - signature.operands.begin())),
                      found(operand)),
          static_cast<int>(i)};
}

std::string OperandMatcher::found(const ptx::Operand& operand) const {
  switch (operand.kind) {
    case ptx::OperandKind::Name: {
      const NameInfo& info = names_.of(operand);
      if (info.kind == NameKind::Register)
        return fmt::format("{} of type {}.{}", operand.text,
                           info.vector > 1 && base_name(operand.text) == operand.text
                               ? fmt::format(".v{} ", info.vector)
                               : "",
                           tartan::name(info.type));
      return std::string(operand.text);
    }
    case ptx::OperandKind::Integer:
    case ptx::OperandKind::Float:
    case ptx::OperandKind::String: return std::string(operand.text.substr(0, 40));
    case ptx::OperandKind::Vector: return fmt::format("a vector of {}", operand.count);
    case ptx::OperandKind::Address: return "an address";
    case ptx::OperandKind::Pair: return "a pair";
    case ptx::OperandKind::Not: return "a negated predicate";
    case ptx::OperandKind::Negative: return "a negated register";
    case ptx::OperandKind::List: return "a list";
  }
  return {};
}

}  // namespace tartan::verify
