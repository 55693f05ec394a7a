// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/scaled_gemm.h"

#include <algorithm>
#include <deque>

#include "kernels/common/keys.h"
#include "kernels/gemm/gemm_tiles.h"
#include "kernels/scaled/scaled_products.h"
#include "tartan/dsl/math.h"
#include "tartan/isa/feature.h"
#include "tartan/kernels/k_grouped_gemm.h"

namespace tartan::TARTAN_ABI::kernels::detail {
namespace {

constexpr int block = scale_block;

// Of a CTA's tile, what its warpgroups multiply at a time: 64 rows each or, by tcgen05, 128.
Tile part_of(const ScaledGemm& options, const Target& target) {
  Tile out = options.tile;
  const bool wide = target.has(Feature::tensor_memory) && out.m % (32 * out.warps_m) == 0;
  out.m = (wide ? 32 : 16) * out.warps_m, out.n /= std::max(options.parts_n, 1), out.k = block;
  return out;
}

// The tiles of C that a CTA computes.
class Products : ScaledOperands {
 public:
  using ScaledOperands::ScaledOperands;

  void compute() {
    follow_previous_launch(k);
    k.roles([&] {
      if (options.along_k) return along_k();
      if (options.grouping == Grouping::none) return dense();
      if (options.grouping == Grouping::contiguous) return contiguous();
      masked();
    });
  }

 private:
  ScaledTile place(const Scalar& row, const Scalar& col) const {
    return {row, col, a, scales_a, b, scales_b, c};
  }

  Scalar number(const Scalar& x) const { return k.convert(x, s32); }
  Scalar rank() const { return options.cluster > 1 ? number(k.cluster_rank()) : Scalar(0); }

  // CTAs of a cluster compute tiles side by side if they share A: rows and columns change places.
  void each_tile(const std::function<void(const Scalar& row, const Scalar& col)>& body) {
    if (!shares_a(options))
      return k.each_tile(
          m, n, options.tile, [&](Scalar row, Scalar col) { body(row, col); }, options.group);
    Tile turned = options.tile;
    std::swap(turned.m, turned.n);
    k.each_tile(
        n, m, turned, [&](Scalar col, Scalar row) { body(row, col); }, options.group);
  }

  void dense() {
    if (options.cluster_splits > 1) return part_by_rank();
    each_tile([&](const Scalar& row, const Scalar& col) { tile(place(row, col)); });
  }

  // The CTAs of a cluster have a tile together: each multiplies its k-tiles and gets the sum of a
  // block of the tile's columns.
  void part_by_rank() {
    const int splits = options.cluster_splits;
    const auto [row, col] = k.cluster_tile(m, n, options.tile, options.group);
    const Scalar rank = k.cluster_rank();
    const auto share = StreamShare::of(k.convert(stages(), u32), splits, rank);
    ScaledTile at = place(row, col);
    at.begin = number(share.begin), at.stages = number(share.end - share.begin);
    const std::deque<Accumulator> sums = sums_of(at);
    const WarpTile sum = sums.front();
    // Of columns that do not divide, or few, only the first CTAs have a part.
    const int parts = scatter_parts(splits, sum.across());
    const WarpTile total = reduce_scatter(sum, parts);
    const auto store = [&] {
      release_row(k, m, options.tile.m);
      k.store(at.c.tile({at.row, at.col}, {options.tile.m, options.tile.n})
                  .tile({0, rank}, {options.tile.m, options.tile.n / parts}),
              in_type_of_c(total));
    };
    if (parts < splits) k.when(rank < parts, store);
    else store();
  }

  void contiguous() {
    each_tile([&](const Scalar& row, const Scalar& col) {
      const Scalar first = number(row) * options.tile.m, group = k.read(list, 0, first);
      k.when(group >= 0, [&] {
        ScaledTile at = place(row, col);
        at.b = b.matrix(group), at.scales_b = scales_b.matrix(group);
        const Scalar last = minimum(first + options.tile.m, m) - 1;
        at.whole = k.read(list, 0, last) >= 0;
        at.row_of = [=, this](const Scalar& line) {
          const Scalar index = number(line);
          return select(k.read_if(list, 0, index, index < m) >= 0, index, -1);
        };
        tile(at);
      });
    });
  }

