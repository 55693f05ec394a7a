// SPDX-License-Identifier: Apache-2.0
// compiler/support/demangle.h - names of C++ as people write them.
//
//   demangled("_Z3addPKfS0_Pfi")        // "add(float const*, float const*, float*, int)"
//   demangled_name("_Z3addPKfS0_Pfi")   // "add"
//   demangled_name("_ZZ3revPfE1s")      // "rev::s"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

/// As c++filt prints it; a name that is not mangled stays as it is.
std::string demangled(std::string_view name);

/// The same without result type and parameters; template arguments stay: "scale<float>".
std::string demangled_name(std::string_view name);

/// The types of the parameters of a function: {"float const*", "int"}. Empty where the name is not
/// mangled, or is not a function's.
std::vector<std::string> demangled_parameters(std::string_view name);

}  // namespace tartan::TARTAN_ABI::detail
