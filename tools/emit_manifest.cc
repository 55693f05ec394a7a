// SPDX-License-Identifier: Apache-2.0
#include "tools/emit_manifest.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace tartan::tools {
namespace {

using Json = nlohmann::ordered_json;

using builtins::LaunchExample;

// Strides in bytes.
std::vector<std::uint64_t> strides_of(const CompiledMap& map, const LaunchExample& example) {
  std::vector<std::uint64_t> out;
  for (const MapNumber& each : map.strides)
    out.push_back(static_cast<std::uint64_t>(example.number(each) * bits(map.type) / 8));
  return out;
}

std::optional<Json> param_of(const CompiledParam& param, const LaunchExample& example) {
  if (!param.pointer) return Json{{std::string(name(param.type)), example.scalar(param.name)}};
  const auto elements = example.elements(param);
  if (!elements) return std::nullopt;
  Json out{{"buffer", param.name}, {"bytes", (*elements * bits(param.type) + 7) / 8}};
  if (!param.reads) out["uninitialized"] = true;
  return out;
}

Json param_of(const CompiledMap& map, const Compiled& compiled, const LaunchExample& example) {
  return Json{{"tensor_map", compiled.params[static_cast<std::size_t>(map.of)].name},
              {"type", name(map.type)},
              {"extents", example.extents(map)},
              {"strides", strides_of(map, example)},
              {"box", map.box},
              {"swizzle", map.swizzle},
              {"promotion", CompiledMap::promotion}};
}

// `ptx` is the file's name in the manifest.
Result<std::string> manifest_of(const Compiled& compiled, const LaunchExample& example,
                                const std::string& ptx) {
  Json params = Json::array();
  std::string unknown;
  for (const CompiledParam& param : compiled.params) {
    if (auto made = param_of(param, example)) params.push_back(*std::move(made));
    else unknown += (unknown.empty() ? "" : ", ") + param.name;
  }
  if (!unknown.empty())
    return {"usage"_rule,
            fmt::format("--manifest: the launch of {} decides how large {} {}, which its layout "
                        "does not say; write the manifest by hand",
                        compiled.name, unknown, unknown.find(',') == unknown.npos ? "is" : "are")};
  for (const CompiledMap& map : compiled.maps) params.push_back(param_of(map, compiled, example));
  const Dim3 grid = example.grid();
  const Json manifest{{"ptx", ptx},
                      {"kernel", compiled.name},
                      {"grid", {grid.x, grid.y, grid.z}},
                      {"block", {compiled.block}},
                      {"dynamic_shared", compiled.dynamic_shared},
                      {"params", std::move(params)}};
  return manifest.dump(1) + "\n";
}

}  // namespace

Result<std::string> launch_manifest(const Compiled& compiled, const LaunchExample& example,
                                    const std::string& output, const std::string& manifest) {
  std::error_code error;
  const auto folder = std::filesystem::absolute(manifest, error).parent_path();
  const auto ptx = std::filesystem::absolute(output, error).lexically_proximate(folder);
  return manifest_of(compiled, example, ptx.string());
}

bool same_path(const std::string& x, const std::string& y) {
  std::error_code none;
  return std::filesystem::weakly_canonical(x, none) == std::filesystem::weakly_canonical(y, none);
}

}  // namespace tartan::tools
