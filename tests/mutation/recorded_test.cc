// SPDX-License-Identifier: Apache-2.0
// Mutants of the kernels that nvcc and Triton compiled: a mistake in them shows, as a finding or in
// the results.
#include <gtest/gtest.h>

#include "tests/mutation/soak.h"

namespace tartan::mutation {
namespace {

void soak_folder(const std::string& folder, const std::vector<Variant>& variants) {
  soak(recorded_subjects(folder, variants), folder + ".txt");
}

TEST(MutationOfRecorded, Programs) {
  soak_folder("programs", {
                              {"mma_gemm_sm80", {{5, 32}}},
                              {"mma_gemm_sm80", {{5, 96}}},
                              {"mma_gemm_sm80", {{5, 64}}},
                              {"softmax", {{2, 40}}, {16}},
                              {"softmax", {{2, 500}}},
                              {"softmax", {{2, 1}}},
                              {"softmax", {{2, 31}}, {}, {{0, 992}}},
                              {"softmax", {{2, 97}}},
                              {"softmax", {{2, 111}}, {7}},
                              {"softmax", {{2, 150}}, {5}},
                              {"softmax", {{2, 129}}},
                              {"softmax", {{2, 500}}, {}, {}, {288}},
                              {"softmax", {{2, 500}}, {}, {}, {96}},
                              {"wmma_f16_f32_rc_sm80", {{4, 48}, {5, 48}, {6, 48}}},
                              {"wmma_f16_f32_rc_sm80", {{4, 32}, {5, 64}, {6, 16}}},
                              {"wmma_f16_f32_rc_sm80", {{4, 64}, {5, 32}, {6, 0}}},
                          });
}

TEST(MutationOfRecorded, Kernels) {
  soak_folder("kernels", {
                             {"block_sum", {{2, 0}}},
                             {"block_sum", {{2, 3999}}},
                             {"block_sum", {{2, 300}}},
                             {"brain_floats", {{3, 192}}},
                             {"calls", {{2, 64}}},
                             {"choose", {{2, 192}}},
                             {"collatz", {{1, 129}}},
                             {"dot_bytes", {{3, 31}}},
                             {"dot_bytes", {{3, 2}}},
                             {"dot_bytes", {{3, 0}}},
                             {"dot_bytes", {{3, 5}}},
                             {"halves", {{3, 192}}},
                             {"histogram", {{2, 0}}},
                             {"histogram", {{2, 300}}},
                             {"histogram", {{2, 3000}}, {1}, {}, {288}},
                             {"layer_norm", {{3, 300}}, {2}},
                             {"layer_norm", {{3, 31}}},
                             {"layer_norm", {{3, 800}}, {1}},
                             {"layer_norm", {{3, 128}}, {5}},
                             {"layer_norm", {{3, 1}}},
                             {"local_array", {{2, 50}}},
                             {"local_array", {{2, 97}}},
                             {"saturate", {{3, 192}}},

                             {"softmax", {{2, 300}}, {2}},
                             {"softmax", {{2, 31}}},
                             {"softmax", {{2, 800}}, {1}},
                             {"softmax", {{2, 128}}, {5}},
                             {"softmax", {{2, 1}}},
                             {"softmax", {{2, 31}}, {}, {{0, 992}}},
                             {"softmax", {{2, 97}}},
                             {"softmax", {{2, 111}}, {7}},
                             {"softmax", {{2, 150}}, {5}},
                             {"staged_gemm", {{3, 32}, {4, 16}}},
                             {"staged_gemm", {{3, 32}, {4, 48}}},
                             {"staged_gemm", {{3, 32}, {4, 64}}},
                             {"staged_gemm", {{3, 32}, {4, 0}}},
                             {"staged_gemm", {{3, 32}, {4, 128}}, {4, 2}},
                             {"stencil", {{2, 37}, {3, 31}}},
                             {"tickets", {}, {2}},
                             {"transpose", {{2, 33}, {3, 64}}, {}, {{0, 8448}, {1, 8448}}},
                             {"transpose", {{2, 64}, {3, 32}}, {}, {{0, 8192}, {1, 8192}}},
                             {"transpose", {{2, 1}, {3, 63}}, {}, {{0, 252}, {1, 252}}},
                             {"transpose", {}, {}, {{0, 14400}}},
                             {"wide_atomics", {{2, 100}}},
                             {"wide_atomics", {{2, 1}}},
                             {"wmma_bytes", {{3, 32}, {4, 16}}},
                             {"wmma_bytes", {{3, 32}, {4, 80}}},
                             {"wmma_bytes", {{3, 32}, {4, 0}}},
                             {"wmma_double", {{3, 16}, {4, 4}}},
                             {"wmma_double", {{3, 16}, {4, 16}}},
                             {"wmma_double", {{3, 16}, {4, 0}}},
                             {"wmma_half", {{3, 48}, {4, 16}}},
                             {"wmma_half", {{3, 48}, {4, 48}}},
                             {"wmma_half", {{3, 48}, {4, 0}}},
                             {"wmma_half_wide", {{3, 64}, {4, 16}}},
                             {"wmma_half_wide", {{3, 64}, {4, 32}}},
                             {"wmma_half_wide", {{3, 64}, {4, 0}}},
                             {"wmma_tf32", {{3, 32}, {4, 8}}},
                             {"wmma_tf32", {{3, 32}, {4, 32}}},
                             {"wmma_tf32", {{3, 32}, {4, 0}}},
                             {"wmma_tf32", {{3, 16}, {4, 72}}, {1, 1}},
                             {"wmma_half", {{3, 16}, {4, 128}}, {1, 1}},
                             {"wmma_half", {{3, 16}, {4, 96}}, {1, 1}},
                             {"wmma_double", {{3, 8}, {4, 32}}, {1, 1}},
                             {"wmma_double", {{3, 8}, {4, 28}}, {1, 1}},
                             {"wmma_half_wide", {{3, 32}, {4, 80}}, {1, 1}},
                             {"wmma_bytes", {{3, 32}, {4, 48}}},
                             {"softmax", {{2, 100}}, {}, {{0, 3200}}},
                             {"softmax", {{2, 256}}, {3}, {{0, 3072}}},
                             {"layer_norm", {{3, 100}}, {}, {{0, 3200}, {1, 400}}},
                             {"inclusive_scan", {}, {}, {{0, 4096}}},
                             {"wide_atomics", {}, {}, {{0, 8000}}},

                             {"bitonic_sort", {}, {}, {{0, 2048}}},
                             {"block_sum", {}, {}, {{0, 16000}}},
                             {"histogram", {{2, 16000}}, {}, {{0, 16000}}},
                             {"halves", {}, {}, {{0, 500}, {1, 500}}},
                         });
}

/// Edges of Triton's tiles fall on each multiple of 16: by turns on those of rows, columns and k.
std::vector<Variant> triton_variants() {
  std::vector<Variant> out{
      {"matmul_describing", {{3, 64}, {4, 64}, {5, 512}}, {1, 1}},
      {"matmul_describing_two_groups", {{3, 64}, {4, 64}, {5, 256}}, {1, 1}},
      {"attention_f16", {{6, 128}}},
      {"attention_bf16_causal", {{6, 136}}},
      {"attention_bf16_causal", {{6, 40}}},
      {"attention_bf16_causal", {{6, 120}}},
      {"matmul_bf16_ragged", {{3, 130}, {4, 100}, {5, 72}}},
      {"matmul_bf16_ragged", {{5, 24}}},
      {"matmul_bf16_ragged", {{3, 120}, {4, 80}, {5, 256}, {6, 256}, {7, 80}, {8, 80}}, {1, 1}},
      {"matmul_e5m2", {{3, 32}, {4, 80}, {5, 192}, {6, 192}, {7, 192}}},
      {"matmul_f16", {{3, 64}}},
      {"matmul_f16_two_groups", {{3, 64}}},
      {"matmul_f16_two_groups", {{3, 128}}},
      {"matmul_f16_two_groups", {{3, 320}, {4, 128}, {5, 128}}},  // of rows that overlap
      {"matmul_f16_odd", {{5, 200}, {6, 80}, {7, 24}}},
      {"matmul_f16_odd", {{3, 64}, {4, 64}, {5, 16}}},
      {"matmul_f16_warps", {{3, 32}}},
      {"matmul_dequant", {{3, 64}}},
      {"matmul_dequant", {{3, 128}}},
      {"matmul_e4m3_precise", {{3, 64}, {4, 64}, {5, 512}, {6, 512}, {7, 512}}, {1}},
      {"softmax", {{2, 512}}},
      {"softmax", {{2, 1}}},
      {"histogram", {{2, 2048}}},
      {"histogram", {{2, 1}}},
      {"turned", {{2, 40}, {3, 100}}, {1, 2}, {{0, 8000}, {1, 8000}}},
  };
  for (const char* name : {"matmul_e4m3", "matmul_e4m3_precise", "matmul_f16_columns",
                           "matmul_tf32", "matmul_e5m2", "matmul_f16_odd", "matmul_bf16_ragged"})
    out.push_back({name, {{5, 0}}});
  for (const char* name :
       {"matmul_f16", "matmul_f16_two_groups", "matmul_f16_warps", "matmul_dequant", "with_lines"})
    out.push_back({name, {{3, 0}}});
  for (const char* name : {"attention_f16", "attention_f16_unfused", "attention_bf16_causal"})
    out.push_back({name, {{6, 0}}});
  for (const int k : {0, 64, 128}) out.push_back({"matmul_described", {{15, k}}});
  for (const int k : {0, 64, 128, 320}) out.push_back({"matmul_described_ragged", {{15, k}}});
  for (int edge = 16; edge < 128; edge += 16) {
    for (const char* name : {"matmul_e4m3", "matmul_e4m3_precise", "matmul_f16_columns"})
      out.push_back({name, {{3, edge}, {4, 128 - edge}, {5, edge}}});
    if (edge >= 64) continue;  // tiles of 64
    out.push_back({"matmul_tf32", {{3, 64 + edge}, {4, 64 - edge}, {5, edge}}});
    out.push_back({"matmul_e5m2", {{3, 64 - edge}, {4, 64 + edge}, {5, edge}}});
    out.push_back({"attention_f16_unfused", {{6, 64 + edge}}});
    out.push_back({"attention_f16", {{6, 144 + 2 * edge}}});
  }
  return out;
}

TEST(MutationOfRecorded, Triton) { soak_folder("triton", triton_variants()); }

}  // namespace
}  // namespace tartan::mutation
