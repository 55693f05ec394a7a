// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/attention.h"

#include <limits>
#include <numbers>
#include <optional>
#include <tuple>

#include "kernels/attention/attention_shape.h"
#include "kernels/attention/attention_softmax.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/common/keys.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/warp.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// A row that sees no key has the sum 0. A NaN sum is not 0.
Scalar share_of(const Scalar& x, const Scalar& sum) {
  return select(sum == 0, 0, x * reciprocal(sum));
}
// The body of the kernel.
class Forward {
 public:
  Forward(Builder& k, const Attention& with)
      : k_(k),
        with_(with),
        d_(with.head_dim),
        m_(with.tile_queries()),
        n_(with.keys_per_step),
        lazy_((k.target().has(Feature::wgmma) || k.target().has(Feature::tensor_memory)) &&
              with.producers > 0 && (with.warps >= 8 || with.together) &&
              with.softcap == Softcap::none),
        persistent_(with.persistent),
        from_end_(with.persistent && with.causal),
        lean_(with.head_dim <= 64 || (with.head_dim > 128 && with.head_dim <= 192)),
        in_turns_((with.causal || lazy_) && !with.together && with.producers > 0 &&
                  with.warps % 4 == 0 && with.warps > 4 && k.target().has(Feature::wgmma)),
        apart_((with.causal || lazy_ || with.persistent) && !with.together &&
               has_own_output(with, k.target())),
        windows_(with.packed && with.producers > 0 && k.target().arch.has(Feature::tma)) {}

  void describe() {
    declare();
    const MmaKind kind = k_.best_mma(with_.type, with_.type, f32);
    if (kind.shape.shape.m == 0) return;  // best_mma() has reported it
    qk_ = k_.tiled_mma(kind, tile_qk(with_));
    pv_ = k_.tiled_mma(kind, {.m = m_, .n = d_, .k = n_, .warps_m = with_.warps, .warps_n = 1});
    sQ_ = k_.shared("sQ", with_.type, qk_.shared_a(persistent_ ? 2 : 1));
    sK_ = k_.shared("sK", with_.type, qk_.shared_b(with_.stages, Major::col));
    sV_ = k_.shared("sV", with_.type, pv_.shared_b(with_.stages, Major::row));
    if (!persistent_) bound();
    k_.roles([&] {
      if (in_turns_) k_.when(group() == groups() - 1, [&] { pass_turn(0); });
      // A sequence may have fewer tiles than the launch has blocks for it.
      if (persistent_) each_tile();
      else if (with_.packed) k_.when(there_, [&] { tile(); });
      else tile();
      if (in_turns_) k_.when(group() == 0, [&] { await_turn(); });
    });
  }

  static Tile tile_qk(const Attention& with) {
    return {.m = with.tile_queries(),
            .n = with.keys_per_step,
            .k = with.head_dim,
            .warps_m = with.warps,
            .warps_n = 1};
  }

 private:
  void declare() {
    queries_ = all_queries_ = k_.param("queries", s32);
    keys_ = all_keys_ = k_.param("keys", s32);
    heads_ = k_.param("heads", s32), kv_heads_ = k_.param("kv_heads", s32);
    scale_ = k_.param("scale", f32);
    if (with_.window) window_ = k_.param("window", s32);
    if (with_.softcap != Softcap::none) {
      capped_.emplace(k_, with_.softcap, scale_);
      scale_ = capped_->cap();  // of what tanh gives
    }
    scale_ = scale_ * k_.constant(f32, std::numbers::log2e);  // for exp2
    minus_scale_ = scale_ * k_.constant(f32, -1);
    masked_ = k_.constant(f32, -infinity);
    Scalar sequences;
    if (with_.packed) sequences = k_.param("sequences", s32);
    const auto matrix = [&](const char* name, const Scalar& rows, const Scalar& heads) {
      return k_.global(name, with_.type, row_major(rows, with_.packed ? heads * d_ : Scalar(d_)));
    };
    Q_ = matrix("Q", queries_, heads_), K_ = matrix("K", keys_, kv_heads_);
    V_ = matrix("V", keys_, kv_heads_), O_ = matrix("O", queries_, heads_);
    LSE_ = k_.global("LSE", f32, row_major(1, queries_));
    if (with_.sinks) sinks_ = k_.global("sinks", f32, row_major(1, heads_));
    if (with_.packed) read_sequence(sequences);
    if (window_) window_ = minimum(maximum(*window_, 0), keys_);
    blocks_ = ceil_div(queries_, m_);
    if (persistent_) {
      all_blocks_ = index(k_.blocks_x()) * index(k_.blocks_y());
      return;
    }
    find_tile();
    if (!with_.packed) select_matrices();
  }

