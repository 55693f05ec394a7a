// SPDX-License-Identifier: Apache-2.0
// compiler/ptx/parse_all.h - for whom counts the errors of a text.
#pragma once

#include <memory>

#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::ptx {

/// parse() that goes on to the end of the text, however many errors there are.
Module parse_all(std::shared_ptr<const Source> source, Diags& diags);

}  // namespace tartan::TARTAN_ABI::ptx
