// SPDX-License-Identifier: Apache-2.0
// Stores a warp's part of a tile: through shared memory, or fragment by fragment.
#include <algorithm>

#include "dsl/layout/addressing.h"
#include "dsl/layout/fragments.h"
#include "dsl/layout/tiles.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/units/tma/box_stores.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

// Row by row of fragments; column by column if a Finish reads, so that it reads the scales and bias
// of a column once.
StoredFragments::Order plain_order(const WarpTile& tile, bool column_by_column) {
  StoredFragments::Order out;
  if (column_by_column) {
    for (int j = 0; j < tile.across(); ++j)
      for (int i = 0; i < tile.down(); ++i) out.emplace_back(i, j);
    return out;
  }
  for (int i = 0; i < tile.down(); ++i)
    for (int j = 0; j < tile.across(); ++j) out.emplace_back(i, j);
  return out;
}

bool has_room(KernelState& state, const Tensor& to, const WarpPlace& place) {
  std::int64_t rows = 0, cols = 0;
  if (!constant_shape(to, rows, cols)) return true;
  // A part of a matrix is as large as what is stored there; a whole matrix may be larger.
  const bool in_global = !state.memories.of(to).in_shared;
  if (in_global ? place.rows == 0 || (rows == place.rows && cols == place.cols)
                : rows >= place.rows && cols >= place.cols)
    return true;
  state.log.report("layout-mismatch"_rule,
                   fmt::format("wrong tile shape: the warps' tile has {}x{} elements, {} is {}",
                               place.rows, place.cols, to.name, to.layout.text()));
  return false;
}

// Whether there is something to store; reports what cannot be.
bool is_storable(KernelState& state, const Tensor& to, const WarpTile& tile) {
  if (tile.fragments().empty()) return state.log.note_empty("the tile"), false;
  for (const Fragment& each : tile.fragments())
    if (is_bad(each)) return false;
  if (to.memory < 0 || !state.owns(to, to.name) || !is_whole(tile)) return false;
  return !(state.memories.of(to).in_shared || to.divided) || has_room(state, to, tile.place());
}

void store_tile(KernelState& state, const Tensor& to, const WarpTile& tile,
                const Finish* finish = nullptr) {
  if (!is_storable(state, to, tile)) return;
  const bool in_shared = state.memories.of(to).in_shared;
  std::vector<std::string> refused;
  StoredFragments fragments(state, tile, finish);
  if (!in_shared && store_boxes(state, to, tile, fragments, refused)) return;
  if (!refused.empty())
    state.log.choose(fmt::format("store to {}", to.name), "fragment by fragment",
                     "each lane stores its own elements", std::move(refused));
  const isa::Fragment shape = tile.fragment(0, 0).kind().fragment();
  const StoredFragments::Order order = plain_order(tile, finish && finish->registers);
  fragments.store_by(order);
  for (const auto& [i, j] : order) {
    const Tensor part = to.tile(shape.rows, shape.cols,
                                (tile.place().row + tile.place().down(i, shape.rows)) / shape.rows,
                                tile.place().col / shape.cols + j, state.log.location());
    if (part.memory >= 0) store_fragment(state, part, fragments.next());
  }
}

// By TMA; if not, gives the reason.
bool add_boxes(KernelState& state, const Tensor& to, const WarpTile& tile,
               std::vector<std::string>& refused) {
  StoredFragments fragments(state, tile, nullptr);
  return store_boxes(state, to, tile, fragments, refused, true);
}

}  // namespace

}  // namespace detail

void Builder::store(const Global& to, const WarpTile& tile, Here at) {
  state_->at(at), detail::store_tile(*state_, detail::tensor_of(to), tile);
}
void Builder::store(const Global& to, const WarpTile& tile, const Finish& finish, Here at) {
  state_->at(at);
  if (tile.fragments().empty() || !state_->has_body(finish.finished != nullptr, "store")) return;
  const FragmentKind& from = tile.fragment(0, 0).kind();
  if (finish.kind.exists() && finish.kind.shape == from.shape &&
      finish.kind.operand == from.operand)
    return detail::store_tile(*state_, detail::tensor_of(to), tile, &finish);
  state_->log.report(
      "fragment-mismatch"_rule,
      fmt::format("store: a tile of {} cannot be finished as {}; expected {}, with the type of the "
                  "matrix",
                  from.text(), finish.kind.text(),
                  FragmentKind{from.shape, from.operand, finish.kind.type}.text()));
}
void Builder::store(const Shared& to, const WarpTile& tile, Here at) {
  state_->at(at), detail::store_tile(*state_, detail::tensor_of(to), tile);
}

void Builder::add(const Global& to, const WarpTile& tile, Here at) {
  state_->at(at);
  const detail::Tensor& matrix = detail::tensor_of(to);
  if (!detail::is_storable(*state_, matrix, tile)) return;
  const FragmentKind& kind = tile.fragment(0, 0).kind();
  if (kind.type != matrix.type)
    return state_->log.report(
        "layout-mismatch"_rule,
        fmt::format("element type mismatch: {} has elements of {}, the tile is {}; convert() it",
                    matrix.name, name(matrix.type), kind.text()));
  std::vector<std::string> refused;
  if (detail::add_boxes(*state_, matrix, tile, refused)) return;
  state_->log.choose(fmt::format("add to {}", matrix.name), "element by element",
                     "each lane adds its own elements atomically", std::move(refused));
  const auto below = [&](const std::optional<Edge>& edge, const Scalar& i) {
    return convert(i, s32, at) < convert(edge->limit - edge->origin, s32, at);
  };
  for_each(
      tile,
      [&](const Scalar& x, const ElementPlace& in) {
        const auto adds = [&] { atomic(AtomicOp::add, to, in.row, in.col, x, {}, at); };
        std::optional<Scalar> inside;
        if (to.row_edge()) inside = below(to.row_edge(), in.row);
        if (to.col_edge()) {
          const Scalar here = below(to.col_edge(), in.col);
          inside = inside ? *inside & here : here;
        }
        if (inside) when(*inside, adds, at);
        else adds();
      },
      at);
}

}  // namespace tartan::TARTAN_ABI
