// SPDX-License-Identifier: Apache-2.0
// bench/gpu/launch_json.h - the arguments of a launch as the Python programs beside PyTorch read
// them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tartan/dsl/kernel.h"

namespace gpu {

/// In the kernel's order: integers, a scale where there is one, buffers by name, tensor maps. A
/// tensor map is its 128 bytes, with address 0 in its first 8 instead of the buffer's.
tartan::Result<nlohmann::ordered_json> arguments_json(const tartan::Compiled& compiled,
                                                      const std::vector<int>& numbers,
                                                      std::optional<float> scale,
                                                      const std::vector<std::string>& buffers);

}  // namespace gpu
