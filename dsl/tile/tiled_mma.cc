// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/tiled_mma.h"

#include <algorithm>
#include <bit>

#include "compiler/support/counted.h"
#include "dsl/layout/addressing.h"
#include "dsl/layout/fragments.h"
#include "dsl/layout/placement.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/tile/tiled_parts.h"
#include "dsl/units/tma/tma_matrix.h"
#include "dsl/units/wgmma/warpgroup_mma.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/math.h"
#include "tartan/isa/feature.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

// The tensor cores drop the low 13 bits of an f32. Rounds to nearest even, as tensor maps do.
std::vector<Fragment> rounded(const TiledParts& mma, std::vector<Fragment> fragments,
                              const Shared& from) {
  if (from.element() != f32) return fragments;
  for (Fragment& each : fragments) {
    if (each.kind().type != tf32 || is_bad(each)) continue;
    std::vector<codegen::Value> registers;
    for (const codegen::Value& value : registers_of(each))
      registers.push_back(mma.state->f().bitcast(
          mma.state->f().convert(mma.state->f().bitcast(value, f32), tf32), b32));
    each = make_fragment(*mma.state, each.kind(), std::move(registers));
    mma.state->log.choose(
        fmt::format("round {}", tensor_of(from).name),
        mma.state->config.target.has(Feature::tf32_conversion)
            ? "cvt.rn.tf32.f32"
            : "to nearest even, in integer arithmetic",
        "its elements are f32, and tensor cores would truncate their low 13 bits");
  }
  return fragments;
}

bool fits(const TiledParts& mma, const Shared& a, const Shared& b) {
  return require_shape(*mma.state, tensor_of(a), mma.tile.m, mma.tile.k, "A of the tiled MMA") &
             require_shape(*mma.state, tensor_of(b), mma.tile.k, mma.tile.n,
                           "B of the tiled MMA") &&
         in_order(*mma.state, tensor_of(a), tensor_of(b));
}

bool fits(const TiledParts& mma, std::size_t count_a, std::size_t count_b) {
  const auto m = static_cast<std::size_t>(mma.fragments_m()),
             n = static_cast<std::size_t>(mma.fragments_n());
  if (count_a == m && count_b == n) return true;
  mma.state->log.report(
      "fragment-mismatch"_rule,
      fmt::format("first k-step of another tile: expected {} and {} fragments of A and B per warp, "
                  "found {} and {}",
                  m, n, count_a, count_b));
  return false;
}

// Registers for addresses and temporaries, as measured: threads that copy need more, and so do
// operands that ldmatrix cannot transpose.
int registers_beside(const KernelState& state, const Shared& a, const Shared& b) {
  int out = 32;
  if (state.config.options.producers == 0) out += 16;
  for (const auto& [side, along] : {std::pair{&a, Major::row}, {&b, Major::col}})
    if (side->layout().major() != along) out += bits(side->element()) == 16 ? 8 : 32;
  return out;
}

}  // namespace

WarpTile multiply_tile(const TiledParts& mma, const WarpTile& c, const Side& a, const Side& b,
                       const Beside& row, const Beside& column) {
  const int m = mma.fragments_m(), n = mma.fragments_n();
  if (c.fragments().empty()) return mma.state->log.note_empty("the accumulators"), WarpTile{};
  std::vector<Fragment> sums = c.fragments();
  if (sums.size() != static_cast<std::size_t>(m * n)) {
    mma.state->log.report(
        "fragment-mismatch"_rule,
        fmt::format("wrong number of accumulators per warp of {}: expected {}, found {}{}",
                    *mma.text, m * n, sums.size(),
                    c.place().product ? " of " + *c.place().product : ""));
    return {};
  }
  if (!at_place(mma, Operand::c, c)) return {};
  for (int step = 0; step < mma.steps(); ++step) {
    const std::vector<Fragment> left = a(step), right = b(step);
    if (left.size() != static_cast<std::size_t>(m) || right.size() != static_cast<std::size_t>(n))
      return {};
    for (int i = 0; i < m; ++i) {
      MmaOptions options = mma.options;
      if (row) row(options, i, step);
      for (int j = 0; j < n; ++j) {
        // In serpentine order: neighbours share a fragment.
        const int x = i % 2 ? n - 1 - j : j;
        if (column) column(options, x, step);
        Fragment& sum = sums[static_cast<std::size_t>(i * n + x)];
        sum = multiply_fragments(*mma.state, left[static_cast<std::size_t>(i)],
                                 right[static_cast<std::size_t>(x)], &sum, Type::none, options);
      }
    }
  }
  return WarpTile(std::move(sums), n, c.place());
}

