// SPDX-License-Identifier: Apache-2.0
// runtime/cuda/module.h - PTX text compiled by the driver.
#pragma once

#include "runtime/cuda/context.h"
#include "tartan/isa/target.h"

namespace tartan::inline TARTAN_ABI::cuda {

/// The newest PTX version that a driver of CUDA version `version` (12020 for 12.2) compiles, from
/// the release notes of the PTX manual. A driver newer than the table gives the table's last.
Version newest_ptx(int version);

/// Compiles `ptx`. What the parser refuses never reaches the driver; what the driver refuses comes
/// back with its log.
Result<std::shared_ptr<detail::EngineModule>> load_module(std::shared_ptr<Context> context,
                                                          const std::string& ptx,
                                                          const std::string& name);

}  // namespace tartan::inline TARTAN_ABI::cuda
