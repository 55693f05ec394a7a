// SPDX-License-Identifier: Apache-2.0
// The engine on which a test runs its kernels: the emulator, or a GPU with TARTAN_ENGINE=cuda in
// the environment. Tests that expect findings are for the emulator alone.
#pragma once

#include <tartan/tartan.h>

#include <cstdlib>
#include <string_view>

namespace tartan::test {

/// True where kernels run on a GPU.
inline bool on_gpu() {
  const char* const engine = std::getenv("TARTAN_ENGINE");
  return engine && std::string_view(engine) == "cuda";
}

/// Whether that engine runs code for the target.
inline bool engine_runs(const Target& target) {
  return !on_gpu() || Device::open("cuda")->arch().sm >= target.arch.sm;
}

/// The emulator with those options, or the first GPU, which takes none of them.
inline Device open_engine(const DeviceOptions& options = {}) {
  return on_gpu() ? *Device::open("cuda") : *Device::open("emulator", options);
}

}  // namespace tartan::test
