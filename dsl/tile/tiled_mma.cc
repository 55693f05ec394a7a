// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/tiled_mma.h"

#include <algorithm>

#include "compiler/support/counted.h"
#include "dsl/layout/placement.h"
#include "dsl/state/operations.h"
#include "dsl/tile/tiled_parts.h"
#include "dsl/units/tcgen05/tensor_product.h"
#include "dsl/units/wgmma/warpgroup_mma.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/builder.h"
#include "tartan/isa/feature.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI {

using detail::KernelState;
using detail::shared_layout;

RingLayout TiledMma::shared_a(int stages, Major major) const {
  return shared_layout(parts_, Operand::a, stages, major);
}
RingLayout TiledMma::shared_b(int stages, Major major) const {
  return shared_layout(parts_, Operand::b, stages, major);
}

Accumulator detail::make_accumulator(const TiledParts& mma, Here at) {
  const FragmentKind kind = operand_c(mma.kind.shape, mma.kind.c);
  const int count = mma.fragments_m() * mma.fragments_n();
  if (!mma.tensor)
    mma.state->registers.hold(
        count * kind.fragment().registers * std::max(bits(kind.type), 32) / 32, mma.tile, at);
  Builder k(mma.state);
  std::vector<FragmentVariable> out;
  for (int i = 0; i < count; ++i) out.push_back(k.variable(kind, at));
  const auto tensor = mma.tensor ? declare_tensor_sum(mma, out) : nullptr;
  return Accumulator(std::move(out), mma.fragments_n(), place_of_c(mma), tensor);
}

Accumulator TiledMma::accumulator(Here at) const {
  if (!KernelState::begins(parts_.state, at)) return Accumulator({}, 1, {});
  return detail::make_accumulator(parts_, at);
}

Accumulator TiledMma::variable_a(Here at) const {
  std::vector<FragmentVariable> out;
  if (!KernelState::begins(parts_.state, at)) return Accumulator({}, 1, {});
  Builder k(parts_.state);
  for (int i = 0; i < parts_.fragments_m() * parts_.steps(); ++i)
    out.push_back(k.variable(operand_a(parts_.kind.shape, parts_.kind.a), at));
  return Accumulator(std::move(out), parts_.steps(), place_of_a(parts_));
}

Global TiledMma::own_b(const Global& tile, Here at) const {
  if (!KernelState::begins(parts_.state, at) || parts_.ctas_of_b() == 1) return tile;
  Builder k(parts_.state);
  return tile.tile({0, k.cluster_rank(at)}, {parts_.tile.k, parts_.tile.n / 2}, at);
}

Type TiledMma::stored_a() const { return detail::stored_type(parts_.kind, parts_.kind.a); }
Type TiledMma::stored_b() const { return detail::stored_type(parts_.kind, parts_.kind.b); }

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
  if (options.ctas < 1 || options.ctas > 2) {
    state_->log.report("launch-bounds"_rule,
                       fmt::format("ctas of a tiled MMA: expected 1 or 2, found {}", options.ctas));
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
  std::string why_not, alone;
  const Target& target = state_->config.target;
  out.parts_.warpgroup = detail::warpgroup_form(*state_, kind, tile, options, target, why_not);
  if (target.has(Feature::tensor_memory))
    out.parts_.tensor =
        detail::tensor_form(*state_, kind, tile, out.parts_.options, why_not, alone);
  out.parts_.options.ctas = out.parts_.tensor ? out.parts_.tensor->ctas : 1;
  state_->tensor_sums.pairs |= out.ctas() == 2;
  out.parts_.text = std::make_shared<const std::string>(fmt::format(
      "the {} x {} tile of {} x {} warps of {} ({})", tile.m, tile.n, tile.warps_m, tile.warps_n,
      out.parts_.warpgroup ? isa::spell(*out.parts_.warpgroup)
      : out.parts_.tensor  ? spelling_of(*out.parts_.tensor)
                           : "mma.sync " + kind.shape.text(),
      detail::text(state_->log.place())));
  state_->has_wgmma |= out.parts_.warpgroup.has_value();
  state_->has_tensor_products |= out.parts_.tensor != nullptr;
  if (out.parts_.tensor) {
    state_->log.withdraw(detail::product_text(kind.a, kind.b));
    state_->log.choose(
        fmt::format("tile of {} x {} x {}", tile.m, tile.n, tile.k),
        spelling_of(*out.parts_.tensor),
        fmt::format("one thread of {} multiplies {} x {} x {} from shared memory, sums are in "
                    "tensor memory",
                    tile.warps_m == 4 ? "the warpgroup" : "each warpgroup",
                    out.parts_.tensor->rows * out.parts_.tensor->ctas, tile.n,
                    out.parts_.tensor->step),
        alone.empty() ? std::vector<std::string>()
                      : std::vector<std::string>{"a pair of CTAs: " + alone});
  } else if (out.parts_.warpgroup) {
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
  } else if (kind.best && (target.has(Feature::wgmma) || target.has(Feature::tensor_memory))) {
    state_->log.choose(
        fmt::format("tile of {} x {} x {}", tile.m, tile.n, tile.k), kind.shape.text(),
        "each warp multiplies its part",
        {fmt::format("{}: {}", target.has(Feature::wgmma) ? "wgmma" : "tcgen05.mma", why_not)});
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI
