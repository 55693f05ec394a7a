// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/warp_tile.h"

#include <algorithm>

#include "dsl/fragments.h"
#include "dsl/scalars.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/math.h"

namespace tartan::inline TARTAN_ABI {
namespace {

using detail::KernelState;

// A builder for the tile's kernel; none for tiles of refused calls.
std::optional<Builder> builder_of(const WarpTile& tile, Here at) {
  for (const Fragment& each : tile.fragments())
    if (!KernelState::begins(detail::state_of(each), at) || detail::is_bad(each))
      return std::nullopt;
  if (tile.fragments().empty()) return std::nullopt;
  return Builder(detail::state_of(tile.fragments().front()));
}

bool has_body(const WarpTile& tile, bool given) {
  return detail::state_of(tile.fragments().front())->has_body(given, "map");
}

// The place of element i of fragment (y, x) in the block's tile.
ElementPlace place(Builder& k, const WarpTile& tile, int y, int x, int i, Here at) {
  const FragmentKind& kind = tile.fragment(y, x).kind();
  const isa::Fragment shape = kind.fragment();
  ElementPlace out = k.place(kind, i, at);
  out.row = tile.row() + out.row + y * shape.rows;
  out.col = tile.col() + out.col + x * shape.cols;
  return out;
}

// The rows of an accumulator in which a lane has elements: element i is in row index_of(i).
struct LaneRows {
  std::vector<int> first;  // an element of each
  std::vector<int> index;  // of each element
};

LaneRows lane_rows(const FragmentKind& kind) {
  LaneRows out;
  for (int i = 0; i < kind.fragment().elements(); ++i) {
    const int row = kind.coord(0, i).row;
    const auto same = std::find_if(out.first.begin(), out.first.end(),
                                   [&](int j) { return kind.coord(0, j).row == row; });
    out.index.push_back(static_cast<int>(same - out.first.begin()));
    if (same == out.first.end()) out.first.push_back(i);
  }
  return out;
}

// Lanes that share rows of an accumulator: their numbers differ in these bits.
std::vector<int> masks_along_rows(const FragmentKind& kind) {
  std::vector<int> out;
  for (int mask = 1; mask < 32; mask *= 2)
    if (kind.coord(mask, 0).row == kind.coord(0, 0).row) out.push_back(mask);
  return out;
}

RowValues reduce_rows(const WarpTile& tile, Scalar (*combine)(const Scalar&, const Scalar&),
                      Here at) {
  auto k = builder_of(tile, at);
  if (!k) return RowValues(2, detail::bad_scalar());
  const FragmentKind& kind = tile.fragment(0, 0).kind();
  if (tile.across() * kind.fragment().cols < tile.place().cols) {
    detail::state_of(tile.fragment(0, 0))
        ->log.report("tile-divide"_rule,
                     fmt::format("rows are divided among warps: this one has {} of {} columns; "
                                 "expected Tile::warps_n = 1",
                                 tile.across() * kind.fragment().cols, tile.place().cols));
    return RowValues(2, detail::bad_scalar());
  }
  const LaneRows rows = lane_rows(kind);
  RowValues out;
  for (int y = 0; y < tile.down(); ++y) {
    std::vector<std::optional<Scalar>> sums(rows.first.size());
    for (int x = 0; x < tile.across(); ++x) {
      const std::vector<Scalar> elements = k->elements(tile.fragment(y, x), at);
      for (std::size_t i = 0; i < elements.size(); ++i) {
        auto& sum = sums[static_cast<std::size_t>(rows.index[i])];
        sum = sum ? combine(*sum, elements[i]) : elements[i];
      }
    }
    for (const auto& sum : sums) {
      Scalar all = *sum;
      for (const int mask : masks_along_rows(kind)) all = combine(all, shuffle_xor(all, mask));
      out.push_back(all);
    }
  }
  return out;
}

Scalar plus(const Scalar& x, const Scalar& y) { return x + y; }

}  // namespace

const Fragment& WarpTile::fragment(int i, int j) const {
  static const Fragment none;
  if (i >= 0 && i < down() && j >= 0 && j < across_)
    return fragments_[static_cast<std::size_t>(i * across_ + j)];
  if (const auto& state = fragments_.empty() ? nullptr : detail::state_of(fragments_[0]))
    state->log.report(
        "tile-bounds"_rule,
        fmt::format(
            "fragment index out of bounds: the tile has {} x {} fragments per warp, found ({}, {})",
            down(), across_, i, j));
  return none;
}

Accumulator& Accumulator::operator=(const WarpTile& tile) {
  const auto& from = tile.fragments();
  for (std::size_t i = 0; i < std::min(fragments_.size(), from.size()); ++i)
    fragments_[i] = from[i];
  return *this;
}

RowVariable& RowVariable::operator=(const RowValues& values) {
  for (std::size_t i = 0; i < std::min(values_.size(), values.size()); ++i) values_[i] = values[i];
  return *this;
}

Accumulator::operator WarpTile() const {
  return WarpTile(detail::read(fragments_), across_, place_);
}

WarpTile map(const WarpTile& tile, const std::function<Scalar(Scalar, ElementPlace)>& f, Here at) {
  auto k = builder_of(tile, at);
  if (!k || !has_body(tile, f != nullptr)) return {};
  std::vector<Fragment> out;
  for (int y = 0; y < tile.down(); ++y)
    for (int x = 0; x < tile.across(); ++x) {
      std::vector<Scalar> elements = k->elements(tile.fragment(y, x), at);
      for (std::size_t i = 0; i < elements.size(); ++i)
        elements[i] = f(elements[i], place(*k, tile, y, x, static_cast<int>(i), at));
      out.push_back(k->pack(tile.fragment(y, x).kind(), elements, at));
    }
  return WarpTile(std::move(out), tile.across(), tile.place());
}

WarpTile map_rows(const WarpTile& tile, const RowValues& rows,
                  const std::function<Scalar(Scalar, Scalar)>& f, Here at) {
  auto k = builder_of(tile, at);
  if (!k || !has_body(tile, f != nullptr)) return {};
  const LaneRows lanes = lane_rows(tile.fragment(0, 0).kind());
  if (rows.size() != lanes.first.size() * static_cast<std::size_t>(tile.down())) {
    detail::state_of(tile.fragment(0, 0))
        ->log.report(
            "operand-count"_rule,
            fmt::format("wrong number of row values: the tile has {} rows per lane, found {}",
                        lanes.first.size() * static_cast<std::size_t>(tile.down()), rows.size()));
    return {};
  }
  std::vector<Fragment> out;
  for (int y = 0; y < tile.down(); ++y)
    for (int x = 0; x < tile.across(); ++x) {
      std::vector<Scalar> elements = k->elements(tile.fragment(y, x), at);
      for (std::size_t i = 0; i < elements.size(); ++i)
        elements[i] = f(elements[i], rows[static_cast<std::size_t>(y) * lanes.first.size() +
                                          static_cast<std::size_t>(lanes.index[i])]);
      out.push_back(k->pack(tile.fragment(y, x).kind(), elements, at));
    }
  return WarpTile(std::move(out), tile.across(), tile.place());
}

WarpTile convert(const WarpTile& tile, Type to, Here at) {
  auto k = builder_of(tile, at);
  if (!k) return {};
  std::vector<Fragment> out;
  for (const Fragment& each : tile.fragments()) out.push_back(k->convert(each, to, at));
  return WarpTile(std::move(out), tile.across(), tile.place());
}

RowValues row_maximum(const WarpTile& tile, Here at) { return reduce_rows(tile, maximum, at); }
RowValues row_sum(const WarpTile& tile, Here at) { return reduce_rows(tile, plus, at); }

std::vector<Scalar> row_places(const WarpTile& tile, Here at) {
  auto k = builder_of(tile, at);
  if (!k) return std::vector<Scalar>(2, detail::bad_scalar());
  std::vector<Scalar> out;
  for (int y = 0; y < tile.down(); ++y)
    for (const int i : lane_rows(tile.fragment(y, 0).kind()).first)
      out.push_back(place(*k, tile, y, 0, i, at).row);
  return out;
}

RowValues map(const RowValues& x, const RowValues& y,
              const std::function<Scalar(Scalar, Scalar)>& f) {
  auto* const state = detail::Description::current();
  if (!f && state) state->has_body(false, "map");
  RowValues out;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    out.push_back(f ? f(x[i], y[i]) : detail::bad_scalar());
  return out;
}

WarpTile operand_a(const WarpTile& tile, MmaShape shape, Here at) {
  auto k = builder_of(tile, at);
  if (!k) return {};
  const FragmentKind& kind = tile.fragment(0, 0).kind();
  const int together = shape == m16n8k16 ? 2 : 1;  // accumulators in a fragment of A
  const bool good_shape = shape == m16n8k16 || shape == m16n8k8;
  if (!good_shape || kind.operand != Operand::c || kind.shape.wmma || kind.shape.shape.m != 16 ||
      bits(kind.type) != 16 || tile.across() % together) {
    detail::state_of(tile.fragment(0, 0))
        ->log.report(
            "wrong-role"_rule,
            fmt::format("operand_a: expected 16-bit accumulators of m16n8, an even number per "
                        "row for A of m16n8k16 or any number for A of m16n8k8; found A of {} "
                        "and {} of {}; convert() them to f16 or bf16",
                        shape.text(), tile.across(), kind.text()));
    return {};
  }
  std::vector<Fragment> out;
  for (int y = 0; y < tile.down(); ++y)
    for (int x = 0; x < tile.across(); x += together) {
      std::vector<Scalar> registers;
      for (int i = 0; i < together; ++i)
        for (const Scalar& each : k->registers(tile.fragment(y, x + i), at))
          registers.push_back(each);
      out.push_back(k->fragment(tartan::operand_a(shape, kind.type), registers, at));
    }
  return WarpTile(std::move(out), tile.across() / together, tile.place());
}

namespace {

// The accumulators that operand_b() and the like accept.
bool takes_accumulators(const WarpTile& tile, const MmaShape& shape, int together,
                        std::string_view what, std::string_view number) {
  const FragmentKind& kind = tile.fragment(0, 0).kind();
  const bool good_shape = shape == m16n8k16 || shape == m16n8k8;
  if (good_shape && kind.operand == Operand::c && !kind.shape.wmma && kind.shape.shape.m == 16 &&
      bits(kind.type) == 16 && tile.across() % together == 0)
    return true;
  detail::state_of(tile.fragment(0, 0))
      ->log.report("wrong-role"_rule,
                   fmt::format("{}: expected B of m16n8k16 or m16n8k8 and {}16-bit accumulators of "
                               "m16n8, found B of {} and {} of {}; convert() them to f16 or bf16",
                               what, number, shape.text(), tile.across(), kind.text()));
  return false;
}

}  // namespace

WarpTile operand_b(const WarpTile& tile, MmaShape shape, Here at) {
  auto k = builder_of(tile, at);
  if (!k || !takes_accumulators(tile, shape, 1, "operand_b", "")) return {};
  const Type type = tile.fragment(0, 0).kind().type;
  const int halves = shape == m16n8k16 ? 1 : 2;  // fragments of B above each other, for each
  std::vector<Fragment> out;
  for (int y = 0; y < tile.down() * halves; ++y)
    for (int x = 0; x < tile.across(); ++x) {
      std::vector<Scalar> registers = k->registers(tile.fragment(y / halves, x), at);
      if (halves == 2) registers = {registers[static_cast<std::size_t>(y % 2)]};
      for (Scalar& each : registers)
        each = k->instruction("movmatrix.sync.aligned.m8n8.trans.b16", {each}, at)[0];
      out.push_back(k->fragment(tartan::operand_b(shape, type), registers, at));
    }
  return WarpTile(std::move(out), tile.across(), tile.place());
}

WarpTile operand_b_transposed(const WarpTile& tile, MmaShape shape, Here at) {
  const int together = shape == m16n8k16 ? 2 : 1;  // fragments along k
  auto k = builder_of(tile, at);
  if (!k || !takes_accumulators(tile, shape, together, "operand_b_transposed",
                                together == 2 ? "an even number per row of " : ""))
    return {};
  const Type type = tile.fragment(0, 0).kind().type;
  std::vector<Fragment> out;
  for (int x = 0; x < tile.across(); x += together)
    for (int y = 0; y < tile.down(); ++y)
      for (std::size_t half = 0; half < 2; ++half) {  // the upper and the lower eight rows
        std::vector<Scalar> registers;
        for (int i = 0; i < together; ++i)
          registers.push_back(k->registers(tile.fragment(y, x + i), at)[half]);
        out.push_back(k->fragment(tartan::operand_b(shape, type), registers, at));
      }
  return WarpTile(std::move(out), 2 * tile.down(),
                  {tile.col(), tile.row(), tile.place().cols, tile.place().rows});
}

WarpTile relu(const WarpTile& tile, Here at) {
  return map(
      tile, [](const Scalar& x, const ElementPlace&) { return relu(x); }, at);
}

WarpTile add(const WarpTile& x, const WarpTile& y, Here at) {
  auto k = builder_of(x, at);
  if (!k || !builder_of(y, at)) return {};
  if (x.down() != y.down() || x.across() != y.across() ||
      !(x.fragment(0, 0).kind() == y.fragment(0, 0).kind())) {
    detail::state_of(x.fragment(0, 0))
        ->log.report("fragment-mismatch"_rule,
                     fmt::format("add: tiles of different shapes: {} x {} of {} and {} x {} of {}",
                                 x.down(), x.across(), x.fragment(0, 0).kind().text(), y.down(),
                                 y.across(), y.fragment(0, 0).kind().text()));
    return {};
  }
  std::vector<Fragment> out;
  for (std::size_t i = 0; i < x.fragments().size(); ++i) {
    std::vector<Scalar> sums = k->elements(x.fragments()[i], at);
    const std::vector<Scalar> more = k->elements(y.fragments()[i], at);
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += more[j];
    out.push_back(k->pack(x.fragments()[i].kind(), sums, at));
  }
  return WarpTile(std::move(out), x.across(), x.place());
}

}  // namespace tartan::inline TARTAN_ABI
