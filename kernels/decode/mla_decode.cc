// SPDX-License-Identifier: Apache-2.0
// Two groups of warps each have 64 rows and half of the values' columns of the output. The first
// one also computes the scores of a step and their exponentials, the weights, which it multiplies
// from registers; the second one reads them in shared memory.
#include "tartan/kernels/mla_decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>

#include "kernels/attention/attention_tiles.h"
#include "kernels/common/integers.h"
#include "kernels/common/keys.h"
#include "kernels/decode/key_pages.h"
#include "kernels/decode/split_keys.h"
#include "tartan/dsl/math.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int latent = MlaDecode::latent, rope = MlaDecode::key - latent;
constexpr int tile_rows = 64, half = latent / 2, threads = 256;
// The named barrier at which the second group says that it has read the weights of a step.
constexpr int free = 2;
constexpr int first_group = 3;  // that of the first group alone
constexpr int weighed = 4;      // at which the first group says that they are there

// Upper bound of the bytes of shared memory.
std::int64_t shared_bytes(const MlaDecode& options) {
  constexpr std::int64_t others = 2048;
  return 2 * MlaDecode::key * (tile_rows + std::int64_t{options.stages} * options.keys_per_step) +
         2 * tile_rows * options.keys_per_step + others;
}

bool is_possible(Builder& k, const MlaDecode& options) {
  const int page = options.page;
  const auto in = [&](const char* what, int value, int least, int most, const char* why) {
    return k.require(value >= least && value <= most,
                     fmt::format("{} = {}: expected {} to {}{}; the nearest is {}", what, value,
                                 least, most, why, std::clamp(value, least, most)));
  };
  const Arch arch = k.target().arch;
  bool out = k.require(arch.has(Feature::async_copy),
                       fmt::format("target {}: expected sm_80 or later, for cp.async and a shared "
                                   "memory that holds 64 queries",
                                   arch.text()));
  out &=
      k.require(options.type == f16 || options.type == bf16,
                fmt::format("type = {}: expected f16 or bf16 for Q, KV and O", name(options.type)));
  out &= in("queries", options.queries, 1, 16, " new tokens of a sequence");
  out &= in("heads", options.heads, 1, 128, " query heads");
  out &= k.require(is_power(page, 16, 256),
                   fmt::format("page = {}: expected 16, 32, 64, 128 or 256 keys", page));
  out &= k.require(is_power(options.keys_per_step, 16, 64),
                   fmt::format("keys_per_step = {}: expected 16, 32 or 64", options.keys_per_step));
  out &= in("stages", options.stages, 1, 256, "");
  out &= in("whole_steps", options.whole_steps, 0, 1024, "");
  return out;
}

// The body of the kernel, in parts.
class MlaDecoding {
 public:
  MlaDecoding(Builder& k, const MlaDecode& options)
      : k_(k),
        with_(options),
        keys_(options.keys_per_step),
        split_(k),
        pages_{k, {}, options.page, options.keys_per_step} {}

  void describe() {
    declare();
    const MmaKind kind = k_.best_mma(with_.type, with_.type, f32);
    if (kind.shape.shape.m == 0) return;  // best_mma() has reported it
    const auto mma = [&](int n, int depth) {
      return k_.tiled_mma(
          kind, {.m = tile_rows, .n = n, .k = depth, .warps_m = 4, .warps_n = 1, .products = 2});
    };
    mma_latent_ = mma(keys_, latent), mma_rope_ = mma(keys_, rope), mma_values_ = mma(half, keys_);
    sQ_ = k_.shared("sQ", with_.type, mma_latent_.shared_a(1, Major::row));
    sQ_rope_ = k_.shared("sQ_rope", with_.type, mma_rope_.shared_a(1, Major::row));
    sKV_ = k_.shared("sKV", with_.type, mma_latent_.shared_b(with_.stages, Major::col));
    sK_rope_ = k_.shared("sK_rope", with_.type, mma_rope_.shared_b(with_.stages, Major::col));
    sWeights_ = k_.shared("sWeights", with_.type, mma_values_.shared_a(1, Major::row));
    sShrink_ = k_.shared("sShrink", f32, row_major(1, tile_rows));
    sTop_ = k_.shared("sTop", f32, row_major(1, tile_rows));
    sSum_ = k_.shared("sSum", f32, row_major(1, tile_rows));
    split_.find_share();
    k_.roles([&] { split_.each_part([&](const Part& part) { fold(part); }); });
  }

