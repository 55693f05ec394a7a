// SPDX-License-Identifier: Apache-2.0
// tests/kernels/attention_run.h - runs the attention kernel, and computes the expected result in
// double precision, from the same rounded elements.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <cmath>
#include <limits>

#include "tartan/kernels/attention.h"
#include "tests/support/numbers.h"

namespace tartan::testing_attention {

struct Lengths {
  int queries, keys, heads = 1, kv_heads = 1, batch = 1;
  unsigned blocks = 0;  // of each batch, for persistent kernels; 0: one for each tile
};

/// Numbers of a type, and their bits.
struct Elements {
  Type type;
  std::vector<double> values;
  std::vector<std::uint16_t> bits;

  void set(std::size_t i, std::uint16_t word) {
    bits[i] = word, values[i] = testing_numbers::float_value(type, word);
  }
  void set(std::size_t i, double value) {
    set(i, static_cast<std::uint16_t>(testing_numbers::float_bits(type, value)));
  }
};

/// In (-1, 1).
inline Elements elements(Type type, std::size_t count, unsigned seed) {
  Elements out{type, std::vector<double>(count), std::vector<std::uint16_t>(count)};
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    out.set(i, (static_cast<int>(seed >> 8 & 0xffff) - 32768) / 32768.0);
  }
  return out;
}

struct Inputs {
  Elements q, k, v;
  float scale;
  int window = 37;           // of keys
  float cap = 1.5F;          // some scores are above
  std::vector<float> sinks;  // of the heads: from below all scores to above them
  Inputs(const kernels::Attention& options, const Lengths& size)
      : q(elements(options.type, rows(size) * width(options), 1)),
        k(elements(options.type, kv_rows(size) * width(options), 2)),
        v(elements(options.type, kv_rows(size) * width(options), 3)),
        scale(1 / std::sqrt(static_cast<float>(options.head_dim)) * 3) {
    for (int head = 0; head < size.heads; ++head)
      sinks.push_back(static_cast<float>(head * 5 % 7) - 1.75F);
  }

  static std::size_t width(const kernels::Attention& options) {
    return static_cast<std::size_t>(options.head_dim);
  }
  static std::size_t rows(const Lengths& size) {
    return static_cast<std::size_t>(size.batch) * size.heads * size.queries;
  }
  static std::size_t kv_rows(const Lengths& size) {
    return static_cast<std::size_t>(size.batch) * size.kv_heads * size.keys;
  }
};

struct Outputs {
  std::vector<double> o, lse;
};

/// cap * tanh(score / cap). Infinity becomes the cap.
inline double capped(const kernels::Attention& options, const Inputs& in, double score) {
  if (options.softcap == kernels::Softcap::none) return score;
  const bool legal = in.cap > 0 && std::isfinite(in.cap);
  return legal ? in.cap * std::tanh(score / in.cap) : std::nan("");
}

inline Outputs reference(const kernels::Attention& options, const Lengths& size, const Inputs& in) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const int d = options.head_dim;
  Outputs out;
  for (int head = 0; head < size.batch * size.heads; ++head) {
    const int kv =
        head / size.heads * size.kv_heads + head % size.heads / (size.heads / size.kv_heads);
    const auto row = [&](const Elements& of, int matrix, int length, int i) {
      return &of.values[(static_cast<std::size_t>(matrix) * length + i) * d];
    };
    for (int i = 0; i < size.queries; ++i) {
      const int seen =
          options.causal ? std::min(size.keys, i + 1 + size.keys - size.queries) : size.keys;
      const int window = std::clamp(in.window, 0, size.keys);
      const int first = options.window ? std::max(0, i + 1 + size.keys - size.queries - window) : 0;
      const double sink =
          options.sinks ? static_cast<double>(in.sinks[head % size.heads]) : -infinity;
      std::vector<double> scores(std::max(first, 0));
      double top = sink, sum = 0;
      bool nan = std::isnan(sink);
      for (int j = first; j < seen; ++j) {
        double score = 0;
        for (int c = 0; c < d; ++c)
          score += row(in.q, head, size.queries, i)[c] * row(in.k, kv, size.keys, j)[c];
        scores.push_back(capped(options, in, score * in.scale));
        top = std::max(top, scores.back());
        nan |= std::isnan(scores.back());
      }
      std::vector<double> o(d);
      const bool empty = !nan && top == -infinity;
      if (sink > -infinity || nan) sum = nan ? std::nan("") : std::exp(sink - top);
      for (int j = first; j < seen && !empty; ++j) {
        const double weight = std::exp(scores[j] - top);
        sum += weight;
        for (int c = 0; c < d; ++c) o[c] += weight * row(in.v, kv, size.keys, j)[c];
      }
      for (const double each : o) out.o.push_back(empty ? 0 : each / sum);
      out.lse.push_back(empty ? -infinity : top + std::log(sum));
    }
  }
  return out;
}

