// SPDX-License-Identifier: Apache-2.0
// The delta rule token by token. Eight lanes have a row of the state, and a warp four rows at a
// time; what a CTA has of the state is in registers from the first token to the last.
#include <algorithm>
#include <numbers>

#include "kernels/common/keys.h"
#include "kernels/delta/delta_shape.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/warp.h"
#include "tartan/kernels/delta_rule.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int warps = 4, lanes = 8, at_a_time = 32 / lanes, vector = 4;

// The body of the kernel.
class Decode {
 public:
  Decode(Builder& k, const DeltaRuleDecode& with)
      : k_(k),
        with_(with),
        d_(with.key_dim),
        vectors_(with.key_dim / (lanes * vector)),
        turns_(with.values_per_block / (warps * at_a_time)) {}

  void describe() {
    const Scalar sequences = k_.param("sequences", s32), tokens = k_.param("tokens", s32),
                 heads = k_.param("heads", s32), key_heads = k_.param("key_heads", s32),
                 scale = k_.param("scale", f32);
    const Scalar all = sequences * tokens;
    const auto matrix = [&](const char* name, Type type, const Scalar& width) {
      return k_.global(name, type, row_major(all, width));
    };
    const Global Q = matrix("Q", with_.type, key_heads * d_),
                 K = matrix("K", with_.type, key_heads * d_),
                 V = matrix("V", with_.type, heads * with_.value_dim),
                 g = matrix("g", f32, with_.channel_gates ? heads * d_ : heads),
                 beta = matrix("beta", f32, heads);
    const Global states = k_.global("S", f32, row_major(with_.value_dim, d_));
    const Global O = matrix("O", with_.type, heads * with_.value_dim);
    const Scalar head = index(k_.block_y()), sequence = index(k_.block_z()),
                 key_col = head / (heads / key_heads) * d_;
    const Global state = states.matrix(sequence * heads + head);
    const Scalar lane = index(k_.lane()), part = lane % lanes,
                 first = index(k_.block_x()) * with_.values_per_block +
                         index(k_.warp()) * (turns_ * at_a_time) + lane / lanes;
    std::vector<std::vector<ScalarVariable>> s;
    for (int i = 0; i < turns_; ++i) {
      s.emplace_back();
      for (const Scalar& x : part_of(state, first + i * at_a_time, 0, part))
        s.back().push_back(k_.variable(x));
    }
    k_.loop(sequence * tokens, (sequence + 1) * tokens, 1, [&](Scalar token) {
      const std::vector<Scalar> q = part_of(Q, token, key_col, part),
                                key = part_of(K, token, key_col, part);
      const Scalar own_beta = k_.read(beta, token, head);
      std::vector<Scalar> gates = with_.channel_gates
                                      ? part_of(g, token, head * d_, part)
                                      : std::vector<Scalar>(q.size(), k_.read(g, token, head));
      const Scalar log2e = k_.constant(f32, std::numbers::log2e);
      if (with_.channel_gates)
        for (Scalar& each : gates) each = exp2(each * log2e);
      else gates.assign(q.size(), exp2(gates[0] * log2e));
      const Scalar col = head * with_.value_dim;
      std::vector<Scalar> values;
      for (int i = 0; i < turns_; ++i)
        values.push_back(k_.convert(k_.read(V, token, col + first + i * at_a_time), f32));
      for (int i = 0; i < turns_; ++i) {
        auto& row = s[static_cast<std::size_t>(i)];
        std::vector<Scalar> x;
        Scalar found = k_.constant(f32, 0), out = found;
        for (std::size_t e = 0; e < key.size(); ++e) {
          x.push_back(Scalar(row[e]) * gates[e]);
          found = fma(x[e], key[e], found);
        }
        const Scalar change = own_beta * (values[static_cast<std::size_t>(i)] - across(found));
        for (std::size_t e = 0; e < key.size(); ++e) {
          x[e] = fma(change, key[e], x[e]);
          out = fma(x[e], q[e], out);
          row[e] = x[e];
        }
        out = across(out) * scale;
        k_.write_if(O, token, col + first + i * at_a_time, k_.convert(out, with_.type), part == 0);
      }
    });
    for (int i = 0; i < turns_; ++i)
      for (int v = 0; v < vectors_; ++v) {
        std::vector<Scalar> x;
        for (int e = 0; e < vector; ++e)
          x.emplace_back(s[static_cast<std::size_t>(i)][static_cast<std::size_t>(v * vector + e)]);
        k_.write_vector(state, first + i * at_a_time, place(part, v), x);
      }
  }

 private:
  Scalar index(const Scalar& x) { return k_.convert(x, s32); }
  static Scalar place(const Scalar& part, int v) { return part * vector + v * (lanes * vector); }

  // A lane's elements of a row, in f32.
  std::vector<Scalar> part_of(const Global& from, const Scalar& row, const Scalar& col,
                              const Scalar& part) {
    std::vector<Scalar> out;
    for (int v = 0; v < vectors_; ++v)
      for (const Scalar& x : k_.read_vector(from, row, col + place(part, v), vector))
        out.push_back(k_.convert(x, f32));
    return out;
  }

  static Scalar across(Scalar x) {
    for (int by = 1; by < lanes; by *= 2) x = x + shuffle_xor(x, by);
    return x;
  }

  Builder& k_;
  const DeltaRuleDecode with_;
  const int d_, vectors_, turns_;
};

}  // namespace

Kernel delta_rule_decode(const DeltaRuleDecode& options) {
  return kernel("delta_rule_decode", {.block = 32 * warps},
                [=](Builder& k) {
                  if (is_possible(k, options)) Decode(k, options).describe();
                })
      .keyed(key_of(options));
}

}  // namespace tartan::TARTAN_ABI::kernels
