// SPDX-License-Identifier: Apache-2.0
#include "tartan/isa/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "compiler/isa/target_hint.h"
#include "compiler/isa/target_name.h"

namespace tartan::TARTAN_ABI {
namespace {

// A decimal number without sign or leading characters; nothing if `text` is anything else.
std::optional<int> parse_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || value < 0)
    return std::nullopt;
  return value;
}

}  // namespace

std::string Version::text() const { return fmt::format("{}.{}", major, minor); }

std::optional<Version> Version::parse(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto major = parse_number(text.substr(0, dot)), minor = parse_number(text.substr(dot + 1));
  if (!major || !minor || *major > 99 || *minor > 9) return std::nullopt;
  return Version{static_cast<std::uint8_t>(*major), static_cast<std::uint8_t>(*minor)};
}

std::string Arch::text() const {
  return suffix ? fmt::format("sm_{}{}", sm, suffix) : fmt::format("sm_{}", sm);
}

std::optional<Arch> arch_named(std::string_view text) {
  if (!text.starts_with("sm_")) return std::nullopt;
  text.remove_prefix(3);
  char suffix = 0;
  if (text.ends_with('a') || text.ends_with('f')) {
    suffix = text.back();
    text.remove_suffix(1);
  }
  const auto sm = parse_number(text);
  if (!sm || !find_arch({*sm, suffix})) return std::nullopt;
  return Arch{*sm, suffix};
}

Result<Arch> Arch::parse(std::string_view text) {
  if (const auto arch = arch_named(text)) return *arch;
  return {"unknown-target"_rule, fmt::format("unknown target {}{}", text, target_hint(text))};
}

Target Target::of(Arch arch) {
  const ArchRow* row = find_arch(arch);
  const Version first = row ? row->first : newest_version;
  return {arch, std::max(first, Version{7, 8})};
}

Result<Target> Target::parse(std::string_view arch) {
  const auto parsed = Arch::parse(arch);
  if (!parsed) return parsed.diags();
  return of(*parsed);
}

std::string Target::text() const { return fmt::format("{}, PTX {}", arch.text(), ptx.text()); }

}  // namespace tartan::TARTAN_ABI
