// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/tensor_commits.h - tcgen05.commit.
#pragma once

#include "runtime/emulator/decode/decoder.h"

namespace tartan::TARTAN_ABI::emulator {

void decode_commit(Decoder& d);

}  // namespace tartan::TARTAN_ABI::emulator
