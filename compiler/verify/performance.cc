// SPDX-License-Identifier: Apache-2.0
// Matrix instructions that the target emulates, or for which it has a better form, according to the
// assembler's output.
#include <fmt/format.h>

#include "compiler/verify/pass.h"
#include "tartan/isa/advice.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Form;
using isa::Opcode;
using isa::operator""_q;

struct Slow {
  bool (*is)(const Form& form);
  bool (*on)(int sm);
  std::string_view why;
};

bool product(const Form& f) { return f.opcode == Opcode::mma || f.opcode == Opcode::wmma_mma; }

constexpr Slow slow[] = {
    {[](const Form& f) { return product(f) && (f.a == Type::s4 || f.a == Type::u4); },
     [](int sm) { return sm >= 90; },
     "is emulated with two 8-bit products and hundreds of conversions; widen to s8 or u8"},
    {[](const Form& f) { return product(f) && f.a == Type::b1; }, [](int sm) { return sm >= 100; },
     "is emulated with 8-bit products; use s8 or u8"},
    {[](const Form& f) { return product(f) && f.bit_op == isa::BitOp::xor_popc; },
     [](int sm) { return sm == 90; }, "is emulated with two products; .and.popc needs one"},
    {[](const Form& f) {
       return f.opcode == Opcode::mma && f.shape == Shape{8, 8, 4} && f.a == f16;
     },
     [](int sm) { return sm >= 80; }, "does not use tensor cores; use m16n8k16"},
    {[](const Form& f) {
       return f.opcode == Opcode::mma && f.kind == isa::Kind::none && bits(f.a) == 8 &&
              info(f.a).floating;
     },
     [](int sm) { return isa::advised(isa::Advice::fp8_by_wgmma_only, {sm}); },
     "is emulated with f16 products after a conversion; use f16 or the target's own fp8 "
     "instructions"},
    {[](const Form& f) { return f.opcode == Opcode::mma && f.a == f64 && f.shape.m == 16; },
     [](int sm) { return sm >= 100; }, "is split into m8n8k4 products"},
};

void check_multicast(Context& context, const ptx::Instruction& instruction) {
  const isa::Spelling& spelling = context.module.spelling(instruction);
  const Arch arch = context.target.arch;
  if (!isa::is_asynchronous_copy(spelling.opcode) || !spelling.has("multicast::cluster"_q) ||
      isa::advised(isa::Advice::multicast, arch))
    return;
  context.report("slow-instruction"_rule, instruction.opcode,
                 fmt::format(".multicast::cluster of {} may be slow on {}; it is meant for sm_90a, "
                             "and for sm_100 to sm_110 with suffix a or f",
                             isa::name(spelling.opcode), arch.text()));
}

}  // namespace

void check_performance(Context& context, const FunctionView& view) {
  const int sm = context.target.arch.sm;
  for (const ptx::Statement& statement : view.function.statements) {
    if (statement.kind != ptx::StatementKind::Instruction) continue;
    const ptx::Instruction& instruction = context.module.instructions[statement.index];
    if (sm != 0) check_multicast(context, instruction);
    const isa::Instruction* row = view.readings.instruction(instruction);
    if (!row || sm == 0 || !row->since.has(context.target)) continue;
    for (const Slow& each : slow)
      if (each.is(row->form) && each.on(sm))
        context.report("slow-instruction"_rule, instruction.opcode,
                       fmt::format("on {}, {} {}", context.target.arch.text(),
                                   isa::spell(row->form), each.why));
    if (row->form.opcode != Opcode::mma || row->form.sparsity != isa::Sparsity::sp) continue;
    Form ordered = row->form;
    ordered.sparsity = isa::Sparsity::sp_ordered_metadata;
    const auto better = isa::find(ordered);
    if (better && better->since.has(context.target))
      context.report("slow-instruction"_rule, instruction.opcode,
                     fmt::format("{} may be slow; {} uses the hardware's metadata order",
                                 isa::spell(row->form), isa::spell(ordered)));
  }
}

}  // namespace tartan::TARTAN_ABI::verify