  void select_matrices() {
    const Scalar head = k_.block_z() * heads_ + head_,
                 kv_head = k_.block_z() * kv_heads_ + head_ / share();
    for (Global* each : {&Q_, &O_, &LSE_}) *each = each->matrix(head);
    for (Global* each : {&K_, &V_}) *each = each->matrix(kv_head);
  }

  // The part of packed matrices that this block has.
  void read_sequence(const Scalar& sequences) {
    const auto part = [&](const char* name, Scalar& first, Scalar& count) {
      const Global starts = k_.global(name, s32, row_major(1, sequences + 1));
      const Scalar number = k_.convert(k_.block_z(), s32);
      first = k_.read(starts, 0, number);
      count = k_.read(starts, 0, number + 1) - first;
    };
    part("query_starts", first_query_, queries_);
    part("key_starts", first_key_, keys_);
  }

  Scalar index(const Scalar& x) { return k_.convert(x, s32); }

  // ---- Which tile of queries this block has.

  // The number of this block among those of its batch.
  Scalar number() { return index(k_.block_y()) * index(k_.blocks_x()) + index(k_.block_x()); }

  void each_tile() {
    const auto all = std::tuple(Q_, K_, V_, O_, LSE_);
    queries_at_ = k_.variable(k_.constant(s32, 1));
    k_.loop(number(), heads_ * blocks_, all_blocks_, [&](Scalar number) {
      std::tie(head_, block_) = longest_first(number);
      select_matrices();
      bound();
      tile();
      std::tie(Q_, K_, V_, O_, LSE_) = all;
    });
  }

  void find_tile() {
    if (with_.causal && with_.producers > 0) {  // others: registers are scarce
      const Scalar number = this->number();
      there_ = number < heads_ * blocks_;
      std::tie(head_, block_) = longest_first(number);
    } else {
      head_ = k_.block_y();
      if (with_.packed) head_ = index(head_);
      block_ = blocks_ - 1 - k_.block_x();
      there_ = index(k_.block_x()) < blocks_;
    }
  }

  std::pair<Scalar, Scalar> longest_first(const Scalar& number) {
    return TileOrder{with_, heads_, kv_heads_, keys_, blocks_}.longest_first(number);
  }

  // Query heads that have a head of keys.
  Scalar share() { return heads_ / kv_heads_; }

  // ---- Matrices.

  // The first query of the tile, and the one behind its last. Where tiles are counted from the end,
  // the first one, which has the least work, may be a part; its other rows are not stored.
  Scalar first_row() { return from_end_ ? maximum(end_row() - m_, 0) : block_ * m_; }
  Scalar end_row() { return from_end_ ? queries_ - (blocks_ - 1 - block_) * m_ : queries_; }
  Scalar last_row() { return from_end_ ? end_row() - 1 : block_ * m_ + (m_ - 1); }

