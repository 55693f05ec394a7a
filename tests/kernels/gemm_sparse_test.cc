// SPDX-License-Identifier: Apache-2.0
// Products with a sparse A against the naive dense product.
#include <unistd.h>

#include "tests/kernels/gemm_run.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::Launch;
using testing_gemm::Product;

// Inserts the zeros of the sparsity pattern: another pair (or one of a pair) in each group.
void prune(Product& product) {
  const int group = bits(product.options.a) == 32 ? 2 : 4;
  static constexpr int pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  for (std::size_t i = 0; i < product.a.size(); ++i) {
    const std::size_t which = i / static_cast<std::size_t>(group) * 7 / 3;
    const int at = static_cast<int>(i % static_cast<std::size_t>(group));
    const auto& pair = pairs[which % 6];
    const bool kept =
        group == 2 ? at == static_cast<int>(which % 2) : at == pair[0] || at == pair[1];
    if (!kept) product.a[i] = 0;
  }
}

struct Sparse {
  Product product;
  kernels::Compressed compressed;

  /// `shift`: rotates the elements, so that several products differ.
  Sparse(const Gemm& options, int m, int n, int k, int shift = 0) : product(options, m, n, k) {
    std::rotate(product.a.begin(), product.a.begin() + shift, product.a.end());
    std::rotate(product.b.begin(), product.b.begin() + shift, product.b.end());
    prune(product);
    auto done = kernels::compress(testing_numbers::encode(options.a, product.a), m, k, options.a);
    EXPECT_TRUE(done) << (done ? "" : done.diags().text());
    if (done) compressed = *std::move(done);
  }

  void add_inputs(Device& device, Arguments& arguments, std::vector<Buffer>& buffers) const {
    arguments.add(product.m).add(product.n).add(product.k);
    Bytes metadata(compressed.metadata.size() * 4);
    std::memcpy(metadata.data(), compressed.metadata.data(), metadata.size());
    for (const Bytes& each :
         {compressed.values, metadata, testing_numbers::encode(product.options.b, product.b)}) {
      buffers.push_back(testing_gemm::buffer_of(device, each));
      arguments.add(buffers.back());
    }
  }

  Launch launch(unsigned blocks = 0) const {
    Launch out = product.launch();
    if (blocks) out.grid = {blocks};
    out.arguments = [this](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
      add_inputs(device, arguments, buffers);
      return product.add_output(device, arguments);
    };
    return out;
  }
};

// The GPU's target if there is one, except for what only sm_90a has.
Target made_for(const std::string& target) {
  return target == "sm_90a" ? testing_gemm::target_of(target) : testing_gemm::target(target);
}

int wrong(const Gemm& options, int m, int n, int k, const char* target, unsigned blocks = 0) {
  SCOPED_TRACE(fmt::format("{} {}: {} x {} x {}", name(options.a), target, m, n, k));
  if (testing_gemm::gpu() &&
      testing_gemm::gpu()->arch().sm < testing_gemm::target_of(target).arch.sm)
    return 0;  // the GPU is older than the type
  const Sparse sparse(options, m, n, k);
  return sparse.product.wrong(testing_gemm::run(kernels::sparse_gemm(sparse.product.options),
                                                made_for(target), sparse.launch(blocks)));
}

TEST(SparseGemm, EveryTypeAtAwkwardSizes) {
  const int sizes[][3] = {{1, 7, 4},      {7, 16, 8},    {16, 1, 64},   {63, 127, 16},
                          {64, 200, 128}, {65, 63, 200}, {127, 65, 36}, {200, 64, 68}};
  const std::pair<Gemm, const char*> types[] = {
      {{}, "sm_80"},
      {{.a = bf16, .b = bf16}, "sm_90"},
      {{.accumulator = f16, .c = f16}, "sm_80"},
      {{.a = f32, .b = f32}, "sm_80"},
      {{.a = s8, .b = s8, .accumulator = s32, .c = s32}, "sm_80"},
      {{.a = u8, .b = s8, .accumulator = s32, .c = s32}, "sm_80"},
      {{.a = Type::e4m3, .b = Type::e5m2}, "sm_89"}};
  for (const auto& [m, n, k] : sizes)
    for (auto [options, target] : types)
      for (const Major b_major : {Major::row, Major::col}) {
        options.b_major = b_major;
        EXPECT_EQ(wrong(options, m, n, k, target), 0);
      }
}

