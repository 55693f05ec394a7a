// SPDX-License-Identifier: Apache-2.0
#include "tools/layout_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tartan/isa/instruction.h"

namespace tartan::tools {
namespace {

// Red, green and blue of each lane as octal digits.
// clang-format off
constexpr int lane_levels[32] = {
    0544, 0533, 0522, 0511,  // reds
    0554, 0543, 0542, 0531,  // ambers
    0453, 0452, 0451, 0341,  // limes
    0454, 0353, 0252, 0152,  // greens
    0455, 0355, 0255, 0155,  // cyans
    0445, 0345, 0235, 0135,  // blues
    0435, 0425, 0325, 0315,  // violets
    0545, 0534, 0524, 0514,  // pinks
};
// clang-format on

constexpr int widest = 16;  // elements in an uncollapsed row

std::string range(int first, int last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

// "0-3, 16-19"
std::string ranges(const std::set<int>& numbers, std::string_view letter) {
  std::string out;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const int first = *at;
    int last = first;
    while (++at != numbers.end() && *at == last + 1) ++last;
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", letter, first);
    if (last != first) out += fmt::format("-{}{}", letter, last);
  }
  return out;
}

// One matrix of an operand, by row and column: the first copy of each element.
class Matrix {
 public:
  Matrix(const OperandTable& table, int number)
      : rows_(table.fragment.rows), cols_(table.fragment.cols) {
    cells_.resize(static_cast<std::size_t>(rows_ * cols_));
    for (const LayoutCell& cell : table.cells) {
      if (cell.at.matrix != number) continue;
      const LayoutCell*& slot = cells_[static_cast<std::size_t>(cell.at.row * cols_ + cell.at.col)];
      if (!slot || cell.element < slot->element) slot = &cell;
    }
  }

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  const LayoutCell& at(int row, int col) const {
    return *cells_[static_cast<std::size_t>(row * cols_ + col)];
  }

  // The longest run, in elements along columns (or rows), that divides the whole matrix evenly.
  int run(bool along_columns, bool one_register) const {
    const int length = along_columns ? cols_ : rows_;
    int best = 1;
    for (int size = 2; size <= length; size *= 2)
      if (length % size == 0 && divides(along_columns, size, one_register)) best = size;
    return best;
  }

 private:
  bool divides(bool along_columns, int size, bool one_register) const {
    for (int row = 0; row < rows_; ++row)
      for (int col = 0; col < cols_; ++col) {
        const int offset = (along_columns ? col : row) % size;
        const LayoutCell& first = along_columns ? at(row, col - offset) : at(row - offset, col);
        const LayoutCell& cell = at(row, col);
        if (cell.lane != first.lane || cell.element != first.element + offset) return false;
        if (one_register && cell.reg != first.reg) return false;
      }
    return true;
  }

