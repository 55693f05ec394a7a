// SPDX-License-Identifier: Apache-2.0
// Sums and maxima along the rows and columns of a tile: in a lane, across the lanes of a warp, and
// across warps through shared memory.
#include <algorithm>

#include "dsl/layout/addressing.h"
#include "dsl/layout/fragments.h"
#include "dsl/layout/placement.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/layout/tiles.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/tile_arithmetic.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

// What a reduction makes of two values.
using Combine = Scalar (*)(const ScalarOperand&, const ScalarOperand&);

class Reduction {
 public:
  Reduction(Builder& k, KernelState& state, const WarpTile& tile, Lines lines, Combine combine,
            Here at)
      : k_(k),
        state_(state),
        tile_(tile),
        kind_(tile.fragment(0, 0).kind()),
        lines_(lines),
        combine_(combine),
        at_(at) {}

  std::vector<Scalar> run() {
    std::vector<Scalar> out = within_lane();
    for (Scalar& each : out)
      for (const int mask : masks_along(kind_, lines_))
        each = combine_(each, shuffle_xor(each, mask, at_));
    return parts() > 1 ? across_warps(out) : out;
  }

 private:
  std::vector<Scalar> within_lane() const {
    const LaneLines lanes = lane_lines(kind_, lines_);
    std::vector<std::optional<Scalar>> sums(line_count(tile_, lines_));
    for (int y = 0; y < tile_.down(); ++y)
      for (int x = 0; x < tile_.across(); ++x) {
        const std::vector<Scalar> elements = k_.elements(tile_.fragment(y, x), at_);
        for (std::size_t i = 0; i < elements.size(); ++i) {
          auto& sum = sums[line_of(lanes, lines_, y, x, i)];
          sum = sum ? combine_(*sum, elements[i]) : elements[i];
        }
      }
    std::vector<Scalar> out;
    for (const auto& each : sums) out.push_back(*each);
    return out;
  }

  // Of a line: elements in this warp, and the number of warps that divide it.
  int length() const {
    const isa::Fragment shape = kind_.fragment();
    return lines_ == Lines::rows ? tile_.across() * shape.cols : tile_.down() * shape.rows;
  }
  int parts() const {
    const int whole = lines_ == Lines::rows ? tile_.place().cols : tile_.place().rows;
    return whole / std::max(length(), 1);
  }
  // Which of them this warp has.
  Scalar part() const {
    if (lines_ == Lines::rows) return tile_.place().col / length();
    const int step = tile_.place().row_step, height = kind_.fragment().rows;
    if (step == 0) return tile_.place().row / length();
    const int whole = step * tile_.down(), each = step / height;  // a warpgroup's rows and warps
    return tile_.place().row / whole * each + tile_.place().row % whole / height;
  }
  int count() const { return lines_ == Lines::rows ? tile_.place().rows : tile_.place().cols; }

  std::vector<Scalar> across_warps(const std::vector<Scalar>& values) {
    ir::FunctionBuilder& f = state_.f();
    const std::vector<Scalar> places = line_places(k_, tile_, lines_, at_);
    const Scalar part = this->part();
    const Tensor exchange = exchange_memory(values[0].type());
    block_barrier(state_);  // what was exchanged before has been read
    f.if_then(state_.value(is_first_of_line()), [&] {
      for (std::size_t j = 0; j < values.size(); ++j)
        f.store(address_of(state_, exchange, part, places[j]), state_.value(values[j]));
    });
    block_barrier(state_);
    std::vector<Scalar> out;
    for (const Scalar& place : places) {
      const auto of_warp = [&](int i) {
        return state_.scalar(f.load(address_of(state_, exchange, i, place), exchange.type));
      };
      Scalar all = of_warp(0);
      for (int i = 1; i < parts(); ++i) all = combine_(all, of_warp(i));
      out.push_back(all);
    }
    explain();
    return out;
  }

  // Whether this lane is the first of those that share its lines.
  Scalar is_first_of_line() {
    int shared = 0;
    for (const int mask : masks_along(kind_, lines_)) shared |= mask;
    return (state_.scalar(lane_index(state_), 1, 31) & shared) == 0;
  }

  // Parts x lines, in memory that all reductions of the kernel share.
  Tensor exchange_memory(Type type) {
    const std::int64_t bytes = std::int64_t{parts()} * count() * bits(type) / 8;
    int& memory = state_.exchange.try_emplace(state_.roles.warpgroup, -1).first->second;
    if (memory < 0 || state_.memories.all()[static_cast<std::size_t>(memory)].bytes < bytes) {
      const ir::Pointer base =
          state_.memories.share(state_.f(), state_.names.unused("exchange"), bytes);
      memory = state_.memories.add({base, true, bytes});
    }
    Tensor out{state_.shared_from_this(),
               "the exchanged parts",
               type,
               row_major(parts(), count()),
               0,
               memory,
               state_.log.place()};
    return out;
  }

  void explain() {
    const std::string_view what = lines_ == Lines::rows ? "rows" : "columns";
    state_.log.choose(fmt::format("reduce {} of {}", what, kind_.text()),
                      fmt::format("shuffles, then {} parts through shared memory", parts()),
                      fmt::format("{} warps divide the {}; two barriers", parts(), what));
  }

  Builder& k_;
  KernelState& state_;
  const WarpTile& tile_;
  FragmentKind kind_;
  Lines lines_;
  Combine combine_;
  Here at_;
};

template <typename Values>
Values reduced(const WarpTile& tile, Lines lines, Combine combine, Here at) {
  auto k = builder_of(tile, at);
  if (!k) return Values(2, bad_scalar());
  KernelState& state = *state_of(tile.fragment(0, 0));
  const FragmentKind& kind = tile.fragment(0, 0).kind();
  const TypeSet types{f16, bf16, f32, f64, s32};
  if (kind.operand != Operand::c || !types.has(kind.type)) {
    state.log.report("wrong-role"_rule,
                     fmt::format("a reduction takes accumulators of f16, bf16, f32, f64 or s32, "
                                 "found {}",
                                 kind.text()));
    return Values(2, bad_scalar());
  }
  const std::vector<Scalar> values = Reduction(*k, state, tile, lines, combine, at).run();
  Values out(values.begin(), values.end());
  LineParts::source(out) = shared_source_of(tile, lines);
  return out;
}

}  // namespace
}  // namespace detail

using detail::Lines;

RowValues row_maximum(const WarpTile& tile, Here at) {
  return detail::reduced<RowValues>(tile, Lines::rows, maximum, at);
}
RowValues row_sum(const WarpTile& tile, Here at) {
  return detail::reduced<RowValues>(tile, Lines::rows, plus, at);
}
ColumnValues col_maximum(const WarpTile& tile, Here at) {
  return detail::reduced<ColumnValues>(tile, Lines::cols, maximum, at);
}
ColumnValues col_sum(const WarpTile& tile, Here at) {
  return detail::reduced<ColumnValues>(tile, Lines::cols, plus, at);
}

}  // namespace tartan::TARTAN_ABI
