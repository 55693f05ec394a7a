// SPDX-License-Identifier: Apache-2.0
// runtime/cuda/kernel.h - a kernel of a loaded module, and its launch.
#pragma once

#include "runtime/cuda/context.h"

namespace tartan::TARTAN_ABI::cuda {

/// A module in the driver, unloaded with its last kernel.
struct LoadedModule {
  std::shared_ptr<Context> context;
  ModuleHandle handle;
  LoadedModule(std::shared_ptr<Context> context, ModuleHandle handle)
      : context(std::move(context)), handle(handle) {}
  ~LoadedModule() { context->invoke(context->driver().module_unload, handle); }
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;
};

/// Kernel `name` of the module, with the parameters that its text declares; `grid_unit`: the
/// blocks of what a launch's grid counts.
Result<std::shared_ptr<detail::EngineKernel>> load_kernel(std::shared_ptr<LoadedModule> module,
                                                          const std::string& name,
                                                          std::vector<KernelParam> params,
                                                          Dim3 grid_unit);

}  // namespace tartan::TARTAN_ABI::cuda
