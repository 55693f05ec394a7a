// SPDX-License-Identifier: Apache-2.0
// runtime/manifest_fields.h - reads fields of a manifest; each wrong one gives a diagnostic.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/messages.h"
#include "tartan/support/diagnostic.h"
#include "tartan/support/source.h"

namespace tartan::TARTAN_ABI::detail {

using Json = nlohmann::ordered_json;

// A value as a message shows it: long ones truncated, nested ones only named (their depth is not
// limited).
inline std::string shown(const Json& value) {
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_object()) {
    std::vector<std::string> keys;
    for (const auto& item : value.items()) keys.push_back(item.key());
    return shortened(
        fmt::format("an object with {}",
                    keys.empty() ? "no fields" : fmt::format("{}", fmt::join(keys, ", "))));
  }
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t most = 60;
  if (text.size() > most) text = text.substr(0, most) + "...";
  return text;
}

class ManifestFields {
 protected:
  explicit ManifestFields(const Source& source) : source_(source) {}

  std::optional<std::uint64_t> whole(const Json& value, const std::string& path,
                                     std::uint64_t least, std::uint64_t most) {
    if (value.is_number_unsigned()) {
      const auto number = value.get<std::uint64_t>();
      if (number >= least && number <= most) return number;
    }
    fail(path, fmt::format("a whole number from {} to {}", least, most), &value);
    return std::nullopt;
  }

  std::optional<std::string> text(const Json& object, const char* key, const std::string& path) {
    const Json* field = find(object, key);
    if (field && field->is_string() && !field->get_ref<const std::string&>().empty())
      return field->get<std::string>();
    fail(path, "a text", field);
    return std::nullopt;
  }

  template <typename T>
  std::optional<std::vector<T>> list(const Json& value, const std::string& path, T least, T most) {
    if (!value.is_array()) {
      fail(path, "an array of whole numbers", &value);
      return std::nullopt;
    }
    std::vector<T> out;
    for (std::size_t i = 0; i < value.size(); ++i)
      if (const auto each = whole(value[i], fmt::format("{}[{}]", path, i), least, most))
        out.push_back(static_cast<T>(*each));
    if (out.size() == value.size()) return out;
    return std::nullopt;
  }

  template <typename T>
  void numbers(const Json& param, const char* key, const std::string& path, std::vector<T>& out) {
    const Json* field = find(param, key);
    if (!field) return fail(fmt::format("{}.{}", path, key), "an array of whole numbers", field);
    if (auto values =
            list<T>(*field, fmt::format("{}.{}", path, key), 0, std::numeric_limits<T>::max()))
      out = std::move(*values);
  }

  // One of the values, as JSON writes them; the first one if the field is omitted.
  template <typename T>
  T choice(const Json& param, const char* key, const std::string& path,
           const std::vector<std::string_view>& values) {
    const Json* field = find(param, key);
    if (!field) return T{};
    const std::string found = shown(*field);
    const auto at = std::find(values.begin(), values.end(), found);
    if (at == values.end())
      fail(fmt::format("{}.{}", path, key), fmt::format("one of {}", fmt::join(values, ", ")),
           field);
    return static_cast<T>(at == values.end() ? 0 : at - values.begin());
  }

  static const Json* find(const Json& object, const char* key) {
    const auto it = object.find(key);
    return it == object.end() ? nullptr : &*it;
  }

  void known_fields(const Json& object, const std::string& path,
                    const std::vector<std::string_view>& known) {
    for (const auto& [key, value] : object.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        report(path.empty() ? key : path + "." + key,
               fmt::format("unknown field: expected {}", fmt::join(known, ", ")));
  }

  void fail(const std::string& path, std::string_view expected, const Json* found) {
    report(path, fmt::format("expected {}, found {}", expected, found ? shown(*found) : "nothing"));
  }

  void report(const std::string& path, std::string_view message) {
    diags_.report("manifest"_rule, {source_.name(), 0, 0}, fmt::format("{}: {}", path, message));
  }

  const Source& source_;
  Diags diags_{Reporting{.max_errors = most_errors}};
};

}  // namespace tartan::TARTAN_ABI::detail
