// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/attention_backward.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numbers>

#include "kernels/common/keys.h"
#include "tartan/dsl/math.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool has_wgmma(const AttentionBackward& with, const Target& target) {
  return with.producers > 0 && target.has(Feature::wgmma);
}

// Rows of a product to which each warp contributes 16.
int warp_rows(const AttentionBackward& with) { return 16 * with.warps; }

// dQ is computed as dQ^T = K^T * dS^T where the warps' rows are the elements of a head, else as
// dQ = dS * K.
bool is_turned(const AttentionBackward& with) {
  return with.head_dim % warp_rows(with) == 0 &&
         (with.head_dim == warp_rows(with) || with.queries_per_step != warp_rows(with));
}

Tile tile_of_queries(const AttentionBackward& with) {
  const int d = with.head_dim, m = with.queries_per_step, n = with.keys_per_block;
  return is_turned(with) ? Tile{.m = d, .n = m, .k = n, .warps_m = with.warps, .warps_n = 1}
                         : Tile{.m = m, .n = d, .k = n, .warps_m = with.warps, .warps_n = 1};
}

// The sums of a step's dQ are fragments, one after the other, as the warps have them: each is 128
// numbers, four of each lane.
int fragments(const AttentionBackward& with) { return with.queries_per_step * with.head_dim / 128; }

bool is_possible(Builder& k, const AttentionBackward& with) {
  const int m = with.queries_per_step, n = with.keys_per_block;
  bool good = k.require(with.head_dim == 64 || with.head_dim == 128,
                        fmt::format("head_dim = {}: expected 64 or 128; the nearest is {}",
                                    with.head_dim, with.head_dim <= 96 ? 64 : 128));
  good &= k.require(with.type == f16 || with.type == bf16,
                    fmt::format("type = {}: expected f16 or bf16 for the matrices and their "
                                "gradients",
                                name(with.type)));
  const bool some = k.require(with.warps >= 1 && with.warps <= 16 && with.stages >= 1 &&
                                  with.stages <= 16 && m >= 16 && m <= 256 && m % 16 == 0,
                              fmt::format("{} warps, {} stages, queries_per_step = {}: expected 1 "
                                          "to 16 of each, and a multiple of 16 up to 256",
                                          with.warps, with.stages, m));
  if (!good || !some) return false;
  const int rows = warp_rows(with);
  good &= k.require(n >= rows && n % rows == 0,
                    fmt::format("keys_per_block = {}: expected a multiple of {}, 16 keys for each "
                                "of {} warps",
                                n, rows, with.warps));
  const int of_queries = tile_of_queries(with).m;
  good &=
      k.require(has_wgmma(with, k.target()) ? of_queries == rows : of_queries % rows == 0,
                fmt::format("{} warps, queries_per_step = {}: expected {} warps{}, or {} queries",
                            with.warps, m, with.head_dim / 16,
                            has_wgmma(with, k.target()) ? "" : " or a divisor of that", rows));
  return good;
}

// The body of the second kernel.
class Backward {
 public:
  Backward(Builder& k, const AttentionBackward& with)
      : k_(k),
        with_(with),
        d_(with.head_dim),
        m_(with.queries_per_step),
        n_(with.keys_per_block),
        by_wgmma_(has_wgmma(with, k.target())) {}

