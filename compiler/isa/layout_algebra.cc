// SPDX-License-Identifier: Apache-2.0
#include "tartan/isa/layout_algebra.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::TARTAN_ABI {
namespace {

using Modes = std::vector<NestedLayout>;

Diags none(std::string why) { return Diags::one("layout-mismatch"_rule, {}, std::move(why)); }

// Checks the requirements of every operation; no diagnostics if they hold.
Diags check(std::string_view operation, std::initializer_list<const NestedLayout*> layouts,
            const NestedLayout* may_be_swizzled = nullptr) {
  Diags out;
  for (const NestedLayout* layout : layouts) {
    if (const std::string problem = layout->problem(); !problem.empty())
      out.append(none(fmt::format("{} of {}: {}", operation, layout->text(), problem)));
    else if (layout->swizzle().bits && layout != may_be_swizzled)
      out.append(none(fmt::format("{} of {}: the swizzle allows no result that is a layout",
                                  operation, layout->text())));
  }
  return out;
}

// Returns the layout if its numbers are in bounds.
Result<NestedLayout> bounded(std::string_view operation, NestedLayout layout) {
  if (const std::string problem = layout.problem(); !problem.empty())
    return none(fmt::format("{}: the result would be {}: {}", operation, layout.text(), problem));
  return layout;
}

// Turns modes without nesting into a layout: 1:0, one mode or a tuple.
NestedLayout unflattened(const std::vector<Mode>& modes) {
  Modes out;
  for (const auto& [extent, stride] : modes) out.emplace_back(extent, stride);
  if (out.empty()) return {};
  return out.size() == 1 ? out[0] : NestedLayout::tuple(std::move(out));
}

bool continues(const Mode& mode, const Mode& next) {
  return next.stride == mode.extent * mode.stride;
}

std::vector<Mode> coalesced(const NestedLayout& layout) {
  std::vector<Mode> out;
  for (const Mode& mode : layout.flat()) {
    if (mode.extent == 1) continue;
    if (!out.empty() && continues(out.back(), mode)) out.back().extent *= mode.extent;
    else out.push_back(mode);
  }
  return out;
}

// The same if the last mode has no end: its stride counts even if its extent is 1.
std::vector<Mode> coalesced_without_end(const NestedLayout& layout) {
  std::vector<Mode> out;
  const std::vector<Mode> flat = layout.flat();
  for (std::size_t i = 0; i < flat.size(); ++i) {
    if (flat[i].extent == 1 && i + 1 < flat.size()) continue;
    if (!out.empty() && continues(out.back(), flat[i])) out.back().extent *= flat[i].extent;
    else out.push_back(flat[i]);
  }
  return out;
}

// Composition with the modes of a layout, one by one.
class Picker {
 public:
  Picker(const NestedLayout& a, const NestedLayout& b)
      : modes_(coalesced_without_end(a)),
        what_(fmt::format("composition of {} with {}", a.text(), b.text())),
        highest_(modes_.size()) {}

  Result<NestedLayout> pick(const NestedLayout& b) {
    if (!b.is_tuple()) return pick(b.mode());
    Modes out;
    for (std::size_t i = 0; i < b.rank(); ++i) {
      const auto mode = pick(b[i]);
      if (!mode) return mode;
      out.push_back(*mode);
    }
    return NestedLayout::tuple(std::move(out));
  }

 private:
  // The layout of the offsets that the steps reach, mode by mode.
  Result<NestedLayout> pick(Mode steps) {
    if (steps.extent == 1 || steps.stride == 0) return NestedLayout(steps.extent, 0);
    std::vector<Mode> out;
    for (std::size_t i = 0; i + 1 < modes_.size(); ++i) {
      const std::int64_t extent = modes_[i].extent;
      if (steps.stride >= extent) {
        if (steps.stride % extent)
          return refused("stride {} is not a multiple of the extent {}", steps.stride, extent);
        steps.stride /= extent;
        continue;
      }
      const std::int64_t reached = (extent + steps.stride - 1) / steps.stride;
      if (steps.extent <= reached) return take(i, steps, out);
      if (extent % steps.stride)
        return refused("stride {} does not divide the extent {}", steps.stride, extent);
      if (steps.extent % reached)
        return refused("{} of {} elements in the extent {} do not divide the required {}", reached,
                       extent, extent, steps.extent);
      if (auto taken = take(i, {reached, steps.stride}, out); !taken) return taken;
      steps = {steps.extent / reached, 1};
    }
    return take(modes_.size() - 1, steps, out);
  }

  // Adds a part to `out`. The combined reach of b's modes must not carry into a's next mode.
  Result<NestedLayout> take(std::size_t i, Mode steps, std::vector<Mode>& out) {
    highest_[i] += (steps.extent - 1) * steps.stride;
    if (i + 1 < modes_.size() && highest_[i] >= modes_[i].extent)
      return refused("modes that together reach {} exceed the extent {}", highest_[i],
                     modes_[i].extent);
    out.push_back({steps.extent, steps.stride * modes_[i].stride});
    return unflattened(out);
  }

