// SPDX-License-Identifier: Apache-2.0
// The product is Y^T = W^T * X^T: W's columns are the MMA's rows. A stage has tile_k of k, in
// chunks of 64: a warp loads those of its columns, 16 bytes a lane each time.
#include "tartan/dsl/kernels/mixed_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "dsl/kernels/gemm_tiles.h"
#include "dsl/kernels/keys.h"
#include "dsl/kernels/mixed_numbers.h"
#include "tartan/dsl/math.h"

namespace tartan::inline TARTAN_ABI::kernels {
namespace {

constexpr int chunk = 64;  // along k

bool is_power(int x, int least, int most) { return x >= least && x <= most && (x & (x - 1)) == 0; }

bool is_possible(Builder& k, const MixedGemm& with) {
  bool out = true;
  const auto require = [&](bool holds, const std::string& otherwise) {
    out &= k.require(holds, otherwise);
  };
  const auto size = [&](const char* what, int value, int multiple) {
    const std::string wanted =
        multiple > 1 ? fmt::format("a multiple of {}", multiple) : "a positive number";
    require(value >= 0 && value % multiple == 0,
            fmt::format("{} = {}: expected {}, or 0 for a parameter; the nearest is {}", what,
                        value, wanted, detail::nearest_multiple(value, multiple)));
  };
  const auto one_of = [&](bool holds, const char* what, int value, const char* expected) {
    require(holds, fmt::format("{} = {}: expected {}", what, value, expected));
  };
  const Arch arch = k.target().arch;
  require(arch.sm >= 80, fmt::format("target {}: expected sm_80 or later, for cp.async and "
                                     "m16n8k16",
                                     arch.text()));
  size("m", with.m, 1), size("n", with.n, 8), size("k", with.k, 8);
  require(with.type == f16 || with.type == bf16,
          fmt::format("type = {}: expected f16 or bf16", name(with.type)));
  require(with.weight == Type::u4 || with.weight == Type::u8,
          fmt::format("weight = {}: expected u4 or u8", name(with.weight)));
  one_of(with.group == 64 || with.group == 128, "group", with.group,
         "64 or 128 weights with a scale");
  one_of(with.tile_m >= 8 && with.tile_m <= 256 && with.tile_m % 8 == 0, "tile_m", with.tile_m,
         "a multiple of 8 up to 256");
  one_of(with.tile_n >= 16 && with.tile_n <= 512 && with.tile_n % 16 == 0, "tile_n", with.tile_n,
         "a multiple of 16 up to 512");
  one_of(is_power(with.tile_k, 64, 512), "tile_k", with.tile_k, "64, 128, 256 or 512");
  one_of(with.warps_k >= 1 && with.warps_k <= 8 && with.tile_k % (chunk * with.warps_k) == 0,
         "warps_k", with.warps_k, "a divisor of tile_k / 64");
  one_of(with.warps_n >= 1 && with.warps_n <= 32 && with.tile_n % (16 * with.warps_n) == 0,
         "warps_n", with.warps_n, "a divisor of tile_n / 16");
  require(with.threads() <= 1024,
          fmt::format("warps_n * warps_k = {} * {}: expected up to 32 warps", with.warps_n,
                      with.warps_k));
  if (arch.sm < 90)
    one_of(with.cluster == 1, "cluster", with.cluster, "1: clusters begin with sm_90");
  else
    one_of(is_power(with.cluster, 1, 4) && (with.cluster == 1 || !with.split), "cluster",
           with.cluster, "1, or 2 or 4 without split");
  one_of(with.stages >= 1 && with.stages <= 256, "stages", with.stages, "1 to 256");
  require(!with.warpgroups || (!with.scale_sums && with.warps_k == 1),
          fmt::format("warpgroups: expected scaled weights and warps_k = 1, found {} and {}",
                      with.scale_sums ? "scaled sums" : "scaled weights", with.warps_k));
  return out;
}

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
        scale_rows_(std::max(options.tile_k / options.group, 1)) {}

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
    sX_ = k_.shared("sX", with_.type, mma_->shared_b(with_.stages * chunks_, Major::col));
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
    if (with_.split) sTicket_ = k_.shared("sTicket", u32, row_major(1, 1));
    // Producers run what steers the pipelines, but not what only consumers' values decide.
    const Scalar consumes = k_.thread() < with_.threads();
    consumers_ = [=, this](const std::function<void()>& body) { k_.when(consumes, body); };
    k_.roles([&] {
      if (with_.split) split();
      else whole();
    });
  }

