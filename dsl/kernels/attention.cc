// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/kernels/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numbers>
#include <optional>

#include "dsl/kernels/keys.h"
#include "tartan/dsl/math.h"

namespace tartan::inline TARTAN_ABI::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Scalar times(const Scalar& x, const Scalar& y) { return x * y; }
Scalar plus(const Scalar& x, const Scalar& y) { return x + y; }
constexpr int most_head_dim = 512;

// A row that sees no key has the sum 0. A NaN sum is not 0.
Scalar share(const Scalar& x, const Scalar& sum) {
  return select(sum == 0, 0, x * reciprocal(sum));
}
// Whether the product of a score and the scale has less than 12 fraction bits.
Scalar is_far(const Scalar& product) { return maximum(product, product * -1) > 4096; }

Scalar any(const RowValues& rows, Scalar (*is)(const Scalar&)) {
  Scalar out = is(rows.at(0));
  for (std::size_t i = 1; i < rows.size(); ++i) out = out | is(rows[i]);
  return out;
}

// Writes one value for each row of the tile that exists; the tile's first row is number `first`.
// The four lanes that share a row hold the same value.
void write_rows(Builder& k, const Global& to, const Scalar& count, const Scalar& first,
                const WarpTile& tile, const RowValues& values) {
  const RowValues rows = row_places(tile);
  for (std::size_t i = 0; i < rows.size() && i < values.size(); ++i) {
    const Scalar row = first + rows[i];
    k.when((k.lane() % 4 == 0) & (row < count), [&] { k.write(to, 0, row, values[i]); });
  }
}

// tanh(scale * score / cap), for scores that are multiplied by the cap later.
class Capped {
 public:
  Capped(Builder& k, Softcap how, const Scalar& scale) : how_(how) {
    const Scalar cap = k.param("cap", f32);
    cap_ = select((cap > 0) & (cap < infinity), cap, std::numeric_limits<double>::quiet_NaN());
    const double factor = how == Softcap::by_exp ? 2 * std::numbers::log2e : 1;
    inner_ = scale * reciprocal(cap_) * k.constant(f32, factor);
  }
  const Scalar& cap() const { return cap_; }
  Scalar operator()(const Scalar& score) const {
    const Scalar x = score * inner_;
    return how_ == Softcap::by_tanh ? tanh(x) : fma(reciprocal(exp2(x) + 1), -2, 1);
  }

 private:
  Softcap how_;
  Scalar cap_, inner_;
};

// The softmax of rows with a sink: a weight of exp(sink) without a value.
struct Sunk {
  RowValues part, sum, lse;  // of the keys' weights to their own sum; of all weights; its logarithm

  // `top` and `sum` of the scores times `scale`, and a sink, in units of log2.
  Sunk(Builder& k, const RowValues& top, const RowValues& own, const Scalar& scale,
       const Scalar& sink) {
    const Scalar none = k.constant(f32, -infinity), ln2 = k.constant(f32, std::numbers::ln2);
    const auto level = map(top, [&](Scalar x) { return select(x == none, none, x * scale); });
    const auto base = map(level, [&](Scalar x) {
      const Scalar most = maximum(x, sink);
      return select(most == none, 0, most);
    });
    part = map(level, base, [](Scalar x, Scalar b) { return exp2(x - b); });
    const auto of_sink = map(base, [&](Scalar b) { return exp2(sink - b); });
    sum = map(map(own, part, times), of_sink, plus);
    lse = map(base, sum, [&](Scalar b, Scalar all) { return (b + log2(all)) * ln2; });
  }
};

bool is_possible(Builder& k, const Attention& options) {
  const int d = options.head_dim;
  return k.require(d >= 16 && d <= most_head_dim && d % 16 == 0,
                   fmt::format(
                       "head_dim = {}: expected a multiple of 16, from 16 to {}; the nearest is {}",
                       d, most_head_dim, std::clamp(d, 16, most_head_dim + 15) / 16 * 16)) &
         k.require(
             options.type == f16 || options.type == bf16,
             fmt::format("type = {}: expected f16 or bf16 for Q, K, V and O", name(options.type))) &
         k.require(options.causal || !options.window,
                   "window = true: expected causal = true, found causal = false: a window ends at "
                   "the query's own key");
}

// Upper bound of the bytes of shared memory.
std::int64_t shared_bytes(const Attention& options) {
  const std::int64_t line = 2 * std::int64_t{options.head_dim},
                     padding = line & (line - 1) ? 16 : 0;
  const std::int64_t lines =
      options.tile_queries() + std::int64_t{2} * options.stages * options.keys_per_step;
  constexpr std::int64_t barriers = 1024;
  return lines * (line + padding) + barriers;
}

