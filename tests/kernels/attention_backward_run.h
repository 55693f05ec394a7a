// SPDX-License-Identifier: Apache-2.0
// tests/kernels/attention_backward_run.h - runs the backward kernels of attention, and computes
// the expected gradients in double precision, from the same rounded elements.
#pragma once

#include "tartan/kernels/attention_backward.h"
#include "tests/kernels/attention_run.h"

namespace tartan::testing_attention {

using kernels::AttentionBackward;

struct Gradients {
  std::vector<double> q, k, v;
};

/// What the forward pass leaves, and the gradient of O.
struct BackwardInputs {
  Inputs forward;
  Elements o, d_o;
  std::vector<float> lse;

  BackwardInputs(const AttentionBackward& options, const Lengths& size)
      : forward({.head_dim = options.head_dim, .type = options.type}, size),
        o(forward.q),
        d_o(elements(options.type, forward.q.values.size(), 4)) {
    complete(options, size);
  }
  /// Computes O and LSE from Q, K and V.
  void complete(const AttentionBackward& options, const Lengths& size) {
    complete(
        kernels::Attention{
            .head_dim = options.head_dim, .type = options.type, .causal = options.causal},
        size);
  }
  void complete(const kernels::Attention& options, const Lengths& size) {
    const Outputs out = reference(options, size, forward);
    // float_bits() has no subnormal numbers.
    for (std::size_t i = 0; i < out.o.size(); ++i)
      o.set(i, std::abs(out.o[i]) < 0x1p-14 ? 0.0 : out.o[i]);
    lse.assign(out.lse.begin(), out.lse.end());
  }
};

inline Gradients reference(const AttentionBackward& options, const Lengths& size,
                           const BackwardInputs& in) {
  const int d = options.head_dim;
  const auto &q = in.forward.q, &k = in.forward.k, &v = in.forward.v;
  const float scale = in.forward.scale;
  Gradients out{std::vector<double>(q.values.size()), std::vector<double>(k.values.size()),
                std::vector<double>(v.values.size())};
  for (int head = 0; head < size.batch * size.heads; ++head) {
    const int kv =
        head / size.heads * size.kv_heads + head % size.heads / (size.heads / size.kv_heads);
    for (int i = 0; i < size.queries; ++i) {
      const std::size_t row = static_cast<std::size_t>(head) * size.queries + i;
      const int seen =
          options.causal ? std::min(size.keys, i + 1 + size.keys - size.queries) : size.keys;
      double own = 0;
      for (int c = 0; c < d; ++c) own += in.o.values[row * d + c] * in.d_o.values[row * d + c];
      for (int j = 0; j < seen; ++j) {
        const std::size_t key = static_cast<std::size_t>(kv) * size.keys + j;
        double score = 0, slope = 0;
        for (int c = 0; c < d; ++c) {
          score += q.values[row * d + c] * k.values[key * d + c];
          slope += in.d_o.values[row * d + c] * v.values[key * d + c];
        }
        const double p = std::exp(score * scale - in.lse[row]), ds = p * (slope - own);
        for (int c = 0; c < d; ++c) {
          out.q[row * d + c] += ds * k.values[key * d + c] * scale;
          out.k[key * d + c] += ds * q.values[row * d + c] * scale;
          out.v[key * d + c] += p * in.d_o.values[row * d + c];
        }
      }
    }
  }
  return out;
}

inline std::vector<double> values_of(Type type, const std::vector<std::uint16_t>& words) {
  std::vector<double> out;
  for (const std::uint16_t each : words) out.push_back(testing_numbers::float_value(type, each));
  return out;
}

/// The kernels' results; fails the test on any error.
inline Gradients run(Device& device, const Target& target, const AttentionBackward& options,
                     const Lengths& size, const BackwardInputs& in) {
  const auto &q = in.forward.q, &k = in.forward.k, &v = in.forward.v;
  const float scale = in.forward.scale;
  const unsigned all_heads = static_cast<unsigned>(size.batch * size.heads);
  const auto buffer = [&](const auto& data) {
    Buffer out = *device.allocate(std::max<std::size_t>(data.size() * sizeof(data[0]), 16));
    EXPECT_TRUE(out.write(data));
    return out;
  };
  const auto space = [&](std::int64_t bytes) {
    Buffer out = *device.allocate(std::max<std::size_t>(static_cast<std::size_t>(bytes), 16));
    EXPECT_TRUE(out.fill(0xFF));
    return out;
  };
  const Buffer bq = buffer(q.bits), bk = buffer(k.bits), bv = buffer(v.bits),
               bo = buffer(in.o.bits), bdo = buffer(in.d_o.bits), lse = buffer(in.lse);
  const Buffer stats = space(4 * all_heads * options.stat_elements(size.queries)),
               sums = space(4 * all_heads * options.sum_elements(size.queries)),
               turns = space(4 * options.turn_elements(size.queries, static_cast<int>(all_heads)));
  const Buffer dq = space(static_cast<std::int64_t>(q.bits.size() * 2)),
               dk = space(static_cast<std::int64_t>(k.bits.size() * 2)),
               dv = space(static_cast<std::int64_t>(k.bits.size() * 2));
  const auto start = [&](const Kernel& kernel, Dim3 grid, const Arguments& arguments) {
    if (grid.x == 0) return true;
    const auto compiled = compile(kernel, target.arch);
    EXPECT_TRUE(compiled) << (compiled ? "" : compiled.diags().text());
    if (!compiled) return false;
    EXPECT_TRUE(compiled->warnings.empty()) << compiled->warnings.text();
    auto module = device.load(compiled->ptx, compiled->name);
    EXPECT_TRUE(module) << (module ? "" : module.diags().text());
    if (!module) return false;
    LoadedKernel loaded = *module->kernel(compiled->name);
    const auto launched = launch(loaded, *compiled, grid, arguments);
    EXPECT_TRUE(launched) << (launched ? "" : launched.diags().text());
    const auto status = device.synchronize();
    EXPECT_TRUE(status) << (status ? "" : status.diags().text());
    for (const Finding& finding : device.findings())
      ADD_FAILURE() << compiled->name << ": " << finding.id << ": " << finding.message;
    device.clear_findings();
    return launched && status;
  };
  const unsigned rows = options.row_blocks(size.queries), batch = static_cast<unsigned>(size.batch),
                 heads = static_cast<unsigned>(size.heads);
  device.clear_findings();
  Arguments first, second, third;
  first.add(size.queries).add(size.heads).add(bo).add(bdo).add(lse).add(stats).add(sums);
  second.add(size.queries).add(size.keys).add(size.heads).add(size.kv_heads).add(scale);
  second.add(bq).add(bk).add(bv).add(bdo).add(stats).add(sums).add(dk).add(dv);
  third.add(size.queries).add(size.heads).add(scale).add(sums).add(dq);
  if (options.deterministic) first.add(turns), second.add(turns);
  const Dim3 grid{options.blocks(size.keys), static_cast<unsigned>(size.kv_heads), batch};
  const bool good = start(attention_backward_rows(options), {rows, heads, batch}, first) &&
                    start(attention_backward(options), grid, second) &&
                    start(attention_backward_queries(options), {rows, heads, batch}, third);
  if (!good) return {};
  const auto read = [&](const Buffer& from, std::size_t count) {
    auto words = *from.read_all<std::uint16_t>();
    words.resize(count);
    return values_of(options.type, words);
  };
  return {read(dq, q.bits.size()), read(dk, k.bits.size()), read(dv, v.bits.size())};
}

/// The largest difference, as a part of the largest value, or of 0.1; infinite where one is not a
/// number.
inline double apart(const std::vector<double>& got, const std::vector<double>& expected) {
  double worst = 0, most = 0.1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double each = std::abs(got[i] - expected[i]);
    worst = each >= 0 ? std::max(worst, each) : std::numeric_limits<double>::infinity();
    most = std::max(most, std::abs(expected[i]));
  }
  return got.size() == expected.size() ? worst / most : std::numeric_limits<double>::infinity();
}

inline void expect_gradients(Device& device, const Target& target, const AttentionBackward& options,
                             const Lengths& size) {
  SCOPED_TRACE(fmt::format("{}, d {}{}{}, {} x {}, {} heads on {}, batch {}", target.text(),
                           options.head_dim, options.causal ? ", causal" : "",
                           options.deterministic ? ", deterministic" : "", size.queries, size.keys,
                           size.heads, size.kv_heads, size.batch));
  const BackwardInputs in(options, size);
  const Gradients expected = reference(options, size, in),
                  got = run(device, target, options, size, in);
  // P and dS are rounded for the products, results once more.
  const double unit = options.type == bf16 ? 0x1p-8 : 0x1p-11;
  EXPECT_LE(apart(got.q, expected.q), 2 * unit) << "dQ";
  EXPECT_LE(apart(got.k, expected.k), 2 * unit) << "dK";
  EXPECT_LE(apart(got.v, expected.v), 2 * unit) << "dV";
}

}  // namespace tartan::testing_attention
