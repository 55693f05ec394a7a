// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/kernels/decode.h"

#include <algorithm>
#include <limits>
#include <numbers>

#include "dsl/kernels/decode_shape.h"
#include "dsl/kernels/keys.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/warp.h"

namespace tartan::inline TARTAN_ABI::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Scalar times(const Scalar& x, const Scalar& y) { return x * y; }
Scalar plus(const Scalar& x, const Scalar& y) { return x + y; }

// The body of the kernel, in parts.
class Decoding {
 public:
  Decoding(Builder& k, const Decode& options)
      : k_(k), with_(options), shape_(decode_shape(options, k.target())) {}

  void describe() {
    declare();
    const MmaKind kind = k_.best_mma(with_.type, with_.type, f32);
    if (kind.shape.shape.m == 0) return;  // best_mma() has reported it
    const int d = with_.head_dim, m = shape_.tile_m, n = shape_.keys;
    const Tile qk{
        .m = m, .n = n, .k = d, .warps_m = shape_.warps_m, .warps_n = 1, .products = shape_.groups};
    const Tile pv{
        .m = m, .n = d, .k = n, .warps_m = shape_.warps_m, .warps_n = 1, .products = shape_.groups};
    // The layouts of a whole step.
    Tile step_qk = qk, step_pv = pv;
    step_qk.n = with_.keys_per_step, step_pv.k = with_.keys_per_step;
    mma_qk_ = k_.tiled_mma(kind, qk), mma_pv_ = k_.tiled_mma(kind, pv);
    const auto ring_k = k_.tiled_mma(kind, step_qk).shared_b(with_.stages, Major::col),
               ring_v = k_.tiled_mma(kind, step_pv).shared_b(with_.stages, Major::row);
    sQ_ = k_.shared("sQ", with_.type, mma_qk_.shared_a(1, Major::row));
    sK_ = k_.shared("sK", with_.type, ring_k), sV_ = k_.shared("sV", with_.type, ring_v);
    if (shape_.groups > 1) {
      sO_ = k_.shared("sO", f32, row_major(shape_.groups * with_.rows(), d, d + 8));
      sTop_ = k_.shared("sTop", f32, row_major(shape_.groups, m));
      sSum_ = k_.shared("sSum", f32, row_major(shape_.groups, m));
    }
    sTicket_ = k_.shared("sTicket", u32, row_major(1, 1));
    find_share();
    // Producers run what steers the pipelines, but not what only consumers' values decide.
    const Scalar consumes = k_.thread() < shape_.threads();
    consumers_ = [=, this](const std::function<void()>& body) { k_.when(consumes, body); };
    k_.roles([&] { each_unit(); });
  }

 private:
  void declare() {
    const int d = with_.head_dim;
    batch_ = k_.param("batch", s32), kv_heads_ = k_.param("kv_heads", s32);
    most_pages_ = k_.param("most_pages", s32);
    scale_ = k_.param("scale", f32) * k_.constant(f32, std::numbers::log2e);  // for exp2
    const Scalar rows = batch_ * with_.queries * kv_heads_ * with_.group;
    Q_ = k_.global("Q", with_.type, row_major(rows, d));
    K_ = k_.global("K", with_.type, row_major(with_.page, d));
    V_ = k_.global("V", with_.type, row_major(with_.page, d));
    table_ = k_.global("table", s32, row_major(batch_, most_pages_));
    lengths_ = k_.global("lengths", s32, row_major(1, batch_));
    O_ = k_.global("O", with_.type, row_major(rows, d));
    P_ = k_.global("P", f32, row_major(with_.rows(), d));
    L_ = k_.global("L", f32, row_major(with_.rows(), 2));
    counters_ = k_.global("counters", u32, row_major(batch_, kv_heads_));
    masked_ = k_.constant(f32, -infinity), zero_ = k_.constant(f32, 0);
    block_ = k_.convert(k_.block_x(), s32), blocks_ = k_.convert(k_.blocks_x(), s32);
  }

