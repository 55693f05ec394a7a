// SPDX-License-Identifier: Apache-2.0
// bindings/c/times.h - the times of steps as the C interface shows them.
#pragma once

#include <nlohmann/json.hpp>

#include "tartan/support/times.h"

namespace tartan::TARTAN_ABI::c {

inline nlohmann::ordered_json to_json(const StepTimes& times) {
  return {{"describe", times.describe}, {"generate", times.generate}, {"verify", times.verify},
          {"cache", times.cache},       {"assemble", times.assemble}, {"load", times.load}};
}

}  // namespace tartan::TARTAN_ABI::c
