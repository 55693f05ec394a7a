// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/warp_tile.h"

#include <algorithm>

#include "dsl/layout/fragments.h"
#include "dsl/layout/placement.h"
#include "dsl/layout/tiles.h"
#include "dsl/state/scalars.h"
#include "dsl/units/tcgen05/tensor_product.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/tile_arithmetic.h"

namespace tartan::TARTAN_ABI {

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

namespace {

bool has_line(const auto& fragments, int i, int count, std::string_view line) {
  if (i >= 0 && i < count) return true;
  if (const auto& state = fragments.empty() ? nullptr : detail::state_of(fragments[0]))
    state->log.report("tile-bounds"_rule,
                      fmt::format("{0} of fragments out of bounds: the tile has {1} {0}s of them "
                                  "per warp, found number {2}",
                                  line, count, i));
  return false;
}

Scalar row_of(const auto& tile, const auto& fragments, int i) {
  if (!has_line(fragments, i, tile.down(), "row")) return detail::bad_scalar();
  const FragmentKind& kind = detail::HandleParts::kind(fragments[0]);
  return tile.place().row + tile.place().down(i, kind.fragment().rows);
}

Scalar col_of(const auto& tile, const auto& fragments, int j) {
  if (!has_line(fragments, j, tile.across(), "column")) return detail::bad_scalar();
  const FragmentKind& kind = detail::HandleParts::kind(fragments[0]);
  return tile.place().col + j * kind.fragment().cols;
}

}  // namespace

Scalar WarpTile::row(int i) const { return row_of(*this, fragments_, i); }
Scalar WarpTile::col(int j) const { return col_of(*this, fragments_, j); }
Scalar Accumulator::row(int i) const { return row_of(*this, fragments_, i); }
Scalar Accumulator::col(int j) const { return col_of(*this, fragments_, j); }

Accumulator& Accumulator::operator=(const WarpTile& tile) {
  const auto& from = tile.fragments();
  if (auto* const state = detail::Description::current();
      state && (from.empty() || fragments_.empty()))
    state->log.note_empty(from.empty() ? "the tile" : "the accumulator");
  if (from.empty() || fragments_.empty()) return *this;  // refused calls
  if (tile.across() != across_ || from.size() != fragments_.size()) {
    if (const auto& state = detail::state_of(from[0]))
      state->log.report(
          "fragment-mismatch"_rule,
          fmt::format("assignment of another tile: the accumulator has {} x {} fragments per warp, "
                      "the tile {} x {}",
                      fragments_.size() / static_cast<std::size_t>(across_), across_, tile.down(),
                      tile.across()));
    return *this;
  }
  if (const auto& state = detail::state_of(from[0]);
      state && !detail::is_bad(from[0]) &&
      !detail::same_places(*state, detail::HandleParts::kind(fragments_[0]), place_, tile))
    return *this;
  std::ranges::copy(from, fragments_.begin());
  if (tensor_)
    detail::note(*detail::state_of(from[0]), *tensor_, detail::TensorSum::What::assigned);
  return *this;
}

Accumulator::operator WarpTile() const {
  if (tensor_)
    if (auto* const state = detail::Description::current())
      detail::note(*state, *tensor_, detail::TensorSum::What::read);
  return WarpTile(detail::read(fragments_), across_, place_);
}

WarpTile Accumulator::load(Here at) const {
  if (auto* const state = detail::Description::current()) {
    state->at(at);
    if (tensor_) detail::note(*state, *tensor_, detail::TensorSum::What::read);
  }
  std::vector<Fragment> out = detail::read(fragments_);
  for (Fragment& each : out)
    if (!detail::is_bad(each) && detail::HandleParts::flight(each))
      each =
          detail::make_fragment(*detail::state_of(each), each.kind(), detail::registers_of(each));
  return WarpTile(std::move(out), across_, place_);
}

WarpTile Accumulator::part(int first, int count) const {
  std::vector<Fragment> out;
  for (int i = 0; i < down(); ++i)
    for (Fragment& each : detail::read(std::span(fragments_)
                                           .subspan(static_cast<std::size_t>(i * across_ + first),
                                                    static_cast<std::size_t>(count))))
      out.push_back(std::move(each));
  WarpPlace place = place_;
  place.col = col(first);
  return WarpTile(std::move(out), count, std::move(place));
}

void Accumulator::assign(const WarpTile& part, int first) {
  for (int i = 0; i < part.down(); ++i)
    for (int j = 0; j < part.across(); ++j)
      fragments_[static_cast<std::size_t>(i * across_ + first + j)] = part.fragment(i, j);
}

namespace {

// Fragments of a row that are loaded together, where a whole tile may have too many registers.
constexpr int stored_together = 8, updated_together = 4;

}  // namespace

void Accumulator::each_part(const std::function<void(const WarpTile& part)>& body, Here at) const {
  auto* const state = detail::Description::current();
  if (state) state->at(at);
  if (state && !state->has_body(body != nullptr, "each_part()")) return;
  if (!tensor_ || !state || across_ <= stored_together) return body(load(at));
  for (int first = 0; first < across_; first += stored_together) {
    const int count = std::min(stored_together, across_ - first);
    detail::note(*state, *tensor_, detail::TensorSum::What::read_part, {first, count});
    body(part(first, count));
  }
}

void Accumulator::update(const std::function<WarpTile(const WarpTile& part)>& f, Here at) {
  auto* const state = detail::Description::current();
  if (state) state->at(at);
  if (state && !state->has_body(f != nullptr, "update()")) return;
  if (!tensor_ || !state) {
    *this = f(*this);
    return;
  }
  for (int first = 0; first < across_; first += updated_together) {
    const int count = std::min(updated_together, across_ - first);
    detail::note(*state, *tensor_, detail::TensorSum::What::read_part, {first, count});
    const WarpTile before = part(first, count), now = f(before);
    if (now.fragments().size() != before.fragments().size()) return;  // reported
    assign(now, first);
    detail::note(*state, *tensor_, detail::TensorSum::What::assigned_part, {first, count});
  }
}

WarpTile operand_a(const WarpTile& tile, MmaShape shape, Here at) {
  auto k = detail::builder_of(tile, at);
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
  auto k = detail::builder_of(tile, at);
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
  auto k = detail::builder_of(tile, at);
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
                  {tile.place().col, tile.place().row, tile.place().cols, tile.place().rows});
}

}  // namespace tartan::TARTAN_ABI