// ---- With wgmma.

// Tiles of 128 rows; k two instructions deep.
Gemm by_warpgroups(Gemm options, int n) {
  options.tile = {.m = 128, .n = n, .k = 0, .warps_m = 8, .warps_n = 1};
  options.stages = 2, options.producers = 4;
  return options;
}

const Gemm warpgroup_types[] = {{},
                                {.a = bf16, .b = bf16, .c = bf16},
                                {.accumulator = f16, .c = f16},
                                {.a = f32, .b = f32},
                                {.a = s8, .b = s8, .accumulator = s32, .c = s32},
                                {.a = u8, .b = s8, .accumulator = s32, .c = s32},
                                {.a = Type::e4m3, .b = Type::e5m2},
                                {.a = Type::e5m2, .b = Type::e4m3}};

bool multiplies_by_warpgroups(const Gemm& options) {
  const auto compiled = compile(kernels::sparse_gemm(options), testing_gemm::target_of("sm_90a"));
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.diags().text());
  return compiled && compiled->ptx.find("\twgmma.mma_async.sp.") != std::string::npos;
}

bool other_gpu() { return testing_gemm::gpu() && testing_gemm::gpu()->arch().sm != 90; }

TEST(SparseGemm, WgmmaMultiplies) {
  if (other_gpu()) GTEST_SKIP();
  const int sizes[][3] = {{128, 64, 64}, {1, 8, 16}, {72, 136, 200}, {300, 72, 260}, {129, 63, 8}};
  int round = 0;
  for (Gemm options : warpgroup_types)
    for (const auto& [m, n, k] : sizes)
      for (const Major b_major : {Major::col, Major::row}) {
        options.b_major = b_major;
        const Gemm tiled = by_warpgroups(options, 64 * (1 + round++ % 4));
        EXPECT_EQ(wrong(tiled, m, n, k, "sm_90a"), 0);
        EXPECT_EQ(multiplies_by_warpgroups(tiled), b_major == Major::col || bits(options.a) == 16);
      }
  EXPECT_EQ(round, 80);
}

// Tiles one, two, three and four instructions deep: panels and swizzles of all widths, and
// instructions that do not share metadata words.
TEST(SparseGemm, WgmmaMultipliesTilesOfAnyDepth) {
  if (other_gpu()) GTEST_SKIP();
  for (const Gemm& type : warpgroup_types)
    for (const int depth : {1, 2, 3, 4}) {
      Gemm options = by_warpgroups(type, 64);
      options.tile.k = depth * 512 / bits(options.a);
      options.producers = 1 + depth % 2 * 3;
      if (type.accumulator == f32) options.promote = depth % 3;
      EXPECT_EQ(wrong(options, 130, 72, 512, "sm_90a"), 0);
      EXPECT_TRUE(multiplies_by_warpgroups(options));
    }
}