  Scalar steps_of(const Scalar& length) const { return ceil_div(length, with_.keys_per_step); }
  // Units of work: steps, and one for an empty sequence, whose rows are zeros.
  Scalar units_of(const Scalar& length) const { return maximum(steps_of(length), 1); }

  Scalar warp_sum(Scalar x) const {
    for (int by = 1; by < 32; by *= 2) x = x + shuffle_xor(x, by);
    return x;
  }

  // This block's share of all units, and the sequence, head and step in which it begins. Units are
  // numbered by sequence, then head, then step. Each lane counts those of some sequences.
  void find_share() {
    constexpr int of_lane = 4, together = 32 * of_lane;
    const Scalar lane = k_.convert(k_.lane(), s32), none = k_.constant(s32, 0);
    const auto units = [&](const Scalar& first) {
      std::vector<Scalar> out;
      for (int i = 0; i < of_lane; ++i) {
        const Scalar sequence = first + lane * of_lane + i, there = sequence < batch_;
        out.push_back(select(there, units_of(k_.read_if(there, lengths_, 0, sequence)), 0));
      }
      return out;
    };
    auto total = k_.variable(none), before = k_.variable(none), sequence = k_.variable(none);
    k_.loop(0, batch_, together, [&](Scalar first) {
      Scalar own = none;
      for (const Scalar& each : units(first)) own = own + each;
      total += warp_sum(own);
    });
    all_ = total * kv_heads_;
    share_ = StreamShare::of(all_, blocks_, block_);
    auto so_far = k_.variable(none);
    k_.loop(0, batch_, together, [&](Scalar first) {
      const std::vector<Scalar> own = units(first);
      Scalar all = none;
      for (const Scalar& each : own) all = all + each;
      Scalar sum = all;
      for (int by = 1; by < 32; by *= 2) sum = sum + select(lane >= by, shuffle_up(sum, by), 0);
      Scalar end = so_far + sum - all, units_before = none, sequences_before = none;
      for (int i = 0; i < of_lane; ++i) {
        end = end + own[i];
        const Scalar is_before =
            (first + lane * of_lane + i < batch_) & (end * kv_heads_ <= share_.begin);
        units_before = units_before + select(is_before, own[i], 0);
        sequences_before = sequences_before + select(is_before, 1, 0);
      }
      before += warp_sum(units_before);
      sequence += warp_sum(sequences_before);
      so_far += shuffle(sum, 31);
    });
    first_sequence_ = sequence, first_before_ = before;
  }

  // Rows of Q and O that row `i` of the tile is; -1: none.
  Scalar row_of(const Scalar& i, const Scalar& sequence, const Scalar& head) const {
    const Scalar row = k_.convert(i, s32), token = row / with_.group;
    return select(
        row < with_.rows(),
        ((sequence * with_.queries + token) * kv_heads_ + head) * with_.group + row % with_.group,
        -1);
  }

  void each_unit() {
    auto at = k_.variable(share_.begin), sequence = k_.variable(first_sequence_);
    // No unit at all: nothing is read.
    const Scalar any = share_.begin < share_.end;
    const Scalar of_first = units_of(k_.read_if(any, lengths_, 0, first_sequence_));
    const Scalar within = share_.begin - first_before_ * kv_heads_;
    auto head = k_.variable(within / of_first), step = k_.variable(within % of_first);
    k_.loop_while([&] { return Scalar(at) < share_.end; },
                  [&] {
                    Part part;
                    part.sequence = sequence, part.head = head, part.first = step;
                    part.length = k_.read(lengths_, 0, part.sequence);
                    part.units = units_of(part.length);
                    part.unit_begin = Scalar(at) - part.first;
                    part.count = minimum(part.units - part.first, share_.end - Scalar(at));
                    fold(part);
                    at += part.count;
                    step = 0;
                    head += 1;
                    k_.when(Scalar(head) == kv_heads_, [&] {
                      head = 0;
                      sequence += 1;
                    });
                  });
  }

