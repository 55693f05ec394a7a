// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/svg.h"
#include "tools/layout_drawing.h"

namespace tartan::tools {

namespace {

using svg::escaped;
using svg::letter;
using svg::width_of;

// Lengths in pixels.
constexpr int title_size = 15, text_size = 12, lane_size = 11, content_size = 9;
constexpr int page_margin = 16, line_height = 18, box_height = 30, gap = 28;
constexpr int heading_height = 22;  // a line, and space to the column indices
constexpr int address_width = 54, swatch_width = 26, swatch_height = 18, swatches_in_row = 16;
constexpr int page_width = 1000;  // width of the flow layout; a single block may be wider

std::vector<std::string> wrapped(std::string_view text, double width) {
  const auto letters = static_cast<std::size_t>(width / (letter * text_size));
  std::vector<std::string> out;
  while (text.size() > letters) {
    std::size_t cut = text.rfind(' ', letters);
    if (cut == std::string_view::npos) cut = text.find(' ');
    if (cut == std::string_view::npos) break;
    out.emplace_back(text.substr(0, cut));
    text.remove_prefix(cut + 1);
  }
  out.emplace_back(text);
  return out;
}

// A grid with its headings, and its size on the page.
struct Block {
  const Grid* grid;
  std::string heading;  // of a section with one grid; otherwise its first line has it
  double box_width, row_margin;

  Block(const Grid& grid, std::string heading) : grid(&grid), heading(std::move(heading)) {
    std::size_t content = 0, row = 0;
    for (const std::vector<Box>& boxes : grid.boxes)
      for (const Box& box : boxes) content = std::max(content, box.content.size());
    for (const std::string& name : grid.rows) row = std::max(row, name.size());
    box_width = std::max(36.0, static_cast<double>(content) * letter * content_size + 8);
    row_margin = static_cast<double>(row) * letter * text_size + 8;
    if (!grid.address_lanes.empty()) row_margin += address_width;
  }

  double grid_width() const {
    return row_margin + box_width * static_cast<double>(grid->columns.size());
  }
  double width() const {
    return std::max({grid_width(), width_of(heading, text_size), width_of(grid->title, text_size)});
  }
  double height() const {
    return line_height + box_height * static_cast<double>(grid->rows.size());
  }
};

// Blocks side by side.
struct Line {
  std::vector<Block> blocks;
  std::string heading;
  double left = 0;  // where the first starts

  double width() const {
    double out = left;
    for (const Block& block : blocks) out += block.width() + (&block == &blocks.back() ? 0 : gap);
    return std::max(out, width_of(heading, text_size));
  }
  bool headings() const {
    return !heading.empty() ||
           std::ranges::any_of(blocks, [](const Block& block) { return !block.heading.empty(); });
  }
  bool titles() const {
    return std::ranges::any_of(blocks,
                               [](const Block& block) { return !block.grid->title.empty(); });
  }
  double height() const {
    double out = 0;
    for (const Block& block : blocks) out = std::max(out, block.height());
    return out + heading_height * (headings() + titles());
  }
};

std::string heading(const Section& section) {
  return fmt::format("{}: {}", section.name, section.title);
}

Block block_of(const Section& section) { return {section.grids[0], heading(section)}; }

class SvgPicture {
 public:
  explicit SvgPicture(const Drawing& drawing) : drawing_(drawing) { arrange(); }

  std::string text() {
    double width = std::max(legend_width, width_of(drawing_.title, title_size));
    for (const Line& line : lines_) width = std::max(width, line.width());
    double y = page_margin + title_size;
    label("title", page_margin, y, drawing_.title);
    y += line_height;
    label("muted", page_margin, y, "since " + drawing_.since);
    for (const std::string& note : drawing_.notes)
      for (const std::string& part : wrapped(note, width))
        label("muted", page_margin, y += line_height, part);
    y += line_height;
    for (const Line& line : lines_) {
      if (line.left > 0) legend(y);
      draw(line, y);
      y += line.height() + gap;
    }
    if (!legend_in_corner_) y += legend(y);
    else y -= gap - page_margin;
    return frame(width + 2 * page_margin, y);
  }

 private:
  static constexpr double legend_width = swatches_in_row * swatch_width;

  const Section* section(std::string_view name) const {
    for (const Section& section : drawing_.sections)
      if (section.name == name || (name == "c" && section.name == "c, d")) return &section;
    return nullptr;
  }

