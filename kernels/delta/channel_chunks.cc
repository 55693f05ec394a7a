// SPDX-License-Identifier: Apache-2.0
// The chunks of Kimi Delta Attention, whose gates are those of elements of keys. With b_i, a
// vector:
//
//   N         strictly lower(beta_i * sum over the elements of k_i * k_j * b_i / b_j)
//   weights   lower(the same of q_i and k_j)
//   decays    b_last        Qg, Kg   q_i * b_i, k_i * b_i        Ke   k_i * b_last / b_i
//
// b_i / b_j is a product of two factors, b_i / r and r / b_j, where r is what the gates were before
// the first of the 16 tokens that i belongs to. The first factor is at most 1, and so is the second
// but for j among the same tokens. There it may overflow, if gates are strong: then a thread
// computes a sum of its own, with b_i / b_j.
#include <numbers>

#include "kernels/delta/delta_chunks.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/warp.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int part = 16;  // tokens with a common r

class ChannelChunks final : public ChunkKernel {
 public:
  ChannelChunks(Builder& k, const DeltaRule& with) : ChunkKernel(k, with) {}

 private:
  void declare(const Scalar& tokens, const Scalar& heads) override {
    const auto scaled = [&](const char* name) {
      return k_.global(name, with_.type, row_major(tokens, heads * d_));
    };
    Qg_ = scaled("Qg"), Kg_ = scaled("Kg"), Ke_ = scaled("Ke");
    sGates_ = k_.shared("sGates", f32, row_major(c, d_, d_ + 8));  // against bank conflicts
    sStrong_ = k_.shared("sStrong", u32, row_major(1, threads / 32));
  }

  void chunk(const Place& place, const DeltaInverse& inverse) override {
    Scalar strong = k_.read(sStrong_, 0, 0);
    for (int w = 1; w < threads / 32; ++w) strong = strong | k_.read(sStrong_, 0, w);
    scale_keys(place);
    products(place, inverse, strong == 0);
    k_.when(strong != 0, [&] { sums(place, inverse); });
  }

  // Neighbours in a query. Each is read twice: shared memory is for more CTAs. Beyond the last
  // token they are those of the last.
  std::vector<Scalar> query(const Place& place, const Scalar& row, const Scalar& col, int count) {
    return k_.read_vector(Q_, place.first + minimum(row, place.count - 1),
                          place.at.key_head * d_ + col, count);
  }

  // A thread has an element of all tokens: the logarithms of the gates' products, base 2. Beyond
  // the last token the gates are 1.
  void gates(const Place& place) override {
    constexpr double most = 100;  // of the logarithm of a factor: below what bf16 and f32 have
    const Scalar thread = index(k_.thread()), last = place.count - 1;
    auto strong = k_.variable(k_.constant(u32, 0));
    k_.when(thread < d_, [&] {
      Scalar sum = k_.constant(f32, 0), before = sum;
      for (int first = 0; first < c; first += part) {
        std::vector<Scalar> x;
        for (int i = first; i < first + part; ++i) {
          const Scalar token = minimum(Scalar(i), last);
          x.push_back(k_.read_if(g_, place.first + token, place.at.head * d_ + thread, last >= i) *
                      k_.constant(f32, std::numbers::log2e));
        }
        for (int i = 0; i < part; ++i) {
          sum = sum + x[static_cast<std::size_t>(i)];
          k_.write(sGates_, first + i, thread, sum);
        }
        strong = select(before - sum <= most, Scalar(strong), 1);
        before = sum;
      }
      k_.write(decays_.matrix(place.matrix), 0, thread, exp2(sum));
    });
    const Scalar any = any_lane(Scalar(strong) != 0);
    k_.when(k_.lane() == 0, [&] {
      k_.write(sStrong_, 0, k_.warp(), select(any, k_.constant(u32, 1), k_.constant(u32, 0)));
    });
  }

  // What the second kernel multiplies with the state. A thread has eight neighbours of a row at a
  // time.
  void scale_keys(const Place& place) {
    const int vectors = d_ / 8;
    k_.loop(index(k_.thread()), place.count * vectors, threads, [&](Scalar i) {
      const Scalar row = i / vectors, col = i % vectors * 8;
      const std::vector<Scalar> q = query(place, row, col, 8),
                                key = k_.read_vector(sK_[0], row, col, 8),
                                own = k_.read_vector(sGates_, row, col, 8),
                                last = k_.read_vector(sGates_, c - 1, col, 8);
      std::vector<Scalar> qg, kg, ke;
      for (std::size_t e = 0; e < own.size(); ++e) {
        const Scalar b = exp2(own[e]), x = k_.convert(key[e], f32);
        qg.push_back(k_.convert(k_.convert(q[e], f32) * b, with_.type));
        kg.push_back(k_.convert(x * b, with_.type));
        ke.push_back(k_.convert(x * exp2(last[e] - own[e]), with_.type));
      }
      const Scalar token = place.first + row, at = place.at.head * d_ + col;
      k_.write_vector(Qg_, token, at, qg);
      k_.write_vector(Kg_, token, at, kg);
      k_.write_vector(Ke_, token, at, ke);
    });
  }

