// SPDX-License-Identifier: Apache-2.0
// Decoding with multi-head latent attention (DeepSeek-V2): all heads share one latent vector a
// token, which is both key and value.
//
//   Q        batch x heads x 576     f16: 512 absorbed into the latent space, 64 with position
//   C        batch x most x 576      f16: the cache, a latent vector of 512 and 64 with position
//   lengths  batch                   s32: tokens of each sequence, at least 1
//   O        batch x heads x 512     f16, still in the latent space
//
//   O = softmax(Q * C^T / sqrt(192)) * C[:, 0:512]
//
// 64 heads are the rows of a block, as if they were 64 queries: so decoding is a product with many
// rows again. The latent part of 32 tokens is copied once and read twice: as operand B of the
// scores it is C^T, and a half of its columns is operand B of the result. Shared tensors are views:
// transposed() and tile() move nothing, and ldmatrix transposes or not.
//
// The accumulators of 512 columns do not fit in the registers of four warps. blockIdx.y has one
// half of them; both halves compute the scores, which costs 1.5 times the arithmetic and saves a
// round through shared memory. paged_decode.cc has pages, splits along the keys, and their
// combination.
#include <cmath>
#include <limits>
#include <numbers>

#include "gallery.h"

using namespace tartan;

namespace {

constexpr int latent = 512, rest = 64, d = latent + rest, half = latent / 2;
constexpr Tile qk{.m = 64, .n = 32, .k = latent, .warps_m = 4, .warps_n = 1};
constexpr Tile of_rest{.m = 64, .n = 32, .k = rest, .warps_m = 4, .warps_n = 1};
constexpr Tile pv{.m = 64, .n = half, .k = 32, .warps_m = 4, .warps_n = 1};

Scalar over(const Scalar& x, const Scalar& y) { return x * reciprocal(y); }
Scalar power(const Scalar& x, const Scalar& top) { return exp2(x - top); }

Kernel mla_decode() {
  return kernel("mla_decode", {.block = qk.threads()}, [](Builder& k) {
    auto heads = k.param("heads", s32), most = k.param("most", s32), batch = k.param("batch", s32);
    auto part = k.block_y(), sequence = k.block_z();
    auto Q = k.global("Q", f16, row_major(heads, d)).matrix(sequence);
    auto C = k.global("C", f16, row_major(most, d)).matrix(sequence).transposed();
    auto lengths = k.global("lengths", s32, row_major(1, batch));
    auto O = k.global("O", f16, row_major(heads, latent)).matrix(sequence);

    constexpr int stages = 2;
    const MmaKind kind = k.best_mma(f16, f16, f32);
    auto mma_qk = k.tiled_mma(kind, qk), mma_rest = k.tiled_mma(kind, of_rest),
         mma_pv = k.tiled_mma(kind, pv);
    auto sQ = k.shared("sQ", f16, mma_qk.shared_a(1, Major::row));
    auto sQr = k.shared("sQr", f16, mma_rest.shared_a(1, Major::row));
    auto sC = k.shared("sC", f16, mma_qk.shared_b(stages, Major::col));
    auto sCr = k.shared("sCr", f16, mma_rest.shared_b(stages, Major::col));
    k.copy(Q.tile({k.block_x(), 0}, {qk.m, latent}), sQ[0]);
    k.copy(Q.tile({k.block_x(), latent / rest}, {qk.m, rest}), sQr[0]);
    k.barrier();

    auto length = k.convert(k.read(lengths, 0, sequence), u32);
    auto scale = k.constant(f32, std::numbers::log2e / std::sqrt(192));
    auto unseen = k.constant(f32, -std::numeric_limits<double>::infinity());
    auto top = mma_qk.row_variable(k.constant(f32, -1e30));
    auto sum = mma_qk.row_variable(k.constant(f32, 0));
    auto o = mma_pv.accumulator();
    auto fill = [&](Scalar t, Scalar stage) {
      k.copy(C.tile({0, t}, {latent, qk.n}), sC[stage]);
      k.copy(C.tile({latent / rest, t}, {rest, qk.n}), sCr[stage]);
    };
    auto fold = [&](Scalar t, Scalar stage) {
      auto products = mma_qk(mma_qk.accumulator(), sQ[0], sC[stage]);
      products = mma_rest(products, sQr[0], sCr[stage]);
      auto scores = map(products, [&](Scalar x, ElementPlace at) {
        return select(t * qk.n + at.col < length, x * scale, unseen);
      });
      RowValues before = top, now = map(before, row_maximum(scores), maximum);
      RowValues shrink = map(before, now, power);
      auto weights = map_rows(scores, now, power);
      sum = map(map(sum, shrink, times), row_sum(weights), plus);
      auto values = sC[stage].transposed().tile({0, part}, {pv.k, half});
      o = mma_pv(map_rows(o, shrink, times), operand_a(convert(weights, f16)), values);
      top = now;
    };
    k.pipeline({.stages = stages}, ceil_div(length, qk.n), fill, fold);
    k.store(O.tile({k.block_x(), part}, {pv.m, half}), convert(map_rows(o, sum, over), f16));
  });
}

}  // namespace

int main(int argc, char** argv) {
  return gallery::main(argc, argv, [](gallery::Session& session) {
    constexpr int most = 100;
    const std::vector<std::int32_t> lengths{100, 1, 37};
    const int batch = static_cast<int>(lengths.size());
    for (const int heads : {64, 16}) {
      const auto q = gallery::numbers<host::f16>(batch * heads * d, 1),
                 c = gallery::numbers<host::f16>(batch * most * d, 2);
      std::vector<host::f16> o(batch * heads * latent);
      session.run(mla_decode(), {qk.blocks(heads, 1), 2, static_cast<unsigned>(batch)}, heads, most,
                  batch, in(q), in(c), in(lengths), out(o));
      std::vector<double> expected;
      for (int i = 0; i < batch; ++i) {
        const auto keys = std::span(c).subspan(i * most * d, lengths[i] * d);
        const auto each = reference::attention(
            reference::row_major(std::span(q).subspan(i * heads * d, heads * d), heads, d),
            reference::row_major(keys, lengths[i], d),
            reference::row_major(keys, lengths[i], latent, d), {.scale = 1 / std::sqrt(192)});
        expected.insert(expected.end(), each.begin(), each.end());
      }
      // Weights and results are rounded to f16, half a unit of 2^-10 each: twice that is allowed.
      session.expect("MLA decoding", o, expected, latent, {.absolute = 0x1p-9});
    }
  });
}
