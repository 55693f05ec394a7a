// SPDX-License-Identifier: Apache-2.0
// Products with a sparse A against the naive product of the same, dense.
#include "tests/gemm_run.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::Launch;
using testing_gemm::Product;

// Zeros where the pattern wants them: another pair (or one of a pair) in each group.
void prune(Product& product) {
  const int group = bits(product.options.a) == 32 ? 2 : 4;
  static constexpr int pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  for (std::size_t i = 0; i < product.a.size(); ++i) {
    const std::size_t which = i / static_cast<std::size_t>(group) * 7 / 3;
    const int at = static_cast<int>(i % static_cast<std::size_t>(group));
    const auto& pair = pairs[which % 6];
    const bool kept =
        group == 2 ? at == static_cast<int>(which % 2) : at == pair[0] || at == pair[1];
    if (!kept) product.a[i] = 0;
  }
}

int wrong(const Gemm& options, int m, int n, int k, const char* target) {
  SCOPED_TRACE(fmt::format("{} {}: {} x {} x {}", name(options.a), target, m, n, k));
  if (testing_gemm::gpu() &&
      testing_gemm::gpu()->arch().sm < testing_gemm::target_of(target).arch.sm)
    return 0;  // the GPU is older than the type
  Product product(options, m, n, k);
  prune(product);
  const auto compressed =
      kernels::compress(testing_numbers::encode(options.a, product.a), m, k, options.a);
  EXPECT_TRUE(compressed) << (compressed ? "" : compressed.diags().text());
  if (!compressed) return -1;
  // A's lines are half as long.
  product.options.multiple = std::max(product.options.multiple / 2, 1);
  Launch launch = product.launch();
  launch.arguments = [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
    arguments.add(m).add(n).add(k);
    Bytes metadata(compressed->metadata.size() * 4);
    std::memcpy(metadata.data(), compressed->metadata.data(), metadata.size());
    for (const Bytes& each :
         {compressed->values, metadata, testing_numbers::encode(options.b, product.b)}) {
      buffers.push_back(testing_gemm::buffer_of(device, each));
      arguments.add(buffers.back());
    }
    return product.add_output(device, arguments);
  };
  return product.wrong(testing_gemm::run(kernels::sparse_gemm(product.options),
                                         testing_gemm::target(target), launch));
}

TEST(SparseGemm, EveryTypeAtAwkwardSizes) {
  const int sizes[][3] = {{1, 7, 4},      {7, 16, 8},    {16, 1, 64},   {63, 127, 16},
                          {64, 200, 128}, {65, 63, 200}, {127, 65, 36}, {200, 64, 68}};
  const std::pair<Gemm, const char*> types[] = {
      {{}, "sm_80"},
      {{.a = bf16, .b = bf16}, "sm_90"},
      {{.accumulator = f16, .c = f16}, "sm_80"},
      {{.a = f32, .b = f32}, "sm_80"},
      {{.a = s8, .b = s8, .accumulator = s32, .c = s32}, "sm_80"},
      {{.a = u8, .b = s8, .accumulator = s32, .c = s32}, "sm_80"},
      {{.a = Type::e4m3, .b = Type::e5m2}, "sm_89"}};
  for (const auto& [m, n, k] : sizes)
    for (auto [options, target] : types)
      for (const Major b_major : {Major::row, Major::col}) {
        options.b_major = b_major;
        EXPECT_EQ(wrong(options, m, n, k, target), 0);
      }
}

TEST(SparseGemm, CompressRefusesWhatIsTooDense) {
  const auto one = testing_numbers::encode(f16, {0, 1, 2, 0, 1, 2, 3, 0});
  const auto refused = kernels::compress(one, 1, 8, f16);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.diags().text().find("row 0, columns 4 to 7"), std::string::npos);
  EXPECT_FALSE(kernels::compress(one, 1, 6, f16));
  EXPECT_FALSE(kernels::compress(one, 1, 8, Type::s4));
}

}  // namespace
}  // namespace tartan
