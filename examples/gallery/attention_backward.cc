// SPDX-License-Identifier: Apache-2.0
// The backward pass of attention: gradients of Q, K and V from that of O = softmax(scale * Q * K^T)
// * V.
//
//   Q, dO, dQ         heads x queries x 64   f16
//   K, V, dK, dV      heads x keys x 64      f16
//   L                 heads x queries        f32: log2 of a row's sum, from the forward pass
//   D                 heads x queries        f32: the sum over a row of dO o O
//
//   P = 2^(scale * log2(e) * Q * K^T - L)      dS = P o (dO * V^T - D)
//   dV = P^T * dO      dK = scale * dS^T * Q      dQ = scale * dS * K
//
// Two kernels of one description: a block for 64 keys goes through the queries and adds up dK and
// dV; a block for 64 queries goes through the keys and adds up dQ. Both recompute P. The first
// computes P^T and dS^T, so that in both the scores have what the block owns as rows, and go from
// accumulators to operand A; a sum over another block's rows would take atomics.
//
// A tile of the other matrix is in shared memory once, and operand B of two products: transposed
// for the scores, as it is for the gradient. Rows beyond the edge are zeros and make products of
// zero, whatever their P is, so that nothing is masked.
#include <cmath>
#include <numbers>

#include "gallery.h"

using namespace tartan;

namespace {

constexpr int d = 64;
constexpr Tile tile{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};

// of_keys: dK and dV; else dQ.
Kernel gradient(bool of_keys) {
  return kernel(of_keys ? "keys" : "queries", {.block = tile.threads()}, [=](Builder& k) {
    auto queries = k.param("queries", s32), keys = k.param("keys", s32);
    auto block = k.block_x(), head = k.block_y();
    auto Q = k.global("Q", f16, row_major(queries, d)).matrix(head),
         dO = k.global("dO", f16, row_major(queries, d)).matrix(head),
         K = k.global("K", f16, row_major(keys, d)).matrix(head),
         V = k.global("V", f16, row_major(keys, d)).matrix(head);
    auto L = k.global("L", f32, row_major(1, queries)).matrix(head),
         D = k.global("D", f32, row_major(1, queries)).matrix(head);
    auto own = std::pair(of_keys ? K : Q, of_keys ? V : dO),
         other = std::pair(of_keys ? Q : K, of_keys ? dO : V);

    constexpr int stages = 2;
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    const RingLayout ring{mma.shared_b(1, Major::col).layout, stages};
    auto sX = k.shared("sX", f16, mma.shared_a(1, Major::row));
    auto sdX = k.shared("sdX", f16, mma.shared_a(1, Major::row));
    auto sY = k.shared("sY", f16, ring), sdY = k.shared("sdY", f16, ring);
    k.copy(own.first.tile({block, 0}, {tile.m, d}), sX[0]);
    k.copy(own.second.tile({block, 0}, {tile.m, d}), sdX[0]);
    k.barrier();

    auto scale = k.constant(f32, 1 / std::sqrt(d));
    auto log2_scale = k.constant(f32, std::numbers::log2e / std::sqrt(d));
    auto dS_sum = mma.accumulator(), P_sum = mma.accumulator();
    auto fill = [&](Scalar t, Scalar stage) {
      k.copy(other.first.transposed().tile({0, t}, {d, tile.n}), sY[stage]);
      k.copy(other.second.transposed().tile({0, t}, {d, tile.n}), sdY[stage]);
    };
    auto use = [&](Scalar t, Scalar stage) {
      // L or D of an element's query.
      auto of_query = [&](const Global& from, const ElementPlace& at) {
        auto query = of_keys ? t * tile.n + at.col : block * tile.m + at.row;
        return k.read(from, 0, minimum(query, k.convert(queries, u32) - 1));
      };
      auto P = map(mma(mma.accumulator(), sX[0], sY[stage]), [&](Scalar x, ElementPlace at) {
        return exp2(x * log2_scale - of_query(L, at));
      });
      auto slope = map(mma(mma.accumulator(), sdX[0], sdY[stage]),
                       [&](Scalar x, ElementPlace at) { return x - of_query(D, at); });
      auto dS = gallery::joined(k, P, slope, [](Scalar x, Scalar y) { return x * y; });
      mma.add(dS_sum, operand_a(convert(dS, f16)), sY[stage].transposed());
      if (of_keys) mma.add(P_sum, operand_a(convert(P, f16)), sdY[stage].transposed());
    };
    k.pipeline({.stages = stages}, k.convert(ceil_div(of_keys ? queries : keys, tile.n), u32), fill,
               use);

    auto first = k.global(of_keys ? "dK" : "dQ", f16, row_major(of_keys ? keys : queries, d));
    auto scaled = map(dS_sum, [&](Scalar x, ElementPlace) { return x * scale; });
    k.store(first.matrix(head).tile({block, 0}, {tile.m, d}), convert(scaled, f16));
    if (!of_keys) return;
    auto second = k.global("dV", f16, row_major(keys, d));
    k.store(second.matrix(head).tile({block, 0}, {tile.m, d}), convert(P_sum, f16));
  });
}

}  // namespace

