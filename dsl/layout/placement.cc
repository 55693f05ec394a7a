// SPDX-License-Identifier: Apache-2.0
#include "dsl/layout/placement.h"

#include <functional>

#include "dsl/layout/fragments.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

std::string_view word(Lines lines) { return lines == Lines::rows ? "row" : "column"; }

const Scalar& origin(const WarpPlace& place, Lines lines) {
  return lines == Lines::rows ? place.row : place.col;
}

// What a number is in a thread; none: it depends on more than the thread.
std::optional<std::int64_t> in_thread(const KernelState& state, const Scalar& x, int thread) {
  if (is_bad(x) || real(x)) return std::nullopt;
  if (const auto constant = x.constant()) return constant;
  return state.threads.value(HandleParts::value(x).id, addend(x), thread);
}

// The lines of a warp, in the order of its values: `first` of a thread, and the distances from it.
struct Numbered {
  std::function<std::optional<std::int64_t>(int thread)> first;
  std::vector<std::int64_t> apart;  // of as many lanes for each value
};

// Of `lanes` lanes: all have the same distances from lane 0 in fragments of one kind.
std::vector<std::int64_t> distances(const LineSource& of, int lanes) {
  const std::vector<int> elements = lane_lines(of.kind, of.lines).first;
  const isa::Fragment shape = of.kind.fragment();
  std::vector<std::int64_t> out;
  for (int i = 0; i < of.fragments; ++i)
    for (const int e : elements)
      for (int lane = 0; lane < lanes; ++lane) {
        const isa::Coord at = of.kind.coord(lane, e);
        out.push_back(of.lines == Lines::rows ? of.place.down(i, shape.rows) + at.row
                                              : i * shape.cols + at.col);
      }
  return out;
}

// A warp that has a line of one and another line of the other in its place.
struct Difference {
  int warp;
  std::int64_t x, y;
};

std::optional<Difference> difference(const KernelState& state, const Numbered& x,
                                     const Numbered& y) {
  if (x.apart.size() != y.apart.size()) return std::nullopt;
  const int first = first_thread(state), count = thread_count(state);
  for (int thread = first; thread < first + count; thread += 32) {
    const auto from_x = x.first(thread), from_y = y.first(thread);
    if (!from_x || !from_y) return std::nullopt;
    for (std::size_t i = 0; i < x.apart.size(); ++i)
      if (*from_x + x.apart[i] != *from_y + y.apart[i])
        return Difference{thread / 32, *from_x + x.apart[i], *from_y + y.apart[i]};
  }
  return std::nullopt;
}

// Whether these are lines of one tile, or of its copies: the usual case, found at once.
bool is_same(const LineSource& x, const LineSource& y) {
  const auto same = [](const Scalar& a, const Scalar& b) {
    return HandleParts::value(a).id == HandleParts::value(b).id && a.type() == b.type() &&
           addend(a) == addend(b);
  };
  return x.kind.shape == y.kind.shape && x.kind.operand == y.kind.operand &&
         x.fragments == y.fragments && x.place.row_step == y.place.row_step &&
         same(origin(x.place, x.lines), origin(y.place, y.lines));
}

std::string text(const WarpPlace& place) {
  if (place.product) return *place.product;
  return fmt::format("a tile of {} x {}", place.rows, place.cols);
}

bool report(KernelState& state, std::string_view what, Lines lines, const WarpPlace& x,
            const WarpPlace& y, const Difference& at) {
  state.log.report(
      "layout-mismatch"_rule,
      fmt::format("{}: warp {} has {} {} of {} where it has {} {} of {}; take both from one tiled "
                  "MMA, or store one to shared memory and read it at its place",
                  what, at.warp, word(lines), at.x, text(x), word(lines), at.y, text(y)));
  return false;
}

// Whether values, or tiles, have the same lines; reports if not.
bool agree(KernelState& state, std::string_view what, const LineSource& x, const LineSource& y) {
  if (is_same(x, y)) return true;
  if (x.place.rows == 0 || y.place.rows == 0) return true;  // part of no tile
  const int lanes = x.kind.shape == y.kind.shape && x.kind.operand == y.kind.operand ? 1 : 32;
  const auto numbered = [&](const LineSource& of) {
    return Numbered{
        [&](int thread) { return in_thread(state, origin(of.place, of.lines), thread); },
        distances(of, lanes)};
  };
  const auto at = difference(state, numbered(x), numbered(y));
  return !at || report(state, what, x.lines, x.place, y.place, *at);
}

}  // namespace

LineSource source_of(const WarpTile& tile, Lines lines) {
  return {lines, tile.fragment(0, 0).kind(), lines == Lines::rows ? tile.down() : tile.across(),
          tile.place()};
}

std::shared_ptr<const LineSource> shared_source_of(const WarpTile& tile, Lines lines) {
  return std::make_shared<const LineSource>(source_of(tile, lines));
}

std::size_t LineSource::count() const {
  return lane_lines(kind, lines).first.size() * static_cast<std::size_t>(fragments);
}

bool in_blocks(const TiledParts& mma) { return mma.warpgroup && mma.fragments_m() > 1; }

