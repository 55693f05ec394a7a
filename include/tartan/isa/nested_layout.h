// SPDX-License-Identifier: Apache-2.0
// tartan/isa/nested_layout.h - a tree of modes that maps element i of an array to memory: CuTe's
// layouts, with extents and strides known at run time.
//
// A mode is extent:stride, or a tuple of modes. An index is split over the modes from left to
// right, the first one fastest, like the digits of a number; the offset is the sum of digit times
// stride:
//
//   ((2,4),3):((1,8),2)     shape : stride, both nested alike
//
//   index 13 = 1 + 2 * (2 + 4 * 1)         digits 1, 2 and 1
//   offset   = 1 * 1 + 2 * 8 + 1 * 2 = 19
//
// The modes at the top are the array's axes. A matrix of 64 x 64 elements that is stored as 8 x 8
// contiguous blocks of 8 x 8 (what wgmma without a swizzle reads) has rows with stride 8 within a
// block and 512 from block to block:
//
//   ((8,8),(8,8)):((8,512),(1,64))
//
// tartan/isa/layout_algebra.h computes with layouts; tartan/dsl/layout.h makes matrices of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI {

/// CuTe's Swizzle<bits, base, shift>: XORs `bits` bits of the element offset, from bit base +
/// shift, into those from bit `base`.
///
///   offset bits   .. S S S . . . D D D b b b       base = 3 (b: untouched), shift = 6, bits = 3:
///                                                  D ^= S
///
/// {3, 3, 3} on rows of 64 16-bit elements (128 bytes) spreads a 16-byte column of eight rows over
/// eight different bank groups.
struct Swizzle {
  int bits = 0, base = 0, shift = 0;
  constexpr std::int64_t operator()(std::int64_t offset) const {
    const std::int64_t source = offset >> (base + shift) & ((std::int64_t{1} << bits) - 1);
    return offset ^ source << base;
  }
  bool operator==(const Swizzle&) const = default;
};

/// One extent and its stride.
struct Mode {
  std::int64_t extent = 1, stride = 0;
  bool operator==(const Mode&) const = default;
};

/// A CuTe layout: a tree of modes, each an extent and a stride, as a function from index to offset.
class NestedLayout {
 public:
  /// extent:stride, a single mode. Without arguments 1:0: a single element.
  NestedLayout(std::int64_t extent = 1, std::int64_t stride = 0) : mode_{extent, stride} {}
  /// A tuple of modes: `NestedLayout::tuple({{8, 1}, {4, 16}})` is (8,4):(1,16).
  static NestedLayout tuple(std::vector<NestedLayout> modes);

  /// Parses "((8,2),4):((1,64),16)". A shape alone, "((8,2),4)", gets compact strides, the first
  /// axis fastest: ((1,8),16). A swizzle may follow: "(8,64):(64,1) swizzle<3,3,3>". Diagnostics
  /// have a column.
  static Result<NestedLayout> parse(std::string_view text);

  bool is_tuple() const { return tuple_; }
  const Mode& mode() const { return mode_; }  // of a single mode
  /// A tuple's modes. A single mode has one: itself.
  std::size_t rank() const { return tuple_ ? modes_.size() : 1; }
  const NestedLayout& operator[](std::size_t axis) const { return tuple_ ? modes_[axis] : *this; }
  int depth() const;  // 0 for extent:stride, 1 for a tuple of those, ...
  /// The modes without their nesting, from left to right: the same function of an index.
  std::vector<Mode> flat() const;

  std::int64_t size() const;  // how many elements
  /// One more than the largest offset; of a swizzled layout before its swizzle.
  std::int64_t cosize() const;

  /// The offset of element `index`. Beyond size() the last mode continues without a limit.
  std::int64_t operator()(std::int64_t index) const;
  /// Same with one index for each axis: layout({row, col}).
  std::int64_t operator()(std::span<const std::int64_t> indices) const;
  std::int64_t operator()(std::initializer_list<std::int64_t> indices) const {
    return operator()(std::span(indices.begin(), indices.size()));
  }

  /// The swizzle applied to every offset; it belongs to the whole layout, not to its modes.
  const Swizzle& swizzle() const { return swizzle_; }
  NestedLayout swizzled(Swizzle by) const;

  std::string text() const;  // as parse() reads it
  bool operator==(const NestedLayout&) const = default;

  /// The limit of sizes and strides: products of two fit 64 bits.
  static constexpr std::int64_t limit = (std::int64_t{1} << 31) - 1;
  /// Why operations reject the layout: an extent below 1, a stride below 0, more than `limit`
  /// elements. Empty for valid layouts, such as those from parse().
  std::string problem() const;

 private:
  std::int64_t plain_offset(std::int64_t index) const;  // without the swizzle

  Mode mode_;
  std::vector<NestedLayout> modes_;
  bool tuple_ = false;
  Swizzle swizzle_;
};

/// A compact array with the shape of `like`, the first axis fastest: (4,(2,3)) gets (1,(4,8)).
NestedLayout compact(const NestedLayout& like);

/// One layout for each of the first axes: `<3:3,(2,4):(1,8)>`.
using Tiler = std::vector<NestedLayout>;
Result<Tiler> parse_tiler(std::string_view text);

}  // namespace tartan::TARTAN_ABI
