// SPDX-License-Identifier: Apache-2.0
#include "dsl/tiled_mma.h"

#include <bit>

#include "compiler/isa/instruction.h"
#include "dsl/math.h"
#include "dsl/state.h"

namespace tartan {
namespace {

using detail::KernelState;

// Lines of `bytes` bytes, 16-byte chunks of them XORed with the line's number: eight neighbouring
// lines then have any chunk in eight different groups of banks. Lines of 32 and 64 bytes share a
// span of 128 with their neighbours, so that only every fourth or second line counts.
Swizzle conflict_free(std::int64_t bytes, Type type) {
  const int chunks = std::countr_zero(static_cast<std::uint64_t>(bytes / 16));  // a line's, as 2^
  return {std::min(chunks, 3), std::countr_zero(static_cast<unsigned>(128 / bits(type))),
          std::max(chunks, 3)};
}

// An instruction as wide as the table has: fewest instructions for the same work.
std::int64_t work(const Shape& shape) {
  return static_cast<std::int64_t>(shape.m) * shape.n * shape.k;
}

}  // namespace

RingLayout TiledMma::shared(Operand operand, int stages, Major major) const {
  const bool is_a = operand == Operand::a;
  const Type type = is_a ? kind_.a : kind_.b;
  const int rows = is_a ? tile_.m : tile_.k, cols = is_a ? columns_a() : tile_.n;
  const bool by_rows = major == Major::none ? is_a : major == Major::row;
  Layout layout = by_rows ? row_major(rows, cols) : col_major(rows, cols);
  if (kind_.shape.shape.m == 0) return {layout, stages};  // refused
  const std::int64_t line = std::int64_t{by_rows ? cols : rows} * bits(type) / 8;
  const std::string what = fmt::format("shared {}", is_a ? "A" : "B");
  if (line >= 32 && std::has_single_bit(static_cast<std::uint64_t>(line))) {
    layout = layout.swizzled(conflict_free(line, type));
    if (state_)
      state_->choose(what, layout.text(),
                     fmt::format("lines of {} bytes: any eight of them have the same 16 bytes in "
                                 "eight groups of banks, and so has a copy's 128 bytes",
                                 line),
                     {"padding: it takes more memory and breaks the 16-byte chunks' alignment with "
                      "some sizes"});
  } else if (line % 16 == 0 && line / 16 % 2 == 0) {
    const std::int64_t padded = (line + 16) * 8 / bits(type);
    layout = by_rows ? row_major(rows, cols, padded) : col_major(rows, cols, padded);
    if (state_)
      state_->choose(what, layout.text(),
                     "an odd number of 16-byte chunks in a line puts eight neighbouring lines into "
                     "eight groups of banks",
                     {fmt::format("a swizzle: lines of {} bytes are no power of two", line)});
  }
  return {layout, stages};
}

RingLayout TiledMma::shared_a(int stages, Major major) const {
  return shared(Operand::a, stages, major);
}
RingLayout TiledMma::shared_b(int stages, Major major) const {
  return shared(Operand::b, stages, major);
}

Accumulator TiledMma::accumulator(Here at) const {
  std::vector<FragmentVariable> out;
  const Shape& shape = kind_.shape.shape;
  if (!state_ || !state_->function) return Accumulator({}, 1, 0, 0);
  Builder k(state_);
  for (int i = 0; i < fragments_m() * fragments_n(); ++i)
    out.push_back(k.variable(operand_c(kind_.shape, kind_.c), at));
  return Accumulator(std::move(out), fragments_n(), warp_m_ * (fragments_m() * shape.m),
                     warp_n_ * (fragments_n() * shape.n));
}

// The tensor cores drop the low 13 bits of an f32; cvt.rna.tf32 rounds to nearest, ties away from
// zero.
std::vector<Fragment> TiledMma::rounded(std::vector<Fragment> fragments, const Shared& from) const {
  if (from.element() != f32) return fragments;
  for (Fragment& each : fragments) {
    if (each.kind().type != tf32 || KernelState::is_bad(each)) continue;
    std::vector<codegen::Value> registers;
    for (const codegen::Value& value : KernelState::registers(each))
      registers.push_back(
          state_->f().bitcast(state_->f().convert(state_->f().bitcast(value, f32), tf32), b32));
    each = state_->fragment(each.kind(), std::move(registers));
    state_->choose(fmt::format("round {}", from.name), "cvt.rna.tf32.f32",
                   "its elements are f32, and tensor cores would drop their low 13 bits");
  }
  return fragments;
}

RowVariable TiledMma::row_variable(const Scalar& initial, Here at) const {
  std::vector<ScalarVariable> out;
  if (!state_ || !state_->function) return RowVariable({});
  Builder k(state_);
  const WarpTile tile = accumulator(at);
  const std::size_t rows = row_places(tile, at).size();
  for (std::size_t i = 0; i < rows; ++i) out.push_back(k.variable(initial, at));
  return RowVariable(std::move(out));
}

WarpTile TiledMma::multiply(const WarpTile& c, const std::function<std::vector<Fragment>(int)>& a,
                            const Metadata& metadata, const Shared& b) const {
  const int m = fragments_m(), n = fragments_n();
  const Shape& shape = kind_.shape.shape;
  std::vector<Fragment> sums = c.fragments();
  if (sums.size() != static_cast<std::size_t>(m * n)) {
    state_->report("fragment-mismatch"_rule,
                   fmt::format("the tiled product takes {} accumulators in each warp, found {}",
                               m * n, sums.size()));
    return {};
  }
  const FragmentKind kind_b = operand_b(kind_.shape, kind_.b);
  for (int step = 0; step < steps(); ++step) {
    const std::vector<Fragment> left = a(step);
    const std::vector<Fragment> right = rounded(
        state_->load_side(kind_b, b.tile(shape.k, shape.n * n, step, warp_n_, state_->location), n),
        b);
    if (left.size() != static_cast<std::size_t>(m) || right.size() != static_cast<std::size_t>(n))
      return {};
    for (int i = 0; i < m; ++i) {
      MmaOptions options = options_;
      if (metadata) options.metadata = metadata(i, step);
      for (int j = 0; j < n; ++j) {
        // There and back again: neighbours share a fragment.
        const int x = i % 2 ? n - 1 - j : j;
        Fragment& sum = sums[static_cast<std::size_t>(i * n + x)];
        sum = state_->mma(left[static_cast<std::size_t>(i)], right[static_cast<std::size_t>(x)],
                          &sum, Type::none, options);
      }
    }
  }
  return WarpTile(std::move(sums), n, c.row(), c.col());
}

std::vector<Fragment> TiledMma::side_a(const Shared& a, int step) const {
  const FragmentKind kind = operand_a(kind_.shape, kind_.a);
  const isa::Fragment fragment = kind.fragment();
  return rounded(state_->load_side(kind,
                                   a.tile(fragment.rows * fragments_m(), fragment.cols, warp_m_,
                                          step, state_->location),
                                   fragments_m()),
                 a);
}

WarpTile TiledMma::operator()(const WarpTile& c, const Shared& a, const Shared& b, Here at) const {
  if (!state_ || !state_->function) return {};
  state_->at(at);
  const bool shapes = state_->require_shape(a, tile_.m, tile_.k, "the tiled product's A") &
                      state_->require_shape(b, tile_.k, tile_.n, "the tiled product's B");
  if (!shapes) return {};
  return multiply(
      c, [&](int step) { return side_a(a, step); }, {}, b);
}

WarpTile TiledMma::operator()(const WarpTile& c, const Shared& a, const Shared& metadata,
                              const Shared& b, Here at) const {
  if (!state_ || !state_->function) return {};
  state_->at(at);
  const Layout words = metadata_tile();
  const bool shapes =
      state_->require_shape(a, tile_.m, columns_a(), "the tiled product's A") &
      state_->require_shape(metadata, *words.rows.constant(), *words.cols.constant(),
                            "the tiled product's metadata") &
      state_->require_shape(b, tile_.k, tile_.n, "the tiled product's B");
  if (!shapes) return {};
  const int each = metadata_words();
  Builder k(state_);
  const Scalar lane = k.lane(at), word = each == 32 ? lane : lane / 4 * 2 + lane % 2;
  // Beyond the edge of A lie zeros, which are no metadata: any will do there.
  const auto read = [&](int i, int step) {
    const Scalar found = k.read(metadata, warp_m_ * fragments_m() + i, word + step * each, at);
    return select(found == 0, std::int64_t{0x44444444}, found);
  };
  return multiply(
      c, [&](int step) { return side_a(a, step); }, read, b);
}

// The words of 16 rows and one instruction's k: two lanes of four hold them, or all.
int TiledMma::metadata_words() const {
  isa::Form form{.shape = kind_.shape.shape, .a = kind_.a};
  form.kind = kind_.shape.kind;
  return isa::codes_per_row(form) == 16 ? 32 : 16;
}

Layout TiledMma::metadata_tile() const {
  if (kind_.shape.shape.m == 0) return row_major(1, 1);  // refused
  return row_major(std::max(tile_.m / 16, 1), std::max(steps() * metadata_words(), 1));
}

WarpTile TiledMma::operator()(const WarpTile& c, const WarpTile& a, const Shared& b,
                              Here at) const {
  if (!state_ || !state_->function) return {};
  state_->at(at);
  if (!state_->require_shape(b, tile_.k, tile_.n, "the tiled product's B")) return {};
  if (a.down() != fragments_m() || a.across() != steps()) {
    state_->report(
        "fragment-mismatch"_rule,
        fmt::format("the tiled product's A has {} x {} fragments in each warp, found {} x {}",
                    fragments_m(), steps(), a.down(), a.across()));
    return {};
  }
  return multiply(
      c,
      [&](int step) {
        std::vector<Fragment> out;
        for (int i = 0; i < fragments_m(); ++i) out.push_back(a.fragment(i, step));
        return out;
      },
      {}, b);
}

WarpTile TiledMma::load_a(const Shared& a, Here at) const {
  if (!state_ || !state_->function) return {};
  state_->at(at);
  if (!state_->require_shape(a, tile_.m, tile_.k, "the tiled product's A")) return {};
  const FragmentKind kind = operand_a(kind_.shape, kind_.a);
  const isa::Fragment fragment = kind.fragment();
  std::vector<Fragment> out;
  for (int i = 0; i < fragments_m(); ++i)
    for (int step = 0; step < steps(); ++step)
      out.push_back(state_->load(
          kind, a.tile(fragment.rows, fragment.cols, warp_m_ * fragments_m() + i, step, at)));
  return WarpTile(rounded(std::move(out), a), steps(), warp_m_ * (fragments_m() * fragment.rows),
                  0);
}

MmaKind Builder::best_mma(Type a, Type b, Type c, const MmaOptions& options, Here at) {
  state_->at(at);
  std::optional<isa::Form> best, elsewhere;
  for (const isa::Form& form : isa::forms()) {
    isa::Form wanted{.opcode = isa::Opcode::mma, .shape = form.shape};
    wanted.a_major = Major::row, wanted.b_major = Major::col;
    wanted.a = a, wanted.b = b, wanted.c = c;
    wanted.d = options.d == Type::none ? c : options.d;
    wanted.satfinite = options.satfinite, wanted.rounding = options.rounding;
    wanted.bit_op = options.bit_op;
    if (options.sparsity != isa::Sparsity::dense && form.sparsity != isa::Sparsity::dense)
      wanted.sparsity = form.sparsity;
    const bool sparse = wanted.sparsity != isa::Sparsity::dense;
    if (sparse != (options.sparsity != isa::Sparsity::dense)) continue;
    if (!(form == wanted) || isa::fragment(form, Operand::a).matrices != 1) continue;
    auto& found = isa::find(form)->since.has(state_->target) ? best : elsewhere;
    if (!found || work(form.shape) > work(found->shape)) found = form;
  }
  if (best) {
    std::vector<std::string> refused;
    if (elsewhere && work(elsewhere->shape) > work(best->shape))
      refused.push_back(fmt::format("{}: it exists from {} on", isa::spell(*elsewhere),
                                    isa::oldest(isa::find(*elsewhere)->since).text()));
    state_->choose(fmt::format("product of {} and {}", name(a), name(b)), isa::spell(*best),
                   fmt::format("it does most at once for these types on {}", state_->target.text()),
                   std::move(refused));
    return {{best->shape, false, best->sparsity != isa::Sparsity::dense}, a, b, c};
  }
  const auto nearest = elsewhere ? isa::nearest(*elsewhere, state_->target) : std::nullopt;
  state_->report(
      "no-instruction"_rule,
      fmt::format("{} has no mma.sync of {} and {} with {} accumulators{}{}", state_->target.text(),
                  name(a), name(b), name(c),
                  elsewhere ? fmt::format("; {} exists from {} on", isa::spell(*elsewhere),
                                          isa::oldest(isa::find(*elsewhere)->since).text())
                            : "",
                  nearest ? "; the nearest here is " + isa::spell(*nearest) : ""));
  return {};
}

TiledMma Builder::tiled_mma(const MmaKind& kind, const Tile& tile, const MmaOptions& options,
                            Here at) {
  state_->at(at);
  TiledMma out;
  out.kind_ = kind;
  out.tile_ = tile;
  out.options_ = options;
  const Shape& shape = kind.shape.shape;
  if (shape.m == 0 || tile.warps_m < 1 || tile.warps_n < 1) return out;
  bool good = true;
  const auto divides = [&](int size, int by, std::string_view axis) {
    if (size > 0 && by > 0 && size % by == 0) return;
    good = false;
    state_->report(
        "tile-divide"_rule,
        fmt::format("the tile's {} = {} is no multiple of {}: the warps' share of {}; the "
                    "nearest is {}",
                    axis, size, by, kind.shape.text(), std::max(1, (size + by / 2) / by) * by));
  };
  divides(tile.m, tile.warps_m * shape.m, "m");
  divides(tile.n, tile.warps_n * shape.n, "n");
  divides(tile.k, shape.k, "k");
  if (tile.threads() != state_->options.block) {
    good = false;
    state_->report(
        "launch-bounds"_rule,
        fmt::format("a tile of {} x {} warps takes a block of {} threads, the kernel has {}",
                    tile.warps_m, tile.warps_n, tile.threads(), state_->options.block));
  }
  if (!good) return out;
  out.state_ = state_;
  const Scalar warp = state_->thread() / 32;
  out.warp_m_ = tile.warps_n == 1 ? warp : warp / tile.warps_n;
  out.warp_n_ = tile.warps_n == 1 ? Scalar(0) : warp % tile.warps_n;
  if (tile.warps_m == 1) out.warp_m_ = 0;
  return out;
}

}  // namespace tartan
