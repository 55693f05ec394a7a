// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "kernels/common/keys.h"
#include "kernels/gemm/gemm_direct.h"
#include "kernels/gemm/gemm_lines.h"
#include "kernels/gemm/gemm_resources.h"
#include "kernels/gemm/gemm_tiles.h"
#include "tartan/dsl/math.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

using detail::multiplied;
using detail::size;
using detail::stride;
using detail::workspace;

// Guaranteed divisors of the sizes, from the leading dimensions that they are.
struct Multiples {
  int m, n, k;
};

Multiples multiples(const Gemm& options) {
  const bool a_is_row = options.a_major == Major::row, b_is_row = options.b_major == Major::row;
  return {a_is_row ? 1 : options.multiple,
          detail::common_multiple(options.multiple_c, b_is_row ? options.multiple : 1),
          a_is_row || !b_is_row ? options.multiple : 1};
}

// Rows of 64 bytes, or more if the longest instruction needs more.
Tile filled_in(const Gemm& options) {
  Tile out = options.tile;
  if (out.k == 0 && options.direct) out.k = detail::direct_step(options);
  else if (out.k == 0)
    out.k = std::max(static_cast<int>(std::bit_floor(
                         512U / static_cast<unsigned>(std::max(bits(options.a), 1)))),
                     16);
  return out;
}

// Elements smaller than a byte must be contiguous along k. Those that take a byte each in shared
// memory are copied 16 at a time.
bool whole_bytes(Builder& k, const Gemm& options, const TiledMma& mma, const Scalar& depth) {
  const Type smaller = bits(options.a) < bits(options.b) ? options.a : options.b;
  if (bits(smaller) >= 8) return true;
  const bool spread = mma.stored_a() != options.a || mma.stored_b() != options.b;
  const int together = spread ? 16 : 8 / bits(smaller);
  return k.require(options.a_major == Major::row && options.b_major == Major::col,
                   fmt::format("{} is sub-byte: A must be row-major and B column-major, so that "
                               "both are contiguous along k",
                               name(smaller))) &&
         k.require(depth.multiple() % together == 0,
                   fmt::format("{} elements of {} share a byte: k must be a multiple of {}",
                               together, name(smaller), together));
}

}  // namespace

static Kernel described_gemm(const Gemm& options) {
  const Tile tile = filled_in(options);
  Gemm whole = options;
  whole.tile = tile;
  const auto launch = [=](const Target& target) {
    return KernelOptions{.block = tile.threads(),
                         .producers = options.producers,
                         .min_blocks = detail::ctas_at_a_time(whole, target),
                         .max_registers = detail::most_registers(whole, target),
                         .cluster = detail::cluster_size(options),
                         .cluster_columns = options.cluster_columns};
  };
  return kernel("gemm", launch, [=](Builder& k) {
    if (options.direct) return detail::describe_direct(k, whole);
    const Multiples sure = multiples(options);
    const auto m = size(k, "m", options.m, sure.m), n = size(k, "n", options.n, sure.n),
               depth = size(k, "k", options.k, sure.k);
    Tile of_c = tile;
    if (options.swap) std::swap(of_c.m, of_c.n);
    if (!detail::sizes_are_possible(k, of_c, m, n, depth)) return;
    const auto stride_a = stride(k, "stride_a", options, options.multiple),
               stride_b = stride(k, "stride_b", options, options.multiple),
               stride_c = stride(k, "stride_c", options, options.multiple_c);
    // The kernel's parameters are A and B, its product is that of `left` and `right`.
    const Gemm turned = detail::in_tiles(options);
    const auto declare = [&](const char* name, Type type, Major major, auto rows, auto cols) {
      if (!options.swap) return k.global(name, type, stored(major, rows, cols));
      return k.global(name, type, stored(detail::opposite(major), cols, rows));
    };
    auto A = declare("A", options.a, options.a_major, m, depth);
    auto B = declare("B", options.b, options.b_major, depth, n);
    const MmaOptions with{.bit_op = options.a == Type::b1 ? options.bit_op : isa::BitOp::none,
                          .ctas = detail::by_pairs(whole, k.target()) ? 2 : 1};
    auto kind = k.best_mma(multiplied(turned.a), multiplied(turned.b), options.accumulator, with);
    if (kind.shape.shape.m == 0) return;  // best_mma() has reported it
    kind.best = detail::suits_warpgroups(turned, tile);
    auto mma = k.tiled_mma(kind, tile, with);
    if (!whole_bytes(k, turned, mma, depth)) return;
    const bool spread = bits(options.a) < 8 || bits(options.b) < 8;
    const Type in_a = spread ? mma.stored_a() : turned.a, in_b = spread ? mma.stored_b() : turned.b;
    const bool aligns = detail::reads_lines(whole, k.target());
    const int stages = aligns ? 1 : options.stages;
    auto sA = k.shared("sA", in_a, mma.shared_a(stages, turned.a_major));
    auto sB = k.shared("sB", in_b, mma.shared_b(stages, turned.b_major));
    FirstStep first = tile.products > 1 || aligns ? FirstStep() : mma.first_step(sA[0], sB[0]);
    detail::GemmTiles tiles(k, options, mma, options.swap ? n : m, options.swap ? m : n, depth);
    if (options.batched) {
      A = A.matrix(k.block_z(), stride_a);
      B = B.matrix(k.block_z(), stride_b);
      tiles.select_matrix(k.block_z(), stride_c);
    }
    // Nobody stores the product of rows and columns that do not exist.
    const Global left = (options.swap ? B : A).any_rows_outside(),
                 right = (options.swap ? A : B).any_cols_outside();
    if (aligns) return tiles.compute(detail::aligned_operands(k, whole, mma, left, right, sA, sB));
    const Among share_rows = options.cluster_columns > 1 ? Among::row : Among::none,
                share_cols = options.cluster > 1 && mma.ctas() == 1 ? Among::column : Among::none;
    tiles.compute({[&](Scalar row, Scalar col, Scalar step, Scalar stage) {
                     const Global rows = left.tile({row, step}, {tile.m, tile.k}),
                                  cols = right.tile({step, col}, {tile.k, tile.n});
                     k.copy(rows, sA[stage], {.multicast = share_rows});
                     k.copy(mma.own_b(cols), sB[stage], {.multicast = share_cols});
                   },
                   [&](Accumulator& sum, Scalar stage, const detail::Operands::Next& next) {
                     mma.add(sum, sA[stage], sB[stage], first, next);
                   },
                   first.empty() ? std::function<void(Scalar)>{}
                                 : [&](Scalar stage) { mma.load(first, sA[stage], sB[stage]); }});
  });
}

