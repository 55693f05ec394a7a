// SPDX-License-Identifier: Apache-2.0
// tools/half_blocks.h - pictures of colours in a terminal: an upper half block (U+2580) is two
// pixels, one above the other.
//
//   Picture picture{.title = "a: 16 x 16 f16", .pixels = ...};
//   fmt::print("{}", pictures({picture}, 80));
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tartan::tools {

/// Pixels, as colours of 256-colour terminals, and what stands around them.
struct Picture {
  std::string title;
  std::vector<std::vector<int>> pixels = {};  // by row
  std::vector<std::string> rows = {};         // the heading of each row
  std::vector<std::string> columns = {};      // of each column; every eighth is written
};

/// The pictures side by side, as far as `width` columns have room, else below each other. One that
/// is wider than that is cut into panels.
std::string pictures(const std::vector<Picture>& all, std::size_t width);

}  // namespace tartan::tools
