// SPDX-License-Identifier: Apache-2.0
// Products by wmma in all its shapes and types.
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using kernels::WmmaGemm;
using testing_gemm::Product;

int wrong(WmmaGemm options, int m, int n, int k, const char* target = "sm_80") {
  SCOPED_TRACE(fmt::format("{} {} {}{}: {} x {} x {}", options.shape.text(), name(options.a),
                           name(options.a_major), name(options.b_major), m, n, k));
  kernels::Gemm inputs{.a = options.a, .b = options.b, .accumulator = options.c, .c = options.c};
  inputs.a_major = options.a_major, inputs.b_major = options.b_major;
  inputs.tile = kernels::wmma_tile(options);
  inputs.bit_op = options.with.bit_op;
  const Product product(inputs, m, n, k);
  options.multiple = product.options.multiple, options.multiple_c = product.options.multiple_c;
  return product.wrong(testing_gemm::run(kernels::wmma_gemm(options), testing_gemm::target(target),
                                         product.launch()));
}

TEST(WmmaGemm, EveryShapeTypeAndMajorness) {
  // Every size in every dimension. Each shape takes three of the cases: over the shapes, each type
  // and major order meets all of them.
  const int sizes[][3] = {{1, 7, 16},    {63, 65, 7},  {64, 64, 64},  {127, 200, 1},
                          {7, 127, 200}, {65, 16, 63}, {200, 1, 127}, {16, 63, 65}};
  int shape_number = 0;
  for (const MmaShape& shape : {wmma_m16n16k16, wmma_m32n8k16, wmma_m8n32k16}) {
    for (const auto& [a, b, c] : {std::tuple{f16, f16, f32},
                                  {f16, f16, f16},
                                  {bf16, bf16, f32},
                                  {s8, s8, s32},
                                  {u8, u8, s32}})
      for (const Major a_major : {Major::row, Major::col})
        for (const Major b_major : {Major::row, Major::col}) {
          for (int i = 0; i < 3; ++i) {
            const auto& [m, n, k] = sizes[(3 * shape_number + i) % 8];
            EXPECT_EQ(wrong({.shape = shape,
                             .a = a,
                             .b = b,
                             .c = c,
                             .a_major = a_major,
                             .b_major = b_major},
                            m, n, k),
                      0);
          }
        }
    ++shape_number;
  }
  for (const Major a_major : {Major::row, Major::col})
    for (const Major b_major : {Major::row, Major::col})
      for (const auto& [m, n, k] : sizes) {
        EXPECT_EQ(wrong({.shape = wmma_m16n16k8,
                         .a = tf32,
                         .b = tf32,
                         .c = f32,
                         .a_major = a_major,
                         .b_major = b_major},
                        m, n, k),
                  0);
        EXPECT_EQ(wrong({.shape = wmma_m8n8k4,
                         .a = f64,
                         .b = f64,
                         .c = f64,
                         .a_major = a_major,
                         .b_major = b_major},
                        m, n, k),
                  0);
      }
}

TEST(WmmaGemm, SubByteTypesAreContiguousAlongK) {
  for (const auto& [m, n, k] : {std::tuple{7, 9, 32}, {33, 65, 200}, {64, 16, 1024}}) {
    EXPECT_EQ(wrong({.shape = wmma_m8n8k32, .a = Type::s4, .b = Type::s4, .c = s32}, m, n, k), 0);
    EXPECT_EQ(wrong({.shape = wmma_m8n8k128,
                     .a = Type::b1,
                     .b = Type::b1,
                     .c = s32,
                     .with = {.bit_op = isa::BitOp::xor_popc}},
                    m, n, k),
              0);
  }
}

}  // namespace
}  // namespace tartan
