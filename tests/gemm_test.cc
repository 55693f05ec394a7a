// SPDX-License-Identifier: Apache-2.0
// The GEMM kernel at awkward sizes, every majorness, on the emulator and, where there is one, a
// GPU, against the naive product of small integers, which is exact in any order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include "tests/numbers.h"

namespace tartan {
namespace {

struct Case {
  kernels::Gemm options;
  int m, n, k;
  const char* target = "sm_80";
};

int largest_power(int x) { return x & -x; }

// Runs one product; the number of wrong elements, or -1 with a complaint.
int wrong_elements(Device& device, const Case& test) {
  kernels::Gemm options = test.options;
  const int line_a = options.a_major == Major::row ? test.k : test.m,
            line_b = options.b_major == Major::row ? test.n : test.k;
  options.multiple = std::min({largest_power(line_a), largest_power(line_b), largest_power(test.n), 16});
  const bool fixed = options.m != 0;
  if (fixed) options.m = test.m, options.n = test.n, options.k = test.k;
  const auto compiled = compile(kernels::gemm(options), *Target::parse(test.target));
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.diags().text());
  if (!compiled) return -1;

  std::vector<int> a, b;
  for (int i = 0; i < test.m * test.k; ++i) a.push_back((i * 7 + i / 5) % 11 - 5);
  for (int i = 0; i < test.k * test.n; ++i) b.push_back((i * 3 + i / 7) % 9 - 4);
  Buffer in_a = *device.allocate(a.size() * 8), in_b = *device.allocate(b.size() * 8);
  EXPECT_TRUE(in_a.write(testing_numbers::encode(options.a, a)));
  EXPECT_TRUE(in_b.write(testing_numbers::encode(options.b, b)));
  const std::size_t bytes = static_cast<std::size_t>(test.m) * test.n * bits(options.c) / 8;
  Buffer out = *device.allocate(bytes);
  EXPECT_TRUE(out.fill(0xFF));

  auto module = device.load(compiled->ptx, compiled->name);
  EXPECT_TRUE(module) << (module ? "" : module.diags().text());
  if (!module) return -1;
  LoadedKernel loaded = *module->kernel(compiled->name);
  Arguments arguments;
  if (!fixed) arguments.add(test.m).add(test.n).add(test.k);
  arguments.add(in_a).add(in_b).add(out);
  const auto launched = loaded.launch({.grid = {options.blocks(test.m, test.n)},
                                       .block = {static_cast<unsigned>(compiled->block)},
                                       .dynamic_shared = static_cast<unsigned>(compiled->dynamic_shared)},
                                      arguments);
  EXPECT_TRUE(launched) << (launched ? "" : launched.diags().text());
  const auto status = device.synchronize();
  EXPECT_TRUE(status) << (status ? "" : status.diags().text());
  if (!launched || !status) return -1;

  const auto got = testing_numbers::decode(options.c, *out.read_all<std::byte>());
  int wrong = 0;
  for (int i = 0; i < test.m; ++i)
    for (int j = 0; j < test.n; ++j) {
      int sum = 0;
      for (int x = 0; x < test.k; ++x)
        sum += a[static_cast<std::size_t>(options.a_major == Major::row ? i * test.k + x : x * test.m + i)] *
               b[static_cast<std::size_t>(options.b_major == Major::row ? x * test.n + j : j * test.k + x)];
      wrong += got[static_cast<std::size_t>(i * test.n + j)] != sum;
    }
  return wrong;
}

constexpr Major majors[] = {Major::row, Major::col};

TEST(Gemm, EveryMajornessAtAwkwardSizes) {
  Device device = *Device::open("emulator");
  const int sizes[][3] = {{1, 1, 1},    {7, 16, 63},  {16, 7, 64},  {63, 65, 7},   {64, 64, 64},
                          {65, 127, 1}, {127, 1, 65}, {64, 200, 16}, {200, 63, 127}, {1, 64, 200},
                          {128, 72, 40}};
  for (const Major a : majors)
    for (const Major b : majors)
      for (const auto& [m, n, k] : sizes) {
        SCOPED_TRACE(fmt::format("{}{} {} x {} x {}", name(a), name(b), m, n, k));
        kernels::Gemm options{.m = 0, .n = 0, .k = 0};
        options.a_major = a, options.b_major = b;
        EXPECT_EQ(wrong_elements(device, {options, m, n, k}), 0);
      }
}

}  // namespace
}  // namespace tartan
