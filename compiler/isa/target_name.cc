// SPDX-License-Identifier: Apache-2.0
#include "compiler/isa/target_name.h"

#include <fmt/format.h>

#include <charconv>

namespace tartan::TARTAN_ABI {
namespace {

struct OlderRow {
  int sm;
  Version first;
};
constexpr OlderRow older[] = {{10, {1, 0}}, {11, {1, 0}}, {12, {1, 2}}, {13, {1, 2}}, {20, {2, 0}},
                              {21, {2, 0}}, {30, {3, 0}}, {32, {4, 0}}, {35, {3, 1}}, {37, {4, 1}}};

constexpr int first_of_newer = 100;

// sm_130a: three digits, and perhaps a suffix. The GPU that it is judged as: the last one below it
// with that suffix.
std::optional<Arch> nearest_older(std::string_view name) {
  name.remove_prefix(3);
  Arch wanted;
  if (name.ends_with('a') || name.ends_with('f')) {
    wanted.suffix = name.back();
    name.remove_suffix(1);
  }
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), wanted.sm);
  if (name.size() != 3 || error != std::errc() || end != name.data() + name.size() ||
      wanted.sm < first_of_newer)
    return std::nullopt;
  std::optional<Arch> out;
  for (const ArchRow& row : archs)
    if (row.current && row.arch.suffix == wanted.suffix && row.arch.sm < wanted.sm &&
        (!out || row.arch.sm > out->sm))
      out = row.arch;
  return out;
}

}  // namespace

bool is_newer(Version version) {
  return version > newest_version && (version.major == 9 || version.major == 10);
}

std::optional<TargetName> read_target_name(std::string_view text) {
  constexpr std::string_view virtual_prefix = "compute_";
  const std::string real = text.starts_with(virtual_prefix)
                               ? fmt::format("sm_{}", text.substr(virtual_prefix.size()))
                               : std::string(text);
  if (const auto arch = arch_named(real)) return TargetName{text, *arch, find_arch(*arch)->first};
  for (const OlderRow& row : older)
    if (real == Arch{row.sm}.text()) return TargetName{text, archs[0].arch, row.first, row.sm};
  if (!real.starts_with("sm_")) return std::nullopt;
  if (const auto arch = nearest_older(real))
    return TargetName{.text = text, .arch = *arch, .first = {9, 0}, .newer = true};
  return std::nullopt;
}

std::optional<TargetName> named_target(std::span<const std::string_view> words) {
  std::optional<TargetName> out;
  for (const std::string_view word : words) {
    if (const auto name = read_target_name(word)) out = name;
    else if (!out) break;
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI
