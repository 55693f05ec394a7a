// SPDX-License-Identifier: Apache-2.0
#include "tools/shared_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "compiler/support/svg.h"
#include "tartan/isa/layout_algebra.h"
#include "tools/half_blocks.h"

namespace tartan::tools {
namespace {

constexpr int chunk_bytes = 16, groups = 8;

// The first mode of an axis: the number of neighbours and their distance.
Mode neighbours(const NestedLayout& axis) { return coalesce(axis).flat()[0]; }
bool is_row_major(const SharedTile& tile) {
  return tile.layout[1].mode().stride == 1 || neighbours(tile.layout[1]).stride == 1;
}
int lines(const SharedTile& tile) { return is_row_major(tile) ? tile.rows() : tile.cols(); }
int line_elements(const SharedTile& tile) { return is_row_major(tile) ? tile.cols() : tile.rows(); }
int chunk_elements(const SharedTile& tile) { return chunk_bytes * 8 / bits(tile.type); }
int chunks(const SharedTile& tile) { return line_elements(tile) / chunk_elements(tile); }

std::int64_t first_byte(const SharedTile& tile, int line, int chunk) {
  const int along = chunk * chunk_elements(tile);
  return (is_row_major(tile) ? tile.offset(line, along) : tile.offset(along, line)) *
         bits(tile.type) / 8;
}

// The bank group, of eight groups of four banks, of chunk `chunk` of line `line`.
int group(const SharedTile& tile, int line, int chunk) {
  return static_cast<int>(first_byte(tile, line, chunk) / chunk_bytes % groups);
}

// The largest number of the eight chunks in one group: the passes of their access.
int passes(const std::vector<int>& eight) {
  std::array<int, groups> count{};
  for (const int each : eight) ++count[static_cast<std::size_t>(each)];
  return *std::max_element(count.begin(), count.end());
}

// The worst ldmatrix matrix: eight lines, one chunk of each.
int read_passes(const SharedTile& tile) {
  int worst = 1;
  for (int line = 0; line + 8 <= lines(tile); line += 8)
    for (int chunk = 0; chunk < chunks(tile); ++chunk) {
      std::vector<int> eight;
      for (int i = 0; i < 8; ++i) eight.push_back(group(tile, line + i, chunk));
      worst = std::max(worst, passes(eight));
    }
  return worst;
}

// The worst quarter-warp of a copy of 16 bytes per lane, line by line.
int write_passes(const SharedTile& tile) {
  int worst = 1;
  const int all = lines(tile) * chunks(tile);
  for (int first = 0; first + 8 <= all; first += 8) {
    std::vector<int> eight;
    for (int i = first; i < first + 8; ++i)
      eight.push_back(group(tile, i / chunks(tile), i % chunks(tile)));
    worst = std::max(worst, passes(eight));
  }
  return worst;
}

constexpr std::size_t line_margin = 5, cell_width = 2, ticks = 8;

int group_colour(int group) { return 111 + 12 * group; }

std::string cell(int group, bool colour) {
  if (!colour) return fmt::format(" {}", group);
  return fmt::format(" \033[38;5;16;48;5;{}m{}\033[0m", group_colour(group), group);
}

// The group of each chunk, in panels of `wide` chunks.
std::string numbers(const SharedTile& tile, bool colour, std::size_t wide) {
  const int width = static_cast<int>(wide);
  std::string out;
  for (int first = 0; first < chunks(tile); first += width) {
    const int last = std::min(first + width, chunks(tile));
    if (width < chunks(tile)) out += fmt::format("chunks {}-{}\n", first, last - 1);
    out += fmt::format("{:>{}}", is_row_major(tile) ? "row" : "col", line_margin);
    for (int chunk = first; chunk < last; ++chunk) out += fmt::format(" {}", chunk % 10);
    out += '\n';
    for (int line = 0; line < lines(tile); ++line) {
      out += fmt::format("{:>{}}", line, line_margin);
      for (int chunk = first; chunk < last; ++chunk) out += cell(group(tile, line, chunk), colour);
      out += '\n';
    }
  }
  return out;
}

// A pixel for each chunk.
Picture picture(const SharedTile& tile) {
  Picture out{.title = "chunks"};
  for (int chunk = 0; chunk < chunks(tile); ++chunk) out.columns.push_back(std::to_string(chunk));
  for (int line = 0; line < lines(tile); ++line) {
    out.rows.push_back(std::to_string(line));
    std::vector<int>& pixels = out.pixels.emplace_back();
    for (int chunk = 0; chunk < chunks(tile); ++chunk)
      pixels.push_back(group_colour(group(tile, line, chunk)));
  }
  return out;
}

std::string group_legend() {
  std::string out = "groups:";
  for (int each = 0; each < groups; ++each) out += cell(each, true);
  return out + '\n';
}

// "64x32:(32,1)" in CuTe's notation; nested notation is unchanged.
}  // namespace

std::string cute_notation(std::string_view words) {
  std::string out(words);
  const std::size_t by = out.find('x'), strides = out.find(':');
  if (out.starts_with('(') || by == std::string::npos || strides == std::string::npos ||
      strides < by)
    return out;
  out[by] = ',';
  out.insert(strides, ")");
  return "(" + out;
}

namespace {

// Why the tile has no picture.
std::string problem(const SharedTile& tile) {
  if (tile.layout[0].size() > 1024 || tile.layout[1].size() > 1024)
    return "too large or empty to draw: expected 1 to 1024 rows and columns";
  if (bits(tile.type) < 4 || bits(tile.type) > 64) return "expected elements of 4 to 64 bits";
  const NestedLayout& line = tile.layout[is_row_major(tile) ? 1 : 0];
  const auto [together, stride] = neighbours(line);
  if (stride != 1) return "neither rows nor columns are contiguous: one stride must be 1";
  if (together % chunk_elements(tile))
    return fmt::format("{} contiguous elements are not a multiple of 16 bytes ({} elements of {})",
                       together, chunk_elements(tile), name(tile.type));
  if (tile.layout.swizzle().bits &&
      (std::int64_t{bits(tile.type)} << tile.layout.swizzle().base) % 128)
    return "the swizzle splits a 16-byte chunk";
  for (int i = 0; i < lines(tile); ++i)
    for (int chunk = 0; chunk < chunks(tile); ++chunk)
      if (const std::int64_t byte = first_byte(tile, i, chunk); byte % chunk_bytes)
        return fmt::format("chunk {} of {} {} starts at byte {}, which is not a multiple of 16",
                           chunk, is_row_major(tile) ? "row" : "column", i, byte);
  return {};
}

}  // namespace

std::string SharedTile::text() const {
  if (layout[0].is_tuple() || layout[1].is_tuple()) return layout.text();
  const Mode row = layout[0].mode(), col = layout[1].mode();
  std::string out = fmt::format("{}x{}:({},{})", row.extent, col.extent, row.stride, col.stride);
  if (const auto [bits, base, shift] = layout.swizzle(); bits)
    out += fmt::format(" swizzle<{},{},{}>", bits, base, shift);
  return out;
}

bool names_tile(std::string_view words) {
  return !words.empty() && (words[0] == '(' || (words[0] >= '0' && words[0] <= '9'));
}

Result<SharedTile> parse_tile(std::string_view words, Type type) {
  const auto wrong = [&](const std::string& why) {
    return Diags::one("usage"_rule, {}, fmt::format("{}: {}", words, why));
  };
  const std::string notation = cute_notation(words);
  const auto layout = NestedLayout::parse(notation);
  if (!layout || layout->rank() != 2)
    return wrong(
        fmt::format("cannot read the layout: expected ROWSxCOLS:(ROW_STRIDE,COL_STRIDE) with an "
                    "optional swizzle<B,M,S>, such as 64x32:(32,1) swizzle<2,3,3>; or a nested "
                    "layout, such as ((8,8),(8,8)):((8,512),(1,64)){}",
                    layout ? "" : "; " + layout.diags()[0].message));
  const SharedTile out{*layout, type};
  const std::string why = problem(out);
  return why.empty() ? Result<SharedTile>(out) : wrong(why);
}

std::string tile_text(const SharedTile& tile, bool colour, std::size_t width) {
  std::string out = fmt::format("{} of {}: bank group of each 16-byte chunk ({} elements)\n",
                                tile.text(), name(tile.type), chunk_elements(tile));
  const std::size_t all = static_cast<std::size_t>(chunks(tile));
  const std::size_t room = std::max(width, line_margin + cell_width) - line_margin;
  const bool fits = all * cell_width <= room;
  std::size_t panel = fits ? all : room / cell_width;
  if (!fits && panel > ticks) panel = panel / ticks * ticks;
  if (fits || !colour) out += numbers(tile, colour, panel);
  else out += pictures({picture(tile)}, width) + group_legend();
  const std::string_view line_name = is_row_major(tile) ? "row" : "col";
  const auto cost = [](int passes) {
    return passes == 1 ? std::string("no bank conflicts")
                       : fmt::format("{} passes instead of 1", passes);
  };
  out += fmt::format("ldmatrix, 8 {}s of 16 bytes: {}\n", line_name, cost(read_passes(tile)));
  out += fmt::format("16-byte copies, 8 lanes: {}\n", cost(write_passes(tile)));
  return out;
}

std::string tile_svg(const SharedTile& tile) {
  constexpr int box_width = 26, box_height = 18, left = 48, top = 52;
  const int width = std::max(left + chunks(tile) * box_width + 16, 560);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"monospace\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, top + lines(tile) * box_height + 16);
  const auto write = [&](int x, int y, std::string_view anchor, std::string_view text) {
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                       svg::escaped(text));
  };
  write(16, 18, "start",
        fmt::format("{} of {}: bank group of each 16-byte chunk", tile.text(), name(tile.type)));
  write(
      16, 34, "start",
      fmt::format("passes: ldmatrix {}, 16-byte copies {}", read_passes(tile), write_passes(tile)));
  for (int chunk = 0; chunk < chunks(tile); ++chunk)
    write(left + chunk * box_width + box_width / 2, top - 4, "middle", std::to_string(chunk));
  for (int line = 0; line < lines(tile); ++line) {
    const int y = top + line * box_height;
    write(left - 6, y + 13, "end", std::to_string(line));
    for (int chunk = 0; chunk < chunks(tile); ++chunk) {
      const int number = group(tile, line, chunk), x = left + chunk * box_width;
      out += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"hsl({},70%,78%)\" "
          "stroke=\"white\"/>\n",
          x, y, box_width, box_height, 45 * number);
      write(x + box_width / 2, y + 13, "middle", std::to_string(number));
    }
  }
  return out + "</svg>\n";
}

std::string tile_json(const SharedTile& tile) {
  std::string out = fmt::format(
      "{{\"schema_version\": {}, \"layout\": \"{}\", \"type\": \"{}\", \"ldmatrix_passes\": {}, "
      "\"copy_passes\": {}, "
      "\"groups\": [",
      json_schema_version, tile.text(), name(tile.type), read_passes(tile), write_passes(tile));
  for (int line = 0; line < lines(tile); ++line) {
    out += line ? ", [" : "[";
    for (int chunk = 0; chunk < chunks(tile); ++chunk)
      out += fmt::format("{}{}", chunk ? ", " : "", group(tile, line, chunk));
    out += ']';
  }
  return out + "]}";
}

}  // namespace tartan::tools