  // The tile of queries, or of O; rows beyond the matrix, or the sequence, are zeros.
  Global query_tile(const Global& all) {
    if (from_end_)
      return all.window({first_row(), 0}, {end_row() - first_row(), d_}).tile({0, 0}, {m_, d_});
    if (!with_.packed) return all.tile({block_, 0}, {m_, d_});
    return all.window({first_query_, head_ * d_}, {queries_, d_}).tile({block_, 0}, {m_, d_});
  }
  // Same, for copies. TMA copies windows of a constant size alone: with rows of the sequences that
  // follow.
  Global query_window() {
    if (from_end_) return Q_.window({first_row(), 0}, {m_, d_});
    if (!windows_) return query_tile(Q_);
    const Scalar col = head_ * d_, row = first_query_ + block_ * m_;
    return Q_.window({row, col}, {m_, d_});
  }
  // The keys or values of step t; nothing where `hidden`.
  Global key_window(const Global& all, const Scalar& t, const std::optional<Scalar>& hidden = {}) {
    const Scalar number = hidden ? select(*hidden, ceil_div(keys_, n_), t) : t;
    if (!with_.packed) return all.tile({number, 0}, {n_, d_});
    const Scalar col = head_ / share() * d_;
    if (windows_) {
      const Scalar first = first_key_ + t * n_;
      return all.window({hidden ? select(*hidden, all_keys_, first) : first, col}, {n_, d_});
    }
    return all.window({first_key_, col}, {keys_, d_}).tile({number, 0}, {n_, d_});
  }

  void clear(const Shared& tile, const Scalar& first, int rows) {
    clear_rows(k_, tile, first, rows, d_, tile_qk(with_).threads());
  }

  // ---- A tile of queries.

  // Keys that a query sees: from first_seen() to before seen().
  Scalar seen(const Scalar& query) {
    return with_.causal ? minimum(keys_, query + 1 + keys_ - queries_) : keys_;
  }
  Scalar first_seen(const Scalar& query) { return query + 1 + keys_ - queries_ - *window_; }
  Scalar step_of(const Scalar& t) { return window_ ? t + first_step_ : t; }

  // Per row: the maximum of its scores, the sum of exp(score - maximum), and the sum of V's rows
  // with those weights. The weights are those of the step before, whose product overlaps with this
  // one's.
  struct Rows {
    RowVariable top, sum;
    Accumulator o, weights;
    // Where maxima stay (see weigh_lazily()): from which score on they move; minus their products
    // with the scale; whether some product is far from zero.
    RowVariable limit, less;
    ScalarVariable far;
  };

  // The steps of the tile: its first and last query bound the work.
  void bound() {
    // Of the tile or, where a warpgroup's rows are contiguous and some steps are masked, its own.
    sure_ = seen(from_end_ && by_warpgroups() ? first_row() + group() * 64 : first_row());
    steps_ = ceil_div(seen(last_row()), n_);
    if (window_) first_step_ = maximum(first_seen(first_row()), 0) / n_;
  }

  void tile() {
    const Scalar begin = window_ ? first_step_ : Scalar(0);
    load_queries(begin);
    // Fragments of wider heads would take the registers of O's sums.
    std::optional<WarpTile> q;
    if (d_ <= 192) q = qk_.load_a(shared_queries());
    const Scalar zero = k_.constant(f32, 0);
    Rows rows{qk_.row_variable(masked_),
              qk_.row_variable(zero),
              pv_.accumulator(),
              pv_.variable_a(),
              qk_.row_variable(masked_),
              qk_.row_variable(zero),
              k_.variable(k_.constant(u32, 0))};
    if (with_.together) {
      k_.pipeline(
          {.stages = with_.stages}, maximum(steps_ - begin, 0),
          [&](Scalar t, Scalar stage) {
            k_.copy(key_window(K_, step_of(t)).transposed(), sK_[stage]);
            k_.copy(key_window(V_, step_of(t)), sV_[stage]);
          },
          [&](Scalar t, Scalar stage) { step_together(rows, q, step_of(t), stage); });
      return store(rows);
    }
    k_.pipeline(
        {.stages = with_.stages}, select(steps_ > begin, steps_ - begin + 1, 0),
        [&](Scalar t, Scalar stage) {
          const Scalar at = step_of(t);
          k_.copy(key_window(K_, at, at == steps_).transposed(), sK_[stage]);
          k_.copy(key_window(V_, at - 1, t == 0), sV_[stage]);
        },
        [&](Scalar t, Scalar stage) {
          const Scalar at = step_of(t);
          k_.when(at < steps_, [&] { step(rows, q, at, stage); });
          k_.when(at == steps_, [&] { finish(rows, stage); });
        });
    store(rows);
  }

