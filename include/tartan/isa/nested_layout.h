// SPDX-License-Identifier: Apache-2.0
// tartan/isa/nested_layout.h - where element i of an array lies in memory, as a tree of modes:
// CuTe's layouts, with extents and strides that are known when the program runs.
//
// A mode is extent:stride, or a tuple of modes. An index runs through the modes from left to right,
// the first one fastest, as the digits of a number; each digit times its stride gives the offset:
//
//   ((2,4),3):((1,8),2)     shape : stride, both nested alike
//
//   index 13 = 1 + 2 * (2 + 4 * 1)         digits 1, 2 and 1
//   offset   = 1 * 1 + 2 * 8 + 1 * 2 = 19
//
// The modes at the top are the array's axes. A matrix of 64 x 64 elements that is stored as 8 x 8
// blocks of 8 x 8, each of them one behind the other (what wgmma without a swizzle reads), has rows
// that step by 8 within a block and by 512 from block to block:
//
//   ((8,8),(8,8)):((8,512),(1,64))
//
// What can be computed with layouts is in tartan/isa/layout_algebra.h; tartan/dsl/layout.h makes
// matrices of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/support/diagnostic.h"

namespace tartan::inline TARTAN_ABI {

/// CuTe's Swizzle<bits, base, shift>: XORs `bits` bits of the element offset, from bit base +
/// shift, into those from bit `base`.
///
///   offset bits   .. S S S . . . D D D b b b       base = 3 (b: untouched), shift = 6, bits = 3:
///                                                  D ^= S
///
/// {3, 3, 3} on rows of 64 16-bit elements (128 bytes) makes eight rows of any 16-byte column fall
/// into eight different bank groups.
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

/// A layout of CuTe: a tree of modes, each an extent and a stride, as a function from an index to
/// an offset.
class NestedLayout {
 public:
  /// extent:stride, one mode that is no tuple. 1:0 without arguments: a single element.
  NestedLayout(std::int64_t extent = 1, std::int64_t stride = 0) : mode_{extent, stride} {}
  /// A tuple of modes: `NestedLayout::tuple({{8, 1}, {4, 16}})` is (8,4):(1,16).
  static NestedLayout tuple(std::vector<NestedLayout> modes);

  /// Reads "((8,2),4):((1,64),16)". A shape alone, "((8,2),4)", gets the strides of a compact array
  /// whose first axis runs fastest: ((1,8),16). A swizzle may stand behind: "(8,64):(64,1)
  /// swizzle<3,3,3>". What is wrong comes with its column.
  static Result<NestedLayout> parse(std::string_view text);

  bool is_tuple() const { return tuple_; }
  const Mode& mode() const { return mode_; }  // of what is no tuple
  /// A tuple's modes. What is none has one: itself.
  std::size_t rank() const { return tuple_ ? modes_.size() : 1; }
  const NestedLayout& operator[](std::size_t axis) const { return tuple_ ? modes_[axis] : *this; }
  int depth() const;  // 0 for extent:stride, 1 for a tuple of those, ...
  /// The modes without their nesting, from left to right: an index means the same to both.
  std::vector<Mode> flat() const;

  std::int64_t size() const;  // how many elements
  /// One more than the largest offset; of a swizzled layout before its swizzle.
  std::int64_t cosize() const;

  /// The offset of element `index`. Beyond size() the last mode goes on, as if it had no end.
  std::int64_t operator()(std::int64_t index) const;
  /// The same with one index for each axis: layout({row, col}).
  std::int64_t operator()(std::span<const std::int64_t> indices) const;
  std::int64_t operator()(std::initializer_list<std::int64_t> indices) const {
    return operator()(std::span(indices.begin(), indices.size()));
  }

  /// The swizzle that offsets go through at the end; of the whole layout, not of its modes.
  const Swizzle& swizzle() const { return swizzle_; }
  NestedLayout swizzled(Swizzle by) const;

  std::string text() const;  // as parse() reads it
  bool operator==(const NestedLayout&) const = default;

  /// Sizes and strides up to here: products of two fit 64 bits.
  static constexpr std::int64_t limit = (std::int64_t{1} << 31) - 1;
  /// Why operations refuse the layout: an extent below 1, a stride below 0, more than `limit`
  /// elements. Empty for layouts that make sense; those that parse() gives do.
  std::string problem() const;

 private:
  std::int64_t plain_offset(std::int64_t index) const;  // without the swizzle

  Mode mode_;
  std::vector<NestedLayout> modes_;
  bool tuple_ = false;
  Swizzle swizzle_;
};

/// A compact array of the shape of `like`, the first axis fastest: (4,(2,3)) gets (1,(4,8)).
NestedLayout compact(const NestedLayout& like);

/// One layout for each of the first axes: `<3:3,(2,4):(1,8)>`.
using Tiler = std::vector<NestedLayout>;
Result<Tiler> parse_tiler(std::string_view text);

}  // namespace tartan::inline TARTAN_ABI
