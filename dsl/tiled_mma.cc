// SPDX-License-Identifier: Apache-2.0
#include "dsl/tiled_mma.h"

#include <bit>

#include "compiler/isa/instruction.h"
#include "dsl/state.h"

namespace tartan {
namespace {

using detail::KernelState;

// Lines of `bytes` bytes, 16-byte chunks of them XORed with the line's number: eight neighbouring
// lines then have any chunk in eight different groups of banks. Lines of 32 and 64 bytes share a
// span of 128 with their neighbours, so that only every fourth or second line counts.
Swizzle conflict_free(std::int64_t bytes, Type type) {
  const int chunks = std::countr_zero(static_cast<std::uint64_t>(bytes / 16));  // a line's, as 2^
  return {std::min(chunks, 3), std::countr_zero(static_cast<unsigned>(128 / bits(type))),
          std::max(chunks, 3)};
}

// An instruction as wide as the table has: fewest instructions for the same work.
std::int64_t work(const Shape& shape) {
  return static_cast<std::int64_t>(shape.m) * shape.n * shape.k;
}

}  // namespace

RingLayout TiledMma::shared(Operand operand, int stages, Major major) const {
  const bool is_a = operand == Operand::a;
  const Type type = is_a ? kind_.a : kind_.b;
  const int rows = is_a ? tile_.m : tile_.k, cols = is_a ? tile_.k : tile_.n;
  const bool by_rows = major == Major::none ? is_a : major == Major::row;
  Layout layout = by_rows ? row_major(rows, cols) : col_major(rows, cols);
  const std::int64_t line = std::int64_t{by_rows ? cols : rows} * bits(type) / 8;
  const std::string what = fmt::format("shared {}", is_a ? "A" : "B");
  if (line >= 32 && std::has_single_bit(static_cast<std::uint64_t>(line))) {
    layout = layout.swizzled(conflict_free(line, type));
    if (state_)
      state_->choose(what, layout.text(),
                     fmt::format("lines of {} bytes: any eight of them have the same 16 bytes in "
                                 "eight groups of banks, and so has a copy's 128 bytes",
                                 line),
                     {"padding: it takes more memory and breaks the 16-byte chunks' alignment with "
                      "some sizes"});
  } else if (line % 16 == 0 && line / 16 % 2 == 0) {
    const std::int64_t padded = (line + 16) * 8 / bits(type);
    layout = by_rows ? row_major(rows, cols, padded) : col_major(rows, cols, padded);
    if (state_)
      state_->choose(what, layout.text(),
                     "an odd number of 16-byte chunks in a line puts eight neighbouring lines into "
                     "eight groups of banks",
                     {fmt::format("a swizzle: lines of {} bytes are no power of two", line)});
  }
  return {layout, stages};
}

RingLayout TiledMma::shared_a(int stages, Major major) const {
  return shared(Operand::a, stages, major);
}
RingLayout TiledMma::shared_b(int stages, Major major) const {
  return shared(Operand::b, stages, major);
}

Accumulator TiledMma::accumulator(Here at) const {
  std::vector<FragmentVariable> out;
  const Shape& shape = kind_.shape.shape;
  if (!state_ || !state_->function) return Accumulator({}, 1, 0, 0);
  Builder k(state_);
  for (int i = 0; i < fragments_m() * fragments_n(); ++i)
    out.push_back(k.variable(operand_c(kind_.shape, kind_.c), at));
  return Accumulator(std::move(out), fragments_n(), warp_m_ * (fragments_m() * shape.m),
                     warp_n_ * (fragments_n() * shape.n));
}

WarpTile TiledMma::multiply(const WarpTile& c, const std::function<std::vector<Fragment>(int)>& a,
                            const Shared& b) const {
  const int m = fragments_m(), n = fragments_n();
  const Shape& shape = kind_.shape.shape;
  std::vector<Fragment> sums = c.fragments();
  if (sums.size() != static_cast<std::size_t>(m * n)) {
    state_->report("fragment-mismatch"_rule,
                   fmt::format("the tiled product takes {} accumulators in each warp, found {}",
                               m * n, sums.size()));
    return {};
  }
  const FragmentKind kind_b = operand_b(kind_.shape, kind_.b);
  for (int step = 0; step < steps(); ++step) {
    const std::vector<Fragment> left = a(step);
    const std::vector<Fragment> right = state_->load_side(
        kind_b, b.tile(shape.k, shape.n * n, step, warp_n_, state_->location), n);
    if (left.size() != static_cast<std::size_t>(m) || right.size() != static_cast<std::size_t>(n))
      return {};
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        // There and back again: neighbours share a fragment.
        const int x = i % 2 ? n - 1 - j : j;
        Fragment& sum = sums[static_cast<std::size_t>(i * n + x)];
        sum = state_->mma(left[static_cast<std::size_t>(i)], right[static_cast<std::size_t>(x)],
                          &sum, Type::none, {});
      }
  }
  return WarpTile(std::move(sums), n, c.row(), c.col());
}

