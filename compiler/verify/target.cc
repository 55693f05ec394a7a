// SPDX-License-Identifier: Apache-2.0
// The module's header: .version and .target must exist and be compatible.
#include <fmt/format.h>

#include "compiler/isa/target_hint.h"
#include "compiler/isa/target_name.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

// By a target of no architecture nothing is judged.
bool has_known_version(const Context& context) {
  const Version stated = context.target.ptx;
  return stated > newest_version || stated.exists();
}

void require_version(Context& context, std::string_view name, Version first) {
  const Version stated = context.target.ptx;
  if (stated >= first) return;
  context.report("target-version"_rule, context.module.target_offset, 7,
                 fmt::format("target {} requires PTX {}, the module states {}", name, first.text(),
                             stated.text()));
}

void take_arch(Context& context, Arch arch) {
  if (!has_known_version(context)) return;
  context.target.arch = arch;
  require_version(context, arch.text(), find_arch(arch)->first);
}

// The architecture that the module's .target names last.
void take_target(Context& context) {
  const ptx::Module& module = context.module;
  const auto named = named_target(module.targets);
  if (!named) {
    const std::string_view text = module.targets[0];
    context.report("unknown-target"_rule, text, target_problem(text));
    return;
  }
  if (!has_known_version(context)) return;
  context.target.arch = named->arch;
  if (named->newer) return;
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
  if (const std::string wrong = version_problem(module.version); !wrong.empty())
    context.report("unknown-version"_rule, module.version_offset, 8, wrong);
  const auto target = context.options.arch ? std::nullopt : named_target(module.targets);
  if (const std::string newer = newer_problem(module.version, target); !newer.empty()) {
    const bool version = is_newer(module.version);
    context.report("newer-than-known"_rule, version ? module.version_offset : module.target_offset,
                   version ? 8 : 7, newer);
  }
  if (context.options.arch) take_arch(context, *context.options.arch);
  else if (!module.targets.empty()) take_target(context);
}

}  // namespace tartan::TARTAN_ABI::verify
