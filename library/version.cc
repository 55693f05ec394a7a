// SPDX-License-Identifier: Apache-2.0
#include "tartan/version.h"

namespace tartan::TARTAN_ABI {

std::string_view version() { return TARTAN_VERSION; }

std::string_view code_generator() { return TARTAN_CODE_GENERATOR; }

}  // namespace tartan::TARTAN_ABI
