// SPDX-License-Identifier: Apache-2.0
#include "tartan/launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "library/call_checks.h"
#include "runtime/check_arguments.h"
#include "runtime/engine.h"
#include "tartan/runtime/tensor_map.h"

namespace tartan::TARTAN_ABI {
namespace {

std::size_t bytes_of(const CompiledParam& param) {
  return param.pointer ? 8 : static_cast<std::size_t>(bits(param.type)) / 8;
}

std::uint64_t unsigned_number(const Compiled& compiled, const Arguments& arguments,
                              const MapNumber& of) {
  return static_cast<std::uint64_t>(detail::computed(compiled, arguments, of));
}

TensorMap tensor_map(const Compiled& compiled, const Arguments& arguments, const CompiledMap& of) {
  TensorMap out{.type = of.type};
  out.address = static_cast<std::uint64_t>(
      detail::number(compiled, arguments, static_cast<std::size_t>(of.of)));
  // A map has at least one element, even for an empty matrix, of which nothing is read.
  for (const MapNumber& each : of.extents)
    out.extents.push_back(std::max<std::uint64_t>(unsigned_number(compiled, arguments, each), 1));
  const auto element = static_cast<std::uint64_t>(bits(of.type) / 8);
  for (const MapNumber& each : of.strides)
    out.strides.push_back(unsigned_number(compiled, arguments, each) * element);
  if (of.pixels) {
    const CompiledMap::Pixels& pixels = *of.pixels;
    out.im2col = {.lower = {pixels.lower.begin(), pixels.lower.end()},
                  .upper = {pixels.upper.begin(), pixels.upper.end()},
                  .channels = static_cast<std::uint32_t>(of.box[0]),
                  .pixels = static_cast<std::uint32_t>(of.box[1])};
    out.element_strides.assign(out.extents.size(), 1);
    std::copy(pixels.steps.begin(), pixels.steps.end(), out.element_strides.begin() + 1);
  } else {
    for (const int each : of.box) out.box.push_back(static_cast<std::uint32_t>(each));
  }
  using Swizzle = TensorMap::Swizzle;
  out.swizzle = of.swizzle == 128  ? Swizzle::bytes_128
                : of.swizzle == 64 ? Swizzle::bytes_64
                : of.swizzle == 32 ? Swizzle::bytes_32
                                   : Swizzle::none;
  static_assert(CompiledMap::promotion == 128);
  out.promotion = TensorMap::Promotion::bytes_128;
  return out;
}

// Whether arguments have the parameters' number and sizes: all else is about their values.
Status check_sizes(const Compiled& compiled, const Arguments& arguments) {
  std::vector<KernelParam> params;
  for (const CompiledParam& each : compiled.params) params.push_back({each.name, bytes_of(each)});
  Diags diags;
  detail::check_arguments(compiled.name, params, arguments,
                          compiled.maps.empty() ? "" : "; arguments_of() adds tensor maps", diags);
  if (!diags.ok()) return diags;
  return Done{};
}

void check_multiples(const Compiled& compiled, const Arguments& arguments, Diags& diags) {
  for (std::size_t i = 0; i < compiled.params.size(); ++i) {
    const CompiledParam& each = compiled.params[i];
    if (each.multiple_of <= 1) continue;
    const std::int64_t found = detail::number(compiled, arguments, i);
    if (found % each.multiple_of)
      diags.report("launch-arguments"_rule, {},
                   fmt::format("argument {} ({}) of kernel {}: expected a multiple of {}, found {}",
                               i, each.name, compiled.name, each.multiple_of, found));
  }
}

// What the description promised of the grid, and of the number of k-tiles.
void check_bounds(const Compiled& compiled, const Dim3& grid, const Arguments& arguments,
                  Diags& diags) {
  using Of = LaunchBound::Of;
  for (const LaunchBound& each : compiled.bounds) {
    const std::int64_t count = each.of == Of::number
                                   ? detail::computed(compiled, arguments, each.number)
                                   : std::int64_t{each.of == Of::blocks_x   ? grid.x
                                                  : each.of == Of::blocks_y ? grid.y
                                                                            : grid.z};
    if (each.of == Of::number && count < 1) continue;
    std::int64_t tiles = 1;
    for (const MapNumber& of : each.tiles) tiles *= detail::computed(compiled, arguments, of);
    const std::int64_t most = (tiles - each.offset + each.factor - 1) / each.factor;
    if (each.exact ? count == most || tiles == 0 : count <= most) continue;
    const std::string_view unit = each.of == Of::blocks_x   ? "blocks along x"
                                  : each.of == Of::blocks_y ? "blocks along y"
                                  : each.of == Of::blocks_z ? "blocks along z"
                                                            : "as the end of its loop or pipeline";
    diags.report("launch-arguments"_rule, each.place,
                 fmt::format("{}: expected {}{} {}, found {}", each.what,
                             each.exact ? "" : "at most ", most, unit, count));
  }
}

// Reports each error once: a matrix may have several maps, which differ in their boxes.
void report(const Compiled& compiled, const CompiledMap& of, const Diags& found, Diags& diags) {
  const std::string& matrix = compiled.params[static_cast<std::size_t>(of.of)].name;
  for (Diag each : found) {
    each.message = fmt::format("{} (parameter {}): {}", matrix, of.of, each.message);
    const auto same = [&](const Diag& other) { return other.message == each.message; };
    if (std::none_of(diags.begin(), diags.end(), same)) diags.add(std::move(each));
  }
}

// The arguments with the tensor maps after them.
Result<Arguments> with_maps(const Compiled& compiled, Arguments arguments) {
  Diags diags;
  Arguments out = arguments;
  for (const CompiledMap& each : compiled.maps) {
    if (const auto bytes = tensor_map(compiled, arguments, each).encode()) out.add(*bytes);
    else report(compiled, each, bytes.diags(), diags);
  }
  if (!diags.ok()) return diags;
  return out;
}

}  // namespace

Result<Arguments> arguments_of(const Compiled& compiled, Arguments arguments) {
  if (const Status status = check_sizes(compiled, arguments); !status) return status.diags();
  Diags diags;
  check_multiples(compiled, arguments, diags);
  if (!diags.ok()) return diags;
  return with_maps(compiled, std::move(arguments));
}

Status launch(LoadedKernel& kernel, const Compiled& compiled, Dim3 grid, const Arguments& arguments,
              const Stream* stream, bool programmatic) {
  if (const Status status = check_sizes(compiled, arguments); !status) return status;
  Diags diags;
  check_multiples(compiled, arguments, diags);
  detail::check_memory(compiled, arguments, diags);
  check_bounds(compiled, grid, arguments, diags);
  if (compiled.cluster > 1)
    if (const Status status =
            detail::check_cluster(grid, {static_cast<std::uint32_t>(compiled.cluster)});
        !status)
      diags.append(status.diags());
  if (!diags.ok()) return diags;
  const auto all = with_maps(compiled, arguments);
  if (!all) return all.diags();
  return kernel.launch({.grid = grid,
                        .block = {static_cast<std::uint32_t>(compiled.block)},
                        .dynamic_shared = static_cast<std::uint32_t>(compiled.dynamic_shared),
                        .programmatic = programmatic},
                       *all, stream);
}

}  // namespace tartan::TARTAN_ABI
