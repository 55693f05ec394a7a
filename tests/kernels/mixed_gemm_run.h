// SPDX-License-Identifier: Apache-2.0
// tests/kernels/mixed_gemm_run.h - runs mixed-input GEMM and computes the expected result in
// double, from weights as they are before they are shuffled.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <cmath>

#include "tartan/kernels/mixed_gemm.h"
#include "tests/kernels/two_launches.h"
#include "tests/support/numbers.h"

namespace tartan::testing_mixed_gemm {

using kernels::MixedGemm;

struct Sizes {
  int m, n, k;
  unsigned blocks = 3;
};

inline unsigned next(unsigned& seed) { return (seed = seed * 1664525 + 1013904223) >> 8; }

// To nearest even; no subnormal numbers.
inline double rounded(Type type, double x) {
  int exponent = 0;
  const int digits = testing_numbers::format(type).mantissa + 1;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, digits)), exponent - digits);
}

struct Problem {
  std::vector<std::uint16_t> x, scales;
  std::vector<std::uint8_t> weights, zeros;
  int groups;

  Problem(const MixedGemm& with, const Sizes& size)
      : groups((size.k + with.group - 1) / with.group) {
    unsigned seed = 7;
    const auto number = [&](double value) {
      return static_cast<std::uint16_t>(testing_numbers::float_bits(with.type, value));
    };
    const unsigned most = with.weight == Type::u4 ? 15 : 255;
    for (int i = 0; i < size.m * size.k; ++i)
      x.push_back(number((static_cast<int>(next(seed) % 65536) - 32768) / 32768.0));
    for (int i = 0; i < size.n * size.k; ++i)
      weights.push_back(static_cast<std::uint8_t>(next(seed) % (most + 1)));
    for (int i = 0; i < size.n * groups; ++i) {
      scales.push_back(number((static_cast<int>(next(seed) % 64) + 16) / (most * 32.0)));
      if (with.zeros) zeros.push_back(static_cast<std::uint8_t>(next(seed) % (most + 1)));
    }
  }

  std::vector<double> reference(const MixedGemm& with, const Sizes& size) const {
    const auto value = [&](std::uint16_t bits) {
      return testing_numbers::float_value(with.type, bits);
    };
    const std::size_t n = static_cast<std::size_t>(size.n), k = static_cast<std::size_t>(size.k);
    std::vector<double> w(n * k), out;
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < k; ++i) {
        const std::size_t group =
            j * static_cast<std::size_t>(groups) + i / static_cast<std::size_t>(with.group);
        const int zero = with.zeros ? zeros[group] : with.weight == Type::u4 ? 8 : 128;
        double& each = w[j * k + i];
        each = (weights[j * k + i] - zero) * value(scales[group]);
        if (!with.scale_sums) each = rounded(with.type, each);
      }
    for (int row = 0; row < size.m; ++row)
      for (std::size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::size_t i = 0; i < k; ++i)
          sum += value(x[static_cast<std::size_t>(row) * k + i]) * w[j * k + i];
        out.push_back(sum);
      }
    return out;
  }
};

// The kernel's results of two launches on one work space; fails the test on any error.
inline std::vector<double> run(Device& device, const Target& target, const MixedGemm& with,
                               const Sizes& size, const Problem& in) {
  const auto compiled = compile(kernels::mixed_gemm(with), target);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.diags().text());
  if (!compiled) return {};
  EXPECT_EQ(compiled->warnings.size(), 0U) << compiled->warnings.text();
  const auto shuffled = kernels::shuffled_weights(in.weights, std::as_bytes(std::span(in.scales)),
                                                  in.zeros, size.n, size.k, with);
  EXPECT_TRUE(shuffled) << (shuffled ? "" : shuffled.diags().text());
  if (!shuffled) return {};
  const auto buffer = [&](const auto& data) {
    Buffer out = *device.allocate(std::max<std::size_t>(data.size() * sizeof(data[0]), 16));
    EXPECT_TRUE(out.write(data));
    return out;
  };
  const Buffer x = buffer(in.x), w = buffer(shuffled->weights), s = buffer(shuffled->scales),
               z = buffer(shuffled->zeros);
  const std::size_t elements = static_cast<std::size_t>(size.m) * static_cast<std::size_t>(size.n);
  constexpr std::size_t guard = 64;
  Buffer y = *device.allocate(elements * 2 + guard),
         p = *device.allocate(std::max<std::size_t>(
             static_cast<std::size_t>(with.partial_elements(size.blocks)) * 4, 16)),
         counters = buffer(std::vector<std::uint32_t>(
             static_cast<std::size_t>(with.counter_elements(size.m, size.n))));
  auto module = device.load(compiled->ptx, compiled->name);
  EXPECT_TRUE(module) << (module ? "" : module.diags().text());
  if (!module) return {};
  LoadedKernel loaded = *module->kernel(compiled->name);
  Arguments arguments;
  if (!with.m) arguments.add(size.m);
  if (!with.n) arguments.add(size.n);
  if (!with.k) arguments.add(size.k);
  arguments.add(x).add(w).add(s);
  if (with.zeros) arguments.add(z);
  arguments.add(y);
  if (with.sums_in_memory()) arguments.add(p).add(counters);
  std::vector<std::byte> bytes =
      test::two_launches(device, loaded, *compiled, size.blocks, arguments, y);
  if (bytes.empty()) return {};
  EXPECT_TRUE(std::all_of(bytes.end() - guard, bytes.end(),
                          [](std::byte b) { return b == std::byte{0xFF}; }));
  bytes.resize(elements * 2);
  return testing_numbers::decode(with.type, bytes);
}

