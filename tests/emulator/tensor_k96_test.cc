// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma with K = 96 (sm_103a) against a model written apart: eight instructions go through
// three tiles of 128-byte rows, and their scales run on from column to column; its mistakes.
// TARTAN_TENSOR_CASES asks for so many random cases.
#include <gtest/gtest.h>

#include "tests/emulator/tensor_gemm.h"

namespace tartan::test::tensor {
namespace {

constexpr int k = 96, step_bytes = 48, line = 128;
constexpr int a_scales_at = 256, b_scales_at = 320, a_at = 420;

struct Chain {
  int n = 64, steps = 8;
  bool sixteens = false, ue4m3 = false, a_in_tensor = false, accumulates = false;
  std::string kind = "mxf4", vector;
  Words a, b, c, a_scales, b_scales;  // [row or column][step * k or step * scales]

  int scales() const { return sixteens ? 6 : 3; }
  std::uint32_t idesc(int step) const {
    const int id = step * scales() % 4;
    return 1u << 7 | 1u << 10 | static_cast<std::uint32_t>(n / 8) << 17 |
           static_cast<std::uint32_t>(!ue4m3) << 23 | 8u << 24 |
           static_cast<std::uint32_t>(id) << 4 | static_cast<std::uint32_t>(id) << 29 | 1u << 31;
  }
};

int below(std::mt19937& random, int count) {
  return static_cast<int>(random() % static_cast<unsigned>(count));
}

Chain random_chain(std::mt19937& random) {
  Chain out;
  out.n = 8 * (1 + below(random, 32));
  out.steps = 1 + below(random, 8);
  out.a_in_tensor = out.steps < 5 && below(random, 3) == 0;
  out.accumulates = below(random, 2);
  const bool nv = below(random, 2);
  out.kind = nv ? "mxf4nvf4" : "mxf4";
  out.sixteens = nv && below(random, 3);
  out.ue4m3 = out.sixteens && below(random, 2);
  out.vector = out.sixteens ? ".block16" : nv || below(random, 2) ? ".block32" : "";
  const auto words = [&](Words& to, int count, auto&& one) {
    for (int i = 0; i < count; ++i) to.push_back(static_cast<std::uint32_t>(one()));
  };
  const auto element = [&] { return below(random, 16); };
  const auto scale = [&] {
    if (below(random, 200) == 0) return below(random, 256);
    return out.ue4m3 ? 40 + below(random, 20) + 128 * below(random, 2) : 120 + below(random, 14);
  };
  words(out.a, 128 * out.steps * k, element);
  words(out.b, out.n * out.steps * k, element);
  words(out.c, 128 * out.n, [&] {
    return std::bit_cast<std::int32_t>(static_cast<float>(below(random, 4001) - 2000) / 16);
  });
  words(out.a_scales, 128 * out.steps * out.scales(), scale);
  words(out.b_scales, out.n * out.steps * out.scales(), scale);
  return out;
}

/// Rows of 128 bytes, tile behind tile, with the 128-byte swizzle.
std::vector<std::uint8_t> image(const Words& bits, int rows, int steps) {
  const int row_bytes = steps * step_bytes, tiles = (row_bytes + line - 1) / line;
  std::vector<std::uint8_t> out(static_cast<std::size_t>(tiles * rows * line));
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < steps * k; ++i) {
      const int byte = i / 2, inside = byte % line;
      const int place =
          (byte / line * rows + row) * line + (inside / 16 ^ row % 8) * 16 + inside % 16;
      const std::uint32_t value = bits[static_cast<std::size_t>(row * steps * k + i)];
      auto& to = out[static_cast<std::size_t>(place)];
      to = static_cast<std::uint8_t>(to | value << i % 2 * 4);
    }
  return out;
}

/// Of a step, its tiles from byte `at` of shared memory on.
std::uint64_t descriptor(int step, int rows, std::size_t at) {
  const int start = step * step_bytes, end = start + step_bytes - 1;
  const auto tile = [&](int byte) {
    return (at + static_cast<std::size_t>(byte / line * rows * line)) / 16;
  };
  return std::uint64_t{2} << 61 | std::uint64_t{1} << 52 | std::uint64_t{1} << 46 |
         std::uint64_t{64} << 32 | tile(end) << 16 |
         (tile(start) + static_cast<std::size_t>(start % line / 16));
}

Plan plan(const Chain& g) {
  Plan out;
  if (!g.a_in_tensor) append(out.in, image(g.a, 128, g.steps));
  const std::size_t b_at = 4 * out.in.size();
  append(out.in, image(g.b, g.n, g.steps));
  const std::size_t image_words = out.in.size();
  std::string before;
  const auto store = [&](int column, auto&& cell) {
    before += fmt::format(
        "mul.wide.u32 rd3, r0, 4;\nadd.s64 rd2, rd9, rd3;\nld.global.b32 v0, [rd2+{}];\n"
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [own+{}], {{v0}};\n",
        4 * out.in.size(), column);
    for (int lane = 0; lane < 128; ++lane) out.in.push_back(cell(lane));
  };
  for (int n = 0; g.accumulates && n < g.n; ++n)
    store(n, [&](int lane) { return g.c[static_cast<std::size_t>(lane * g.n + n)]; });
  for (int cell = 0; g.a_in_tensor && cell < g.steps * k / 8; ++cell)
    store(a_at + cell, [&](int lane) {
      std::uint32_t word = 0;
      for (int i = 0; i < 8; ++i)
        word |= g.a[static_cast<std::size_t>(lane * g.steps * k + 8 * cell + i)] << 4 * i;
      return word;
    });
  const auto store_scales = [&](int column, int extent, const Words& scales) {
    const int all = g.steps * g.scales(), group = extent > 128 ? 8 : 4;
    for (int four = 0; 4 * four < all; ++four)
      for (int block = 0; 32 * block < extent; ++block)
        store(column + group * four + block, [&](int lane) {
          const int i = lane % 32 + 32 * block;
          std::uint32_t word = 0xA5A5A5A5;
          for (int s = 4 * four; s < std::min(4 * four + 4, all) && i < extent; ++s) {
            word &= ~(0xFFu << s % 4 * 8);
            word |= scales[static_cast<std::size_t>(i * all + s)] << s % 4 * 8;
          }
          return word;
        });
  };
  store_scales(a_scales_at, 128, g.a_scales);
  store_scales(b_scales_at, g.n, g.b_scales);

  std::string body = fill_image(image_words) + before +
                     "tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n"
                     "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
                     "tcgen05.fence::after_thread_sync;\n@!q bra ISSUED;\n";
  for (int step = 0; step < g.steps; ++step) {
    const int first = step * g.scales() / 4;  // group of scales
    // image begins at a multiple of 1024, and of shared memory alone: at address 1024.
    if (!g.a_in_tensor) body += fmt::format("mov.b64 da, 0x{:x};\n", descriptor(step, 128, 1024));
    body += fmt::format(
        "mov.b64 db, 0x{:x};\nmov.b32 r8, 0x{:x};\nsetp.ne.u32 p, {}, 0;\n"
        "tcgen05.mma.cta_group::1.kind::{}.block_scale{} [ta], {}, db, r8, [ta+{}], [ta+{}], p;\n",
        descriptor(step, g.n, 1024 + b_at), g.idesc(step), step || g.accumulates ? 1 : 0, g.kind,
        g.vector, g.a_in_tensor ? fmt::format("[ta+{}]", a_at + 12 * step) : "da",
        a_scales_at + 4 * first, b_scales_at + (g.n > 128 ? 8 : 4) * first);
  }
  body +=
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\nISSUED:\n" +
      wait("done", "WAIT") + "tcgen05.fence::after_thread_sync;\n" +
      fmt::format("mul.lo.u32 r3, r0, {};\nmul.wide.u32 rd1, r3, 4;\nadd.s64 rd1, rd0, rd1;\n",
                  g.n);
  for (int first = 0; first < g.n; first += 8) {
    body += fmt::format(
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 {}, [own+{}];\ntcgen05.wait::ld.sync.aligned;\n",
        numbered("w", 8), first);
    for (int i = 0; i < 8; ++i)
      body += fmt::format("st.global.b32 [rd1+{}], w{};\n", 4 * (first + i), i);
  }
  // The small variables are in front of the image.
  out.text = tensor_text(
      body, 512, fmt::format(".shared .align 1024 .b8 image[{}];\n", 4 * image_words), "sm_103a");
  return out;
}

Words model(const Chain& g) {
  const Format& e2m1 = format("e2m1");
  const auto numbers = [&](const Words& bits, int row, int step) {
    std::vector<Number> out;
    for (int i = 0; i < k; ++i)
      out.push_back(number(e2m1, bits[static_cast<std::size_t>((row * g.steps + step) * k + i)]));
    return out;
  };
  const auto scales = [&](const Words& bits, int row, int step) {
    std::vector<Number> out;
    for (int i = 0; i < g.scales(); ++i)
      out.push_back(
          scale(g.ue4m3, bits[static_cast<std::size_t>((row * g.steps + step) * g.scales() + i)]));
    return out;
  };
  Words out = g.accumulates ? g.c : Words(static_cast<std::size_t>(128 * g.n));
  for (int step = 0; step < g.steps; ++step)
    for (int n = 0; n < g.n; ++n) {
      const auto b = numbers(g.b, n, step), of_b = scales(g.b_scales, n, step);
      for (int m = 0; m < 128; ++m) {
        std::uint32_t& sum = out[static_cast<std::size_t>(m * g.n + n)];
        sum = fours_dot(numbers(g.a, m, step), b, sum, scales(g.a_scales, m, step), of_b);
      }
    }
  return out;
}

TEST(EmulatorTensorK96, EqualsTheModelInRandomCases) {
  std::mt19937 random(4);
  for (int i = 0; i < cases(5); ++i) {
    const Chain g = random_chain(random);
    const Plan made = plan(g);
    const KernelRun run = run_tensor(made.text, static_cast<std::size_t>(128 * g.n), made.in);
    ASSERT_EQ(findings_text(run), "") << i;
    EXPECT_EQ(run.report.trust.level, "assumed");
    const Words want = model(g);
    for (std::size_t at = 0; at < want.size(); ++at)
      ASSERT_EQ(run.out[at], want[at])
          << "case " << i << ", n " << g.n << ", steps " << g.steps << ", row "
          << at / static_cast<std::size_t>(g.n) << ", column " << at % static_cast<std::size_t>(g.n)
          << g.vector << " " << g.a_in_tensor;
  }
}

TEST(EmulatorTensorK96, FindsMistakes) {
  std::mt19937 random(4);
  Chain g = random_chain(random);
  while (!g.sixteens || g.a_in_tensor || g.steps < 3) g = random_chain(random);
  const Plan made = plan(g);
  const auto da = [](std::uint64_t bits) { return fmt::format("mov.b64 da, 0x{:x};", bits); };
  const auto idesc = [](std::uint32_t bits) { return fmt::format("mov.b32 r8, 0x{:x};", bits); };
  const std::uint64_t first = descriptor(0, 128, 1024), third = descriptor(2, 128, 1024);
  const std::uint64_t absolute = std::uint64_t{1} << 52;
  const struct {
    std::string from, to, rule, says;
  } mistakes[] = {
      {"sm_103a", "sm_100a", "instruction-descriptor", "only sm_103a has K = 96"},
      {idesc(g.idesc(0)), idesc(g.idesc(0) | 1u << 4), "instruction-descriptor",
       "the id of B's scales is 1: expected a multiple of 2 with 6 scales a row"},
      {idesc(g.idesc(0)), idesc(g.idesc(0) & ~(1u << 31)), "matrix-descriptor",
       "only K = 96 has absolute leading offsets"},
      {da(third), da(third & ~absolute), "matrix-descriptor",
       "48 bytes from start address 0x460 on cross the 128 bytes of a swizzled row"},
      {da(first), da(first ^ std::uint64_t{6} << 61), "matrix-descriptor",
       "absolute leading offsets need the 128-byte swizzle"},
      {da(third), da(third | 1 << 16), "matrix-descriptor",
       "the absolute leading offset is 0x4410: expected a multiple of 128"},
      {fmt::format("tcgen05.st.sync.aligned.32x32b.x1.b32 [own+{}], {{v0}};\n", a_scales_at + 4),
       "", "uninitialized-read", "was never written"},
  };
  for (const auto& each : mistakes) {
    std::string ptx = made.text;
    const std::size_t at = ptx.find(each.from);
    ASSERT_NE(at, std::string::npos) << each.from;
    ptx.replace(at, each.from.size(), each.to);
    const std::string found =
        findings_text(run_tensor(ptx, static_cast<std::size_t>(128 * g.n), made.in));
    EXPECT_NE(found.find("[" + each.rule + "]"), std::string::npos) << each.to << "\n" << found;
    EXPECT_NE(found.find(each.says), std::string::npos) << each.to << "\n" << found;
  }
}

}  // namespace
}  // namespace tartan::test::tensor
