// SPDX-License-Identifier: Apache-2.0
// Clusters: distributed shared memory, cluster barriers and sums over a cluster, on the emulator
// with all checks, against loops in C++.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <random>

#include "tests/support/engine.h"

namespace tartan {
namespace {

constexpr int clusters[] = {1, 2, 4, 8};

Device device_with_checks() {
  return test::open_engine({.hardware = "sm_90a", .checks = Checks::all});
}

template <typename... Arguments>
void run_on(const char* target, const Kernel& kernel, unsigned grid,
            const Arguments&... arguments) {
  static Device device = device_with_checks();
  const auto compiled = compile(kernel, Target::parse(target)->arch);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_TRUE(compiled->warnings.ok()) << compiled->warnings.text();
  EXPECT_EQ(compiled->warnings.size(), 0U) << compiled->warnings.text();
  const auto done = run(device, *compiled, {grid}, arguments...);
  EXPECT_TRUE(done) << done.diags().text();
}

// Each CTA gives its numbers to the next one by write() and takes them back by read().
TEST(Cluster, PassesNumbersAround) {
  for (const int cluster : clusters)
    for (const bool writes : {false, true}) {
      SCOPED_TRACE(fmt::format("{} CTAs, {}", cluster, writes ? "write" : "read"));
      const auto kernel =
          tartan::kernel("ring", {.block = 64, .cluster = cluster}, [=](Builder& k) {
            auto out = k.global("out", u32, row_major(64, 64));
            auto s = k.shared("s", u32, row_major(4, 64));
            auto next = (k.cluster_rank() + 1) % k.cluster_size();
            auto x = k.block_x() * 100 + k.thread();
            k.cluster_barrier();
            if (writes) k.write(s.of_cta(next), 2, k.thread(), x);
            else k.write(s, 2, k.thread(), x);
            k.cluster_barrier();
            auto got =
                writes ? k.read(s, 2, 63 - k.thread()) : k.read(s.of_cta(next), 2, 63 - k.thread());
            k.write(out.tile({k.block_x(), 0}, {1, 64}), 0, k.thread(), got);
            k.cluster_barrier();
          });
      std::vector<std::uint32_t> got(64 * 64, 7);
      run_on("sm_90a", kernel, 16, in_out(got));
      for (int block = 0; block < 16; ++block)
        for (int i = 0; i < 64; ++i) {
          const int first = block / cluster * cluster, rank = block % cluster;
          const int from = first + (rank + (writes ? cluster - 1 : 1)) % cluster;
          EXPECT_EQ(got[static_cast<std::size_t>(64 * block + i)],
                    static_cast<std::uint32_t>(from * 100 + 63 - i));
        }
    }
}

// Every access of a tile of another CTA: vectors, guarded reads, copies both ways, atomics.
TEST(Cluster, AccessesOfEveryWidth) {
  for (const Type type : {f16, f32, f64}) {
    SCOPED_TRACE(name(type));
    const int bytes = bits(type) / 8;
    const auto kernel = tartan::kernel("widths", {.block = 32, .cluster = 2}, [=](Builder& k) {
      auto from = k.global("in", type, row_major(16, 64));
      auto out = k.global("out", type, row_major(16, 64));
      auto count = k.global("count", u32, row_major(1, 16));
      auto s = k.shared("s", type, row_major(8, 64)), t = k.shared("t", type, row_major(8, 64));
      auto n = k.shared("n", u32, row_major(1, 2));
      auto other = k.cluster_rank() ^ 1;
      k.when(k.thread() < 2, [&] { k.write(n, 0, k.thread(), 0); });
      k.cluster_barrier();
      k.copy(from.tile({k.block_x(), 0}, {8, 64}), s.of_cta(other));  // global to another CTA
      k.atomic(AtomicOp::add, n.of_cta(other), 0, 1, k.cluster_rank() + 1);
      k.cluster_barrier();
      auto there = s.of_cta(other);
      // What it has is what this CTA gave it: rows 0 to 3 as vectors, 4 guarded, the rest copied.
      k.loop(0, 4, 1, [&](Scalar row) {
        auto x = k.read_vector(there, row, k.lane() * 2, 2);
        k.write_vector(t.of_cta(0), row + 4 * k.cluster_rank(), k.lane() * 2, x);
      });
      k.when(k.lane() < 16, [&] {
        auto x = k.read_if(there, 4, k.lane(), k.lane() < 8);
        k.write(out.tile({8 + k.block_x(), 0}, {1, 64}), 0, k.lane(), x);
      });
      k.cluster_barrier();
      k.when(k.cluster_rank() == 0, [&] { k.copy(t, out.tile({0, 0}, {8, 64})); });
      k.when(k.cluster_rank() == 1, [&] {
        k.copy(there.tile({1, 0}, {4, 64}), out.tile({3, 0}, {4, 64}));
      });
      k.when(k.thread() == 0, [&] { k.write(count, 0, k.block_x(), k.read(n, 0, 1)); });
      k.cluster_barrier();
    });
    std::vector<std::byte> in_bytes(static_cast<std::size_t>(16 * 64 * bytes));
    std::mt19937 random(1);
    for (auto& each : in_bytes) each = static_cast<std::byte>(random());
    std::vector<std::uint32_t> count(16, 9);
    Device device = device_with_checks();
    const auto compiled = compile(kernel, *Target::parse("sm_90a"));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    Buffer from = *device.allocate(in_bytes.size()), out = *device.allocate(in_bytes.size()),
           counts = *device.allocate(64);
    ASSERT_TRUE(from.write(in_bytes) && out.fill(0) && counts.write(count));
    auto loaded = device.load(compiled->ptx, "widths")->kernel("widths");
    ASSERT_TRUE(launch(*loaded, *compiled, {2}, Arguments().add(from).add(out).add(counts)));
    const auto done = device.synchronize();
    ASSERT_TRUE(done) << done.diags().text();
    for (const Finding& each : device.findings()) ADD_FAILURE() << each.message;
    const auto got = *out.read_all<std::byte>();
    const auto at = [&](const std::vector<std::byte>& of, int row, int col) {
      const auto first = of.begin() + (row * 64 + col) * bytes;
      return std::vector<std::byte>(first, first + bytes);
    };
    for (int col = 0; col < 64; ++col) {
      for (int row = 0; row < 4; ++row) {
        EXPECT_EQ(at(got, row, col), at(in_bytes, row, col));
        EXPECT_EQ(at(got, 4 + row, col), at(in_bytes, 8 + row, col));
        EXPECT_EQ(at(got, 12 + row, col), at(in_bytes, 12 + row, col)) << "copied";
      }
    }
    for (int block = 0; block < 2; ++block)
      for (int col = 0; col < 16; ++col) {
        if (8 + block >= 12) continue;
        EXPECT_EQ(at(got, 8 + block, col),
                  col < 8 ? at(in_bytes, 8 * block + 4, col)
                          : std::vector<std::byte>(static_cast<std::size_t>(bytes)));
      }
    EXPECT_EQ((*counts.read_all<std::uint32_t>())[0], 2U * 32);
    EXPECT_EQ((*counts.read_all<std::uint32_t>())[1], 1U * 32);
  }
}

// Fragments to and from another CTA: no ldmatrix, no stmatrix.
TEST(Cluster, MovesFragments) {
  const auto kernel = tartan::kernel("fragments", {.block = 32, .cluster = 2}, [](Builder& k) {
    auto A = k.global("A", f16, row_major(32, 16));
    auto D = k.global("D", f32, row_major(32, 8));
    auto a = k.shared("a", f16, row_major(16, 16));
    auto d = k.shared("d", f32, row_major(16, 8));
    auto other = k.cluster_rank() ^ 1;
    k.copy(A.tile({k.block_x(), 0}, {16, 16}), a);
    k.cluster_barrier();
    auto left = k.load(operand_a(m16n8k16, f16), a.of_cta(other));
    auto right = k.load(operand_b(m16n8k16, f16), a.tile({0, 0}, {8, 16}).transposed());
    k.store(d.of_cta(other), k.mma(left, right, zero(f32)));
    k.cluster_barrier();
    k.copy(d, D.tile({k.block_x(), 0}, {16, 8}));
  });
  std::vector<host::f16> a(32 * 16);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = host::f16(static_cast<double>(i * 7 % 11) - 5);
  std::vector<float> d(32 * 8);
  run_on("sm_90a", kernel, 2, in(a), out(d));
  // CTA r gives the other one A_other * A_r^T (its first 8 rows).
  for (int r = 0; r < 2; ++r)
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        double sum = 0;
        for (int t = 0; t < 16; ++t)
          sum += static_cast<double>(a[static_cast<std::size_t>((16 * r + i) * 16 + t)]) *
                 static_cast<double>(a[static_cast<std::size_t>((16 * (1 - r) + j) * 16 + t)]);
        EXPECT_EQ(d[static_cast<std::size_t>((16 * r + i) * 8 + j)], sum);
      }
}

struct SplitK {
  Tile tile;
  int producers, cluster;
  Type accumulator;
};

Kernel split_k(const SplitK& with) {
  return kernel(
      "split_k",
      {.block = with.tile.threads(), .producers = with.producers, .cluster = with.cluster},
      [=](Builder& k) {
        const Tile& tile = with.tile;
        const Type type = with.accumulator == s32 ? s8 : f16;
        auto m = k.param("m", s32), n = k.param("n", s32, 16), depth = k.param("depth", s32, 16);
        auto A = k.global("A", type, row_major(m, depth)),
             B = k.global("B", type, col_major(depth, n)),
             C = k.global("C", with.accumulator, row_major(m, n));
        auto mma = k.tiled_mma(k.best_mma(type, type, with.accumulator), tile);
        auto sA = k.shared("sA", type, mma.shared_a(3)), sB = k.shared("sB", type, mma.shared_b(3));
        auto [row, col] = k.cluster_tile(m, n, tile);
        const auto own = StreamShare::of(k.convert(ceil_div(depth, tile.k), u32), k.cluster_size(),
                                         k.cluster_rank());
        k.roles([&, row = row, col = col] {
          auto sum = mma.accumulator();
          k.pipeline(
              {.stages = 3}, own.end - own.begin,
              [&](Scalar t, Scalar stage) {
                k.copy(A.tile({row, t + own.begin}, {tile.m, tile.k}), sA[stage]);
                k.copy(B.tile({t + own.begin, col}, {tile.k, tile.n}), sB[stage]);
              },
              [&](Scalar, Scalar stage) { sum = mma(sum, sA[stage], sB[stage]); });
          k.store(C.tile({row, col}, {tile.m, tile.n})
                      .tile({0, k.cluster_rank()}, {tile.m, tile.n / with.cluster}),
                  reduce_scatter(sum));
        });
      });
}

template <typename In, typename Out>
void expect_split_k(const char* target, const SplitK& with, int m, int n, int depth) {
  SCOPED_TRACE(fmt::format("{} {}x{}x{} warps {}x{} producers {} cluster {} {} for {}x{}x{}",
                           target, with.tile.m, with.tile.n, with.tile.k, with.tile.warps_m,
                           with.tile.warps_n, with.producers, with.cluster, name(with.accumulator),
                           m, n, depth));
  std::mt19937 random(7);
  std::vector<In> a(static_cast<std::size_t>(m * depth)), b(static_cast<std::size_t>(n * depth));
  for (In& each : a) each = In(static_cast<float>(static_cast<int>(random() % 9) - 4));
  for (In& each : b) each = In(static_cast<float>(static_cast<int>(random() % 9) - 4));
  std::vector<Out> c(static_cast<std::size_t>(m * n));
  run_on(target, split_k(with), with.tile.blocks(m, n) * static_cast<unsigned>(with.cluster), m, n,
         depth, in(a), in(b), out(c));
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int t = 0; t < depth; ++t)
        sum += static_cast<double>(a[static_cast<std::size_t>(i * depth + t)]) *
               static_cast<double>(b[static_cast<std::size_t>(j * depth + t)]);
      ASSERT_EQ(static_cast<double>(c[static_cast<std::size_t>(i * n + j)]), sum) << i << ' ' << j;
    }
}