  void load_queries(const Scalar& begin) {
    if (persistent_) {
      // Those of the next tile go to the other stage. What they take the place of was last read by
      // the tile before this one, whose keys were all released before this tile's last ones came.
      *queries_at_ = select(steps_ > begin, Scalar(1) - *queries_at_, *queries_at_);
      k_.pipeline(
          {.stages = 2}, select(steps_ > begin, 1, 0),
          [&](Scalar, Scalar stage) { k_.copy(query_window(), sQ_[stage]); },
          [](Scalar, Scalar) {});
    } else if (apart_) {
      k_.pipeline(
          {.stages = 1}, select(steps_ > begin, 1, 0),
          [&](Scalar, Scalar stage) { k_.copy(query_window(), sQ_[stage]); },
          [](Scalar, Scalar) {});
    } else {
      k_.copy(query_window(), sQ_[0]);
      k_.barrier();
    }
    if (windows_)
      k_.when((steps_ > begin) & ((block_ + 1) * m_ > queries_),
              [&] { clear(sQ_[0], queries_ - block_ * m_, m_); });
  }

  Shared shared_queries() { return sQ_[persistent_ ? Scalar(*queries_at_) : Scalar(0)]; }

  void step(Rows& rows, const std::optional<WarpTile>& q, const Scalar& t, const Scalar& stage) {
    auto s = qk_.accumulator();
    if (in_turns_) await_turn();
    qk_.add(s, q ? MmaOperand(*q) : MmaOperand(shared_queries()), sK_[stage]);
    pv_.add(rows.o, rows.weights, sV_[stage]);
    if (in_turns_) pass_turn(select(group() == groups() - 1, 0, group() + 1));
    weigh_step(rows, s, t);
  }

  // Both products of a step.
  void step_together(Rows& rows, const std::optional<WarpTile>& q, const Scalar& t,
                     const Scalar& stage) {
    auto s = qk_.accumulator();
    qk_.add(s, q ? MmaOperand(*q) : MmaOperand(shared_queries()), sK_[stage]);
    weigh_step(rows, s, t);
    if (windows_) k_.when((t + 1) * n_ > keys_, [&] { clear(sV_[stage], keys_ - t * n_, n_); });
    pv_.add(rows.o, rows.weights, sV_[stage]);
  }

  void weigh_step(Rows& rows, Accumulator& s, const Scalar& t) {
    if (capped_) s = map(s, [&](Scalar x) { return (*capped_)(x); });
    mask(s, t);
    if (lazy_) weigh_lazily(rows, s);
    else weigh(rows, s);
  }

  void weigh(Rows& rows, Accumulator& s) {
    const RowValues before = rows.top, now = map(before, row_maximum(s), maximum);
    // Infinite before any key is seen: the difference of two infinities would be NaN.
    const auto base = map(now, [&](Scalar b) { return select(b == masked_, 0, b); });
    const auto shrink =
        map(before, base, [&](Scalar a, Scalar b) { return exp2((a - b) * scale_); });
    // fma(x, scale, -base * scale), whose last product is rounded: far from zero, subtract first.
    auto less = qk_.row_variable(k_.constant(f32, 0));
    less = map(base, [&](Scalar b) { return b * minus_scale_; });
    k_.when(any(less, is_far), [&] {
      s = map_rows(s, base, [](Scalar x, Scalar b) { return x - b; });
      less = RowValues(base.size(), k_.constant(f32, 0));
    });
    const auto p = map_rows(s, less, [&](Scalar x, Scalar b) { return exp2(fma(x, scale_, b)); });
    rows.sum = map(map(rows.sum, shrink, times), row_sum(p), plus);
    rows.o.update([&](const WarpTile& part) { return map_rows(part, shrink, times); });
    rows.weights = operand_a(convert(p, with_.type), qk_.kind().shape);
    rows.top = now;
  }

