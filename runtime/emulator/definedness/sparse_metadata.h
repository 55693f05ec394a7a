// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/definedness/sparse_metadata.h - codes of sparse products that the manual does
// not define.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tartan/isa/fragment.h"

namespace tartan::TARTAN_ABI::emulator {

/// A code of the metadata whose result is undefined.
struct IllegalCode {
  int lane = 0;  // whose register it is in
  std::string message;
};

/// The first illegal code of a sparse A; `words` are the lanes' metadata registers.
std::optional<IllegalCode> find_illegal_code(const isa::Form& form, const std::uint32_t* words,
                                             int selector);

}  // namespace tartan::TARTAN_ABI::emulator
