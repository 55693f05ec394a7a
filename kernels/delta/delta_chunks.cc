// SPDX-License-Identifier: Apache-2.0
// What the chunks of all sequences need of keys, queries and gates: a CTA for each. With b_i, the
// product of a chunk's gates up to token i:
//
//   transforms   (I + N)^-1 * diag(beta),  N = strictly lower(diag(beta) * (b_i / b_j) o K * K^T)
//   weights      lower((b_i / b_j) o Q * K^T)
//   decays       b_i, and b_last / b_i
#include "kernels/delta/delta_chunks.h"

#include <numbers>

#include "kernels/common/keys.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/warp.h"

namespace tartan::TARTAN_ABI::kernels {

void ChunkKernel::describe() {
  const Scalar tokens = k_.param("tokens", s32), heads = k_.param("heads", s32),
               key_heads = k_.param("key_heads", s32), sequences = k_.param("sequences", s32);
  Q_ = k_.global("Q", with_.type, row_major(tokens, key_heads * d_));
  K_ = k_.global("K", with_.type, row_major(tokens, key_heads * d_));
  g_ = k_.global("g", f32, row_major(tokens, channels_ ? heads * d_ : heads));
  beta_ = k_.global("beta", f32, row_major(tokens, heads));
  const Global starts = k_.global("starts", s32, row_major(1, sequences + 1));
  transforms_ = k_.global("transforms", with_.type, row_major(c, c));
  weights_ = k_.global("weights", with_.type, row_major(c, c));
  decays_ = k_.global("decays", f32, channels_ ? row_major(1, d_) : row_major(2, c));
  const MmaKind kind = k_.best_mma(with_.type, with_.type, f32);
  if (kind.shape.shape.m == 0) return;  // best_mma() has reported it
  mma_ = k_.tiled_mma(kind, {.m = c, .n = c, .k = d_, .warps_m = threads / 32, .warps_n = 1});
  if (!channels_) sQ_ = k_.shared("sQ", with_.type, mma_.shared_a(1, Major::row));
  sK_ = k_.shared("sK", with_.type, mma_.shared_a(1, Major::row));
  sBeta_ = k_.shared("sBeta", f32, row_major(1, c));
  declare(tokens, heads);
  const DeltaInverse inverse(k_);
  const DeltaPlace at(k_, heads, key_heads, starts);
  const Scalar number = index(k_.block_x()), left = at.count - number * c;
  k_.when(left > 0, [&] {
    const Place place{at, at.first + number * c, minimum(left, c), at.matrix(number)};
    load(place, number);
    chunk(place, inverse);
    k_.barrier();
    inverse.invert();
    store_transform(inverse, place.matrix);
  });
}

// Beyond the last token keys, queries and beta are zeros.
void ChunkKernel::load(const Place& place, const Scalar& chunk) {
  const DeltaPlace& at = place.at;
  const auto tile = [&](const Global& of) {
    return of.window({at.first, at.key_head * d_}, {at.count, d_}).tile({chunk, 0}, {c, d_});
  };
  k_.pipeline(
      {.stages = 1}, 1,
      [&](Scalar, Scalar stage) {
        k_.copy(tile(K_), sK_[stage]);
        if (sQ_) k_.copy(tile(Q_), (*sQ_)[stage]);
        read_beta(place);
        gates(place);
      },
      [](Scalar, Scalar) {});
}

void ChunkKernel::read_beta(const Place& place) {
  k_.when(k_.thread() < c, [&] {
    const Scalar token = index(k_.thread()), last = place.count - 1;
    k_.write(sBeta_, 0, token,
             k_.read_if(beta_, place.first + minimum(token, last), place.at.head, token <= last));
  });
}

// A thread has eight neighbours of a row at a time.
void ChunkKernel::store_transform(const DeltaInverse& inverse, const Scalar& matrix) {
  const Scalar thread = k_.thread(), col = thread % (c / 8) * 8;
  const std::vector<Scalar> by = k_.read_vector(sBeta_, 0, col, 8);
  for (int i = 0; i < c * c / 8 / threads; ++i) {
    const Scalar row = thread / (c / 8) + i * (threads / (c / 8));
    std::vector<Scalar> x = inverse.read(row, col, 8);
    for (std::size_t e = 0; e < x.size(); ++e) x[e] = k_.convert(x[e] * by[e], with_.type);
    k_.write_vector(transforms_.matrix(matrix), row, col, x);
  }
}

namespace {

class Chunks final : public ChunkKernel {
 public:
  Chunks(Builder& k, const DeltaRule& with) : ChunkKernel(k, with) {}

