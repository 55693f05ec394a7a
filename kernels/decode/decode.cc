// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/decode.h"

#include <algorithm>
#include <numbers>

#include "kernels/common/keys.h"
#include "kernels/decode/decode_shape.h"
#include "kernels/decode/key_pages.h"
#include "kernels/decode/split_keys.h"
#include "tartan/dsl/math.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

// The body of the kernel, in parts.
class Decoding {
 public:
  Decoding(Builder& k, const Decode& options)
      : k_(k),
        with_(options),
        shape_(decode_shape(options, k.target())),
        keys_(k),
        pages_{k, {}, options.page, options.keys_per_step} {}

  void describe() {
    declare();
    MmaKind kind = k_.best_mma(with_.type, with_.type, f32);
    if (kind.shape.shape.m == 0) return;  // best_mma() has reported it
    // best_mma() asks the target alone; few rows and wide heads multiply by mma.sync.
    kind.best = kind.best &&
                (by_tensor_memory(with_, k_.target()) || !k_.target().has(Feature::tensor_memory));
    const int d = with_.head_dim, m = shape_.tile_m, n = shape_.keys;
    const Tile qk{
        .m = m, .n = n, .k = d, .warps_m = shape_.warps_m, .warps_n = 1, .products = shape_.groups};
    const Tile pv{
        .m = m, .n = d, .k = n, .warps_m = shape_.warps_m, .warps_n = 1, .products = shape_.groups};
    // The layouts of a whole step.
    Tile step_qk = qk, step_pv = pv;
    step_qk.n = with_.keys_per_step, step_pv.k = with_.keys_per_step;
    mma_qk_ = k_.tiled_mma(kind, qk), mma_pv_ = k_.tiled_mma(kind, pv);
    RingLayout ring_k = k_.tiled_mma(kind, step_qk).shared_b(with_.stages, Major::col),
               ring_v = k_.tiled_mma(kind, step_pv).shared_b(with_.stages, Major::row);
    if (shape_.whole_lines) {
      const Layout lines = row_major(with_.keys_per_step, d).swizzled({3, 3, 3});
      ring_k.layout = lines.transposed(), ring_v.layout = lines;
    }
    sQ_ = k_.shared("sQ", with_.type, mma_qk_.shared_a(1, Major::row));
    sK_ = k_.shared("sK", with_.type, ring_k), sV_ = k_.shared("sV", with_.type, ring_v);
    if (shape_.groups > 1) {
      sO_ = k_.shared("sO", f32, row_major(shape_.groups * with_.rows(), d, d + 8));
      sTop_ = k_.shared("sTop", f32, row_major(shape_.groups, m));
      sSum_ = k_.shared("sSum", f32, row_major(shape_.groups, m));
    }
    keys_.find_share();
    k_.roles([&] { keys_.each_part([&](const Part& part) { fold(part); }); });
  }

 private:
  void declare() {
    const int d = with_.head_dim;
    const Scalar batch = k_.param("batch", s32);
    kv_heads_ = k_.param("kv_heads", s32);
    const Scalar most_pages = k_.param("most_pages", s32);
    keys_.rows = with_.rows(), keys_.cols = d, keys_.batch = batch, keys_.heads = kv_heads_;
    keys_.scale = k_.param("scale", f32) * k_.constant(f32, std::numbers::log2e);
    const Scalar rows = batch * with_.queries * kv_heads_ * with_.group;
    Q_ = k_.global("Q", with_.type, row_major(rows, d));
    K_ = k_.global("K", with_.type, row_major(with_.page, d));
    V_ = k_.global("V", with_.type, row_major(with_.page, d));
    pages_.table = k_.global("table", s32, row_major(batch, most_pages));
    keys_.lengths = k_.global("lengths", s32, row_major(1, batch));
    O_ = k_.global("O", with_.type, row_major(rows, d));
    keys_.declare_parts();
    masked_ = keys_.masked(), zero_ = k_.constant(f32, 0);
    keys_.keys_per_step = with_.keys_per_step, keys_.threads = shape_.threads();
    keys_.whole_steps = with_.whole_steps;
  }

  // Rows of Q and O that row `i` of the tile is; -1: none.
  Scalar row_of(const Scalar& i, const Scalar& sequence, const Scalar& head) const {
    const Scalar row = k_.convert(i, s32), token = row / with_.group;
    return select(
        row < with_.rows(),
        ((sequence * with_.queries + token) * kv_heads_ + head) * with_.group + row % with_.group,
        -1);
  }

  using Part = SplitKeys::Part;

  void fill(PageWalk& pages, const Scalar& t, const Scalar& stage) {
    const int d = with_.head_dim, rows = pages_.keys();
    pages.copy_step(t, [&](int i, const Scalar& matrix, const Scalar& tile) {
      k_.copy(K_.matrix(matrix).transposed().tile({0, tile}, {d, rows}),
              sK_[stage].tile({0, i}, {d, rows}));
      k_.copy(V_.matrix(matrix).tile({tile, 0}, {rows, d}), sV_[stage].tile({i, 0}, {rows, d}));
    });
  }

