// SPDX-License-Identifier: Apache-2.0
#include "dsl/kernels/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "dsl/kernels/epilogue.h"
#include "dsl/math.h"

namespace tartan::kernels {
namespace {

Scalar size(Builder& k, const char* name, int fixed, int multiple) {
  return fixed ? Scalar(fixed) : k.param(name, s32, multiple);
}

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

Type multiplied(Type element) { return element == f32 ? tf32 : element; }

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

// Where the parts of a product lie: whole tiles, one part under the other.
Layout workspace(const Gemm& options, const Scalar& m, const Scalar& n) {
  const Tile& tile = options.tile;
  return row_major(ceil_div(m, tile.m) * (tile.m * options.splits), ceil_div(n, tile.n) * tile.n);
}

}  // namespace

Kernel gemm(const Gemm& options) {
  const Tile tile = filled_in(options);
  return kernel("gemm", {.block = tile.threads()}, [=](Builder& k) {
    const Multiples sure = multiples(options);
    const auto m = size(k, "m", options.m, sure.m), n = size(k, "n", options.n, sure.n),
               depth = size(k, "k", options.k, sure.k);
    const auto stride = [&](const char* name, int multiple) {
      return options.batched ? k.param(name, s64, multiple) : Scalar(0);
    };
    const auto stride_a = stride("stride_a", options.multiple),
               stride_b = stride("stride_b", options.multiple),
               stride_c = stride("stride_c", options.multiple_c);
    auto A = k.global("A", options.a, stored(options.a_major, m, depth));
    auto B = k.global("B", options.b, stored(options.b_major, depth, n));
    require_whole_bytes(k, options, depth);
    k.require(
        options.splits >= 1 && (options.splits == 1 || !options.batched),
        fmt::format("splits = {}: a product has at least one part, and one of a batch just one",
                    options.splits));

    const MmaOptions with{.bit_op = options.a == Type::b1 ? options.bit_op : isa::BitOp::none};
    const auto kind =
        k.best_mma(multiplied(options.a), multiplied(options.b), options.accumulator, with);
    auto mma = k.tiled_mma(kind, tile, with);
    auto sA = k.shared("sA", options.a, mma.shared_a(options.stages, options.a_major));
    auto sB = k.shared("sB", options.b, mma.shared_b(options.stages, options.b_major));
    auto sum = mma.accumulator();

    const bool whole = options.splits == 1;
    const auto steps = ceil_div(depth, tile.k), share = ceil_div(steps, options.splits);
    const auto first = whole ? Scalar(0) : k.convert(k.block_y(), s32) * share;
    const auto count = whole ? steps : minimum(steps - first, share);
    std::optional<detail::Finisher> finisher;
    if (whole) finisher.emplace(k, options.epilogue, options.accumulator, options.c, m, n);
    if (options.batched) {
      A = A.matrix(k.block_z(), stride_a);
      B = B.matrix(k.block_z(), stride_b);
      finisher->select_matrix(k.block_z(), stride_c);
    }

    auto [row, col] = k.block_tile(m, n, tile);
    k.pipeline(
        options.stages, count,
        [&, row = row, col = col](Scalar t, Scalar stage) {
          k.copy(A.tile(tile.m, tile.k, row, first + t), sA[stage]);
          k.copy(B.tile(tile.k, tile.n, first + t, col), sB[stage]);
        },
        [&](Scalar, Scalar stage) { sum = mma(sum, sA[stage], sB[stage]); });
    if (whole) return finisher->store(sum, tile, row, col);
    auto parts = k.global("C", options.accumulator, workspace(options, m, n));
    const auto part = k.block_y() * k.convert(ceil_div(m, tile.m), u32);
    k.store(parts.tile(tile.m, tile.n, part + row, col), sum);
  });
}

Kernel gemm_sum(const Gemm& options) {
  constexpr int block = 256;
  return kernel("gemm_sum", {.block = block}, [=](Builder& k) {
    const auto m = size(k, "m", options.m, 1), n = size(k, "n", options.n, 1);
    auto parts = k.global("parts", options.accumulator, workspace(options, m, n));
    detail::Finisher finisher(k, options.epilogue, options.accumulator, options.c, m, n);
    const auto element = k.convert(k.block_x() * block + k.thread(), s32);
    const auto row = element / n, col = element % n;
    const auto apart = ceil_div(m, options.tile.m) * options.tile.m;
    k.when(row < m, [&] {
      const auto part = [&](int i) { return k.read(parts.tile(1, 1, row + apart * i, col), 0, 0); };
      Scalar sum = part(0);
      for (int i = 1; i < options.splits; ++i) sum = sum + part(i);
      finisher.store(sum, row, col);
    });
  });
}

}  // namespace tartan::kernels
