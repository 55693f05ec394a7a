// SPDX-License-Identifier: Apache-2.0
// The module's header: .version and .target must exist and be compatible.
#include <fmt/format.h>

#include "compiler/isa/nearest_arch.h"
#include "compiler/verify/pass.h"

namespace tartan::inline TARTAN_ABI::verify {
void check_target(Context& context) {
  const ptx::Module& module = context.module;
  context.target = {{}, module.version};
  if (context.options.ptx) context.target.ptx = *context.options.ptx;
  if (!module.version.exists() && module.version < newest_version && !(module.version == Version{}))
    context.report("unknown-version"_rule, module.version_offset, 8,
                   fmt::format("unknown PTX version {}; the nearest is {}", module.version.text(),
                               nearest_version(module.version).text()));
  if (module.version > newest_version)
    context.report("unknown-version"_rule, module.version_offset, 8,
                   fmt::format("PTX {} is newer than this release of Tartan supports ({})",
                               module.version.text(), newest_version.text()));
  if (context.options.arch) {
    context.target.arch = *context.options.arch;
  } else if (!module.targets.empty()) {
    const std::string_view text = module.targets[0];
    const auto arch = Arch::parse(text);
    if (!arch) {
      context.report(
          "unknown-target"_rule, text,
          fmt::format("unknown target {}; the nearest is {}", text, nearest_arch(text).text()));
      context.target.arch = nearest_arch(text);
      return;
    }
    context.target.arch = *arch;
  }
  const ArchRow* row = find_arch(context.target.arch);
  if (row && !(context.target.ptx == Version{}) && context.target.ptx < row->first)
    context.report("target-version"_rule, module.target_offset, 7,
                   fmt::format("target {} requires PTX {}, the module states {}", row->arch.text(),
                               row->first.text(), context.target.ptx.text()));
}

}  // namespace tartan::inline TARTAN_ABI::verify