  void describe() {
    declare();
    const MmaKind kind = k_.best_mma(with_.type, with_.type, f32);
    if (kind.shape.shape.m == 0) return;  // best_mma() has reported it
    const int warps = with_.warps;
    scores_ = k_.tiled_mma(kind, {.m = n_, .n = m_, .k = d_, .warps_m = warps, .warps_n = 1});
    keys_mma_ = k_.tiled_mma(kind, {.m = n_, .n = d_, .k = m_, .warps_m = warps, .warps_n = 1});
    rows_ = k_.tiled_mma(kind, tile_of_queries(with_));
    const RingLayout own{scores_.shared_a(1, Major::row).layout, 1},
        other{scores_.shared_b(1, Major::col).layout, with_.stages};
    sK_ = k_.shared("sK", with_.type, own), sV_ = k_.shared("sV", with_.type, own);
    sQ_ = k_.shared("sQ", with_.type, other), sdO_ = k_.shared("sdO", with_.type, other);
    const Layout slopes = is_turned(with_) ? rows_.shared_b(1, Major::col).layout
                                           : rows_.shared_a(1, Major::row).layout;
    sdS_ = k_.shared("sdS", with_.type, RingLayout{slopes, slope_stages()});
    sStats_ = k_.shared("sStats", f32, RingLayout{row_major(2, m_), with_.stages});
    take_block();
    k_.roles([&] { block(); });
  }

 private:
  // With two, a barrier separates writing from what the step before reads.
  int slope_stages() const { return with_.stages > 1 ? 2 : 1; }

  void declare() {
    queries_ = k_.param("queries", s32), count_ = k_.param("keys", s32);
    heads_ = k_.param("heads", s32), kv_heads_ = k_.param("kv_heads", s32);
    scale_ = k_.param("scale", f32);
    row_blocks_ = ceil_div(queries_, m_);
    Q_ = k_.global("Q", with_.type, row_major(queries_, d_));
    K_ = k_.global("K", with_.type, row_major(count_, d_));
    V_ = k_.global("V", with_.type, row_major(count_, d_));
    dO_ = k_.global("dO", with_.type, row_major(queries_, d_));
    stats_ = k_.global("stats", f32, row_major(2, m_));
    sums_ = k_.global("sums", f32, row_major(fragments(with_), 128));
    dK_ = k_.global("dK", with_.type, row_major(count_, d_));
    dV_ = k_.global("dV", with_.type, row_major(count_, d_));
    if (with_.deterministic)
      turns_ = k_.global("turns", u32, row_major(1, heads_ * row_blocks_ + 1));
  }

  // Which keys this block has.
  void take_block() {
    const auto index = [&](const Scalar& x) { return k_.convert(x, s32); };
    const Scalar blocks = maximum(ceil_div(count_, n_), 1);
    Scalar batch = index(k_.block_z()), number = index(k_.block_y()) * blocks + index(k_.block_x());
    if (with_.deterministic) {
      const Scalar all = blocks * kv_heads_, ticket = take_ticket(batch * all + number);
      batch = ticket / all, number = ticket % all;
    }
    const auto [head, block] = place_of(number, blocks);
    block_ = block;
    const Scalar matrix = batch * kv_heads_ + head;
    for (Global* each : {&K_, &V_, &dK_, &dV_}) *each = each->matrix(matrix);
    share_ = heads_ / kv_heads_;
    first_head_ = matrix * share_;
    // The first step that has a query that sees a key of the block.
    shift_ = count_ - queries_;
    first_ = with_.causal ? maximum(block_ * n_ - shift_, 0) / m_ : k_.constant(s32, 0);
  }

  // Blocks that wait for others have numbers in the order in which they start: those that they wait
  // for run. Without queries nobody waits, and the first kernel has not reset the count.
  Scalar take_ticket(const Scalar& own) {
    const Shared ticket = k_.shared("sTicket", u32, row_major(1, 1));
    k_.when(k_.thread() == 0, [&] {
      k_.write(ticket, 0, 0, k_.atomic(AtomicOp::add, turns_, 0, 0, k_.constant(u32, 1)));
    });
    k_.barrier();
    return select(queries_ > 0, k_.convert(k_.read(ticket, 0, 0), s32), own);
  }

