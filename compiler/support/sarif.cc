// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/sarif.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tartan::TARTAN_ABI {
namespace {

using Json = nlohmann::ordered_json;

// A path as a URI reference (RFC 3986).
std::string uri_of(std::string_view path) {
  constexpr std::string_view plain = "-._~/";
  std::string out = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (letter || plain.find(c) != std::string_view::npos) out += c;
    else out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

Json rule_of(const Rule& rule) {
  return {{"id", rule.id},
          {"shortDescription", {{"text", rule.meaning}}},
          {"defaultConfiguration", {{"level", level_name(rule.level)}}}};
}

Json location_of(const Diag& diag) {
  Json physical{{"artifactLocation", {{"uri", uri_of(diag.place.file)}}}};
  if (diag.place.line > 0) {
    Json& region = physical["region"] = {{"startLine", diag.place.line}};
    if (diag.place.column > 0) region["startColumn"] = diag.place.column;
    if (diag.place.column > 0 && diag.width > 0)
      region["endColumn"] = diag.place.column + diag.width;
  }
  return {{"physicalLocation", std::move(physical)}};
}

Json result_of(const Diag& diag) {
  Json out{{"ruleId", diag.id}};
  const auto row = std::ranges::find(rules, diag.id, &Rule::id);
  if (row != std::end(rules)) out["ruleIndex"] = row - std::begin(rules);
  out["level"] = level_name(diag.level);
  out["message"] = {{"text", diag.message}};
  if (diag.place.known()) out["locations"] = Json::array({location_of(diag)});
  return out;
}

}  // namespace

std::string to_sarif(const Diags& diags, std::string_view version, bool completed) {
  Json known = Json::array(), results = Json::array();
  for (const Rule& rule : rules) known.push_back(rule_of(rule));
  for (const Diag& diag : diags) results.push_back(result_of(diag));
  Json run{{"tool", {{"driver", {{"name", "tartan"}, {"version", version}, {"rules", known}}}}},
           {"columnKind", "unicodeCodePoints"},
           {"invocations", Json::array({{{"executionSuccessful", completed}}})},
           {"results", std::move(results)},
           {"properties", {{"truncated", diags.left_out()}}}};
  const Json log{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                 {"version", "2.1.0"},
                 {"runs", Json::array({std::move(run)})}};
  return log.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tartan::TARTAN_ABI
