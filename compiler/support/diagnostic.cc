// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <tuple>

namespace tartan {
namespace {

constexpr std::string_view level_name(Level level) {
  switch (level) {
    case Level::Error: return "error";
    case Level::Warning: return "warning";
    case Level::Note: return "note";
  }
  return "";
}

constexpr std::string_view level_colour(Level level) {
  switch (level) {
    case Level::Error: return "\x1b[1;31m";
    case Level::Warning: return "\x1b[1;35m";
    case Level::Note: return "\x1b[1;36m";
  }
  return "";
}

std::string place_prefix(const Place& place) {
  if (!place.known()) return "";
  if (place.line == 0) return place.file + ": ";
  if (place.column == 0) return fmt::format("{}:{}: ", place.file, place.line);
  return fmt::format("{}:{}:{}: ", place.file, place.line, place.column);
}

// Tabs stay tabs, so that the caret lands under the same column whatever the terminal's tab width.
std::string caret_line(const Diag& diag) {
  std::string line;
  const int column = diag.caret > 0 ? diag.caret : diag.place.column;
  const int before = std::min<int>(column - 1, static_cast<int>(diag.source.size()));
  for (int i = 0; i < before; ++i) line += diag.source[i] == '\t' ? '\t' : ' ';
  line += '^';
  const int room = static_cast<int>(diag.source.size()) - column;
  for (int i = 1; i < diag.width && i <= room; ++i) line += '~';
  return line;
}

}  // namespace

std::string to_string(const Diag& diag) {
  return fmt::format("{}{}: {} [{}]", place_prefix(diag.place), level_name(diag.level),
                     diag.message, diag.id);
}

std::string to_text(const Diag& diag, bool colour) {
  std::string text =
      colour ? fmt::format("\x1b[1m{}{}{}:\x1b[0m \x1b[1m{}\x1b[0m [{}]", place_prefix(diag.place),
                           level_colour(diag.level), level_name(diag.level), diag.message, diag.id)
             : to_string(diag);
  if (!diag.source.empty() && diag.place.column > 0) {
    text += '\n' + diag.source + '\n';
    text += colour ? fmt::format("\x1b[1;32m{}\x1b[0m", caret_line(diag)) : caret_line(diag);
  }
  return text;
}

Diag& Diags::report(const Rule& rule, Place place, std::string message) {
  list_.push_back({rule.level, rule.id, std::move(place), std::move(message), {}, 0, 0});
  return list_.back();
}

Diags Diags::one(const Rule& rule, Place place, std::string message) {
  Diags diags;
  diags.report(rule, std::move(place), std::move(message));
  return diags;
}

void Diags::append(Diags other) {
  list_.insert(list_.end(), std::make_move_iterator(other.list_.begin()),
               std::make_move_iterator(other.list_.end()));
}

bool Diags::ok() const { return count(Level::Error) == 0; }

std::size_t Diags::count(Level level) const {
  return static_cast<std::size_t>(std::count_if(
      list_.begin(), list_.end(), [&](const Diag& diag) { return diag.level == level; }));
}

void Diags::sort() {
  std::stable_sort(list_.begin(), list_.end(), [](const Diag& x, const Diag& y) {
    return std::tie(x.place.file, x.place.line, x.place.column) <
           std::tie(y.place.file, y.place.line, y.place.column);
  });
}

std::string Diags::text(bool colour) const {
  std::string out;
  for (const Diag& diag : list_) out += to_text(diag, colour) + '\n';
  return out;
}

std::string Diags::json() const {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Diag& diag : list_)
    array.push_back({{"file", diag.place.file},
                     {"line", diag.place.line},
                     {"column", diag.place.column},
                     {"level", level_name(diag.level)},
                     {"id", diag.id},
                     {"message", diag.message}});
  nlohmann::ordered_json object;
  object["diagnostics"] = std::move(array);
  // Text that is not UTF-8 (a fuzzed file) must not throw: replace what cannot be encoded.
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tartan