  // When causal, the first keys have the most work. They come first, those of as many heads as the
  // L2 cache holds the queries of.
  std::pair<Scalar, Scalar> place_of(const Scalar& number, const Scalar& blocks) {
    if (!with_.causal) return {number / blocks, number % blocks};
    constexpr int l2_kilobytes = 32 * 1024, bytes = 2 + 2 + 4;  // of Q, dO and the sums
    const Scalar of_head = maximum(heads_ / kv_heads_ * row_blocks_, 1) * (bytes * m_ * d_ / 1024);
    const Scalar most = minimum(maximum(l2_kilobytes / of_head, 1), kv_heads_);
    const Scalar first = number / (most * blocks) * most, within = number - first * blocks,
                 together = minimum(most, kv_heads_ - first);
    return {first + within % together, within / together};
  }

  // The head and step that a role has come to.
  struct Place {
    ScalarVariable head, step;
  };
  Place begin() { return {k_.variable(first_head_), k_.variable(first_)}; }
  void advance(Place& at) {
    const Scalar next = Scalar(at.step) + 1, last = next >= row_blocks_;
    at.head = select(last, Scalar(at.head) + 1, Scalar(at.head));
    at.step = select(last, first_, next);
  }

  void fill(Place& at, const Scalar& stage) {
    const Scalar head = at.head, step = at.step;
    k_.copy(Q_.matrix(head).transposed().tile({0, step}, {d_, m_}), sQ_[stage]);
    k_.copy(stats_.matrix(head * row_blocks_ + step), sStats_[stage]);
    k_.copy(dO_.matrix(head).transposed().tile({0, step}, {d_, m_}), sdO_[stage]);
    advance(at);
  }

  void load_keys() {
    const auto copy = [&](const Scalar& stage) {
      k_.copy(K_.tile({block_, 0}, {n_, d_}), sK_[stage]);
      k_.copy(V_.tile({block_, 0}, {n_, d_}), sV_[stage]);
    };
    if (with_.producers > 0)
      return k_.pipeline(
          {.stages = 1}, 1, [&](Scalar, Scalar stage) { copy(stage); }, [](Scalar, Scalar) {});
    copy(0);
    k_.barrier();
  }

  void block() {
    load_keys();
    auto dK = keys_mma_.accumulator(), dV = keys_mma_.accumulator();
    Place filled = begin(), used = begin();
    auto passed = k_.variable(k_.constant(s32, -1));
    k_.pipeline(
        {.stages = with_.stages}, maximum(row_blocks_ - first_, 0) * share_,
        [&](Scalar, Scalar stage) { fill(filled, stage); },
        [&](Scalar, Scalar stage) {
          step(used, stage, dK, dV, passed);
          advance(used);
        });
    if (with_.deterministic) {
      meet_threads();
      pass_turn(passed);
    }
    const Scalar scale = scale_;
    const WarpTile scaled = map(dK, [&](Scalar x) { return x * scale; });
    k_.store(dK_.tile({block_, 0}, {n_, d_}), convert(scaled, with_.type));
    k_.store(dV_.tile({block_, 0}, {n_, d_}), convert(dV, with_.type));
  }

