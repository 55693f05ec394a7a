// SPDX-License-Identifier: Apache-2.0
// The product is Y^T = W^T * X^T: W's columns are the MMA's rows. A stage has tile_k of k, in
// chunks of 64: a warp loads those of its columns, 16 bytes a lane each time.
#include "tartan/kernels/mixed_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "kernels/common/keys.h"
#include "kernels/gemm/gemm_tiles.h"
#include "kernels/mixed/mixed_numbers.h"
#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int chunk = mixed_chunk;

class MixedProduct {
 public:
  MixedProduct(Builder& k, const MixedGemm& options)
      : k_(k),
        with_(options),
        numbers_(k, options),
        across_(options.tile_n / 16),
        chunks_(options.tile_k / chunk),
        piece_(std::min(chunks_, 256 / words())),
        pieces_(chunks_ / piece_),
        scale_rows_(std::max(options.tile_k / options.group, 1)),
        box_rows_(mixed_box_rows(options, k.target())) {}

  void describe() {
    declare();
    if (!detail::sizes_are_possible(k_, {.m = with_.tile_m, .n = with_.tile_n, .k = with_.tile_k},
                                    m_, n_, depth_))
      return;
    MmaKind kind = k_.best_mma(with_.type, with_.type, f32);
    if (kind.shape.shape.m == 0) return;  // best_mma() has reported it
    kind.best = with_.warpgroups;
    mma_.emplace(k_.tiled_mma(kind, {.m = with_.tile_n,
                                     .n = with_.tile_m,
                                     .k = chunk,
                                     .warps_m = with_.warps_n,
                                     .warps_n = 1,
                                     .products = with_.warps_k}));
    if (box_rows_)
      sX_ = k_.shared(
          "sX", with_.type,
          RingLayout{row_major(box_rows_ * pitch(), chunk).swizzled({3, 3, 3}), with_.stages});
    else sX_ = k_.shared("sX", with_.type, mma_->shared_b(with_.stages * chunks_, Major::col));
    sW_ = k_.shared("sW", u64,
                    RingLayout{row_major(across_, piece_ * words()), with_.stages * pieces_});
    sS_ = k_.shared("sS", u32, RingLayout{row_major(scale_rows_, 8 * across_), with_.stages});
    if (with_.zeros)
      sZ_ = k_.shared("sZ", u16, RingLayout{row_major(scale_rows_, 8 * across_), with_.stages});
    // A result's rows are 16 bytes apart in their banks.
    sY_ = k_.shared("sY", with_.type, row_major(with_.tile_m, with_.tile_n, with_.tile_n + 8));
    const int each = elements();
    if (with_.warps_k > 1)
      sSum_ = k_.shared("sSum", f32, row_major((with_.warps_k - 1) * each, threads_n()));
    if (in_cluster())
      sPart_ = k_.shared("sPart", f32, row_major(with_.tile_m, with_.tile_n, with_.tile_n + 4));
    if (with_.sums_in_memory()) sTicket_ = k_.shared("sTicket", u32, row_major(1, 1));
    // Producers run what steers the pipelines, but not what only consumers' values decide.
    const Scalar consumes = k_.thread() < with_.threads();
    consumers_ = [=, this](const std::function<void()>& body) { k_.when(consumes, body); };
    if (with_.overlap) k_.griddepcontrol_launch_dependents();
    k_.roles([&] {
      if (with_.overlap) k_.griddepcontrol_wait();  // consumers; producers do so in fill()
      if (with_.sums_in_memory()) split();
      else if (in_cluster()) divide();
      else if (with_.even) even_tiles();
      else whole();
    });
  }

 private:
  // A part of a tile's k-tiles.
  struct Part {
    Scalar row, col;             // the tile; with divides_evenly(), its first 16 columns
    Scalar first, steps, whole;  // its k-tiles; whether these are all
    Scalar tile, begin;          // its number, and that of its first unit
    Scalar width;                // its columns, with divides_evenly()
  };

