// SPDX-License-Identifier: Apache-2.0
// `tartan equal` on kernels that other compilers made, against formulas.
#include <gtest/gtest.h>

#include "runtime/equal.h"

namespace tartan {
namespace {

using Verdict = Equality::Verdict;

struct Row {
  const char* manifest;
  const char* formula;
  const char* wrong;  // another formula
};

TEST(EqualRecorded, TritonsAndNvccsKernelsAreTheirFormulas) {
  const Row rows[] = {
      {"programs/mma_gemm_sm80", "out2 = in0 * in1'", "out2 = 2 * in0 * in1'"},
      {"kernels/softmax", "out = softmax(in_floats, columns=100)",
       "out = softmax(in_floats, columns=50)"},
      {"kernels/layer_norm", "out = layer_norm(in_floats, scale, columns=100, eps=1e-5)",
       "out = layer_norm(in_floats, columns=100, eps=1e-5)"},
      {"triton/matmul_f16", "c_ptr = a_ptr * b_ptr", "c_ptr = a_ptr * b_ptr'"},
      {"triton/matmul_f16_columns", "c_ptr = a_ptr * b_ptr'", "c_ptr = a_ptr * b_ptr"},
      {"triton/matmul_f16_odd", "c_ptr = a_ptr * b_ptr", "c_ptr = a_ptr' * b_ptr"},
      {"triton/matmul_tf32", "c_ptr = a_ptr * b_ptr'", "c_ptr = a_ptr * b_ptr"},
      {"triton/matmul_e4m3", "c_ptr = a_ptr * b_ptr'", "c_ptr = -1 * a_ptr * b_ptr'"},
      {"triton/matmul_e5m2", "c_ptr = a_ptr * b_ptr'", "c_ptr = a_ptr * b_ptr"},
      {"triton/matmul_described", "c = a * b'", "c = a * b"},
      {"triton/attention_f16",
       "o_ptr = attention(q_ptr, k_ptr, v_ptr, dim=64, heads=2, scale2=0.18033688011112042)",
       "o_ptr = attention(q_ptr, k_ptr, v_ptr, dim=64, heads=2, scale2=0.19)"},
      {"triton/attention_bf16_causal",
       "o_ptr = attention(q_ptr, k_ptr, v_ptr, dim=64, heads=2, scale2=0.18033688011112042, "
       "causal)",
       "o_ptr = attention(q_ptr, k_ptr, v_ptr, dim=64, heads=2, scale2=0.18033688011112042)"},
      {"triton/softmax", "y_ptr = softmax(x_ptr, columns=500, stride=512)",
       "y_ptr = softmax(x_ptr, columns=499, stride=512)"},
  };
  for (const Row& row : rows) {
    const auto manifest =
        read_manifest(std::string(TEST_DATA) + "/" + row.manifest + "/manifest.json");
    ASSERT_TRUE(manifest) << row.manifest;
    const Equality right = equal(*manifest, std::string(row.formula));
    EXPECT_EQ(right.verdict, Verdict::same) << row.manifest << '\n' << right.complaints(false);
    EXPECT_GT(right.elements, 0u);
    const Equality wrong = equal(*manifest, std::string(row.wrong), {.explain = 0});
    EXPECT_EQ(wrong.verdict, Verdict::different) << row.manifest << '\n' << wrong.complaints(false);
  }
}

TEST(EqualRecorded, RefusesFormulasThatSayNothing) {
  const auto manifest = read_manifest(std::string(TEST_DATA) + "/triton/matmul_f16/manifest.json");
  ASSERT_TRUE(manifest);
  for (const char* formula :
       {"", "c_ptr", "c_ptr = ", "c_ptr = a_ptr *", "c_ptr = a_ptr * b_ptr * a_ptr",
        "c_ptr = nothing * b_ptr", "c_ptr = gelu(a_ptr)", "c_ptr = softmax(a_ptr)",
        "c_ptr = softmax(a_ptr, columns=3, rows=2)", "c_ptr = a_ptr * b_ptr )",
        "c_ptr = a_ptr:f99 * b_ptr", "c_ptr = a_ptr * a_ptr"}) {
    const Equality out = equal(*manifest, std::string(formula));
    EXPECT_EQ(out.exit_code(), 2) << formula;
    EXPECT_FALSE(out.refused.ok()) << formula;
  }
}

}  // namespace
}  // namespace tartan
