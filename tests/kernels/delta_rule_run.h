// SPDX-License-Identifier: Apache-2.0
// tests/kernels/delta_rule_run.h - runs the kernels of the delta rule over packed sequences, and
// computes what is expected by the recurrence in double precision, token by token, from the same
// rounded elements.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <cmath>

#include "tartan/kernels/delta_rule.h"
#include "tests/kernels/attention_run.h"
#include "tests/kernels/findings.h"

namespace tartan::testing_delta_rule {

using kernels::DeltaRule;
using kernels::DeltaRuleDecode;
using testing_attention::Elements;

struct Problem {
  int key_dim = 128, value_dim = 128;
  Type type = bf16;
  bool channel_gates = false, initial_state = false;
  std::vector<int> lengths = {64};
  int heads = 1, key_heads = 1;
  int before = 0, after = 0;     // tokens that belong to no sequence
  double strongest_gate = 0.25;  // gates are in (exp(-this), 1)

  std::vector<int> starts() const {
    std::vector<int> out{before};
    for (const int each : lengths) out.push_back(out.back() + each);
    return out;
  }
  int tokens() const { return starts().back() + after; }
  int sequences() const { return static_cast<int>(lengths.size()); }
  std::size_t state_elements() const {
    return static_cast<std::size_t>(sequences()) * heads * key_dim * value_dim;
  }
  std::string text() const {
    std::string out = fmt::format("{} x {} {}{}, heads {}/{}:", key_dim, value_dim, name(type),
                                  channel_gates ? ", channel gates" : "", heads, key_heads);
    for (const int each : lengths) out += fmt::format(" {}", each);
    return out;
  }
};

struct Inputs {
  Elements q, k, v;
  std::vector<float> g, beta, state;
  float scale;

  explicit Inputs(const Problem& of)
      : q(testing_attention::elements(of.type, size(of, of.key_heads, of.key_dim), 1)),
        k(testing_attention::elements(of.type, size(of, of.key_heads, of.key_dim), 2)),
        v(testing_attention::elements(of.type, size(of, of.heads, of.value_dim), 3)),
        scale(1 / std::sqrt(static_cast<float>(of.key_dim))) {
    // Keys of length 1.
    const auto d = static_cast<std::size_t>(of.key_dim);
    for (Elements* each : {&q, &k})
      for (std::size_t row = 0; row < each->values.size(); row += d) {
        double length = 0;
        for (std::size_t c = 0; c < d; ++c) length += each->values[row + c] * each->values[row + c];
        for (std::size_t c = 0; c < d; ++c) {
          const double x =
              each->values[row + c] / std::sqrt(length) * (each == &q ? std::sqrt(of.key_dim) : 1);
          each->set(row + c, std::fabs(x) < 0x1p-14 ? 0.0 : x);  // set() has no subnormal numbers
        }
      }
    unsigned seed = 5;
    const auto next = [&] {
      seed = seed * 1664525 + 1013904223;
      return static_cast<float>(seed >> 8 & 0xffff) / 65536;
    };
    for (std::size_t i = 0; i < size(of, of.heads, of.channel_gates ? of.key_dim : 1); ++i)
      g.push_back(-next() * static_cast<float>(of.strongest_gate));
    for (std::size_t i = 0; i < size(of, of.heads, 1); ++i) beta.push_back(next());
    for (std::size_t i = 0; i < of.state_elements(); ++i) state.push_back(next() * 2 - 1);
  }
  static std::size_t size(const Problem& of, int heads, int width) {
    return static_cast<std::size_t>(of.tokens()) * heads * width;
  }
};

struct Results {
  std::vector<double> o, state;  // NaN where nothing belongs to a sequence
};

/// The recurrence, from the definition.
inline Results reference(const Problem& of, const Inputs& in) {
  const int dk = of.key_dim, dv = of.value_dim;
  Results out{std::vector<double>(in.v.values.size(), std::nan("")), {}};
  const std::vector<int> starts = of.starts();
  for (int n = 0; n < of.sequences(); ++n)
    for (int head = 0; head < of.heads; ++head) {
      const int key_head = head / (of.heads / of.key_heads);
      std::vector<double> s(static_cast<std::size_t>(dk) * dv);
      if (of.initial_state)
        for (std::size_t i = 0; i < s.size(); ++i)
          s[i] = in.state[(static_cast<std::size_t>(n) * of.heads + head) * s.size() + i];
      for (int t = starts[n]; t < starts[n + 1]; ++t) {
        const std::size_t row = static_cast<std::size_t>(t) * of.heads + head,
                          key_row = static_cast<std::size_t>(t) * of.key_heads + key_head;
        const double* const q = &in.q.values[key_row * dk];
        const double* const k = &in.k.values[key_row * dk];
        for (int i = 0; i < dv; ++i) {
          double found = 0;
          for (int j = 0; j < dk; ++j) {
            s[i * dk + j] *= std::exp(in.g[of.channel_gates ? row * dk + j : row]);
            found += s[i * dk + j] * k[j];
          }
          const double change = in.beta[row] * (in.v.values[row * dv + i] - found);
          double o = 0;
          for (int j = 0; j < dk; ++j) {
            s[i * dk + j] += change * k[j];
            o += s[i * dk + j] * q[j];
          }
          out.o[row * dv + i] = o * in.scale;
        }
      }
      out.state.insert(out.state.end(), s.begin(), s.end());
    }
  return out;
}

template <typename Data>
Buffer buffer_of(Device& device, const Data& data) {
  Buffer out = *device.allocate(std::max<std::size_t>(data.size() * sizeof(data[0]), 16));
  EXPECT_TRUE(data.empty() || out.write(data));
  return out;
}

inline bool launched(Device& device, const Compiled& compiled, Dim3 grid,
                     const Arguments& arguments) {
  auto module = device.load(compiled.ptx, compiled.name);
  EXPECT_TRUE(module) << (module ? "" : module.diags().text());
  if (!module) return false;
  LoadedKernel loaded = *module->kernel(compiled.name);
  device.clear_findings();
  const auto status = launch(loaded, compiled, grid, arguments);
  EXPECT_TRUE(status) << (status ? "" : status.diags().text());
  if (!status) return false;
  const auto ended = device.synchronize();
  EXPECT_TRUE(ended) << (ended ? "" : ended.diags().text());
  for (const Finding& finding : test::defects(device))
    ADD_FAILURE() << compiled.name << ": " << finding.id << ": " << finding.message;
  return static_cast<bool>(ended);
}

inline std::optional<Compiled> compiled_for(const Kernel& kernel, const Target& target) {
  auto compiled = compile(kernel, target);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.diags().text());
  if (!compiled) return std::nullopt;
  EXPECT_EQ(compiled->warnings.size(), 0U) << compiled->warnings.text();
  return std::move(*compiled);
}

