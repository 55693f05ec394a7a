// SPDX-License-Identifier: Apache-2.0
#include "compiler/isa/target_name.h"

#include <fmt/format.h>

namespace tartan::TARTAN_ABI {
namespace {

struct OlderRow {
  int sm;
  Version first;
};
constexpr OlderRow older[] = {{10, {1, 0}}, {11, {1, 0}}, {12, {1, 2}}, {13, {1, 2}}, {20, {2, 0}},
                              {21, {2, 0}}, {30, {3, 0}}, {32, {4, 0}}, {35, {3, 1}}, {37, {4, 1}}};

}  // namespace

std::optional<TargetName> read_target_name(std::string_view text) {
  constexpr std::string_view virtual_prefix = "compute_";
  const std::string real = text.starts_with(virtual_prefix)
                               ? fmt::format("sm_{}", text.substr(virtual_prefix.size()))
                               : std::string(text);
  if (const auto arch = arch_named(real)) return TargetName{text, *arch, find_arch(*arch)->first};
  for (const OlderRow& row : older)
    if (real == Arch{row.sm}.text()) return TargetName{text, archs[0].arch, row.first, row.sm};
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
