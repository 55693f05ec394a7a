// SPDX-License-Identifier: Apache-2.0
// Split-K in one launch: the bits of two launches, counters that are zeros again, no findings.
#include <random>

#include "tests/kernels/gemm_finished.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::every_part;
using testing_gemm::Finished;
using testing_gemm::Launch;
using testing_gemm::Product;
using testing_gemm::target_of;

// Numbers of either sign and of several magnitudes: the order of additions decides the bits.
Bytes random_numbers(Type type, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes out;
  for (std::int64_t i = 0; i < count; ++i) {
    const double magnitude = std::ldexp(1 + (random() % 8) / 8.0, int(random() % 5) - 2);
    const std::uint64_t word =
        info(type).floating
            ? testing_numbers::float_bits(type, random() % 2 ? magnitude : -magnitude)
            : random();
    for (int byte = 0; byte < bits(type) / 8; ++byte)
      out.push_back(static_cast<std::byte>(word >> 8 * byte));
  }
  return out;
}

// A product of random numbers with the values of an epilogue, split along k.
class Split {
 public:
  Split(const Gemm& options, int m, int n, int k)
      : finished_{made(options, m, n, k)},
        a_(random_numbers(options.a, std::int64_t{m} * k, 1)),
        b_(random_numbers(options.b, std::int64_t{k} * n, 2)) {}

  Bytes by_two(Device& device, const Target& target) const {
    Gemm options = finished_.product.options;
    options.one_launch = false;
    const Product& product = finished_.product;
    Bytes parts;
    {
      Launch launch{grid(), [&](Device& on, Arguments& arguments, std::vector<Buffer>& buffers) {
                      add_inputs(on, arguments, buffers);
                      Buffer out = workspace(on);
                      arguments.add(out);
                      return out;
                    }};
      parts = run(device, kernels::gemm(options), target, launch);
    }
    Launch launch{{static_cast<unsigned>((product.m * product.n + 255) / 256)},
                  [&](Device& on, Arguments& arguments, std::vector<Buffer>& buffers) {
                    arguments.add(product.m).add(product.n);
                    buffers.push_back(testing_gemm::buffer_of(on, parts));
                    arguments.add(buffers.back());
                    Buffer c = old_c(on);
                    arguments.add(c);
                    finished_.add_extras(on, arguments, buffers);
                    return c;
                  }};
    return run(device, kernels::gemm_sum(options), target, launch);
  }

  // Twice, with the same counters.
  void expect_same(Device& device, const Target& target, const Bytes& expected) const {
    const auto compiled = compile(kernels::gemm(finished_.product.options), target);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const auto module = device.load(compiled->ptx, compiled->name);
    ASSERT_TRUE(module) << module.diags().text();
    auto kernel = module->kernel(compiled->name);
    ASSERT_TRUE(kernel) << kernel.diags().text();
    const Product& product = finished_.product;
    const auto count = product.options.counter_elements(product.m, product.n);
    Buffer parts = workspace(device),
           counters = *device.allocate(static_cast<std::size_t>(count) * 4);
    ASSERT_TRUE(counters.fill(0));
    for (int launches = 0; launches < 2; ++launches) {
      Arguments arguments;
      std::vector<Buffer> buffers;
      add_inputs(device, arguments, buffers);
      Buffer c = old_c(device);
      arguments.add(c);
      finished_.add_extras(device, arguments, buffers);
      arguments.add(parts).add(counters);
      device.clear_findings();
      const auto launched = launch(*kernel, *compiled, grid(), arguments);
      ASSERT_TRUE(launched) << launched.diags().text();
      const auto status = device.synchronize();
      ASSERT_TRUE(status) << status.diags().text();
      for (const Finding& finding : device.findings())
        ADD_FAILURE() << finding.id << ": " << finding.message;
      EXPECT_EQ(*c.read_all<std::byte>(), expected) << "launch " << launches;
      EXPECT_EQ(*counters.read_all<std::uint32_t>(),
                std::vector<std::uint32_t>(static_cast<std::size_t>(count)));
    }
  }

  const Product& product() const { return finished_.product; }

 private:
  static Product made(const Gemm& options, int m, int n, int k) {
    Product out(options, m, n, k);
    if (k == 0) out.options.multiple = 8;
    return out;
  }
  static Bytes run(Device& device, const Kernel& kernel, const Target& target,
                   const Launch& launch) {
    const auto compiled = compile(kernel, target);
    EXPECT_TRUE(compiled) << (compiled ? "" : compiled.diags().text());
    return compiled ? testing_gemm::run_on(device, *compiled, launch) : Bytes{};
  }
  Dim3 grid() const {
    const Product& product = finished_.product;
    return {product.options.blocks(product.m, product.n),
            static_cast<unsigned>(product.options.splits)};
  }
  void add_inputs(Device& device, Arguments& arguments, std::vector<Buffer>& buffers) const {
    const Product& product = finished_.product;
    arguments.add(product.m).add(product.n).add(product.k);
    for (const Bytes* each : {&a_, &b_}) {
      buffers.push_back(testing_gemm::buffer_of(device, *each));
      arguments.add(buffers.back());
    }
  }
  // NaN: what nobody wrote shows.
  Buffer workspace(Device& device) const {
    const Product& product = finished_.product;
    const auto count = product.options.workspace_elements(product.m, product.n);
    Buffer out =
        *device.allocate(static_cast<std::size_t>(count * bits(product.options.accumulator) / 8));
    EXPECT_TRUE(out.fill(0xFF));
    return out;
  }
  Buffer old_c(Device& device) const {
    const Product& product = finished_.product;
    const std::vector<int> old(static_cast<std::size_t>(product.m) * product.n, 3);
    return testing_gemm::buffer_of(device, testing_numbers::encode(product.options.c, old));
  }

