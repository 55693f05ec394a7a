// SPDX-License-Identifier: Apache-2.0
#include "compiler/isa/target_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <vector>

#include "compiler/isa/target_name.h"
#include "compiler/support/nearest.h"
#include "tartan/isa/gpus.h"

namespace tartan::TARTAN_ABI {
namespace {

constexpr std::string_view digits = "0123456789";
constexpr std::string_view prefixes[] = {"sm_", "compute_"};

// "90a" of sm_90a, compute_90a, sm90a and 90a.
std::string_view number_of(std::string_view text) {
  return text.substr(std::min(text.find_first_of(digits), text.size()));
}

// sm_107a, compute_107a: a number and perhaps a suffix, perhaps of a newer target.
std::optional<Arch> well_formed(std::string_view text) {
  const auto prefix =
      std::ranges::find_if(prefixes, [&](std::string_view each) { return text.starts_with(each); });
  if (prefix == std::end(prefixes)) return std::nullopt;
  text.remove_prefix(prefix->size());
  Arch out;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.sm);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text == "a" || text == "f") out.suffix = text[0];
  return text.size() == (out.suffix != 0) ? std::optional(out) : std::nullopt;
}

// The target with almost this number, and with its suffix if there is one.
std::string by_number(Arch wanted) {
  constexpr int most = 2;
  const auto away = [&](const ArchRow& row) {
    return 2 * std::abs(row.arch.sm - wanted.sm) + (row.arch.suffix != wanted.suffix);
  };
  const ArchRow& best = *std::ranges::min_element(archs, {}, away);
  if (std::abs(best.arch.sm - wanted.sm) <= most)
    return fmt::format("; the nearest is {}", best.arch.text());
  const Arch oldest = archs[0].arch, newest = archs[std::size(archs) - 1].arch;
  if (wanted.sm > oldest.sm && wanted.sm < newest.sm)
    return ": no GPU that this release of Tartan supports has this number";
  return fmt::format(": this release of Tartan supports {} to {}", oldest.text(), newest.text());
}

}  // namespace

Version nearest_version(Version version) {
  for (const Version& last : last_versions)
    if (version.major <= last.major) return version.exists() ? version : last;
  return newest_version;
}

std::string target_hint(std::string_view text) {
  if (const isa::GpuRow* gpu = isa::gpu_named(text))
    return fmt::format("; the GPU {} has {}", gpu->name, isa::own_arch(*gpu).text());
  if (const auto same = arch_named(fmt::format("sm_{}", number_of(text))))
    return fmt::format("; the nearest is {}", same->text());
  if (const auto wanted = well_formed(text)) return by_number(*wanted);
  std::vector<std::string> names;
  for (const ArchRow& row : archs) names.push_back(row.arch.text());
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string near = nearest_hint(text, known);
  return near.empty() ? ": expected a name such as sm_90a" : near;
}

std::string version_problem(Version version) {
  if (is_newer(version)) return {};
  if (version > newest_version)
    return fmt::format("PTX {} is newer than this release of Tartan supports ({})", version.text(),
                       newest_version.text());
  if (version.exists() || version == Version{}) return {};
  return fmt::format("unknown PTX version {}; the nearest is {}", version.text(),
                     nearest_version(version).text());
}

std::string target_problem(std::string_view text) {
  return read_target_name(text) ? std::string()
                                : fmt::format("unknown target {}{}", text, target_hint(text));
}

std::string newer_problem(std::optional<Version> version, const std::optional<TargetName>& target) {
  const bool newer_version = version && is_newer(*version), newer_target = target && target->newer;
  if (!newer_version && !newer_target) return {};
  std::string what, as;
  if (newer_version) what = fmt::format("PTX {}", version->text()), as = newest_version.text();
  if (newer_target) {
    what += fmt::format("{}target {}", newer_version ? " and " : "", target->text);
    as += fmt::format("{}{}", newer_version ? " and " : "", target->arch.text());
  }
  return fmt::format("{} {} newer than this release of Tartan: the module is judged as if for {}{}",
                     what, newer_version && newer_target ? "are" : "is",
                     newer_version ? "PTX " : "", as);
}

}  // namespace tartan::TARTAN_ABI
