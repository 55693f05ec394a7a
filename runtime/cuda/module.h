// SPDX-License-Identifier: Apache-2.0
// runtime/cuda/module.h - PTX text compiled by the driver.
#pragma once

#include <optional>

#include "runtime/cuda/kernel.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::cuda {

/// Compiles `ptx`. Text with syntax errors never reaches the driver; a rejection by the driver
/// comes with its log.
Result<std::shared_ptr<detail::EngineModule>> load_module(std::shared_ptr<Context> context,
                                                          const std::string& ptx,
                                                          const std::string& name);

/// The kernels of a text, and their parameters.
std::vector<KernelInterface> interfaces_of(const ptx::Module& module);

/// A module that the driver has loaded. Without `tree` the driver alone knows its variables.
Result<std::shared_ptr<detail::EngineModule>> make_module(std::shared_ptr<LoadedModule> loaded,
                                                          std::string name,
                                                          std::vector<KernelInterface> kernels,
                                                          std::optional<ptx::Module> tree,
                                                          Diags warnings = {});

}  // namespace tartan::TARTAN_ABI::cuda