 private:
  using Part = SplitKeys::Part;

  void declare() {
    const Scalar batch = k_.param("batch", s32);
    const Scalar most_pages = k_.param("most_pages", s32);
    split_.rows = std::min(with_.rows(), tile_rows), split_.cols = latent;
    split_.batch = batch, split_.heads = 1, split_.tiles = with_.row_tiles();
    split_.scale = k_.param("scale", f32) * k_.constant(f32, std::numbers::log2e);
    const Scalar rows = batch * with_.rows();
    Q_ = k_.global("Q", with_.type, row_major(rows, MlaDecode::key));
    KV_ = k_.global("KV", with_.type, row_major(with_.page, MlaDecode::key));
    pages_.table = k_.global("table", s32, row_major(batch, most_pages));
    split_.lengths = k_.global("lengths", s32, row_major(1, batch));
    O_ = k_.global("O", with_.type, row_major(with_.rows(), latent));
    split_.declare_parts();
    masked_ = split_.masked(), zero_ = k_.constant(f32, 0), one_ = k_.constant(f32, 1);
    split_.keys_per_step = keys_, split_.threads = threads;
    split_.vectors = 8, split_.whole_steps = with_.whole_steps;
  }

  // The row of a sequence's Q and O that row `i` of the tile is, and where that is; -1: none.
  Scalar row_of_sequence(const Scalar& i) const {
    return split_.tile * tile_rows + k_.convert(i, s32);
  }
  Scalar row_of(const Scalar& i, const Part& part) const {
    const Scalar row = row_of_sequence(i);
    return select(row < with_.rows(), part.sequence * with_.rows() + row, -1);
  }

  void fill(PageWalk& pages, const Scalar& t, const Scalar& stage) {
    const int rows = pages_.keys();
    pages.copy_step(t, [&](int i, const Scalar& matrix, const Scalar& tile) {
      const Global page = KV_.matrix(matrix).transposed();
      k_.copy(page.tile({0, tile}, {latent, rows}), sKV_[stage].tile({0, i}, {latent, rows}));
      k_.copy(page.tile({latent / rope, tile}, {rope, rows}),
              sK_rope_[stage].tile({0, i}, {rope, rows}));
    });
  }

  void fold(const Part& part) {
    PageWalk pages(pages_, part, [](const Scalar& page) { return page; });
    k_.barrier();
    load_queries(part);
    k_.barrier();
    auto top = mma_latent_.row_variable(masked_), sum = mma_latent_.row_variable(zero_);
    auto o = mma_values_.accumulator();
    const Scalar group = mma_values_.product(), scores = group == 0;
    const auto use = [&](const Scalar& t, const Scalar& stage) {
      const Shared values = sKV_[stage].transposed().tile({0, group}, {keys_, half});
      k_.when(
          scores,
          [&] {
            auto shrink = mma_latent_.row_variable(one_);
            const WarpTile p = score(part, t, stage, top, shrink, o),
                           weights = convert(p, with_.type);
            mma_values_.add(o, operand_a(weights, mma_values_.kind().shape), values);
            // Beside the product. A barrier of the builder would wait for it.
            meet("sync", free);
            k_.store(sWeights_[0], weights);
            write_rows(sShrink_, 0, p, shrink);
            proxy_fence();
            meet("arrive", weighed);
            sum = map(map(sum, shrink, times), row_sum(p), plus);
          },
          [&] {
            k_.arrive(free, threads);
            k_.barrier(weighed, threads);
            const RowValues shrink = read_rows(sShrink_, 0, o);
            k_.when(any_lane((shrink[0] != 1) | (shrink[1] != 1)),
                    [&] { o = map_rows(o, shrink, times); });
            mma_values_.add(o, sWeights_[0], values);
          });
    };
    k_.pipeline(
        {.stages = with_.stages}, part.steps,
        [&](Scalar t, Scalar stage) { fill(pages, t, stage); }, use);
    split_.consumers([&] {
      k_.when(scores, [&] {
        write_rows(sTop_, 0, o, top);
        write_rows(sSum_, 0, o, sum);
      });
      k_.barrier();
      write(part, o);
    });
  }