Side side_a(const TiledParts& mma, const Shared& a) {
  return [&mma, &a](int step) {
    const FragmentKind kind = operand_a(mma.kind.shape, mma.kind.a);
    const isa::Fragment fragment = kind.fragment();
    const auto part = [&](int rows, const Scalar& row) {
      return load_side(
          *mma.state, kind,
          tensor_of(a.tile(fragment.rows * rows, fragment.cols, row,
                           mma.warp_k * mma.steps() + step, mma.state->log.location())),
          rows);
    };
    if (!in_blocks(mma)) return rounded(mma, part(mma.fragments_m(), mma.warp_m), a);
    const WarpPlace place = place_of_a(mma);
    std::vector<Fragment> out;
    for (int i = 0; i < mma.fragments_m(); ++i)
      for (Fragment& each : part(1, (place.row + place.down(i, fragment.rows)) / fragment.rows))
        out.push_back(std::move(each));
    return rounded(mma, std::move(out), a);
  };
}

Side side_b(const TiledParts& mma, const Shared& b) {
  return [&mma, &b](int step) {
    const Shape& shape = mma.kind.shape.shape;
    return rounded(mma,
                   load_side(*mma.state, operand_b(mma.kind.shape, mma.kind.b),
                             tensor_of(b.tile(shape.k, shape.n * mma.fragments_n(),
                                              mma.warp_k * mma.steps() + step, mma.warp_n,
                                              mma.state->log.location())),
                             mma.fragments_n()),
                   b);
  };
}

// Accumulators of wgmma; multiply_tile() reports errors of others.
bool by_warpgroups(const TiledParts& mma, const WarpTile& c, bool sparse) {
  const auto& sums = c.fragments();
  return mma.warpgroup && mma.kind.shape.sparse == sparse &&
         sums.size() == static_cast<std::size_t>(mma.fragments_m() * mma.fragments_n()) &&
         std::none_of(sums.begin(), sums.end(), [&](const Fragment& each) {
           return is_bad(each) || state_of(each) != mma.state;
         });
}

}  // namespace detail

using detail::at_place;
using detail::fits;
using detail::KernelState;
using detail::rounded;
using detail::shared_layout;
using detail::Side;
using detail::tensor_of;

RingLayout TiledMma::shared_a(int stages, Major major) const {
  return shared_layout(parts_, Operand::a, stages, major);
}
RingLayout TiledMma::shared_b(int stages, Major major) const {
  return shared_layout(parts_, Operand::b, stages, major);
}

Accumulator TiledMma::accumulator(Here at) const {
  std::vector<FragmentVariable> out;
  if (!KernelState::begins(parts_.state, at)) return Accumulator({}, 1, {});
  Builder k(parts_.state);
  const FragmentKind kind = operand_c(parts_.kind.shape, parts_.kind.c);
  const int count = parts_.fragments_m() * parts_.fragments_n();
  parts_.state->registers.hold(
      count * kind.fragment().registers * std::max(bits(kind.type), 32) / 32, parts_.tile, at);
  for (int i = 0; i < count; ++i) out.push_back(k.variable(kind, at));
  return Accumulator(std::move(out), parts_.fragments_n(), place_of_c(parts_));
}

Accumulator TiledMma::variable_a(Here at) const {
  std::vector<FragmentVariable> out;
  if (!KernelState::begins(parts_.state, at)) return Accumulator({}, 1, {});
  Builder k(parts_.state);
  for (int i = 0; i < parts_.fragments_m() * parts_.steps(); ++i)
    out.push_back(k.variable(operand_a(parts_.kind.shape, parts_.kind.a), at));
  return Accumulator(std::move(out), parts_.steps(), place_of_a(parts_));
}