/// The kernel's results; fails the test on any error.
inline Outputs run(Device& device, const Target& target, const kernels::Attention& options,
                   const Lengths& size, const Inputs& in) {
  const auto compiled = compile(kernels::attention(options), target);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.diags().text());
  if (!compiled) return {};
  std::vector<Buffer> inputs;
  for (const Elements* each : {&in.q, &in.k, &in.v}) {
    inputs.push_back(*device.allocate(std::max<std::size_t>(each->bits.size() * 2, 16)));
    EXPECT_TRUE(inputs.back().write(each->bits));
  }
  const std::size_t rows = Inputs::rows(size);
  Buffer o = *device.allocate(rows * Inputs::width(options) * 2), lse = *device.allocate(rows * 4);
  EXPECT_TRUE(o.fill(0xFF) && lse.fill(0xFF));
  auto module = device.load(compiled->ptx, compiled->name);
  EXPECT_TRUE(module) << (module ? "" : module.diags().text());
  if (!module) return {};
  LoadedKernel loaded = *module->kernel(compiled->name);
  Arguments arguments;
  arguments.add(size.queries).add(size.keys).add(size.heads).add(size.kv_heads).add(in.scale);
  if (options.window) arguments.add(in.window);
  if (options.softcap != kernels::Softcap::none) arguments.add(in.cap);
  arguments.add(inputs[0]).add(inputs[1]).add(inputs[2]).add(o).add(lse);
  Buffer sinks = *device.allocate(std::max<std::size_t>(in.sinks.size() * 4, 16));
  EXPECT_TRUE(sinks.write(in.sinks));
  if (options.sinks) arguments.add(sinks);
  device.clear_findings();
  const auto heads = static_cast<unsigned>(size.heads), batch = static_cast<unsigned>(size.batch);
  const Dim3 grid =
      size.blocks ? Dim3{size.blocks, 1, batch} : Dim3{options.blocks(size.queries), heads, batch};
  const auto launched = launch(loaded, *compiled, grid, arguments);
  EXPECT_TRUE(launched) << (launched ? "" : launched.diags().text());
  if (!launched) return {};
  const auto status = device.synchronize();
  EXPECT_TRUE(status) << (status ? "" : status.diags().text());
  if (!status) return {};
  for (const Finding& finding : device.findings())
    ADD_FAILURE() << finding.id << ": " << finding.message;
  const std::vector<float> sums = *lse.read_all<float>();
  return {testing_numbers::decode(options.type, *o.read_all<std::byte>()),
          {sums.begin(), sums.end()}};
}

/// NaN where NaN is expected, infinities exactly, and the rest within the rounding error.
///
/// With u half a unit in the last place of 1 (2^-11 for f16, 2^-8 for bf16): rounding the weights
/// changes each by u of itself, so their sum with V by u * max|v|; rounding the result by the same.
/// Twice 2u leaves room for f32 sums and ex2.approx, whose 2^-22 is negligible. An error of the
/// scores of `cap_error` changes each weight by that of itself, and the sum of weights.
inline void expect_near(const kernels::Attention& options, const Outputs& got,
                        const Outputs& expected, double cap_error = 0) {
  const auto near = [](double x, double y, double most) {
    if (std::isnan(y) || std::isinf(y)) return std::isnan(y) ? std::isnan(x) : x == y;
    return std::fabs(x - y) <= most;
  };
  ASSERT_EQ(got.o.size(), expected.o.size());
  ASSERT_EQ(got.lse.size(), expected.lse.size());
  const double u = std::ldexp(1, options.type == f16 ? -11 : -8);
  const std::size_t d = Inputs::width(options);
  int wrong = 0;
  for (std::size_t i = 0; i < got.o.size(); ++i)
    if (!near(got.o[i], expected.o[i], 4 * u + 2 * cap_error) && wrong++ == 0)
      ADD_FAILURE() << "row " << i / d << " column " << i % d << ": expected " << expected.o[i]
                    << ", got " << got.o[i];
  EXPECT_EQ(wrong, 0) << "of " << got.o.size();
  for (std::size_t i = 0; i < got.lse.size(); ++i)
    EXPECT_TRUE(near(got.lse[i], expected.lse[i],
                     std::max(1e-3, std::fabs(expected.lse[i]) * 0x1p-20) + cap_error))
        << "LSE of row " << i << ": expected " << expected.lse[i] << ", got " << got.lse[i];
}

inline void expect_attention(Device& device, const Target& target,
                             const kernels::Attention& options, const Lengths& size,
                             const Inputs& in) {
  SCOPED_TRACE(fmt::format("d {} {} {} queries {} keys {} heads {}/{} batch {} {} on {}",
                           options.head_dim, name(options.type), options.causal ? "causal" : "full",
                           size.queries, size.keys, size.heads, size.kv_heads, size.batch,
                           target.text(), device.name()));
  SCOPED_TRACE(fmt::format("window {} {} softcap {} {} sinks {}", options.window, in.window,
                           static_cast<int>(options.softcap), in.cap, options.sinks));
  // What kernels/attention.h says of each.
  const double cap_error = options.softcap == kernels::Softcap::by_tanh  ? in.cap * 0x1p-11
                           : options.softcap == kernels::Softcap::by_exp ? in.cap * 0x1p-20
                                                                         : 0;
  expect_near(options, run(device, target, options, size, in), reference(options, size, in),
              cap_error);
}

inline void expect_attention(Device& device, const Target& target,
                             const kernels::Attention& options, const Lengths& size) {
  expect_attention(device, target, options, size, Inputs(options, size));
}

}  // namespace tartan::testing_attention