  // Scores and their gradients have keys as rows, so that they go from accumulators to operand A of
  // the products with dO and Q. Where wgmma multiplies, dV runs beside the barrier, and dK while
  // dQ is added.
  void step(const Place& at, const Scalar& stage, Accumulator& dK, Accumulator& dV,
            ScalarVariable& passed) {
    const Scalar step = at.step, slot = slope_stages() > 1 ? stage : Scalar(0);
    const Scalar matrix = Scalar(at.head) * row_blocks_ + step;  // of the sums
    const MmaShape shape = keys_mma_.kind().shape;
    auto s = scores_.accumulator(), dP = scores_.accumulator();
    scores_.add(s, sK_[0], sQ_[stage]);
    scores_.add(dP, sV_[0], sdO_[stage]);
    mask(s, step);
    const Scalar log2_scale = scale_ * k_.constant(f32, std::numbers::log2e);
    const WarpTile p = with_stats(s, sStats_[stage], 0, [&](std::size_t, Scalar x, Scalar less) {
      return exp2(fma(x, log2_scale, less));
    });
    std::vector<Scalar> weights;
    for (const Fragment& each : p.fragments())
      for (const Scalar& x : k_.elements(each)) weights.push_back(x);
    const WarpTile operand = operand_a(convert(p, with_.type), shape);
    const WarpTile dS = convert(
        with_stats(dP, sStats_[stage], 1,
                   [&](std::size_t i, Scalar x, Scalar less) { return weights[i] * (x - less); }),
        with_.type);
    // Without producers, one stage ends with a barrier.
    if (slope_stages() == 1 && with_.producers > 0) meet();
    k_.store(is_turned(with_) ? sdS_[slot] : sdS_[slot].transposed(), dS);
    keys_mma_.add(dV, operand, sdO_[stage].transposed());
    if (with_.deterministic) await_turn(matrix);
    meet();
    if (with_.deterministic) {
      pass_turn(passed);
      passed = matrix;
    }
    auto dQ = rows_.accumulator();
    if (is_turned(with_)) rows_.add(dQ, sK_[0].transposed(), sdS_[slot]);
    else rows_.add(dQ, sdS_[slot], sK_[0]);
    keys_mma_.add(dK, operand_a(dS, shape), sQ_[stage].transposed());
    add(dQ, matrix);
  }

  // Hides keys beyond the last one, and those that a query does not see.
  void mask(Accumulator& s, const Scalar& step) {
    const Scalar first_key = block_ * n_, first_query = step * m_;
    Scalar some = first_key + n_ > count_;
    if (with_.causal) some = some | (first_query + shift_ < first_key + (n_ - 1));
    const Scalar masked = k_.constant(f32, -infinity);
    k_.when(some, [&] {
      s = map(s, [&](Scalar x, ElementPlace at) {
        const Scalar key = first_key + k_.convert(at.row, s32);
        Scalar seen = key < count_;
        if (with_.causal) seen = seen & (key <= first_query + k_.convert(at.col, s32) + shift_);
        return select(seen, x, masked);
      });
    });
  }

  // f(number, element, its column's value in a row of `stats`), fragment by fragment: values are
  // read where they are used, since registers are scarce.
  WarpTile with_stats(const WarpTile& tile, const Shared& stats, int row,
                      const std::function<Scalar(std::size_t, Scalar, Scalar)>& f) {
    const ColumnValues cols = col_places(tile);
    std::vector<Fragment> out;
    std::size_t number = 0;
    for (int i = 0; i < tile.down(); ++i)
      for (int j = 0; j < tile.across(); ++j) {
        const std::vector<Scalar> values =
            k_.read_vector(stats, row, cols[static_cast<std::size_t>(2 * j)], 2);
        std::vector<Scalar> x = k_.elements(tile.fragment(i, j));
        for (std::size_t e = 0; e < x.size(); ++e) x[e] = f(number++, x[e], values[e % 2]);
        out.push_back(k_.pack(tile.fragment(i, j).kind(), x));
      }
    return WarpTile(std::move(out), tile.across(), tile.place());
  }

  // A barrier of the warps that compute. Unlike Builder::barrier(), it leaves products in flight:
  // none of them reads what is written next.
  void meet_threads() {
    if (by_wgmma_) k_.ptx(fmt::format("bar.sync 2, {};", 32 * with_.warps), {}, {});
    else k_.barrier();
  }
  void meet() {
    if (by_wgmma_) k_.instruction("fence.proxy.async.shared::cta", {});
    meet_threads();
  }

