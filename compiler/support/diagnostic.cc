// SPDX-License-Identifier: Apache-2.0
#include "tartan/support/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

#include "compiler/support/messages.h"

namespace tartan::TARTAN_ABI {
namespace {

constexpr std::string_view level_colour(Level level) {
  switch (level) {
    case Level::Error: return "\x1b[1;31m";
    case Level::Warning: return "\x1b[1;35m";
    case Level::Note: return "\x1b[1;36m";
  }
  return "";
}

struct Character {
  std::size_t bytes = 0;  // 0: not UTF-8
  char32_t code = 0;
};

// The character that `text` begins with.
Character decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, first};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (first < 0xc0 || first > 0xf4 || text.size() < bytes) return {};
  char32_t code = first & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < least[bytes] || code > 0x10ffff || surrogate ? Character{} : Character{bytes, code};
}

// Characters that a terminal interprets: C0, DEL, C1, and bidirectional controls.
bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

// `text` with all characters escaped except printable ones and those in `kept`.
std::string escaped(std::string_view text, std::string_view kept) {
  std::string out;
  while (!text.empty()) {
    const Character at = decode(text);
    const std::size_t bytes = at.bytes == 0 ? 1 : at.bytes;
    const bool plain =
        at.bytes != 0 && (!is_control(at.code) || kept.find(text[0]) != std::string_view::npos);
    if (plain) out += text.substr(0, bytes);
    else
      for (const char c : text.substr(0, bytes))
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    text.remove_prefix(bytes);
  }
  return out;
}

std::string message_text(const Diag& diag) {
  std::string out;
  for (const char c : escaped(diag.message, "\n")) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out;
}

std::string place_prefix(const Place& place) {
  if (!place.known()) return "";
  const std::string file = printable(place.file);
  if (place.line == 0) return file + ": ";
  if (place.column == 0) return fmt::format("{}:{}: ", file, place.line);
  return fmt::format("{}:{}:{}: ", file, place.line, place.column);
}

// Keeps tabs, so that the caret is under the same column for any tab width.
std::string source_text(std::string_view source) { return escaped(source, "\t"); }

// Blanks as wide as the displayed `source`.
std::string blanks(std::string_view source) {
  std::string out;
  for (const char c : source_text(source))
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) out += c == '\t' ? '\t' : ' ';
  return out;
}

std::string caret_line(const Diag& diag) {
  const std::string_view source = diag.source;
  const auto column = static_cast<std::size_t>(diag.caret > 0 ? diag.caret : diag.place.column);
  const std::size_t before = std::min(column - 1, source.size());
  const std::size_t marked =
      blanks(source.substr(before, static_cast<std::size_t>(std::max(diag.width, 1)))).size();
  return blanks(source.substr(0, before)) + '^' +
         std::string(std::max<std::size_t>(marked, 1) - 1, '~');
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, ""); }

std::string to_string(const Diag& diag) {
  return fmt::format("{}{}: {} [{}]", place_prefix(diag.place), level_name(diag.level),
                     message_text(diag), diag.id);
}

std::string to_text(const Diag& diag, bool colour) {
  std::string text = colour ? fmt::format("\x1b[1m{}{}{}:\x1b[0m \x1b[1m{}\x1b[0m [{}]",
                                          place_prefix(diag.place), level_colour(diag.level),
                                          level_name(diag.level), message_text(diag), diag.id)
                            : to_string(diag);
  if (!diag.source.empty() && diag.place.column > 0) {
    text += '\n' + source_text(diag.source) + '\n';
    text += colour ? fmt::format("\x1b[1;32m{}\x1b[0m", caret_line(diag)) : caret_line(diag);
  }
  return text;
}

void RuleLevels::set(const Rule& rule, std::optional<Level> level) {
  const auto known = std::ranges::find(levels_, rule.id, [](const auto& row) { return row.first; });
  if (known != levels_.end()) known->second = level;
  else levels_.emplace_back(rule.id, level);
}

std::optional<Level> RuleLevels::of(const Rule& rule) const {
  return overridden(rule).value_or(rule.level);
}

std::optional<std::optional<Level>> RuleLevels::overridden(const Rule& rule) const {
  for (const auto& [id, level] : levels_)
    if (id == rule.id) return level;
  return std::nullopt;
}

bool RuleLevels::set(std::string_view id, std::optional<Level> level) {
  const Rule* rule = find_rule(id);
  if (rule) set(*rule, level);
  return rule != nullptr;
}

void Diags::keep(Diag diag) {
  const auto most = static_cast<std::size_t>(std::max(reporting_.max_errors, 0));
  if (most > 0 && errors_ > left_out_ + most && list_.size() >= full_) {
    sort();
    full_ = 2 * (list_.size() + most);
  }
  errors_ += diag.level == Level::Error;
  diag.message = detail::shortened(std::move(diag.message));
  list_.push_back(std::move(diag));
}

void Diags::add(Diag diag) { keep(std::move(diag)); }

Diag& Diags::report(const Rule& rule, Place place, std::string message) {
  const auto level = reporting_.levels.of(rule);
  if (!level) return ignored_;
  keep({*level, rule.id, std::move(place), std::move(message), {}, 0, 0});
  return list_.back();
}

Diags Diags::one(const Rule& rule, Place place, std::string message) {
  Diags diags;
  diags.report(rule, std::move(place), std::move(message));
  return diags;
}

void Diags::append(Diags other) {
  for (Diag& diag : other.list_) keep(std::move(diag));
  errors_ += other.left_out_;
  left_out_ += other.left_out_;
}

std::size_t Diags::count(Level level) const {
  return static_cast<std::size_t>(std::count_if(
      list_.begin(), list_.end(), [&](const Diag& diag) { return diag.level == level; }));
}

void Diags::sort() {
  std::stable_sort(list_.begin(), list_.end(), [](const Diag& x, const Diag& y) {
    return std::tie(x.place.file, x.place.line, x.place.column) <
           std::tie(y.place.file, y.place.line, y.place.column);
  });
  if (reporting_.max_errors <= 0) return;
  const auto is_error = [](const Diag& diag) { return diag.level == Level::Error; };
  const auto end =
      std::find_if(list_.begin(), list_.end(), [&, errors = 0](const Diag& diag) mutable {
        return is_error(diag) && ++errors > reporting_.max_errors;
      });
  left_out_ += static_cast<std::size_t>(std::count_if(end, list_.end(), is_error));
  list_.erase(end, list_.end());
}

std::string Diags::text(bool colour) const {
  std::string out;
  for (const Diag& diag : list_) out += to_text(diag, colour) + '\n';
  if (left_out_ > 0)
    out += fmt::format("{}note: {} more error{} not shown\n",
                       list_.empty() ? "" : place_prefix({list_.back().place.file, 0, 0}),
                       left_out_, left_out_ == 1 ? "" : "s");
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
  object["schema_version"] = json_schema_version;
  object["diagnostics"] = std::move(array);
  object["truncated"] = left_out_;
  // Text that is not UTF-8 (a fuzzed file) must not throw: replaces what cannot be encoded.
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void detail::throw_no_value(const Diags& diags) {
  throw std::logic_error("this Result has no value: " + diags.text());
}

}  // namespace tartan::TARTAN_ABI
