// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/launch_json.h"

#include <fmt/format.h>

#include "tartan/launch.h"

namespace gpu {
namespace {

std::string hexadecimal(const std::vector<std::byte>& bytes) {
  std::string out;
  for (const std::byte each : bytes) out += fmt::format("{:02x}", std::to_integer<int>(each));
  return out;
}

}  // namespace

tartan::Result<nlohmann::ordered_json> arguments_json(const tartan::Compiled& compiled,
                                                      const std::vector<int>& numbers,
                                                      std::optional<float> scale,
                                                      const std::vector<std::string>& buffers) {
  auto out = nlohmann::ordered_json::array();
  tartan::Arguments values;
  for (const int each : numbers) out.push_back({{"s32", each}}), values.add(each);
  if (scale) out.push_back({{"f32", *scale}}), values.add(*scale);
  const std::size_t before = out.size();
  for (const std::string& each : buffers)
    out.push_back({{"buffer", each}}), values.add(std::uint64_t{0});
  const auto all = arguments_of(compiled, values);
  if (!all) return all.diags();
  for (std::size_t i = 0; i < compiled.maps.size(); ++i)
    out.push_back({{"map", hexadecimal((*all)[before + buffers.size() + i])},
                   {"buffer", buffers[static_cast<std::size_t>(compiled.maps[i].of) - before]}});
  return out;
}

}  // namespace gpu
