// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/stochastic.h - cvt.rs: stochastic rounding of f32 (PTX
// ISA 9.7.9.21).
//
// The manual says which random bits are whose in f16x2 and bf16x2, and that they are added to the
// bits that rounding leaves out. Of four elements it says that two share 16 bits; that one of the
// two takes them in reverse is what is published of sm_100a.
#pragma once

#include "runtime/emulator/decode/decoder.h"

namespace tartan::TARTAN_ABI::emulator {

void decode_stochastic(Decoder& decoder);

}  // namespace tartan::TARTAN_ABI::emulator