FirstStep TiledMma::first_step(const Shared& a_stage, const Shared& b_stage, Here at) const {
  FirstStep out;
  if (!KernelState::begins(parts_.state, at) || parts_.warpgroup || parts_.kind.shape.shape.m == 0)
    return out;
  const FragmentKind a = operand_a(parts_.kind.shape, parts_.kind.a),
                     b = operand_b(parts_.kind.shape, parts_.kind.b),
                     c = operand_c(parts_.kind.shape, parts_.kind.c);
  const auto words = [](const FragmentKind& kind) {
    const isa::Fragment fragment = kind.fragment();
    return fragment.registers * fragment.register_bits / 32;
  };
  // Fragments of this k-step and of the next one.
  const int needed = parts_.fragments_m() * parts_.fragments_n() * words(c) +
                     2 * (parts_.fragments_m() * words(a) + parts_.fragments_n() * words(b)) +
                     detail::registers_beside(*parts_.state, a_stage, b_stage);
  const bool possible = needed <= parts_.state->config.registers();
  parts_.state->log.choose("first k-step of a stage",
                           possible ? "loaded before the last MMAs of the preceding stage"
                                    : "loaded just before its MMAs",
                           fmt::format("it needs about {} registers, a thread has {}", needed,
                                       parts_.state->config.registers()));
  if (!possible) return out;
  Builder k(parts_.state);
  for (int i = 0; i < parts_.fragments_m(); ++i) out.a_.push_back(k.variable(a, at));
  for (int j = 0; j < parts_.fragments_n(); ++j) out.b_.push_back(k.variable(b, at));
  return out;
}

void TiledMma::load(FirstStep& first, const Shared& a, const Shared& b, Here at) const {
  if (first.empty() || !KernelState::begins(parts_.state, at) ||
      !fits(parts_, first.a_.size(), first.b_.size()) || !fits(parts_, a, b))
    return;
  const std::vector<Fragment> left = side_a(parts_, a)(0), right = side_b(parts_, b)(0);
  if (left.size() == first.a_.size()) std::ranges::copy(left, first.a_.begin());
  if (right.size() == first.b_.size()) std::ranges::copy(right, first.b_.begin());
}

WarpTile TiledMma::operator()(const WarpTile& c, const Shared& a, const Shared& b,
                              const FirstStep& first, const std::function<void()>& next,
                              Here at) const {
  if (first.empty()) return (*this)(c, a, b, at);
  if (!KernelState::begins(parts_.state, at) || !fits(parts_, first.a_.size(), first.b_.size()) ||
      !fits(parts_, a, b))
    return {};
  if (!parts_.state->has_body(next != nullptr, "an MMA whose first k-step is loaded")) return {};
  // Fragments are loaded one k-step ahead.
  using Fragments = std::vector<Fragment>;
  Fragments left(first.a_.begin(), first.a_.end()), right(first.b_.begin(), first.b_.end());
  const Side load_a = side_a(parts_, a), load_b = side_b(parts_, b);
  const auto one_ahead = [&](int step, Fragments& loaded, const Side& load) {
    Fragments now = std::move(loaded);
    if (step + 1 < parts_.steps()) loaded = load(step + 1);
    return now;
  };
  return multiply_tile(
      parts_, c, [&](int step) { return one_ahead(step, left, load_a); },
      [&](int step) {
        Fragments now = one_ahead(step, right, load_b);
        if (step + 1 == parts_.steps()) next();
        return now;
      });
}

WarpTile TiledMma::operator()(const WarpTile& c, const Shared& a, const Shared& b, Here at) const {
  if (!KernelState::begins(parts_.state, at) || !fits(parts_, a, b)) return {};
  if (!by_warpgroups(parts_, c))
    return multiply_tile(parts_, c, side_a(parts_, a), side_b(parts_, b));
  if (!at_place(parts_, Operand::c, c)) return {};
  return WarpTile(
      detail::warpgroup_multiply(*parts_.state, *parts_.warpgroup, parts_.options, c.fragments(),
                                 tensor_of(a), tensor_of(b), parts_.warp_m / 4),
      parts_.fragments_n(), c.place());
}