  // A part of the keys of one sequence and head.
  struct Part {
    Scalar sequence, head, length;
    Scalar first, count, units;  // steps; of the sequence
    Scalar unit_begin;           // number of its first unit
  };

  int pages_of_step() const { return std::max(1, with_.keys_per_step / with_.page); }

  // Where page `i` of a step is, in matrices of K. Beyond the sequence it is the last page's.
  Scalar matrix_of(const Part& part, const Scalar& step, int i) const {
    const Scalar last = maximum(ceil_div(part.length, with_.page) - 1, 0);
    const Scalar at = minimum(step * with_.keys_per_step / with_.page + i, last);
    const Scalar page = k_.read_if(part.length > 0, table_, part.sequence, at);
    return page * kv_heads_ + part.head;
  }

  // Copies a step, whose pages are known, and reads which those of the next one are.
  void fill(const Part& part, std::vector<ScalarVariable>& pages, const Scalar& t,
            const Scalar& stage) {
    const int d = with_.head_dim, n = with_.keys_per_step, page = with_.page;
    const Scalar step = part.first + k_.convert(t, s32);
    const int rows = std::min(n, page);
    const Scalar inside = n < page ? step % (page / n) : Scalar(0);
    for (int i = 0; i < pages_of_step(); ++i) {
      const Scalar number = pages[i];
      k_.copy(K_.matrix(number).transposed().tile(d, rows, 0, inside),
              sK_[stage].tile(d, rows, 0, i));
      k_.copy(V_.matrix(number).tile(rows, d, inside, 0), sV_[stage].tile(rows, d, i, 0));
    }
    for (int i = 0; i < pages_of_step(); ++i) pages[i] = matrix_of(part, step + 1, i);
  }

  void fold(const Part& part) {
    const int d = with_.head_dim, n = with_.keys_per_step, keys = shape_.keys;
    std::vector<ScalarVariable> pages;
    for (int i = 0; i < pages_of_step(); ++i)
      pages.push_back(k_.variable(matrix_of(part, part.first, i)));
    k_.barrier();
    k_.copy_rows(
        Q_, [&](Scalar i) { return row_of(i, part.sequence, part.head); }, sQ_[0]);
    k_.barrier();
    const bool keeps_q = d <= 128;  // in registers, beside the accumulators
    const WarpTile q = keeps_q ? mma_qk_.load_a(sQ_[0]) : WarpTile();
    auto top = mma_qk_.row_variable(masked_), sum = mma_qk_.row_variable(zero_);
    auto o = mma_pv_.accumulator();
    const Scalar group = mma_qk_.product();
    // Keys that the first query token sees.
    const Scalar sure = part.length - (with_.queries - 1);
    const auto use = [&](const Scalar& t, const Scalar& stage) {
      const bool whole = shape_.groups == 1;
      const Shared sK = whole ? sK_[stage] : sK_[stage].tile(d, keys, 0, group),
                   sV = whole ? sV_[stage] : sV_[stage].tile(keys, d, group, 0);
      const Scalar first = (part.first + k_.convert(t, s32)) * n;
      auto s = mma_qk_.accumulator();
      s = keeps_q ? mma_qk_(s, q, sK) : mma_qk_(s, sQ_[0], sK);
      k_.when(first + n > sure, [&] {
        const Scalar own = first + k_.convert(group, s32) * keys;
        s = map(s, [&](Scalar x, ElementPlace at) {
          const Scalar seen =
              with_.queries == 1 ? sure : sure + k_.convert(at.row, s32) / with_.group;
          return select(own + k_.convert(at.col, s32) < seen, x, masked_);
        });
        k_.when(first + n > part.length, [&] { clear(sV_[stage], part.length - first); });
      });
      const RowValues before = top, now = map(before, row_maximum(s), maximum);
      // Infinite before any key is seen: the difference of two infinities would be NaN.
      const RowValues base = map(now, [&](Scalar b) { return select(b == masked_, 0, b); });
      const RowValues shrink =
          map(before, base, [&](Scalar a, Scalar b) { return exp2((a - b) * scale_); });
      const WarpTile p =
          map_rows(s, base, [&](Scalar x, Scalar b) { return exp2((x - b) * scale_); });
      sum = map(map(sum, shrink, times), row_sum(p), plus);
      o = mma_pv_(map_rows(o, shrink, times),
                  operand_a(convert(p, with_.type), mma_pv_.kind().shape), sV);
      top = now;
    };
    const Scalar steps = minimum(part.count, steps_of(part.length) - part.first);
    k_.pipeline(
        with_.stages, steps, [&](Scalar t, Scalar stage) { fill(part, pages, t, stage); }, use);
    consumers_([&] {
      if (shape_.groups > 1) join(part, top, sum, o);
      else write(part, top, sum, o);
    });
  }