 private:
  // A part of a tile's k-tiles.
  struct Part {
    Scalar row, col;             // the tile
    Scalar first, steps, whole;  // its k-tiles; whether these are all
    Scalar tile, begin;          // its number, and that of its first unit
  };

  int words() const { return 32 * numbers_.words(); }  // of 64 bits, in a chunk of 16 columns
  int threads_n() const { return 32 * with_.warps_n; }
  int elements() const { return with_.tile_m * with_.tile_n / threads_n(); }  // of a thread
  Scalar number(const Scalar& x) const { return k_.convert(x, s32); }

  void declare() {
    m_ = detail::size(k_, "m", with_.m, 1), n_ = detail::size(k_, "n", with_.n, 8);
    depth_ = detail::size(k_, "k", with_.k, 8);
    const Scalar blocks = ceil_div(n_, 16), all = ceil_div(depth_, chunk),
                 groups = ceil_div(depth_, with_.group);
    X_ = k_.global("X", with_.type, row_major(m_, depth_)).transposed();
    W_ = k_.global("W", u64, row_major(blocks, all * words()));
    S_ = k_.global("S", u32, row_major(groups, blocks * 8));
    if (with_.zeros) Z_ = k_.global("Z", u16, row_major(groups, blocks * 8));
    Y_ = k_.global("Y", with_.type, row_major(m_, n_));
    steps_ = ceil_div(depth_, with_.tile_k);
    if (!with_.split) return;
    rows_ = ceil_div(m_, with_.tile_m), cols_ = ceil_div(n_, with_.tile_n);
    workers_ = number(k_.blocks_x());
    P_ = k_.global("P", f32, row_major(workers_ * (2 * elements()), threads_n()));
    counters_ = k_.global("counters", u32, row_major(1, rows_ * cols_));
  }