WarpTile TiledMma::fresh(const WarpTile& used, const Shared& a, const Shared& b, Here at) const {
  if (!KernelState::begins(parts_.state, at) || !fits(parts_, a, b)) return {};
  if (!by_warpgroups(parts_, used)) return (*this)(accumulator(at), a, b, at);
  if (!at_place(parts_, Operand::c, used)) return {};
  return WarpTile(
      detail::warpgroup_multiply(*parts_.state, *parts_.warpgroup, parts_.options, used.fragments(),
                                 tensor_of(a), tensor_of(b), parts_.warp_m / 4, {}, true),
      parts_.fragments_n(), used.place());
}

namespace {

// What makes operands of this product of accumulators; nothing if they are of its shape.
std::string other_shape(const detail::TiledParts& mma, Operand operand, const FragmentKind& found) {
  if (found.shape == mma.kind.shape) return {};
  return fmt::format(" of {}; operand_{}(tile, {}) makes those of {}", found.shape.text(),
                     name(operand), mma.kind.shape.text(), *mma.text);
}

// Whether a warp's fragments of A or B match the tile in number, and belong to this kernel; reports
// if not.
bool takes_fragments(const detail::TiledParts& mma, Operand operand, const WarpTile& given,
                     int down, int across) {
  const std::string_view letter = operand == Operand::a ? "A" : "B";
  const std::string what = fmt::format("{} of the tiled MMA", letter);
  if (given.fragments().empty()) {
    mma.state->log.note_empty(what);
    return false;
  }
  if (given.down() != down || given.across() != across) {
    mma.state->log.report(
        "fragment-mismatch"_rule,
        fmt::format("wrong number of fragments of {} per warp: expected {} x {}, found {} x {}{}",
                    letter, down, across, given.down(), given.across(),
                    other_shape(mma, operand, given.fragment(0, 0).kind())));
    return false;
  }
  return std::ranges::all_of(given.fragments(),
                             [&](const Fragment& each) {
                               return mma.state->owns(each, what) && !detail::is_bad(each);
                             }) &&
         at_place(mma, operand, given);
}

}  // namespace

Type TiledMma::stored_a() const { return detail::stored_type(parts_.kind, parts_.kind.a); }
Type TiledMma::stored_b() const { return detail::stored_type(parts_.kind, parts_.kind.b); }

WarpTile TiledMma::operator()(const WarpTile& c, const WarpTile& a, const Shared& b,
                              Here at) const {
  if (!KernelState::begins(parts_.state, at)) return {};
  if (!require_shape(*parts_.state, tensor_of(b), parts_.tile.k, parts_.tile.n,
                     "B of the tiled MMA"))
    return {};
  if (!takes_fragments(parts_, Operand::a, a, parts_.fragments_m(), parts_.steps())) return {};
  if (by_warpgroups(parts_, c)) {
    if (!at_place(parts_, Operand::c, c)) return {};
    const auto& sums = c.fragments();
    return WarpTile(
        a.memory_ ? detail::warpgroup_multiply(*parts_.state, *parts_.warpgroup, parts_.options,
                                               sums, *a.memory_, tensor_of(b), parts_.warp_m / 4)
                  : detail::warpgroup_multiply(*parts_.state, *parts_.warpgroup, parts_.options,
                                               sums, a, tensor_of(b)),
        parts_.fragments_n(), c.place());
  }
  const auto column = [&](int step) {
    std::vector<Fragment> out;
    for (int i = 0; i < parts_.fragments_m(); ++i) out.push_back(a.fragment(i, step));
    return out;
  };
  return multiply_tile(parts_, c, column, side_b(parts_, b));
}

