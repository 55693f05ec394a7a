// SPDX-License-Identifier: Apache-2.0
// runtime/device_access.h - the engine behind a device, for the parts of the library that need more
// than device.h shows. Not installed.
#pragma once

#include "runtime/engine.h"

namespace tartan::TARTAN_ABI::detail {

class DeviceAccess {
 public:
  static Engine& engine(const Device& device) { return *device.engine_; }
};

}  // namespace tartan::TARTAN_ABI::detail