// By tcgen05, in two orders of warps and with all checks.
TEST(SparseGemm, ByTcgen05) {
  for (const Gemm& type : warpgroup_types) {
    if (type.accumulator == f16) continue;
    for (const int depth : {1, 2, 4}) {
      Gemm options = by_warpgroups(type, 64);
      options.tile.warps_m = 4, options.tile.k = depth * 512 / bits(options.a);
      const Sparse sparse(options, 130, 72, 264);
      const auto compiled =
          compile(kernels::sparse_gemm(sparse.product.options), testing_gemm::target_of("sm_100a"));
      ASSERT_TRUE(compiled) << compiled.diags().text();
      EXPECT_NE(compiled->ptx.find("tcgen05.mma.sp"), std::string::npos);
      for (const char* const schedule : {"", "1"}) {
        DeviceOptions with{.hardware = "sm_100a", .checks = Checks::all};
        with.schedule = schedule;
        Device device = *Device::open("emulator", with);
        SCOPED_TRACE(fmt::format("{} and {}, depth {}", name(type.a), name(type.b), depth));
        EXPECT_EQ(sparse.product.wrong(testing_gemm::run_on(device, *compiled, sparse.launch())),
                  0);
      }
    }
  }
}

// Two CTAs multiply together, each with half of B's columns.
TEST(SparseGemm, ByPairs) {
  if (other_gpu()) GTEST_SKIP();
  for (const Gemm& type : warpgroup_types) {
    if (type.accumulator == f16) continue;
    for (const bool persistent : {false, true}) {
      Gemm options = by_warpgroups(type, 64);
      options.tile.m = 128, options.tile.warps_m = 4, options.cluster = 2;
      options.persistent = persistent;
      const Sparse sparse(options, 300, 72, 264);
      const auto compiled =
          compile(kernels::sparse_gemm(sparse.product.options), testing_gemm::target_of("sm_100a"));
      ASSERT_TRUE(compiled) << compiled.diags().text();
      EXPECT_NE(compiled->ptx.find("tcgen05.mma.sp.cta_group::2"), std::string::npos);
      for (const char* const schedule : {"", "1"}) {
        DeviceOptions with{.hardware = "sm_100a", .checks = Checks::all};
        with.schedule = schedule;
        Device device = *Device::open("emulator", with);
        SCOPED_TRACE(fmt::format("{} and {}", name(type.a), name(type.b)));
        Launch launch = sparse.launch();
        if (persistent) launch.grid = {2};
        EXPECT_EQ(sparse.product.wrong(testing_gemm::run_on(device, *compiled, launch)), 0);
      }
    }
  }
}

TEST(SparseGemm, SchedulesMatchDenseGemm) {
  if (other_gpu()) GTEST_SKIP();
  for (const char* target : {"sm_80", "sm_90", "sm_90a"})
    for (const unsigned blocks : {1u, 3u}) {
      Gemm options = by_warpgroups({}, 64);
      options.persistent = true;
      EXPECT_EQ(wrong(options, 300, 200, 200, target, blocks), 0);
    }
}

TEST(SparseGemm, SplitsAreReduced) {
  if (other_gpu()) GTEST_SKIP();
  Gemm options = by_warpgroups({}, 64);
  options.splits = 3;
  for (const char* target : {"sm_80", "sm_90a"}) {
    const Sparse sparse(options, 130, 72, 260);
    const Product& product = sparse.product;
    Launch parts = sparse.launch();
    parts.grid = {product.options.blocks(130, 72), 3};
    parts.arguments = [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
      sparse.add_inputs(device, arguments, buffers);
      const auto bytes = 4 * static_cast<std::size_t>(product.options.workspace_elements(130, 72));
      Buffer out = *device.allocate(bytes);
      EXPECT_TRUE(out.fill(0xFF));
      arguments.add(out);
      return out;
    };
    const Target made = made_for(target);
    const Bytes added = testing_gemm::run(kernels::sparse_gemm(product.options), made, parts);
    Launch sum;
    sum.grid = {(130 * 72 + 255) / 256};
    sum.arguments = [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
      arguments.add(130).add(72);
      buffers.push_back(testing_gemm::buffer_of(device, added));
      arguments.add(buffers.back());
      return product.add_output(device, arguments);
    };
    EXPECT_EQ(product.wrong(testing_gemm::run(kernels::gemm_sum(product.options), made, sum)), 0);
  }
}

