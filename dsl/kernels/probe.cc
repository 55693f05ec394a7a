// SPDX-License-Identifier: Apache-2.0
#include "dsl/kernels/probe.h"

#include <fmt/format.h>

#include <string>

#include "compiler/isa/instruction.h"

namespace tartan::kernels {
namespace {

std::optional<isa::Form> product(std::string_view spelling) {
  if (isa::matrix_opcode(spelling) != isa::Opcode::mma) return std::nullopt;
  const isa::FormText text = isa::parse_form(spelling);
  if (!text.unknown.empty() || !text.repeated.empty() || !isa::find(text.form)) return std::nullopt;
  const bool plain = text.form.sparsity == isa::Sparsity::dense && !text.form.block_scale &&
                     text.form.d == text.form.c;
  return plain ? std::optional(text.form) : std::nullopt;
}

}  // namespace

Kernel mma_probe(std::string_view spelling, const Probe& options) {
  return kernel(
      "mma_probe", {.block = options.block},
      [options, spelling = std::string(spelling)](Builder& k) {
        const auto form = product(spelling);
        if (!k.require(form.has_value() && options.accumulators > 0,
                       fmt::format("{} is no dense mma.sync whose result can be its accumulator, "
                                   "or accumulators = {} is below one",
                                   spelling, options.accumulators)))
          return;
        const isa::Instruction row = *isa::find(*form);
        const auto rounds = k.param("rounds", s32);
        const Type register_type = row.operand(isa::Role::c)->type;
        auto out = k.global("out", register_type, row_major(1, 1));

        // Inputs that the compiler cannot know: every register from the thread's number.
        const auto input = [&](isa::Role role) {
          std::vector<Scalar> registers;
          const isa::OperandSpec& spec = *row.operand(role);
          for (int i = 0; i < spec.count; ++i) {
            const auto number = k.thread() + i;
            registers.push_back(info(spec.type).floating ? k.convert(number, spec.type) : number);
          }
          return registers;
        };
        std::vector<Scalar> fixed = input(isa::Role::a);
        for (const Scalar& each : input(isa::Role::b)) fixed.push_back(each);

        const int count = row.operand(isa::Role::c)->count;
        std::vector<ScalarVariable> sums;
        for (int i = 0; i < options.accumulators * count; ++i)
          sums.push_back(k.variable(k.constant(register_type, i / count)));
        k.loop(0, rounds, 1, [&](Scalar) {
          for (int i = 0; i < options.accumulators; ++i) {
            std::vector<Scalar> operands = fixed;
            for (int r = 0; r < count; ++r)
              operands.push_back(sums[static_cast<std::size_t>(i * count + r)]);
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

}  // namespace tartan::kernels
