// SPDX-License-Identifier: Apache-2.0
#include "tartan/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/check_arguments.h"
#include "tartan/runtime/tensor_map.h"

namespace tartan::inline TARTAN_ABI {
namespace {

std::size_t bytes_of(const CompiledParam& param) {
  return param.pointer ? 8 : static_cast<std::size_t>(bits(param.type)) / 8;
}

// An argument as a number of 4 or 8 bytes, according to its parameter.
std::int64_t number(const Compiled& compiled, const Arguments& arguments, int param) {
  const auto i = static_cast<std::size_t>(param);
  if (bytes_of(compiled.params[i]) == 8) {
    std::int64_t out = 0;
    std::memcpy(&out, arguments[i].data(), sizeof out);
    return out;
  }
  std::int32_t out = 0;
  std::memcpy(&out, arguments[i].data(), sizeof out);
  return out;
}

std::uint64_t number(const Compiled& compiled, const Arguments& arguments, const MapNumber& of) {
  std::int64_t product = 1;
  for (const int param : of.params) product *= number(compiled, arguments, param);
  return static_cast<std::uint64_t>(of.value * ((product + of.divisor - 1) / of.divisor));
}

TensorMap tensor_map(const Compiled& compiled, const Arguments& arguments, const CompiledMap& of) {
  TensorMap out{.type = of.type};
  out.address = static_cast<std::uint64_t>(number(compiled, arguments, of.of));
  // A map has at least one element, even for an empty matrix, of which nothing is read.
  for (const MapNumber& each : of.extents)
    out.extents.push_back(std::max<std::uint64_t>(number(compiled, arguments, each), 1));
  const auto element = static_cast<std::uint64_t>(bits(of.type) / 8);
  for (const MapNumber& each : of.strides)
    out.strides.push_back(number(compiled, arguments, each) * element);
  for (const int each : of.box) out.box.push_back(static_cast<std::uint32_t>(each));
  using Swizzle = TensorMap::Swizzle;
  out.swizzle = of.swizzle == 128  ? Swizzle::bytes_128
                : of.swizzle == 64 ? Swizzle::bytes_64
                : of.swizzle == 32 ? Swizzle::bytes_32
                                   : Swizzle::none;
  static_assert(CompiledMap::promotion == 128);
  out.promotion = TensorMap::Promotion::bytes_128;
  return out;
}

Status check(const Compiled& compiled, const Arguments& arguments) {
  std::vector<KernelParam> params;
  for (const CompiledParam& each : compiled.params) params.push_back({each.name, bytes_of(each)});
  Diags diags;
  detail::check_arguments(compiled.name, params, arguments,
                          compiled.maps.empty() ? "" : "; arguments_of() adds tensor maps", diags);
  if (!diags.ok()) return diags;
  for (std::size_t i = 0; i < compiled.params.size(); ++i) {
    const CompiledParam& each = compiled.params[i];
    if (each.multiple_of <= 1) continue;
    const std::int64_t found = number(compiled, arguments, static_cast<int>(i));
    if (found % each.multiple_of)
      diags.report("launch-arguments"_rule, {},
                   fmt::format("argument {} ({}) of kernel {}: expected a multiple of {}, found {}",
                               i, each.name, compiled.name, each.multiple_of, found));
  }
  if (!diags.ok()) return diags;
  return Done{};
}

// What the description promised of the grid, and of the number of k-tiles.
Status check_bounds(const Compiled& compiled, const Dim3& grid, const Arguments& arguments) {
  using Of = LaunchBound::Of;
  Diags diags;
  for (const LaunchBound& each : compiled.bounds) {
    const std::int64_t count =
        each.of == Of::number ? static_cast<std::int64_t>(number(compiled, arguments, each.number))
                              : std::int64_t{each.of == Of::blocks_x   ? grid.x
                                             : each.of == Of::blocks_y ? grid.y
                                                                       : grid.z};
    std::int64_t tiles = 1;
    for (const MapNumber& of : each.tiles)
      tiles *= static_cast<std::int64_t>(number(compiled, arguments, of));
    const std::int64_t most = tiles - each.offset;
    if (each.exact ? count == most || tiles == 0 : count <= most) continue;
    const std::string_view unit = each.of == Of::blocks_x   ? "blocks along x"
                                  : each.of == Of::blocks_y ? "blocks along y"
                                  : each.of == Of::blocks_z ? "blocks along z"
                                                            : "k-tiles";
    diags.report("launch-arguments"_rule, each.place,
                 fmt::format("{}: expected {}{} {}, found {}", each.what,
                             each.exact ? "" : "at most ", most, unit, count));
  }
  if (!diags.ok()) return diags;
  return Done{};
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

}  // namespace

Result<Arguments> arguments_of(const Compiled& compiled, Arguments arguments) {
  if (const Status status = check(compiled, arguments); !status) return status.diags();
  Arguments out = arguments;
  Diags diags;
  for (const CompiledMap& each : compiled.maps) {
    if (const auto bytes = tensor_map(compiled, arguments, each).encode()) out.add(*bytes);
    else report(compiled, each, bytes.diags(), diags);
  }
  if (!diags.ok()) return diags;
  return out;
}

Status launch(LoadedKernel& kernel, const Compiled& compiled, Dim3 grid, const Arguments& arguments,
              const Stream* stream) {
  const auto all = arguments_of(compiled, arguments);
  if (!all) return all.diags();
  if (const Status status = check_bounds(compiled, grid, arguments); !status) return status.diags();
  return kernel.launch({.grid = grid,
                        .block = {static_cast<std::uint32_t>(compiled.block)},
                        .dynamic_shared = static_cast<std::uint32_t>(compiled.dynamic_shared)},
                       *all, stream);
}

}  // namespace tartan::inline TARTAN_ABI
