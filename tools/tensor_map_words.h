// SPDX-License-Identifier: Apache-2.0
// tools/tensor_map_words.h - a tensor map in one word of the command line, as a parameter of a
// manifest:
//
//   x:64x32                       boxes of 64 rows and 32 columns of the buffer x
//   x:64x64:swizzle=128:promotion=256:fill=nan:flush
//   x:64x64:type=bf16:shape=512x256:strides=512,1:offset=1024
//
// What the map describes is the buffer, unless type and shape say otherwise; strides are by default
// those of contiguous elements. Shapes, strides and boxes have the outermost dimension first, as
// arrays do, and count elements.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tartan/support/diagnostic.h"

namespace tartan::tools {

/// The diagnostic (rule "usage") says what is wrong, without the option.
Result<nlohmann::ordered_json> tensor_map_json(const std::string& text);

}  // namespace tartan::tools
