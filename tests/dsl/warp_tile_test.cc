// SPDX-License-Identifier: Apache-2.0
// Accumulators as operands of the next MMA, on the emulator, against plain loops.
#include <tuple>

#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using testing_gemm::Bytes;
using testing_gemm::Launch;

using Matrix = std::vector<int>;  // row-major

Matrix numbers(int rows, int cols, int seed) {
  Matrix out;
  for (int i = 0; i < rows * cols; ++i) out.push_back((i * 7 + i / 5 * seed) % 5 - 2);
  return out;
}

// Sums stay below 256, which bf16 represents exactly.
Matrix product(const Matrix& a, const Matrix& b, int m, int n, int k) {
  Matrix out(static_cast<std::size_t>(m * n));
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      for (int x = 0; x < k; ++x)
        out[static_cast<std::size_t>(i * n + j)] +=
            a[static_cast<std::size_t>(i * k + x)] * b[static_cast<std::size_t>(x * n + j)];
  return out;
}

Matrix transposed(const Matrix& a, int rows, int cols) {
  Matrix out;
  for (int j = 0; j < cols; ++j)
    for (int i = 0; i < rows; ++i) out.push_back(a[static_cast<std::size_t>(i * cols + j)]);
  return out;
}

constexpr int m = 32, n = 48, depth = 16, rows = 16;  // P is m x n, the result has `rows` rows

// D = W * P or W * P^T, P = A * B in registers of one warp.
Kernel chain(Type type, MmaShape shape, bool turned) {
  return kernel("chain", {.block = 32}, [=](Builder& k) {
    const int inner = turned ? n : m, cols = turned ? m : n;
    auto A = k.global("A", type, row_major(m, depth)), B = k.global("B", type, row_major(depth, n));
    auto W = k.global("W", type, row_major(rows, inner));
    auto D = k.global("D", f32, row_major(rows, cols));
    auto first = k.tiled_mma(m16n8k16(type, type, f32),
                             {.m = m, .n = n, .k = depth, .warps_m = 1, .warps_n = 1});
    auto second = k.tiled_mma(shape(type, type, f32),
                              {.m = rows, .n = cols, .k = inner, .warps_m = 1, .warps_n = 1});
    auto sA = k.shared("sA", type, first.shared_a())[0];
    auto sB = k.shared("sB", type, first.shared_b(1, Major::row))[0];
    auto sW = k.shared("sW", type, second.shared_a())[0];
    k.copy(A, sA), k.copy(B, sB), k.copy(W, sW);
    k.barrier();
    const WarpTile p = convert(first(first.accumulator(), sA, sB), type);
    const WarpTile b = turned ? operand_b_transposed(p, shape) : operand_b(p, shape);
    k.store(D, second(second.accumulator(), sW, b));
  });
}

int wrong(Type type, MmaShape shape, bool turned, const char* target) {
  SCOPED_TRACE(fmt::format("{} {} {} {}", name(type), shape.text(), turned, target));
  const int inner = turned ? n : m, cols = turned ? m : n;
  const Matrix a = numbers(m, depth, 1), b = numbers(depth, n, 2), w = numbers(rows, inner, 3);
  const Launch launch{
      {1}, [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
        for (const Matrix& each : {a, b, w}) {
          buffers.push_back(testing_gemm::buffer_of(device, testing_numbers::encode(type, each)));
          arguments.add(buffers.back());
        }
        Buffer out = *device.allocate(static_cast<std::size_t>(rows * cols) * 4);
        EXPECT_TRUE(out.fill(0xFF));
        arguments.add(out);
        return out;
      }};
  const auto got = testing_numbers::decode(
      f32, testing_gemm::run(chain(type, shape, turned), testing_gemm::target(target), launch));
  Matrix p = product(a, b, m, n, depth);
  if (turned) p = transposed(p, m, n);
  const Matrix expected = product(w, p, rows, cols, inner);
  EXPECT_EQ(got.size(), expected.size());
  int count = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != expected[i] && count++ == 0)
      ADD_FAILURE() << fmt::format("element {}: expected {}, got {}", i, expected[i], got[i]);
  return count;
}

TEST(WarpTile, AccumulatorsAsOperandB) {
  for (const bool turned : {false, true})
    for (const MmaShape& shape : {m16n8k16, m16n8k8}) {
      EXPECT_EQ(wrong(f16, shape, turned, "sm_80"), 0);
      EXPECT_EQ(wrong(bf16, shape, turned, "sm_90"), 0);
    }
}

TEST(WarpTile, TransposingUsesOnlyMovmatrix) {
  const auto turned = compile(chain(f16, m16n8k16, false), *Target::parse("sm_80")),
             plain = compile(chain(f16, m16n8k16, true), *Target::parse("sm_80"));
  ASSERT_TRUE(turned && plain);
  EXPECT_NE(turned->ptx.find("movmatrix"), std::string::npos);
  EXPECT_EQ(plain->ptx.find("movmatrix"), std::string::npos);
}

std::string complaint(const std::function<void(Builder&)>& body) {
  const auto compiled = compile(kernel("wrong", {.block = 32}, body), *Target::parse("sm_80"));
  EXPECT_FALSE(compiled);
  return compiled ? "" : compiled.diags().text();
}

TEST(WarpTile, RejectsInvalidOperandB) {
  const auto tile = [](Builder& k, int cols) {
    return WarpTile(k.tiled_mma(m16n8k16(f16, f16, f32),
                                {.m = 16, .n = cols, .k = 16, .warps_m = 1, .warps_n = 1})
                        .accumulator());
  };
  EXPECT_NE(complaint([&](Builder& k) {
              std::ignore = operand_b(tile(k, 16));
            }).find("found B of m16n8k16 and 2 of C of m16n8k16 (f32); convert() them"),
            std::string::npos);
  EXPECT_NE(complaint([&](Builder& k) {
              std::ignore = operand_b_transposed(convert(tile(k, 24), f16));
            }).find("an even number per row of 16-bit accumulators"),
            std::string::npos);
  EXPECT_NE(complaint([&](Builder& k) {
              std::ignore = operand_b(convert(tile(k, 16), f16), m16n8k32);
            }).find("found B of m16n8k32"),
            std::string::npos);
  // The number of fragments must match the product.
  EXPECT_NE(complaint([&](Builder& k) {
              auto mma = k.tiled_mma(m16n8k16(f16, f16, f32),
                                     {.m = 16, .n = 32, .k = 16, .warps_m = 1, .warps_n = 1});
              auto a = k.shared("a", f16, mma.shared_a())[0];
              std::ignore = mma(mma.accumulator(), a, operand_b(convert(tile(k, 16), f16)));
            }).find("wrong number of fragments of B per warp: expected 1 x 4, found 1 x 2"),
            std::string::npos);
}

}  // namespace
}  // namespace tartan