  // Between tiles of a group that a CTA has, and its first one.
  Scalar stride() const { return number(k.blocks_x()) / options.cluster; }
  Scalar first_tile() const { return number(k.block_x()) / options.cluster; }

  // The tiles of a group. Their numbers go on from group to group, so that each CTA has as many as
  // the others of all groups together, or one less.
  void each_of_group(ScalarVariable& next, const Scalar& stride, const Scalar& count,
                     const std::function<void(const Scalar& i)>& body) {
    k.loop(next, count, stride, body);
    next = next + ceil_div(maximum(count - next, 0), stride) * stride - count;
  }

  void masked() {
    const Scalar stride = this->stride(),
                 across = ceil_div(n, std::int64_t{options.cluster} * options.tile.n),
                 rank = this->rank();
    auto next = k.variable(first_tile());
    k.loop(0, groups, 1, [&](const Scalar& group) {
      const Scalar rows = minimum(maximum(k.read(list, 0, group), 0), m),
                   down = ceil_div(rows, options.tile.m);
      each_of_group(next, stride, down * across, [&](const Scalar& i) {
        ScaledTile at = place(i % down, i / down * options.cluster + rank);
        at.a = a.matrix(group), at.scales_a = scales_a.matrix(group);
        at.b = b.matrix(group), at.scales_b = scales_b.matrix(group);
        at.c = c.matrix(group);
        at.whole = (at.row + 1) * options.tile.m <= rows;
        at.row_of = [=, this](const Scalar& line) {
          const Scalar index = number(line);
          return select(index < rows, index, -1);
        };
        tile(at);
      });
    });
  }

  void along_k() {
    const int together = options.cluster, columns = options.share_a ? together : 1,
              rows = together / columns;
    const Scalar stride = this->stride(), down = ceil_div(m, std::int64_t{rows} * options.tile.m),
                 across = ceil_div(n, std::int64_t{columns} * options.tile.n);
    auto next = k.variable(first_tile()), first = k.variable(k.constant(s32, 0));
    k.loop(0, groups, 1, [&](const Scalar& group) {
      const Scalar begin = first, own = minimum(maximum(k.read(list, 0, group), 0), depth),
                   own_steps = minimum(ceil_div(own, block), steps - begin);
      Scalar count = down * across;
      if (options.accumulate) count = select(own_steps > 0, count, 0);
      each_of_group(next, stride, count, [&](const Scalar& i) {
        // Rows of tiles form bands, which are visited column by column: neighbours in time share A
        // and B in the L2.
        const int height = std::max(options.group / rows, 1);
        const Scalar of_band = across * height, band = i / of_band, top = band * height,
                     tall = minimum(down - top, height), inside = i - band * of_band;
        const Scalar row = top + inside % tall, col = inside / tall, rank = this->rank();
        ScaledTile at =
            options.share_a ? place(row, col * together + rank) : place(row * together + rank, col);
        at.first = begin, at.stages = own_steps, at.c = c.matrix(group);
        tile(at);
      });
      first = begin + own_steps;
    });
  }

  // ---- A tile.

  // A product of a part, in registers.
  struct Product {
    const Accumulator& values;
    Accumulator& sum;
    Factors::Values factors;
    Scalar former;  // columns in the first block of columns that it is in
  };

  Scalar former(const ScaledTile& at, int part) const {
    if (options.along_k) return 0;
    const Scalar left = left_of(at, part);
    return (left / block + 1) * block - left;
  }

  Scalar stages() const { return ceil_div(steps, options.blocks_k); }
  // The first stage needs no promotion of a product before it, and sums no zeros. The loop of two
  // parts one after the other became 2 % slower beside it, but not that of groups.
  bool peeled() const {
    return !options.along_k && !options.overlap && options.cluster_splits == 1 &&
           (parts() == 1 || options.grouping == Grouping::contiguous);
  }