  void meet(const char* how, int barrier) const {
    k_.ptx(fmt::format("bar.{} {}, {};", how, barrier, threads), {}, {});
  }

  // The weights of a step. Where a maximum moves: the factors for what was summed before it, and
  // the output times them.
  WarpTile score(const Part& part, const Scalar& t, const Scalar& stage, RowVariable& top,
                 RowVariable& shrink, Accumulator& o) {
    const Scalar first = (part.first + k_.convert(t, s32)) * keys_;
    auto s = mma_latent_.accumulator();
    mma_latent_.add(s, sQ_[0], sKV_[stage]);
    mma_rope_.add(s, sQ_rope_[0], sK_rope_[stage]);
    // Keys that the first query token sees.
    const Scalar sure = part.length - (with_.queries - 1);
    k_.when(first + keys_ > sure, [&] {
      s = map(s, [&](Scalar x, ElementPlace at) {
        const Scalar seen = sure + row_of_sequence(at.row) / with_.heads;
        return select(first + k_.convert(at.col, s32) < seen, x, masked_);
      });
      k_.when(first + keys_ > part.length, [&] { clear(sKV_[stage], part.length - first); });
    });
    // A row's maximum stays where it is until weights might become large: the output then needs no
    // correction, and lanes need not exchange their maxima. It is infinite before any key is seen:
    // the difference of two infinities is NaN.
    constexpr double most_exponent = 8;
    const auto is_far = [&](const Scalar& x, const Scalar& old) {
      return (x - old) * split_.scale > most_exponent;
    };
    const auto base_of = [&](const RowValues& tops) {
      return map(tops, [&](const Scalar& b) { return select(b == masked_, 0, b); });
    };
    const RowValues own = in_lane(k_, s, maximum), before = top;
    if (own.empty()) return s;  // after an error
    k_.when(any_lane(is_far(own[0], before[0]) | is_far(own[1], before[1])), [&] {
      const RowValues now = map(before, across_lanes(own), [&](Scalar old, Scalar x) {
        return select(is_far(x, old), x, old);
      });
      shrink = map(before, base_of(now),
                   [&](Scalar a, Scalar b) { return exp2((a - b) * split_.scale); });
      o = map_rows(o, shrink, times);
      top = now;
    });
    return map_rows(s, base_of(top),
                    [&](Scalar x, Scalar b) { return exp2((x - b) * split_.scale); });
  }

  static RowValues across_lanes(RowValues of) {
    for (const int by : {1, 2})
      of = map(of, [&](const Scalar& x) { return maximum(x, shuffle_xor(x, by)); });
    return of;
  }

  // wgmma sees what threads have written.
  void proxy_fence() const {
    if (with_.producers > 0 && k_.has("fence.proxy.async.shared::cta"))
      k_.instruction("fence.proxy.async.shared::cta", {});
  }

  // All loads are under way at once: four threads for a row, 16 bytes each time.
  void load_queries(const Part& part) const {
    const Scalar row = k_.thread() / 4, from = row_of(row, part);
    const Scalar bytes = k_.convert(select(from < 0, 0, 16), u32);
    const auto load = [&](const Ring& to, int first, int columns) {
      for (int col = 0; col < columns; col += 32) {
        const Scalar own = k_.thread() % 4 * 8 + col;
        k_.ptx("cp.async.cg.shared.global [%0], [%1], 16, %2;", {},
               {k_.address(to[0], row, own), k_.address(Q_, maximum(from, 0), own + first), bytes});
      }
    };
    load(sQ_, 0, latent);
    load(sQ_rope_, latent, rope);
    k_.ptx("cp.async.wait_all;", {}, {});
    proxy_fence();
  }

