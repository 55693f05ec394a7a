// SPDX-License-Identifier: Apache-2.0
#include "tools/half_blocks.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::tools {
namespace {

constexpr std::size_t gap = 2, ticks = 8;  // between pictures; columns from one heading to the next

// Lines of a picture, all equally wide on the terminal.
struct Canvas {
  std::size_t width = 0;
  std::vector<std::string> lines;
};

std::size_t margin(const Picture& picture) {
  std::size_t out = 0;
  for (const std::string& row : picture.rows) out = std::max(out, row.size());
  return out + 1;
}

std::string column_headings(const Picture& picture, std::size_t first, std::size_t last) {
  std::string out;
  for (std::size_t column = first; column < last; column += ticks) {
    const std::string& heading = picture.columns[column];
    const std::size_t from = heading.find('-');  // of "8-9" the first element
    out += fmt::format("{:<{}}", heading.substr(0, std::min(from, ticks - 1)), ticks);
  }
  out.resize(last - first, ' ');
  return out;
}

// Rows `row` and, if there is one, the next.
std::string half_blocks(const Picture& picture, std::size_t row, std::size_t first,
                        std::size_t last) {
  const auto& upper = picture.pixels[row];
  const auto* const lower = row + 1 < picture.pixels.size() ? &picture.pixels[row + 1] : nullptr;
  std::string out;
  int above = -1, below = -1;  // the colours that are set
  for (std::size_t column = first; column < last; ++column) {
    if (upper[column] != above) out += fmt::format("\033[38;5;{}m", above = upper[column]);
    if (lower && (*lower)[column] != below)
      out += fmt::format("\033[48;5;{}m", below = (*lower)[column]);
    out += "\u2580";
  }
  return out + "\033[0m";
}

Canvas drawn(const Picture& picture, std::size_t first, std::size_t last) {
  const std::size_t left = margin(picture);
  Canvas out{left + last - first, {}};
  if (picture.title.size() > out.width) out.width = picture.title.size();
  const auto padded = [&](std::string text, std::size_t shown) {
    return text.append(out.width - shown, ' ');
  };
  out.lines.push_back(padded(picture.title, picture.title.size()));
  out.lines.push_back(
      padded(std::string(left, ' ') + column_headings(picture, first, last), left + last - first));
  for (std::size_t row = 0; row < picture.pixels.size(); row += 2)
    out.lines.push_back(padded(fmt::format("{:>{}} ", picture.rows[row], left - 1) +
                                   half_blocks(picture, row, first, last),
                               left + last - first));
  return out;
}

// As many panels of `picture` as it takes, each a multiple of the headings' distance wide.
std::vector<Canvas> panels(const Picture& picture, std::size_t width) {
  const std::size_t left = margin(picture), columns = picture.columns.size();
  std::size_t room = std::max(width, left + ticks) - left;
  if (room < columns) room = room / ticks * ticks;
  std::vector<Canvas> out;
  for (std::size_t first = 0; first < columns; first += room) {
    Picture part = picture;
    if (first > 0) part.title += ", continued";
    out.push_back(drawn(part, first, std::min(first + room, columns)));
  }
  return out;
}

std::string side_by_side(const std::vector<Canvas>& canvases) {
  std::size_t height = 0;
  for (const Canvas& each : canvases) height = std::max(height, each.lines.size());
  std::string out;
  for (std::size_t i = 0; i < height; ++i) {
    std::string line;
    for (const Canvas& each : canvases) {
      if (&each != canvases.data()) line.append(gap, ' ');
      line += i < each.lines.size() ? each.lines[i] : std::string(each.width, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace

std::string pictures(const std::vector<Picture>& all, std::size_t width) {
  std::string out;
  std::vector<Canvas> line;
  std::size_t taken = 0;
  const auto end_line = [&] {
    if (line.empty()) return;
    out += (out.empty() ? "" : "\n") + side_by_side(line);
    line.clear();
    taken = 0;
  };
  for (const Picture& picture : all)
    for (Canvas& canvas : panels(picture, width)) {
      if (!line.empty() && taken + gap + canvas.width > width) end_line();
      taken += (line.empty() ? 0 : gap) + canvas.width;
      line.push_back(std::move(canvas));
    }
  end_line();
  return out;
}

}  // namespace tartan::tools
