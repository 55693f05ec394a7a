// SPDX-License-Identifier: Apache-2.0
// The module's header: .version and .target exist and go together.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "compiler/verify/pass.h"

namespace tartan::verify {
namespace {

// The known architecture whose number is nearest to what `text` says.
Arch nearest_arch(std::string_view text) {
  int wanted = 0;
  if (text.size() > 3) std::from_chars(text.data() + 3, text.data() + text.size(), wanted);
  wanted = std::clamp(wanted, 0, 1000);
  const char suffix = text.ends_with('a') || text.ends_with('f') ? text.back() : 0;
  Arch best = archs[0].arch;
  const auto away = [&](Arch arch) {
    return 2 * std::abs(arch.sm - wanted) + (arch.suffix != suffix);
  };
  for (const ArchRow& row : archs)
    if (away(row.arch) < away(best)) best = row.arch;
  return best;
}

}  // namespace

void check_target(Context& context) {
  const ptx::Module& module = context.module;
  context.target = {{}, module.version};
  if (context.options.ptx) context.target.ptx = *context.options.ptx;
  if (module.version > newest_version)
    context.report("unknown-version"_rule, module.version_offset, 8,
                   fmt::format("PTX {} is newer than what Tartan knows ({})", module.version.text(),
                               newest_version.text()));
  if (context.options.arch) {
    context.target.arch = *context.options.arch;
  } else if (!module.targets.empty()) {
    const std::string_view text = module.targets[0];
    const auto arch = Arch::parse(text);
    if (!arch) {
      context.report(
          "unknown-target"_rule, text,
          fmt::format("there is no target {}; the nearest is {}", text, nearest_arch(text).text()));
      context.target.arch = nearest_arch(text);
      return;
    }
    context.target.arch = *arch;
  }
  const ArchRow* row = find_arch(context.target.arch);
  if (row && !(context.target.ptx == Version{}) && context.target.ptx < row->first)
    context.report("target-version"_rule, module.target_offset, 7,
                   fmt::format("target {} came with PTX {}, the module states {}", row->arch.text(),
                               row->first.text(), context.target.ptx.text()));
}

}  // namespace tartan::verify
