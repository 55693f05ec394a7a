// SPDX-License-Identifier: Apache-2.0
// bench/gpu/ratios_svg.h - speed over the libraries' as a picture, from gpu_tuned's JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gpu {

/// For each way of choosing a tile that was measured a panel with a point for each problem: across,
/// its rows (m, logarithmic); up, the better library's time over Tartan's, from 0.5 to 1.5; what is
/// beyond stands at the edge. Colours are the classes of problems; a point's title tells its sizes,
/// types, tile and ratio. Problems that no library takes are left out. Throws
/// nlohmann::json::exception if a member is missing.
std::string ratios_svg(const nlohmann::json& run);

}  // namespace gpu
