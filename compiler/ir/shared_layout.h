// SPDX-License-Identifier: Apache-2.0
// compiler/ir/shared_layout.h - the places of a kernel's arrays in shared memory. Not
// installed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::ir {

/// In the order of their declarations; a small array may take a gap before one that is aligned.
class SharedLayout {
 public:
  /// Where an array begins.
  std::int64_t place(std::int64_t bytes, std::int64_t align) {
    for (auto& [begin, end] : gaps_) {
      const std::int64_t at = up(begin, align);
      if (at + bytes > end) continue;
      begin = at + bytes;
      return at;
    }
    const std::int64_t at = next(align);
    if (at > bytes_) gaps_.emplace_back(bytes_, at);
    bytes_ = at + bytes;
    return at;
  }
  /// Where an array would begin that has no room in a gap.
  std::int64_t next(std::int64_t align) const { return up(bytes_, align); }
  std::int64_t bytes() const { return bytes_; }

 private:
  static std::int64_t up(std::int64_t x, std::int64_t align) {
    return (x + align - 1) / align * align;
  }

  std::int64_t bytes_ = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps_;
};

}  // namespace tartan::TARTAN_ABI::ir
