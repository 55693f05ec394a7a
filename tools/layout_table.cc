// SPDX-License-Identifier: Apache-2.0
#include "tools/layout_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tartan/isa/instruction.h"

namespace tartan::tools {
namespace {

// Targets that together have every form of the tables, with all architecture suffixes.
const Target newest_warp{{120, 'a'}, newest_version};
const Target newest_warpgroup{{90, 'a'}, newest_version};

bool warpgroup(const isa::Form& form) { return form.opcode == isa::Opcode::wgmma; }
bool moves_rows(const isa::Form& form) {
  return form.opcode == isa::Opcode::ldmatrix || form.opcode == isa::Opcode::stmatrix;
}
bool sparse(const isa::Form& form) { return form.sparsity != isa::Sparsity::dense; }
bool is_wmma(const isa::Form& form) { return isa::family(form).starts_with("wmma"); }

std::string nearest_text(const isa::Form& form) {
  const auto near = isa::nearest(form, warpgroup(form) ? newest_warpgroup : newest_warp);
  return near ? fmt::format("; the nearest form is {}", isa::spell(*near)) : "";
}

// The elements before movmatrix: those that a lane would hold without .trans.
isa::Form form_of(isa::Form form, Operand operand) {
  if (form.opcode == isa::Opcode::movmatrix && operand == Operand::a) form.trans = false;
  return form;
}

OperandTable operand_table(const isa::Form& whole, Operand operand, int lanes) {
  const isa::Form form = form_of(whole, operand);
  OperandTable out;
  out.operand = operand;
  out.fragment = isa::fragment(form, operand);
  out.in_memory = moves_rows(form);
  const isa::Fragment& fragment = out.fragment;
  for (int lane = 0; lane < lanes; ++lane)
    for (int i = 0; i < fragment.elements(); ++i)
      out.cells.push_back({isa::coord(form, operand, lane, i), lane, i, i / fragment.per_register,
                           i % fragment.per_register});
  if (!out.in_memory) return out;
  for (int matrix = 0; matrix < fragment.matrices; ++matrix)
    for (int row = 0; row < fragment.rows; ++row)
      out.row_addresses.push_back({matrix, row, isa::address_lane(form, matrix, row)});
  return out;
}

MetadataTable metadata_table(const isa::Form& form, int selector) {
  MetadataTable out;
  out.selector = selector;
  out.selectors = isa::selectors(form);
  out.rows = form.shape.m;
  out.chunks = isa::codes_per_row(form);
  out.columns_per_chunk = form.shape.k / out.chunks;
  for (int row = 0; row < out.rows; ++row)
    for (int chunk = 0; chunk < out.chunks; ++chunk) {
      const isa::MetadataBits bits = isa::metadata(form, row, chunk, selector);
      out.cells.push_back({row, chunk, bits.lane, bits.lowest});
    }
  return out;
}

std::vector<std::string> notes(const isa::Form& form) {
  std::vector<std::string> out;
  if (is_wmma(form))
    out.emplace_back(
        "the manual leaves wmma fragments unspecified: this is the map recorded on sm_90");
  if (form.opcode == isa::Opcode::movmatrix)
    out.emplace_back(
        "rows and columns are those of the matrix that a holds; d holds its transpose");
  if (isa::detail::quad_pairs(form))
    out.emplace_back("four independent products, one per pair of quads");
  if (warpgroup(form)) {
    out.emplace_back("128 lanes: the four warps of a warpgroup, T0 to T127");
    out.emplace_back("b is read from shared memory through its descriptor: it has no fragment");
    out.emplace_back(
        "a is shown in registers; it may also be read from shared memory, without a fragment");
    out.emplace_back("d is the accumulator: read and written in the same registers");
  }
  if (sparse(form)) {
    const bool recorded = isa::find(form)->since.has(newest_warpgroup);
    out.emplace_back(recorded
                         ? "the metadata map was recorded on sm_90"
                         : "the metadata map was recorded on sm_90 with the same number of codes "
                           "per row; sm_90 lacks this form");
  }
  if (form.block_scale) {
    out.emplace_back(
        "scale-a of rows g (0 to 7) and g + 8: lanes 4g + 2 * thread-id-a and the next one, from "
        "byte byte-id-a on, lowest k in the lowest byte");
    out.emplace_back(
        "scale-b of column g: lane 4g + thread-id-b, from byte byte-id-b on, lowest k in the "
        "lowest byte");
  }
  return out;
}

}  // namespace

namespace {

// Of a spelling that names no form: what it may be completed to.
std::string completions(const isa::Form& form) {
  std::vector<std::string> shapes;
  std::string example;
  int count = 0;
  for (const isa::Form& each : warpgroup(form) ? isa::wgmma_forms() : isa::forms()) {
    if (isa::family(each) != isa::family(form)) continue;
    if (form.shape.m != 0 && each.shape != form.shape) continue;
    ++count;
    if (example.empty()) example = isa::spell(each);
    if (std::ranges::find(shapes, each.shape.text()) == shapes.end())
      shapes.push_back(each.shape.text());
  }
  if (count == 0) return nearest_text(form);
  constexpr std::size_t most_shapes = 12;  // wgmma has one for each n
  const std::size_t left_out = shapes.size() - std::min(shapes.size(), most_shapes);
  shapes.resize(shapes.size() - left_out);
  return fmt::format("; {} has {} forms, such as {}, of shape{} {}{}; `tartan isa {}` lists them",
                     isa::family(form), count, example, shapes.size() == 1 ? "" : "s",
                     fmt::join(shapes, ", "), left_out ? fmt::format(" and {} more", left_out) : "",
                     isa::family(form));
}

}  // namespace

std::string_view without_operands(std::string_view text) {
  constexpr std::string_view blanks = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_first_of(" \t\n;{["));
}

