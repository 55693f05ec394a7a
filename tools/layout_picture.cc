// SPDX-License-Identifier: Apache-2.0
// Pictures of a layout for terminals with colours: a pixel for each box, in its lane's colour.
#include <fmt/format.h>

#include <algorithm>

#include "tools/half_blocks.h"
#include "tools/layout_drawing.h"

namespace tartan::tools {
namespace {

constexpr int lanes = 32;  // that have colours of their own

// "4-7" has 4 elements.
int elements(const std::string& heading) {
  const std::size_t dash = heading.find('-');
  if (dash == std::string::npos) return 1;
  return std::stoi(heading.substr(dash + 1)) - std::stoi(heading) + 1;
}

Picture picture(const Section& section, const Grid& grid) {
  Picture out{
      .title = grid.title.empty() ? section.name : fmt::format("{}, {}", section.name, grid.title),
      .rows = grid.rows,
      .columns = grid.columns};
  if (const int size = elements(grid.columns[0]) * elements(grid.rows[0]); size > 1)
    out.title += fmt::format(" ({} elements a pixel)", size);
  for (const std::vector<Box>& row : grid.boxes) {
    std::vector<int>& pixels = out.pixels.emplace_back();
    for (const Box& box : row) pixels.push_back(lane_colour(box.lane).index());
  }
  return out;
}

// Each lane in its colour.
std::string legend(std::size_t width) {
  constexpr std::size_t cell = 4;
  const std::size_t a_line = std::max<std::size_t>(width / (4 * cell), 1) * 4;
  std::string out;
  for (int lane = 0; lane < lanes; ++lane) {
    out += fmt::format("\033[38;5;16;48;5;{}m{:<{}}\033[0m", lane_colour(lane).index(),
                       fmt::format("T{}", lane), cell);
    if ((static_cast<std::size_t>(lane) + 1) % a_line == 0) out += '\n';
  }
  return out.ends_with('\n') ? out : out + '\n';
}

}  // namespace

std::string layout_pictures(const Drawing& drawing, std::size_t width) {
  std::string out = fmt::format("\033[1m{}\033[0m  ({})\n", drawing.title, drawing.since);
  for (const std::string& note : drawing.notes) out += fmt::format("note: {}\n", note);
  std::vector<Picture> all;
  for (const Section& section : drawing.sections) {
    out += fmt::format("\033[1m{}\033[0m: {}\n", section.name, section.title);
    for (const Grid& grid : section.grids) all.push_back(picture(section, grid));
  }
  out += fmt::format("\n{}\n", pictures(all, width));
  return out + legend(width) + "a pixel is an element of that lane; | cat shows tables\n";
}

}  // namespace tartan::tools
