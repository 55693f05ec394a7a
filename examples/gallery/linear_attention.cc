// SPDX-License-Identifier: Apache-2.0
// Causal linear attention in chunks: o_i = q_i * (sum over j <= i of k_j^T v_j).
//
//   Q, K, V, O   heads x tokens x 64    f16, row-major
//
// There is no softmax, so the keys and values of all earlier tokens are one matrix of 64 x 64, the
// state. A block takes a head and goes through it in chunks of 64 tokens. Within a chunk it is
// attention with a mask; what came before is one product with the state:
//
//   O = mask(Q * K^T) * V + Q * S        S += K^T * V
//
// Four products of 64 x 64 x 64 a chunk. The masked scores go from accumulators to operand A. The
// state stays in accumulators; it goes through shared memory to be operand B, rounded to f16. K is
// in shared memory once, as K^T: operand B of the scores, and operand A of the state's update, with
// ldmatrix.trans.
//
// Tokens behind the last one are zeros: they add nothing to the state.
#include "gallery.h"

using namespace tartan;

namespace {

constexpr int d = 64;
constexpr Tile tile{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};

Kernel linear_attention() {
  return kernel("linear_attention", {.block = tile.threads()}, [](Builder& k) {
    auto tokens = k.param("tokens", s32);
    auto head = k.block_x();
    auto Q = k.global("Q", f16, row_major(tokens, d)).matrix(head);
    auto K = k.global("K", f16, row_major(tokens, d)).matrix(head).transposed();
    auto V = k.global("V", f16, row_major(tokens, d)).matrix(head);
    auto O = k.global("O", f16, row_major(tokens, d)).matrix(head);

    constexpr int stages = 2;
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sQ = k.shared("sQ", f16, mma.shared_a(stages, Major::row));
    auto sK = k.shared("sK", f16, RingLayout{mma.shared_b(1, Major::col).layout, stages});
    auto sV = k.shared("sV", f16, mma.shared_b(stages, Major::row));
    auto sS = k.shared("sS", f16, mma.shared_b(1, Major::row));
    auto state = mma.accumulator();
    auto zero = k.constant(f32, 0);

    auto fill = [&](Scalar t, Scalar stage) {
      k.copy(Q.tile({t, 0}, {tile.m, d}), sQ[stage]);
      k.copy(K.tile({0, t}, {d, tile.m}), sK[stage]);
      k.copy(V.tile({t, 0}, {tile.m, d}), sV[stage]);
    };
    auto use = [&](Scalar t, Scalar stage) {
      k.store(sS[0], convert(state, f16));
      auto scores =
          map(mma(mma.accumulator(), sQ[stage], sK[stage]),
              [&](Scalar x, ElementPlace at) { return select(at.col <= at.row, x, zero); });
      WarpTile o = mma(mma.accumulator(), operand_a(convert(scores, f16)), sV[stage]);
      k.barrier();
      o = mma(o, sQ[stage], sS[0]);
      k.barrier();  // the next chunk overwrites sS
      mma.add(state, sK[stage], sV[stage]);
      k.store(O.tile({t, 0}, {tile.m, d}), convert(o, f16));
    };
    k.pipeline({.stages = stages}, ceil_div(tokens, tile.m), fill, use);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return gallery::main(argc, argv, [](gallery::Session& session) {
    for (const auto& [heads, tokens] : {std::pair{2, 64}, {1, 200}, {3, 1}}) {
      const int count = heads * tokens * d;
      const auto q = gallery::numbers<host::f16>(count, 1),
                 k = gallery::numbers<host::f16>(count, 2),
                 v = gallery::numbers<host::f16>(count, 3);
      std::vector<host::f16> o(count);
      session.run(linear_attention(), {static_cast<unsigned>(heads)}, tokens, in(q), in(k), in(v),
                  out(o));
      std::vector<double> expected(count);
      double most = 0;  // the largest sum of the terms' magnitudes
      for (int i = 0; i < heads * tokens; ++i) {
        std::vector<double> terms(d);
        for (int j = i / tokens * tokens; j <= i; ++j) {
          double score = 0;
          for (int c = 0; c < d; ++c) score += q[i * d + c] * k[j * d + c];
          for (int c = 0; c < d; ++c) {
            expected[i * d + c] += score * v[j * d + c];
            terms[c] += std::abs(score * v[j * d + c]);
          }
        }
        most = std::max(most, *std::ranges::max_element(terms));
      }
      // Scores, the state and O are rounded to f16, half a unit of 2^-10 each.
      session.expect("linear attention", o, expected, d, {.absolute = most * 0x1p-10});
    }
  });
}