  // Zeros in the rows of V beyond the sequence, where anything may be. TMA wrote the stage, wgmma
  // may read it, and TMA writes it again: the asynchronous proxy must see the zeros.
  void clear(const Shared& values, const Scalar& from) {
    const int vectors = with_.head_dim / 8, all = with_.keys_per_step * vectors;
    k_.loop(from * vectors + k_.convert(k_.thread(), s32), all, shape_.threads(), [&](Scalar i) {
      const Scalar at = k_.address(values, i / vectors, i % vectors * 8);
      k_.ptx("st.shared.v4.b32 [%0], {%1, %1, %1, %1};", {}, {at, k_.constant(u32, 0)});
    });
    if (with_.producers > 0 && k_.has("fence.proxy.async.shared::cta"))
      k_.instruction("fence.proxy.async.shared::cta", {});
    k_.barrier();
  }

  // Vectors of four columns of the rows that exist, divided among the threads: f(row, column).
  void each_vector(const std::function<void(Scalar, Scalar)>& f) {
    const int of_row = with_.head_dim / 4;
    k_.loop(k_.thread(), with_.rows() * of_row, shape_.threads(),
            [&](Scalar i) { f(i / of_row, i % of_row * 4); });
  }

  // The result of groups of warps that had a part of each step's keys: summed in shared memory, in
  // the order of the groups.
  void join(const Part& part, const RowVariable& top, const RowVariable& sum,
            const Accumulator& o) {
    const Scalar group = mma_qk_.product(), leads = k_.lane() % 4 == 0;
    const RowValues rows = row_places(o), own = top;
    for (std::size_t i = 0; i < rows.size(); ++i) k_.write_if(leads, sTop_, group, rows[i], own[i]);
    k_.barrier();
    RowValues most;
    for (std::size_t i = 0; i < rows.size(); ++i) most.push_back(top_of(rows[i]));
    const RowValues shrink = map(own, most, [&](Scalar a, Scalar b) { return weight(a, b); });
    const RowValues sums = map(sum, shrink, times);
    for (std::size_t i = 0; i < rows.size(); ++i)
      k_.write_if(leads, sSum_, group, rows[i], sums[i]);
    const Scalar first = group * with_.rows();
    for_each(map_rows(o, shrink, times), [&](Scalar x, ElementPlace at) {
      k_.write_if(at.row < with_.rows(), sO_, first + at.row, at.col, x);
    });
    k_.barrier();
    const auto joined = [&](const Scalar& row, const Scalar& col) {
      std::vector<Scalar> out = k_.read_vector(sO_, row, col, 4);
      for (int g = 1; g < shape_.groups; ++g) {
        const auto more = k_.read_vector(sO_, row + g * with_.rows(), col, 4);
        for (int e = 0; e < 4; ++e) out[e] = out[e] + more[e];
      }
      return out;
    };
    const auto sum_of = [&](const Scalar& row) {
      Scalar out = k_.read(sSum_, 0, row);
      for (int g = 1; g < shape_.groups; ++g) out = out + k_.read(sSum_, g, row);
      return out;
    };
    k_.when(
        part.count == part.units,
        [&] {
          each_vector([&](Scalar row, Scalar col) {
            write_result(part, row, col, joined(row, col), sum_of(row));
          });
        },
        [&] {
          const Global P = P_.matrix(slot_of(part)), L = L_.matrix(slot_of(part));
          each_vector([&](Scalar row, Scalar col) {
            k_.write_vector(P, row, col, joined(row, col));
            k_.when(col == 0, [&] {
              k_.write(L, row, 0, top_of(row));
              k_.write(L, row, 1, sum_of(row));
            });
          });
          combine(part);
        });
  }