// Three products with gaps between them.
TEST(SparseGemm, Batches) {
  if (other_gpu()) GTEST_SKIP();
  constexpr int m = 130, n = 72, k = 272, count = 3;
  for (const char* target : {"sm_80", "sm_90", "sm_90a"})
    for (const Type type : {f16, s8}) {
      SCOPED_TRACE(fmt::format("{} {}", target, name(type)));
      Gemm options = by_warpgroups({.batched = true}, 64);
      options.a = options.b = type;
      if (type == s8) options.accumulator = options.c = s32;
      const std::vector<Sparse> all{
          {options, m, n, k}, {options, m, n, k, 1}, {options, m, n, k, 3}};
      const Product& product = all[0].product;
      const auto metadata = [&](std::size_t i) {
        Bytes out(all[i].compressed.metadata.size() * 4);
        std::memcpy(out.data(), all[i].compressed.metadata.data(), out.size());
        return out;
      };
      EXPECT_NE(metadata(0), metadata(1));
      const std::int64_t stride_a = m * k / 2 + 64, stride_b = k * n + 128, stride_c = m * n + 8,
                         words = static_cast<std::int64_t>(all[0].compressed.metadata.size()) + 4;
      // The gaps are not zero.
      const auto together = [&](auto matrix, std::int64_t stride, int width) {
        Bytes out(static_cast<std::size_t>(count * stride * width / 8), std::byte{0x5A});
        for (std::size_t i = 0; i < all.size(); ++i) {
          const Bytes one = matrix(i);
          std::copy(one.begin(), one.end(),
                    out.begin() + static_cast<std::int64_t>(i) * stride * width / 8);
        }
        return out;
      };
      const auto kept = [&](std::size_t i) { return all[i].compressed.values; };
      const auto right = [&](std::size_t i) {
        return testing_numbers::encode(type, all[i].product.b);
      };
      const std::size_t bytes_c = static_cast<std::size_t>(bits(options.c)) / 8;
      Launch launch{{product.options.blocks(m, n), 1, count}, {}};
      launch.arguments = [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
        arguments.add(m).add(n).add(k).add(stride_a).add(stride_b).add(stride_c).add(words);
        for (const Bytes& each :
             {together(kept, stride_a, bits(type)), together(metadata, words, 32),
              together(right, stride_b, bits(type))}) {
          buffers.push_back(testing_gemm::buffer_of(device, each));
          arguments.add(buffers.back());
        }
        Buffer c = *device.allocate(static_cast<std::size_t>(count * stride_c) * bytes_c);
        EXPECT_TRUE(c.fill(0xFF));
        arguments.add(c);
        return c;
      };
      const Bytes got =
          testing_gemm::run(kernels::sparse_gemm(product.options), made_for(target), launch);
      ASSERT_EQ(got.size(), static_cast<std::size_t>(count * stride_c) * bytes_c);
      for (int i = 0; i < count; ++i) {
        const auto first = got.begin() + i * stride_c * static_cast<std::int64_t>(bytes_c),
                   last = first + m * n * static_cast<std::int64_t>(bytes_c);
        EXPECT_EQ(all[static_cast<std::size_t>(i)].product.wrong(Bytes(first, last)), 0)
            << "product " << i;
        EXPECT_TRUE(std::all_of(last, last + 8 * static_cast<std::int64_t>(bytes_c),
                                [](std::byte each) { return each == std::byte{0xFF}; }));
      }
    }
}