Kernel gemm(const Gemm& options) { return described_gemm(options).keyed(key_of(options)); }

namespace {

// The sum of an element's partial results after split-K: the splits are stacked vertically. `rows`,
// `row` and `col` are those of what the tiles divide.
Scalar sum_of_splits(Builder& k, const Gemm& options, const Global& parts, const Scalar& rows,
                     const Scalar& row, const Scalar& col) {
  const auto apart = ceil_div(rows, options.tile.m) * options.tile.m;
  const auto part = [&](int i) { return k.read(parts.tile({row + apart * i, col}, {1, 1}), 0, 0); };
  Scalar sum = part(0);
  for (int i = 1; i < options.splits; ++i) sum = sum + part(i);
  return sum;
}

// The element of an m x n matrix for each thread; threads take contiguous elements.
std::pair<Scalar, Scalar> element_of_thread(Builder& k, int block, const Scalar& m,
                                            const Scalar& n) {
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() - block,
                     elements = m.constant().value_or(most) * n.constant().value_or(most);
  if (elements <= most) {
    const auto element = k.convert(k.block_x() * block + k.thread(), s32);
    return {element / n, element % n};
  }
  const auto element = k.convert(k.block_x(), s64) * block + k.convert(k.thread(), s64);
  const auto across = k.convert(n, s64);
  return {k.convert(element / across, s32), k.convert(element % across, s32)};
}

}  // namespace

static Kernel described_gemm_sum(const Gemm& options) {
  const Tile tile = filled_in(options);
  constexpr int block = 256;
  return kernel("gemm_sum", {.block = block}, [=](Builder& k) {
    if (!k.require(tile.m > 0 && tile.n > 0 && tile.k > 0,
                   fmt::format("illegal tile {} x {} x {}: expected sizes above 0", tile.m, tile.n,
                               tile.k)))
      return;
    const auto m = size(k, "m", options.m, 1), n = size(k, "n", options.n, 1);
    Tile of_c = tile;
    if (options.swap) std::swap(of_c.m, of_c.n);
    const Scalar &rows = options.swap ? n : m, &cols = options.swap ? m : n;
    if (!detail::sizes_are_possible(k, of_c, m, n, options.k) ||
        !detail::parts_are_possible(k, options, rows))
      return;
    if (k.target().has(Feature::dependent_launch)) k.griddepcontrol_wait();
    if (!options.stream_blocks) {
      auto parts = k.global("parts", options.accumulator, workspace(options, rows, cols));
      detail::Finisher finisher(k, options.epilogue, options.accumulator, options.c, m, n);
      const auto [row, col] = element_of_thread(k, block, m, n);
      k.when(row < m, [&, row = row, col = col] {
        const Scalar &i = options.swap ? col : row, &j = options.swap ? row : col;
        finisher.store(sum_of_splits(k, options, parts, rows, i, j), row, col);
      });
      return;
    }
    const auto steps = detail::units_each(ceil_div(size(k, "k", options.k, 1), tile.k));
    auto parts = k.global("parts", options.accumulator, workspace(options, m, n));
    detail::Finisher finisher(k, options.epilogue, options.accumulator, options.c, m, n);
    const auto down = ceil_div(m, tile.m), across = ceil_div(n, tile.n);
    const Type type = StreamShare::counter(down, across, steps);
    const auto as = [&](const Scalar& x) {
      return x.constant() || bits(x.type()) == bits(type) ? x : k.convert(x, type);
    };
    const auto number = k.convert(k.block_x(), type), each = as(steps),
               units = as(down) * as(across) * each;
    const Scalar workers = options.stream_blocks;
    const auto first = StreamShare::owner(units, workers, number * each),
               last = StreamShare::owner(units, workers, number * each + each - 1);
    auto [row, col] = k.block_tile(m, n, tile, options.group);
    const auto top = k.convert(row, s32) * tile.m, left = k.convert(col, s32) * tile.n;
    const auto finish = [&](const Scalar& i, const Scalar& j) {
      auto sum = k.variable(k.constant(options.accumulator, 0));
      k.loop(first, last + 1, 1, [&](Scalar worker) {
        const auto begins = StreamShare::of(units, workers, worker).begin / each;
        const auto slot = k.convert(worker, s32) * 2 + select(begins == number, 0, 1);
        sum = sum + k.read(parts.tile({slot * tile.m + i, j}, {1, 1}), 0, 0);
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

Kernel gemm_sum(const Gemm& options) { return described_gemm_sum(options).keyed(key_of(options)); }

}  // namespace tartan::TARTAN_ABI::kernels
