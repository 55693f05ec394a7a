// SPDX-License-Identifier: Apache-2.0
#include "bindings/c/read_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/support/json_text.h"
#include "compiler/support/nearest.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

using nlohmann::json;

// What an option's member is expected to be; empty: it was stored.
struct Store {
  const json& from;

  std::string operator()(int* to) const {
    if (!from.is_number_integer() || from != json(from.get<int>())) return "an integer of 32 bits";
    *to = from.get<int>();
    return {};
  }
  std::string operator()(double* to) const {
    if (!from.is_number()) return "a number";
    *to = from.get<double>();
    return {};
  }
  std::string operator()(std::string* to) const {
    if (!from.is_string() || from.get_ref<const std::string&>().empty())
      return "a string that is not empty";
    *to = from.get<std::string>();
    return {};
  }
  std::string operator()(bool* to) const {
    if (!from.is_boolean()) return "true or false";
    *to = from.get<bool>();
    return {};
  }
  std::string operator()(std::vector<std::string>* to) const {
    const auto is_string = [](const json& each) { return each.is_string(); };
    if (!from.is_array() || !std::ranges::all_of(from, is_string)) return "an array of strings";
    *to = from.get<std::vector<std::string>>();
    return {};
  }
};

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

// {"m": 256}: the first option, with a value of its type.
std::string example(std::span<const Option> options) {
  if (options.empty()) return "{}";
  const auto& value = options.front().value;
  const char* const text = std::holds_alternative<bool*>(value)                       ? "true"
                           : std::holds_alternative<std::string*>(value)              ? "\"...\""
                           : std::holds_alternative<std::vector<std::string>*>(value) ? "[\"...\"]"
                                                                                      : "256";
  return fmt::format("{{\"{}\": {}}}", options.front().name, text);
}

}  // namespace

Result<std::vector<std::string>> read_json(std::span<const Option> options, std::string_view text,
                                           std::string_view what) {
  std::vector<std::string> given;
  if (text.empty()) return given;
  if (nested_too_deep(text))
    return {"usage"_rule, fmt::format("{}: nested too deep: expected at most {} brackets", what,
                                      most_json_nesting)};
  const json root = json::parse(text, nullptr, false);
  if (!root.is_object())
    return {"usage"_rule,
            fmt::format("{}: expected a JSON object such as {}, found {}", what, example(options),
                        root.is_discarded() ? "text that is not JSON" : shown(root))};
  Diags diags;
  for (const auto& [name, value] : root.items()) {
    const auto option = std::ranges::find(options, name, &Option::name);
    if (option == options.end()) {
      std::vector<std::string_view> names;
      for (const Option& each : options) names.push_back(each.name);
      diags.report("usage"_rule, {},
                   fmt::format("{}: unknown option {}{}", what, name, nearest_hint(name, names)));
      continue;
    }
    const std::string expected = std::visit(Store{value}, option->value);
    if (!expected.empty())
      diags.report(
          "usage"_rule, {},
          fmt::format("{}: option {}: expected {}, found {}", what, name, expected, shown(value)));
    given.push_back(name);
  }
  if (!diags.ok()) return diags;
  return given;
}

}  // namespace tartan::TARTAN_ABI::builtins