  // Whether the three form a cross: b above c, a left of c, so that a row of a and a column of b
  // meet in their element of c.
  bool crosses(const Section* a, const Section* b, const Section* c) const {
    if (!a || !b || !c) return false;
    if (a->grids.size() != 1 || b->grids.size() != 1 || c->grids.size() != 1) return false;
    return a->grids[0].rows == c->grids[0].rows && b->grids[0].columns == c->grids[0].columns;
  }

  void arrange() {
    std::size_t next = 0;
    const Section *a = section("a"), *b = section("b"), *c = section("c"), *d = section("d");
    if (crosses(a, b, c)) {
      lines_.resize(2);
      Line &upper = lines_[0], &lower = lines_[1];
      upper.blocks.push_back(block_of(*b));
      lower.blocks.push_back(block_of(*a));
      upper.left = std::max(lower.blocks[0].width(), legend_width) + gap;
      lower.blocks.push_back(block_of(*c));
      align(upper.blocks[0], lower.blocks[1]);
      if (d) lower.blocks.push_back(block_of(*d));
      legend_in_corner_ = true;
      next = d ? 4 : 3;
    }
    for (; next < drawing_.sections.size(); ++next) flow(drawing_.sections[next]);
  }

  // Aligns the columns of both blocks.
  static void align(Block& upper, Block& lower) {
    upper.box_width = lower.box_width = std::max(upper.box_width, lower.box_width);
    upper.row_margin = lower.row_margin = std::max(upper.row_margin, lower.row_margin);
  }

  void flow(const Section& section) {
    if (section.grids.size() > 1) return flow_grids(section);
    Block block = block_of(section);
    const bool fits = !lines_.empty() && !legend_in_corner_ && lines_.back().heading.empty() &&
                      lines_.back().width() + gap + block.width() <= page_width;
    if (!fits) lines_.emplace_back();
    lines_.back().blocks.push_back(std::move(block));
  }

  // Several grids: as many per line as fit, the same number in each line.
  void flow_grids(const Section& section) {
    std::vector<Block> blocks;
    double width = 0;
    for (const Grid& grid : section.grids) {
      blocks.emplace_back(grid, "");
      width = std::max(width, blocks.back().width());
    }
    const auto fitting = static_cast<std::size_t>((page_width + gap) / (width + gap));
    const std::size_t most = std::max<std::size_t>(fitting, 1);
    const std::size_t lines = (blocks.size() + most - 1) / most;
    const std::size_t in_line = (blocks.size() + lines - 1) / lines;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i % in_line == 0) lines_.emplace_back();
      if (i == 0) lines_.back().heading = heading(section);
      lines_.back().blocks.push_back(std::move(blocks[i]));
    }
  }

  void draw(const Line& line, double y) {
    double x = page_margin + line.left;
    label("heading", x, y + line_height, line.heading);
    for (const Block& block : line.blocks) {
      double top = y;
      label("heading", x, y + line_height, block.heading);
      if (line.headings()) top += heading_height;
      if (line.titles()) {
        label("", x, top + line_height, block.grid->title);
        top += heading_height;
      }
      draw(block, x, top);
      // Whether the second block of a product's lower line goes below the first of its upper line.
      const bool under = legend_in_corner_ && &line == &lines_[1] && &block == &line.blocks.front();
      x += (under ? lines_.front().left : block.width() + gap);
    }
  }

  void draw(const Block& block, double x, double y) {
    const Grid& grid = *block.grid;
    const double left = x + block.row_margin;
    for (std::size_t i = 0; i < grid.columns.size(); ++i)
      label("index", left + block.box_width * (static_cast<double>(i) + 0.5), y + 13,
            grid.columns[i]);
    if (!grid.address_lanes.empty()) label("end", left - 6, y + 13, "address");
    double top = y + line_height;
    for (std::size_t row = 0; row < grid.rows.size(); ++row, top += box_height) {
      const double middle = top + box_height / 2.0 + 4;
      double index = left - 6;
      if (!grid.address_lanes.empty()) {
        index -= address_width;
        const int lane = grid.address_lanes[row];
        rectangle(lane, left - address_width, top + 6, address_width - 6, box_height - 12);
        label("lane", left - address_width / 2.0 - 3, middle, fmt::format("T{}", lane));
      }
      label("end", index, middle, grid.rows[row]);
      for (std::size_t i = 0; i < grid.boxes[row].size(); ++i)
        draw(grid.boxes[row][i], left + block.box_width * static_cast<double>(i), top,
             block.box_width);
    }
  }

