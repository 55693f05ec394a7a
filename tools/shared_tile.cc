// SPDX-License-Identifier: Apache-2.0
#include "tools/shared_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

namespace tartan::tools {
namespace {

constexpr int chunk_bytes = 16, groups = 8;

bool by_rows(const SharedTile& tile) { return tile.col_stride == 1; }
int lines(const SharedTile& tile) { return by_rows(tile) ? tile.rows : tile.cols; }
int line_elements(const SharedTile& tile) { return by_rows(tile) ? tile.cols : tile.rows; }
int chunk_elements(const SharedTile& tile) { return chunk_bytes * 8 / bits(tile.type); }
int chunks(const SharedTile& tile) { return line_elements(tile) / chunk_elements(tile); }

// Which of the eight groups of four banks chunk `chunk` of line `line` lies in.
int group(const SharedTile& tile, int line, int chunk) {
  const int along = chunk * chunk_elements(tile);
  const std::int64_t at = by_rows(tile) ? tile.offset(line, along) : tile.offset(along, line);
  return static_cast<int>(at * bits(tile.type) / 8 / chunk_bytes % groups);
}

// How often eight chunks meet in one group: the passes that their access takes.
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

// The worst quarter of a warp that copies 16 bytes a lane, line after line.
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

std::string cell(int group, bool colour) {
  if (!colour) return fmt::format(" {}", group);
  return fmt::format(" \033[38;5;16;48;5;{}m{}\033[0m", 111 + 12 * group, group);
}

}  // namespace

std::int64_t SharedTile::offset(int row, int col) const {
  const std::int64_t plain = std::int64_t{row} * row_stride + std::int64_t{col} * col_stride;
  const std::int64_t source = plain >> (base + shift) & ((std::int64_t{1} << bits) - 1);
  return plain ^ source << base;
}

std::string SharedTile::text() const {
  std::string out = fmt::format("{}x{}:({},{})", rows, cols, row_stride, col_stride);
  if (bits) out += fmt::format(" swizzle<{},{},{}>", bits, base, shift);
  return out;
}

bool names_tile(std::string_view words) {
  return !words.empty() && words[0] >= '0' && words[0] <= '9';
}

Result<SharedTile> parse_tile(std::string_view words, Type type) {
  SharedTile out;
  out.type = type;
  int read = 0;
  const std::string text(words);
  const int found = std::sscanf(text.c_str(), "%5dx%5d:(%6d,%6d)%n", &out.rows, &out.cols,
                                &out.row_stride, &out.col_stride, &read);
  int tail = 0;
  if (found == 4 && static_cast<std::size_t>(read) < text.size() &&
      std::sscanf(text.c_str() + read, " swizzle<%2d,%2d,%2d>%n", &out.bits, &out.base, &out.shift,
                  &tail) == 3)
    read += tail;
  const auto wrong = [&](std::string why) {
    return Diags::one("usage"_rule, {}, fmt::format("{}: {}", words, why));
  };
  if (found != 4 || static_cast<std::size_t>(read) != text.size())
    return wrong(
        "a shared tile is written ROWSxCOLS:(ROW_STRIDE,COL_STRIDE), with swizzle<B,M,S> "
        "behind it where it has one: 64x32:(32,1) swizzle<2,3,3>");
  if (out.rows < 1 || out.cols < 1 || out.rows > 1024 || out.cols > 1024)
    return wrong("1 to 1024 rows and columns are drawn");
  if (out.bits < 0 || out.base < 0 || out.shift < out.bits || out.bits + out.base + out.shift > 20)
    return wrong("a swizzle<B,M,S> has B, M >= 0 and S >= B");
  if (bits(type) < 4 || bits(type) > 64) return wrong("elements have 4 to 64 bits");
  if (out.col_stride != 1 && out.row_stride != 1)
    return wrong("rows or columns must be contiguous: one of the strides is 1");
  if (line_elements(out) % chunk_elements(out))
    return wrong(fmt::format("lines of {} elements are no multiple of 16 bytes ({} elements of {})",
                             line_elements(out), chunk_elements(out), name(type)));
  return out;
}

std::string tile_text(const SharedTile& tile, bool colour) {
  const std::string_view line_name = by_rows(tile) ? "row" : "col";
  std::string out = fmt::format("{} of {}: the group of banks of each 16 bytes ({} elements)\n",
                                tile.text(), name(tile.type), chunk_elements(tile));
  out += fmt::format("{:>5}", line_name);
  for (int chunk = 0; chunk < chunks(tile); ++chunk) out += fmt::format(" {}", chunk % 10);
  out += '\n';
  for (int line = 0; line < lines(tile); ++line) {
    out += fmt::format("{:>5}", line);
    for (int chunk = 0; chunk < chunks(tile); ++chunk)
      out += cell(group(tile, line, chunk), colour);
    out += '\n';
  }
  const auto cost = [](int passes) {
    return passes == 1 ? std::string("no conflicts")
                       : fmt::format("{} passes instead of 1", passes);
  };
  out += fmt::format("ldmatrix, 8 {}s of 16 bytes: {}\n", line_name, cost(read_passes(tile)));
  out += fmt::format("16-byte copies, 8 lanes: {}\n", cost(write_passes(tile)));
  return out;
}

std::string tile_json(const SharedTile& tile) {
  std::string out = fmt::format(
      "{{\"layout\": \"{}\", \"type\": \"{}\", \"ldmatrix_passes\": {}, \"copy_passes\": {}, "
      "\"groups\": [",
      tile.text(), name(tile.type), read_passes(tile), write_passes(tile));
  for (int line = 0; line < lines(tile); ++line) {
    out += line ? ", [" : "[";
    for (int chunk = 0; chunk < chunks(tile); ++chunk)
      out += fmt::format("{}{}", chunk ? ", " : "", group(tile, line, chunk));
    out += ']';
  }
  return out + "]}";
}

}  // namespace tartan::tools
