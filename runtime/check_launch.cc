// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/support/counted.h"
#include "compiler/support/demangle.h"
#include "runtime/check_arguments.h"
#include "runtime/engine.h"
#include "tartan/runtime/tensor_map.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

// Compiled kernels take their tensor maps after the parameters of the description.
bool lacks_maps(const std::vector<KernelParam>& params, std::size_t given) {
  return given < params.size() &&
         std::all_of(params.begin() + static_cast<std::ptrdiff_t>(given), params.end(),
                     [](const KernelParam& each) { return each.bytes == sizeof(TensorMapBytes); });
}

void check_extent(std::string_view what, std::uint32_t extent, std::uint32_t largest,
                  Diags& diags) {
  if (extent == 0 || extent > largest)
    diags.report("launch-arguments"_rule, {},
                 fmt::format("{}: expected 1 to {}, found {}", what, largest, extent));
}

void check_shape(const Launch& launch, Diags& diags) {
  check_extent("grid.x", launch.grid.x, largest_grid.x, diags);
  check_extent("grid.y", launch.grid.y, largest_grid.y, diags);
  check_extent("grid.z", launch.grid.z, largest_grid.z, diags);
  check_extent("block.x", launch.block.x, largest_block.x, diags);
  check_extent("block.y", launch.block.y, largest_block.y, diags);
  check_extent("block.z", launch.block.z, largest_block.z, diags);
  if (diags.ok() && launch.block.count() > most_threads)
    diags.report(
        "launch-arguments"_rule, {},
        fmt::format("thread block too large: expected at most {} threads, found {} x {} x {} = {}",
                    most_threads, launch.block.x, launch.block.y, launch.block.z,
                    launch.block.count()));
}

}  // namespace

void check_arguments(std::string_view kernel, std::span<const KernelParam> params,
                     const Arguments& arguments, std::string_view hint, Diags& diags) {
  if (arguments.size() != params.size()) {
    diags.report("launch-arguments"_rule, {},
                 fmt::format("wrong number of arguments: kernel {} expects {}, found {}{}", kernel,
                             counted(params.size(), "argument"), arguments.size(), hint));
    return;
  }
  for (std::size_t i = 0; i < params.size(); ++i)
    if (arguments[i].size() != params[i].bytes)
      diags.report(
          "launch-arguments"_rule, {},
          fmt::format("argument {} ({}) of kernel {}: expected {}, found {}", i, params[i].name,
                      kernel, counted(params[i].bytes, "byte"), arguments[i].size()));
}

Diags unknown_variable(std::string_view module, std::string_view name,
                       const std::vector<std::string_view>& known) {
  return Diags::one(
      "unknown-variable"_rule, {},
      fmt::format("{} has no variable {} in global or constant memory; it has {}", module, name,
                  known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
}

Status check_cluster(Dim3 grid, Dim3 cluster) {
  Diags diags;
  if (cluster.count() < 1 || cluster.count() > most_blocks)
    diags.report(
        "launch-arguments"_rule, {},
        fmt::format("illegal cluster: expected 1 to {} thread blocks, found {} x {} x {} = {}",
                    most_blocks, cluster.x, cluster.y, cluster.z, cluster.count()));
  else if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0)
    diags.report(
        "launch-arguments"_rule, {},
        fmt::format(
            "the grid of {} x {} x {} blocks is not a multiple of the cluster of {} x {} x {}",
            grid.x, grid.y, grid.z, cluster.x, cluster.y, cluster.z));
  if (!diags.ok()) return diags;
  return Done{};
}

Status check_launch(const EngineKernel& kernel, const Launch& launch, const Arguments& arguments) {
  Diags diags;
  check_shape(launch, diags);
  check_arguments(demangled_name(kernel.name()), kernel.params(), arguments,
                  lacks_maps(kernel.params(), arguments.size())
                      ? "; it needs tensor maps: \"tensor_map\" in a manifest, arguments_of() of "
                        "tartan/launch.h in C++"
                      : "",
                  diags);
  if (launch.cluster != Dim3{0, 0, 0})
    if (auto status = check_cluster(launch.grid, launch.cluster); !status)
      diags.append(status.diags());
  if (!diags.ok()) return diags;
  return Done{};
}

}  // namespace tartan::TARTAN_ABI::detail