TEST(SparseGemm, ClustersShareB) {
  if (other_gpu()) GTEST_SKIP();
  for (const char* target : {"sm_90", "sm_90a"}) {
    Gemm options = by_warpgroups({}, 64);
    options.cluster = 2;
    EXPECT_EQ(wrong(options, 300, 72, 260, target), 0);
    const auto compiled =
        compile(kernels::sparse_gemm(Sparse(options, 300, 72, 272).product.options),
                testing_gemm::target_of(target));
    EXPECT_EQ(compiled->ptx.find(".multicast::cluster [") != std::string::npos,
              std::string_view(target) == "sm_90a");
    // B in several panels across k.
    options = by_warpgroups({}, 128);
    options.cluster = 2, options.b_major = Major::row;
    EXPECT_EQ(wrong(options, 300, 136, 272, target), 0);
  }
}

// Threads read metadata themselves: a barrier of the warp comes before its lane releases the stage.
TEST(SparseGemm, AWarpReleasesAStageThatItsThreadsRead) {
  const auto compiled =
      compile(kernels::sparse_gemm(by_warpgroups({}, 64)), testing_gemm::target_of("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  const std::string& ptx = compiled->ptx;
  int barriers = 0;
  for (std::size_t at = ptx.find("mbarrier.init"); at != std::string::npos;
       at = ptx.find("mbarrier.init", at + 1))
    barriers += ptx.substr(at, ptx.find(';', at) - at).ends_with("], 8");
  EXPECT_EQ(barriers, 2);
  const std::size_t release = ptx.find(" mbarrier.arrive.shared.b64"),
                    loop = ptx.find("wgmma.mma_async"), meet = ptx.find("bar.warp.sync", loop);
  ASSERT_NE(release, std::string::npos);
  EXPECT_LT(meet, release);
}

// The tensor maps of compressed rows and metadata follow from the parameters.
TEST(SparseGemm, TmaLoadsAllOperands) {
  const Gemm options = by_warpgroups({.m = 0, .n = 0, .k = 0, .multiple = 16}, 128);
  const auto compiled = compile(kernels::sparse_gemm(options), testing_gemm::target_of("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(compiled->maps.size(), 4u);  // A, metadata, B, C
  EXPECT_EQ(compiled->ptx.find("cp.async.c"), std::string::npos);
  EXPECT_NE(compiled->ptx.find("extents (16 * ceil(k / 32), ceil(m / 16))"), std::string::npos);
}

TEST(SparseGemm, AssemblesWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const Gemm& type : warpgroup_types)
    for (const int n : {64, 128, 256}) {
      const auto compiled =
          compile(kernels::sparse_gemm(by_warpgroups(type, n)), testing_gemm::target_of("sm_90a"));
      ASSERT_TRUE(compiled) << compiled.diags().text();
      test::expect_good_registers(compiled->ptx, "sm_90a",
                                  testing::TempDir() + std::to_string(getpid()) + "_tartan_sparse");
    }
}

TEST(SparseGemm, ExplainsWhyWgmmaIsNotUsed) {
  const auto why = [](const Gemm& options) {
    const auto compiled = compile(kernels::sparse_gemm(options), testing_gemm::target_of("sm_90a"));
    return compiled ? explain(compiled->choices) : compiled.diags().text();
  };
  Gemm options = by_warpgroups({}, 64);
  EXPECT_NE(why(options).find("wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16"),
            std::string::npos);
  options.tile.warps_n = 2, options.tile.warps_m = 4;
  EXPECT_NE(why(options).find("use warps_m = 8 and warps_n = 1"), std::string::npos);
  options = by_warpgroups({}, 64), options.producers = 0;
  EXPECT_NE(why(options).find("no producer warps fill its operands"), std::string::npos);
}

TEST(SparseGemm, CompressRefusesWhatIsTooDense) {
  const auto one = testing_numbers::encode(f16, {0, 1, 2, 0, 1, 2, 3, 0});
  const auto refused = kernels::compress(one, 1, 8, f16);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.diags().text().find("row 0, columns 4 to 7"), std::string::npos);
  EXPECT_FALSE(kernels::compress(one, 1, 6, f16));
  EXPECT_FALSE(kernels::compress(one, 1, 8, Type::s4));
}

}  // namespace
}  // namespace tartan