WarpTile TiledMma::operator()(const WarpTile& c, const Shared& a, const Shared& b, Here at) const {
  if (!state_ || !state_->function) return {};
  state_->at(at);
  const bool shapes = state_->require_shape(a, tile_.m, tile_.k, "the tiled product's A") &
                      state_->require_shape(b, tile_.k, tile_.n, "the tiled product's B");
  if (!shapes) return {};
  const FragmentKind kind_a = operand_a(kind_.shape, kind_.a);
  const isa::Fragment fragment = kind_a.fragment();
  return multiply(
      c,
      [&](int step) {
        return state_->load_side(
            kind_a, a.tile(fragment.rows * fragments_m(), fragment.cols, warp_m_, step, at),
            fragments_m());
      },
      b);
}

WarpTile TiledMma::operator()(const WarpTile& c, const WarpTile& a, const Shared& b,
                              Here at) const {
  if (!state_ || !state_->function) return {};
  state_->at(at);
  if (!state_->require_shape(b, tile_.k, tile_.n, "the tiled product's B")) return {};
  if (a.down() != fragments_m() || a.across() != steps()) {
    state_->report("fragment-mismatch"_rule,
                   fmt::format("the tiled product's A has {} x {} fragments in each warp, found {} x {}",
                               fragments_m(), steps(), a.down(), a.across()));
    return {};
  }
  return multiply(
      c,
      [&](int step) {
        std::vector<Fragment> out;
        for (int i = 0; i < fragments_m(); ++i) out.push_back(a.fragment(i, step));
        return out;
      },
      b);
}

WarpTile TiledMma::load_a(const Shared& a, Here at) const {
  if (!state_ || !state_->function) return {};
  state_->at(at);
  if (!state_->require_shape(a, tile_.m, tile_.k, "the tiled product's A")) return {};
  const FragmentKind kind = operand_a(kind_.shape, kind_.a);
  const isa::Fragment fragment = kind.fragment();
  std::vector<Fragment> out;
  for (int i = 0; i < fragments_m(); ++i)
    for (int step = 0; step < steps(); ++step)
      out.push_back(state_->load(kind, a.tile(fragment.rows, fragment.cols,
                                              warp_m_ * fragments_m() + i, step, at)));
  return WarpTile(std::move(out), steps(), warp_m_ * (fragments_m() * fragment.rows), 0);
}

MmaKind Builder::best_mma(Type a, Type b, Type c, Here at) {
  state_->at(at);
  std::optional<isa::Form> best;
  for (const isa::Form& form : isa::forms()) {
    isa::Form wanted{.opcode = isa::Opcode::mma, .shape = form.shape};
    wanted.a_major = Major::row, wanted.b_major = Major::col;
    wanted.a = a, wanted.b = b, wanted.c = wanted.d = c;
    if (!(form == wanted) || form.shape.m != 16 || !isa::find(form)->since.has(state_->target))
      continue;
    if (!best || work(form.shape) > work(best->shape)) best = form;
  }
  if (best) return {{best->shape}, a, b, c};
  state_->report("no-instruction"_rule,
                 fmt::format("{} has no mma.sync of {} and {} with {} accumulators",
                             state_->target.text(), name(a), name(b), name(c)));
  return {};
}

TiledMma Builder::tiled_mma(const MmaKind& kind, const Tile& tile, Here at) {
  state_->at(at);
  TiledMma out;
  out.kind_ = kind;
  out.tile_ = tile;
  const Shape& shape = kind.shape.shape;
  if (shape.m == 0 || tile.warps_m < 1 || tile.warps_n < 1) return out;
  bool good = true;
  const auto divides = [&](int size, int by, std::string_view axis) {
    if (size > 0 && by > 0 && size % by == 0) return;
    good = false;
    state_->report("tile-divide"_rule,
                   fmt::format("the tile's {} = {} is no multiple of {}: the warps' share of {}; the "
                               "nearest is {}",
                               axis, size, by, kind.shape.text(),
                               std::max(1, (size + by / 2) / by) * by));
  };
  divides(tile.m, tile.warps_m * shape.m, "m");
  divides(tile.n, tile.warps_n * shape.n, "n");
  divides(tile.k, shape.k, "k");
  if (tile.threads() != state_->options.block) {
    good = false;
    state_->report("launch-bounds"_rule,
                   fmt::format("a tile of {} x {} warps takes a block of {} threads, the kernel has {}",
                               tile.warps_m, tile.warps_n, tile.threads(), state_->options.block));
  }
  if (!good) return out;
  out.state_ = state_;
  const Scalar warp = state_->thread() / 32;
  out.warp_m_ = tile.warps_n == 1 ? warp : warp / tile.warps_n;
  out.warp_n_ = tile.warps_n == 1 ? Scalar(0) : warp % tile.warps_n;
  if (tile.warps_m == 1) out.warp_m_ = 0;
  return out;
}

}  // namespace tartan
