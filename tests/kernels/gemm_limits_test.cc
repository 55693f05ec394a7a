// SPDX-License-Identifier: Apache-2.0
// Products at the limits of 32-bit counts: correct, or rejected with the nearest valid choice.
#include <limits>
#include <regex>

#include "tartan/dsl/math.h"
#include "tartan/dsl/schedule.h"
#include "tartan/kernels/attention.h"
#include "tartan/kernels/block_scaled.h"
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::Launch;
using testing_gemm::Product;
using testing_gemm::target_of;

constexpr int largest = std::numeric_limits<int>::max();

// The only diagnostic; "compiled", or their number.
std::string complaint(const Kernel& kernel, const char* target = "sm_80") {
  const auto compiled = compile(kernel, target_of(target));
  if (compiled) return "compiled";
  const Diags& found = compiled.diags();
  return found.size() == 1 ? found[0].message : std::to_string(found.size()) + " complaints";
}

struct Refused {
  Gemm options;
  const char* part;
};

TEST(GemmLimits, KnownSizes) {
  const Tile small{.m = 16, .n = 16, .k = 32, .warps_m = 1, .warps_n = 1};
  for (const auto& [options, part] : {
           Refused{{.m = largest, .n = 64, .k = 64}, "the largest size is 2147483584"},
           {{.m = 64, .n = largest, .k = 64}, "n = 2147483647"},
           {{.m = 64, .n = 64, .k = largest}, "the largest size is 2147483616"},
           {{.m = 1 << 21, .n = 1 << 21, .k = 64, .tile = small}, "17179869184 tiles of 16 x 16"},
           {{.m = -1}, "m = -1"},
           {{.splits = 0}, "splits = 0: expected 1 to 256"},
           {{.splits = 300}, "splits = 300: expected 1 to 256"},
           {{.splits = largest}, "splits = 2147483647"},
           {{.m = 1 << 24, .n = 64, .k = 64, .splits = 256}, "the workspace exceeds"},
           {{.stream_blocks = -1}, "stream_blocks = -1"},
           {{.stream_blocks = 65537}, "expected 0 (off) to 65536"},
           {{.stream_blocks = largest}, "stream_blocks = 2147483647"},
       }) {
    // The split-K kernel and its reduction report the same.
    for (const Kernel& kernel : {kernels::gemm(options), kernels::gemm_sum(options)}) {
      if (options.k == largest && kernel.name() == "gemm_sum") continue;  // it does not use k
      const std::string found = complaint(kernel);
      EXPECT_NE(found.find(part), std::string::npos) << kernel.name() << ": " << found;
    }
  }
  EXPECT_EQ(complaint(kernels::gemm({.m = largest - 63, .n = 64, .k = 64})), "compiled");
  EXPECT_EQ(complaint(kernels::gemm({.splits = 256})), "compiled");
  EXPECT_EQ(complaint(kernels::gemm_sum({.splits = 256})), "compiled");
  EXPECT_EQ(complaint(kernels::gemm({.stream_blocks = 65536})), "compiled");
  EXPECT_NE(complaint(kernels::block_scaled({.m = largest}), "sm_120a").find("m = 2147483647"),
            std::string::npos);
}

TEST(GemmLimits, OneDiagnosticPerError) {
  Gemm warps;
  warps.tile.warps_m = warps.tile.warps_n = 65536;
  EXPECT_NE(complaint(kernels::gemm(warps)).find("expected 32 to 1024 threads"), std::string::npos);
  EXPECT_NE(complaint(kernels::gemm({.stream_blocks = 4, .persistent = true})).find("persistent"),
            std::string::npos);
  const std::string sparse = complaint(kernels::sparse_gemm({}), "sm_75");
  EXPECT_NE(sparse.find("sm_75, PTX 9.0 has no mma.sync of f16"), std::string::npos) << sparse;
  const Kernel large = kernel("large", {.block = 32},
                              [](Builder& k) { k.global("A", f64, row_major(largest, largest)); });
  EXPECT_NE(complaint(large).find("exceeds the 2^49 bytes"), std::string::npos) << complaint(large);
  // Multiples whose least common multiple exceeds 32 bits.
  Gemm multiples{.m = 0, .n = 0, .k = 0, .b_major = Major::row};
  multiples.multiple = largest;
  EXPECT_EQ(complaint(kernels::gemm(multiples)), "compiled");
}

