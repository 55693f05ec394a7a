// SPDX-License-Identifier: Apache-2.0
// compiler/verify/first_errors.h - for who needs a legal module.
#pragma once

#include <memory>

#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::verify {

/// Parses and verifies like check(), up to the 100th error: what it costs does not depend on how
/// much is wrong.
Diags first_errors(std::shared_ptr<const Source> source, ptx::Module& module);

}  // namespace tartan::TARTAN_ABI::verify
