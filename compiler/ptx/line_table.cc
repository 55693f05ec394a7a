// SPDX-License-Identifier: Apache-2.0
#include "compiler/ptx/line_table.h"

#include <algorithm>
#include <sstream>

#include "compiler/support/ascii.h"

namespace tartan::TARTAN_ABI::detail {

LineTable::LineTable(std::string_view ptx) {
  for (int number = 1; !ptx.empty(); ++number) {
    const std::size_t end = std::min(ptx.find('\n'), ptx.size());
    std::istringstream words{std::string(ptx.substr(0, end))};
    ptx.remove_prefix(std::min(end + 1, ptx.size()));
    std::string word;
    if (!(words >> word) || word[0] != '.') continue;
    if (word == ".loc") {
      Row row{.from = number};
      // Line 0: code of no line in particular.
      if (words >> row.file >> row.line >> row.column && row.line > 0) rows_.push_back(row);
    } else if (word == ".file") {
      int file = 0;
      if (words >> file && std::getline(words, word, '"') && std::getline(words, word, '"'))
        files_.emplace_back(file, from_ascii(word));
    }
  }
}

std::optional<Place> LineTable::place(int line) const {
  const auto next = std::ranges::upper_bound(rows_, line, {}, &Row::from);
  if (next == rows_.begin()) return std::nullopt;
  const Row& row = next[-1];
  const auto file = std::ranges::find(files_, row.file, &std::pair<int, std::string>::first);
  if (file == files_.end()) return std::nullopt;
  return Place{file->second, row.line, row.column};
}

}  // namespace tartan::TARTAN_ABI::detail