  void fill(const ScaledTile& at, const Scalar& t, const Scalar& stage) {
    for (int i = 0; i < options.blocks_k; ++i) {
      const Scalar step = at.first + at.stage_of_k(t) * options.blocks_k + i,
                   slot = stage * options.blocks_k + i;
      // The longer copy first, which memory answers last: 1 to 2 % with 128 rows.
      const bool b_first =
          !options.along_k && options.cluster == 1 && options.tile.n >= options.tile.m;
      if (b_first) fill_b(at, step, slot);
      fill_a(at, step, slot);
      if (!b_first) fill_b(at, step, slot);
    }
  }

  // Whether B passes by once, so that it should not take A's place in L2: of up to 128 rows,
  // CTAs that read the same columns do so at the same time.
  bool streams_b() const {
    return !options.along_k && options.grouping == Grouping::none && options.cluster == 1 &&
           options.m > 0 && options.m <= block;
  }
  CopyOptions how(bool shared, Evict evict) const {
    return {.multicast = shared ? Among::cluster : Among::none,
            .evict = streams_b() ? evict : Evict::normal};
  }

  void fill_a(const ScaledTile& at, const Scalar& step, const Scalar& slot) {
    for (int i = 0; i < parts_m; ++i) {
      const Scalar line = at.row * parts_m + i, to = slot * parts_m + i;
      k.copy(at.a.tile({line, step}, {part.m, block}), shared_a[to],
             how(shares_a(options), Evict::last));
      k.copy(at.scales_a.tile({line, step}, {part.m, 1}), shared_scales_a[to]);
    }
  }

  void fill_b(const ScaledTile& at, const Scalar& step, const Scalar& slot) {
    for (int j = 0; j < options.parts_n; ++j)
      k.copy(at.b.tile({step, at.col * options.parts_n + j}, {block, part.n}),
             shared_b[slot * options.parts_n + j],
             how(options.cluster > 1 && !shares_a(options), Evict::first));
    if (!options.along_k) return;
    const int columns = columns_of_scales();
    k.copy(columns == part.n ? at.scales_b.tile({step, at.col}, {1, columns})
                             : at.scales_b.window({step, at.col * part.n}, {1, columns}),
           shared_scales_b[slot]);
  }

  // sum += product * factor, of each element.
  void promote(const Product& product, const Factors& factors) {
    const WarpTile old = product.sum, values = product.values;
    std::vector<std::vector<Scalar>> added;
    for (const Fragment& each : values.fragments()) added.push_back(k.elements(each));
    std::vector<Fragment> out;
    for (std::size_t i = 0; i < added.size(); ++i) {
      const Fragment& of = old.fragments()[i];
      std::vector<Scalar> elements = k.elements(of);
      for (std::size_t e = 0; e < elements.size(); ++e)
        elements[e] =
            fma(added[i][e], factors.of(product.factors, product.former, i, e), elements[e]);
      out.push_back(k.pack(of.kind(), elements));
    }
    product.sum = WarpTile(std::move(out), old.across(), old.place());
  }