namespace {

WarpPlace place_of(const TiledParts& mma, const Scalar& col, int cols) {
  const int own = mma.fragments_m() * mma.kind.shape.shape.m;
  WarpPlace out{mma.warp_m * own, col, mma.tile.m, cols, mma.tile.warps_k};
  out.by_warpgroup = mma.warpgroup || (mma.tensor && own == 16), out.product = mma.text;
  if (in_blocks(mma)) out.row = mma.warp_m / 4 * (4 * own) + mma.warp_m % 4 * 16, out.row_step = 64;
  return out;
}

}  // namespace

WarpPlace place_of_c(const TiledParts& mma) {
  return place_of(mma, mma.warp_n * (mma.fragments_n() * mma.kind.shape.shape.n), mma.tile.n);
}

WarpPlace place_of_a(const TiledParts& mma) {
  WarpPlace out = place_of(mma, mma.warp_k * (mma.steps() * mma.kind.shape.shape.k), mma.tile.k);
  return out.partial = 1, out;
}

std::shared_ptr<const LineSource> source_of_c(const TiledParts& mma, Lines lines) {
  return std::make_shared<const LineSource>(
      LineSource{lines, operand_c(mma.kind.shape, mma.kind.c),
                 lines == Lines::rows ? mma.fragments_m() : mma.fragments_n(), place_of_c(mma)});
}

bool same_lines(KernelState& state, const LineSource* x, const LineSource* y) {
  if (!x || !y || x->lines != y->lines) return true;
  return agree(state, fmt::format("{} values of another placement", word(x->lines)), *x, *y);
}

bool same_places(KernelState& state, const FragmentKind& kind, const WarpPlace& place,
                 const WarpTile& y) {
  for (const Lines lines : {Lines::rows, Lines::cols}) {
    const LineSource of_y = source_of(y, lines);
    if (!agree(state, "tiles of different placement", {lines, kind, of_y.fragments, place}, of_y))
      return false;
  }
  return true;
}

bool at_place(const TiledParts& mma, Operand operand, const WarpTile& given) {
  KernelState& state = *mma.state;
  if (given.fragments().empty() || given.place().rows == 0 || is_bad(given.fragments().front()))
    return true;
  const std::string what = operand == Operand::c
                               ? "accumulators of another placement"
                               : fmt::format("operand {} in registers of another placement",
                                             operand == Operand::a ? "A" : "B");
  WarpPlace own{.rows = mma.tile.m, .cols = mma.tile.n, .product = mma.text};
  const bool by_blocks = operand != Operand::b && in_blocks(mma);
  if (by_blocks) own.row_step = 64;
  for (const Lines lines : {Lines::rows, Lines::cols}) {
    const LineSource theirs = source_of(given, lines);
    LineSource wanted = theirs;
    wanted.place = own;
    // As place_of() computes it, without code for it.
    const auto first = [&](int thread) -> std::optional<std::int64_t> {
      const isa::Fragment shape = theirs.kind.fragment();
      const bool along_k = operand == Operand::a ? lines == Lines::cols
                                                 : operand == Operand::b && lines == Lines::rows;
      const auto of = [&](const Scalar& x) { return in_thread(state, x, thread); };
      if (along_k) {
        const auto k = of(mma.warp_k);
        return k ? std::optional(*k * mma.steps() * mma.kind.shape.shape.k) : std::nullopt;
      }
      const auto warp = of(lines == Lines::rows ? mma.warp_m : mma.warp_n);
      if (!warp) return std::nullopt;
      const std::int64_t each =
          lines == Lines::rows ? given.down() * shape.rows : given.across() * shape.cols;
      if (lines == Lines::rows && by_blocks) return *warp / 4 * (4 * each) + *warp % 4 * 16;
      return *warp * each;
    };
    const auto at = difference(
        state, {first, distances(wanted, 1)},
        {[&](int thread) { return in_thread(state, origin(given.place(), lines), thread); },
         distances(theirs, 1)});
    if (at) return report(state, what, lines, own, given.place(), *at);
  }
  return true;
}

}  // namespace tartan::TARTAN_ABI::detail

namespace tartan::TARTAN_ABI {
namespace {

std::vector<ScalarVariable> variables_of(detail::KernelState& state, std::size_t count,
                                         const Scalar& initial, Here at) {
  Builder k(state.shared_from_this());
  std::vector<ScalarVariable> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(k.variable(initial, at));
  return out;
}

}  // namespace

RowVariable TiledMma::row_variable(const Scalar& initial, Here at) const {
  if (!detail::KernelState::begins(parts_.state, at)) return RowVariable({});
  const auto source = detail::source_of_c(parts_, detail::Lines::rows);
  return RowVariable(variables_of(*parts_.state, source->count(), initial, at), source);
}

ColumnVariable TiledMma::col_variable(const Scalar& initial, Here at) const {
  if (!detail::KernelState::begins(parts_.state, at)) return ColumnVariable({});
  const auto source = detail::source_of_c(parts_, detail::Lines::cols);
  return ColumnVariable(variables_of(*parts_.state, source->count(), initial, at), source);
}

}  // namespace tartan::TARTAN_ABI
