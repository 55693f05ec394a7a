// SPDX-License-Identifier: Apache-2.0
// Whether operands in registers are those of a tiled MMA.
#include <algorithm>

#include "dsl/layout/fragments.h"
#include "dsl/layout/placement.h"
#include "dsl/tile/tiled_parts.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

// What makes operands of this product of accumulators; nothing if they are of its shape.
std::string other_shape(const TiledParts& mma, Operand operand, const FragmentKind& found) {
  if (found.shape == mma.kind.shape) return {};
  return fmt::format(" of {}; operand_{}(tile, {}) makes those of {}", found.shape.text(),
                     name(operand), mma.kind.shape.text(), *mma.text);
}

}  // namespace

std::string_view letter(Operand operand) { return operand == Operand::a ? "A" : "B"; }

bool takes_fragments(const TiledParts& mma, Operand operand, const WarpTile& given, int down,
                     int across) {
  const std::string what = fmt::format("{} of the tiled MMA", letter(operand));
  if (given.fragments().empty()) {
    mma.state->log.note_empty(what);
    return false;
  }
  if (std::ranges::any_of(given.fragments(), [](const Fragment& each) { return is_bad(each); }))
    return false;
  const FragmentKind& found = given.fragment(0, 0).kind();
  const Type element = operand == Operand::a ? mma.kind.a : mma.kind.b;
  if (found.operand != operand) {
    mma.state->log.report(
        "wrong-role"_rule,
        fmt::format(
            "{} in registers: expected operand {} of {}, found {}; operand_{}(convert(tile, "
            "{})) makes it of accumulators",
            what, letter(operand), *mma.text, found.text(), name(operand), name(element)));
    return false;
  }
  if (found.type != element) {
    mma.state->log.report(
        "fragment-mismatch"_rule,
        fmt::format("{} in registers: expected elements of {}, found {}; convert() the tile to {} "
                    "before operand_{}()",
                    what, name(element), name(found.type), name(element), name(operand)));
    return false;
  }
  if (given.down() != down || given.across() != across) {
    mma.state->log.report(
        "fragment-mismatch"_rule,
        fmt::format("wrong number of fragments of {} per warp: expected {} x {}, found {} x {}{}",
                    letter(operand), down, across, given.down(), given.across(),
                    other_shape(mma, operand, found)));
    return false;
  }
  if (const std::string other = other_shape(mma, operand, found); !other.empty()) {
    mma.state->log.report("fragment-mismatch"_rule,
                          fmt::format("{} in registers: expected fragments of {}, found those{}",
                                      what, mma.kind.shape.text(), other));
    return false;
  }
  return std::ranges::all_of(given.fragments(),
                             [&](const Fragment& each) { return mma.state->owns(each, what); }) &&
         at_place(mma, operand, given);
}

}  // namespace tartan::TARTAN_ABI::detail
