// SPDX-License-Identifier: Apache-2.0
// MmaOptions with mma.sync and with wgmma: negated operands (by sign bits where the instruction
// cannot negate), and saturating accumulation.
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using testing_gemm::Bytes;
using testing_gemm::Launch;
using testing_gemm::Product;
using testing_gemm::target_of;

struct Signs {
  bool a, b;
  int sum() const { return a == b ? 1 : -1; }
};
constexpr Signs all_signs[] = {{false, false}, {true, false}, {false, true}, {true, true}};

MmaOptions with(Signs signs) { return {.negate_a = signs.a, .negate_b = signs.b}; }

// C = +-A * +-B, one block, tile by tile along k.
Kernel product_kernel(const Product& product, Type c, Signs signs) {
  const Tile tile{
      .m = 64, .n = 64, .k = 1024 / bits(product.options.a), .warps_m = 4, .warps_n = 1};
  const kernels::Gemm options = product.options;
  return kernel("signed_product", {.block = tile.threads(), .producers = 4}, [=](Builder& k) {
    auto A = k.global("A", options.a, row_major(options.m, options.k));
    auto B = k.global("B", options.b, col_major(options.k, options.n));
    auto C = k.global("C", c, row_major(options.m, options.n));
    auto kind = k.best_mma(options.a, options.b, options.accumulator);
    auto mma = k.tiled_mma(kind, tile, with(signs));
    auto sA = k.shared("sA", options.a, mma.shared_a(2, Major::row)),
         sB = k.shared("sB", options.b, mma.shared_b(2, Major::col));
    k.roles([&] {
      auto sum = mma.accumulator();
      k.pipeline(
          {.stages = 2}, options.k / tile.k,
          [&](Scalar t, Scalar stage) {
            k.copy(A.tile({0, t}, {tile.m, tile.k}), sA[stage]);
            k.copy(B.tile({t, 0}, {tile.k, tile.n}), sB[stage]);
          },
          [&](Scalar, Scalar stage) { sum = mma(sum, sA[stage], sB[stage]); });
      k.store(C.tile({0, 0}, {tile.m, tile.n}), sum);
    });
  });
}

TEST(DslMmaOptions, NegationOfTiles) {
  for (const char* name : {"sm_80", "sm_89", "sm_90a"})
    for (const Type type : {f16, bf16, tf32, Type::e4m3, Type::e5m2})
      for (const Signs signs : all_signs) {
        const Target target = target_of(name);
        const bool of_bytes = bits(type) == 8;
        if (of_bytes && target.arch.sm < 89) continue;
        if (testing_gemm::gpu() && testing_gemm::gpu()->arch().sm < target.arch.sm) continue;
        SCOPED_TRACE(fmt::format("{} {} {}{}", name, tartan::name(type), signs.a, signs.b));
        kernels::Gemm options{.a = type, .b = type};
        const Product product(options, 64, 64, 256, true);
        const Kernel kernel = product_kernel(product, f32, signs);
        Launch launch = product.launch();
        launch.grid = {1};
        const Bytes got = testing_gemm::run(kernel, target, launch);
        EXPECT_EQ(product.wrong(got, [&](int i, int j) { return signs.sum() * product.sum(i, j); }),
                  0);
        const auto compiled = compile(kernel, target);
        EXPECT_EQ(compiled->ptx.find("\twgmma.mma_async") != std::string::npos,
                  std::string_view(name) == "sm_90a");
      }
}

// Fragments of f64, whose registers are elements, and of f16, with two elements per register.
TEST(DslMmaOptions, NegationOfFragments) {
  for (const Signs signs : all_signs)
    for (const bool wide : {false, true}) {
      const MmaShape shape = wide ? m8n8k4 : m16n8k8;
      const Type type = wide ? f64 : f16, sum = wide ? f64 : f32;
      const int m = shape.shape.m, n = shape.shape.n, depth = shape.shape.k;
      const Kernel kernel = tartan::kernel("fragments", {.block = 32}, [=](Builder& k) {
        auto A = k.global("A", type, row_major(m, depth));
        auto B = k.global("B", type, col_major(depth, n));
        auto C = k.global("C", sum, row_major(m, n));
        const auto a = k.load(operand_a(shape, type), A), b = k.load(operand_b(shape, type), B);
        k.store(C, k.mma(a, b, k.load(operand_c(shape, sum), C), with(signs)));
      });
      std::vector<int> a, b, expected;
      for (int i = 0; i < m * depth; ++i) a.push_back(i % 5 - 2);
      for (int i = 0; i < n * depth; ++i) b.push_back(i % 7 - 3);
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          int out = 0;
          for (int x = 0; x < depth; ++x)
            out += a[static_cast<std::size_t>(i * depth + x)] *
                   b[static_cast<std::size_t>(j * depth + x)];
          expected.push_back(100 + signs.sum() * out);
        }
      const Launch launch{
          {1}, [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
            for (const auto& each : {a, b}) {
              buffers.push_back(
                  testing_gemm::buffer_of(device, testing_numbers::encode(type, each)));
              arguments.add(buffers.back());
            }
            Buffer c = testing_gemm::buffer_of(
                device, testing_numbers::encode(
                            sum, std::vector<int>(static_cast<std::size_t>(m * n), 100)));
            arguments.add(c);
            return c;
          }};
      EXPECT_EQ(testing_gemm::run(kernel, testing_gemm::target("sm_80"), launch),
                testing_numbers::encode(sum, expected));
    }
}

TEST(DslMmaOptions, NegatesOnlyFloatingPointElements) {
  const auto refused = [](Type type, Type sum) {
    const Kernel kernel = tartan::kernel("refused", {.block = 128}, [=](Builder& k) {
      const auto kind = k.best_mma(type, type, sum);
      (void)k.tiled_mma(kind, {.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1},
                        {.negate_b = true});
    });
    const auto compiled = compile(kernel, target_of("sm_90a"));
    return compiled ? std::string() : compiled.diags().text();
  };
  EXPECT_NE(refused(s8, s32).find("elements of at least 8 bits, B is s8"), std::string::npos);
  EXPECT_EQ(refused(f16, f32), "");
}

// Saturation of integers is kept if wgmma computes the product.
TEST(DslMmaOptions, SaturationIsKeptWithWgmma) {
  const Tile tile{.m = 64, .n = 64, .k = 128, .warps_m = 4, .warps_n = 1};
  const Kernel kernel =
      tartan::kernel("saturating", {.block = 128, .producers = 4}, [=](Builder& k) {
        auto A = k.global("A", s8, row_major(64, 128));
        auto B = k.global("B", s8, col_major(128, 64));
        auto C = k.global("C", s32, row_major(64, 64));
        const MmaOptions options{.satfinite = true};
        auto mma = k.tiled_mma(k.best_mma(s8, s8, s32, options), tile, options);
        auto sA = k.shared("sA", s8, mma.shared_a(2, Major::row)),
             sB = k.shared("sB", s8, mma.shared_b(2, Major::col));
        k.roles([&] {
          auto sum = mma.accumulator();
          k.pipeline(
              {.stages = 2}, 1,
              [&](Scalar, Scalar stage) { k.copy(A, sA[stage]), k.copy(B, sB[stage]); },
              [&](Scalar, Scalar stage) { sum = mma(sum, sA[stage], sB[stage]); });
          k.store(C, sum);
        });
      });
  const auto compiled = compile(kernel, target_of("sm_90a"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_NE(compiled->ptx.find("wgmma.mma_async.sync.aligned.m64n64k32.satfinite.s32.s8.s8"),
            std::string::npos);
}

}  // namespace
}  // namespace tartan
