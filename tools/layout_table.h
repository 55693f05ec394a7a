// SPDX-License-Identifier: Apache-2.0
// tools/layout_table.h - which lane holds which element, as data, for the text, picture and JSON of
// `tartan layout`.
//
// There is no list of instructions here: a table is the expanded lane map of tartan/isa/fragment.h,
// so every form of the instruction tables has one; or that of tartan/isa/tensor_memory.h.
//
//   auto form = tools::layout_form("mma.m16n8k16.row.col.f32.f16.f16.f32");
//   for (const tools::OperandTable& operand : tools::layout_table(*form).operands) ...
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/isa/fragment.h"
#include "tartan/isa/target.h"
#include "tartan/support/diagnostic.h"

namespace tartan::tools {

/// One element of an operand's matrix, and the register that holds it.
struct LayoutCell {
  isa::Coord at;  // ldmatrix, stmatrix: in memory. movmatrix: in the matrix that it reads. tcgen05:
                  // lane and column of tensor memory, from the first one on, in each half
  int lane = 0;   // wgmma: 0..127
  int element =
      0;        // counted over the lane's registers: register * elements_per_register + position
  int reg = 0;  // register of the operand's vector
  int position = 0;  // element of the register, from the low bits
};

/// ldmatrix, stmatrix: the lane whose address operand points to a row in memory.
struct RowAddress {
  int matrix = 0, row = 0, lane = 0;
};

struct OperandTable {
  Operand operand = Operand::none;
  isa::Fragment fragment;
  bool in_memory = false;         // ldmatrix, stmatrix: rows are 16 bytes of memory
  bool in_tensor_memory = false;  // tcgen05.ld, tcgen05.st
  std::vector<LayoutCell> cells;  // by lane and element; with every copy of a wmma fragment
  std::vector<RowAddress> row_addresses;
};

/// The code that says which elements of a row and chunk of dense columns a sparse A keeps: four
/// bits of a lane's metadata register.
struct MetadataCell {
  int row = 0, chunk = 0, lane = 0, lowest_bit = 0;
};

struct MetadataTable {
  int selector = 0, selectors = 1;  // selectors: how many are legal
  int rows = 0, chunks = 0;
  int columns_per_chunk = 0;  // dense columns that a code covers
  std::vector<MetadataCell> cells;
};

struct LayoutTable {
  std::string instruction;  // in the manual's order of qualifiers
  Since since;
  int lanes = 32;
  std::vector<OperandTable> operands;
  std::optional<MetadataTable> metadata;  // sparse forms
  std::vector<std::string> notes;         // facts about the whole instruction, one sentence each
};

/// The form that `spelling` names: qualifiers in any order, with or without .sync.aligned; operands
/// after a blank are ignored. If there is no such form, diagnostics name the nearest one. wgmma:
/// the form with A in registers.
Result<isa::Form> layout_form(std::string_view spelling);

/// The operands of `form` that are in registers, in the order a, b, c, d.
std::vector<Operand> register_operands(const isa::Form& form);

/// `form` must exist, and `selector` must be below the number of legal selectors.
LayoutTable layout_table(const isa::Form& form, int selector = 0);

/// Whether `spelling` is an instruction of tensor memory, or meant to be one.
bool names_tensor_memory(std::string_view spelling);

/// The layout of a tcgen05.ld, tcgen05.ld.red or tcgen05.st; like layout_form() with qualifiers in
/// any order, without .sync.aligned too. Of any other spelling diagnostics.
Result<LayoutTable> tensor_layout(std::string_view spelling);

/// What a number says as a descriptor of tcgen05.
struct DescriptorText {
  std::string name, number;
  std::string says;   // "M 128, N 64, A f16 K-major, ..."
  std::string fault;  // why it is illegal; empty: it is not
  std::string text() const;
  std::string json() const;
};
/// Of a product, whose words say what the fields mean.
Result<DescriptorText> instruction_descriptor_of(std::string_view instruction,
                                                 std::string_view number, Arch arch);
/// Of a tile in shared memory.
Result<DescriptorText> tile_descriptor_of(std::string_view number);

/// The instruction at the start of PTX text, without the operands.
std::string_view without_operands(std::string_view text);

}  // namespace tartan::tools