  // The CTAs of a cluster divide the k of each tile.
  bool in_cluster() const { return with_.split && with_.cluster > 1; }
  bool divides_evenly() const { return with_.even || in_cluster(); }
  int words() const { return 32 * numbers_.words(); }  // of 64 bits, in a chunk of 16 columns
  int threads_n() const { return 32 * with_.warps_n; }
  // Chunks of a row of X in a box: an odd number, so that ldmatrix's eight rows are in other banks.
  int pitch() const { return chunks_ + 1; }
  int elements() const { return with_.tile_m * with_.tile_n / threads_n(); }  // of a thread
  Scalar number(const Scalar& x) const { return k_.convert(x, s32); }

  void declare() {
    m_ = detail::size(k_, "m", with_.m, 1), n_ = detail::size(k_, "n", with_.n, 8);
    depth_ = detail::size(k_, "k", with_.k, 8);
    const Scalar blocks = ceil_div(n_, 16), all = ceil_div(depth_, chunk),
                 groups = ceil_div(depth_, with_.group);
    if (box_rows_) box_ = k_.tensor("X", with_.type, {m_, depth_ / chunk, chunk});
    else X_ = k_.global("X", with_.type, row_major(m_, depth_)).transposed();
    W_ = k_.global("W", u64, row_major(blocks, all * words()));
    S_ = k_.global("S", u32, row_major(groups, blocks * 8));
    if (with_.zeros) Z_ = k_.global("Z", u16, row_major(groups, blocks * 8));
    Y_ = k_.global("Y", with_.type, row_major(m_, n_));
    steps_ = ceil_div(depth_, with_.tile_k);
    if (!with_.sums_in_memory()) return;
    rows_ = ceil_div(m_, with_.tile_m), cols_ = ceil_div(n_, with_.tile_n);
    workers_ = number(k_.blocks_x());
    P_ = k_.global("P", f32, row_major(workers_ * (2 * elements()), threads_n()));
    counters_ = k_.global("counters", u32, row_major(1, rows_ * cols_));
  }

  void whole() {
    const Tile tile{.m = with_.tile_m, .n = with_.tile_n};
    k_.each_tile(m_, n_, tile, [&](const Scalar& row, const Scalar& col) {
      auto sum = mma_->accumulator();
      multiply({row, col, 0, steps_, {}, {}, {}, {}}, sum);
      consumers_([&] {
        join(sum);
        store({row, col, {}, {}, {}, {}, {}, {}}, sum);
      });
    });
  }

  // Columns divided evenly among CTAs or clusters, in blocks of 16; whole k.
  void even(const std::function<void(Part&)>& body) {
    const int size = with_.cluster;
    const StreamShare own = StreamShare::of(number(ceil_div(n_, 16)), number(k_.blocks_x()) / size,
                                            number(k_.block_x()) / size);
    k_.loop(own.begin, own.end, across_, [&](const Scalar& block) {
      k_.loop(0, number(ceil_div(m_, with_.tile_m)), 1, [&](const Scalar& row) {
        Part part{row, block, 0,  number(steps_),
                  {},  {},    {}, minimum(own.end - block, across_) * 16};
        body(part);
      });
    });
  }

  void even_tiles() {
    even([&](Part& part) {
      auto sum = mma_->accumulator();
      multiply(part, sum);
      consumers_([&] {
        join(sum);
        store(part, sum);
      });
    });
  }

  void divide() {
    const StreamShare own =
        StreamShare::of(number(steps_), with_.cluster, number(k_.cluster_rank()));
    even([&](Part& part) {
      part.first = own.begin, part.steps = own.end - own.begin;
      auto sum = mma_->accumulator();
      multiply(part, sum);
      consumers_([&] {
        join(sum);
        k_.when(mma_->product() == 0, [&] { k_.store(sPart_.transposed(), sum); });
        k_.cluster_barrier();
        add_share(part);
        k_.cluster_barrier();
      });
    });
  }

