// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/equal.h"

namespace tartan::TARTAN_ABI {
namespace {

using Json = nlohmann::ordered_json;
using Verdict = Equality::Verdict;

constexpr std::size_t most_paths = 8;  // in text

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view names[] = {"same", "different", "undecided", "refused", "trapped"};
  return names[static_cast<int>(verdict)];
}

std::string element_text(const UnequalElement& one) {
  return fmt::format("{}[{}] ({}): {} and {} in the field, {} and {} as numbers", one.buffer,
                     one.index, one.type, one.a, one.b, one.real_a, one.real_b);
}

std::string term_text(const UnequalTerm& term) {
  const std::string which =
      term.elements == 1
          ? fmt::format("{}[{}]", term.buffer, term.index)
          : fmt::format("{} elements of {} from {} on", term.elements, term.buffer, term.index);
  return fmt::format("{}: {}", which, term.text);
}

Diag verdict_diag(const Equality& equality) {
  Diag out{.level = Level::Error};
  if (equality.verdict == Verdict::different) {
    out.id = "different-function"_rule.id;
    out.message = fmt::format("{} of {} elements differ; the first is {}", equality.unequal,
                              equality.elements,
                              equality.first ? element_text(*equality.first) : std::string());
    if (equality.term) out.message += "; input " + term_text(*equality.term);
    return out;
  }
  out.id = "undecided"_rule.id;
  out.place = {equality.ptx, equality.line, 0};
  out.message = "undecided: " + equality.reason;
  if (equality.first) out.message += "; the first element is " + element_text(*equality.first);
  return out;
}

}  // namespace

int Equality::exit_code() const {
  switch (verdict) {
    case Verdict::same: return 0;
    case Verdict::different: return 1;
    case Verdict::refused: return 2;
    case Verdict::trapped: return 3;
    case Verdict::undecided: return 4;
  }
  return 2;
}

std::string Equality::text() const {
  if (verdict != Verdict::same) return "";
  std::string out = fmt::format("{} elements are the same function of the inputs", elements);
  if (!paths.empty()) out += ", for these paths:";
  out += '\n';
  for (std::size_t i = 0; i < std::min(paths.size(), most_paths); ++i)
    out += fmt::format("  {}: {}\n", paths[i].ptx, paths[i].text);
  if (paths.size() > most_paths) out += fmt::format("  and {} more\n", paths.size() - most_paths);
  return out;
}

std::string Equality::complaints(bool colour) const {
  std::string out;
  for (const std::string& note : notes) out += fmt::format("note: {}\n", note);
  out += refused.text(colour);
  for (const Finding& finding : findings)
    out += to_text(Diag{.level = Level::Error,
                        .id = finding.id,
                        .place = {ptx, finding.line, 0},
                        .message = finding.message},
                   colour) +
           '\n';
  if (verdict == Verdict::different || verdict == Verdict::undecided)
    out += to_text(verdict_diag(*this), colour) + '\n';
  return out;
}

std::string Equality::json() const {
  Json json = {{"schema_version", json_schema_version},
               {"a", a},
               {"b", b},
               {"verdict", name_of(verdict)},
               {"elements", elements},
               {"unequal", unequal}};
  if (first)
    json["first"] = {{"buffer", first->buffer}, {"index", first->index},  {"offset", first->offset},
                     {"type", first->type},     {"a", first->a},          {"b", first->b},
                     {"real_a", first->real_a}, {"real_b", first->real_b}};
  if (term)
    json["term"] = {{"buffer", term->buffer},
                    {"index", term->index},
                    {"elements", term->elements},
                    {"text", term->text}};
  if (!reason.empty()) json["reason"] = {{"message", reason}, {"line", line}, {"ptx", ptx}};
  json["notes"] = notes;
  if (!paths.empty()) json["paths"] = Json::array();
  for (const EqualPath& each : paths)
    json["paths"].push_back({{"ptx", each.ptx}, {"line", each.line}, {"message", each.text}});
  Json list = Json::array();
  for (const Diag& diag : refused)
    list.push_back({{"id", diag.id}, {"message", diag.message}, {"line", diag.place.line}});
  for (const Finding& finding : findings)
    list.push_back({{"id", finding.id}, {"message", finding.message}, {"line", finding.line}});
  json["findings"] = std::move(list);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Equality refused_equality(Diags diags) {
  Equality out;
  out.refused = std::move(diags);
  return out;
}

}  // namespace tartan::TARTAN_ABI