TEST(GemmLimits, BlocksOfALaunch) {
  Gemm options;
  EXPECT_EQ(options.tiles(largest, largest), std::int64_t{1} << 50);
  EXPECT_EQ(options.blocks(largest, largest), 0xFFFFFFFFu);  // which launch() refuses
  EXPECT_EQ(options.blocks(largest, 64), 1u << 25);
  EXPECT_EQ(options.persistent_blocks(largest, largest, 132), 132u);
  EXPECT_EQ(options.persistent_blocks(64, 64, 0), 1u);
  EXPECT_EQ(options.workspace_elements(largest, 64), std::int64_t{1} << 37);
  EXPECT_EQ(kernels::BlockScaled{}.blocks(largest, largest), 0xFFFFFFFFu);
  EXPECT_EQ(kernels::Attention{}.blocks(largest), 1u << 24);
  for (const char* target : {"sm_80", "sm_90a"}) {
    const Gemm tuned =
        kernels::tuned(kernels::Gemm{.m = largest, .n = largest, .k = largest}, target_of(target));
    const auto compiled = compile(kernels::gemm(tuned), target_of(target));
    ASSERT_FALSE(compiled);
    for (const Diag& each : compiled.diags())
      EXPECT_NE(each.message.find("= 2147483647: tiles"), std::string::npos) << each.message;
  }
}

// Groups of more tile rows than 32-bit tile counts allow: all tiles are computed, in some order.
TEST(GemmLimits, LargeGroups) {
  for (const int group : {1, 1 << 29, 1 << 30, largest})
    for (const bool persistent : {false, true})
      for (const int cluster : {1, 2})
        for (const bool fixed : {false, true}) {
          SCOPED_TRACE(fmt::format("groups of {}, {}, {}", group, persistent, cluster));
          const Gemm options{.group = group, .persistent = persistent, .cluster = cluster};
          const Product product(options, 200, 280, 64, fixed);
          const Kernel gemm = kernels::gemm(product.options);
          EXPECT_EQ(product.wrong(testing_gemm::run(gemm, target_of("sm_90"), product.launch())),
                    0);
        }
}

// Constant sizes are counted in 32 bits if that suffices, else in 64.
TEST(GemmLimits, UnitsOfWork) {
  const auto counter = [](std::int64_t rows, std::int64_t cols, std::int64_t steps) {
    return StreamShare::counter(rows, cols, steps);
  };
  EXPECT_EQ(counter(1024, 1024, 2047), s32);
  EXPECT_EQ(counter(1024, 1024, 2048), s64);  // 65536^3 in tiles of 64 x 64 x 32
  EXPECT_EQ(counter(1 << 25, 1 << 25, 1 << 26), s64);
  struct Case {
    std::int64_t units, workers;
  };
  for (const auto& [units, workers] :
       {Case{std::int64_t{3} << 31, 132}, {(1LL << 40) + 77, 1000}}) {
    const Kernel shares = kernel("shares", {.block = 32}, [=](Builder& k) {
      auto out = k.global("out", s64, row_major(32, 3));
      const Scalar worker = k.convert(k.thread(), s64) * (workers / 32) + 3,
                   all = k.convert(units, s64), count = k.convert(workers, s64);
      const StreamShare share = StreamShare::of(all, count, worker);
      k.write(out, k.thread(), 0, share.begin);
      k.write(out, k.thread(), 1, share.end);
      k.write(out, k.thread(), 2, StreamShare::owner(all, count, share.end - 1));
    });
    const Bytes got =
        testing_gemm::run(shares, target_of("sm_80"),
                          {{1}, [](Device& device, Arguments& arguments, std::vector<Buffer>&) {
                             Buffer out = *device.allocate(32 * 3 * 8);
                             arguments.add(out);
                             return out;
                           }});
    std::vector<std::int64_t> values(96);
    ASSERT_EQ(got.size(), values.size() * 8);
    std::memcpy(values.data(), got.data(), got.size());
    for (std::size_t i = 0; i < 32; ++i) {
      const auto worker = static_cast<std::int64_t>(i) * (workers / 32) + 3;
      const std::int64_t begin = worker * (units / workers) + std::min(worker, units % workers);
      EXPECT_EQ(values[3 * i], begin);
      EXPECT_EQ(values[3 * i + 1], begin + units / workers + (worker < units % workers));
      EXPECT_EQ(values[3 * i + 2], worker);
    }
  }
}