WarpTile TiledMma::operator()(const WarpTile& c, const Shared& a, const WarpTile& b,
                              Here at) const {
  if (!KernelState::begins(parts_.state, at)) return {};
  if (!require_shape(*parts_.state, tensor_of(a), parts_.tile.m, parts_.tile.k,
                     "A of the tiled MMA"))
    return {};
  if (!takes_fragments(parts_, Operand::b, b, parts_.steps(), parts_.fragments_n())) return {};
  const auto row = [&](int step) {
    std::vector<Fragment> out;
    for (int j = 0; j < parts_.fragments_n(); ++j) out.push_back(b.fragment(step, j));
    return out;
  };
  return multiply_tile(parts_, c, side_a(parts_, a), row);
}

WarpTile TiledMma::load_a(const Shared& a, Here at) const {
  if (!KernelState::begins(parts_.state, at)) return {};
  if (!require_shape(*parts_.state, tensor_of(a), parts_.tile.m, parts_.tile.k,
                     "A of the tiled MMA"))
    return {};
  const FragmentKind kind = operand_a(parts_.kind.shape, parts_.kind.a);
  const isa::Fragment fragment = kind.fragment();
  const WarpPlace place = place_of_a(parts_);
  std::vector<Fragment> out;
  for (int i = 0; i < parts_.fragments_m(); ++i)
    for (int step = 0; step < parts_.steps(); ++step)
      out.push_back(
          load_fragment(*parts_.state, kind,
                        tensor_of(a.tile(fragment.rows, fragment.cols,
                                         (place.row + place.down(i, fragment.rows)) / fragment.rows,
                                         parts_.warp_k * parts_.steps() + step, at))));
  WarpTile tile(rounded(parts_, std::move(out), a), parts_.steps(), place);
  if (parts_.warpgroup) tile.memory_ = std::make_shared<const detail::Tensor>(tensor_of(a));
  return tile;
}