  template <typename... Numbers>
  Diags refused(fmt::format_string<const Numbers&...> why, const Numbers&... numbers) const {
    return none(what_ + ": " + fmt::format(why, numbers...));
  }

  std::vector<Mode> modes_;  // of a
  std::string what_;
  std::vector<std::int64_t> highest_;  // highest digit reached in each mode
};

Modes axes(const NestedLayout& layout) {
  Modes out;
  for (std::size_t i = 0; i < layout.rank(); ++i) out.push_back(layout[i]);
  return out;
}

// Applies `operation` to each axis that the tiler has a layout for.
template <typename Operation>
Result<NestedLayout> by_axis(std::string_view name, const NestedLayout& layout, const Tiler& tiler,
                             const Operation& operation) {
  if (Diags wrong = check(name, {&layout}, &layout); !wrong.empty()) return wrong;
  if (tiler.size() > layout.rank())
    return none(fmt::format("{} of {}: rank mismatch: it has {} modes, the tiler has {}", name,
                            layout.text(), layout.rank(), tiler.size()));
  Modes out = axes(layout);
  for (std::size_t i = 0; i < tiler.size(); ++i) {
    const Result<NestedLayout> axis = operation(out[i].swizzled({}), tiler[i]);
    if (!axis) return axis;
    out[i] = *axis;
  }
  return bounded(name, NestedLayout::tuple(std::move(out)).swizzled(layout.swizzle()));
}

// The tile's modes in one tuple, the others in another.
struct Zipped {
  Modes tile, rest;
  Swizzle swizzle;
};

Result<Zipped> zipped(const NestedLayout& layout, const Tiler& tiler) {
  const auto divided = logical_divide(layout, tiler);
  if (!divided) return divided.diags();
  Zipped out;
  out.swizzle = divided->swizzle();
  for (std::size_t i = 0; i < divided->rank(); ++i) {
    const NestedLayout& axis = (*divided)[i];
    if (i < tiler.size()) out.tile.push_back(axis[0]);
    out.rest.push_back(i < tiler.size() ? axis[1] : axis);
  }
  return out;
}

NestedLayout as_tuple(const NestedLayout& layout) {
  return layout.is_tuple() ? layout : NestedLayout::tuple({layout});
}

// Pairs of axes, one of each layout, the block's first or last.
Result<NestedLayout> paired_product(std::string_view name, const NestedLayout& block,
                                    const NestedLayout& copies, bool block_first) {
  const auto both = logical_product(as_tuple(block), as_tuple(copies));
  if (!both) return both;
  const std::size_t rank = std::max(block.rank(), copies.rank());
  const auto axis = [](const NestedLayout& layout, std::size_t i) {
    return i < layout.rank() ? layout[i] : NestedLayout();
  };
  Modes out;
  for (std::size_t i = 0; i < rank; ++i) {
    const NestedLayout inner = axis((*both)[0], i), outer = axis((*both)[1], i);
    out.push_back(NestedLayout::tuple(block_first ? Modes{inner, outer} : Modes{outer, inner}));
  }
  return bounded(name, NestedLayout::tuple(std::move(out)));
}

// A mode, and the index of the element at which its second digit starts.
struct Placed {
  Mode mode;
  std::int64_t index;
};

// The modes by ascending stride, without those of stride 0.
std::vector<Placed> ascending(const NestedLayout& layout) {
  std::vector<Placed> out;
  std::int64_t index = 1;
  for (const Mode& mode : coalesced(layout)) {
    if (mode.stride) out.push_back({mode, index});
    index *= mode.extent;
  }
  std::ranges::stable_sort(out, {}, [](const Placed& each) { return each.mode.stride; });
  return out;
}

}  // namespace

NestedLayout coalesce(const NestedLayout& layout) {
  return unflattened(coalesced(layout)).swizzled(layout.swizzle());
}

NestedLayout coalesce_axes(const NestedLayout& layout) {
  if (!layout.is_tuple()) return layout;
  Modes out;
  for (const NestedLayout& axis : axes(layout)) out.push_back(coalesce(axis));
  return NestedLayout::tuple(std::move(out)).swizzled(layout.swizzle());
}

Result<NestedLayout> composition(const NestedLayout& a, const NestedLayout& b) {
  if (Diags wrong = check("composition", {&a, &b}, &a); !wrong.empty()) return wrong;
  const auto out = Picker(a, b).pick(b);
  return out ? bounded("composition", out->swizzled(a.swizzle())) : out;
}

Result<NestedLayout> composition(const NestedLayout& a, const Tiler& tiler) {
  return by_axis("composition", a, tiler, [](const NestedLayout& axis, const NestedLayout& tile) {
    return composition(axis, tile);
  });
}

Result<NestedLayout> with_shape(const NestedLayout& layout, const NestedLayout& shape) {
  if (layout.size() != shape.size())
    return none(fmt::format("with_shape: {} has {} elements, the new shape has {}", layout.text(),
                            layout.size(), shape.size()));
  return composition(layout, compact(shape));
}