// A block of a sum of 2^32 elements: its index is replaced by the last block's, and its pointers
// are moved back by as much from the few elements that it accesses.
TEST(GemmLimits, SumsOfManyElements) {
  constexpr std::int64_t m = 1 << 20, n = 1 << 12, first = m * n - 256;
  for (const bool fixed : {false, true}) {
    Gemm options{.m = 0, .n = 0, .multiple_c = 64};
    if (fixed) options.m = m, options.n = n;
    auto compiled = compile(kernels::gemm_sum(options), target_of("sm_80"));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const std::string other = fmt::format("mov.u32 $1, {};", first / 256);
    const std::string patched =
        std::regex_replace(compiled->ptx, std::regex(R"(mov\.u32\s+(%r\d+), %ctaid\.x;)"), other);
    ASSERT_NE(patched, compiled->ptx);
    compiled->ptx = patched;
    std::vector<float> parts;
    for (int i = 0; i < 256; ++i) parts.push_back(static_cast<float>(i) + 0.5F);
    const Launch launch{{1},
                        [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
                          if (!fixed) arguments.add(static_cast<int>(m)).add(static_cast<int>(n));
                          buffers.push_back(*device.allocate(1024));
                          EXPECT_TRUE(buffers.back().write(parts));
                          Buffer c = *device.allocate(1024);
                          const auto far = static_cast<std::uint64_t>(first) * 4;
                          arguments.add(buffers.back().address() - far).add(c.address() - far);
                          return c;
                        }};
    const Bytes got = testing_gemm::run_on(testing_gemm::emulator(), *compiled, launch);
    ASSERT_EQ(got.size(), 1024u);
    EXPECT_EQ(std::memcmp(got.data(), parts.data(), 1024), 0);
  }
}

// Six- and four-bit elements by kind::f8f6f4, which sm_120a has.
TEST(GemmLimits, SmallFloats) {
  for (const auto& [a, b] : {std::pair{Type::e2m1, Type::e2m1},
                             {Type::e3m2, Type::e2m3},
                             {Type::e4m3, Type::e2m1},
                             {Type::e2m3, Type::e5m2}})
    for (const auto& [m, n, k] :
         {std::tuple{64, 64, 128}, {72, 40, 48}, {7, 8, 16}, {65, 130, 400}}) {
      SCOPED_TRACE(fmt::format("{} {}: {} x {} x {}", name(a), name(b), m, n, k));
      const Product product(Gemm{.a = a, .b = b}, m, n, k);
      const Kernel gemm = kernels::gemm(product.options);
      EXPECT_EQ(
          product.wrong(testing_gemm::run(gemm, target_of("sm_120a"), product.launch(), false)), 0);
    }
  const std::string found = complaint(kernels::gemm({.a = Type::e2m1, .b = Type::e2m1}), "sm_90a");
  EXPECT_NE(found.find("kind::f8f6f4"), std::string::npos) << found;
  Gemm odd{.k = 0, .a = Type::e2m1, .b = Type::e2m1};
  EXPECT_NE(complaint(kernels::gemm(odd), "sm_120a").find("k must be a multiple of 16"),
            std::string::npos);
}

// If B's rows are too short for wgmma, mma.sync multiplies.
TEST(GemmLimits, NarrowRowMajorTiles) {
  for (const int n : {8, 24, 40, 48})
    for (const Major b_major : {Major::row, Major::col}) {
      SCOPED_TRACE(fmt::format("{} columns, B by {}", n, name(b_major)));
      Gemm options{.b_major = b_major};
      options.tile = {.m = 128, .n = n, .k = 64, .warps_m = 8, .warps_n = 1};
      options.producers = 4;
      const Product product(options, 136, 80, 136);
      const Kernel gemm = kernels::gemm(product.options);
      EXPECT_EQ(product.wrong(testing_gemm::run(gemm, target_of("sm_90a"), product.launch())), 0);
      const bool warpgroups =
          compile(gemm, target_of("sm_90a"))->ptx.find("wgmma.mma_async") != std::string::npos;
      EXPECT_EQ(warpgroups, b_major == Major::col || n == 48);
    }
}

}  // namespace
}  // namespace tartan
