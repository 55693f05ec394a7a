// SPDX-License-Identifier: Apache-2.0
#include "tools/emit_manifest.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace tartan::tools {
namespace {

using Json = nlohmann::ordered_json;

// The numbers, if all are in the description; otherwise nothing.
std::optional<std::vector<std::uint64_t>> known(const std::vector<MapNumber>& numbers,
                                                std::uint64_t unit) {
  std::vector<std::uint64_t> out;
  for (const MapNumber& each : numbers) {
    if (!each.params.empty()) return std::nullopt;
    out.push_back(static_cast<std::uint64_t>(each.value) * unit);
  }
  return out;
}

std::optional<Json> param_of(const CompiledParam& param) {
  if (!param.pointer) return Json{{std::string(name(param.type)), 1}};
  if (param.elements == 0) return std::nullopt;
  Json out{{"buffer", param.name}, {"bytes", (param.elements * bits(param.type) + 7) / 8}};
  if (!param.reads) out["uninitialized"] = true;
  return out;
}

std::optional<Json> param_of(const CompiledMap& map, const Compiled& compiled) {
  const auto element = static_cast<std::uint64_t>(bits(map.type) / 8);
  const auto extents = known(map.extents, 1), strides = known(map.strides, element);
  if (!extents || !strides) return std::nullopt;
  return Json{{"tensor_map", compiled.params[static_cast<std::size_t>(map.of)].name},
              {"type", name(map.type)},
              {"extents", *extents},
              {"strides", *strides},
              {"box", map.box},
              {"swizzle", map.swizzle},
              {"promotion", CompiledMap::promotion}};
}

// `ptx` is the file's name in the manifest.
Result<std::string> manifest_of(const Compiled& compiled, Dim3 grid, const std::string& ptx) {
  Json params = Json::array();
  std::string unknown;
  const auto add = [&](const std::string& name, std::optional<Json> param) {
    if (param) params.push_back(std::move(*param));
    else unknown += (unknown.empty() ? "" : ", ") + name;
  };
  for (const CompiledParam& param : compiled.params) add(param.name, param_of(param));
  for (const CompiledMap& map : compiled.maps) add(map.name, param_of(map, compiled));
  if (!unknown.empty())
    return {
        "usage"_rule,
        fmt::format("kernel {} takes its sizes at launch, and those of {} with them; a manifest "
                    "needs sizes that options fix, such as --m, --n and --k",
                    compiled.name, unknown)};
  const Json manifest{{"ptx", ptx},
                      {"kernel", compiled.name},
                      {"grid", {grid.x, grid.y, grid.z}},
                      {"block", {compiled.block}},
                      {"dynamic_shared", compiled.dynamic_shared},
                      {"params", std::move(params)}};
  return manifest.dump(1) + "\n";
}

}  // namespace

Result<std::string> launch_manifest(const Compiled& compiled, Dim3 grid, const std::string& output,
                                    const std::string& manifest) {
  std::error_code error;
  const auto folder = std::filesystem::absolute(manifest, error).parent_path();
  const auto ptx = std::filesystem::absolute(output, error).lexically_proximate(folder);
  return manifest_of(compiled, grid, ptx.string());
}

bool same_path(const std::string& x, const std::string& y) {
  std::error_code none;
  return std::filesystem::weakly_canonical(x, none) == std::filesystem::weakly_canonical(y, none);
}

}  // namespace tartan::tools
