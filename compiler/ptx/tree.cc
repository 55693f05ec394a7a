// SPDX-License-Identifier: Apache-2.0
#include "tartan/ptx/tree.h"

#include <algorithm>
#include <charconv>
#include <functional>

namespace tartan::TARTAN_ABI::ptx {

const Function* Module::function(std::string_view name) const {
  const auto found = function_index.find(name);
  return found == function_index.end() ? nullptr : &functions[found->second];
}

std::vector<std::string_view> Module::kernels() const {
  std::vector<std::string_view> out;
  for (const Function& function : functions)
    if (function.entry && function.body) out.push_back(function.name);
  return out;
}

namespace {

bool lies_in_module(const Variable& variable) {
  return variable.linkage != ".extern" &&
         (variable.space == StateSpace::global || variable.space == StateSpace::constant);
}

}  // namespace

std::vector<std::string_view> Module::global_variables() const {
  std::vector<std::string_view> out;
  for (const Item& item : items)
    if (item.kind == ItemKind::Variable && lies_in_module(variables[item.index]))
      out.push_back(variables[item.index].name);
  return out;
}

bool Module::has_global_variable(std::string_view name) const {
  const auto numbered = numbered_name(name);
  return std::ranges::any_of(items, [&](const Item& item) {
    if (item.kind != ItemKind::Variable || !lies_in_module(variables[item.index])) return false;
    const Variable& variable = variables[item.index];
    if (!variable.numbered) return variable.name == name;
    return numbered && numbered->plain && numbered->row == variable.name &&
           numbered->number < *variable.numbered;
  });
}

std::string_view Module::file_name(std::uint32_t number) const {
  for (const Directive& directive : directives) {
    if (directive.name != ".file") continue;
    std::string_view text = directive.text.substr(directive.name.size());
    const std::size_t start = text.find_first_not_of(" \t");
    if (start == std::string_view::npos) continue;
    std::uint32_t value = 0;
    std::from_chars(text.data() + start, text.data() + text.size(), value);
    const std::size_t open = text.find('"'), close = text.rfind('"');
    if (value == number && open < close) return text.substr(open + 1, close - open - 1);
  }
  return {};
}

std::optional<NumberedName> numbered_name(std::string_view name) {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits == 0 || digits == name.size()) return std::nullopt;
  NumberedName out{.row = name.substr(0, digits)};
  const auto [end, error] =
      std::from_chars(name.data() + digits, name.data() + name.size(), out.number);
  if (error != std::errc()) return std::nullopt;  // beyond any row's count
  out.plain = name[digits] != '0' || digits + 1 == name.size();
  return out;
}

std::uint32_t Module::offset_of(std::string_view text) const {
  const std::string_view all = source->text();
  const std::less_equal<const char*> before;  // of any two pointers
  if (before(all.data(), text.data()) && before(text.data(), all.data() + all.size()))
    return static_cast<std::uint32_t>(text.data() - all.data());
  for (const Joined& each : joined)
    if (before(each.text->data(), text.data()) &&
        before(text.data(), each.text->data() + each.text->size()))
      return each.offset;
  return 0;
}

}  // namespace tartan::TARTAN_ABI::ptx
