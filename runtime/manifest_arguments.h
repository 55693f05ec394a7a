// SPDX-License-Identifier: Apache-2.0
// runtime/manifest_arguments.h - the arguments of a manifest's launch, once its buffers have
// addresses.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/manifest.h"

namespace tartan::TARTAN_ABI {

/// Of one launch's parameters. `address_of` knows every buffer: the manifest's reader has checked
/// the names. Fails with the first tensor map that cannot be.
Result<Arguments> manifest_arguments(
    const std::vector<ManifestParam>& params,
    const std::function<std::uint64_t(const std::string&)>& address_of);

}  // namespace tartan::TARTAN_ABI
