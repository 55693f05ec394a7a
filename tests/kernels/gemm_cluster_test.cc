// SPDX-License-Identifier: Apache-2.0
// Clusters of blocks that multicast B.
#include <regex>
#include <set>
#include <tuple>

#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Launch;
using testing_gemm::Product;
using testing_gemm::target_of;

constexpr const char* targets[] = {"sm_80", "sm_90", "sm_90a"};

bool runs_here(const Target& target) {
  const Device* const gpu = testing_gemm::gpu();
  return !gpu || target.arch.sm <= gpu->arch().sm;
}

Gemm of_warpgroups(int cluster) {
  Gemm out{.stages = 2};
  out.tile = {.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
  out.producers = 4, out.cluster = cluster;
  return out;
}

bool multicasts(const Compiled& compiled) {
  return compiled.ptx.find(".multicast::cluster [") != std::string::npos;
}

// Tile rows that fill clusters, and some that do not: the last blocks have nothing to store.
TEST(GemmCluster, SharesB) {
  int products = 0;
  for (const char* name : targets)
    for (const int cluster : {2, 4, 8})
      for (const int m : {64, 200, 520})
        for (const bool fixed : {false, true})
          for (const Major b_major : {Major::col, Major::row}) {
            const Target target = target_of(name);
            if (!runs_here(target)) continue;
            SCOPED_TRACE(fmt::format("{}, {} blocks, {} rows, {}", name, cluster, m, fixed));
            Gemm options = of_warpgroups(cluster);
            options.b_major = b_major;
            const Product product(options, m, 136, 200, fixed);
            const Kernel gemm = kernels::gemm(product.options);
            const Launch launch = product.launch();
            EXPECT_EQ(launch.grid.x % static_cast<unsigned>(cluster), 0u);
            EXPECT_EQ(product.wrong(testing_gemm::run(gemm, target, launch)), 0);
            const auto compiled = compile(gemm, target);
            EXPECT_EQ(multicasts(*compiled), target.arch.suffix == 'a');
            EXPECT_EQ(compiled->cluster, cluster);
            ++products;
          }
  EXPECT_GE(products, 36);
}

// Operands with lines across k in several panels: their descriptors hold the panel distance, in the
// bits where a block's shared addresses hold its rank in the cluster.
TEST(GemmCluster, PanelsAcrossK) {
  const Target target = target_of("sm_90a");
  if (!runs_here(target)) GTEST_SKIP();
  for (const Type type : {f16, bf16})
    for (const int cluster : {2, 4})
      for (const Major a_major : {Major::row, Major::col})
        for (const Major b_major : {Major::col, Major::row})
          for (const int columns : {128, 192, 256}) {
            SCOPED_TRACE(fmt::format("{}, {} blocks, {} columns", name(type), cluster, columns));
            Gemm options = of_warpgroups(cluster);
            options.a = options.b = type, options.a_major = a_major, options.b_major = b_major;
            options.tile.m = 128, options.tile.warps_m = 8, options.tile.n = columns;
            const Product product(options, 264, columns + 8, 136);
            EXPECT_EQ(product.wrong(testing_gemm::run(kernels::gemm(product.options), target,
                                                      product.launch())),
                      0);
          }
}

TEST(GemmCluster, EveryTypeAndTileAfterTile) {
  if (!runs_here(target_of("sm_90a"))) GTEST_SKIP();
  for (const Type type : {f16, f32, Type::s8, Type::e4m3})
    for (const unsigned blocks : {2u, 6u, 8u}) {
      SCOPED_TRACE(fmt::format("{}, {} blocks", name(type), blocks));
      Gemm options = of_warpgroups(2);
      options.a = options.b = type, options.tile.k = 1024 / bits(type);
      if (type == Type::s8) options.accumulator = options.c = s32;
      options.persistent = true;
      const Product product(options, 328, 200, 272);
      Launch launch = product.launch();
      launch.grid = {blocks};
      EXPECT_EQ(product.wrong(
                    testing_gemm::run(kernels::gemm(product.options), target_of("sm_90a"), launch)),
                0);
    }
}

// Clusters of several columns: their rows share A. The last tile rows and columns may be missing.
TEST(GemmCluster, SharesAAndB) {
  for (const char* name : {"sm_90", "sm_90a"})
    for (const auto& [cluster, columns] : {std::pair{2, 2}, {1, 2}, {4, 2}, {1, 4}, {2, 4}})
      for (const int m : {64, 200})
        for (const int n : {64, 136, 328})
          for (const bool fixed : {false, true})
            for (const bool swap : {false, true}) {
              const Target target = target_of(name);
              if (!runs_here(target)) continue;
              SCOPED_TRACE(fmt::format("{}, {} x {} blocks, {} x {}, {}, {}", name, cluster,
                                       columns, m, n, fixed, swap));
              Gemm options = of_warpgroups(cluster);
              options.cluster_columns = columns, options.swap = swap;
              const Product product(options, m, n, 200, fixed);
              const Kernel gemm = kernels::gemm(product.options);
              const Launch launch = product.launch();
              EXPECT_EQ(launch.grid.x % static_cast<unsigned>(cluster * columns), 0u);
              EXPECT_EQ(product.wrong(testing_gemm::run(gemm, target, launch)), 0);
              const auto compiled = compile(gemm, target);
              EXPECT_EQ(multicasts(*compiled), target.arch.suffix == 'a');
              EXPECT_EQ(compiled->cluster, cluster * columns);
            }
}

TEST(GemmCluster, SharesAAndBTileAfterTile) {
  if (!runs_here(target_of("sm_90a"))) GTEST_SKIP();
  for (const Type type : {f16, Type::s8, Type::e4m3})
    for (const Major a_major : {Major::row, Major::col})
      for (const unsigned blocks : {4u, 8u, 12u}) {
        if (type != f16 && a_major == Major::col) continue;
        SCOPED_TRACE(fmt::format("{}, {} blocks", name(type), blocks));
        Gemm options = of_warpgroups(2);
        options.cluster_columns = 2, options.a_major = a_major;
        options.a = options.b = type, options.tile.k = 1024 / bits(type);
        options.tile.m = 128, options.tile.warps_m = 8;
        if (type == Type::s8) options.accumulator = options.c = s32;
        options.persistent = true;
        const Product product(options, 328, 200, 272);
        Launch launch = product.launch();
        launch.grid = {blocks};
        EXPECT_EQ(product.wrong(testing_gemm::run(kernels::gemm(product.options),
                                                  target_of("sm_90a"), launch)),
                  0);
      }
}

// Lines in groups of eight that the CTAs cannot divide evenly: the first ones load a group more.
// The edge of B lies in the larger shares, in the smaller ones, and between shares.
TEST(GemmCluster, SharesOfUnequalSize) {
  const Target target = target_of("sm_90a");
  if (!runs_here(target)) GTEST_SKIP();
  const struct {
    int cluster, columns, width;
    const char* boxes;
  } cases[] = {{2, 1, 120, "64 x 64 or 56"},
               {2, 2, 40, "64 x 24 or 16"},
               {4, 1, 72, "64 x 24 or 16"},
               {4, 2, 88, "64 x 24 or 16"},
               {8, 1, 136, "64 x 24 or 16"}};
  for (const auto& [cluster, columns, width, boxes] : cases)
    for (const int beyond : {8, 20, width / 2, width - 8, width})
      for (const bool fixed : {false, true})
        for (const bool swap : {false, true}) {
          SCOPED_TRACE(fmt::format("{} x {} blocks, {} columns, {}, {}", cluster, columns,
                                   width + beyond, fixed, swap));
          Gemm options = of_warpgroups(cluster);
          options.cluster_columns = columns, options.tile.n = width, options.swap = swap;
          const int of_tiles = width + beyond, others = 64 * cluster - 8;
          const Product product(options, swap ? of_tiles : others, swap ? others : of_tiles, 200,
                                fixed);
          const Kernel gemm = kernels::gemm(product.options);
          EXPECT_EQ(product.wrong(testing_gemm::run(gemm, target, product.launch())), 0);
          const std::string text = explain(compile(gemm, target)->choices);
          EXPECT_NE(text.find(fmt::format("multicast::cluster, boxes of {}", boxes)),
                    std::string::npos)
              << text;
        }
}

// A stage is filled by the CTAs in its row and its column: only they are told that it is free.
TEST(GemmCluster, ReleasesToItsRowAndColumn) {
  const struct {
    int cluster, columns, arrivals;
  } cases[] = {{1, 1, 4}, {2, 1, 8}, {1, 4, 16}, {2, 2, 12}, {2, 4, 20}, {4, 2, 20}};
  for (const auto& [cluster, columns, arrivals] : cases) {
    SCOPED_TRACE(fmt::format("{} x {} blocks", cluster, columns));
    Gemm options = of_warpgroups(cluster);
    options.cluster_columns = columns;
    const auto compiled =
        compile(kernels::gemm(Product(options, 512, 512, 200).options), target_of("sm_90a"));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const std::regex init(R"(mbarrier\.init\.shared\.b64 \[%r\d+\], (\d+);)");
    std::multiset<int> counts;
    for (std::sregex_iterator i(compiled->ptx.begin(), compiled->ptx.end(), init), end; i != end;
         ++i)
      counts.insert(std::stoi((*i)[1]));
    EXPECT_EQ(counts, (std::multiset<int>{1, 1, arrivals, arrivals}));
  }
}

// Clusters share what the CTAs of a split read; those beyond the last tile store no partial sums.
TEST(GemmCluster, SharesInSplits) {
  const Target target = target_of("sm_90a");
  if (!runs_here(target)) GTEST_SKIP();
  for (const auto& [cluster, columns] : {std::pair{2, 1}, {4, 1}, {2, 2}, {1, 4}})
    for (const auto& [m, n, depth, splits] : {std::tuple{200, 136, 392, 3}, {64, 328, 128, 4}}) {
      SCOPED_TRACE(fmt::format("{} x {} blocks, {} x {} x {}, {} splits", cluster, columns, m, n,
                               depth, splits));
      Gemm options = of_warpgroups(cluster);
      options.cluster_columns = columns, options.splits = splits;
      const Product product(options, m, n, depth, true);
      const auto compiled = compile(kernels::gemm(product.options), target);
      ASSERT_TRUE(compiled) << compiled.diags().text();
      EXPECT_TRUE(multicasts(*compiled));
      Launch parts = product.launch();
      parts.grid.y = static_cast<unsigned>(splits);
      parts.arguments = [&, m = m, n = n](Device& device, Arguments& arguments,
                                          std::vector<Buffer>& buffers) {
        product.add_inputs(device, arguments, buffers);
        Buffer out = *device.allocate(
            static_cast<std::size_t>(product.options.workspace_elements(m, n)) * 4);
        EXPECT_TRUE(out.fill(0xFF));
        arguments.add(out);
        return out;
      };
      const auto workspace = testing_gemm::run(kernels::gemm(product.options), target, parts);
      Launch sum = product.launch();
      sum.grid = {static_cast<unsigned>((m * n + 255) / 256)};
      sum.arguments = [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
        buffers.push_back(testing_gemm::buffer_of(device, workspace));
        arguments.add(buffers.back());
        return product.add_output(device, arguments);
      };
      EXPECT_EQ(product.wrong(testing_gemm::run(kernels::gemm_sum(product.options), target, sum)),
                0);
    }
}

// C = A B + C, in place: a block beyond the last tile row must not add again.
TEST(GemmCluster, AddsOnce) {
  for (const char* name : targets) {
    const Target target = target_of(name);
    if (!runs_here(target)) continue;
    for (const bool fixed : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, {}", name, fixed));
      Gemm options = of_warpgroups(4);
      options.epilogue.beta = true;
      const Product product(options, 192, 72, 64, fixed);  // three rows of tiles
      const Launch launch{{product.options.blocks(192, 72)},
                          [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
                            product.add_inputs(device, arguments, buffers);
                            Buffer c = testing_gemm::buffer_of(
                                device,
                                testing_numbers::encode(f32, std::vector<int>(192 * 72, 5)));
                            arguments.add(c).add(3.0F);
                            return c;
                          }};
      EXPECT_EQ(launch.grid.x, 8u);
      const auto got = testing_gemm::run(kernels::gemm(product.options), target, launch);
      EXPECT_EQ(product.wrong(got, [&](int i, int j) { return product.sum(i, j) + 15; }), 0);
    }
  }
}

// Rows of B that TMA cannot address are copied by each block separately.
TEST(GemmCluster, CopiesWhatCannotBeShared) {
  for (const char* name : targets) {
    const Target target = target_of(name);
    if (!runs_here(target)) continue;
    SCOPED_TRACE(name);
    const Product product(of_warpgroups(2), 136, 61, 131);
    const Kernel gemm = kernels::gemm(product.options);
    EXPECT_EQ(product.wrong(testing_gemm::run(gemm, target, product.launch())), 0);
    const auto compiled = compile(gemm, target);
    EXPECT_FALSE(multicasts(*compiled));
    EXPECT_EQ(compiled->ptx.find("barrier.cluster"), std::string::npos);
  }
}

TEST(GemmCluster, ExplainsWhatIsShared) {
  const auto compiled =
      compile(kernels::gemm(Product(of_warpgroups(2), 128, 128, 64).options), target_of("sm_90a"));
  ASSERT_TRUE(compiled);
  const std::string text = explain(compiled->choices);
  EXPECT_NE(text.find("cp.async.bulk.tensor.multicast::cluster, boxes of 64 x 32"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("to all CTAs of the cluster"), std::string::npos) << text;
  Gemm square = of_warpgroups(2);
  square.cluster_columns = 2;
  const auto shared =
      compile(kernels::gemm(Product(square, 128, 128, 64).options), target_of("sm_90a"));
  ASSERT_TRUE(shared) << shared.diags().text();
  for (const char* of : {"to all CTAs in its row of the cluster", "in its column of the cluster"})
    EXPECT_NE(explain(shared->choices).find(of), std::string::npos) << of;
}

// Elsewhere NVIDIA's assembler advises against multicast: each block loads its own copy.
TEST(GemmCluster, MulticastsWhereThatIsFast) {
  for (const auto& [name, fast] : {std::pair{"sm_90", false},
                                   {"sm_90a", true},
                                   {"sm_100", false},
                                   {"sm_100a", true},
                                   {"sm_100f", true},
                                   {"sm_103a", true},
                                   {"sm_120", false},
                                   {"sm_120a", false},
                                   {"sm_121f", false}}) {
    const auto compiled =
        compile(kernels::gemm(Product(of_warpgroups(2), 128, 128, 64).options), target_of(name));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_EQ(multicasts(*compiled), fast) << name;
    const bool explained =
        explain(compiled->choices).find("not .multicast::cluster") != std::string::npos;
    EXPECT_NE(explained, fast) << name;
  }
}

TEST(GemmCluster, RejectsInvalidClusters) {
  const auto message = [](const Gemm& options) {
    const auto compiled = compile(kernels::gemm(options), target_of("sm_90a"));
    return compiled ? std::string() : compiled.diags().text();
  };
  Gemm options = of_warpgroups(3);
  EXPECT_NE(message(options).find("expected 1, 2, 4 or 8 thread blocks, found 3"),
            std::string::npos);
  options.cluster = 2, options.stream_blocks = 4;
  EXPECT_NE(message(options).find("stream-K requires cluster = 1"), std::string::npos);
  options.cluster = 1, options.cluster_columns = 2;
  EXPECT_NE(message(options).find("stream-K and cluster_splits require cluster_columns = 1"),
            std::string::npos);
  options.stream_blocks = 0, options.cluster_columns = 3;
  EXPECT_NE(message(options).find("expected 1, 2, 4 or 8 thread blocks, found 3"),
            std::string::npos);
  const auto divided =
      compile(kernel("divided", {.block = 32, .cluster = 4, .cluster_columns = 3}, [](Builder&) {}),
              target_of("sm_90a"));
  EXPECT_NE(divided.diags().text().find("expected a divisor of the cluster's 4 thread blocks"),
            std::string::npos);
}

// The emulator's finding for a kernel with an injected error; nothing if it ran.
std::string complaint(const Product& product, Compiled compiled, const std::string& spoiled) {
  EXPECT_NE(spoiled, compiled.ptx);
  compiled.ptx = spoiled;
  const auto out = testing_gemm::result_on(testing_gemm::emulator(), compiled, product.launch());
  return out ? std::string() : out.diags().text();
}

// Removes the arrival at `from` and its wait.
std::string without_barrier(std::string text, std::size_t from) {
  for (const std::string_view part : {"barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"}) {
    from = text.find(part, from);
    if (from == std::string::npos) return {};
    text.erase(from, part.size());
  }
  return text;
}

// A correct kernel, with one of the requirements of clusters removed.
TEST(GemmCluster, MistakesAreFound) {
  const Product product(of_warpgroups(2), 256, 128, 512, true);
  const auto compiled = compile(kernels::gemm(product.options), target_of("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  const std::string& ptx = compiled->ptx;
  const auto expect = [&](const std::string& spoiled, const char* id, const char* part) {
    const std::string text = complaint(product, *compiled, spoiled);
    EXPECT_NE(text.find(id), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  // A stage counts as free after one of the two blocks has released it.
  const std::regex arrivals(R"((mbarrier\.init\.shared\.b64 \[%r\d+\]), 8;)");
  expect(std::regex_replace(ptx, arrivals, "$1, 4;"), "asynchronous-race",
         "the copy may still be under way");
  // Each block releases its own stage twice, and the other's never.
  const std::regex remote(R"(mapa\.shared::cluster\.u32 (%r\d+), (%r\d+), %r\d+;)");
  expect(std::regex_replace(ptx, remote, "mov.b32 $1, $2;"), "asynchronous-race",
         "the copy may still be under way");
  // No wait for the initialization of the other block's barriers.
  expect(without_barrier(ptx, 0), "mbarrier",
         "barrier.cluster.arrive and barrier.cluster.wait (cluster_barrier()) in between");
  // A block exits while the other may still arrive at its barriers: its producer does not wait for
  // the last releases.
  std::string hasty = without_barrier(ptx, ptx.rfind("barrier.cluster.arrive.relaxed;"));
  const std::regex wait(R"(mbarrier\.try_wait\.parity\.shared\.b64 (%p\d+), [^;]*;)");
  const std::size_t last = hasty.rfind("mbarrier.try_wait");
  ASSERT_NE(last, std::string::npos);
  hasty =
      hasty.substr(0, last) + std::regex_replace(hasty.substr(last), wait, "setp.eq.u32 $1, 0, 0;");
  expect(hasty, "memory-fault", " has exited and freed its shared memory");
}

TEST(GemmCluster, BlocksOfALaunch) {
  Gemm options = of_warpgroups(4);
  EXPECT_EQ(options.blocks(65, 64), 4u);
  EXPECT_EQ(options.blocks(257, 65), 16u);
  // 36 tiles on 30 multiprocessors: 9 clusters of work for 7.
  EXPECT_EQ(options.persistent_blocks(64 * 9, 64 * 3, 30), 20u);
  options.cluster = 1;
  EXPECT_EQ(options.blocks(257, 65), 10u);
  options.cluster = options.cluster_columns = 2;
  EXPECT_EQ(options.blocks(257, 65), 12u);
  EXPECT_EQ(options.persistent_blocks(8192, 8192, 132), 120u);
}

}  // namespace
}  // namespace tartan
