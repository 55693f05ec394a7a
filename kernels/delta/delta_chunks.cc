// SPDX-License-Identifier: Apache-2.0
// What the chunks of all sequences need of keys, queries and gates: a CTA for each. With the gates'
// product b_i of a chunk's tokens up to i (K and Q scaled by them):
//
//   transforms   (I + strictly lower(diag(beta) * (b_i / b_j) o K * K^T))^-1 * diag(beta)
//   weights      lower((b_i / b_j) o Q * K^T)
//   decays       b_i, and b_last / b_i
#include "tartan/kernels/delta_rule.h"

#include <algorithm>
#include <numbers>

#include "kernels/common/keys.h"
#include "kernels/delta/delta_inverse.h"
#include "kernels/delta/delta_shape.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/warp.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int c = DeltaRule::chunk;
constexpr int threads = 128;

// The body of the kernel.
class Chunks {
 public:
  Chunks(Builder& k, const DeltaRule& with) : k_(k), with_(with), d_(with.key_dim) {}

  void describe() {
    const Scalar tokens = k_.param("tokens", s32), heads = k_.param("heads", s32),
                 key_heads = k_.param("key_heads", s32), sequences = k_.param("sequences", s32);
    Q_ = k_.global("Q", with_.type, row_major(tokens, key_heads * d_));
    K_ = k_.global("K", with_.type, row_major(tokens, key_heads * d_));
    g_ = k_.global("g", f32, row_major(tokens, heads));
    beta_ = k_.global("beta", f32, row_major(tokens, heads));
    const Global starts = k_.global("starts", s32, row_major(1, sequences + 1));
    transforms_ = k_.global("transforms", with_.type, row_major(c, c));
    weights_ = k_.global("weights", with_.type, row_major(c, c));
    decays_ = k_.global("decays", f32, row_major(2, c));
    const MmaKind kind = k_.best_mma(with_.type, with_.type, f32);
    if (kind.shape.shape.m == 0) return;  // best_mma() has reported it
    mma_ = k_.tiled_mma(kind, {.m = c, .n = c, .k = d_, .warps_m = threads / 32, .warps_n = 1});
    sQ_ = k_.shared("sQ", with_.type, mma_.shared_a(1, Major::row));
    sK_ = k_.shared("sK", with_.type, mma_.shared_a(1, Major::row));
    sGates_ = k_.shared("sGates", f32, row_major(2, c));
    const DeltaInverse inverse(k_);
    const DeltaPlace at(k_, heads, key_heads, starts);
    const Scalar chunk = k_.convert(k_.block_x(), s32), left = at.count - chunk * c;
    k_.when(left > 0, [&] {
      const Scalar matrix = at.matrix(chunk), first = at.first + chunk * c;
      load(at, chunk);
      gates(at, first, minimum(left, c));
      k_.barrier();
      products(inverse, matrix);
      k_.barrier();
      inverse.invert();
      store(inverse, matrix);
    });
  }

 private:
  static constexpr int gate = 0, beta = 1;  // rows of sGates_

  void load(const DeltaPlace& at, const Scalar& chunk) {
    const auto tile = [&](const Global& of) {
      return of.window({at.first, at.key_head * d_}, {at.count, d_}).tile({chunk, 0}, {c, d_});
    };
    k_.pipeline(
        {.stages = 1}, 1,
        [&](Scalar, Scalar stage) {
          k_.copy(tile(K_), sK_[stage]);
          k_.copy(tile(Q_), sQ_[stage]);
        },
        [](Scalar, Scalar) {});
  }

  // Logarithms of the gates' products, base 2, and beta; beyond the last token the gates are 1 and
  // beta is 0. A lane of the first warp has two tokens.
  void gates(const DeltaPlace& at, const Scalar& first, const Scalar& count) {
    k_.when(k_.warp() == 0, [&] {
      const Scalar lane = k_.convert(k_.lane(), s32), own = lane * 2;
      Scalar x[2];
      for (int i = 0; i < 2; ++i) {
        const Scalar there = own + i < count, token = minimum(own + i, count - 1) + first;
        x[i] = k_.read_if(g_, token, at.head, there) * k_.constant(f32, std::numbers::log2e);
        k_.write(sGates_, beta, own + i, k_.read_if(beta_, token, at.head, there));
      }
      Scalar sum = x[0] + x[1];
      for (int by = 1; by < 32; by *= 2)
        sum = sum + select(lane >= by, shuffle_up(sum, by), k_.constant(f32, 0));
      k_.write(sGates_, gate, own, sum - x[1]);
      k_.write(sGates_, gate, own + 1, sum);
    });
  }

  void products(const DeltaInverse& inverse, const Scalar& matrix) {
    const WarpTile kk = mma_(mma_.accumulator(), sK_[0], sK_[0].transposed()),
                   qk = mma_(mma_.accumulator(), sQ_[0], sK_[0].transposed());
    const auto of_row = [&](int row) {
      return map(row_places(kk), [&, row](Scalar i) { return k_.read(sGates_, row, i); });
    };
    const auto gates =
        map(col_places(kk), [&](Scalar j) { return k_.read(sGates_, gate, j); });
    const Scalar zero = k_.constant(f32, 0);
    const WarpTile of_rows = map_rows(kk, of_row(gate), [](Scalar, Scalar b) { return b; });
    const WarpTile decay =
        map_cols(of_rows, gates, [](Scalar x, Scalar b) { return exp2(x - b); });
    const WarpTile weights = map(map(qk, decay, times), [&](Scalar x, ElementPlace at) {
      return select(at.col <= at.row, x, zero);
    });
    k_.store(weights_.matrix(matrix), convert(weights, with_.type));
    const WarpTile lower = map(map_rows(map(kk, decay, times), of_row(beta), times),
                               [&](Scalar x, ElementPlace at) {
                                 return select(at.col < at.row, x * -1, zero);
                               });
    inverse.write(lower);
  }

  // A thread has eight neighbours of a row at a time.
  void store(const DeltaInverse& inverse, const Scalar& matrix) {
    const Scalar thread = k_.thread();
    k_.when(thread < c, [&] {
      const Global decays = decays_.matrix(matrix);
      const Scalar own = k_.read(sGates_, gate, thread), last = k_.read(sGates_, gate, c - 1);
      k_.write(decays, 0, thread, exp2(own));
      k_.write(decays, 1, thread, exp2(last - own));
    });
    const Scalar col = thread % (c / 8) * 8;
    const std::vector<Scalar> by = k_.read_vector(sGates_, beta, col, 8);
    for (int i = 0; i < c * c / 8 / threads; ++i) {
      const Scalar row = thread / (c / 8) + i * (threads / (c / 8));
      std::vector<Scalar> x = inverse.read(row, col, 8);
      for (std::size_t e = 0; e < x.size(); ++e) x[e] = k_.convert(x[e] * by[e], with_.type);
      k_.write_vector(transforms_.matrix(matrix), row, col, x);
    }
  }

  Builder& k_;
  const DeltaRule with_;
  const int d_;
  Global Q_, K_, g_, beta_, transforms_, weights_, decays_;
  TiledMma mma_;
  Ring sQ_, sK_;
  Shared sGates_;
};

}  // namespace

Kernel delta_rule_chunks(const DeltaRule& options) {
  return kernel("delta_rule_chunks", {.block = threads},
                [=](Builder& k) {
                  if (is_possible(k, options)) Chunks(k, options).describe();
                })
      .keyed(key_of(options));
}

}  // namespace tartan::TARTAN_ABI::kernels