  // Adds a warp's part of a step's dQ to the sums in global memory.
  void add(const WarpTile& dQ, const Scalar& matrix) {
    const Global sums = sums_.matrix(matrix);
    const bool by_vectors = k_.has("red.relaxed.gpu.global.add.v4.f32");
    const int each = static_cast<int>(dQ.fragments().size());
    for (int i = 0; i < each; ++i) {
      const std::vector<Scalar> x = k_.registers(dQ.fragments()[static_cast<std::size_t>(i)]);
      const Scalar row = k_.convert(k_.warp(), s32) * each + i,
                   col = k_.convert(k_.lane(), s32) * 4;
      if (by_vectors)
        k_.ptx("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};", {},
               {k_.address(sums, row, col), x[0], x[1], x[2], x[3]});
      else
        for (int e = 0; e < 4; ++e)
          k_.ptx("red.relaxed.gpu.global.add.f32 [%0], %1;", {},
                 {k_.address(sums, row, col + e), x[static_cast<std::size_t>(e)]});
    }
  }

  // Blocks add to a step's sums in the order of their keys. One thread waits in front of a barrier
  // of all, and passes the turn on behind the next one, in the step that follows.
  void await_turn(const Scalar& matrix) {
    const Scalar turn = k_.convert(block_, u32);
    k_.when(k_.thread() == 0, [&] {
      k_.loop_while(
          [&] {
            return k_.ptx("ld.acquire.gpu.global.u32 %0, [%1];", {u32},
                          {k_.address(turns_, 0, matrix + 1)})[0] != turn;
          },
          [] {});
    });
  }
  void pass_turn(const Scalar& matrix) {
    k_.when((k_.thread() == 0) & (matrix >= 0), [&] {
      k_.fence();
      k_.ptx("red.release.gpu.global.add.u32 [%0], 1;", {}, {k_.address(turns_, 0, matrix + 1)});
    });
  }

  Builder& k_;
  const AttentionBackward with_;
  const int d_, m_, n_;
  const bool by_wgmma_;
  Scalar queries_, count_, heads_, kv_heads_, scale_, row_blocks_, share_, first_head_, block_,
      shift_, first_;
  Global Q_, K_, V_, dO_, stats_, sums_, turns_, dK_, dV_;
  TiledMma scores_, keys_mma_, rows_;
  Ring sK_, sV_, sQ_, sdO_, sdS_, sStats_;
};

constexpr int row_threads = 256;

// The body of the first kernel. A row's statistics are those of kernels::attention() as the second
// one wants them: -LSE / ln(2), or minus infinity for rows that do not exist, whose weights are
// then zero; and D.
void describe_rows(Builder& k, const AttentionBackward& with) {
  const int d = with.head_dim, m = with.queries_per_step;
  auto queries = k.param("queries", s32), heads = k.param("heads", s32);
  const Scalar blocks = ceil_div(queries, m), block = k.convert(k.block_x(), s32),
               head = k.convert(k.block_z(), s32) * heads + k.convert(k.block_y(), s32),
               matrix = head * blocks + block, thread = k.convert(k.thread(), s32);
  const auto O = k.global("O", with.type, row_major(queries, d)).matrix(head),
             dO = k.global("dO", with.type, row_major(queries, d)).matrix(head),
             LSE = k.global("LSE", f32, row_major(1, queries)).matrix(head),
             stats = k.global("stats", f32, row_major(2, m)).matrix(matrix),
             sums = k.global("sums", f32, row_major(fragments(with), 128)).matrix(matrix);
  const Scalar zero = k.constant(f32, 0), none = k.constant(f32, -infinity);
  k.loop(thread, fragments(with) * 32, row_threads,
         [&](Scalar i) { k.write_vector(sums, i / 32, i % 32 * 4, std::vector<Scalar>(4, zero)); });
  if (with.deterministic) {
    auto turns = k.global("turns", u32, row_major(1, heads * blocks + 1));
    k.when(thread == 0, [&] {
      k.write(turns, 0, matrix + 1, k.constant(u32, 0));
      k.when(matrix == 0, [&] { k.write(turns, 0, 0, k.constant(u32, 0)); });
    });
  }
  const int vectors = d / 8;  // of a row; a lane has one
  k.loop(thread / vectors, m, row_threads / vectors, [&](Scalar i) {
    const Scalar row = block * m + i, there = row < queries, inside = minimum(row, queries - 1);
    const Scalar col = thread % vectors * 8;
    const std::vector<Scalar> x = k.read_vector(O, inside, col, 8),
                              y = k.read_vector(dO, inside, col, 8);
    Scalar sum = zero;
    for (std::size_t e = 0; e < x.size(); ++e)
      sum = fma(k.convert(x[e], f32), k.convert(y[e], f32), sum);
    for (int by = 1; by < vectors; by *= 2) sum = sum + shuffle_xor(sum, by);
    k.when(thread % vectors == 0, [&] {
      const Scalar lse = k.read(LSE, 0, inside);
      const Scalar less = select(lse == none, zero, lse * k.constant(f32, -std::numbers::log2e));
      k.write(stats, 0, i, select(there, less, none));
      k.write(stats, 1, i, select(there, sum, zero));
    });
  });
}