  Finished finished_;
  Bytes a_, b_;
};

struct Size {
  int m, n, k;
};

void expect_bits_of_two_launches(const Gemm& options, const char* name, const Size& size) {
  SCOPED_TRACE(fmt::format("{}, {} to {}: {} x {} x {}, {} splits, swap {}, cluster {} x {}", name,
                           tartan::name(options.a), tartan::name(options.c), size.m, size.n, size.k,
                           options.splits, options.swap, options.cluster, options.cluster_columns));
  Gemm once = options;
  once.one_launch = true;
  const Split split(once, size.m, size.n, size.k);
  const Target target = target_of(name);
  const Bytes expected = split.by_two(testing_gemm::emulator(), target);
  ASSERT_EQ(expected.size(),
            std::size_t(size.m) * std::size_t(size.n) * std::size_t(bits(options.c)) / 8);
  split.expect_same(testing_gemm::emulator(), target, expected);
  if (!testing_gemm::runs_on_gpu(target)) return;
  Device& gpu = *testing_gemm::gpu();
  split.expect_same(gpu, target, split.by_two(gpu, target));
}

Gemm by_warps(int splits) {
  Gemm out{.a = bf16, .b = bf16, .c = bf16, .epilogue = every_part, .splits = splits};
  out.tile = {.m = 64, .n = 32, .k = 32, .warps_m = 2, .warps_n = 2};
  return out;
}

Gemm by_warpgroups(int splits) {
  Gemm out{.a = bf16, .b = bf16, .c = bf16, .producers = 4};
  out.epilogue = every_part, out.splits = splits;
  out.tile = {.m = 128, .n = 72, .k = 64, .warps_m = 8, .warps_n = 1};
  return out;
}

// No multiples of a tile; a k of fewer k-tiles than splits, of a part of one, and of none.
constexpr Size sizes[] = {{70, 136, 392}, {130, 72, 520}, {65, 40, 64}, {9, 200, 24}, {72, 40, 0}};

TEST(GemmOneLaunch, HasTheBitsOfTwoLaunches) {
  for (const int splits : {2, 3, 5})
    for (const Size& size : sizes) {
      expect_bits_of_two_launches(by_warps(splits), "sm_80", size);
      expect_bits_of_two_launches(by_warpgroups(splits), "sm_90a", size);
    }
}

TEST(GemmOneLaunch, OddRows) {
  for (const int splits : {2, 4}) {
    expect_bits_of_two_launches(by_warps(splits), "sm_80", {67, 41, 131});
    Gemm copies = by_warps(splits);
    copies.producers = 2;
    expect_bits_of_two_launches(copies, "sm_90", {67, 41, 131});
    copies.tile.warps_k = 2;
    expect_bits_of_two_launches(copies, "sm_90", {67, 41, 131});
  }
}

TEST(GemmOneLaunch, Swapped) {
  for (const int splits : {2, 3})
    for (const Size& size : {Size{65, 200, 712}, {3, 70, 520}}) {
      Gemm options = by_warpgroups(splits);
      options.tile = {.m = 64, .n = 24, .k = 64, .warps_m = 4, .warps_n = 1};
      options.swap = true;
      expect_bits_of_two_launches(options, "sm_90a", size);
      options = by_warps(splits), options.swap = true;
      expect_bits_of_two_launches(options, "sm_80", size);
    }
}

// Beyond the last tile of C clusters have CTAs without a tile.
TEST(GemmOneLaunch, InClustersThatShareOperands) {
  for (const auto& [rows, columns] : {std::pair{2, 1}, {1, 2}, {2, 2}, {4, 1}}) {
    Gemm options = by_warpgroups(2);
    options.tile.n = 64;
    options.cluster = rows, options.cluster_columns = columns;
    expect_bits_of_two_launches(options, "sm_90a", {300, 136, 392});
    options.splits = 3, options.swap = true, options.tile.m = 64, options.tile.warps_m = 4;
    expect_bits_of_two_launches(options, "sm_90a", {72, 264, 456});
  }
}

