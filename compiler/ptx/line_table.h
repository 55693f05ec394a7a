// SPDX-License-Identifier: Apache-2.0
// compiler/ptx/line_table.h - which line of C++ made a line of PTX: its .file and .loc directives.
// Not installed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::detail {

class LineTable {
 public:
  explicit LineTable(std::string_view ptx);
  /// Of a line of the text, counted from 1; nothing before the first .loc.
  std::optional<Place> place(int line) const;

 private:
  struct Row {
    int from = 0;  // line of the text
    int file = 0, line = 0, column = 0;
  };
  std::vector<Row> rows_;
  std::vector<std::pair<int, std::string>> files_;  // by number
};

}  // namespace tartan::TARTAN_ABI::detail
