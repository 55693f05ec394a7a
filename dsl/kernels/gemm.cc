// SPDX-License-Identifier: Apache-2.0
#include "dsl/kernels/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "dsl/kernels/gemm_tiles.h"
#include "dsl/math.h"

namespace tartan::kernels {
namespace {

using detail::multiplied;
using detail::size;
using detail::stride;
using detail::workspace;

// What the sizes are surely multiples of, from the lines that they are lengths of.
struct Multiples {
  int m, n, k;
};

Multiples multiples(const Gemm& options) {
  const bool a_by_rows = options.a_major == Major::row, b_by_rows = options.b_major == Major::row;
  return {a_by_rows ? 1 : options.multiple,
          std::lcm(options.multiple_c, b_by_rows ? options.multiple : 1),
          a_by_rows || !b_by_rows ? options.multiple : 1};
}

// Lines of 64 bytes, or as long as the longest instruction takes.
Tile filled_in(const Gemm& options) {
  Tile out = options.tile;
  if (out.k == 0) out.k = std::max(512 / std::max(bits(options.a), 1), 16);
  return out;
}

void require_whole_bytes(Builder& k, const Gemm& options, const Scalar& depth) {
  if (bits(options.a) >= 8 || bits(options.b) >= 8) return;
  const int together = 8 / bits(options.a);
  k.require(options.a_major == Major::row && options.b_major == Major::col,
            fmt::format("elements of {} share bytes: A goes by rows and B by columns, so that both "
                        "lie along k",
                        name(options.a)));
  k.require(depth.multiple() % together == 0,
            fmt::format("{} elements of {} share a byte: k must be a multiple of {}", together,
                        name(options.a), together));
}

}  // namespace

Kernel gemm(const Gemm& options) {
  const Tile tile = filled_in(options);
  const KernelOptions blocks{
      .block = tile.threads(), .producers = options.producers, .cluster = options.cluster};
  return kernel("gemm", blocks, [=](Builder& k) {
    const Multiples sure = multiples(options);
    const auto m = size(k, "m", options.m, sure.m), n = size(k, "n", options.n, sure.n),
               depth = size(k, "k", options.k, sure.k);
    const auto stride_a = stride(k, "stride_a", options, options.multiple),
               stride_b = stride(k, "stride_b", options, options.multiple),
               stride_c = stride(k, "stride_c", options, options.multiple_c);
    auto A = k.global("A", options.a, stored(options.a_major, m, depth));
    auto B = k.global("B", options.b, stored(options.b_major, depth, n));
    require_whole_bytes(k, options, depth);

    const MmaOptions with{.bit_op = options.a == Type::b1 ? options.bit_op : isa::BitOp::none};
    auto kind = k.best_mma(multiplied(options.a), multiplied(options.b), options.accumulator, with);
    if (kind.shape.shape.m == 0) return;  // best_mma() has said why
    // Warpgroups read bytes and words along k alone.
    if (bits(options.a) != 16)
      kind.best = options.a_major == Major::row && options.b_major == Major::col;
    auto mma = k.tiled_mma(kind, tile, with);
    auto sA = k.shared("sA", options.a, mma.shared_a(options.stages, options.a_major));
    auto sB = k.shared("sB", options.b, mma.shared_b(options.stages, options.b_major));
    FirstStep first = mma.first_step(sA[0], sB[0]);
    detail::GemmTiles tiles(k, options, mma, m, n, depth);
    if (options.batched) {
      A = A.matrix(k.block_z(), stride_a);
      B = B.matrix(k.block_z(), stride_b);
      tiles.select_matrix(k.block_z(), stride_c);
    }
    tiles.compute({[&](Scalar row, Scalar col, Scalar step, Scalar stage) {
                     k.copy(A.tile(tile.m, tile.k, row, step), sA[stage]);
                     k.multicast(B.tile(tile.k, tile.n, step, col), sB[stage]);
                   },
                   [&](const WarpTile& sum, Scalar stage, const detail::Operands::Next& next) {
                     return mma(sum, sA[stage], sB[stage], first, next);
                   },
                   first.empty() ? std::function<void(Scalar)>{}
                                 : [&](Scalar stage) { mma.load(first, sA[stage], sB[stage]); }});
  });
}

namespace {

// The parts of an element of a product that was split evenly: one under the other.
Scalar sum_of_splits(Builder& k, const Gemm& options, const Global& parts, const Scalar& rows,
                     const Scalar& row, const Scalar& col) {
  const auto apart = ceil_div(rows, options.tile.m) * options.tile.m;
  const auto part = [&](int i) { return k.read(parts.tile(1, 1, row + apart * i, col), 0, 0); };
  Scalar sum = part(0);
  for (int i = 1; i < options.splits; ++i) sum = sum + part(i);
  return sum;
}

}  // namespace

Kernel gemm_sum(const Gemm& options) {
  const Tile tile = filled_in(options);
  constexpr int block = 256;
  return kernel("gemm_sum", {.block = block}, [=](Builder& k) {
    constexpr int most_splits = 256;
    if (!k.require(options.splits >= 1 && options.splits <= most_splits && tile.m > 0 && tile.n > 0,
                   fmt::format("splits = {}, tiles of {} x {}: 1 to {} parts of tiles are added up",
                               options.splits, tile.m, tile.n, most_splits)))
      return;
    const auto m = size(k, "m", options.m, 1), n = size(k, "n", options.n, 1);
    if (!options.stream_blocks) {
      auto parts = k.global("parts", options.accumulator, workspace(options, m, n));
      detail::Finisher finisher(k, options.epilogue, options.accumulator, options.c, m, n);
      const auto element = k.convert(k.block_x() * block + k.thread(), s32);
      const auto row = element / n, col = element % n;
      k.when(row < m,
             [&] { finisher.store(sum_of_splits(k, options, parts, m, row, col), row, col); });
      return;
    }
    const auto steps = detail::units_each(ceil_div(size(k, "k", options.k, 1), tile.k));
    auto parts = k.global("parts", options.accumulator, workspace(options, m, n));
    detail::Finisher finisher(k, options.epilogue, options.accumulator, options.c, m, n);
    const auto number = k.convert(k.block_x(), s32);
    const auto units = ceil_div(m, tile.m) * ceil_div(n, tile.n) * steps;
    const Scalar workers = options.stream_blocks;
    const auto first = StreamShare::owner(units, workers, number * steps),
               last = StreamShare::owner(units, workers, number * steps + steps - 1);
    auto [row, col] = k.block_tile(m, n, tile, options.group);
    const auto top = k.convert(row, s32) * tile.m, left = k.convert(col, s32) * tile.n;
    const auto finish = [&](const Scalar& i, const Scalar& j) {
      auto sum = k.variable(k.constant(options.accumulator, 0));
      k.loop(first, last + 1, 1, [&](Scalar worker) {
        const auto begins = StreamShare::of(units, workers, worker).begin / steps;
        const auto slot = worker * 2 + select(begins == number, 0, 1);
        sum = sum + k.read(parts.tile(1, 1, slot * tile.m + i, j), 0, 0);
      });
      finisher.store(sum, top + i, left + j);
    };
    k.when(first != last, [&] {
      k.loop(k.convert(k.thread(), s32), tile.m * tile.n, block, [&](Scalar element) {
        const auto i = element / tile.n, j = element % tile.n;
        k.when((top + i < m) & (left + j < n), [&] { finish(i, j); });
      });
    });
  });
}

}  // namespace tartan::kernels
