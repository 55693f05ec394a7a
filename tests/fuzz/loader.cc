// SPDX-License-Identifier: Apache-2.0
// Any bytes as PTX for the emulator: loading a module and looking up its kernels ends with programs
// or diagnostics. Nothing runs.
#include "tartan/runtime/device.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tartan;
  static Device device = *Device::open("emulator");
  const auto module =
      device.load(std::string(reinterpret_cast<const char*>(data), size), "fuzz.ptx");
  if (!module) {
    (void)module.diags().text();
    return 0;
  }
  for (const std::string& name : module->kernels())
    if (const auto kernel = module->kernel(name); !kernel) (void)kernel.diags().text();
  return 0;
}
