// SPDX-License-Identifier: Apache-2.0
// Grouped GEMM, as in a mixture of experts: each group of rows of A has a B of its own. Two layouts
// of A, of the two phases of inference.
//
//   A   rows x depth              bf16, row-major
//   B   groups x depth x n        bf16, a row-major matrix for each group
//   C   rows x n                  bf16, row-major
//
// Contiguous (prefill: the host knows how many rows each group has): the groups follow each other
// in A, each filled up to a multiple of the tile's rows. `group_of` has one group for each tile of
// rows; -1 marks a tile that belongs to none. A CTA reads its entry and multiplies by that B.
//
// Masked (decoding: only the GPU knows): A and C have `most` rows for each group, of which
// `rows[group]` count. blockIdx.z is the group. A CTA whose tile begins behind the last row has
// nothing to do; the rows of a tile behind it are computed, as the rows of A that nobody filled are
// read, but not stored.
//
// B.matrix(group) is the group's matrix: the third coordinate of the TMA load, which a thread may
// have read from memory. Everything that decides how many stages a pipeline fills is read outside
// of roles(), so that producers and consumers agree.
#include <numeric>

#include "gallery.h"

using namespace tartan;

namespace {

constexpr Tile tile{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
const KernelOptions options{.block = tile.threads(), .producers = 4};
constexpr int stages = 3;

Kernel contiguous() {
  return kernel("contiguous", options, [](Builder& k) {
    auto rows = k.param("rows", s32, tile.m), n = k.param("n", s32, 8),
         depth = k.param("depth", s32, 8);
    auto group_of = k.global("group_of", s32, row_major(1, rows / tile.m));
    auto A = k.global("A", bf16, row_major(rows, depth));
    auto B = k.global("B", bf16, row_major(depth, n));
    auto C = k.global("C", bf16, row_major(rows, n));

    auto mma = k.tiled_mma(k.best_mma(bf16, bf16, f32), tile);
    auto sA = k.shared("sA", bf16, mma.shared_a(stages, Major::row));
    auto sB = k.shared("sB", bf16, mma.shared_b(stages, Major::row));
    auto row = k.block_y(), col = k.block_x();
    auto group = k.read(group_of, 0, row);
    auto steps = select(group >= 0, ceil_div(depth, tile.k), 0);
    auto expert = B.matrix(k.convert(maximum(group, 0), u32));

    k.roles([&] {
      auto sum = mma.accumulator();
      auto fill = [&](Scalar t, Scalar stage) {
        k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
        k.copy(expert.tile({t, col}, {tile.k, tile.n}), sB[stage]);
      };
      auto use = [&](Scalar, Scalar stage) { mma.add(sum, sA[stage], sB[stage]); };
      k.pipeline({.stages = stages}, steps, fill, use);
      k.store(C.tile({row, col}, {tile.m, tile.n}), convert(sum, bf16));  // zeros where no group is
    });
  });
}

Kernel masked() {
  return kernel("masked", options, [](Builder& k) {
    auto most = k.param("most", s32), n = k.param("n", s32, 8), depth = k.param("depth", s32, 8),
         groups = k.param("groups", s32);
    auto rows = k.global("rows", s32, row_major(1, groups));
    auto row = k.block_y(), col = k.block_x(), group = k.block_z();
    auto A = k.global("A", bf16, row_major(most, depth)).matrix(group);
    auto B = k.global("B", bf16, row_major(depth, n)).matrix(group);
    auto C = k.global("C", bf16, row_major(most, n)).matrix(group);

    auto mma = k.tiled_mma(k.best_mma(bf16, bf16, f32), tile);
    auto sA = k.shared("sA", bf16, mma.shared_a(stages, Major::row));
    auto sB = k.shared("sB", bf16, mma.shared_b(stages, Major::row));
    auto count = k.convert(k.read(rows, 0, group), u32), first = row * tile.m;
    auto steps = select(first < count, ceil_div(depth, tile.k), 0);

    k.roles([&] {
      auto sum = mma.accumulator();
      auto fill = [&](Scalar t, Scalar stage) {
        k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
        k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage]);
      };
      auto use = [&](Scalar, Scalar stage) { mma.add(sum, sA[stage], sB[stage]); };
      k.pipeline({.stages = stages}, steps, fill, use);
      for_each(sum, [&](Scalar x, ElementPlace at) {
        auto i = first + at.row, j = col * tile.n + at.col;
        k.write_if(C, i, j, k.convert(x, bf16), (i < count) & (j < n));
      });
    });
  });
}

// C of one group: rows first .. first + count - 1.
template <typename T>
void add_group(std::vector<double>& expected, const std::vector<T>& a, const std::vector<T>& b,
               int first, int count, int group, int n, int depth) {
  const std::span all_a(a), all_b(b);
  const auto out = reference::product(
      reference::row_major(all_a.subspan(first * depth, count * depth), count, depth),
      reference::row_major(all_b.subspan(group * depth * n, depth * n), depth, n));
  std::ranges::copy(out, expected.begin() + first * n);
}

void run_contiguous(gallery::Session& session, const std::vector<int>& counts, int n, int depth) {
  std::vector<std::int32_t> group_of;
  std::vector<int> first;
  for (int group = 0; group < static_cast<int>(counts.size()); ++group) {
    first.push_back(static_cast<int>(group_of.size()) * tile.m);
    group_of.insert(group_of.end(), (counts[group] + tile.m - 1) / tile.m, group);
  }
  group_of.push_back(-1);
  const int rows = static_cast<int>(group_of.size()) * tile.m;
  std::vector<host::bf16> a(rows * depth), c(rows * n);
  std::vector<double> expected(rows * n);
  const auto b = gallery::numbers<host::bf16>(counts.size() * depth * n, 2);
  for (int group = 0; group < static_cast<int>(counts.size()); ++group) {
    const auto part = gallery::numbers<host::bf16>(counts[group] * depth, 3 + group);
    std::ranges::copy(part, a.begin() + first[group] * depth);  // zeros up to the next tile
    add_group(expected, a, b, first[group], counts[group], group, n, depth);
  }
  session.run(contiguous(), {tile.blocks(1, n), static_cast<unsigned>(group_of.size())}, rows, n,
              depth, in(group_of), in(a), in(b), out(c));
  session.expect("contiguous groups", c, expected, n, {.relative = 0x1p-8, .absolute = 0x1p-14});
}

void run_masked(gallery::Session& session, const std::vector<int>& counts, int most, int n,
                int depth) {
  const int groups = static_cast<int>(counts.size());
  const auto a = gallery::numbers<host::bf16>(groups * most * depth, 1),
             b = gallery::numbers<host::bf16>(groups * depth * n, 2);
  std::vector<host::bf16> c(groups * most * n, host::bf16(9));  // what is masked stays 9
  std::vector<double> expected(c.size(), 9);
  for (int group = 0; group < groups; ++group)
    add_group(expected, a, b, group * most, counts[group], group, n, depth);
  session.run(masked(), {tile.blocks(1, n), tile.blocks(most, 1), static_cast<unsigned>(groups)},
              most, n, depth, groups, in(counts), in(a), in(b), in_out(c));
  session.expect("masked groups", c, expected, n, {.relative = 0x1p-8, .absolute = 0x1p-14});
}

}  // namespace

int main(int argc, char** argv) {
  return gallery::main(argc, argv, [](gallery::Session& session) {
    run_contiguous(session, {64, 10, 0, 130}, 72, 200);
    run_contiguous(session, {1}, 8, 8);
    run_masked(session, {70, 0, 1}, 100, 72, 72);
  });
}