TEST(GemmOneLaunch, OtherTypes) {
  for (const int splits : {2, 3}) {
    Gemm integers = by_warps(splits);
    integers.a = integers.b = s8, integers.accumulator = s32, integers.c = s8;
    integers.tile.k = 64;
    expect_bits_of_two_launches(integers, "sm_80", {70, 48, 400});
    integers.c = s32, integers.epilogue = {};
    expect_bits_of_two_launches(integers, "sm_80", {70, 48, 400});
    Gemm halves = by_warps(splits);
    halves.a = halves.b = halves.c = halves.accumulator = f16;
    expect_bits_of_two_launches(halves, "sm_80", {70, 48, 200});
    Gemm doubles = by_warps(splits);
    doubles.a = doubles.b = doubles.c = doubles.accumulator = f64;
    expect_bits_of_two_launches(doubles, "sm_80", {70, 48, 200});
    Gemm bytes = by_warpgroups(splits);
    bytes.a = bytes.b = bytes.c = Type::e4m3, bytes.promote = 2;
    bytes.tile.k = 128;
    expect_bits_of_two_launches(bytes, "sm_90a", {70, 144, 912});
  }
}

// CTAs arrive in any order.
TEST(GemmOneLaunch, UnderOtherSchedules) {
  for (const auto& [name, with] : {std::pair{"sm_80", by_warps(3)}, {"sm_90a", by_warpgroups(3)}}) {
    Gemm options = with;
    options.one_launch = true;
    const Split split(options, 130, 72, 520);
    const Target target = target_of(name);
    const Bytes expected = split.by_two(testing_gemm::emulator(), target);
    for (int seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", name, seed));
      Device device =
          *Device::open("emulator", {.schedule = fmt::format("{}", seed), .checks = Checks::all});
      split.expect_same(device, target, expected);
    }
  }
}

// Of exact sums the naive loop tells what they must be.
TEST(GemmOneLaunch, IsTheProduct) {
  Gemm options = by_warpgroups(4);
  options.one_launch = true, options.c = f32;
  options.epilogue.beta = false;
  const Finished finished{Product(options, 150, 136, 600)};
  const Product& product = finished.product;
  const Launch launch{
      {product.options.blocks(product.m, product.n), 4},
      [&](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
        product.add_inputs(device, arguments, buffers);
        Buffer c = product.add_output(device, arguments);
        finished.add_extras(device, arguments, buffers);
        const auto elements = product.options.workspace_elements(product.m, product.n),
                   counters = product.options.counter_elements(product.m, product.n);
        buffers.push_back(*device.allocate(static_cast<std::size_t>(elements) * 4));
        EXPECT_TRUE(buffers.back().fill(0xFF));
        arguments.add(buffers.back());
        buffers.push_back(*device.allocate(static_cast<std::size_t>(counters) * 4));
        EXPECT_TRUE(buffers.back().fill(0));
        arguments.add(buffers.back());
        return c;
      }};
  EXPECT_EQ(
      product.wrong(testing_gemm::run(kernels::gemm(product.options), target_of("sm_90a"), launch),
                    [&](int i, int j) { return finished.expected(i, j); }),
      0);
}

std::string refusal(const Kernel& kernel) {
  const auto compiled = compile(kernel, target_of("sm_90a"));
  return compiled ? "compiled" : compiled.diags().text();
}

void expect_refused(const Gemm& options, std::string_view why) {
  const std::string found = refusal(kernels::gemm(options));
  EXPECT_NE(found.find(why), std::string::npos) << found;
}

TEST(GemmOneLaunch, RejectsWhatItCannotAdd) {
  expect_refused({.one_launch = true}, "splits = 1: expected 2 to 16 splits");
  expect_refused({.splits = 17, .one_launch = true}, "splits = 17: expected 2 to 16 splits");
  expect_refused({.one_launch = true, .stream_blocks = 4}, "splits = 1: expected 2 to 16 splits");
  expect_refused({.one_launch = true, .cluster_splits = 2}, "splits = 1: expected 2 to 16 splits");
  expect_refused({.splits = 2, .one_launch = true, .batched = true}, "batched");
  expect_refused({.splits = 2, .one_launch = true, .persistent = true}, "persistent");
  EXPECT_EQ(refusal(kernels::gemm({.splits = 16, .one_launch = true})), "compiled");
  const std::string sum = refusal(kernels::gemm_sum({.splits = 2, .one_launch = true}));
  EXPECT_NE(sum.find("gemm() adds the partial sums itself"), std::string::npos) << sum;
}

TEST(GemmOneLaunch, SaysWhatItNeeds) {
  Gemm options{.splits = 4, .one_launch = true};
  EXPECT_FALSE(options.sum_follows());
  EXPECT_EQ(options.counter_elements(130, 64), 3);
  options.one_launch = false;
  EXPECT_TRUE(options.sum_follows());
  EXPECT_EQ(options.counter_elements(130, 64), 0);
  EXPECT_TRUE((Gemm{.stream_blocks = 3}).sum_follows());
  EXPECT_FALSE(Gemm{}.sum_follows());
}

}  // namespace
}  // namespace tartan