  // The sums of each part of a tile. `beside`: with one product in flight, what comes before the
  // last one is promoted.
  std::deque<Accumulator> sums_of(
      const ScaledTile& at,
      const std::function<void(const std::deque<Accumulator>& sums)>& beside = {}) {
    std::deque<Accumulator> sums, registers;
    for (int p = 0; p < parts(); ++p) sums.push_back(mma.accumulator());
    const std::size_t flying = options.overlap ? 2 : 1;
    for (std::size_t i = 0; i < flying; ++i) registers.push_back(mma.accumulator());
    const bool keeps = flying == 1;
    const Scalar former_of_last = keeps ? former(at, parts() - 1) : 0;
    const auto factors = factors_of(*this, at, registers.back());
    // With one product in flight the last of a stage is promoted in the next one, where addresses
    // are computed beside; it is zero before the first.
    const auto last = [&] {
      return Product{registers.back(), sums.back(), factors->kept(), former_of_last};
    };
    const auto use = [&](const Scalar& t, const Scalar& stage, const std::function<void()>& next) {
      const int products = parts() * options.blocks_k;
      const bool first = peeled() && t.constant();
      const auto read = [&](int i) { return factors->read(registers.front(), t, stage, i); };
      // With one product in flight all scales of the stage are read while the one before is
      // promoted: what is between two products delays the second one. In the first stage nothing
      // is promoted, and a product would wait for scales.
      std::deque<Factors::Reading> early;
      for (int i = 0; keeps && !options.along_k && !first && i < products; ++i)
        early.push_back(read(i));
      std::deque<Product> in_flight;
      if (keeps && !first) in_flight.push_back(last());
      for (int i = 0; i < products; ++i) {
        if (in_flight.size() == flying) {
          promote(in_flight.front(), *factors);
          in_flight.pop_front();
        }
        Accumulator& own = registers[i % flying];
        Factors::Reading scales;
        if (!first) scales = early.empty() ? read(i) : early[i];
        const int j = i / parts() * options.parts_n + i % options.parts_n;
        const Scalar former = this->former(at, i % parts());
        mma.multiply(own, shared_a[slot_a(stage, i)],
                     shared_b[stage * options.blocks_k * options.parts_n + j]);
        in_flight.push_back({own, sums[i % parts()], first ? read(i)() : scales(), former});
        if (i + 1 == (keeps && !first ? 1 : products)) factors->read_next(t);
      }
      for (; in_flight.size() > 1; in_flight.pop_front()) promote(in_flight.front(), *factors);
      if (keeps) factors->keep(in_flight.front().factors);
      next();
      if (!keeps) promote(in_flight.front(), *factors);
    };
    const auto fill_stage = [&](const Scalar& t, const Scalar& stage) { fill(at, t, stage); };
    k.pipeline({.stages = options.stages, .peel_first = peeled()},
               at.stages ? *at.stages : stages(), fill_stage, {}, use);
    if (beside) beside(sums);
    if (keeps) promote(last(), *factors);
    return sums;
  }

  void tile(const ScaledTile& at) {
    if (options.along_k) return tile_along_k(at);
    const std::deque<Accumulator> sums = sums_of(at);
    release_row(k, m, options.tile.m);
    if (!at.whole) return store(at, sums, true);
    k.when(
        *at.whole, [&] { store(at, sums, true); }, [&] { store(at, sums, false); });
  }

  void tile_along_k(const ScaledTile& at) {
    const auto store = [&](const WarpTile& sum, int p) {
      const Global to = at.c.tile({at.row * parts_m + p, at.col}, {part.m, part.n});
      if (options.accumulate) k.add(to, sum);
      else k.store(to, sum);
    };
    const auto sums = sums_of(at, [&](const std::deque<Accumulator>& sums) {
      for (int p = 0; p + 1 < parts(); ++p) store(sums[p], p);
    });
    store(sums.back(), parts() - 1);
  }

  WarpTile in_type_of_c(const WarpTile& sum) const {
    return options.c == f32 ? sum : convert(sum, options.c);
  }

  // All parts of a tile whose warps have one row of fragments, to be staged in as few batches as
  // there is room for.
  WarpTile joined(const std::deque<Accumulator>& sums) const {
    const WarpTile first = sums.front();
    WarpPlace place = first.place();
    place.rows = options.tile.m, place.cols = options.tile.n, place.row_step = part.m;
    std::vector<Fragment> fragments;  // of each warp, a row of a part
    for (const Accumulator& sum : sums) {
      const WarpTile part = sum;
      fragments.insert(fragments.end(), part.fragments().begin(), part.fragments().end());
    }
    return WarpTile(std::move(fragments), first.across() * options.parts_n, std::move(place));
  }

  void store(const ScaledTile& at, const std::deque<Accumulator>& sums, bool whole) {
    if (!whole) return store_rows(at, sums);
    if (down() == 1)
      return k.store(at.c.tile({at.row, at.col}, {options.tile.m, options.tile.n}),
                     in_type_of_c(joined(sums)));
    for (int p = 0; p < parts(); ++p)
      k.store(at.c.tile({at.row * parts_m + p / options.parts_n,
                         at.col * options.parts_n + p % options.parts_n},
                        {part.m, part.n}),
              in_type_of_c(sums[p]));
  }