TEST(Cluster, SplitsKDeterministically) {
  const Tile warps{.m = 64, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2},
      groups{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
  for (const int cluster : {1, 2, 4}) {
    expect_split_k<host::f16, float>("sm_90a", {warps, 0, cluster, f32}, 70, 80, 144);
    expect_split_k<host::f16, float>("sm_90a", {groups, 4, cluster, f32}, 70, 80, 272);
  }
  // Fewer k-tiles than CTAs; producers beside mma.sync; exact integers; no clusters.
  expect_split_k<host::f16, float>("sm_90a", {groups, 4, 8, f32}, 64, 64, 192);
  expect_split_k<host::f16, float>("sm_90a", {warps, 1, 2, f32}, 64, 64, 96);
  expect_split_k<std::int8_t, std::int32_t>("sm_90a", {warps, 0, 2, s32}, 64, 64, 96);
  expect_split_k<host::f16, float>("sm_80", {warps, 0, 1, f32}, 70, 80, 144);
}

// Sums of f32 that rounding makes depend on their order: each CTA's result is that of rank order.
TEST(Cluster, AddsInTheOrderOfRanks) {
  for (const int cluster : clusters) {
    const auto kernel = tartan::kernel("order", {.block = 32, .cluster = cluster}, [](Builder& k) {
      auto from = k.global("in", f32, row_major(8, 32));
      auto sums = k.global("sums", f32, row_major(8, 32)),
           most = k.global("most", f32, row_major(8, 32));
      auto x = k.read(from.tile({k.block_x(), 0}, {1, 32}), 0, k.lane());
      k.write(sums.tile({k.block_x(), 0}, {1, 32}), 0, k.lane(),
              cluster_sum(RowValues{x, x * 3})[0]);
      k.write(most.tile({k.block_x(), 0}, {1, 32}), 0, k.lane(),
              cluster_maximum(ColumnValues{x})[0]);
    });
    std::vector<float> from(8 * 32), sums(8 * 32), most(8 * 32);
    std::mt19937 random(3);
    for (float& each : from)
      each = std::ldexp(static_cast<float>(random() % 1000), static_cast<int>(random() % 30));
    run_on("sm_90a", kernel, 8, in(from), out(sums), out(most));
    for (int block = 0; block < 8; ++block)
      for (int i = 0; i < 32; ++i) {
        const auto of = [&](int rank) {
          return from[static_cast<std::size_t>((block / cluster * cluster + rank) * 32 + i)];
        };
        float sum = of(0), largest = of(0);
        for (int rank = 1; rank < cluster; ++rank)
          sum += of(rank), largest = std::max(largest, of(rank));
        EXPECT_EQ(sums[static_cast<std::size_t>(block * 32 + i)], sum);
        EXPECT_EQ(most[static_cast<std::size_t>(block * 32 + i)], largest);
      }
  }
}

}  // namespace
}  // namespace tartan
