// SPDX-License-Identifier: Apache-2.0
// `tartan equal` on the built-in kernels: the texts for two generations, and formulas.
#include <gtest/gtest.h>

#include "tartan/kernels/attention.h"
#include "tartan/kernels/gemm.h"
#include "tartan/kernels/sparse.h"
#include "tartan/kernels/transpose.h"
#include "tartan/kernels/wmma_gemm.h"
#include "tests/kernels/equal_manifest.h"
#include "tests/support/ptx_mutants.h"

namespace tartan {
namespace {

using testing_equal::Argument;
using testing_equal::compiled_for;
using testing_equal::manifest_of;
using Verdict = Equality::Verdict;

constexpr int m = 128, n = 128, k = 160;  // several tiles, more steps than stages

void expect_same(const Equality& out, const std::string& what = {}) {
  EXPECT_EQ(out.verdict, Verdict::same) << what << '\n' << out.complaints(false);
  EXPECT_GT(out.elements, 0u) << what;
}

std::size_t bytes(Type type, int elements) {
  return static_cast<std::size_t>(elements) * static_cast<std::size_t>(bits(type)) / 8;
}

Manifest gemm(kernels::Gemm options, const std::string& target,
              const std::vector<Argument>& more = {}) {
  options.m = m, options.n = n, options.k = k;
  options.tile = {.m = 64, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2};
  if (target == "sm_90a") {
    options.tile.warps_m = 4, options.tile.warps_n = 1;
    options.producers = 1;
  }
  std::vector<Argument> arguments = {{"A", bytes(options.a, m * k)},
                                     {"B", bytes(options.b, k * n)},
                                     {"C", bytes(options.c, m * n)}};
  for (const Argument& each : more) arguments.push_back(each);
  return manifest_of(compiled_for(kernels::gemm(options), target), {options.blocks(m, n)},
                     arguments);
}

TEST(EqualKernels, GemmOfEachType) {
  struct Row {
    Type type, accumulator;
  };
  for (const Row& row : {Row{f16, f32}, Row{bf16, f32}, Row{tf32, f32}, Row{s8, s32}}) {
    const kernels::Gemm options{
        .a = row.type, .b = row.type, .accumulator = row.accumulator, .c = row.accumulator};
    const Manifest a = gemm(options, "sm_80"), b = gemm(options, "sm_90a");
    expect_same(equal(a, b), std::string(name(row.type)));
    expect_same(equal(a, std::string("C = A * B'")), std::string(name(row.type)));
    expect_same(equal(b, std::string("C = A * B'")), std::string(name(row.type)));
    EXPECT_EQ(equal(b, std::string("C = A * B"), {.explain = 0}).verdict, Verdict::different);
  }
}

TEST(EqualKernels, GemmOfEightBits) {
  for (const Type type : {Type::e4m3, Type::e5m2}) {
    const kernels::Gemm options{.a = type, .b = type};
    expect_same(equal(gemm(options, "sm_89"), gemm(options, "sm_90a")));
  }
}

TEST(EqualKernels, GemmWithAnEpilogue) {
  kernels::Gemm options{.a = bf16, .b = bf16};
  options.epilogue = {
      .alpha = true, .beta = true, .bias = true, .activation = kernels::Activation::relu};
  const std::vector<Argument> more = {0.75F, -0.5F, Argument("bias", 4 * n)};
  const Manifest a = gemm(options, "sm_80", more), b = gemm(options, "sm_90a", more);
  expect_same(equal(a, b));
  expect_same(equal(b, std::string("C = relu(0.75 * A * B' - 0.5 * C + bias)")));
  options.epilogue.activation = kernels::Activation::none;
  const Equality wrong =
      equal(gemm(options, "sm_90a", more), std::string("C = 0.75 * A * B' - 0.5 * C"));
  EXPECT_EQ(wrong.verdict, Verdict::different);
  ASSERT_TRUE(wrong.term);
  EXPECT_EQ(wrong.term->buffer, "bias");
  EXPECT_EQ(wrong.term->text, "only the first result depends on it");
}

TEST(EqualKernels, SparseGemm) {
  const auto sparse = [](Type type, const std::string& target) {
    kernels::Gemm options{.a = type, .b = type, .multiple = 32};
    options.m = options.n = options.k = 0;
    options.tile = {.m = 64, .n = 64, .k = 0, .warps_m = 2, .warps_n = 2};
    if (target == "sm_90a")
      options.tile.warps_m = 4, options.tile.warps_n = 1, options.producers = 1;
    constexpr int size = 128;
    const auto words = static_cast<std::size_t>(size * size / 2 * bits(type) / 8 / 8);
    const Compiled compiled = compiled_for(kernels::sparse_gemm(options), target);
    return manifest_of(compiled, {options.blocks(size, size)},
                       {size, size, size, Argument("A", bytes(type, size * size / 2)),
                        Argument("metadata", std::max<std::size_t>(words, 4096)),
                        Argument("B", bytes(type, size * size)), Argument("C", 4 * size * size)});
  };
  expect_same(equal(sparse(f16, "sm_80"), sparse(f16, "sm_90a")));
}

Manifest attention(const kernels::Attention& with, const std::string& target, int queries,
                   int keys) {
  const kernels::Attention options = kernels::tuned(with, *Target::parse(target));
  const std::size_t row = 2 * 64;
  std::vector<Argument> arguments = {queries, keys, 1, 1, 0.125F};
  if (options.window) arguments.push_back(37);
  if (options.softcap != kernels::Softcap::none) arguments.push_back(20.0F);
  arguments.insert(arguments.end(), {Argument("Q", row * static_cast<std::size_t>(queries)),
                                     Argument("K", row * static_cast<std::size_t>(keys)),
                                     Argument("V", row * static_cast<std::size_t>(keys)),
                                     Argument("O", row * static_cast<std::size_t>(queries)),
                                     Argument("LSE", 4 * static_cast<std::size_t>(queries))});
  if (options.sinks) arguments.push_back(Argument("sinks", 4));
  return manifest_of(compiled_for(kernels::attention(options), target),
                     {options.blocks(queries), 1, 1}, arguments);
}
Manifest attention(bool causal, const std::string& target, int queries, int keys) {
  return attention(kernels::Attention{.head_dim = 64, .causal = causal}, target, queries, keys);
}

TEST(EqualKernels, AttentionWithOptions) {
  kernels::Attention options{.head_dim = 64, .causal = true, .window = true};
  const std::string formula = "O = attention(Q, K, V, dim=64, scale=0.125, causal, window=";
  for (const char* target : {"sm_80", "sm_90a"}) {
    expect_same(equal(attention(options, target, 100, 130), formula + "37)"));
    EXPECT_EQ(equal(attention(options, target, 100, 130), formula + "38)", {.explain = 0}).verdict,
              Verdict::different);
  }
  for (const auto softcap : {kernels::Softcap::by_exp, kernels::Softcap::by_tanh}) {
    options.softcap = softcap, options.sinks = true;
    expect_same(equal(attention(options, "sm_80", 100, 130), attention(options, "sm_90a", 100, 130),
                      {.outputs = {"O"}}));
  }
}

TEST(EqualKernels, Attention) {
  for (const bool causal : {false, true}) {
    const Manifest a = attention(causal, "sm_80", 100, 130),
                   b = attention(causal, "sm_90a", 100, 130);
    expect_same(equal(a, b, {.outputs = {"O"}}));
    const std::string formula =
        std::string("O = attention(Q, K, V, dim=64, scale=0.125") + (causal ? ", causal)" : ")");
    expect_same(equal(a, formula));
    expect_same(equal(b, formula));
    // Each kernel has its own base of the exponents in the logarithms of the sums.
    const Equality sums = equal(a, b);
    EXPECT_EQ(sums.verdict, Verdict::undecided);
    EXPECT_EQ(sums.first->buffer, "LSE");
  }
  EXPECT_EQ(
      equal(attention(false, "sm_80", 64, 64), attention(true, "sm_80", 64, 64), {.explain = 0})
          .verdict,
      Verdict::different);
}

// A name that no buffer has would compare, and leave exact, what nobody asked for.
TEST(EqualKernels, OptionsNameBuffers) {
  const Manifest a = attention(false, "sm_80", 16, 16);
  const std::string formula = "O = attention(Q, K, V, dim=64, scale=0.125)";
  const auto refused = [](const Equality& out) {
    EXPECT_EQ(out.verdict, Verdict::refused);
    EXPECT_EQ(out.exit_code(), 2);
    return out.complaints(false);
  };
  EXPECT_NE(refused(equal(a, a, {.exact = {"K", "X"}}))
                .find("--exact X: no such buffer; expected one of Q, K, V, O, LSE"),
            std::string::npos);
  EXPECT_NE(refused(equal(a, a, {.outputs = {"P"}})).find("--output P: no such buffer"),
            std::string::npos);
  EXPECT_NE(refused(equal(a, formula, {.exact = {"X"}})).find("--exact X: no such buffer"),
            std::string::npos);
  EXPECT_NE(refused(equal(a, formula, {.outputs = {"LSE"}}))
                .find("--output LSE: the formula says what is compared: O"),
            std::string::npos);
  expect_same(equal(a, formula, {.outputs = {"O"}}));
}

TEST(EqualKernels, Transpose) {
  const auto of = [](const std::string& target) {
    return manifest_of(compiled_for(kernels::transpose(), target), {2, 2},
                       {128, 72, Argument("in", 2 * 128 * 72), Argument("out", 2 * 128 * 72)});
  };
  expect_same(equal(of("sm_75"), of("sm_90a")));
}

TEST(EqualKernels, WmmaGemmIsGemm) {
  const kernels::WmmaGemm options;
  const Tile tile = kernels::wmma_tile(options);
  const Compiled compiled = compiled_for(kernels::wmma_gemm(options), "sm_80");
  const Manifest wmma = manifest_of(
      compiled, {kernels::Gemm{.tile = tile}.blocks(m, n)},
      {m, n, k, Argument("A", 2 * m * k), Argument("B", 2 * k * n), Argument("C", 4 * m * n)});
  expect_same(equal(wmma, gemm({}, "sm_90a")));
}

// Numbers below 1, so that no run is needed to find out which elements there are.
void give_contents(Manifest& manifest) {
  unsigned seed = 1;
  for (ManifestParam& param : manifest.params) {
    if (!param.buffer) continue;
    const bool singles = param.buffer->name == "bias";
    for (std::size_t i = 0; i < param.buffer->size; i += singles ? 4 : 2) {
      seed = seed * 1664525 + 1013904223;
      const std::uint32_t bits = singles ? 0x3F000000 | seed >> 9 : 0x3000 | (seed >> 16 & 0x8BFF);
      param.buffer->contents.resize(param.buffer->size);
      std::memcpy(&param.buffer->contents[i], &bits, singles ? 4 : 2);
    }
  }
}

// Every `step`-th mistake in one instruction: none is the same function.
void expect_killed(const std::string& target, std::size_t step, int least) {
  kernels::Gemm options;
  options.epilogue = {.alpha = true, .bias = true};
  Manifest right = gemm(options, target, {0.75F, Argument("bias", 4 * n)});
  give_contents(right);
  const auto mutants = testing_mutants::mutants_of(std::string(right.ptx.text()), right.kernel);
  int killed = 0;
  for (std::size_t i = 0; i < mutants.size(); i += step) {
    // The one lane that loops compares itself with its own number plus 1: with 2 it is the same.
    if (mutants[i].what.find(", -127;") != std::string::npos) continue;
    Manifest wrong = right;
    wrong.ptx = Source("mutant.ptx", mutants[i].text);
    const Equality out = equal(right, wrong, {.max_steps = 50'000, .explain = 0});
    const bool found = out.verdict == Verdict::different || out.verdict == Verdict::trapped;
    killed += found;
    EXPECT_TRUE(found) << target << ", " << mutants[i].what << '\n'
                       << out.complaints(false) << out.text();
  }
  EXPECT_GE(killed, least);
}

TEST(EqualKernels, MutantsOfMmaGemm) { expect_killed("sm_80", 2, 60); }
TEST(EqualKernels, MutantsOfWgmmaGemm) { expect_killed("sm_90a", 1, 40); }

}  // namespace
}  // namespace tartan
