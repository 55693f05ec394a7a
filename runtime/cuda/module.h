// SPDX-License-Identifier: Apache-2.0
// runtime/cuda/module.h - PTX text compiled by the driver.
#pragma once

#include "runtime/cuda/context.h"
#include "tartan/isa/target.h"

namespace tartan::inline TARTAN_ABI::cuda {

/// The newest PTX version that a driver of CUDA version `version` (12020 for 12.2) compiles, from
/// the release notes of the PTX manual. A driver newer than the table gives the table's last.
Version newest_ptx(int version);

/// Compiles `ptx`. Text with syntax errors never reaches the driver; a rejection by the driver
/// comes with its log.
Result<std::shared_ptr<detail::EngineModule>> load_module(std::shared_ptr<Context> context,
                                                          const std::string& ptx,
                                                          const std::string& name);

}  // namespace tartan::inline TARTAN_ABI::cuda
