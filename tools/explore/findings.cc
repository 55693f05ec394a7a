// SPDX-License-Identifier: Apache-2.0
// What the checker and the emulator found, at its lines.
#include <charconv>

#include "runtime/launch_findings.h"
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
  const Rule* rule = find_rule(finding.id);
  const bool warns = detail::only_warns(finding.id);
  const Level level = warns && rule ? rule->level : Level::Error;
  Json out = base(word(level), finding.id, finding.message, finding.line);
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

}  // namespace

Json findings_part(const Diags& checked, const Outcome* outcome) {
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
  for (const Expectation& each : outcome->expectations) {
    if (each.ok()) continue;
    const Difference& found = each.difference;
    Json one =
        base("error", "expectation",
             each.buffer + ": " + std::to_string(found.mismatched) + " of " +
                 std::to_string(found.elements) + " elements differ from what is expected; " +
                 "first at index " + std::to_string(found.first) + ": expected " + found.expected +
                 ", found " + found.got,
             0);
    one["by"] = "run";
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace tartan::tools::explore
