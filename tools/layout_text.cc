// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "tools/layout_drawing.h"

namespace tartan::tools {
namespace {

// A separate background for each lane, and black letters that themes do not change.
std::string background(int lane) {
  return fmt::format("\033[38;5;16;48;5;{}m", lane_colour(lane).index());
}

std::string bold(std::string_view text, bool colour) {
  return colour ? fmt::format("\033[1m{}\033[0m", text) : std::string(text);
}

std::string cell(int lane, std::string_view text, std::size_t width, bool colour) {
  if (!colour) return fmt::format(" {:<{}}", text, width);
  return fmt::format(" {}{:<{}}\033[0m", background(lane), text, width);
}

std::size_t widest(const std::vector<std::string>& texts, std::size_t at_least) {
  for (const std::string& text : texts) at_least = std::max(at_least, text.size());
  return at_least;
}

std::string without_trailing_blanks(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text + '\n';
}

constexpr std::string_view row_heading = "row", address_heading = "address";

std::size_t box_width(const Grid& grid) {
  std::size_t width = widest(grid.columns, 0);
  for (const std::vector<Box>& row : grid.boxes)
    for (const Box& box : row) width = std::max(width, box.text().size());
  return width;
}

std::string grid_text(const Grid& grid, bool colour) {
  const std::size_t margin = widest(grid.rows, row_heading.size()), width = box_width(grid);
  const bool addresses = !grid.address_lanes.empty();

  std::string out = grid.title.empty() ? "" : grid.title + '\n';
  std::string line = fmt::format("{:>{}}", row_heading, margin);
  if (addresses) line += fmt::format(" {}", address_heading);
  for (const std::string& column : grid.columns) line += fmt::format(" {:<{}}", column, width);
  out += without_trailing_blanks(line);
  for (std::size_t row = 0; row < grid.rows.size(); ++row) {
    line = fmt::format("{:>{}}", grid.rows[row], margin);
    if (addresses) {
      const int lane = grid.address_lanes[row];
      line += cell(lane, fmt::format("T{}", lane), address_heading.size(), colour);
    }
    for (const Box& box : grid.boxes[row]) line += cell(box.lane, box.text(), width, colour);
    out += without_trailing_blanks(line);
  }
  return out;
}

}  // namespace

std::size_t table_width(const Drawing& drawing) {
  std::size_t most = 0;
  for (const Section& section : drawing.sections)
    for (const Grid& grid : section.grids) {
      const std::size_t margin = widest(grid.rows, row_heading.size()) +
                                 (grid.address_lanes.empty() ? 0 : 1 + address_heading.size());
      most = std::max(most, margin + grid.columns.size() * (1 + box_width(grid)));
    }
  return most;
}

std::string layout_text(const Drawing& drawing, bool colour) {
  std::string out = fmt::format("{}  ({})\n", bold(drawing.title, colour), drawing.since);
  for (const std::string& note : drawing.notes) out += fmt::format("note: {}\n", note);
  for (const Section& section : drawing.sections) {
    out += fmt::format("\n{}: {}\n", bold(section.name, colour), section.title);
    for (const Grid& grid : section.grids) {
      if (&grid != &section.grids.front()) out += '\n';
      out += grid_text(grid, colour);
    }
  }
  return out;
}

}  // namespace tartan::tools
