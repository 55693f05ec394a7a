// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace tartan::inline TARTAN_ABI {
namespace {

constexpr std::size_t longest = 100;  // letters that are compared

}  // namespace

std::size_t edit_distance(std::string_view x, std::string_view y) {
  std::vector<std::size_t> row(y.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < y.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (x[i] != y[j])});
      diagonal = above;
    }
  }
  return row.back();
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> words) {
  const auto from = [&](std::string_view each) {
    return edit_distance(word.substr(0, longest), each.substr(0, longest));
  };
  const auto best = std::ranges::min_element(words, {}, from);
  return best == words.end() ? std::string_view{} : *best;
}

}  // namespace tartan::inline TARTAN_ABI
