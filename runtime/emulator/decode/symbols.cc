// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/decode/symbols.h"

#include <algorithm>

#include "runtime/emulator/decode/decoder.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

std::uint64_t step_of(const ptx::Variable& variable) {
  const std::uint64_t alignment = alignment_of(variable);
  return (size_of(variable) + alignment - 1) / alignment * alignment;
}

}  // namespace

std::uint64_t size_of(const ptx::Variable& variable) {
  const std::uint64_t element =
      static_cast<std::uint64_t>(std::max(bits(variable.type), 8)) / 8 * variable.vector;
  return element * variable.elements;
}

std::uint64_t size_with_row(const ptx::Variable& variable) {
  return variable.numbered ? step_of(variable) * *variable.numbered : size_of(variable);
}

std::uint32_t alignment_of(const ptx::Variable& variable) {
  if (variable.align) return variable.align;
  return std::max<std::uint32_t>(
      1, static_cast<std::uint32_t>(bits(variable.type)) / 8 * variable.vector);
}

void Symbols::add(const ptx::Variable& variable, const Symbol& symbol) {
  names_.add(variable, Placed{symbol, variable.numbered ? step_of(variable) : 0});
}

std::optional<Symbol> Symbols::find(std::string_view name) const {
  const auto [placed, number] = names_.find(name);
  if (!placed) return std::nullopt;
  Symbol symbol = placed->first;
  symbol.address += number * placed->step;
  return symbol;
}

std::vector<Symbol> Decoder::opaque_variables(std::string_view type) const {
  std::vector<Symbol> out;
  for (const ptx::Item& item : module_.items) {
    if (item.kind != ptx::ItemKind::Variable) continue;
    const ptx::Variable& variable = module_.variables[item.index];
    if (!variable.attributes.ends_with(type)) continue;
    auto found = globals_.named.find(std::string(variable.name) + (variable.numbered ? "0" : ""));
    if (!found) continue;  // of another module
    found->bytes = size_with_row(variable);
    out.push_back(*found);
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::emulator