// Reduces the keys per step, then the stages, until shared memory suffices.
Attention fitting(const Attention& options, const Target& target) {
  Attention out = options;
  const ArchRow* arch = find_arch(target.arch);
  if (!arch) return out;
  const auto fits = [&] { return shared_bytes(out) <= arch->shared_bytes; };
  while (!fits() && out.keys_per_step > 32) out.keys_per_step -= 16;
  while (!fits() && out.stages > 1) --out.stages;
  return out;
}

}  // namespace

Attention tuned(const Attention& options, const Target& target) {
  Attention out = options;
  const int d = options.head_dim;
  if (target.arch.text() != "sm_90a") {
    // With more, the assembler spills.
    if (d == 96 || d == 240) out.keys_per_step = std::min(out.keys_per_step, 48);
    return fitting(out, target);
  }
  out.warps = d <= 96 ? 12 : 8, out.producers = 4;  // three warpgroups have enough registers
  out.queries_per_block = 16 * out.warps, out.keys_per_step = 64 < d && d <= 96 ? 112 : 128;
  return fitting(out, target);
}

static Kernel described_attention(const Attention& options) {
  const Type type = options.type;
  const int d = options.head_dim, m = options.tile_queries(), n = options.keys_per_step;
  const Tile qk{.m = m, .n = n, .k = d, .warps_m = options.warps, .warps_n = 1};
  const Tile pv{.m = m, .n = d, .k = n, .warps_m = options.warps, .warps_n = 1};
  return kernel(
      "attention", {.block = qk.threads(), .producers = options.producers}, [=](Builder& k) {
        if (!is_possible(k, options)) return;
        auto queries = k.param("queries", s32), keys = k.param("keys", s32);
        auto heads = k.param("heads", s32), kv_heads = k.param("kv_heads", s32);
        auto scale = k.param("scale", f32);
        std::optional<Scalar> window;
        if (options.window) window = minimum(maximum(k.param("window", s32), 0), keys);
        std::optional<Capped> capped;
        if (options.softcap != Softcap::none) {
          capped.emplace(k, options.softcap, scale);
          scale = capped->cap();  // of what tanh gives
        }
        scale = scale * k.constant(f32, std::numbers::log2e);  // for exp2
        auto minus = scale * k.constant(f32, -1);
        auto head = k.block_z() * heads + k.block_y();
        auto kv_head = k.block_z() * kv_heads + k.block_y() / (heads / kv_heads);
        auto Q = k.global("Q", type, row_major(queries, d)).matrix(head);
        auto K = k.global("K", type, row_major(keys, d)).matrix(kv_head).transposed();
        auto V = k.global("V", type, row_major(keys, d)).matrix(kv_head);
        auto O = k.global("O", type, row_major(queries, d)).matrix(head);
        auto LSE = k.global("LSE", f32, row_major(1, queries)).matrix(head);
        std::optional<Global> sinks;
        if (options.sinks) sinks = k.global("sinks", f32, row_major(1, heads));

        const MmaKind mma = k.best_mma(type, type, f32);
        if (mma.shape.shape.m == 0) return;  // best_mma() has reported it
        auto mma_qk = k.tiled_mma(mma, qk), mma_pv = k.tiled_mma(mma, pv);
        auto sQ = k.shared("sQ", type, mma_qk.shared_a());
        auto sK = k.shared("sK", type, mma_qk.shared_b(options.stages, Major::col));
        auto sV = k.shared("sV", type, mma_pv.shared_b(options.stages, Major::row));

        auto block = ceil_div(queries, m) - 1 - k.block_x();  // causal: the longest ones first
        // Keys that a query sees: the first and last query of the block bound the work.
        const auto seen = [&](Scalar query) {
          return options.causal ? minimum(keys, query + 1 + keys - queries) : keys;
        };
        auto sure = seen(block * m), most = seen(block * m + (m - 1));
        auto steps = ceil_div(most, n), nowhere = ceil_div(keys, n);
        // The first key of a window, and the first step that the block computes.
        const auto first_seen = [&](Scalar query) { return query + 1 + keys - queries - *window; };
        std::optional<Scalar> skipped;
        if (window) skipped = maximum(first_seen(block * m), 0) / n;
        const auto step_of = [&](Scalar t) { return skipped ? t + *skipped : t; };
        auto masked = k.constant(f32, -infinity);

        k.roles([&] {
          k.copy(Q.tile(m, d, block, 0), sQ[0]);
          k.barrier();
          // Fragments of wider heads would take the registers of O's sums.
          std::optional<WarpTile> q;
          if (d <= 192) q = mma_qk.load_a(sQ[0]);

          // Per row: the maximum of its scores, the sum of exp(score - maximum), and the sum of V's
          // rows with those weights.
          auto top = mma_qk.row_variable(masked);
          auto sum = mma_qk.row_variable(k.constant(f32, 0));
          auto o = mma_pv.accumulator();
          std::optional<Scalar> sink;
          if (sinks) sink = k.read(*sinks, 0, k.block_y()) * k.constant(f32, std::numbers::log2e);
          auto weights =
              mma_pv.variable_a();  // of the step before: their product overlaps with this one
          const auto step = [&](const Scalar& t, const Scalar& stage) {
            auto s = mma_qk.accumulator();
            s = q ? mma_qk(s, *q, sK[stage]) : mma_qk(s, sQ[0], sK[stage]);
            o = mma_pv(o, weights, sV[stage]);
            if (capped) s = map(s, [&](Scalar x) { return (*capped)(x); });
            auto at_an_end = (t + 1) * n > sure;
            if (window)
              at_an_end = at_an_end | (t * n < first_seen(minimum(block * m + m, queries) - 1));
            k.when(at_an_end, [&] {
              s = map(s, [&](Scalar x, ElementPlace at) {
                auto sees = t * n + at.col < seen(block * m + at.row);
                if (window) sees = sees & (t * n + at.col >= first_seen(block * m + at.row));
                return select(sees, x, masked);
              });
            });
            RowValues before = top, now = map(before, row_maximum(s), maximum);
            // Infinite before any key is seen: the difference of two infinities would be NaN.
            auto base = map(now, now, [&](Scalar b, Scalar) { return select(b == masked, 0, b); });
            auto shrink =
                map(before, base, [&](Scalar a, Scalar b) { return exp2((a - b) * scale); });
            // fma(x, scale, -base * scale), whose last product is rounded: far from zero, subtract
            // first.
            auto less = mma_qk.row_variable(k.constant(f32, 0));
            less = map(base, base, [&](Scalar b, Scalar) { return b * minus; });
            k.when(any(less, is_far), [&] {
              s = map_rows(s, base, [](Scalar x, Scalar b) { return x - b; });
              less = RowValues(base.size(), k.constant(f32, 0));
            });
            auto weight = [&](Scalar x, Scalar b) { return exp2(fma(x, scale, b)); };
            auto p = map_rows(s, less, weight);
            sum = map(map(sum, shrink, times), row_sum(p), plus);
            o = map_rows(o, shrink, times);
            weights = operand_a(convert(p, type), mma.shape);
            top = now;
          };
          const auto count = skipped ? select(steps > *skipped, steps - *skipped + 1, 0)
                                     : select(steps > 0, steps + 1, 0);
          k.pipeline(
              options.stages, count,
              [&](Scalar t, Scalar stage) {
                k.copy(K.tile(d, n, 0, step_of(t)), sK[stage]);
                k.copy(V.tile(n, d, select(t == 0, nowhere, step_of(t) - 1), 0), sV[stage]);
              },
              [&](Scalar t, Scalar stage) {
                const Scalar at = step_of(t);
                k.when(at < steps, [&] { step(at, stage); });
                k.when(at == steps, [&] { o = mma_pv(o, weights, sV[stage]); });
              });

          RowValues all = sum, lse;
          if (sink) {
            const Sunk sunk(k, top, sum, scale, *sink);
            o = map_rows(o, sunk.part, times);
            all = sunk.sum, lse = sunk.lse;
          }
          auto out = map_rows(o, all, share);
          if (!sink) {
            auto ln2 = k.constant(f32, std::numbers::ln2);
            lse =
                map(top, all, [&](Scalar b, Scalar all) { return (b * scale + log2(all)) * ln2; });
          }
          write_rows(k, LSE, queries, block * m, out, lse);
          k.store(sQ[0], convert(out, type));
          k.barrier();
          k.copy(sQ[0], O.tile(m, d, block, 0));
        });
      });
}

Kernel attention(const Attention& options) {
  return described_attention(options).keyed(key_of(options));
}

}  // namespace tartan::inline TARTAN_ABI::kernels
