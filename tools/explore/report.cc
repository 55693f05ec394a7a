// SPDX-License-Identifier: Apache-2.0
// Numbers of the text and of its run, beside the limits of the hardware.
#include <charconv>
#include <string_view>
#include <system_error>

#include "compiler/isa/target_name.h"
#include "compiler/ptx/kernel_directives.h"
#include "compiler/support/shared_layout.h"
#include "runtime/emulator/machine/multiprocessor.h"
#include "runtime/profile_report.h"
#include "tools/explore/page.h"

namespace tartan::tools::explore {
namespace {

constexpr std::uint64_t most_static_shared = 49152;  // bytes a block has without asking for more

Json of_dim(Dim3 of) { return {of.x, of.y, of.z}; }

// In blocks, whatever the grid counts.
Json of_launch(const Manifest& manifest, const ptx::Module& module) {
  Launch launch = manifest.launch;
  const ptx::Function* const kernel = module.function(manifest.kernel);
  if (const auto [x, y, z] = kernel ? ptx::grid_unit(module, *kernel) : ptx::Extents{1, 1, 1};
      x * y * z > 1) {
    launch.grid = {launch.grid.x * x, launch.grid.y * y, launch.grid.z * z};
    launch.cluster = {x, y, z};
  }
  return {{"kernel", manifest.kernel},
          {"grid", of_dim(launch.grid)},
          {"block", of_dim(launch.block)},
          {"cluster", launch.cluster.x ? of_dim(launch.cluster) : Json()},
          {"dynamic_shared", launch.dynamic_shared},
          {"launches", 1 + manifest.then.size()}};
}

std::uint64_t bytes_of(const ptx::Variable& variable) {
  const auto bits = static_cast<std::uint64_t>(tartan::bits(variable.type)) * variable.vector;
  return variable.elements * bits / 8 * variable.numbered.value_or(1);
}

// What a comment says is where in dynamic shared memory.
Json parts_of(const ptx::Module& module, std::string_view memory) {
  Json out = Json::array();
  for (const auto& [name, first] : detail::read_shared_layout(module.source->text(), memory))
    out.push_back({{"name", name}, {"first", first}});
  return out;
}

// Of a block: the launch's, or what Tartan's own text says at its head; null: nobody says.
Json dynamic_shared(const Subject& subject, const ptx::Module& module) {
  if (subject.manifest) return subject.manifest->launch.dynamic_shared;
  constexpr std::string_view before = "// launch: ", behind = " bytes of dynamic shared memory";
  const std::string_view text = module.source->text();
  const std::size_t line = text.find(before);
  if (line == text.npos) return nullptr;
  const std::string_view rest = text.substr(line, text.find('\n', line) - line);
  const std::size_t end = rest.find(behind);
  if (end == rest.npos) return nullptr;
  const std::size_t first = rest.rfind(' ', end - 1) + 1;
  std::uint64_t bytes = 0;
  const auto [last, error] = std::from_chars(rest.data() + first, rest.data() + end, bytes);
  return error == std::errc() && last == rest.data() + end ? Json(bytes) : Json();
}

// Variables of shared memory; `bytes` null: the launch says how many.
Json shared_variables(const ptx::Module& module) {
  Json out = Json::array();
  for (const ptx::Variable& each : module.variables) {
    if (each.space != StateSpace::shared) continue;
    const bool dynamic = each.unsized && !each.initialiser;
    out.push_back({{"name", each.name},
                   {"line", module.source->line(each.offset)},
                   {"bytes", dynamic ? Json() : Json(bytes_of(each))},
                   {"align", each.align},
                   {"parts", dynamic ? parts_of(module, each.name) : Json::array()}});
  }
  return out;
}

Json limits_of(const ptx::Module& module) {
  const auto named = named_target(module.targets);
  if (!named) return nullptr;
  const Arch arch = named->arch;
  const emulator::Multiprocessor& of = emulator::multiprocessor_of(arch.sm);
  return {{"arch", arch.text()},
          {"shared_of_block", find_arch(arch)->shared_bytes},
          {"static_shared_of_block", most_static_shared},
          {"registers_of_thread", 255},
          {"registers_of_multiprocessor", 65536},
          {"threads_of_block", 1024},
          {"warps_of_multiprocessor", of.warps},
          {"blocks_of_multiprocessor", of.blocks},
          {"multiprocessors", of.count}};
}

Json of_run(const Outcome& outcome) {
  const Report& report = outcome.report;
  Json expected = Json::array();
  for (const Expectation& each : outcome.expectations)
    expected.push_back({{"buffer", each.buffer}, {"ok", each.ok()}});
  return {{"device", outcome.device},
          {"warp_instructions", report.warp_instructions},
          {"lane_instructions", report.lane_instructions},
          {"multiply_adds", report.multiply_adds},
          {"trust",
           {{"level", report.trust.level},
            {"instruction", report.trust.instruction},
            {"source", report.trust.source}}},
          {"expectations", std::move(expected)},
          {"instructions", profile_json(report.instructions)}};
}

}  // namespace

Json report_part(const Subject& subject, const ptx::Module& module, const Outcome* outcome) {
  Json out;
  out["target"] = module.targets.empty() ? Json() : Json(module.targets.front());
  out["version"] = module.version.text();
  out["launch"] = subject.manifest ? of_launch(*subject.manifest, module) : Json();
  out["shared"] = shared_variables(module);
  out["dynamic_shared"] = dynamic_shared(subject, module);
  out["limits"] = limits_of(module);
  out["run"] = outcome ? of_run(*outcome) : Json();
  out["not_run"] = subject.not_run;
  return out;
}

}  // namespace tartan::tools::explore
