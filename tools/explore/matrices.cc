// SPDX-License-Identifier: Apache-2.0
// Matrix instructions of a kernel as lane maps: what `tartan layout` draws, without its words.
#include <map>

#include "tools/explore/page.h"
#include "tools/layout_drawing.h"
#include "tools/layout_table.h"

namespace tartan::tools::explore {
namespace {

// The place of each element, by lane and then by element: (matrix * rows + row) * columns + column.
Json places(const OperandTable& table) {
  const isa::Fragment& fragment = table.fragment;
  Json out = Json::array();
  for (const LayoutCell& cell : table.cells)
    out.push_back((cell.at.matrix * fragment.rows + cell.at.row) * fragment.cols + cell.at.col);
  return out;
}

Json of_operand(const OperandTable& table) {
  const isa::Fragment& fragment = table.fragment;
  Json out{{"operand", name(table.operand)},
           {"type", name(fragment.type)},
           {"rows", fragment.rows},
           {"cols", fragment.cols},
           {"matrices", fragment.matrices},
           {"registers", fragment.registers},
           {"per_register", fragment.per_register},
           {"copies", fragment.copies},
           {"register_bits", fragment.register_bits},
           {"in_memory", table.in_memory},
           {"at", places(table)}};
  if (!table.in_memory) return out;
  Json& addresses = out["addresses"] = Json::array();  // the lane of each row of each matrix
  for (const RowAddress& address : table.row_addresses) addresses.push_back(address.lane);
  return out;
}

// "add.f16" has no lane map, and neither has a form that does not exist.
std::optional<isa::Form> form_of(const ptx::Instruction& instruction) {
  if (isa::matrix_opcode(instruction.opcode) == isa::Opcode::none) return std::nullopt;
  const auto form = layout_form(instruction.opcode);
  return form ? std::optional(*form) : std::nullopt;
}

std::string_view register_name(const ptx::Operand& operand) {
  return operand.kind == ptx::OperandKind::Name ? operand.text : std::string_view("?");
}

// The registers of each fragment, as the instruction names them: d before a, b and c.
Json registers_of(const ptx::Module& module, const ptx::Instruction& instruction,
                  const isa::Form& form) {
  std::vector<Operand> order;
  const std::vector<Operand> has = register_operands(form);
  for (const Operand each : {Operand::d, Operand::a, Operand::b, Operand::c})
    if (std::ranges::find(has, each) != has.end()) order.push_back(each);
  Json out = Json::object();
  std::size_t next = 0;
  for (const ptx::Operand& operand : module.operands_of(instruction)) {
    const bool fragment =
        operand.kind == ptx::OperandKind::Vector ||
        (operand.kind == ptx::OperandKind::Name && form.opcode != isa::Opcode::wgmma);
    if (!fragment || next == order.size()) continue;
    Json& list = out[std::string(name(order[next++]))] = Json::array();
    if (operand.kind == ptx::OperandKind::Name) list.push_back(operand.text);
    for (const ptx::Operand& each : module.children(operand)) list.push_back(register_name(each));
  }
  return out;
}

Json palette() {
  Json out = Json::array();
  for (int lane = 0; lane < 32; ++lane) {
    const Colour colour = lane_colour(lane);
    out.push_back({Colour::intensity(colour.red), Colour::intensity(colour.green),
                   Colour::intensity(colour.blue)});
  }
  return out;
}

}  // namespace

Json matrices_part(const ptx::Module& module) {
  Json forms = Json::array(), uses = Json::array();
  std::map<std::string, std::size_t> known;
  for (const ptx::Instruction& instruction : module.instructions) {
    const auto form = form_of(instruction);
    if (!form) continue;
    const auto [at, is_new] = known.emplace(isa::spell(*form), forms.size());
    if (is_new) {
      const LayoutTable table = layout_table(*form);
      Json operands = Json::array();
      for (const OperandTable& each : table.operands) operands.push_back(of_operand(each));
      forms.push_back({{"instruction", at->first},
                       {"lanes", table.lanes},
                       {"operands", std::move(operands)},
                       {"notes", table.notes}});
    }
    uses.push_back({{"line", module.source->line(instruction.offset)},
                    {"form", at->second},
                    {"registers", registers_of(module, instruction, *form)}});
  }
  return {{"palette", palette()}, {"forms", std::move(forms)}, {"uses", std::move(uses)}};
}

}  // namespace tartan::tools::explore
