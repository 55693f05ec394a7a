// SPDX-License-Identifier: Apache-2.0
// runtime/slice.h - a part of an array, as Python writes it: "0:4,0:8", "3", ":,-1".
//
//   const auto slice = Slice::parse("0:4,:8");
//   const auto ranges = slice->of({256, 128});    // {0, 4}, {0, 8}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI {

/// Indices of one dimension: [first, last).
struct IndexRange {
  std::uint64_t first = 0, last = 0;
  bool operator==(const IndexRange&) const = default;
};

class Slice {
 public:
  /// Nothing where it is not written so. An empty text is all of the array.
  static std::optional<Slice> parse(std::string_view text);

  /// Of each dimension; those that the text leaves out are whole, ends beyond the last index are
  /// the last one, and negative numbers count from the end. The diagnostic (rule "usage") has no
  /// place.
  Result<std::vector<IndexRange>> of(const std::vector<std::uint64_t>& shape) const;

  /// As it was written, without blanks and brackets.
  const std::string& text() const { return text_; }

 private:
  struct Part {
    std::optional<std::int64_t> first, last;
    bool single = false;  // one index
  };
  std::string text_;
  std::vector<Part> parts_;
};

}  // namespace tartan::TARTAN_ABI
