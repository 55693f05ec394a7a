// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "tools/layout_drawing.h"

namespace tartan::tools {
namespace {

using Json = nlohmann::ordered_json;

Json operand_json(const OperandTable& table) {
  const isa::Fragment& fragment = table.fragment;
  Json out{{"operand", name(table.operand)},
           {"type", name(fragment.type)},
           {"rows", fragment.rows},
           {"cols", fragment.cols},
           {"matrices", fragment.matrices},
           {"registers", fragment.registers},
           {"register_bits", fragment.register_bits},
           {"elements_per_register", fragment.per_register},
           {"bits_per_element", fragment.container_bits},
           {"copies", fragment.copies}};
  Json& cells = out["cells"] = Json::array();
  for (const LayoutCell& cell : table.cells)
    cells.push_back({{"matrix", cell.at.matrix},
                     {"row", cell.at.row},
                     {"col", cell.at.col},
                     {"lane", cell.lane},
                     {"register", cell.reg},
                     {"position", cell.position}});
  if (!table.in_memory) return out;
  Json& addresses = out["row_addresses"] = Json::array();
  for (const RowAddress& address : table.row_addresses)
    addresses.push_back({{"matrix", address.matrix}, {"row", address.row}, {"lane", address.lane}});
  return out;
}

Json metadata_json(const MetadataTable& table) {
  Json out{{"selector", table.selector},
           {"selectors", table.selectors},
           {"rows", table.rows},
           {"chunks", table.chunks},
           {"columns_per_chunk", table.columns_per_chunk}};
  Json& cells = out["cells"] = Json::array();
  for (const MetadataCell& cell : table.cells)
    cells.push_back({{"row", cell.row},
                     {"chunk", cell.chunk},
                     {"lane", cell.lane},
                     {"lowest_bit", cell.lowest_bit}});
  return out;
}

}  // namespace

std::string layout_json(const LayoutTable& table, Operand only) {
  Json out{{"schema_version", json_schema_version},
           {"instruction", table.instruction},
           {"lanes", table.lanes}};
  Json& operands = out["operands"] = Json::array();
  for (const OperandTable& operand : table.operands)
    if (only == Operand::none || operand.operand == only) operands.push_back(operand_json(operand));
  if (table.metadata && (only == Operand::none || only == Operand::a))
    out["metadata"] = metadata_json(*table.metadata);
  out["notes"] = table.notes;
  return out.dump();
}

}  // namespace tartan::tools