  // Zeros in the rows of V beyond the sequence, where anything may be, once the whole group has
  // read them as keys, and before any of its warps multiplies them.
  void clear(const Shared& values, const Scalar& from) {
    constexpr int vectors = latent / 8;
    k_.barrier(first_group, threads / 2);
    k_.loop(from * vectors + k_.convert(k_.thread() % (threads / 2), s32), keys_ * vectors,
            threads / 2, [&](Scalar i) {
              const Scalar at = k_.address(values, i % vectors * 8, i / vectors);
              k_.ptx("st.shared.v4.b32 [%0], {%1, %1, %1, %1};", {}, {at, k_.constant(u32, 0)});
            });
    proxy_fence();
    k_.barrier(first_group, threads / 2);
  }

  RowValues read_rows(const Shared& from, const Scalar& line, const WarpTile& of) const {
    RowValues out;
    for (const Scalar& row : row_places(of)) out.push_back(k_.read(from, line, row));
    return out;
  }
  void write_rows(const Shared& to, const Scalar& line, const WarpTile& of,
                  const RowValues& values) const {
    const RowValues rows = row_places(of);
    for (std::size_t i = 0; i < rows.size(); ++i)
      k_.write_if(to, line, rows[i], values[i], k_.lane() % 4 == 0);
  }

  // This group's half of the columns. Results go to memory in whole lines, through the place of the
  // queries, which nothing reads any more.
  void write(const Part& part, const Accumulator& o) {
    const Scalar group = mma_values_.product();
    k_.when(
        part.whole(),
        [&] {
          const WarpTile out = map_rows(o, read_rows(sSum_, 0, o), SplitKeys::share);
          k_.store(sQ_[0].tile({0, group}, {tile_rows, half}), convert(out, with_.type));
          k_.barrier();
          k_.copy(sQ_[0], O_.matrix(part.sequence).tile({split_.tile, 0}, {tile_rows, latent}));
        },
        [&] {
          const Global sums = split_.sums_of(part);
          k_.store_rows(sums.window({0, group * half}, {sums.layout().rows, half}), o,
                        [](Scalar i) { return i; });
          const Scalar i = k_.thread();
          k_.when(i < split_.rows, [&] {
            k_.write(split_.weights_of(part), i, 0, k_.read(sTop_, 0, i));
            k_.write(split_.weights_of(part), i, 1, k_.read(sSum_, 0, i));
          });
          split_.combine(part, [&](const Part& whole, const Scalar& row, const Scalar& col,
                                   const std::vector<Scalar>& values, const Scalar& sum) {
            std::vector<Scalar> out;
            for (const Scalar& each : values)
              out.push_back(k_.convert(SplitKeys::share(each, sum), with_.type));
            const Scalar to = row_of_sequence(row);
            k_.when(to < with_.rows(),
                    [&] { k_.write_vector(O_.matrix(whole.sequence), to, col, out); });
          });
        });
  }

  Builder& k_;
  const MlaDecode with_;
  const int keys_;  // of a step
  SplitKeys split_;
  KeyPages pages_;
  Scalar masked_, zero_, one_;
  Global Q_, KV_, O_;
  TiledMma mma_latent_, mma_rope_, mma_values_;
  Ring sQ_, sQ_rope_, sKV_, sK_rope_, sWeights_;
  Shared sShrink_, sTop_, sSum_;
};

}  // namespace

MlaDecode tuned(const MlaDecode& options, const Gpu& gpu) {
  const Target& target = gpu.target();
  MlaDecode out = options;
  const ArchRow* arch = find_arch(target.arch);
  if (!arch) return out;
  out.stages = 2, out.keys_per_step = 64;
  if (target.has(Feature::wgmma)) out.producers = 4;
  const auto fits = [&] { return shared_bytes(out) <= arch->shared_bytes; };
  if (!fits()) out.stages = 1;
  while (!fits() && out.keys_per_step > 16) out.keys_per_step /= 2;
  return out;
}

Kernel mla_decode(const MlaDecode& options) {
  return kernel("mla_decode", {.block = threads, .producers = options.producers},
                [=](Builder& k) {
                  if (is_possible(k, options)) MlaDecoding(k, options).describe();
                })
      .keyed(key_of(options));
}

}  // namespace tartan::TARTAN_ABI::kernels
