// SPDX-License-Identifier: Apache-2.0
// tests/kernels/gemm_run.h - runs a GEMM kernel on small integers, and computes the expected result
// with the naive loop. If there is a GPU, it must give the same bits for the same text.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "tests/kernels/findings.h"
#include "tests/support/numbers.h"

namespace tartan::testing_gemm {

using Bytes = std::vector<std::byte>;

inline Device& emulator() {
  static Device device = *Device::open("emulator");
  return device;
}

/// The first GPU, if there is one.
inline Device* gpu() {
  static auto device = Device::open("cuda");
  return device ? &*device : nullptr;
}

/// Whether a GPU is present that runs text for this target.
inline bool runs_on_gpu(const Target& target) {
  if (!gpu()) return false;
  const int sm = gpu()->arch().sm;
  return target.arch.suffix ? target.arch.sm == sm : target.arch.sm <= sm;
}

inline Target target_of(std::string_view name) {
  Target target = *Target::parse(name);
  target.ptx = {9, 0};  // which the assembler of CUDA 13.0 takes
  return target;
}

/// The target that a test compiles for: the GPU's if there is one.
inline Target target(std::string_view otherwise) {
  return target_of(gpu() ? gpu()->arch().text() : std::string(otherwise));
}

struct Launch {
  Dim3 grid;
  /// Adds the arguments; buffers that must stay alive come from `device`. Gives the output.
  std::function<Buffer(Device&, Arguments&, std::vector<Buffer>&)> arguments;
};

/// Loads and launches: the bytes of the output, or the errors.
inline Result<Bytes> result_on(Device& device, const Compiled& compiled, const Launch& launch) {
  const auto module = device.load(compiled.ptx, compiled.name);
  if (!module) return module.diags();
  auto kernel = module->kernel(compiled.name);
  if (!kernel) return kernel.diags();
  Arguments arguments;
  std::vector<Buffer> buffers;
  Buffer out = launch.arguments(device, arguments, buffers);
  device.clear_findings();
  const auto launched = tartan::launch(*kernel, compiled, launch.grid, arguments);
  if (!launched) return launched.diags();
  const auto status = device.synchronize();
  if (!status) return status.diags();
  return *out.read_all<std::byte>();
}

/// The same, without errors allowed.
inline Bytes run_on(Device& device, const Compiled& compiled, const Launch& launch) {
  const auto out = result_on(device, compiled, launch);
  EXPECT_TRUE(out) << out.diags().text();
  for (const Finding& finding : test::defects(device))
    ADD_FAILURE() << finding.id << ": " << finding.message;
  return out ? *out : Bytes{};
}

/// Compiles and runs; returns the emulator's output (nothing after an error). `exact`: the GPU
/// gives the same bits.
inline Bytes run(const Kernel& kernel, const Target& target, const Launch& launch,
                 bool exact = true) {
  const auto compiled = compile(kernel, target);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.diags().text());
  if (!compiled) return {};
  Bytes out = run_on(emulator(), *compiled, launch);
  if (gpu() && exact && gpu()->arch().sm >= target.arch.sm) {
    EXPECT_EQ(out, run_on(*gpu(), *compiled, launch));
  }
  return out;
}

inline Buffer buffer_of(Device& device, const Bytes& bytes) {
  Buffer out = *device.allocate(std::max<std::size_t>(bytes.size(), 16));
  EXPECT_TRUE(out.write(bytes));
  return out;
}

inline int largest_power(int x) { return x & -x; }

/// Two matrices of small integers that `a` and `b` represent, and their product. `small`: -1, 0 and
/// 1, so that 16-bit sums are exact.
struct Product {
  kernels::Gemm options;
  int m = 0, n = 0, k = 0;
  bool small = false;
  std::vector<int> a, b;  // in memory order

  Product(const kernels::Gemm& wanted, int rows, int cols, int depth, bool fixed = false)
      : options(wanted), m(rows), n(cols), k(depth) {
    small = bits(options.accumulator) == 16 || bits(options.c) == 16 ||
            (info(options.a).floating && std::min(bits(options.a), bits(options.b)) < 8);
    const int line_a = options.a_major == Major::row ? k : m,
              line_b = options.b_major == Major::row ? n : k;
    options.multiple = std::min({largest_power(line_a), largest_power(line_b), 1024});
    options.multiple_c = std::min(largest_power(n), 1024);
    options.m = fixed ? m : 0, options.n = fixed ? n : 0, options.k = fixed ? k : 0;
    for (int i = 0; i < m * k; ++i) a.push_back(element(options.a, i * 7 + i / 5, 11));
    for (int i = 0; i < k * n; ++i) b.push_back(element(options.b, i * 3 + i / 7, 9));
  }

