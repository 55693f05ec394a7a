// SPDX-License-Identifier: Apache-2.0
// Control flow, the stack and miscellaneous instructions (PTX ISA 9.0, 9.7.12, 9.7.17 and 9.7.19).
#include "compiler/isa/signatures/families.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr OperandRow target{.name = "label", .accepts = a_label};
constexpr OperandRow table{.name = "targets", .accepts = a_label};
constexpr OperandRow results{.name = "results", .accepts = a_list};
constexpr OperandRow callee{.name = "function",
                            .accepts = a_function | a_register,
                            .type = Type::none,
                            .fit = Fit::AnySize};
constexpr OperandRow arguments{.name = "arguments", .accepts = a_list};
// A label of .callprototype or .calltargets, or an array of function addresses.
constexpr OperandRow prototype{.name = "prototype",
                               .accepts = a_label | a_variable,
                               .type = u64,
                               .spaces = in_global | in_const};
constexpr OperandRow plain(OperandRow row) {
  row.plain = true;
  return row;
}
constexpr OperandRow branch_index = src(u32, "index");
constexpr OperandRow stack_alignment{.name = "align",
                                     .accepts = an_integer,
                                     .type = u32,
                                     .ranged = true,
                                     .low = 1,
                                     .high = 1 << 23,
                                     .step = 0};

constexpr OperandRow mark() { return imm(0, 4095, "id"); }
constexpr OperandRow trace_condition{
    .name = "p", .accepts = a_register | a_negation, .type = Type::pred};
constexpr Since traces{.ptx = {9, 5}, .sm = 107, .reach = Reach::Family, .last_sm = 107};

constexpr OperandRow register_budget{.name = "registers",
                                     .accepts = an_integer,
                                     .type = u32,
                                     .ranged = true,
                                     .low = 24,
                                     .high = 256,
                                     .step = 8};

constexpr Since stack{{7, 3}, 52};

// clang-format off
constexpr Signature rows[] = {
    {.opcode = Opcode::bra, .flags = "uni", .operands = {target}},
    {.opcode = Opcode::brx_idx, .flags = "uni", .operands = {branch_index, table}, .since = {{6, 0}, 30}},
    {.opcode = Opcode::call, .flags = "uni", .operands = {callee}},
    {.opcode = Opcode::call, .flags = "uni", .operands = {callee, arguments}},
    {.opcode = Opcode::call, .flags = "uni", .operands = {results, callee}},
    {.opcode = Opcode::call, .flags = "uni", .operands = {results, callee, arguments}},
    {.opcode = Opcode::call, .flags = "uni", .operands = {callee, prototype}},
    {.opcode = Opcode::call, .flags = "uni", .operands = {callee, arguments, prototype}},
    {.opcode = Opcode::call, .flags = "uni", .operands = {results, callee, prototype}},
    {.opcode = Opcode::call, .flags = "uni", .operands = {results, callee, arguments, prototype}},
    {.opcode = Opcode::ret, .flags = "uni"},
    {.opcode = Opcode::exit},
    {.opcode = Opcode::trap},
    {.opcode = Opcode::brkpt},
    {.opcode = Opcode::stacksave, .types = {TypeSet{Type::u32, Type::u64}}, .operands = {dst()}, .since = stack},
    {.opcode = Opcode::stackrestore, .types = {TypeSet{Type::u32, Type::u64}}, .operands = {plain(reg())}, .since = stack},
    {.opcode = Opcode::alloca, .types = {TypeSet{Type::u32, Type::u64}}, .operands = {dst(), src(OperandType(0), "size"), optional(stack_alignment)}, .since = stack},
    {.opcode = Opcode::nanosleep, .types = {Type::u32}, .operands = {no_function(src())}, .since = {{6, 3}, 70}},
    {.opcode = Opcode::pmevent, .operands = {imm(0, 15)}, .since = {{1, 4}, 10}},
    {.opcode = Opcode::pmevent, .one = {"mask"}, .operands = {imm(0, 65535)}, .since = {{3, 0}, 20}},
    {.opcode = Opcode::trace_mark, .operands = {mark()}, .since = traces},
    {.opcode = Opcode::trace_mark, .types = {bits_32_64}, .operands = {mark(), no_function(src())}, .since = traces},
    {.opcode = Opcode::trace_mark, .one = {"cond"}, .operands = {mark(), trace_condition}, .since = traces},
    {.opcode = Opcode::trace_mark, .types = {bits_32_64}, .one = {"cond"}, .operands = {mark(), trace_condition, no_function(src())}, .since = traces},
    {.opcode = Opcode::setmaxnreg, .types = {Type::u32}, .one = {"inc dec", "sync", "aligned"}, .operands = {register_budget}, .since = {{8, 0}, 90, Reach::Family}},
};
// clang-format on

}  // namespace

std::span<const Signature> control_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
