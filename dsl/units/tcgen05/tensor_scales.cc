// SPDX-License-Identifier: Apache-2.0
// Scales of block-scaled products in tensor memory (PTX ISA 9.0, 9.7.16.10.7): four scales along k
// are a cell, that of row 32 c + l in lane l of the c-th column, and in the same lane of each
// quarter, which a warp writes for itself.
//
// Each stage of a ring has columns of its own: when it is filled again, the products that read them
// are done.
#include <bit>

#include "dsl/layout/addressing.h"
#include "dsl/state/scalars.h"
#include "dsl/units/tcgen05/tensor_sums.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

using codegen::Value;

// The words of an operand: of so many columns for each four scales along k.
struct Words {
  const Tensor& scales;
  bool is_a;
  Scalar first;  // row of A, or column of B
  int lines, words;
  int columns() const { return (lines + 31) / 32; }
  int all() const { return columns() * words; }

  Value at(KernelState& state, int word, int column) const {
    const Scalar lane = consumer_index(state) % 32;
    const Scalar line = first + (lines % 32 == 0 ? lane + 32 * column
                                                 : minimum(lane + 32 * column, lines - 1));
    const Scalar along = 4 * word;
    return state.f().load(
        address_of(state, scales, is_a ? line : along, is_a ? along : line), b32);
  }
};

void store(KernelState& state, const Value& first, const Words& of) {
  codegen::FunctionBuilder& f = state.f();
  const Scalar lane = consumer_index(state) / 32 % 4 * 32;
  for (int done = 0; done < of.all();) {
    const int count = static_cast<int>(std::bit_floor(static_cast<unsigned>(of.all() - done)));
    std::vector<Value> operands{f.add(first, state.value(lane * (1 << 16) + done, u32))};
    std::string registers;
    for (int i = 0; i < count; ++i) {
      operands.push_back(of.at(state, (done + i) / of.columns(), (done + i) % of.columns()));
      registers += fmt::format("{}%{}", i ? ", " : "", i + 1);
    }
    (void)f.statement(
        fmt::format("tcgen05.st.sync.aligned.32x32b.x{}.b32 [%0], {{{}}};", count, registers), {},
        operands, false);
    done += count;
  }
}

}  // namespace

TensorScales store_scales(KernelState& state, TensorSum& sum, const Scalar& first_row, int words,
                          const Tensor& a, const Tensor& b) {
  codegen::FunctionBuilder& f = state.f();
  const bool of_all = sum.warpgroup < 0;
  const Words of_a{a, true, first_row, sum.rows, words}, of_b{b, false, 0, sum.columns, words};
  const StageChecks::Callback* const use = state.stages.current();
  const bool in_ring = use && !use->fills;
  const int each = of_a.all() + of_b.all(), sets = in_ring ? use->stages : 1;
  if (!sum.scales) sum.scales = allocate_columns(state, sets * each, of_all);
  Value first = column_of(state, *sum.scales, sets * each, of_all);
  if (in_ring) first = f.add(first, state.value(use->stage * each, u32));
  else await_products(state);
  (void)f.statement("tcgen05.fence::after_thread_sync;", {}, {}, false);
  const Value behind = f.add(first, f.constant(u32, of_a.all()));
  store(state, first, of_a);
  store(state, behind, of_b);
  (void)f.statement("tcgen05.wait::st.sync.aligned;", {}, {}, false);
  meet_warpgroup(state);
  return {first, behind, of_a.columns(), of_b.columns()};
}

}  // namespace tartan::TARTAN_ABI::detail
