// SPDX-License-Identifier: Apache-2.0
// tests/tools/layout_command.h - runs `tartan layout` and parses its output.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/paths.h"
#include "tests/support/shell.h"
#include "tests/support/text_files.h"

namespace tartan::layout_test {

using nlohmann::json;
using Words = std::vector<std::string>;

using test::Ran;
using test::read_file;

// Runs `tartan WORDS`, with standard error redirected to standard output on request. Arguments with
// blanks must be quoted.
inline Ran run(const std::string& words, bool with_errors = false) {
  return test::shell(std::string(TARTAN_COMMAND) + " " + words + (with_errors ? " 2>&1" : ""));
}

inline json layout_json(const std::string& words) {
  const Ran ran = run("layout " + words + " --json");
  EXPECT_EQ(ran.code, 0) << words;
  return json::parse(ran.out, nullptr, false);
}

inline Words split(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

inline Words lines_of(const std::string& text) {
  Words out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

inline Words data_lines(const std::string& name) {
  Words out;
  for (std::string& line : lines_of(read_file(std::filesystem::path(TEST_DATA) / "seeds" / name)))
    if (!line.empty() && line[0] != '#') out.push_back(std::move(line));
  EXPECT_FALSE(out.empty()) << name;
  return out;
}

// ---- Parsing our own tables.

struct ElementCell {
  std::string operand;
  int matrix, row, col, lane, element;
  auto operator<=>(const ElementCell&) const = default;
};

struct Span {
  int first, last;
};

inline Span span(const std::string& text) {
  const std::size_t dash = text.find('-');
  const int first = std::stoi(text);
  return {first, dash == std::string::npos ? first : std::stoi(text.substr(dash + 1))};
}

// The contents of a table's lines: every element that its boxes cover, and the row addresses.
struct TextTables {
  std::set<ElementCell> places;
  std::map<std::pair<int, int>, int> address_lanes;  // by matrix and row
  std::map<std::pair<int, int>, std::string> boxes;  // of single elements: matrix * 1000 + row, col
};

inline TextTables read_text(const std::string& text) {
  static const std::regex section("^([abcd](, d)?|metadata): .*"), matrix_title("^matrix (\\d+).*"),
      box("^T(\\d+)V([\\d-]+):R[\\d-]+$");
  TextTables out;
  std::string operand;
  int matrix = 0;
  Words columns;
  bool addresses = false;
  for (const std::string& line : lines_of(text)) {
    std::smatch match;
    const Words words = split(line);
    if (std::regex_match(line, match, section)) {
      operand = match[1];
      matrix = 0;
    } else if (std::regex_match(line, match, matrix_title)) {
      matrix = std::stoi(match[1]);
    } else if (!words.empty() && words[0] == "row") {
      addresses = words.size() > 1 && words[1] == "address";
      columns.assign(words.begin() + 1 + addresses, words.end());
    } else if (!words.empty() && operand != "metadata" && !operand.empty() &&
               std::isdigit(words[0][0])) {
      const Span rows = span(words[0]);
      if (addresses) out.address_lanes[{matrix, rows.first}] = std::stoi(words[1].substr(1));
      EXPECT_EQ(words.size(), 1 + addresses + columns.size()) << line;
      for (std::size_t i = 1 + addresses; i < words.size(); ++i) {
        if (!std::regex_match(words[i], match, box)) {
          ADD_FAILURE() << words[i];
          continue;
        }
        const Span cols = span(columns[i - 1 - addresses]), elements = span(match[2]);
        int element = elements.first;
        for (int row = rows.first; row <= rows.last; ++row)
          for (int col = cols.first; col <= cols.last; ++col, ++element)
            for (const char letter : operand)
              if (std::isalpha(letter))
                out.places.insert(
                    {std::string(1, letter), matrix, row, col, std::stoi(match[1]), element});
        EXPECT_EQ(element, elements.last + 1) << words[i];
        out.boxes[{matrix * 1000 + rows.first, cols.first}] = words[i];
      }
    }
  }
  return out;
}

// The same from JSON, without later copies of wmma fragments, which the tables list separately.
inline std::set<ElementCell> cells_of(const json& layout) {
  std::set<ElementCell> out;
  for (const json& operand : layout["operands"]) {
    const int per = operand["elements_per_register"], registers = operand["registers"];
    const int copies = operand["copies"];
    for (const json& cell : operand["cells"])
      if (cell["register"] < registers / copies)
        out.insert({operand["operand"], cell["matrix"], cell["row"], cell["col"], cell["lane"],
                    cell["register"].get<int>() * per + cell["position"].get<int>()});
  }
  return out;
}

}  // namespace tartan::layout_test