  // The maximum of a row stays where it is until weights might become large: sums need no
  // correction then, and lanes need not exchange their maxima. Each lane has its own sum. Weights
  // are computed in branches: elsewhere, the assembler moves them behind the wait for the product
  // with V, beside which they are computed.
  void weigh_lazily(Rows& rows, Accumulator& s) {
    constexpr double most_exponent = 8;
    const Scalar zero = k_.constant(f32, 0);
    const auto limit_of = [&](const RowValues& top) {
      return map(top, [&](Scalar b) { return b + reciprocal(scale_) * most_exponent; });
    };
    const auto base_of = [&](const RowValues& top) {
      return map(top, [&](Scalar b) { return select(b == masked_, 0, b); });
    };
    const auto less_of = [&](const RowValues& base) {
      return map(base, [&](Scalar b) { return b * minus_scale_; });
    };
    const RowValues own = in_lane(k_, s, maximum), limit = lean_ ? limit_of(rows.top) : rows.limit;
    if (own.empty()) return;  // after an error
    auto shrinks = qk_.row_variable(k_.constant(f32, 1)), part = qk_.row_variable(zero);
    auto moved = k_.variable(k_.constant(u32, 0));
    Scalar above = own[0] > limit[0];
    for (std::size_t i = 1; i < own.size(); ++i) above = above | (own[i] > limit[i]);
    k_.when(any_lane(above), [&] {
      const RowValues before = rows.top, now = map(before, across_lanes(own, maximum), maximum),
                      base = base_of(now);
      const auto shrink =
          map(before, base, [&](Scalar a, Scalar b) { return exp2((a - b) * scale_); });
      rows.sum = map(rows.sum, shrink, times);
      shrinks = shrink, moved = k_.constant(u32, 1);
      rows.top = now;
      if (lean_) return;
      rows.limit = limit_of(now);
      const RowValues less = less_of(base);
      rows.less = less;
      rows.far = select(any(less, is_far), 1, 0);
    });
    const auto weights = [&](const RowValues& less) {
      s = map_rows(s, less, [&](Scalar x, Scalar b) { return exp2(fma(x, scale_, b)); });
      part = in_lane(k_, s, plus);
    };
    RowValues less;
    if (lean_) less = less_of(base_of(rows.top));
    k_.when(
        lean_ ? any(less, is_far) : Scalar(rows.far) != 0,
        [&] {
          s = map_rows(s, base_of(rows.top), [](Scalar x, Scalar b) { return x - b; });
          weights(RowValues(own.size(), zero));
        },
        [&] { weights(lean_ ? less : RowValues(rows.less)); });
    rows.sum = map(rows.sum, part, plus);
    Scalar moves = lean_ ? any(shrinks, is_not_one) : Scalar(moved) != 0;
    if (k_.target().has(Feature::tensor_memory))
      moves = any_lane(moves);  // a warp loads as a whole
    k_.when(moves,
            [&] { rows.o.update([&](const WarpTile& o) { return map_rows(o, shrinks, times); }); });
    rows.weights = operand_a(convert(s, with_.type), qk_.kind().shape);
  }

  // Warpgroups start their products in turn, so that one computes weights beside the products of
  // another.
  bool by_warpgroups() const { return k_.target().has(Feature::wgmma) && with_.warps % 4 == 0; }
  int groups() const { return with_.warps / 4; }
  static constexpr int first_turn = 2;  // a named barrier for each
  Scalar group() { return index(k_.thread()) / 128; }
  void await_turn() { k_.barrier(k_.convert(group() + first_turn, u32), 256); }
  void pass_turn(const Scalar& to) { k_.arrive(k_.convert(index(to) + first_turn, u32), 256); }

