// SPDX-License-Identifier: Apache-2.0
// runtime/cuda/image.h - machine code: cubins and fatbins.
#pragma once

#include "runtime/cuda/context.h"

namespace tartan::TARTAN_ABI::cuda {

/// Loads a cubin or a fatbin. The driver is given an address and no size, so what does not have all
/// the parts that its headers state never reaches it. Without `kernels` the driver is asked for
/// them.
Result<std::shared_ptr<detail::EngineModule>> load_image(
    std::shared_ptr<Context> context, std::span<const std::byte> image, const std::string& name,
    const std::vector<KernelInterface>& kernels);

}  // namespace tartan::TARTAN_ABI::cuda