Result<isa::Form> layout_form(std::string_view spelling) {
  spelling = without_operands(spelling);
  if (isa::matrix_opcode(spelling) == isa::Opcode::none)
    return {"unknown-form"_rule,
            fmt::format("\"{}\" is not a matrix instruction: expected one of ldmatrix, stmatrix, "
                        "movmatrix, wmma.load, wmma.store, wmma.mma, mma, wgmma.mma_async, "
                        "tcgen05.ld, tcgen05.ld.red and tcgen05.st",
                        spelling)};
  isa::FormText text = isa::parse_form(spelling);
  isa::Form& form = text.form;
  form.aligned = true;
  form.a_in_registers = warpgroup(form);
  Diags diags;
  for (const std::string_view word : text.unknown)
    diags.report(
        "unknown-qualifier"_rule, {},
        fmt::format("{} has no qualifier .{}{}", isa::family(form), word, nearest_text(form)));
  for (const std::string_view word : text.repeated)
    diags.report("unknown-qualifier"_rule, {},
                 fmt::format("unexpected qualifier .{} of {}{}", word, isa::family(form),
                             nearest_text(form)));
  if (!diags.ok()) return diags;
  if (!isa::find(form))
    return {"unknown-form"_rule,
            text.types == 0
                ? fmt::format("incomplete instruction {}{}", spelling, completions(form))
                : fmt::format("unknown instruction {}{}", spelling, nearest_text(form))};
  return form;
}

std::vector<Operand> register_operands(const isa::Form& form) {
  switch (form.opcode) {
    case isa::Opcode::ldmatrix: return {Operand::d};
    case isa::Opcode::stmatrix: return {Operand::c};
    case isa::Opcode::movmatrix: return {Operand::a, Operand::d};
    case isa::Opcode::wmma_load:
    case isa::Opcode::wmma_store: return {form.operand};
    case isa::Opcode::wgmma: return {Operand::a, Operand::d};
    default: return {Operand::a, Operand::b, Operand::c, Operand::d};
  }
}

LayoutTable layout_table(const isa::Form& form, int selector) {
  LayoutTable out;
  out.instruction = isa::spell(form);
  out.since = isa::find(form)->since;
  out.lanes = warpgroup(form) ? 128 : 32;
  for (const Operand operand : register_operands(form))
    out.operands.push_back(operand_table(form, operand, out.lanes));
  if (sparse(form)) out.metadata = metadata_table(form, selector);
  out.notes = notes(form);
  return out;
}

}  // namespace tartan::tools
