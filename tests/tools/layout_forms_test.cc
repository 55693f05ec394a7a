// SPDX-License-Identifier: Apache-2.0
// `tartan layout` as text, picture and JSON, for every form of the tables: through the command's
// functions, without a process for each form.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tartan/isa/instruction.h"
#include "tools/layout_drawing.h"

namespace tartan::tools {
namespace {

// Each place of each matrix is held once per copy, and each element of each lane is one place.
void expect_complete(const LayoutTable& table, const OperandTable& operand) {
  const isa::Fragment& f = operand.fragment;
  ASSERT_EQ(f.rows * f.cols * f.matrices * f.copies, table.lanes * f.elements());
  std::vector<int> held(static_cast<std::size_t>(f.rows * f.cols * f.matrices));
  std::vector<int> used(static_cast<std::size_t>(table.lanes * f.elements()));
  for (const LayoutCell& cell : operand.cells) {
    ++held.at(
        static_cast<std::size_t>((cell.at.matrix * f.rows + cell.at.row) * f.cols + cell.at.col));
    ++used.at(static_cast<std::size_t>(cell.lane * f.elements() + cell.element));
  }
  EXPECT_TRUE(std::ranges::all_of(held, [&](int n) { return n == f.copies; }));
  EXPECT_TRUE(std::ranges::all_of(used, [](int n) { return n == 1; }));
  const std::size_t rows = operand.in_memory ? static_cast<std::size_t>(f.rows * f.matrices) : 0;
  EXPECT_EQ(operand.row_addresses.size(), rows);
}

bool mentions(const LayoutTable& table, std::string_view text) {
  return std::ranges::any_of(
      table.notes, [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

// The table of a spelling, checked for completeness.
LayoutTable table_of(const isa::Form& form) {
  const auto read = layout_form(isa::spell(form));
  EXPECT_TRUE(read);
  LayoutTable table = layout_table(*read);
  EXPECT_FALSE(table.operands.empty());
  for (const OperandTable& operand : table.operands) expect_complete(table, operand);
  const bool sparse = form.sparsity != isa::Sparsity::dense;
  EXPECT_EQ(table.metadata.has_value(), sparse);
  if (sparse) {
    EXPECT_EQ(table.metadata->cells.size(),
              static_cast<std::size_t>(form.shape.m * isa::codes_per_row(form)));
  }
  EXPECT_EQ(mentions(table, "scale-a of rows g"), form.block_scale);
  EXPECT_EQ(mentions(table, "b is read from shared memory"), form.opcode == isa::Opcode::wgmma);
  return table;
}

void expect_outputs(const LayoutTable& table) {
  const std::string& spelling = table.instruction;
  const Drawing drawing = draw(table, Operand::none);
  const std::string text = layout_text(drawing, false), svg = layout_svg(drawing);
  EXPECT_TRUE(text.starts_with(spelling)) << text.substr(0, 200);
  EXPECT_TRUE(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find(spelling), std::string::npos);
  const auto json = nlohmann::json::parse(layout_json(table, Operand::none), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["instruction"], spelling);
  ASSERT_EQ(json["operands"].size(), table.operands.size());
  for (std::size_t i = 0; i < table.operands.size(); ++i)
    EXPECT_EQ(json["operands"][i]["cells"].size(), table.operands[i].cells.size());
  for (const std::string& note : table.notes) EXPECT_NE(text.find(note), std::string::npos) << note;
}

TEST(LayoutForms, EveryWarpLevelFormInAllOutputs) {
  const std::vector<isa::Form> forms = isa::forms();
  ASSERT_GT(forms.size(), 1000u);
  for (const isa::Form& form : forms) {
    SCOPED_TRACE(isa::spell(form));
    const LayoutTable table = table_of(form);
    if (!form.stride) expect_outputs(table);  // with a stride the spelling is the same
  }
}

TEST(LayoutForms, EveryWarpgroupForm) {
  const std::vector<isa::Form> forms = isa::wgmma_forms();
  ASSERT_GT(forms.size(), 1000u);
  for (const isa::Form& form : forms) {
    SCOPED_TRACE(isa::spell(form));
    const LayoutTable table = table_of(form);
    if (form.shape.n == 24) expect_outputs(table);
  }
}

// The spellings that the assembler takes, with the registers that it wants of each.
TEST(LayoutForms, EveryLoadAndStoreOfTensorMemory) {
  struct Shape {
    std::string_view word;
    int registers;  // with .x1
  };
  int forms = 0;
  for (const auto& [shape, registers] :
       {Shape{"32x32b", 1}, {"16x64b", 1}, {"16x128b", 2}, {"16x256b", 4}, {"16x32bx2", 1}})
    for (int repeats = 1; repeats <= 128; repeats *= 2)
      for (const std::string_view form :
           {"ld.sync.aligned.{}.x{}.b32", "ld.sync.aligned.{}.x{}.pack::16b.b32",
            "st.sync.aligned.{}.x{}.b32", "st.sync.aligned.{}.x{}.unpack::16b.b32",
            "ld.red.sync.aligned.{}.x{}.min.u32", "ld.red.sync.aligned.{}.x{}.max.abs.NaN.f32"}) {
        const std::string spelling = "tcgen05." + fmt::format(fmt::runtime(form), shape, repeats);
        SCOPED_TRACE(spelling);
        const bool reduces = form.starts_with("ld.red");
        const bool legal =
            reduces ? repeats > 1 && shape.find("x32b") != shape.npos : registers * repeats <= 128;
        ASSERT_TRUE(names_tensor_memory(spelling));
        const Result<LayoutTable> table = tensor_layout(spelling);
        ASSERT_EQ(static_cast<bool>(table), legal);
        if (!table) continue;
        ++forms;
        EXPECT_EQ(table->instruction, spelling);
        ASSERT_EQ(table->operands.size(), 1u);
        const OperandTable& operand = table->operands[0];
        EXPECT_EQ(operand.operand, form.starts_with("st") ? Operand::c : Operand::d);
        EXPECT_EQ(operand.fragment.registers, registers * repeats);
        expect_complete(*table, operand);
        if (repeats == 4) expect_outputs(*table);
      }
  EXPECT_EQ(forms, 2 * 74 + 2 * 14);
}

}  // namespace
}  // namespace tartan::tools
