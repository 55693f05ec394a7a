// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/block_scaled.h"

#include <fmt/format.h>

#include "kernels/common/keys.h"
#include "kernels/gemm/gemm_tiles.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

MmaOptions mma_options(const BlockScaled& options) {
  return {.scale_type = options.scale, .ctas = options.cluster == 2 ? 2 : 1};
}

// Its tiles are those of a product without scales.
Gemm in_gemm_tiles(const BlockScaled& of) {
  return {.m = of.m,
          .n = of.n,
          .k = of.k,
          .a = of.a,
          .b = of.b,
          .c = of.c,
          .multiple = of.multiple,
          .multiple_c = of.multiple_c,
          .tile = of.tile,
          .stages = of.stages,
          .epilogue = of.epilogue,
          .persistent = of.persistent,
          .producers = of.producers,
          .cluster = of.cluster};
}

// Only mxf4nvf4 has ue4m3 scales; it and mxf4 take packed e2m1, mxf8f6f4 takes all types.
MmaKind product(Builder& k, const BlockScaled& options) {
  const MmaOptions with = mma_options(options);
  if (options.kind == isa::Kind::none) return k.best_mma(options.a, options.b, f32, with);
  const MmaShape shape = options.kind == isa::Kind::mxf8f6f4 ? m16n8k32 : m16n8k64;
  MmaKind out = of_kind(shape, options.kind)(options.a, options.b, f32);
  out.best = true;
  return out;
}

// The granularity of k in elements: those that share bytes, or a copy.
int together(const TiledMma& mma) {
  const MmaKind& kind = mma.kind();
  if (mma.stored_a() != kind.a || mma.stored_b() != kind.b) return 16;
  return std::max(8 / std::max(bits(kind.a), 1), 1);
}

Scalar block_count(const Scalar& depth, int block) {
  return depth.multiple() % block == 0 ? depth / block : ceil_div(depth, block);
}

}  // namespace

static Kernel described_block_scaled(const BlockScaled& options) {
  const Tile& tile = options.tile;
  const KernelOptions launch{
      .block = tile.threads(), .producers = options.producers, .cluster = options.cluster};
  return kernel("block_scaled", launch, [=](Builder& k) {
    const MmaKind kind = product(k, options);
    if (kind.shape.shape.m == 0) return;
    const auto mma = k.tiled_mma(kind, tile, mma_options(options));
    const int unit = together(mma), block = mma.scale_block();
    const auto m = detail::size(k, "m", options.m, 1),
               n = detail::size(k, "n", options.n, options.multiple_c),
               depth =
                   detail::size(k, "k", options.k, detail::common_multiple(unit, options.multiple));
    if (!detail::sizes_are_possible(k, tile, m, n, depth) ||
        !k.require(options.cluster == 1 || options.cluster == 2,
                   fmt::format("cluster = {}: expected 1 or 2", options.cluster)))
      return;
    k.require(depth.multiple() % unit == 0,
              fmt::format("k is not a multiple of {}, which products of {} and {} require", unit,
                          name(kind.a), name(kind.b)));
    const auto blocks = block_count(depth, block);
    auto A = k.global("A", kind.a, row_major(m, depth));
    auto scalesA = k.global("A_scales", options.scale, row_major(m, blocks));
    auto B = k.global("B", kind.b, col_major(depth, n));
    auto scalesB = k.global("B_scales", options.scale, col_major(blocks, n));
    detail::GemmTiles tiles(k, in_gemm_tiles(options), mma, m, n, depth);
    tiles.stand_alone();
    auto sA = k.shared("sA", mma.stored_a(), mma.shared_a(options.stages));
    auto sB = k.shared("sB", mma.stored_b(), mma.shared_b(options.stages));
    auto sSA = k.shared("sA_scales", options.scale, RingLayout{mma.scales_a(), options.stages});
    auto sSB = k.shared("sB_scales", options.scale, RingLayout{mma.scales_b(), options.stages});
    tiles.compute({[&](Scalar row, Scalar col, Scalar t, Scalar stage) {
                     k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
                     k.copy(scalesA.tile({row, t}, {tile.m, tile.k / block}), sSA[stage]);
                     k.copy(mma.own_b(B.tile({t, col}, {tile.k, tile.n})), sB[stage]);
                     k.copy(scalesB.tile({t, col}, {tile.k / block, tile.n}), sSB[stage]);
                   },
                   [&](Accumulator& sum, Scalar stage, const detail::Operands::Next&) {
                     const Shared scales_b = sSB[stage], b = sB[stage], scales_a = sSA[stage],
                                  a = sA[stage];
                     mma.add(sum, {a, {.scales = scales_a}}, {b, {.scales = scales_b}});
                   }});
  });
}

Kernel block_scaled(const BlockScaled& options) {
  return described_block_scaled(options).keyed(key_of(options));
}

}  // namespace tartan::TARTAN_ABI::kernels