  // The sums of all CTAs, in their order, of this one's share of the columns: two at a time.
  void add_share(const Part& part) const {
    const int pairs = with_.tile_n / with_.cluster / 2;
    k_.loop(k_.thread(), with_.tile_m * pairs, with_.threads(), [&](const Scalar& i) {
      const Scalar line = i / pairs, own = number(k_.cluster_rank()) * (2 * pairs) + i % pairs * 2;
      std::vector<Scalar> all;
      for (int rank = 0; rank < with_.cluster; ++rank) {
        const std::vector<Scalar> each = k_.read_vector(sPart_.of_cta(rank), line, own, 2);
        for (std::size_t e = 0; e < each.size(); ++e)
          if (rank) all[e] = all[e] + each[e];
          else all.push_back(each[e]);
      }
      for (Scalar& each : all) each = k_.convert(each, with_.type);
      const Scalar row = part.row * with_.tile_m + line, col = part.col * 16 + own;
      k_.when((row < m_) & (col < n_) & (own < part.width),
              [&] { k_.write_vector(Y_, row, col, all); });
    });
  }

  // Units are k-tiles, numbered by tile; neighbouring tiles have the same columns of W.
  void split() {
    each_ = number(detail::units_each(steps_));
    units_ = number(rows_) * number(cols_) * each_;
    const StreamShare share = StreamShare::of(units_, workers_, number(k_.block_x()));
    auto at = k_.variable(share.begin);
    k_.loop_while([&] { return Scalar(at) < share.end; },
                  [&] {
                    Part part;
                    part.tile = Scalar(at) / each_, part.first = Scalar(at) % each_;
                    part.begin = Scalar(at) - part.first;
                    const Scalar count = minimum(each_ - part.first, share.end - Scalar(at));
                    part.whole = count == each_;
                    part.steps = minimum(count, number(steps_) - part.first);
                    part.row = part.tile % number(rows_), part.col = part.tile / number(rows_);
                    auto sum = mma_->accumulator();
                    multiply(part, sum);
                    consumers_([&] { finish(part, share, sum); });
                    at += count;
                  });
  }

  void fill(const Part& part, const Scalar& t, const Scalar& stage) {
    const Scalar step = part.first + k_.convert(t, s32);
    const Scalar block = divides_evenly() ? part.col : part.col * across_;
    const int width = piece_ * words();
    for (int p = 0; p < pieces_; ++p)
      k_.copy(W_.window({block, (step * pieces_ + p) * width}, {across_, width}),
              sW_[stage * pieces_ + p]);
    const Scalar line = with_.tile_k < with_.group ? step / (with_.group / with_.tile_k) : step;
    const auto of_block = [&](const Global& x) {
      const Scalar col = block * 8, row = line * scale_rows_;
      return x.window({row, col}, {scale_rows_, 8 * across_});
    };
    k_.copy(of_block(S_), sS_[stage]);
    if (with_.zeros) k_.copy(of_block(Z_), sZ_[stage]);
    if (with_.overlap) k_.griddepcontrol_wait();
    if (box_rows_) {
      const Shared to = sX_[stage];
      return k_.copy_box(box_, to, {part.row * with_.tile_m, step * chunks_, 0},
                         {box_rows_, pitch(), chunk});
    }
    // A stage's tile, not a chunk's, is what may reach beyond k.
    const Global rows = X_.tile({step, part.row}, {with_.tile_k, with_.tile_m});
    const Among share = with_.cluster > 1 && !with_.split ? Among::cluster : Among::none;
    for (int c = 0; c < chunks_; ++c) {
      const Global x = rows.tile({c, 0}, {chunk, with_.tile_m});
      k_.copy(x, sX_[stage * chunks_ + c], {.multicast = share});
    }
  }

  // What a lane reads of the first stage, at its warp's first chunk: computed before the loop.
  struct Places {
    std::vector<Scalar> weights, x;           // addresses: by block of columns; see x_of()
    std::vector<std::vector<Scalar>> scales;  // numbers in a stage, by chunk and block of columns
  };

