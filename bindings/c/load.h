// SPDX-License-Identifier: Apache-2.0
// bindings/c/load.h - compiles and loads kernels, through the cache of this process if it uses one.
#pragma once

#include <string>

#include "bindings/c/kernel.h"
#include "tartan/runtime/device.h"
#include "tartan/support/times.h"

namespace tartan::TARTAN_ABI::c {

Result<LoadedKernel> loaded(Device& device, const std::string& ptx, const std::string& name,
                            StepTimes& times);

#ifdef TARTAN_LLVM

Result<Compiled> compiled(const Kernel& kernel, Arch arch);
Result<LoadedKernel> loaded(Device& device, const Compiled& compiled, StepTimes& times);

/// A kernel of the registry that a device has loaded.
struct LoadedVariant {
  Compiled compiled;
  LoadedKernel kernel;
};
/// All variants of a kernel, in their order: compiled for its target and loaded at the same time.
Result<std::vector<LoadedVariant>> loaded_variants(const Device& device,
                                                   const tartan_kernel::State& kernel);

#endif

}  // namespace tartan::TARTAN_ABI::c