TiledMma Builder::tiled_mma(const MmaKind& kind, const Tile& tile, const MmaOptions& options,
                            Here at) {
  state_->at(at);
  TiledMma out;
  out.parts_.kind = kind;
  out.parts_.tile = tile;
  out.parts_.options = options;
  const Shape& shape = kind.shape.shape;
  if (shape.m == 0) return out;  // best_mma() has said why
  if (shape.m < 0 || shape.n < 1 || shape.k < 1 || tile.m < 1 || tile.n < 1 || tile.k < 1) {
    state_->log.report("tile-divide"_rule,
                       fmt::format("illegal tile {} x {} x {} by {}: expected sizes above 0",
                                   tile.m, tile.n, tile.k, kind.shape.text()));
    return out;
  }
  for (const auto& [count, what] : {std::pair{tile.warps_m, "warps_m"},
                                    {tile.warps_n, "warps_n"},
                                    {tile.warps_k, "warps_k"},
                                    {tile.products, "products"}})
    if (count < 1 || count > 32) {
      state_->log.report("launch-bounds"_rule,
                         fmt::format("{} of a tile: expected 1 to 32, found {}", what, count));
      return out;
    }
  bool good = true;
  const auto divides = [&](int size, int by, std::string_view axis) {
    if (size > 0 && by > 0 && size % by == 0) return;
    good = false;
    state_->log.report(
        "tile-divide"_rule,
        fmt::format(
            "the tile's {} = {} is not a multiple of {}, the warps' share of {}; the nearest is {}",
            axis, size, by, kind.shape.text(),
            std::max<std::int64_t>(1, (std::int64_t{size} + by / 2) / by) * by));
  };
  divides(tile.m, tile.warps_m * shape.m, "m");
  divides(tile.n, tile.warps_n * shape.n, "n");
  divides(tile.k, tile.warps_k * shape.k, "k");
  if (tile.warps_k > 1 && (kind.shape.sparse || options.scale_type != Type::none)) {
    good = false;
    state_->log.report("tile-divide"_rule,
                       fmt::format("the warps of {} divide k only where A is dense and has no "
                                   "scales: expected warps_k = 1, found {}; use warps_n",
                                   kind.shape.text(), tile.warps_k));
  }
  if (options.scale_type != Type::none) {
    complete_scales(out.parts_);
    divides(tile.k, 4 * out.parts_.scale_block(), "k");
  }
  // More than a thread's registers would spill; several times as many are an error.
  constexpr std::int64_t most_elements = 1024;
  const std::int64_t elements =
      std::int64_t{tile.m} * tile.n / (std::int64_t{tile.warps_m} * tile.warps_n * 32);
  if (elements > most_elements) {
    good = false;
    state_->log.report(
        "launch-bounds"_rule,
        fmt::format("{} accumulator elements per thread for a tile of {} x {}: a thread "
                    "has 255 registers; use more warps or a smaller tile",
                    elements, tile.m, tile.n));
  }
  good &= may_negate(*state_, options, kind.a, kind.b);
  if (tile.threads() != state_->config.options.block) {
    good = false;
    state_->log.report(
        "launch-bounds"_rule,
        fmt::format(
            "block size mismatch: {}a tile of {} x {}{} warps needs {} threads, the kernel has {}",
            tile.products > 1 ? fmt::format("{} times ", tile.products) : "", tile.warps_m,
            tile.warps_n, tile.warps_k > 1 ? fmt::format(" x {}", tile.warps_k) : "",
            tile.threads(), state_->config.options.block));
  }
  if (!good) return out;
  out.parts_.state = state_;
  const int each = tile.warps_m * tile.warps_n, all = each * tile.warps_k;
  Scalar warp = consumer_index(*state_) / 32;
  out.parts_.product = 0, out.parts_.warp_k = 0;
  if (tile.products > 1) out.parts_.product = warp / all, warp = warp % all;
  if (tile.warps_k > 1) out.parts_.warp_k = warp / each, warp = warp % each;
  out.parts_.warp_m = tile.warps_n == 1 ? warp : warp / tile.warps_n;
  out.parts_.warp_n = tile.warps_n == 1 ? Scalar(0) : warp % tile.warps_n;
  if (tile.warps_m == 1) out.parts_.warp_m = 0;
  std::string why_not;
  const Target& target = state_->config.target;
  out.parts_.warpgroup = detail::warpgroup_form(*state_, kind, tile, options, target, why_not);
  out.parts_.text = std::make_shared<const std::string>(fmt::format(
      "the {} x {} tile of {} x {} warps of {} ({})", tile.m, tile.n, tile.warps_m, tile.warps_n,
      out.parts_.warpgroup ? isa::spell(*out.parts_.warpgroup) : "mma.sync " + kind.shape.text(),
      detail::text(state_->log.place())));
  state_->fill.read_by_wgmma |= out.parts_.warpgroup.has_value();
  if (out.parts_.warpgroup) {
    state_->log.withdraw(detail::product_text(kind.a, kind.b));
    state_->log.choose(fmt::format("tile of {} x {} x {}", tile.m, tile.n, tile.k),
                       isa::spell(*out.parts_.warpgroup),
                       fmt::format("{} multiplying from shared memory, {}",
                                   detail::counted(tile.warps_m / 4, "warpgroup"),
                                   bits(kind.a) == 8 && info(kind.a).floating
                                       ? std::string("with 14-bit accumulation")
                                       : "with the same result bits as " + kind.shape.text()));
  } else if (const Target own{{target.arch.sm, 'a'}, newest_version};
             own.has(Feature::wgmma) && !target.arch.has(Feature::wgmma) &&
             detail::warpgroup_form(*state_, kind, tile, options, own, why_not)) {
    const std::string product = fmt::format("tile of {} x {} x {}", tile.m, tile.n, tile.k);
    state_->log.choose(
        product, kind.shape.text(), "each warp multiplies its part",
        {fmt::format("wgmma: requires {}, the target is {}", own.arch.text(), target.arch.text())});
    state_->log.warn(
        "slow-instruction"_rule,
        fmt::format("{0}: mma.sync on {1}, wgmma on {2}, which is the same GPU: compile for {2}",
                    product, target.arch.text(), own.arch.text()));
  } else if (kind.best && target.has(Feature::wgmma)) {
    state_->log.choose(fmt::format("tile of {} x {} x {}", tile.m, tile.n, tile.k),
                       kind.shape.text(), "each warp multiplies its part", {"wgmma: " + why_not});
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI
