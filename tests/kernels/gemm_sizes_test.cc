// SPDX-License-Identifier: Apache-2.0
// Every type and major order of the GEMM kernel with every size in each dimension. One text serves
// all sizes: it has no guaranteed divisors.
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::Product;

constexpr int sizes[] = {1, 7, 16, 63, 64, 65, 127, 200};

struct Types {
  Type a, b, accumulator, c;
  const char* target = "sm_80";
};

int wrong_elements(const Compiled& compiled, const Product& product) {
  const Bytes out = testing_gemm::run_on(testing_gemm::emulator(), compiled, product.launch());
  if (Device* gpu = testing_gemm::gpu()) {
    EXPECT_EQ(out, testing_gemm::run_on(*gpu, compiled, product.launch()));
  }
  return product.wrong(out);
}

void check(const Types& types, Major a_major, Major b_major) {
  const Target target = testing_gemm::target(types.target);
  if (target.arch.sm < testing_gemm::target_of(types.target).arch.sm) return;  // an older GPU
  Gemm options{.m = 0, .n = 0, .k = 0, .a = types.a, .b = types.b};
  options.accumulator = types.accumulator, options.c = types.c;
  options.a_major = a_major, options.b_major = b_major;
  options.multiple = options.multiple_c = 1;
  const auto compiled = compile(kernels::gemm(options), target);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  for (int round = 0; round < 8; ++round) {
    const Product product(options, sizes[round], sizes[(3 * round + 1) % 8],
                          sizes[(5 * round + 2) % 8]);
    SCOPED_TRACE(fmt::format("{} x {} x {}", product.m, product.n, product.k));
    EXPECT_EQ(wrong_elements(*compiled, product), 0);
  }
}

void check(std::initializer_list<Types> all) {
  for (const Types& types : all)
    for (const Major a_major : {Major::row, Major::col})
      for (const Major b_major : {Major::row, Major::col}) {
        SCOPED_TRACE(fmt::format("{} {} {} {}, {} {} on {}", name(types.a), name(types.b),
                                 name(types.accumulator), name(types.c), name(a_major),
                                 name(b_major), types.target));
        check(types, a_major, b_major);
      }
}

TEST(GemmSizes, Halves) {
  check({{f16, f16, f32, f32},
         {f16, f16, f32, f16, "sm_90"},
         {f16, f16, f16, f16},
         {f16, f16, f32, f32, "sm_75"},
         {bf16, bf16, f32, f32},
         {bf16, bf16, f32, bf16, "sm_90"}});
}

TEST(GemmSizes, WholeFloats) {
  check({{f32, f32, f32, f32},
         {tf32, tf32, f32, f32},
         {f64, f64, f64, f64},
         {f64, f64, f64, f64, "sm_90"}});
}

TEST(GemmSizes, Bytes) {
  check({{s8, s8, s32, s32}, {s8, u8, s32, s32}, {u8, s8, s32, s32, "sm_75"}, {u8, u8, s32, f32}});
}

TEST(GemmSizes, EightBitFloats) {
  check({{Type::e4m3, Type::e4m3, f32, f32, "sm_89"},
         {Type::e5m2, Type::e4m3, f32, f16, "sm_90"},
         {Type::e5m2, Type::e5m2, f32, f32, "sm_120"},
         {Type::e4m3, Type::e5m2, f16, f16, "sm_89"}});
}

}  // namespace
}  // namespace tartan
