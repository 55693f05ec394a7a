// SPDX-License-Identifier: Apache-2.0
// Scales and metadata, which products read in tensor memory.
//
// Scales (PTX ISA 9.0, 9.7.16.10.7): four scales along k are a cell, that of row 32 c + l in lane l
// of the c-th column, and in the same lane of each quarter, which a warp writes for itself.
//
// Metadata of a sparse A (9.7.16.10.8): the words that mma.sp takes, in other lanes.
//
// Each product of a description has columns of its own for each stage of the ring that it reads:
// when a stage is filled again, what has read them is done. A product that is not executed once for
// each stage waits for those before it.
#include <bit>
#include <functional>
#include <optional>

#include "dsl/layout/addressing.h"
#include "dsl/state/scalars.h"
#include "dsl/units/tcgen05/tensor_sums.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

using ir::Value;

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
    const Scalar line =
        first + (lines % 32 == 0 ? lane + 32 * column : minimum(lane + 32 * column, lines - 1));
    const Scalar along = 4 * word;
    return state.f().load(address_of(state, scales, is_a ? line : along, is_a ? along : line), b32);
  }
};

// A word for each lane of a warp, in so many columns.
void store(KernelState& state, const Value& first, int columns,
           const std::function<Value(int column)>& word) {
  ir::FunctionBuilder& f = state.f();
  const Scalar lane = consumer_index(state) / 32 % 4 * 32;
  for (int done = 0; done < columns;) {
    const int count = static_cast<int>(std::bit_floor(static_cast<unsigned>(columns - done)));
    std::vector<Value> operands{f.add(first, state.value(lane * (1 << 16) + done, u32))};
    std::string registers;
    for (int i = 0; i < count; ++i) {
      operands.push_back(word(done + i));
      registers += fmt::format("{}%{}", i ? ", " : "", i + 1);
    }
    (void)f.statement(
        fmt::format("tcgen05.st.sync.aligned.32x32b.x{}.b32 [%0], {{{}}};", count, registers), {},
        operands, false);
    done += count;
  }
}

// New columns, for the stage that is used here or the only ones. What still reads them is waited
// for; when they have been written, the warps meet.
class Columns {
 public:
  Columns(KernelState& state, const TensorSum& sum, int columns)
      : state_(state), of_all_(sum.warpgroup < 0) {
    ir::FunctionBuilder& f = state.f();
    const StageChecks::Callback* const use = state.stages.current();
    constexpr int most_stages = 32;  // bits of StageMeetings::parities
    if (use && !use->fills && use->depth == state.flights.depth() && use->stages <= most_stages)
      stages_ = use->stages, stage_ = use->stage;
    const int all = columns * stages_;
    first_ = column_of(state, allocate_columns(state, all, of_all_), all, of_all_);
    if (!stage_) await_products(state);
    else first_ = f.add(first_, state.value(*stage_ * columns, u32));
    (void)f.statement("tcgen05.fence::after_thread_sync;", {}, {}, false);
  }

  const Value& first() const { return first_; }
  void finish() {
    (void)state_.f().statement("tcgen05.wait::st.sync.aligned;", {}, {}, false);
    if (!stage_ || !state_.tensor_sums.pairs) return meet_warpgroup(state_);
    meet_in_stage(state_, allocate_meetings(state_, stages_, of_all_), stages_, *stage_, of_all_);
  }

 private:
  KernelState& state_;
  bool of_all_;
  int stages_ = 1;
  std::optional<Scalar> stage_;
  Value first_;
};

}  // namespace

TensorScales store_scales(KernelState& state, TensorSum& sum, const Scalar& first_row, int words,
                          const Tensor& a, const Tensor& b) {
  const Words of_a{a, true, first_row, sum.rows, words}, of_b{b, false, 0, sum.columns, words};
  const auto store_all = [&](const Value& first, const Words& of) {
    store(state, first, of.all(),
          [&](int column) { return of.at(state, column / of.columns(), column % of.columns()); });
  };
  Columns columns(state, sum, of_a.all() + of_b.all());
  const Value first = columns.first(),
              behind = state.f().add(first, state.f().constant(u32, of_a.all()));
  store_all(first, of_a);
  store_all(behind, of_b);
  columns.finish();
  return {first, behind, of_a.columns(), of_b.columns()};
}

// Of elements of 8 bits, a row's codes are two words, in the row's lane. Of others, a lane has
// those of two rows eight apart for half of k.
TensorMetadata store_metadata(KernelState& state, TensorSum& sum, const Scalar& first_row,
                              int steps, bool bytes, const Tensor& metadata) {
  const int each = bytes ? 2 : 1, words = bytes ? 32 : 16;
  const Scalar thread = consumer_index(state) % 128, row = first_row / 16 + thread / 16;
  const auto word = [&](int column) {
    const int step = column / each, part = column % each;
    const Scalar own =
        bytes ? thread % 8 * 4 + thread % 16 / 8 + 2 * part : thread % 8 * 2 + thread % 16 / 8;
    const Scalar found =
        state.scalar(state.f().load(address_of(state, metadata, row, own + step * words), u32));
    // Beyond the edge of A, memory reads as zero, which is no legal code.
    return state.value(select(found == 0, std::int64_t{0x44444444}, found), b32);
  };
  Columns columns(state, sum, steps * each);
  store(state, columns.first(), steps * each, word);
  columns.finish();
  return {columns.first(), each};
}

}  // namespace tartan::TARTAN_ABI::detail