  void fold(const Part& part) {
    const int d = with_.head_dim, n = with_.keys_per_step, keys = shape_.keys;
    PageWalk pages(pages_, part, [&](const Scalar& page) { return page * kv_heads_ + part.head; });
    k_.barrier();
    k_.copy_rows(Q_, sQ_[0], [&](Scalar i) { return row_of(i, part.sequence, part.head); });
    k_.barrier();
    // In registers, next to the accumulators; tcgen05 reads it in shared memory.
    const bool keeps_q = d <= 128 && !by_tensor_memory(with_, k_.target());
    const WarpTile q = keeps_q ? mma_qk_.load_a(sQ_[0]) : WarpTile();
    auto top = mma_qk_.row_variable(masked_), sum = mma_qk_.row_variable(zero_);
    auto o = mma_pv_.accumulator();
    const Scalar group = mma_qk_.product();
    // Keys that the first query token sees.
    const Scalar sure = part.length - (with_.queries - 1);
    const auto use = [&](const Scalar& t, const Scalar& stage) {
      const bool whole = shape_.groups == 1;
      const Shared sK = whole ? sK_[stage] : sK_[stage].tile({0, group}, {d, keys}),
                   sV = whole ? sV_[stage] : sV_[stage].tile({group, 0}, {keys, d});
      const Scalar first = (part.first + k_.convert(t, s32)) * n;
      auto s = mma_qk_.accumulator();
      mma_qk_.add(s, keeps_q ? MmaOperand(q) : MmaOperand(sQ_[0]), sK);
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
          map(before, base, [&](Scalar a, Scalar b) { return exp2((a - b) * keys_.scale); });
      const WarpTile p =
          map_rows(s, base, [&](Scalar x, Scalar b) { return exp2((x - b) * keys_.scale); });
      sum = map(map(sum, shrink, times), row_sum(p), plus);
      o = mma_pv_(map_rows(o, shrink, times),
                  operand_a(convert(p, with_.type), mma_pv_.kind().shape), sV);
      top = now;
    };
    k_.pipeline(
        {.stages = with_.stages}, part.steps,
        [&](Scalar t, Scalar stage) { fill(pages, t, stage); }, use);
    keys_.consumers([&] {
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
    for (std::size_t i = 0; i < rows.size(); ++i) k_.write_if(sTop_, group, rows[i], own[i], leads);
    k_.barrier();
    RowValues most;
    for (std::size_t i = 0; i < rows.size(); ++i) most.push_back(top_of(rows[i]));
    const RowValues shrink = map(own, most, [&](Scalar a, Scalar b) { return keys_.weight(a, b); });
    const RowValues sums = map(sum, shrink, times);
    for (std::size_t i = 0; i < rows.size(); ++i)
      k_.write_if(sSum_, group, rows[i], sums[i], leads);
    const Scalar first = group * with_.rows();
    for_each(map_rows(o, shrink, times), [&](Scalar x, ElementPlace at) {
      const Scalar row = first + at.row;
      k_.write_if(sO_, row, at.col, x, at.row < with_.rows());
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
        part.whole(),
        [&] {
          each_vector([&](Scalar row, Scalar col) {
            write_result(part, row, col, joined(row, col), sum_of(row));
          });
        },
        [&] {
          const Global P = keys_.sums_of(part), L = keys_.weights_of(part);
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

  void write_result(const Part& part, const Scalar& row, const Scalar& col,
                    const std::vector<Scalar>& values, const Scalar& sum) {
    std::vector<Scalar> out;
    for (const Scalar& each : values)
      out.push_back(k_.convert(SplitKeys::share(each, sum), with_.type));
    k_.write_vector(O_, row_of(row, part.sequence, part.head), col, out);
  }

  void combine(const Part& part) {
    keys_.combine(part, [&](const Part& whole, const Scalar& row, const Scalar& col,
                            const std::vector<Scalar>& values,
                            const Scalar& sum) { write_result(whole, row, col, values, sum); });
  }

  // The result of warps that each have all keys of their rows.
  void write(const Part& part, const RowVariable& top, const RowVariable& sum,
             const Accumulator& o) {
    k_.when(
        part.whole(),
        [&] {
          const WarpTile out = map_rows(o, sum, SplitKeys::share);
          for_each(out, [&](Scalar x, ElementPlace at) {
            const Scalar value = k_.convert(x, with_.type),
                         row = row_of(at.row, part.sequence, part.head);
            k_.write_if(O_, row, at.col, value, at.row < with_.rows());
          });
        },
        [&] {
          const Global P = keys_.sums_of(part), L = keys_.weights_of(part);
          for_each(o, [&](Scalar x, ElementPlace at) {
            k_.write_if(P, at.row, at.col, x, at.row < with_.rows());
          });
          const RowValues rows = row_places(o), most = top, all = sum;
          for (std::size_t i = 0; i < rows.size(); ++i) {
            const Scalar leads = (k_.lane() % 4 == 0) & (rows[i] < with_.rows());
            k_.write_if(L, rows[i], 0, most[i], leads);
            k_.write_if(L, rows[i], 1, all[i], leads);
          }
          combine(part);
        });
  }

  Builder& k_;
  const Decode with_;
  const DecodeShape shape_;
  SplitKeys keys_;
  KeyPages pages_;
  Scalar kv_heads_, masked_, zero_;
  Global Q_, K_, V_, O_;
  TiledMma mma_qk_, mma_pv_;
  Ring sQ_, sK_, sV_;
  Shared sO_, sTop_, sSum_;
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

}  // namespace tartan::TARTAN_ABI::kernels