  Places places(const Accumulator& sum) const {
    Places out;
    const Scalar first = mma_->product();
    for (int i = 0; i < sum.down(); ++i)
      out.weights.push_back(k_.address(sW_[first / piece_], sum.row(i) / 16,
                                       first % piece_ * words() + k_.lane() * 2));
    for (int c = 0; c < chunks_ / with_.warps_k; ++c) {
      const Scalar line = (first + c * with_.warps_k) * chunk / with_.group % scale_rows_;
      out.scales.emplace_back();
      for (int i = 0; i < sum.down(); ++i)
        out.scales.back().push_back(line * (8 * across_) + sum.row(i) / 2 + k_.lane() / 4);
    }
    if (!with_.scale_sums) return out;
    const Scalar row = k_.lane() % 8, at = k_.lane() / 8 * 8;
    const int eights = x_eights();
    for (int c = 0; c < (box_rows_ ? chunks_ / with_.warps_k : 1); ++c)
      for (int j = 0; j < eights; ++j)
        for (int half = 0; half < 2; ++half)
          out.x.push_back(box_rows_ ? k_.address(sX_[0],
                                                 minimum(row + j * 8, box_rows_ - 1) * pitch() +
                                                     first + c * with_.warps_k,
                                                 at + half * 32)
                                    : k_.address(sX_[first], at + half * 32, row + j * 8));
    return out;
  }

  // Eight rows of X after the other are equally far apart, unless a box has fewer.
  int x_eights() const { return box_rows_ && box_rows_ < with_.tile_m ? with_.tile_m / 8 : 1; }

  // The address of half a warp's chunk `c` of X, of eight rows.
  Scalar x_of(const Places& from, const Scalar& stage, int c, int j, int half) const {
    constexpr int line = chunk * 2;  // bytes
    const int eights = x_eights(), beyond = eights > 1 ? 0 : j;
    const auto at =
        static_cast<std::size_t>(2 * ((box_rows_ ? c * eights : 0) + j - beyond) + half);
    if (!box_rows_)
      return from.x[at] +
             ((stage * chunks_ + c * with_.warps_k) * (with_.tile_m * line) + beyond * 8 * line);
    // A stage begins where the swizzle does, every eight lines.
    const int lines = (box_rows_ * pitch() + 7) / 8 * 8;
    return from.x[at] + (stage * (lines * line) + beyond * 8 * pitch() * line);
  }

  void multiply(const Part& part, Accumulator& sum) {
    const Places from = places(sum);
    k_.pipeline(
        {.stages = with_.stages}, part.steps, [&](Scalar t, Scalar stage) { fill(part, t, stage); },
        [&](Scalar, Scalar stage) {
          for (int c = 0; c < chunks_ / with_.warps_k; ++c) add(from, stage, c, sum);
        });
  }