  // A warp has the 16 rows of a part, and goes through the parts up to it: fragments of bf16, whose
  // range the factors need.
  void products(const Place& place, const DeltaInverse& inverse, const Scalar& all) {
    const int steps = d_ / 16;
    // Later parts have more work: those of neighbouring CTAs are other warps'.
    const Scalar own = (index(k_.warp()) + index(k_.block_x())) % (threads / 32), row = own * part,
                 group = index(k_.lane()) / 4, pair = index(k_.lane()) % 4 * 2;
    const Scalar zero = k_.constant(f32, 0), before = maximum(row - 1, 0);
    std::vector<Scalar> base;  // the logarithm of r: of a step's columns pair, + 1, + 8, + 9
    std::vector<Fragment> keys, queries;
    for (int s = 0; s < steps; ++s) {
      for (const int half : {0, 8})
        for (const Scalar& x : k_.read_vector(sGates_, before, pair + (16 * s + half), 2))
          base.push_back(select(own == 0, zero, x));
      std::vector<Scalar> key, own_query;
      for (const int half : {0, 8})
        for (const int down : {0, 8}) {
          const Scalar at = row + group + down, col = pair + (16 * s + half);
          const std::vector<Scalar> g = k_.read_vector(sGates_, at, col, 2);
          std::vector<Scalar> by;
          for (std::size_t e = 0; e < 2; ++e)
            by.push_back(exp2(g[e] - base[static_cast<std::size_t>(4 * s + half / 4) + e]));
          add_scaled(key, k_.read_vector(sK_[0], at, col, 2), by);
          add_scaled(own_query, query(place, at, col, 2), by);
        }
      keys.push_back(k_.pack(operand_a(m16n8k16, bf16), key));
      queries.push_back(k_.pack(operand_a(m16n8k16, bf16), own_query));
    }
    const Global weights = weights_.matrix(place.matrix);
    k_.loop(0, c / part, 1, [&](Scalar other) {
      const Scalar first = index(other) * part;
      k_.when(first < row || (first == row && all), [&] {
        for (const int side : {0, 8}) {
          Fragment kk, qk;
          for (int s = 0; s < steps; ++s) {
            const auto step = static_cast<std::size_t>(s);
            std::vector<Scalar> x;
            for (const int half : {0, 8}) {
              const Scalar at = first + group + side, col = pair + (16 * s + half);
              const std::vector<Scalar> g = k_.read_vector(sGates_, at, col, 2);
              std::vector<Scalar> by;
              for (std::size_t e = 0; e < 2; ++e)
                by.push_back(exp2(base[static_cast<std::size_t>(4 * s + half / 4) + e] - g[e]));
              add_scaled(x, k_.read_vector(sK_[0], at, col, 2), by);
            }
            const Fragment b = k_.pack(operand_b(m16n8k16, bf16), x);
            kk = s == 0 ? k_.mma(keys[step], b, zero_) : k_.mma(keys[step], b, kk);
            qk = s == 0 ? k_.mma(queries[step], b, zero_) : k_.mma(queries[step], b, qk);
          }
          const std::vector<Scalar> n = k_.elements(kk), w = k_.elements(qk);
          for (const int down : {0, 8}) {
            const Scalar i = row + group + down, j = first + pair + side;
            const Scalar beta = k_.read(sBeta_, 0, i) * -1;
            std::vector<Scalar> out;
            for (int e = 0; e < 2; ++e) {
              const auto element = static_cast<std::size_t>(down / 4 + e);
              inverse.write(i, j + e, select(j + e < i, n[element] * beta, zero));
              out.push_back(k_.convert(select(j + e <= i, w[element], zero), with_.type));
            }
            k_.write_vector(weights, i, j, out);
          }
        }
      });
      k_.when(first > row, [&] {
        for (const int side : {0, 8})
          for (const int down : {0, 8})
            k_.write_vector(weights, row + group + down, first + pair + side,
                            std::vector<Scalar>(2, k_.convert(zero, with_.type)));
      });
    });
  }

  // Two neighbours of a row, each times its factor.
  void add_scaled(std::vector<Scalar>& to, const std::vector<Scalar>& x,
                  const std::vector<Scalar>& by) {
    for (std::size_t e = 0; e < 2; ++e)
      to.push_back(k_.convert(k_.convert(x[e], f32) * by[e], bf16));
  }

  // Tokens of the same part, pair by pair.
  void sums(const Place& place, const DeltaInverse& inverse) {
    const Global weights = weights_.matrix(place.matrix);
    k_.loop(index(k_.thread()), c * part, threads, [&](Scalar number) {
      const Scalar i = number / part, j = i / part * part + number % part;
      auto kk = k_.variable(k_.constant(f32, 0)), qk = k_.variable(k_.constant(f32, 0));
      k_.when(j <= i, [&] {
        k_.loop(0, d_, 1, [&](Scalar e) {
          const auto key = [&](const Scalar& row) {
            return k_.convert(k_.read(sK_[0], row, e), f32);
          };
          const Scalar by = exp2(k_.read(sGates_, i, e) - k_.read(sGates_, j, e)) * key(j);
          kk = fma(key(i), by, Scalar(kk));
          qk = fma(k_.convert(query(place, i, e, 1)[0], f32), by, Scalar(qk));
        });
      });
      inverse.write(i, j, select(j < i, Scalar(kk) * k_.read(sBeta_, 0, i) * -1, 0));
      k_.write(weights, i, j, k_.convert(qk, with_.type));
    });
  }

  static constexpr Zero zero_ = zero(f32);
  Global Qg_, Kg_, Ke_;
  Shared sGates_, sStrong_;
};

}  // namespace

void describe_channel_chunks(Builder& k, const DeltaRule& with) {
  ChannelChunks(k, with).describe();
}

}  // namespace tartan::TARTAN_ABI::kernels
