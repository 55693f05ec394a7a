// SPDX-License-Identifier: Apache-2.0
// Scatters the rows of a block's tile by index: each lane stores the elements that it holds.
#include "dsl/layout/addressing.h"
#include "dsl/layout/fragments.h"
#include "dsl/layout/tiles.h"
#include "dsl/state/handles.h"
#include "dsl/state/scalars.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

using ir::Value;

class RowStorer {
 public:
  RowStorer(Builder& k, KernelState& state, const Tensor& to, const WarpTile& tile,
            const std::function<Scalar(Scalar)>& row_of, Here at)
      : k_(k),
        state_(state),
        to_(to),
        tile_(tile),
        kind_(tile.fragment(0, 0).kind()),
        row_of_(row_of),
        at_(at) {}

  bool is_possible() const {
    const auto refused = [&](const Rule& rule, std::string message) {
      state_.log.report(rule, std::move(message));
      return false;
    };
    const int width = bits(kind_.type);
    if (kind_.operand != Operand::c || kind_.shape.wmma ||
        (width != 16 && width != 32 && width != 64))
      return refused("wrong-role"_rule,
                     fmt::format("store_rows: expected accumulators of mma.sync or wgmma of 16 to "
                                 "64 bits, found {}",
                                 kind_.text()));
    if (to_.type != kind_.type)
      return refused("layout-mismatch"_rule,
                     fmt::format("element type mismatch: {} has elements of {}, the fragment is "
                                 "{}; convert() it to {}",
                                 to_.name, name(to_.type), kind_.text(), name(to_.type)));
    const auto cols = to_.layout.cols.constant();
    if (!to_.layout.is_nested() && cols && *cols == tile_.place().cols) return true;
    return refused("layout-mismatch"_rule,
                   fmt::format("store_rows: expected a matrix of {0} columns that are not nested, "
                               "{1} is {2}; take {1}.window({{0, col}}, {{rows, {0}}})",
                               tile_.place().cols, to_.name, to_.layout.text()));
  }

  void store() {
    const LaneLines lanes = lane_lines(kind_, Lines::rows);
    for (int y = 0; y < tile_.down(); ++y) {
      // Outside of the condition: all lanes wait for a product that is in flight.
      std::vector<std::vector<Scalar>> elements;
      for (int x = 0; x < tile_.across(); ++x)
        elements.push_back(k_.elements(tile_.fragment(y, x), at_));
      for (std::size_t line = 0; line < lanes.first.size(); ++line) {
        const Scalar row = element_place(k_, tile_, y, 0, lanes.first[line], at_).row;
        const Scalar index = row_of_(row);
        state_.at(at_);
        if (is_bad(index) || !state_.is_index(index, "the row of a store")) return;
        const Tensor moved = from_row(state_, to_, index);
        state_.f().if_then(has_row(state_, to_, index), [&] {
          for (int x = 0; x < tile_.across(); ++x)
            store(moved, lanes, static_cast<int>(line), y, x,
                  elements[static_cast<std::size_t>(x)]);
        });
      }
    }
    state_.log.choose(fmt::format("store rows to {}", to_.name),
                      fmt::format("st.global of {} bits", bits(kind_.type) * (pairs() ? 2 : 1)),
                      pairs() ? "each lane holds pairs that are contiguous in memory"
                              : "each lane stores its own elements");
  }

 private:
  // The elements of a fragment that are in one row of the tile.
  void store(const Tensor& to, const LaneLines& lanes, int line, int y, int x,
             const std::vector<Scalar>& all) {
    std::vector<Value> values;
    std::vector<Scalar> cols;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (lanes.index[i] != line) continue;
      values.push_back(state_.value(all[i]));
      cols.push_back(element_place(k_, tile_, y, x, static_cast<int>(i), at_).col);
    }
    const std::size_t step = pairs() ? 2 : 1;
    for (std::size_t i = 0; i < values.size(); i += step) {
      const auto put = [&] {
        const ir::Pointer at = written_address_of(state_, to, 0, cols[i]);
        if (step == 1) state_.f().store(at, values[i]);
        else if (bits(kind_.type) == 16)
          state_.f().store(at, state_.f().pack(values[i], values[i + 1], b32));
        else state_.f().store_vector(at, std::span(values).subspan(i, 2));
      };
      if (const auto inside = is_inside(state_, to, 0, cols[i])) state_.f().if_then(*inside, put);
      else put();
    }
  }

  // Whether elements 2i and 2i + 1 are neighbours in memory, aligned, and inside together.
  bool pairs() const {
    const isa::Coord first = kind_.coord(0, 0), second = kind_.coord(0, 1);
    return second.row == first.row && second.col == first.col + 1 &&
           to_.layout.major() == Major::row &&
           aligned_bytes(state_, to_, 1, 2) >= 2 * bits(kind_.type) / 8 &&
           (!to_.col_edge || to_.col_edge->multiple() % 2 == 0);
  }

  Builder& k_;
  KernelState& state_;
  const Tensor& to_;
  const WarpTile& tile_;
  FragmentKind kind_;
  const std::function<Scalar(Scalar)>& row_of_;
  Here at_;
};

}  // namespace
}  // namespace detail

void Builder::store_rows(const Global& to, const WarpTile& tile,
                         const std::function<Scalar(Scalar)>& row_of, Here at) {
  state_->at(at);
  const detail::Tensor& matrix = detail::tensor_of(to);
  if (!state_->has_body(row_of != nullptr, "store_rows") || !state_->owns(matrix, matrix.name) ||
      matrix.memory < 0)
    return;
  auto k = detail::builder_of(tile, at);
  if (!k) return;
  detail::RowStorer storer(*k, *state_, matrix, tile, row_of, at);
  if (storer.is_possible()) storer.store();
}

}  // namespace tartan::TARTAN_ABI