  int element(Type type, int i, int range) const {
    if (type == Type::b1) return i % range % 2;
    if (type == Type::u4 || type == Type::u8) return i % range;
    return small ? i % 3 - 1 : i % range - range / 2;
  }
  int a_at(int i, int x) const {
    return a[static_cast<std::size_t>(options.a_major == Major::row ? i * k + x : x * m + i)];
  }
  int b_at(int x, int j) const {
    return b[static_cast<std::size_t>(options.b_major == Major::row ? x * n + j : j * k + x)];
  }
  int sum(int i, int j) const {
    int out = 0;
    for (int x = 0; x < k; ++x) {
      const int p = a_at(i, x), q = b_at(x, j);
      out += options.a != Type::b1                    ? p * q
             : options.bit_op == isa::BitOp::and_popc ? (p & q)
                                                      : (p ^ q);
    }
    return out;
  }

  /// The arguments up to and without C.
  void add_inputs(Device& device, Arguments& arguments, std::vector<Buffer>& buffers) const {
    if (options.m == 0) arguments.add(m).add(n).add(k);
    for (const Bytes& each :
         {testing_numbers::encode(options.a, a), testing_numbers::encode(options.b, b)}) {
      buffers.push_back(buffer_of(device, each));
      arguments.add(buffers.back());
    }
  }
  Buffer add_output(Device& device, Arguments& arguments) const {
    Buffer out = *device.allocate(static_cast<std::size_t>(m) * n * bits(options.c) / 8);
    EXPECT_TRUE(out.fill(0xFF));
    arguments.add(out);
    return out;
  }
  Launch launch() const {
    return {{options.blocks(m, n)},
            [this](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
              add_inputs(device, arguments, buffers);
              return add_output(device, arguments);
            }};
  }

  /// Wrong elements of `got`; prints the first.
  int wrong(const Bytes& got, const std::function<double(int, int)>& expected,
            double tolerance = 0) const {
    const auto values = testing_numbers::decode(options.c, got);
    EXPECT_EQ(values.size(), static_cast<std::size_t>(m) * n);
    if (values.size() != static_cast<std::size_t>(m) * n) return -1;
    int count = 0;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        const double want = expected(i, j), value = values[static_cast<std::size_t>(i * n + j)];
        const bool good = std::fabs(value - want) <= tolerance * std::max(1.0, std::fabs(want));
        if (!good && count++ == 0)
          ADD_FAILURE() << fmt::format("element ({}, {}): expected {}, got {}", i, j, want, value);
      }
    return count;
  }
  int wrong(const Bytes& got) const {
    return wrong(got, [&](int i, int j) { return sum(i, j); });
  }
};

/// Whether text for sm_90a runs: on the GPU, if there is one.
inline bool runs_hopper() { return !gpu() || runs_on_gpu(target_of("sm_90a")); }

/// Compiles a product for sm_90a and compares it with the naive loop, on the emulator also in other
/// orders of warps, with all checks. `blocks`: CTAs; 0: one for each tile.
inline std::optional<Compiled> compare_on_hopper(const Product& product, unsigned blocks = 0) {
  const Target target = target_of("sm_90a");
  Launch launch = product.launch();
  if (blocks) launch.grid = {blocks};
  const Kernel gemm = kernels::gemm(product.options);
  EXPECT_EQ(product.wrong(run(gemm, target, launch)), 0);
  const auto compiled = compile(gemm, target);
  if (!compiled) return {};  // run() has reported it
  for (const char* seed : {"1", "2"}) {
    Device device =
        *Device::open("emulator", {.hardware = "sm_90a", .schedule = seed, .checks = Checks::all});
    EXPECT_EQ(product.wrong(run_on(device, *compiled, launch)), 0);
  }
  return *compiled;
}

}  // namespace tartan::testing_gemm