inline std::string text(const MixedGemm& with) {
  return fmt::format("{} {} group {}{}{} tile {}x{}x{} warps {}x{} stages {} producers {}{}{}",
                     name(with.type), name(with.weight), with.group, with.zeros ? " zeros" : "",
                     with.scale_sums ? "" : " scaled weights", with.tile_m, with.tile_n,
                     with.tile_k, with.warps_n, with.warps_k, with.stages, with.producers,
                     with.split ? " split" : "", with.warpgroups ? " warpgroups" : "") +
         fmt::format("{} cluster {}{}", with.even ? " even" : "", with.cluster,
                     with.overlap ? " overlap" : "");
}

/// What three products in a row give, each of which multiplies the result of the one before it;
/// n = k. With `programmatic`, the second and the third may start before that one ends. With
/// `overwrites_weights`, the first writes the second's. Findings stay with the device.
inline std::vector<std::byte> chain(Device& device, const Target& target, const MixedGemm& with,
                                    const Sizes& size, bool programmatic,
                                    bool overwrites_weights = false) {
  const Problem in(with, size);
  const auto compiled = compile(kernels::mixed_gemm(with), target);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.diags().text());
  if (!compiled) return {};
  const auto shuffled = *kernels::shuffled_weights(in.weights, std::as_bytes(std::span(in.scales)),
                                                   in.zeros, size.n, size.k, with);
  const auto buffer = [&](const auto& data) {
    Buffer out = *device.allocate(data.size() * sizeof(data[0]));
    EXPECT_TRUE(out.write(data));
    return out;
  };
  const Buffer w = buffer(shuffled.weights), first = buffer(shuffled.weights),
               s = buffer(shuffled.scales),
               p = *device.allocate(std::max<std::size_t>(
                   static_cast<std::size_t>(with.partial_elements(size.blocks)) * 4, 16)),
               counters = buffer(std::vector<std::uint32_t>(
                   static_cast<std::size_t>(with.counter_elements(size.m, size.n))));
  std::vector<Buffer> products{buffer(in.x)};
  for (int i = 0; i < 3; ++i) products.push_back(*device.allocate(in.x.size() * 2));
  auto module = device.load(compiled->ptx, compiled->name);
  LoadedKernel loaded = *module->kernel(compiled->name);
  for (std::size_t i = 0; i < 3; ++i) {
    Arguments arguments;
    arguments.add(products[i]).add(i ? w : first).add(s);
    arguments.add(overwrites_weights && i == 0 ? w : products[i + 1]);
    if (with.sums_in_memory()) arguments.add(p).add(counters);
    const Launch launch{.grid = {size.blocks},
                        .block = {static_cast<std::uint32_t>(compiled->block)},
                        .dynamic_shared = static_cast<std::uint32_t>(compiled->dynamic_shared),
                        .programmatic = programmatic && i > 0};
    const auto launched = loaded.launch(launch, *arguments_of(*compiled, arguments));
    EXPECT_TRUE(launched) << launched.diags().text();
  }
  EXPECT_EQ(static_cast<bool>(device.synchronize()), !overwrites_weights);
  return *products.back().read_all<std::byte>();
}

inline void expect_mixed(Device& device, const Target& target, const MixedGemm& with,
                         const Sizes& size) {
  SCOPED_TRACE(fmt::format("{}, {} x {} x {}, {} blocks, on {}", text(with), size.m, size.n, size.k,
                           size.blocks, target.text()));
  const Problem problem(with, size);
  const std::vector<double> got = run(device, target, with, size, problem);
  if (got.empty()) return;
  const std::vector<double> expected = problem.reference(with, size);
  ASSERT_EQ(got.size(), expected.size());
  // Rounding of the result, and sums of numbers below 2 in f32.
  const double u = std::ldexp(1, with.type == f16 ? -11 : -8);
  EXPECT_EQ(reference::difference(got, expected, static_cast<std::size_t>(size.n),
                                  {.relative = u, .absolute = std::ldexp(size.k, -22)}),
            "");
}

}  // namespace tartan::testing_mixed_gemm