 private:
  void declare(const Scalar&, const Scalar&) override {
    sGates_ = k_.shared("sGates", f32, row_major(1, c));
  }

  void chunk(const Place& place, const DeltaInverse& inverse) override {
    k_.when(k_.thread() < c, [&] {
      const Global decays = decays_.matrix(place.matrix);
      const Scalar thread = k_.thread(), own = k_.read(sGates_, 0, thread),
                   last = k_.read(sGates_, 0, c - 1);
      k_.write(decays, 0, thread, exp2(own));
      k_.write(decays, 1, thread, exp2(last - own));
    });
    products(inverse, place.matrix);
  }

  // Logarithms of the gates' products, base 2; beyond the last token the gates are 1. A lane of the
  // first warp has two tokens.
  void gates(const Place& place) override {
    k_.when(k_.warp() == 0, [&] {
      const Scalar lane = index(k_.lane()), own = lane * 2, last = place.count - 1;
      const auto gate = [&](const Scalar& token) {
        return k_.read_if(g_, place.first + minimum(token, last), place.at.head, token <= last) *
               k_.constant(f32, std::numbers::log2e);
      };
      const Scalar first = gate(own), second = gate(own + 1);
      Scalar sum = first + second;
      for (int by = 1; by < 32; by *= 2)
        sum = sum + select(lane >= by, shuffle_up(sum, by), k_.constant(f32, 0));
      k_.write(sGates_, 0, own, sum - second);
      k_.write(sGates_, 0, own + 1, sum);
    });
  }

  void products(const DeltaInverse& inverse, const Scalar& matrix) {
    const WarpTile kk = mma_(mma_.accumulator(), sK_[0], sK_[0].transposed()),
                   qk = mma_(mma_.accumulator(), (*sQ_)[0], sK_[0].transposed());
    const auto of_rows = [&](const Shared& from) {
      return map(row_places(kk), [&](Scalar i) { return k_.read(from, 0, i); });
    };
    const auto of_cols = map(col_places(kk), [&](Scalar j) { return k_.read(sGates_, 0, j); });
    const Scalar zero = k_.constant(f32, 0);
    const WarpTile rows = map_rows(kk, of_rows(sGates_), [](Scalar, Scalar b) { return b; });
    const WarpTile decay = map_cols(rows, of_cols, [](Scalar x, Scalar b) { return exp2(x - b); });
    const WarpTile weights = map(map(qk, decay, times), [&](Scalar x, ElementPlace at) {
      return select(at.col <= at.row, x, zero);
    });
    k_.store(weights_.matrix(matrix), convert(weights, with_.type));
    inverse.write(
        map(map_rows(map(kk, decay, times), of_rows(sBeta_), times),
            [&](Scalar x, ElementPlace at) { return select(at.col < at.row, x * -1, zero); }));
  }

  Shared sGates_;
};

}  // namespace

void describe_chunks(Builder& k, const DeltaRule& with) { Chunks(k, with).describe(); }

Kernel delta_rule_chunks(const DeltaRule& options) {
  return kernel("delta_rule_chunks", {.block = ChunkKernel::threads},
                [=](Builder& k) {
                  if (!is_possible(k, options)) return;
                  if (options.channel_gates) describe_channel_chunks(k, options);
                  else describe_chunks(k, options);
                })
      .keyed(key_of(options));
}

}  // namespace tartan::TARTAN_ABI::kernels