/// Both kernels of a prefill.
inline Results run(Device& device, const Target& target, DeltaRule with, const Problem& of,
                   const Inputs& in) {
  with.key_dim = of.key_dim, with.value_dim = of.value_dim, with.type = of.type;
  with.channel_gates = of.channel_gates, with.initial_state = of.initial_state;
  with.final_state = true;
  const auto first = compiled_for(kernels::delta_rule_chunks(with), target),
             second = compiled_for(kernels::delta_rule(with), target);
  if (!first || !second) return {};
  const Buffer q = buffer_of(device, in.q.bits), k = buffer_of(device, in.k.bits),
               v = buffer_of(device, in.v.bits), g = buffer_of(device, in.g),
               beta = buffer_of(device, in.beta), s0 = buffer_of(device, in.state),
               starts = buffer_of(device, of.starts());
  const auto work = [&](std::int64_t elements, int bytes) {
    return *device.allocate(std::max<std::size_t>(static_cast<std::size_t>(elements * bytes), 16));
  };
  const std::int64_t each = with.transform_elements(of.tokens(), of.heads, of.sequences());
  Buffer transforms = work(each, 2), weights = work(each, 2),
         decays = work(with.decay_elements(of.tokens(), of.heads, of.sequences()), 4);
  const auto scaled =
      static_cast<std::int64_t>(Inputs::size(of, of.heads, of.channel_gates ? of.key_dim : 0));
  Buffer qg = work(scaled, 2), kg = work(scaled, 2), ke = work(scaled, 2);
  Buffer o = work(static_cast<std::int64_t>(in.v.bits.size()), 2),
         s1 = work(static_cast<std::int64_t>(of.state_elements()), 4);
  EXPECT_TRUE(o.fill(0xFF) && s1.fill(0xFF));
  const auto heads = static_cast<unsigned>(of.heads),
             sequences = static_cast<unsigned>(of.sequences());
  Arguments chunks;
  chunks.add(of.tokens()).add(of.heads).add(of.key_heads).add(of.sequences()).add(q).add(k);
  chunks.add(g).add(beta).add(starts).add(transforms).add(weights).add(decays);
  if (of.channel_gates) chunks.add(qg).add(kg).add(ke);
  const unsigned most =
      std::max(with.chunk_blocks(*std::max_element(of.lengths.begin(), of.lengths.end())), 1U);
  if (!launched(device, *first, {most, heads, sequences}, chunks)) return {};
  Arguments rest;
  rest.add(of.tokens()).add(of.heads).add(of.key_heads).add(of.sequences()).add(in.scale);
  if (of.channel_gates) rest.add(qg).add(kg).add(ke);
  else rest.add(q).add(k);
  rest.add(v).add(starts).add(transforms).add(weights).add(decays).add(o);
  if (of.initial_state) rest.add(s0);
  rest.add(s1);
  if (!launched(device, *second, {with.blocks(), heads, sequences}, rest)) return {};
  const std::vector<float> state = *s1.read_all<float>();
  Results out{testing_numbers::decode(of.type, *o.read_all<std::byte>()),
              {state.begin(), state.end()}};
  out.o.resize(in.v.bits.size()), out.state.resize(of.state_elements());
  return out;
}