  void whole() {
    const Tile tile{.m = with_.tile_m, .n = with_.tile_n};
    k_.each_tile(m_, n_, tile, [&](const Scalar& row, const Scalar& col) {
      auto sum = mma_->accumulator();
      multiply({row, col, 0, steps_, {}, {}, {}}, sum);
      consumers_([&] {
        join(sum);
        store({row, col, {}, {}, {}, {}, {}}, sum);
      });
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
    for (int p = 0; p < pieces_; ++p)
      k_.copy(W_.tile(across_, piece_ * words(), part.col, step * pieces_ + p),
              sW_[stage * pieces_ + p]);
    const Scalar line = with_.tile_k < with_.group ? step / (with_.group / with_.tile_k) : step;
    k_.copy(S_.tile(scale_rows_, 8 * across_, line, part.col), sS_[stage]);
    if (with_.zeros) k_.copy(Z_.tile(scale_rows_, 8 * across_, line, part.col), sZ_[stage]);
    for (int c = 0; c < chunks_; ++c) {
      const Global x = X_.tile(chunk, with_.tile_m, step * chunks_ + c, part.row);
      if (with_.cluster > 1) k_.multicast(x, sX_[stage * chunks_ + c]);
      else k_.copy(x, sX_[stage * chunks_ + c]);
    }
  }

  void multiply(const Part& part, Accumulator& sum) {
    k_.pipeline(
        with_.stages, part.steps, [&](Scalar t, Scalar stage) { fill(part, t, stage); },
        [&](Scalar, Scalar stage) {
          for (int i = 0; i < chunks_ / with_.warps_k; ++i)
            add(stage, mma_->product() + i * with_.warps_k, sum);
        });
  }

  // Adds the product of a chunk.
  void add(const Scalar& stage, const Scalar& number, Accumulator& sum) const {
    std::vector<MixedColumns> columns;
    std::vector<Fragment> a;
    const Shared x = sX_[stage * chunks_ + number];
    for (int i = 0; i < sum.down(); ++i) {
      const Scalar block = sum.row(i) / 16, line = number * chunk / with_.group % scale_rows_,
                   own = block * 8 + k_.lane() / 4;
      const Scalar scales = k_.read(sS_[stage], line, own),
                   zeros = with_.zeros ? k_.read(sZ_[stage], line, own) : Scalar();
      columns.push_back(numbers_.columns(scales, zeros));
      const Shared w = sW_[stage * pieces_ + number / piece_];
      std::vector<Scalar> words;
      for (int half = 0; half < numbers_.words() / 2; ++half)
        for (const Scalar& each : k_.read_vector(
                 w, block, number % piece_ * MixedProduct::words() + half * 64 + k_.lane() * 2, 2))
          words.push_back(each);
      for (Fragment& each : numbers_.fragments(words, columns.back())) a.push_back(std::move(each));
    }
    if (!with_.scale_sums) {
      sum = (*mma_)(sum, WarpTile(std::move(a), chunk / 16, sum.place()), x);
      return;
    }
    const WarpTile old = sum;
    std::vector<Fragment> out(old.fragments());
    for (int j = 0; j < old.across(); ++j) {
      const std::vector<Fragment> b = load(x, j);
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

  // Eight rows of X in a chunk.
  std::vector<Fragment> load(const Shared& x, int j) const {
    std::vector<Fragment> out;
    const FragmentKind kind = operand_b(m16n8k16, with_.type);
    for (int half = 0; half < 2; ++half) {
      const auto registers =
          k_.instruction("ldmatrix.sync.aligned.m8n8.x4.shared.b16", x,
                         k_.lane() / 8 * 8 + half * 32, k_.lane() % 8 + j * 8, {});
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
        for (int e = 0; e < each; ++e)
          loaded.push_back(k_.read_if(worker < end, P_, slot * each + e, k_.thread()));
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
    k_.copy(sY_, Y_.tile(with_.tile_m, with_.tile_n, part.row, part.col));
  }

  Builder& k_;
  const MixedGemm& with_;
  MixedNumbers numbers_;
  int across_, chunks_;  // blocks of 16 columns; chunks of a stage
  int piece_, pieces_;   // chunks of W that are copied at once, and how many times
  int scale_rows_;       // of a stage
  std::function<void(const std::function<void()>&)> consumers_;
  Scalar m_, n_, depth_, steps_, rows_, cols_, workers_, each_, units_;
  Global X_, W_, S_, Z_, Y_, P_, counters_;
  std::optional<TiledMma> mma_;
  Ring sX_, sW_, sS_, sZ_;
  Shared sY_, sSum_, sTicket_;
};

std::int64_t up(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }

}  // namespace

std::int64_t MixedGemm::tiles(int rows, int columns) const {
  return up(rows, std::max(tile_m, 1)) * up(columns, std::max(tile_n, 1));
}

unsigned MixedGemm::blocks(int rows, int columns, int multiprocessors) const {
  const std::int64_t together = std::max(cluster, 1),
                     ctas = std::int64_t{multiprocessors} * std::max(min_blocks, 1),
                     slots = std::max(ctas / together, std::int64_t{1}) * together,
                     wide = up(columns, std::max(tile_n, 1) * together) * together,
                     all = std::max(up(rows, std::max(tile_m, 1)) * wide, together);
  // Tiles that nearly fill the GPU stay whole: no sums go through memory.
  const bool even = all <= slots && all * 16 >= slots * 15;
  return static_cast<unsigned>(split && !even ? slots : std::min(all, slots));
}

std::int64_t MixedGemm::partial_elements(unsigned blocks) const {
  return split ? std::int64_t{2} * blocks * tile_m * tile_n : 0;
}

Kernel mixed_gemm(const MixedGemm& options) {
  const KernelOptions blocks{.block = std::clamp(options.threads(), 32, 1024),
                             .producers = options.producers,
                             .min_blocks = options.min_blocks,
                             .cluster = options.cluster,
                             .cluster_columns = options.cluster};
  return kernel("mixed_gemm", blocks,
                [=](Builder& k) {
                  if (is_possible(k, options)) MixedProduct(k, options).describe();
                })
      .keyed(key_of(options));
}

}  // namespace tartan::inline TARTAN_ABI::kernels