  int rows_, cols_;
  std::vector<const LayoutCell*> cells_;
};

Box box(const LayoutCell& first, const LayoutCell& last) {
  return {first.lane,
          fmt::format("V{}:R{}", range(first.element, last.element), range(first.reg, last.reg))};
}

// The number of elements that a box covers in each direction.
struct Step {
  int rows = 1, cols = 1;
};

Step step(const Matrix& matrix) {
  Step out;
  if (matrix.cols() > widest) out.cols = matrix.run(true, true);
  if (matrix.cols() / out.cols > widest) out.cols = matrix.run(true, false);
  if (matrix.rows() > widest && out.cols == 1) out.rows = matrix.run(false, true);
  return out;
}

Grid panel(const Matrix& matrix, Step step, int first_col, int last_col) {
  Grid out;
  for (int col = first_col; col < last_col; col += step.cols)
    out.columns.push_back(range(col, col + step.cols - 1));
  for (int row = 0; row < matrix.rows(); row += step.rows) {
    out.rows.push_back(range(row, row + step.rows - 1));
    std::vector<Box>& boxes = out.boxes.emplace_back();
    for (int col = first_col; col < last_col; col += step.cols)
      boxes.push_back(
          box(matrix.at(row, col), matrix.at(row + step.rows - 1, col + step.cols - 1)));
  }
  return out;
}

// "matrix 1: R1, lanes T0-T31": the registers and lanes of its cells, omitted if it has all.
std::string matrix_title(const OperandTable& table, int number) {
  std::set<int> lanes, registers;
  for (const LayoutCell& cell : table.cells)
    if (cell.at.matrix == number) lanes.insert(cell.lane), registers.insert(cell.reg);
  std::string out = fmt::format("matrix {}", number);
  if (static_cast<int>(registers.size()) < table.fragment.registers)
    out += ": " + ranges(registers, "R");
  if (lanes.size() < 32) out += ": " + ranges(lanes, "T");
  return out;
}

std::vector<Grid> grids(const OperandTable& table, int panel_boxes) {
  std::vector<Grid> out;
  for (int number = 0; number < table.fragment.matrices; ++number) {
    const Matrix matrix(table, number);
    const Step size = step(matrix);
    const int width = std::min(panel_boxes, matrix.cols()) * size.cols;
    for (int col = 0; col < matrix.cols(); col += width) {
      const int end = std::min(col + width, matrix.cols());
      Grid grid = panel(matrix, size, col, end);
      if (table.fragment.matrices > 1) grid.title = matrix_title(table, number);
      if (end - col < matrix.cols())
        grid.title +=
            fmt::format("{}columns {}", grid.title.empty() ? "" : ", ", range(col, end - 1));
      for (const RowAddress& address : table.row_addresses)
        if (address.matrix == number) grid.address_lanes.push_back(address.lane);
      out.push_back(std::move(grid));
    }
  }
  return out;
}

std::string plural(int count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string operand_title(const LayoutTable& layout, const OperandTable& table) {
  const isa::Fragment& fragment = table.fragment;
  std::string out = fragment.matrices > 1 ? fmt::format("{} matrices of ", fragment.matrices) : "";
  out += fmt::format("{} x {} {}", fragment.rows, fragment.cols, name(fragment.type));
  if (table.in_memory) out += " in shared memory";
  if (table.in_tensor_memory) out += " in tensor memory";
  if (table.operand == Operand::a && layout.metadata)
    out += fmt::format(" (compressed: half of {} columns)",
                       layout.metadata->chunks * layout.metadata->columns_per_chunk);
  out += ", " + plural(fragment.registers, "register");
  if (fragment.register_bits != 32) out += fmt::format(" of {} bits", fragment.register_bits);
  out += " a lane";
  if (fragment.per_register > 1)
    out += fmt::format(", {} elements a register", fragment.per_register);
  if (fragment.container_bits > bits(fragment.type))
    out += fmt::format(" ({} bits each)", fragment.container_bits);
  if (fragment.copies > 1) {
    const int own = fragment.registers / fragment.copies;
    out += fmt::format("; R{}-R{} repeat R0-R{}, ignored by wmma.mma", own, fragment.registers - 1,
                       own - 1);
  }
  return out;
}

bool alike(const OperandTable& x, const OperandTable& y) {
  return x.fragment == y.fragment &&
         std::equal(x.cells.begin(), x.cells.end(), y.cells.begin(), y.cells.end(),
                    [](const LayoutCell& i, const LayoutCell& j) { return i.at == j.at; });
}

Section metadata_section(const LayoutTable& layout) {
  const MetadataTable& metadata = *layout.metadata;
  Section out;
  out.name = "metadata";
  out.title =
      fmt::format("bits of the lane's word that hold the code of each row and {} dense columns",
                  metadata.columns_per_chunk);
  if (metadata.selectors > 1)
    out.title += fmt::format("; selector {} of 0-{}", metadata.selector, metadata.selectors - 1);
  Grid& grid = out.grids.emplace_back();
  for (int chunk = 0; chunk < metadata.chunks; ++chunk)
    grid.columns.push_back(
        range(chunk * metadata.columns_per_chunk, (chunk + 1) * metadata.columns_per_chunk - 1));
  for (int row = 0; row < metadata.rows; ++row) {
    grid.rows.push_back(fmt::format("{}", row));
    std::vector<Box>& boxes = grid.boxes.emplace_back();
    for (int chunk = 0; chunk < metadata.chunks; ++chunk) {
      const MetadataCell& cell =
          metadata.cells[static_cast<std::size_t>(row * metadata.chunks + chunk)];
      boxes.push_back({cell.lane, fmt::format("[{}:{}]", cell.lowest_bit + 3, cell.lowest_bit)});
    }
  }
  return out;
}

}  // namespace

std::string Box::text() const { return fmt::format("T{}{}", lane, content); }

Drawing draw(const LayoutTable& table, Operand only, int panel) {
  Drawing out;
  out.title = table.instruction;
  out.since = fmt::format("PTX {}, {}", table.since.ptx.text(), isa::oldest(table.since).text());
  out.notes = table.notes;
  const OperandTable* drawn = nullptr;
  for (const OperandTable& operand : table.operands) {
    if (only != Operand::none && operand.operand != only) continue;
    if (drawn && operand.operand == Operand::d && drawn->operand == Operand::c &&
        alike(*drawn, operand)) {
      out.sections.back().name += ", d";
      continue;
    }
    out.sections.push_back(
        {std::string(name(operand.operand)), operand_title(table, operand), grids(operand, panel)});
    drawn = &operand;
  }
  const bool a_shown = only == Operand::none || only == Operand::a;
  if (table.metadata && a_shown) out.sections.push_back(metadata_section(table));
  return out;
}

Colour lane_colour(int lane) {
  const int levels = lane_levels[lane % 32];
  return {levels >> 6, levels >> 3 & 7, levels & 7};
}

}  // namespace tartan::tools
