// SPDX-License-Identifier: Apache-2.0
// What the checker and the emulator found, at its lines.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "tools/explore/page.h"

namespace tartan::tools::explore {
namespace {

std::string_view word(Level level) {
  return level == Level::Error ? "error" : level == Level::Warning ? "warning" : "note";
}

std::string_view meaning(std::string_view id) {
  const Rule* rule = find_rule(id);
  return rule ? rule->meaning : "";
}

// The lines of the text that a message names beside its own: "... on line 25 by thread 0".
Json other_lines(std::string_view message, int own) {
  constexpr std::string_view lead = "line ";
  Json out = Json::array();
  for (std::size_t at = message.find(lead); at != std::string_view::npos;
       at = message.find(lead, at + 1)) {
    int line = 0;
    std::from_chars(message.data() + at + lead.size(), message.data() + message.size(), line);
    if (line > 0 && line != own && std::find(out.begin(), out.end(), Json(line)) == out.end())
      out.push_back(line);
  }
  return out;
}

Json base(std::string_view level, std::string_view id, const std::string& message, int line) {
  return {{"level", level},         {"id", id},     {"message", message},
          {"meaning", meaning(id)}, {"line", line}, {"others", other_lines(message, line)}};
}

Json of_diag(const Diag& diag) {
  Json out = base(word(diag.level), diag.id, diag.message, diag.place.line);
  out["by"] = "check";
  out["column"] = diag.place.column;
  out["width"] = diag.width;
  return out;
}

Json of_finding(const Finding& finding) {
  Json out = base(word(finding.level), finding.id, finding.message, finding.line);
  out["by"] = "run";
  out["source"] = finding.source;
  if (finding.block != no_block) out["block"] = {finding.block.x, finding.block.y, finding.block.z};
  if (finding.lane >= 0) out["thread"] = finding.lane;
  return out;
}

bool said(const Diags& checked, const Finding& finding) {
  for (const Diag& diag : checked)
    if (diag.id == finding.id && diag.place.line == finding.line && diag.message == finding.message)
      return true;
  return false;
}

constexpr std::uint64_t most_drawn = 65536;  // elements of a buffer

constexpr std::size_t most_values = 8;  // that differ, with what they are

// The elements that differ, as ranges of indices [first, last]; the first ones with their values.
Json differing(const Comparison& how, std::span<const std::byte> expected,
               std::span<const std::byte> got, Json& values) {
  Json out = Json::array();
  const std::size_t size = how.element_bytes(), count = expected.size() / size;
  for (std::size_t i = 0; i < count; ++i) {
    const auto part = [&](auto all) { return all.subspan(i * size, size); };
    const Difference one = compare(how, part(expected), part(got));
    if (one.mismatched == 0) continue;
    if (values.size() < most_values)
      values.push_back({{"index", i}, {"expected", one.expected}, {"found", one.got}});
    if (!out.empty() && out.back()[1] == i - 1) out.back()[1] = i;
    else out.push_back({i, i});
  }
  return out;
}

Json of_expectation(const Subject& subject, const Outcome& outcome, const Expectation& of) {
  const Difference& found = of.difference;
  Json out = base("error", "expectation",
                  fmt::format("{}: {} of {} elements differ from what is expected; first at index "
                              "{}: expected {}, found {}",
                              of.buffer, found.mismatched, found.elements, found.first,
                              found.expected, found.got),
                  0);
  out["by"] = "run";
  out["elements"] = found.elements;
  out["values"] = Json::array();
  if (found.elements > most_drawn) return out;
  for (const ManifestBuffer* buffer : subject.manifest->all_buffers())
    for (const auto& [name, got] : outcome.results)
      if (buffer->name == of.buffer && name == of.buffer && buffer->expect)
        out["differing"] = differing(of.comparison, *buffer->expect, got, out["values"]);
  return out;
}

}  // namespace

Json findings_part(const Subject& subject, const Diags& checked, const Outcome* outcome) {
  Json out = Json::array();
  for (const Diag& diag : checked) out.push_back(of_diag(diag));
  if (!outcome) return out;
  for (const Finding& finding : outcome->findings)
    if (!said(checked, finding)) out.push_back(of_finding(finding));
  for (const Diag& diag : outcome->refused) {
    Json one = base(word(diag.level), diag.id, diag.message, 0);
    one["by"] = "run";
    out.push_back(std::move(one));
  }
  for (const Expectation& each : outcome->expectations)
    if (!each.ok()) out.push_back(of_expectation(subject, *outcome, each));
  return out;
}

}  // namespace tartan::tools::explore