  // The largest of a row's maxima in the groups of warps.
  Scalar top_of(const Scalar& row) {
    Scalar out = k_.read(sTop_, 0, row);
    for (int g = 1; g < shape_.groups; ++g) out = maximum(out, k_.read(sTop_, g, row));
    return out;
  }
  // What a sum relative to the maximum `top` counts relative to `most`, which is infinite before
  // any key is seen.
  Scalar weight(const Scalar& top, const Scalar& most) const {
    return exp2((top - select(most == masked_, 0, most)) * scale_);
  }

  // Where this block's part goes: its first unit may be in the middle of a sequence.
  Scalar slot_of(const Part& part) const {
    return block_ * 2 + select(part.unit_begin > share_.begin, 1, 0);
  }

  void write_result(const Part& part, const Scalar& row, const Scalar& col,
                    const std::vector<Scalar>& values, const Scalar& sum) {
    std::vector<Scalar> out;
    for (const Scalar& each : values) out.push_back(k_.convert(share(each, sum), with_.type));
    k_.write_vector(O_, row_of(row, part.sequence, part.head), col, out);
  }

  // The result of warps that each have all keys of their rows.
  void write(const Part& part, const RowVariable& top, const RowVariable& sum,
             const Accumulator& o) {
    k_.when(
        part.count == part.units,
        [&] {
          const WarpTile out = map_rows(o, sum, share);
          for_each(out, [&](Scalar x, ElementPlace at) {
            k_.write_if(at.row < with_.rows(), O_, row_of(at.row, part.sequence, part.head), at.col,
                        k_.convert(x, with_.type));
          });
        },
        [&] {
          const Global P = P_.matrix(slot_of(part)), L = L_.matrix(slot_of(part));
          for_each(o, [&](Scalar x, ElementPlace at) {
            k_.write_if(at.row < with_.rows(), P, at.row, at.col, x);
          });
          const RowValues rows = row_places(o), most = top, all = sum;
          for (std::size_t i = 0; i < rows.size(); ++i) {
            const Scalar leads = (k_.lane() % 4 == 0) & (rows[i] < with_.rows());
            k_.write_if(leads, L, rows[i], 0, most[i]);
            k_.write_if(leads, L, rows[i], 1, all[i]);
          }
          combine(part);
        });
  }

  // A row that sees no key has the sum 0. A NaN sum is not 0.
  static Scalar share(const Scalar& x, const Scalar& sum) {
    return select(sum == 0, 0, x * reciprocal(sum));
  }

  // The last block that has a part of the sequence's head adds the parts.
  void combine(const Part& part) {
    const Scalar begin = owner(part.unit_begin), end = owner(part.unit_begin + part.units - 1) + 1;
    k_.barrier();
    k_.when(k_.thread() == 0, [&] {
      k_.fence();
      k_.write(sTicket_, 0, 0,
               k_.atomic(AtomicOp::inc, counters_, part.sequence, part.head,
                         k_.convert(end - begin - 1, u32), {.order = MemoryOrder::acq_rel}));
      k_.fence();
    });
    k_.barrier();
    k_.when(k_.convert(k_.read(sTicket_, 0, 0), s32) == end - begin - 1,
            [&] { add_parts(part, begin, end); });
  }

  Scalar owner(const Scalar& unit) const { return StreamShare::owner(all_, blocks_, unit); }