int main(int argc, char** argv) {
  return gallery::main(argc, argv, [](gallery::Session& session) {
    for (const auto& [heads, queries, keys] : {std::tuple{1, 64, 64}, {2, 70, 100}, {1, 1, 130}}) {
      const auto q = gallery::numbers<host::f16>(heads * queries * d, 1),
                 go = gallery::numbers<host::f16>(heads * queries * d, 2),
                 k = gallery::numbers<host::f16>(heads * keys * d, 3),
                 v = gallery::numbers<host::f16>(heads * keys * d, 4);
      std::vector<host::f16> gq(q.size()), gk(k.size()), gv(v.size());
      std::vector<float> l, sums;
      std::vector<double> dq(q.size()), dk(k.size()), dv(v.size());
      const double scale = 1 / std::sqrt(d);
      for (int i = 0; i < heads * queries; ++i) {
        const int first = i / queries * keys;
        std::vector<double> p(keys), slope(keys);
        double sum = 0, of_row = 0;
        for (int j = 0; j < keys; ++j) {
          double score = 0;
          for (int c = 0; c < d; ++c) {
            score += q[i * d + c] * k[(first + j) * d + c] * scale;
            slope[j] += go[i * d + c] * v[(first + j) * d + c];
          }
          sum += p[j] = std::exp(score);
        }
        for (int j = 0; j < keys; ++j) of_row += (p[j] /= sum) * slope[j];
        for (int j = 0; j < keys; ++j)
          for (int c = 0; c < d; ++c) {
            const double ds = p[j] * (slope[j] - of_row) * scale;
            dq[i * d + c] += ds * k[(first + j) * d + c];
            dk[(first + j) * d + c] += ds * q[i * d + c];
            dv[(first + j) * d + c] += p[j] * go[i * d + c];
          }
        l.push_back(static_cast<float>(std::log2(sum)));
        sums.push_back(static_cast<float>(of_row));
      }
      const auto height = static_cast<unsigned>(heads);
      session.run(gradient(true), {tile.blocks(keys, 1), height}, queries, keys, in(q), in(go),
                  in(k), in(v), in(l), in(sums), out(gk), out(gv));
      session.run(gradient(false), {tile.blocks(queries, 1), height}, queries, keys, in(q), in(go),
                  in(k), in(v), in(l), in(sums), out(gq));
      // P and dS are rounded to f16, half a unit of 2^-10 each, and summed with numbers up to 1.
      const reference::Tolerance tolerance{.relative = 0x1p-10, .absolute = 0x1p-9};
      session.expect("dQ", gq, dq, d, tolerance);
      session.expect("dK", gk, dk, d, tolerance);
      session.expect("dV", gv, dv, d, tolerance);
    }
  });
}