Result<NestedLayout> complement(const NestedLayout& layout, std::int64_t size) {
  if (Diags wrong = check("complement", {&layout}); !wrong.empty()) return wrong;
  if (size < 1 || size > NestedLayout::limit)
    return none(fmt::format("complement: expected a size from 1 to {}, found {}",
                            NestedLayout::limit, size));
  std::vector<Mode> modes;
  for (const Mode& mode : layout.flat())
    if (mode.extent > 1 && mode.stride > 0) modes.push_back(mode);
  std::ranges::sort(modes, {}, &Mode::stride);
  std::vector<Mode> gaps;
  std::int64_t covered = 1;
  for (const auto& [extent, stride] : modes) {
    if (stride % covered)
      return none(fmt::format(
          "complement of {}: the stride {} is not a multiple of {}, which the smaller modes cover",
          layout.text(), stride, covered));
    gaps.push_back({stride / covered, covered});
    covered = extent * stride;
    if (covered > NestedLayout::limit)
      return none(fmt::format("complement of {}: it covers more than {} elements", layout.text(),
                              NestedLayout::limit));
  }
  gaps.push_back({(size + covered - 1) / covered, covered});
  return bounded("complement", coalesce(unflattened(gaps)));
}

Result<NestedLayout> logical_divide(const NestedLayout& layout, const NestedLayout& tile) {
  if (Diags wrong = check("logical_divide", {&layout, &tile}, &layout); !wrong.empty())
    return wrong;
  const auto rest = complement(tile, layout.size());
  if (!rest) return rest;
  return composition(layout, NestedLayout::tuple({tile, *rest}));
}

Result<NestedLayout> logical_divide(const NestedLayout& layout, const Tiler& tiler) {
  return by_axis("logical_divide", layout, tiler,
                 [](const NestedLayout& axis, const NestedLayout& tile) {
                   return logical_divide(axis, tile);
                 });
}

Result<NestedLayout> zipped_divide(const NestedLayout& layout, const Tiler& tiler) {
  auto parts = zipped(layout, tiler);
  if (!parts) return parts.diags();
  return NestedLayout::tuple({NestedLayout::tuple(std::move(parts->tile)),
                              NestedLayout::tuple(std::move(parts->rest))})
      .swizzled(parts->swizzle);
}

Result<NestedLayout> tiled_divide(const NestedLayout& layout, const Tiler& tiler) {
  auto parts = zipped(layout, tiler);
  if (!parts) return parts.diags();
  Modes out = std::move(parts->rest);
  out.insert(out.begin(), NestedLayout::tuple(std::move(parts->tile)));
  return NestedLayout::tuple(std::move(out)).swizzled(parts->swizzle);
}

Result<NestedLayout> logical_product(const NestedLayout& layout, const NestedLayout& copies) {
  if (Diags wrong = check("logical_product", {&layout, &copies}); !wrong.empty()) return wrong;
  std::int64_t size = 0;
  if (__builtin_mul_overflow(layout.size(), copies.cosize(), &size)) size = INT64_MAX;
  const auto places = complement(layout, size);
  if (!places) return places;
  const auto rest = composition(*places, copies);
  if (!rest) return rest;
  return bounded("logical_product", NestedLayout::tuple({layout, *rest}));
}

Result<NestedLayout> blocked_product(const NestedLayout& block, const NestedLayout& copies) {
  return paired_product("blocked_product", block, copies, true);
}

Result<NestedLayout> raked_product(const NestedLayout& block, const NestedLayout& copies) {
  return paired_product("raked_product", block, copies, false);
}

Result<NestedLayout> right_inverse(const NestedLayout& layout) {
  if (Diags wrong = check("right_inverse", {&layout}); !wrong.empty()) return wrong;
  std::vector<Mode> out;
  std::int64_t next = 1;
  for (const auto& [mode, index] : ascending(layout)) {
    if (mode.stride != next) break;
    out.push_back({mode.extent, index});
    next *= mode.extent;
  }
  return bounded("right_inverse", coalesce(unflattened(out)));
}

// Splits the offset into digits: each mode's own, with the room up to the next stride.
Result<NestedLayout> left_inverse(const NestedLayout& layout) {
  if (Diags wrong = check("left_inverse", {&layout}); !wrong.empty()) return wrong;
  const std::vector<Placed> modes = ascending(layout);
  if (std::ranges::any_of(coalesced(layout), [](const Mode& mode) { return mode.stride == 0; }))
    return none(fmt::format("left_inverse of {}: not injective, a stride is 0", layout.text()));
  std::vector<Mode> out;
  if (!modes.empty()) out.push_back({modes[0].mode.stride, 0});
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const auto [extent, stride] = modes[i].mode;
    const std::int64_t next = i + 1 < modes.size() ? modes[i + 1].mode.stride : extent * stride;
    if (next % stride || next < extent * stride)
      return none(
          fmt::format("left_inverse of {}: next to {}:{}, the stride {} must be a multiple of {} "
                      "and at least {}",
                      layout.text(), extent, stride, next, stride, extent * stride));
    out.push_back({next / stride, modes[i].index});
  }
  return bounded("left_inverse", coalesce(unflattened(out)));
}

}  // namespace tartan::TARTAN_ABI
