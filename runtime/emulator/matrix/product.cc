// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/emulator/matrix/arithmetic.h"
#include "runtime/emulator/matrix/lane_map.h"
#include "runtime/emulator/matrix/matrix.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr int most_cells = 512;  // of one operand: m8n32k16 has 16 x 32 bf16 elements, in 256
                                 // cells; f64 m16n8k16 as many of 64 bits

// The maps and the arithmetic need contiguous columns of C; m8n32k16 is computed as its transpose.
bool transposed(const isa::Form& form) {
  return form.opcode == isa::Opcode::wmma_mma && form.shape.n == 32;
}

}  // namespace

struct MatrixProduct::Plan {
  Plan(const isa::Form& form, const NumericRule& rule, Path path)
      : rule(rule),
        kernel(tile_kernel(path)),
        exchanged(transposed(form)),
        a(form, Operand::a, exchanged),
        b(form, Operand::b, exchanged),
        c(form, Operand::c, exchanged),
        d(form, Operand::d, exchanged),
        arithmetic(form, rule, exchanged, path) {
    assert(std::max({a.cells(), b.cells(), c.cells()}) <= most_cells);
  }

  const NumericRule& rule;
  const TileKernel* kernel;
  bool exchanged;
  LaneMap a, b, c, d;
  Arithmetic arithmetic;
};

Result<MatrixProduct> MatrixProduct::make(const isa::Form& form, Hardware hardware, Path path) {
  const bool product = form.opcode == isa::Opcode::mma || form.opcode == isa::Opcode::wmma_mma;
  if (!product || !isa::find(form))
    return {"unsupported-instruction"_rule,
            isa::spell(form) + " is not a wmma.mma or mma instruction"};
  return MatrixProduct(std::make_shared<const Plan>(form, rule_of(form, hardware), path));
}

void MatrixProduct::run(const MatrixOperands& operands, Scratch& scratch) const {
  alignas(64) std::uint64_t a[most_cells], b[most_cells], c[most_cells], d[most_cells];
  plan_->a.gather(operands.a, a, plan_->kernel);
  plan_->b.gather(operands.b, b, plan_->kernel);
  plan_->c.gather(operands.c, c, plan_->kernel);
  Images images;
  images.a = plan_->exchanged ? b : a;
  images.b = plan_->exchanged ? a : b;
  images.c = c;
  images.d = d;
  images.metadata = operands.metadata;
  images.selector = operands.selector;
  images.scratch = &scratch;
  images.scale_a = operands.scale_a;
  images.scale_b = operands.scale_b;
  images.byte_a = operands.byte_a;
  images.thread_a = operands.thread_a;
  images.byte_b = operands.byte_b;
  images.thread_b = operands.thread_b;
  plan_->arithmetic.run(images);
  plan_->d.scatter(d, operands.d, plan_->kernel);
}

std::uint64_t MatrixProduct::multiply_adds() const { return plan_->arithmetic.multiply_adds(); }
Trust MatrixProduct::trust() const { return plan_->rule.trust; }
std::string_view MatrixProduct::source() const { return plan_->rule.source; }

}  // namespace tartan::TARTAN_ABI::emulator
