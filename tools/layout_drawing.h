// SPDX-License-Identifier: Apache-2.0
// tools/layout_drawing.h - a layout as grids of labelled boxes: shared by the terminal table and
// the picture.
//
// A box is one element or, if a matrix has more than 16 columns (or rows), a run of neighbours:
// first those that share a register, then, if the row is still too long, those that one lane holds
// in consecutive registers. A row that is still too wide is split into panels of 16 boxes.
#pragma once

#include "tools/layout_table.h"

namespace tartan::tools {

struct Box {
  int lane = 0;
  std::string content;       // "V0:R0", "V0-7:R0"; metadata: "[3:0]", the bits of the lane's word
  std::string text() const;  // "T4V0:R0"
};

/// One matrix, or a panel of 16 boxes' width.
struct Grid {
  std::string title;                    // empty if a section has one grid
  std::vector<std::string> columns;     // the heading of each column of boxes: "5", "8-15"
  std::vector<std::string> rows;        // the heading of each row
  std::vector<int> address_lanes;       // the lane that gives each row's address; empty if none
  std::vector<std::vector<Box>> boxes;  // row-major
};

/// An operand (two, if c and d have the same layout), or the metadata.
struct Section {
  std::string name;   // "a", "c, d", "metadata"
  std::string title;  // "16 x 16 f16, 4 registers of 2 elements per lane"
  std::vector<Grid> grids;
};

struct Drawing {
  std::string title;  // the spelling, in the manual's order
  std::string since;  // "PTX 7.0, sm_80"
  std::vector<Section> sections;
  std::vector<std::string> notes;
};

/// Boxes in a row of a grid, unless something narrower is asked for.
inline constexpr int widest_panel = 16;

/// The drawing of `table`, or of one operand if `only` is not none, with at most `panel` boxes in a
/// row of a grid.
Drawing draw(const LayoutTable& table, Operand only, int panel = widest_panel);

/// Columns that the widest row of a table takes in layout_text().
std::size_t table_width(const Drawing& drawing);

/// One of the 6 x 6 x 6 colours of 256-colour terminals: levels from 0 to 5.
struct Colour {
  int red = 0, green = 0, blue = 0;
  static constexpr int intensity(int level) { return level ? 55 + 40 * level : 0; }  // of 255
  constexpr int index() const { return 16 + 36 * red + 6 * green + blue; }           // of 256
};

/// The background of a lane's boxes, light enough for black letters: a hue for each group of four
/// lanes, a shade for each lane of the group. The warps of a warpgroup share the colours.
Colour lane_colour(int lane);

// The output formats.
std::string layout_text(const Drawing& drawing, bool colour);
/// For terminals with colours and so many columns: a pixel for each box, of a drawing whose panels
/// are as wide as their matrices.
std::string layout_pictures(const Drawing& drawing, std::size_t width);
std::string layout_svg(const Drawing& drawing);
std::string layout_json(const LayoutTable& table, Operand only);

}  // namespace tartan::tools