/// Of outputs and states, by their largest magnitude: T, D, the weights and the state are rounded
/// to `type` for the products, and O for the result. `most` is in units in the last place of 1.
inline void expect_near(const char* what, Type type, const std::vector<double>& got,
                        const std::vector<double>& expected, double most) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double largest = 0, error = 0;
  std::size_t wrong = 0, first = 0;
  for (const double each : expected)
    if (!std::isnan(each)) largest = std::max(largest, std::fabs(each));
  const double bound = most * largest * std::ldexp(1, type == f16 ? -10 : -7);
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
    const double apart = std::fabs(got[i] - expected[i]);
    if (!(apart <= bound) && wrong++ == 0) first = i;
    error = std::max(error, std::isnan(apart) ? HUGE_VAL : apart);
  }
  EXPECT_EQ(wrong, 0U) << what << ": element " << first << " of " << got.size() << ": expected "
                       << expected[first] << ", got " << got[first] << "; largest error " << error
                       << " of " << largest;
}

inline void expect_prefill(Device& device, const Target& target, const DeltaRule& with,
                           const Problem& of, const Inputs& in) {
  SCOPED_TRACE(fmt::format("{} on {}", of.text(), target.text()));
  const Results got = run(device, target, with, of, in), expected = reference(of, in);
  if (got.o.empty() && !expected.o.empty()) return;
  expect_near("O", of.type, got.o, expected.o, 2);
  expect_near("S1", of.type, got.state, expected.state, 2);
}
inline void expect_prefill(Device& device, const Target& target, const DeltaRule& with,
                           const Problem& of) {
  expect_prefill(device, target, with, of, Inputs(of));
}

/// Sequences of equal lengths, without tokens around them.
inline void expect_decode(Device& device, const Target& target, DeltaRuleDecode with, Problem of) {
  SCOPED_TRACE(fmt::format("{} on {}", of.text(), target.text()));
  of.initial_state = true;
  with.key_dim = of.key_dim, with.value_dim = of.value_dim, with.type = of.type;
  with.channel_gates = of.channel_gates;
  const Inputs in(of);
  const auto compiled = compiled_for(kernels::delta_rule_decode(with), target);
  if (!compiled) return;
  const Buffer q = buffer_of(device, in.q.bits), k = buffer_of(device, in.k.bits),
               v = buffer_of(device, in.v.bits), g = buffer_of(device, in.g),
               beta = buffer_of(device, in.beta);
  Buffer s = buffer_of(device, in.state), o = buffer_of(device, in.v.bits);
  EXPECT_TRUE(o.fill(0xFF));
  const Arguments arguments = Arguments()
                                  .add(of.sequences())
                                  .add(of.lengths[0])
                                  .add(of.heads)
                                  .add(of.key_heads)
                                  .add(in.scale)
                                  .add(q)
                                  .add(k)
                                  .add(v)
                                  .add(g)
                                  .add(beta)
                                  .add(s)
                                  .add(o);
  if (!launched(
          device, *compiled,
          {with.blocks(), static_cast<unsigned>(of.heads), static_cast<unsigned>(of.sequences())},
          arguments))
    return;
  const Results expected = reference(of, in);
  const std::vector<float> state = *s.read_all<float>();
  expect_near("O", of.type, testing_numbers::decode(of.type, *o.read_all<std::byte>()), expected.o,
              0.6);
  expect_near("S", of.type, {state.begin(), state.end()}, expected.state, 0x1p-8);
}

}  // namespace tartan::testing_delta_rule
