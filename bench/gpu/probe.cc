// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/probe.h"

#include <fmt/format.h>

#include <string>

#include "tartan/isa/instruction.h"

namespace gpu {

using namespace tartan;

namespace {

// Any product whose result type equals its accumulator type.
std::optional<isa::Form> product(std::string_view spelling) {
  const isa::Opcode opcode = isa::matrix_opcode(spelling);
  if (opcode != isa::Opcode::mma && opcode != isa::Opcode::wmma_mma) return std::nullopt;
  const isa::FormText text = isa::parse_form(spelling);
  if (!text.unknown.empty() || !text.repeated.empty() || !isa::find(text.form)) return std::nullopt;
  return text.form.d == text.form.c ? std::optional(text.form) : std::nullopt;
}

// A constant operand: fragments of the thread index, unknown to the compiler; metadata that keeps
// the first elements; scales of one.
std::vector<Scalar> fixed_operand(Builder& k, const isa::OperandSpec& spec) {
  switch (spec.kind) {
    case isa::OperandKind::Immediate: return {Scalar(spec.low)};
    case isa::OperandKind::Pair: return {Scalar(0), Scalar(0)};
    default: break;
  }
  if (spec.role == isa::Role::metadata) return {k.constant(u32, 0x44444444)};
  if (spec.role == isa::Role::scale_a || spec.role == isa::Role::scale_b)
    return {k.constant(u32, 0x7F7F7F7F)};
  std::vector<Scalar> out;
  for (int i = 0; i < spec.count; ++i) {
    const auto number = k.thread() + i;
    out.push_back(info(spec.type).floating ? k.convert(number, spec.type) : number);
  }
  return out;
}

}  // namespace

Kernel mma_probe(std::string_view spelling, const Probe& options) {
  return kernel(
      "mma_probe", {.block = options.block},
      [options, spelling = std::string(spelling)](Builder& k) {
        const auto form = product(spelling);
        if (!k.require(form.has_value() && options.accumulators > 0,
                       fmt::format("{} is not an mma or wmma.mma whose result can be its "
                                   "accumulator, or accumulators = {} is below 1",
                                   spelling, options.accumulators)))
          return;
        const isa::Instruction row = *isa::find(*form);
        const auto rounds = k.param("rounds", s32);
        const Type register_type = row.operand(isa::Role::c)->type;
        auto out = k.global("out", register_type, row_major(1, 1));

        std::vector<Scalar> before, after;  // of the accumulators, in the order of the operands
        const isa::OperandSpec& accumulators = *row.operand(isa::Role::c);
        bool behind = false;
        for (const isa::OperandSpec& spec : row.operands) {
          if (spec.role == isa::Role::c) behind = true;
          if (spec.role == isa::Role::c || spec.role == isa::Role::d) continue;
          for (const Scalar& each : fixed_operand(k, spec))
            (behind ? after : before).push_back(each);
        }
        const int count = accumulators.count;
        std::vector<ScalarVariable> sums;
        for (int i = 0; i < options.accumulators * count; ++i)
          sums.push_back(k.variable(k.constant(register_type, i / count)));
        k.loop(0, rounds, 1, [&](Scalar) {
          for (int i = 0; i < options.accumulators; ++i) {
            std::vector<Scalar> operands = before;
            for (int r = 0; r < count; ++r)
              operands.push_back(sums[static_cast<std::size_t>(i * count + r)]);
            operands.insert(operands.end(), after.begin(), after.end());
            const auto result = k.instruction(spelling, operands);
            for (std::size_t r = 0; r < result.size() && r < static_cast<std::size_t>(count); ++r)
              sums[static_cast<std::size_t>(i * count) + r] = result[r];
          }
        });
        Scalar all = sums[0];
        for (std::size_t i = 1; i < sums.size(); ++i) {
          const Scalar each = sums[i];
          all = info(all.type()).floating ? all + each : all ^ each;
        }
        k.write(out, 0, k.block_x() * options.block + k.thread(), all);
      });
}

double probe_operations(std::string_view spelling, const Probe& options, std::int64_t blocks,
                        std::int64_t rounds) {
  const auto form = product(spelling);
  if (!form) return 0;
  const double each = 2.0 * form->shape.m * form->shape.n * form->shape.k *
                      isa::fragment(*form, Operand::a).matrices;
  return each * options.accumulators * (options.block / 32) * static_cast<double>(blocks) *
         static_cast<double>(rounds);
}

}  // namespace gpu
