// SPDX-License-Identifier: Apache-2.0
// Lesson 8: attention, softmax(scale * Q * K^T) * V, in one kernel (dsl/kernels/attention.cc). The
// scores never leave the registers: accumulators of the first product become, as weights, operand
// A of the second, since both have the same elements in the same lanes. Each tile of keys is folded
// into a running maximum and sum.
#include <cmath>

#include "examples/lesson.h"

using namespace tartan;

namespace {

constexpr int queries = 75, keys = 100, heads = 4, kv_heads = 2, d = 64;

// Eighths from -1 to 1, exact in f16.
std::vector<float> numbers(int rows, unsigned seed) {
  std::vector<float> out;
  for (int i = 0; i < rows * d; ++i) {
    seed = seed * 1664525 + 1013904223;
    out.push_back(static_cast<float>(static_cast<int>(seed >> 16) % 17 - 8) / 8);
  }
  return out;
}

Buffer upload(Device& device, const std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (const float each : values) {
    const std::uint16_t whole = lesson::half(static_cast<int>(each * 8));
    bits.push_back(whole & 0x7fff ? static_cast<std::uint16_t>(whole - (3 << 10)) : whole);  // / 8
  }
  Buffer out = lesson::must(device.allocate(bits.size() * 2));
  lesson::must(out.write(bits));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  Device device = lesson::open_device(argc, argv);
  const auto q = numbers(heads * queries, 1), k = numbers(kv_heads * keys, 2),
             v = numbers(kv_heads * keys, 3);
  Buffer in_q = upload(device, q), in_k = upload(device, k), in_v = upload(device, v);
  Buffer out = lesson::must(device.allocate(q.size() * 2));
  Buffer lse = lesson::must(device.allocate(heads * queries * sizeof(float)));
  const float scale = 0.125f;  // 1 / sqrt(d)

  int wrong = 0;
  for (const bool causal : {false, true}) {
    const kernels::Attention options{.head_dim = d, .causal = causal};
    const Compiled compiled =
        lesson::must(compile(kernels::attention(options), Target::of(device.arch())));
    LoadedKernel kernel =
        lesson::must(lesson::must(device.load(compiled.ptx)).kernel(compiled.name));
    Arguments arguments;
    arguments.add(queries).add(keys).add(heads).add(kv_heads).add(scale);
    arguments.add(in_q).add(in_k).add(in_v).add(out).add(lse);
    lesson::must(kernel.launch({.grid = {options.blocks(queries), heads},
                                .block = {static_cast<unsigned>(compiled.block)},
                                .dynamic_shared = static_cast<unsigned>(compiled.dynamic_shared)},
                               arguments));
    lesson::must(device.synchronize());
    const auto o = lesson::must(out.read_all<std::uint16_t>());
    const auto sums = lesson::must(lse.read_all<float>());

    int far = 0, far_sums = 0;
    for (int row = 0; row < heads * queries; ++row) {
      const int i = row % queries, kv = row / queries / (heads / kv_heads);
      const int seen = causal ? i + 1 + keys - queries : keys;
      std::vector<double> expected(d);
      double sum = 0;
      for (int j = 0; j < seen; ++j) {
        double score = 0;
        for (int c = 0; c < d; ++c) score += q[row * d + c] * k[(kv * keys + j) * d + c];
        const double weight = std::exp(scale * score);
        sum += weight;
        for (int c = 0; c < d; ++c) expected[c] += weight * v[(kv * keys + j) * d + c];
      }
      // Weights and results are rounded to f16, half a unit of 2^-10 each: twice that is allowed.
      for (int c = 0; c < d; ++c)
        far += !(std::fabs(lesson::value(o[row * d + c]) - expected[c] / sum) <= 1 / 512.0);
      far_sums += !(std::fabs(sums[row] - std::log(sum)) <= 1e-3);
    }
    std::printf(
        "%s: %d of %d results and %d of %d log-sum-exps are further away than rounding explains\n",
        causal ? "causal" : "full", far, heads * queries * d, far_sums, heads * queries);
    wrong += far + far_sums;
  }
  return wrong != 0;
}