  // The rows of a tile that its group has.
  void store_rows(const ScaledTile& at, const std::deque<Accumulator>& sums) {
    for (int p = 0; p < parts(); ++p) {
      const Scalar top = number(at.row * parts_m + p / options.parts_n) * part.m;
      k.store_rows(at.c.window({0, left_of(at, p)}, {m, part.n}), in_type_of_c(sums[p]),
                   [&](const Scalar& row) { return at.row_of(top + number(row)); });
    }
  }
};

}  // namespace

ScaledOperands::ScaledOperands(Builder& builder, const ScaledProducts& with)
    : k(builder),
      options(with),
      part(part_of(with, builder.target())),
      parts_m(with.tile.m / part.m),
      m(size(k, "m", with.m, with.grouping == Grouping::masked ? 4 : 1)),
      n(size(k, "n", with.n, with.along_k ? 4 : 8)),
      depth(size(k, "k", with.k, 16)),
      steps(ceil_div(depth, block)) {
  const bool masked = with.grouping == Grouping::masked;
  if (masked || with.along_k) groups = k.param("groups", s32);
  const auto lines = m.multiple() % 4 == 0 ? m : ceil_div(m, 4) * 4;
  a = k.global("A", Type::e4m3, row_major(m, depth));
  scales_a = k.global("SA", f32, col_major(lines, steps));
  b = k.global("B", Type::e4m3, row_major(n, depth)).transposed();
  scales_b = k.global("SB", f32,
                      with.along_k ? row_major(steps, n) : row_major(ceil_div(n, block), steps));
  c = k.global("C", with.c, row_major(m, n));
  if (with.grouping == Grouping::contiguous) list = k.global("group_of_row", s32, row_major(1, m));
  if (masked) list = k.global("rows_of_group", s32, row_major(1, groups));
  if (with.along_k) list = k.global("depth_of_group", s32, row_major(1, groups));
  mma = k.tiled_mma(k.best_mma(Type::e4m3, Type::e4m3, f32), part);
  const int each = with.stages * with.blocks_k;
  shared_a = k.shared("sA", Type::e4m3, mma.shared_a(each * parts_m, Major::row));
  shared_b = k.shared("sB", Type::e4m3, mma.shared_b(each * with.parts_n, Major::col));
  shared_scales_a = k.shared("sSA", f32, RingLayout{col_major(part.m, 1), each * parts_m});
  if (with.along_k)
    shared_scales_b = k.shared("sSB", f32, RingLayout{row_major(1, columns_of_scales()), each});
}

// TMA writes to multiples of 128 bytes: scales that nothing needs fill them up.
int ScaledOperands::columns_of_scales() const { return (part.n + 31) / 32 * 32; }

Scalar ScaledOperands::slot_a(const Scalar& stage, int i) const {
  return (stage * options.blocks_k + i / parts()) * parts_m + i % parts() / options.parts_n;
}

Scalar ScaledOperands::left_of(const ScaledTile& at, int i) const {
  return k.convert(at.col * options.parts_n + i % options.parts_n, s32) * part.n;
}

}  // namespace tartan::TARTAN_ABI::kernels::detail

namespace tartan::TARTAN_ABI::kernels {

static Kernel kernel_of(const char* name, const detail::ScaledProducts& options) {
  const KernelOptions blocks{.block = options.tile.threads(),
                             .producers = 4,
                             .cluster = std::max(options.cluster, options.cluster_splits)};
  return kernel(name, blocks, [=](Builder& k) {
    if (detail::is_possible(k, options)) detail::Products(k, options).compute();
  });
}

Kernel scaled_gemm(const ScaledGemm& options) {
  return kernel_of("scaled_gemm", {options}).keyed(key_of(options));
}

Kernel k_grouped_gemm(const KGroupedGemm& options) {
  ScaledGemm same{.m = options.m, .n = options.n, .k = options.k, .c = f32, .tile = options.tile};
  same.stages = options.stages, same.group = options.group;
  same.cluster = options.cluster, same.share_a = options.share_a;
  return kernel_of("k_grouped_gemm", {same, true, options.accumulate}).keyed(key_of(options));
}

}  // namespace tartan::TARTAN_ABI::kernels
