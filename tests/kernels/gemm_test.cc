// SPDX-License-Identifier: Apache-2.0
// The GEMM kernel in every type, at awkward sizes, in every major order, against the naive product
// of small integers, which is exact in any order.
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Product;

constexpr int sizes[] = {1, 7, 16, 63, 64, 65, 127, 200};

struct Types {
  Type a, b, accumulator, c;
  const char* target = "sm_80";
  isa::BitOp bit_op = isa::BitOp::xor_popc;
};

int wrong_elements(const Product& product, const char* target) {
  return product.wrong(testing_gemm::run(kernels::gemm(product.options),
                                         testing_gemm::target(target), product.launch()));
}

bool missing_on_gpu(const Types& types) {
  return testing_gemm::gpu() &&
         testing_gemm::gpu()->arch().sm < Target::parse(types.target)->arch.sm;
}

// Eight cases: every size in every dimension.
void check(const Types& types, std::initializer_list<std::pair<Major, Major>> majors, int unit) {
  if (missing_on_gpu(types)) return;
  int round = 0;
  for (int i = 0; i < 8 / static_cast<int>(majors.size()); ++i)
    for (const auto& [a_major, b_major] : majors) {
      const int m = sizes[round % 8], n = sizes[(3 * round + 1) % 8],
                k = sizes[(5 * round + 2) % 8] * unit;
      SCOPED_TRACE(fmt::format("{} {} {} {}: {}{} {} x {} x {}", name(types.a), name(types.b),
                               name(types.accumulator), types.target, name(a_major), name(b_major),
                               m, n, k));
      Gemm options{.a = types.a, .b = types.b, .accumulator = types.accumulator, .c = types.c};
      options.a_major = a_major, options.b_major = b_major, options.bit_op = types.bit_op;
      EXPECT_EQ(wrong_elements(Product(options, m, n, k, round % 3 == 2), types.target), 0);
      ++round;
    }
}

void check_all_majors(const Types& types) {
  constexpr Major row = Major::row, col = Major::col;
  check(types, {{row, col}, {row, row}, {col, col}, {col, row}}, 1);
}

// Elements smaller than a byte must be contiguous along k.
void check_along_k(const Types& types) { check(types, {{Major::row, Major::col}}, 8); }

TEST(Gemm, Halves) {
  check_all_majors({f16, f16, f32, f32});
  check_all_majors({f16, f16, f32, f16});
  check_all_majors({f16, f16, f16, f16});
  check_all_majors({f16, f16, f32, f32, "sm_75"});
  check_all_majors({bf16, bf16, f32, f32});
  check_all_majors({bf16, bf16, f32, bf16});
}

TEST(Gemm, Tf32) {
  check_all_majors({f32, f32, f32, f32});
  check_all_majors({tf32, tf32, f32, f32});
}

TEST(Gemm, Doubles) {
  check_all_majors({f64, f64, f64, f64});
  check_all_majors({f64, f64, f64, f64, "sm_90"});
}

TEST(Gemm, Bytes) {
  check_all_majors({s8, s8, s32, s32});
  check_all_majors({s8, u8, s32, s32});
  check_all_majors({u8, s8, s32, s32, "sm_75"});
  check_all_majors({u8, u8, s32, f32});
}

TEST(Gemm, SubByte) {
  check_along_k({Type::s4, Type::s4, s32, s32});
  check_along_k({Type::u4, Type::s4, s32, s32, "sm_75"});
  check_along_k({Type::b1, Type::b1, s32, s32});
  check_along_k({Type::b1, Type::b1, s32, s32, "sm_75"});
  check_along_k({Type::b1, Type::b1, s32, s32, "sm_80", isa::BitOp::and_popc});
}

TEST(Gemm, EightBitFloats) {
  check_all_majors({Type::e4m3, Type::e4m3, f32, f32, "sm_89"});
  check_all_majors({Type::e5m2, Type::e4m3, f32, f16, "sm_90"});
  check_all_majors({Type::e4m3, Type::e5m2, f16, f16, "sm_89"});
}

std::string refusal(const Gemm& options, const char* target) {
  const auto compiled = compile(kernels::gemm(options), testing_gemm::target_of(target));
  EXPECT_FALSE(compiled);
  return compiled ? "" : compiled.diags().text();
}

TEST(Gemm, RejectsInvalidOptions) {
  Gemm options{.a = Type::e4m3, .b = Type::e4m3};
  EXPECT_NE(refusal(options, "sm_80")
                .find("e4m3.e4m3.f32 requires sm_89 and PTX 8.4; the nearest supported form is"),
            std::string::npos)
      << refusal(options, "sm_80");
  const auto older = compile(kernels::gemm(options), Target({89, 0}, {8, 0}));
  ASSERT_FALSE(older);
  EXPECT_NE(older.diags().text().find("e4m3.e4m3.f32 requires sm_89 and PTX 8.4 [no-instruction]"),
            std::string::npos)
      << "a later PTX version has it, not another type: " << older.diags().text();
  options = {.a = Type::s4, .b = Type::s4, .accumulator = s32, .c = s32};
  options.b_major = Major::row;
  EXPECT_NE(refusal(options, "sm_80").find("s4 is sub-byte: A must be row-major"),
            std::string::npos);
  options.b_major = Major::col, options.k = 7;
  EXPECT_NE(refusal(options, "sm_80").find("k must be a multiple of 2"), std::string::npos);
  options = {.a = s8, .b = s8, .accumulator = s32, .c = f64};
  EXPECT_NE(refusal(options, "sm_80").find("kernel-option"), std::string::npos);
  options = {.splits = 0};
  EXPECT_NE(refusal(options, "sm_80").find("splits = 0: expected 1 to"), std::string::npos);
}

}  // namespace
}  // namespace tartan