  // Adds the product of a warp's chunk `c`.
  void add(const Places& from, const Scalar& stage, int c, Accumulator& sum) const {
    const int number = c * with_.warps_k;  // beyond its first one
    const int bytes = (number / piece_ * across_ * piece_ + number % piece_) * words() * 8;
    const Scalar weights = stage * (pieces_ * across_ * piece_ * words() * 8) + bytes;
    std::vector<MixedColumns> columns;
    std::vector<Fragment> a;
    for (int i = 0; i < sum.down(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const Scalar& own = from.scales[static_cast<std::size_t>(c)][at];
      const Scalar scales = k_.read(sS_[stage], 0, own),
                   zeros = with_.zeros ? k_.read(sZ_[stage], 0, own) : Scalar();
      columns.push_back(numbers_.columns(scales, zeros));
      std::vector<Scalar> words;
      for (int half = 0; half < numbers_.words() / 2; ++half)
        for (const Scalar& each :
             k_.instruction("ld.shared.v4.b32", {from.weights[at] + (weights + half * 512)}))
          words.push_back(k_.bitcast(each, u32));
      for (Fragment& each : numbers_.fragments(words, columns.back())) a.push_back(std::move(each));
    }
    if (!with_.scale_sums) {
      sum = (*mma_)(sum, WarpTile(std::move(a), chunk / 16, sum.place()),
                    sX_[stage * chunks_ + mma_->product() + number]);
      return;
    }
    const WarpTile old = sum;
    std::vector<Fragment> out(old.fragments());
    for (int j = 0; j < old.across(); ++j) {
      const std::vector<Fragment> b = load(from, stage, c, j);
      for (int i = 0; i < old.down(); ++i) {
        const auto left = [&](int step) { return a[static_cast<std::size_t>(i * 4 + step)]; };
        Fragment part = k_.mma(left(0), b[0], zero(f32));
        for (int step = 1; step < chunk / 16; ++step)
          part = k_.mma(left(step), b[static_cast<std::size_t>(step)], part);
        Fragment& to = out[static_cast<std::size_t>(i * old.across() + j)];
        to = promoted(to, part, columns[static_cast<std::size_t>(i)]);
      }
    }
    sum = WarpTile(std::move(out), old.across(), old.place());
  }

  // Eight rows of X in a warp's chunk `c`.
  std::vector<Fragment> load(const Places& from, const Scalar& stage, int c, int j) const {
    std::vector<Fragment> out;
    const FragmentKind kind = operand_b(m16n8k16, with_.type);
    for (int half = 0; half < 2; ++half) {
      const auto registers = k_.instruction("ldmatrix.sync.aligned.m8n8.x4.shared.b16",
                                            {x_of(from, stage, c, j, half)});
      if (registers.size() != 4) return std::vector<Fragment>(4);
      out.push_back(k_.fragment(kind, std::span(registers).first(2)));
      out.push_back(k_.fragment(kind, std::span(registers).last(2)));
    }
    return out;
  }

  // sum + part * scales
  Fragment promoted(const Fragment& sum, const Fragment& part, const MixedColumns& columns) const {
    std::vector<Scalar> elements = k_.elements(sum);
    const std::vector<Scalar> added = k_.elements(part);
    for (std::size_t e = 0; e < elements.size(); ++e)
      elements[e] = fma(added[e], columns.scales[e / 2], elements[e]);
    return k_.pack(sum.kind(), elements);
  }

  // ---- Sums of other warps and CTAs.

  std::vector<Scalar> elements_of(const WarpTile& tile) const {
    std::vector<Scalar> out;
    for (const Fragment& each : tile.fragments())
      for (const Scalar& x : k_.elements(each)) out.push_back(x);
    return out;
  }

  void assign(Accumulator& sum, const std::vector<Scalar>& elements) const {
    const WarpTile old = sum;
    std::vector<Fragment> out;
    for (std::size_t i = 0; i < old.fragments().size(); ++i)
      out.push_back(k_.pack(old.fragments()[i].kind(), std::span(elements).subspan(4 * i, 4)));
    sum = WarpTile(std::move(out), old.across(), old.place());
  }

  // The sum of the warps that divide k, in the first ones of them, in their order.
  void join(Accumulator& sum) const {
    if (with_.warps_k == 1) return;
    const Scalar place = k_.thread() % threads_n(), group = mma_->product();
    const int each = elements();
    k_.barrier();
    k_.when(group > 0, [&] {
      const std::vector<Scalar> own = elements_of(sum);
      for (int e = 0; e < each; ++e)
        k_.write(sSum_, (group - 1) * each + e, place, own[static_cast<std::size_t>(e)]);
    });
    k_.barrier();
    k_.when(group == 0, [&] {
      std::vector<Scalar> all = elements_of(sum);
      for (int g = 1; g < with_.warps_k; ++g)
        for (int e = 0; e < each; ++e) {
          Scalar& x = all[static_cast<std::size_t>(e)];
          x = x + k_.read(sSum_, (g - 1) * each + e, place);
        }
      assign(sum, all);
    });
  }

  // Its first unit may be in the middle of a tile.
  Scalar slot_of(const Scalar& worker, const Scalar& tile_begin, const Scalar& share_begin) const {
    return worker * 2 + select(tile_begin > share_begin, 1, 0);
  }

  void finish(const Part& part, const StreamShare& share, Accumulator& sum) const {
    join(sum);
    k_.when(
        part.whole, [&] { store(part, sum); },
        [&] {
          const Scalar worker = number(k_.block_x());
          const Scalar slot = slot_of(worker, part.begin, share.begin);
          k_.when(mma_->product() == 0, [&] {
            const std::vector<Scalar> own = elements_of(sum);
            for (int e = 0; e < elements(); ++e)
              k_.write(P_, slot * elements() + e, k_.thread(), own[static_cast<std::size_t>(e)]);
          });
          const auto owner = [&](const Scalar& unit) {
            return StreamShare::owner(units_, workers_, unit);
          };
          const Scalar begin = owner(part.begin), end = owner(part.begin + each_ - 1) + 1;
          k_.barrier();
          k_.when(k_.thread() == 0, [&] {
            k_.write(sTicket_, 0, 0,
                     k_.atomic(AtomicOp::inc, counters_, 0, part.tile,
                               k_.convert(end - begin - 1, u32), {.order = MemoryOrder::acq_rel}));
          });
          k_.barrier();
          k_.when(number(k_.read(sTicket_, 0, 0)) == end - begin - 1, [&] {
            k_.when(mma_->product() == 0, [&] { add_parts(part, begin, end, sum); });
            store(part, sum);
          });
        });
  }

  // The sums of all CTAs that share a tile, in their order.
  void add_parts(const Part& part, const Scalar& begin, const Scalar& end, Accumulator& sum) const {
    const int each = elements(), together = std::clamp(64 / each, 1, 8);
    const Scalar first = slot_of(begin, part.begin, StreamShare::of(units_, workers_, begin).begin);
    std::vector<ScalarVariable> all;
    for (int e = 0; e < each; ++e) all.push_back(k_.variable(k_.constant(f32, 0)));
    k_.loop(begin, end, together, [&](const Scalar& from) {
      // All loads are under way before the first value is used.
      std::vector<Scalar> loaded;
      for (int i = 0; i < together; ++i) {
        const Scalar worker = from + i, slot = select(worker == begin, first, worker * 2);
        for (int e = 0; e < each; ++e) {
          const Scalar col = k_.thread(), row = slot * each + e;
          loaded.push_back(k_.read_if(P_, row, col, worker < end));
        }
      }
      for (int i = 0; i < together; ++i)
        for (int e = 0; e < each; ++e)
          all[static_cast<std::size_t>(e)] += loaded[static_cast<std::size_t>(i * each + e)];
    });
    assign(sum, std::vector<Scalar>(all.begin(), all.end()));
  }

  void store(const Part& part, const Accumulator& sum) const {
    k_.barrier();
    k_.when(mma_->product() == 0, [&] { k_.store(sY_.transposed(), convert(sum, with_.type)); });
    k_.barrier();
    const Global y = divides_evenly() ? Y_.window({0, part.col * 16}, {m_, part.width}) : Y_;
    k_.copy(sY_, y.tile({part.row, divides_evenly() ? 0 : part.col}, {with_.tile_m, with_.tile_n}));
  }

  Builder& k_;
  const MixedGemm& with_;
  MixedNumbers numbers_;
  int across_, chunks_;        // blocks of 16 columns; chunks of a stage
  int piece_, pieces_;         // chunks of W that are copied at once, and how many times
  int scale_rows_, box_rows_;  // of a stage; see mixed_box_rows()
  std::function<void(const std::function<void()>&)> consumers_;
  Scalar m_, n_, depth_, steps_, rows_, cols_, workers_, each_, units_;
  GlobalTensor box_;
  Global X_, W_, S_, Z_, Y_, P_, counters_;
  std::optional<TiledMma> mma_;
  Ring sX_, sW_, sS_, sZ_;
  Shared sY_, sSum_, sPart_, sTicket_;
};

}  // namespace

Kernel mixed_gemm(const MixedGemm& options) {
  const KernelOptions blocks{.block = std::clamp(options.threads(), 32, 1024),
                             .producers = options.producers,
                             .min_blocks = options.min_blocks,
                             .cluster = options.cluster,
                             .cluster_columns = options.split ? 1 : options.cluster};
  return kernel("mixed_gemm", blocks,
                [=](Builder& k) {
                  if (is_possible(k, options)) MixedProduct(k, options).describe();
                })
      .keyed(key_of(options));
}

}  // namespace tartan::TARTAN_ABI::kernels