  void draw(const Box& box, double x, double y, double width) {
    rectangle(box.lane, x, y, width, box_height);
    label("lane", x + width / 2, y + 13, fmt::format("T{}", box.lane));
    label("content", x + width / 2, y + 25, box.content);
  }

  std::vector<std::string_view> legend_lines() const {
    std::vector<std::string_view> out{"T: lane, one colour each",
                                      "V: element, counted over the lane's registers",
                                      "R: register of the operand"};
    bool addresses = false, warpgroup = false, metadata = false;
    for (const Section& section : drawing_.sections) {
      metadata |= section.name == "metadata";
      for (const Grid& grid : section.grids) {
        addresses |= !grid.address_lanes.empty();
        for (const std::vector<Box>& row : grid.boxes)
          for (const Box& box : row) warpgroup |= box.lane >= 32;
      }
    }
    if (warpgroup) out[0] = "T: lane; lanes 32 apart share a colour";
    if (addresses) out.emplace_back("address: the lane that points to the row in memory");
    if (metadata) out.emplace_back("[3:0]: bits of the lane's metadata register");
    return out;
  }

  // Returns its height.
  double legend(double y) {
    const double top = y;
    for (const std::string_view line : legend_lines())
      label("muted", page_margin, y += line_height, line);
    y += 10;
    for (int lane = 0; lane < 32; ++lane) {
      const double x = page_margin + lane % swatches_in_row * swatch_width;
      const double row = y + lane / swatches_in_row * (swatch_height + 2);
      rectangle(lane, x, row, swatch_width, swatch_height);
      label("lane", x + swatch_width / 2.0, row + 13, fmt::format("T{}", lane));
    }
    return y - top + 2 * (swatch_height + 2) + page_margin;
  }

  void label(std::string_view kind, double x, double y, std::string_view text) {
    if (text.empty()) return;
    const std::string attribute = kind.empty() ? "" : fmt::format(" class=\"{}\"", kind);
    body_ += fmt::format("<text{} x=\"{:.6g}\" y=\"{:.6g}\">{}</text>\n", attribute, x, y,
                         escaped(text));
  }

  void rectangle(int lane, double x, double y, double width, double height) {
    body_ += fmt::format(
        "<rect class=\"l{}\" x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.6g}\" "
        "height=\"{:.6g}\"/>\n",
        lane % 32, x, y, width, height);
  }

  std::string frame(double width, double height) const {
    std::string style = fmt::format(
        "text{{font:{}px ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;"
        "fill:#1f2328}}\n"
        "rect{{stroke:#fff;stroke-width:1}}\n"
        ".page{{fill:#fff;stroke:none}}\n"
        "text.title{{font-size:{}px;font-weight:bold}}\n"
        "text.heading{{font-weight:bold}}\n"
        "text.muted,text.index,text.end{{fill:#59636e}}\n"
        "text.index,text.lane,text.content{{text-anchor:middle}}\n"
        "text.end{{text-anchor:end}}\n"
        "text.lane{{fill:#000;font-size:{}px;font-weight:bold}}\n"
        "text.content{{fill:#000;font-size:{}px}}\n",
        text_size, title_size, lane_size, content_size);
    for (int lane = 0; lane < 32; ++lane) {
      const Colour colour = lane_colour(lane);
      style +=
          fmt::format(".l{}{{fill:#{:02x}{:02x}{:02x}}}\n", lane, Colour::intensity(colour.red),
                      Colour::intensity(colour.green), Colour::intensity(colour.blue));
    }
    style +=
        "@media (prefers-color-scheme:dark){\n"
        ".page{fill:#0d1117}\n"
        "rect{stroke:#0d1117}\n"
        "text{fill:#e6edf3}\n"
        "text.muted,text.index,text.end{fill:#9198a1}\n"
        "}\n";
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n"
        "<title>{2}: which lane holds which element</title>\n"
        "<style>\n{3}</style>\n"
        "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n"
        "{4}</svg>\n",
        width, height, escaped(drawing_.title), style, body_);
  }

  const Drawing& drawing_;
  std::vector<Line> lines_;
  bool legend_in_corner_ = false;
  std::string body_;
};

}  // namespace

std::string layout_svg(const Drawing& drawing) { return SvgPicture(drawing).text(); }

}  // namespace tartan::tools
