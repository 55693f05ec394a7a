// SPDX-License-Identifier: Apache-2.0
// The module's header: .version and .target must exist and be compatible.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/isa/nearest_arch.h"
#include "compiler/isa/target_name.h"
#include "compiler/verify/pass.h"

namespace tartan::inline TARTAN_ABI::verify {
namespace {

void require_version(Context& context, std::string_view name, Version first) {
  const Version stated = context.target.ptx;
  if (stated == Version{} || stated >= first) return;
  context.report("target-version"_rule, context.module.target_offset, 7,
                 fmt::format("target {} requires PTX {}, the module states {}", name, first.text(),
                             stated.text()));
}

// sm_107a is a GPU of its own, and not sm_110a with a mistake.
std::string unknown_target(std::string_view text) {
  const Arch nearest = nearest_arch(text);
  const std::size_t number = text.find_first_of("0123456789");
  const bool another = number != std::string_view::npos &&
                       !text.substr(number).starts_with(fmt::format("{}", nearest.sm));
  if (!another) return fmt::format("unknown target {}; the nearest is {}", text, nearest.text());
  const bool newer = nearest.sm == std::rbegin(archs)->arch.sm;
  return fmt::format(
      "unknown target {}: {}", text,
      newer ? fmt::format("newer than this release of Tartan supports ({})", nearest.text())
            : "no GPU that this release of Tartan knows has this number");
}

// The architecture that the module's .target names last.
void take_target(Context& context) {
  const ptx::Module& module = context.module;
  const auto named = named_target(module.targets);
  if (!named) {
    const std::string_view text = module.targets[0];
    context.report("unknown-target"_rule, text, unknown_target(text));
    context.target.arch = nearest_arch(text);
    return;
  }
  context.target.arch = named->arch;
  for (const std::string_view word : module.targets)
    if (const auto each = read_target_name(word)) require_version(context, word, each->first);
  if (named->older)
    context.report("old-target"_rule, named->text,
                   fmt::format("target {} is older than this release of Tartan supports: the "
                               "module is judged as {}",
                               named->text, named->arch.text()));
}

}  // namespace

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
    const Arch arch = context.target.arch = *context.options.arch;
    require_version(context, arch.text(), find_arch(arch)->first);
  } else if (!module.targets.empty()) {
    take_target(context);
  }
}

}  // namespace tartan::inline TARTAN_ABI::verify