  // Each thread has some vectors of four columns; it reads those of several parts at once.
  void add_parts(const Part& part, const Scalar& begin, const Scalar& end) {
    const int d = with_.head_dim, of_row = d / 4, all = with_.rows() * of_row;
    const int threads = shape_.threads();
    const int vectors = std::min(4, (all + threads - 1) / threads), parts = 16 / vectors;
    // Only the first part may be in its block's second slot.
    const Scalar first_slot =
        2 * begin + select(part.unit_begin > StreamShare::of(all_, blocks_, begin).begin, 1, 0);
    const auto slot_of = [&](const Scalar& i) { return select(i == begin, first_slot, 2 * i); };
    k_.loop(k_.convert(k_.thread(), s32), all, threads * vectors, [&](Scalar first) {
      std::vector<Scalar> rows, cols, there;
      std::vector<ScalarVariable> top, sum, out;
      for (int v = 0; v < vectors; ++v) {
        const Scalar number = first + v * threads;
        there.push_back(number < all);
        rows.push_back(minimum(number / of_row, with_.rows() - 1));
        cols.push_back(number % of_row * 4);
        top.push_back(k_.variable(masked_)), sum.push_back(k_.variable(zero_));
        for (int e = 0; e < 4; ++e) out.push_back(k_.variable(zero_));
      }
      k_.loop(begin, end, parts, [&](Scalar from) {
        for (int v = 0; v < vectors; ++v) {
          std::vector<Scalar> tops, sums;
          std::vector<std::vector<Scalar>> values;
          Scalar most = top[v];
          for (int i = 0; i < parts; ++i) {
            const Scalar exists = from + i < end, slot = slot_of(minimum(from + i, end - 1));
            const Global P = P_.matrix(slot), L = L_.matrix(slot);
            tops.push_back(select(exists, k_.read(L, rows[v], 0), masked_));
            sums.push_back(select(exists, k_.read(L, rows[v], 1), zero_));
            values.push_back(k_.read_vector(P, rows[v], cols[v], 4));
            most = maximum(most, tops.back());
          }
          const Scalar shrink = weight(top[v], most);
          Scalar all_sums = sum[v] * shrink;
          std::vector<Scalar> total;
          for (int e = 0; e < 4; ++e) total.push_back(out[4 * v + e] * shrink);
          for (int i = 0; i < parts; ++i) {
            const Scalar factor = weight(tops[i], most);
            all_sums = fma(sums[i], factor, all_sums);
            for (int e = 0; e < 4; ++e) total[e] = fma(values[i][e], factor, total[e]);
          }
          top[v] = most, sum[v] = all_sums;
          for (int e = 0; e < 4; ++e) out[4 * v + e] = total[e];
        }
      });
      for (int v = 0; v < vectors; ++v)
        k_.when(there[v], [&] {
          const std::vector<Scalar> row(out.begin() + 4 * v, out.begin() + 4 * v + 4);
          write_result(part, rows[v], cols[v], row, sum[v]);
        });
    });
  }

  Builder& k_;
  std::function<void(const std::function<void()>&)> consumers_;
  const Decode with_;
  const DecodeShape shape_;
  Scalar batch_, kv_heads_, most_pages_, scale_, masked_, zero_, block_, blocks_;
  Scalar all_, first_sequence_, first_before_;
  StreamShare share_;
  Global Q_, K_, V_, table_, lengths_, O_, P_, L_, counters_;
  TiledMma mma_qk_, mma_pv_;
  Ring sQ_, sK_, sV_;
  Shared sO_, sTop_, sSum_, sTicket_;
};

}  // namespace

Kernel decode(const Decode& options) {
  const auto settings = [=](const Target& target) {
    return KernelOptions{.block = std::clamp(decode_shape(options, target).threads(), 32, 1024),
                         .producers = options.producers,
                         .min_blocks = options.blocks_per_multiprocessor};
  };
  return kernel("decode", settings,
                [=](Builder& k) {
                  if (is_possible(k, options)) Decoding(k, options).describe();
                })
      .keyed(key_of(options));
}

}  // namespace tartan::inline TARTAN_ABI::kernels