// The body of the third kernel.
void describe_queries(Builder& k, const AttentionBackward& with) {
  const int d = with.head_dim, m = with.queries_per_step;
  auto queries = k.param("queries", s32), heads = k.param("heads", s32);
  auto scale = k.param("scale", f32);
  const Scalar block = k.convert(k.block_x(), s32),
               head = k.convert(k.block_z(), s32) * heads + k.convert(k.block_y(), s32);
  const auto sums = k.global("sums", f32, row_major(fragments(with), 128))
                        .matrix(head * ceil_div(queries, m) + block);
  const auto dQ = k.global("dQ", with.type, row_major(queries, d)).matrix(head);
  const MmaKind kind = k.best_mma(with.type, with.type, f32);
  if (kind.shape.shape.m == 0) return;  // best_mma() has reported it
  const auto rows = k.tiled_mma(kind, tile_of_queries(with));
  const auto sQ = k.shared("sQ", with.type, row_major(m, d, d + 8));
  const WarpTile like = rows.accumulator();
  std::vector<Fragment> all;
  const int each = static_cast<int>(like.fragments().size());
  for (int i = 0; i < each; ++i) {
    std::vector<Scalar> x =
        k.read_vector(sums, k.convert(k.warp(), s32) * each + i, k.convert(k.lane(), s32) * 4, 4);
    for (Scalar& one : x) one = one * scale;
    all.push_back(k.fragment(like.fragments()[static_cast<std::size_t>(i)].kind(), x));
  }
  const WarpTile out = convert(WarpTile(std::move(all), like.across(), like.place()), with.type);
  k.store(is_turned(with) ? sQ.transposed() : sQ, out);
  k.barrier();
  k.copy(sQ, dQ.tile({block, 0}, {m, d}));
}

// Options that is_possible() refuses must not stop the description before it says so.
int threads(const AttentionBackward& with) { return 32 * std::clamp(with.warps, 1, 32); }

}  // namespace

Kernel attention_backward_rows(const AttentionBackward& options) {
  return kernel("attention_backward_rows", {.block = row_threads},
                [=](Builder& k) {
                  if (is_possible(k, options)) describe_rows(k, options);
                })
      .keyed(key_of(options));
}

Kernel attention_backward(const AttentionBackward& options) {
  return kernel("attention_backward", {.block = threads(options), .producers = options.producers},
                [=](Builder& k) {
                  if (is_possible(k, options)) Backward(k, options).describe();
                })
      .keyed(key_of(options));
}

Kernel attention_backward_queries(const AttentionBackward& options) {
  return kernel("attention_backward_queries", {.block = threads(options)},
                [=](Builder& k) {
                  if (is_possible(k, options)) describe_queries(k, options);
                })
      .keyed(key_of(options));
}

AttentionBackward tuned(const AttentionBackward& options, const Gpu& gpu) {
  AttentionBackward out = options;
  if (!gpu.target().has(Feature::wgmma)) return out;
  out.warps = 8, out.producers = 4, out.stages = 2;
  out.keys_per_block = 128;
  out.queries_per_step = out.head_dim <= 64 ? 128 : 64;
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels
