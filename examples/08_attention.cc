// SPDX-License-Identifier: Apache-2.0
// Lesson 8: attention, softmax(Q * K^T / sqrt(d)) * V, in one kernel. The scores never leave the
// registers: accumulators of the first product become, as weights, operand A of the second, since
// both have the same elements in the same lanes. Each tile of keys is folded into a running maximum
// and sum. The built-in kernel (tartan/kernels/attention.h) takes any lengths at run time.
#include <cmath>
#include <limits>
#include <numbers>

#include "lesson.h"

using namespace tartan;

namespace {

constexpr int queries = 75, keys = 100, heads = 4, kv_heads = 2, d = 64;

Scalar over(const Scalar& x, const Scalar& y) { return x * reciprocal(y); }
Scalar power(const Scalar& x, const Scalar& top) { return exp2(x - top); }

Kernel attention(bool causal) {
  constexpr Tile qk{.m = 64, .n = 64, .k = d, .warps_m = 4, .warps_n = 1};
  constexpr Tile pv{.m = 64, .n = d, .k = 64, .warps_m = 4, .warps_n = 1};
  return kernel("attention", {.block = qk.threads()}, [=](Builder& k) {
    auto block = k.block_x(), head = k.block_y(), kv_head = head / (heads / kv_heads);
    auto Q = k.global("Q", f16, row_major(queries, d)).matrix(head);
    auto K = k.global("K", f16, row_major(keys, d)).matrix(kv_head).transposed();
    auto V = k.global("V", f16, row_major(keys, d)).matrix(kv_head);
    auto O = k.global("O", f16, row_major(queries, d)).matrix(head);

    constexpr int stages = 2;
    auto mma_qk = k.tiled_mma(k.best_mma(f16, f16, f32), qk);
    auto mma_pv = k.tiled_mma(k.best_mma(f16, f16, f32), pv);
    auto sQ = k.shared("sQ", f16, mma_qk.shared_a());
    auto sK = k.shared("sK", f16, mma_qk.shared_b(stages, Major::col));
    auto sV = k.shared("sV", f16, mma_pv.shared_b(stages, Major::row));

    k.copy(Q.tile({block, 0}, {qk.m, d}), sQ[0]);
    k.barrier();
    auto q = mma_qk.load_a(sQ[0]);
    auto top = mma_qk.row_variable(k.constant(f32, -1e30));
    auto sum = mma_qk.row_variable(k.constant(f32, 0));
    auto o = mma_pv.accumulator();

    auto scale = k.constant(f32, std::numbers::log2e / std::sqrt(d));
    auto unseen = k.constant(f32, -std::numeric_limits<double>::infinity());
    auto fill = [&](Scalar t, Scalar stage) {
      k.copy(K.tile({0, t}, {d, qk.n}), sK[stage]);
      k.copy(V.tile({t, 0}, {pv.k, d}), sV[stage]);
    };
    auto fold = [&](Scalar t, Scalar stage) {
      auto scores = map(mma_qk(mma_qk.accumulator(), q, sK[stage]), [&](Scalar x, ElementPlace at) {
        auto key = t * qk.n + at.col, query = block * qk.m + at.row;
        auto last = causal ? minimum(query + (keys - queries), keys - 1) : Scalar(keys - 1);
        return select(key <= last, x * scale, unseen);
      });
      RowValues before = top, now = map(before, row_maximum(scores), maximum);
      RowValues shrink = map(before, now, power);
      auto weights = map_rows(scores, now, power);
      sum = map(map(sum, shrink, times), row_sum(weights), plus);
      o = mma_pv(map_rows(o, shrink, times), operand_a(convert(weights, f16)), sV[stage]);
      top = now;
    };
    k.pipeline({.stages = stages}, ceil_div(keys, qk.n), fill, fold);
    k.store(O.tile({block, 0}, {qk.m, d}), convert(map_rows(o, sum, over), f16));
  });
}

// Eighths from -1 to 1, exact in f16.
std::vector<float> numbers(int rows, unsigned seed) {
  std::vector<float> out;
  for (int i = 0; i < rows * d; ++i) {
    seed = seed * 1664525 + 1013904223;
    out.push_back(static_cast<float>(static_cast<int>(seed >> 16) % 17 - 8) / 8);
  }
  return out;
}

std::vector<std::uint16_t> halves(const std::vector<float>& values) {
  std::vector<std::uint16_t> out;
  for (const float each : values) {
    const std::uint16_t whole = lesson::half(static_cast<int>(each * 8));
    out.push_back(whole & 0x7fff ? static_cast<std::uint16_t>(whole - (3 << 10)) : whole);  // / 8
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  Device device = lesson::open_device(argc, argv);
  const auto q = numbers(heads * queries, 1), k = numbers(kv_heads * keys, 2),
             v = numbers(kv_heads * keys, 3);
  int wrong = 0;
  for (const bool causal : {false, true}) {
    const auto o =
        lesson::run<std::uint16_t>(device, attention(causal), q.size(),
                                   {halves(q), halves(k), halves(v)}, {(queries + 63) / 64, heads});
    int far = 0;
    for (int row = 0; row < heads * queries; ++row) {
      const int i = row % queries, kv = row / queries / (heads / kv_heads);
      const int seen = causal ? i + 1 + keys - queries : keys;
      std::vector<double> expected(d);
      double sum = 0;
      for (int j = 0; j < seen; ++j) {
        double score = 0;
        for (int c = 0; c < d; ++c) score += q[row * d + c] * k[(kv * keys + j) * d + c];
        const double weight = std::exp(score / std::sqrt(d));
        sum += weight;
        for (int c = 0; c < d; ++c) expected[c] += weight * v[(kv * keys + j) * d + c];
      }
      // Weights and results are rounded to f16, half a unit of 2^-10 each: twice that is allowed.
      for (int c = 0; c < d; ++c)
        far += !(std::fabs(lesson::value(o[row * d + c]) - expected[c] / sum) <= 1 / 512.0);
    }
    std::printf("%s: %d of %d results are further away than rounding explains\n",
                causal ? "causal" : "full", far, heads * queries * d);
    wrong += far;
  }
  return wrong != 0;
}
