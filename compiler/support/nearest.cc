// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace tartan::TARTAN_ABI {
namespace {

constexpr std::size_t longest = 100;   // letters of a word that is compared
constexpr std::size_t most_words = 4;  // that a message lists

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::size_t edit_distance(std::string_view x, std::string_view y) {
  const auto same = [&](std::size_t i, std::size_t j) { return lower(x[i]) == lower(y[j]); };
  std::vector<std::size_t> before, last, row(y.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < x.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row.resize(y.size() + 1);
    row[0] = i + 1;
    for (std::size_t j = 0; j < y.size(); ++j) {
      row[j + 1] = std::min({last[j + 1] + 1, row[j] + 1, last[j] + !same(i, j)});
      if (i > 0 && j > 0 && same(i, j - 1) && same(i - 1, j))
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

std::optional<std::size_t> steps_to(std::string_view word, std::string_view known) {
  const std::size_t most = word.size() / 3;
  if (word.size() > longest || known.size() > word.size() + most ||
      word.size() > known.size() + most)
    return std::nullopt;
  const std::size_t steps = edit_distance(word, known);
  return steps <= most ? std::optional(steps) : std::nullopt;
}

std::vector<std::string_view> nearest_words(std::string_view word,
                                            std::span<const std::string_view> words) {
  std::vector<std::string_view> out;
  std::size_t least = longest;
  for (const std::string_view each : words) {
    const auto steps = steps_to(word, each);
    if (!steps || *steps > least) continue;
    if (*steps < least) out.clear();
    least = *steps;
    if (std::ranges::find(out, each) == out.end()) out.push_back(each);
  }
  return out;
}

std::string nearest_text(std::span<const std::string> words) {
  if (words.empty() || words.size() > most_words) return {};
  if (words.size() == 1) return fmt::format("; the nearest is {}", words[0]);
  std::string out = "; the nearest are " + words[0];
  for (std::size_t i = 1; i + 1 < words.size(); ++i) out += ", " + words[i];
  return out + " and " + words.back();
}

std::string nearest_hint(std::string_view word, std::span<const std::string_view> words,
                         std::string_view prefix) {
  std::vector<std::string> near;
  for (const std::string_view each : nearest_words(word, words))
    near.push_back(fmt::format("{}{}", prefix, each));
  return nearest_text(near);
}

}  // namespace tartan::TARTAN_ABI