  void mask(Accumulator& s, const Scalar& t) {
    Scalar at_an_end = (t + 1) * n_ > sure_;
    if (window_) at_an_end = at_an_end | (t * n_ < first_seen(minimum(last_row(), queries_ - 1)));
    k_.when(at_an_end, [&] {
      s = map(s, [&](Scalar x, ElementPlace at) {
        const Scalar key = t * n_ + at.col, query = first_row() + at.row;
        Scalar sees = key < seen(query);
        if (window_) sees = sees & (key >= first_seen(query));
        return select(sees, x, masked_);
      });
    });
  }

  // The product of the last step.
  void finish(Rows& rows, const Scalar& stage) {
    if (windows_)
      k_.when(steps_ * n_ > keys_, [&] { clear(sV_[stage], keys_ - (steps_ - 1) * n_, n_); });
    pv_.add(rows.o, rows.weights, sV_[stage]);
  }

  void store(Rows& rows) {
    RowValues all = rows.sum, lse;
    if (lazy_) all = across_lanes(all, plus);
    // Where 8 / scale is infinite, no maximum moves, in lean_: any will do.
    if (lazy_ && lean_)
      rows.top = map(rows.top, all, [&](const Scalar& top, const Scalar& sum) {
        return select((top == masked_) & (sum != 0), 0, top);
      });
    if (sinks_) {
      const Scalar sink = k_.read(*sinks_, 0, head_) * k_.constant(f32, std::numbers::log2e);
      const Sunk sunk(k_, rows.top, all, scale_, sink);
      rows.o.update([&](const WarpTile& part) { return map_rows(part, sunk.part, times); });
      all = sunk.sum, lse = sunk.lse;
    }
    rows.o.each_part([&, first = true](const WarpTile& part) mutable {
      const WarpTile out = map_rows(part, all, share_of);
      if (std::exchange(first, false)) {
        if (!sinks_) lse = log_sums(k_, rows.top, all, scale_);
        write_rows(k_, with_.packed ? LSE_.matrix(head_) : LSE_, first_query_, end_row(),
                   first_row(), out, lse);
      }
      if (apart_) k_.store(query_tile(O_), convert(out, with_.type));
      else k_.store(sQ_[0], convert(out, with_.type));
    });
    if (apart_) return;
    k_.barrier();
    k_.copy(sQ_[0], query_tile(O_));
  }

  Builder& k_;
  const Attention with_;
  const int d_, m_, n_;
  // Where each row has all keys, turns and an output of its own gain nothing on an H100, but where
  // weights are computed lazily: see weigh_lazily().
  const bool lazy_;
  const bool persistent_, from_end_;
  const bool lean_;  // what maxima decide is computed in each step, not kept: registers are scarce
  const bool in_turns_, apart_, windows_;
  Scalar queries_, keys_, heads_, kv_heads_, all_queries_, all_keys_, scale_, minus_scale_, masked_;
  Scalar there_, first_query_ = 0, first_key_ = 0, blocks_;
  std::optional<Scalar> window_;
  std::optional<Capped> capped_;
  std::optional<Global> sinks_;
  Global Q_, K_, V_, O_, LSE_;
  TiledMma qk_, pv_;
  Ring sQ_, sK_, sV_;
  Scalar all_blocks_;                         // of a batch
  std::optional<ScalarVariable> queries_at_;  // the stage of sQ_
  // Of the tile of queries.
  Scalar head_, block_, sure_, steps_, first_step_ = 0;
};

}  // namespace

static Kernel described_attention(const Attention& options) {
  const KernelOptions blocks{.block = Forward::tile_qk(options).threads(),
                             .producers = options.producers,
                             .min_blocks = options.blocks_per_multiprocessor};
  return kernel("attention", blocks, [=](Builder& k) {
    if (is_possible(k, options)) Forward(k, options).describe();
  });
}

Kernel attention(const Attention& options) {
  return described_attention(options).keyed(key_of(options));
}

}  // namespace tartan::TARTAN_ABI::kernels
