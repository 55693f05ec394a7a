// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/tensor_product_words.h - what the op of a tcgen05.mma keeps of its
// operands: words of Program::slots from op.list on, each a slot or the offset of an address.
#pragma once

#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

struct TensorProductWords {
  enum Word : std::uint32_t {
    a_slot,
    a_offset,
    b_slot,
    idesc_slot,
    accumulates_slot,
    disabled_slots,
    scale_d_value = disabled_slots + 8,
    scale_a_slot,
    scale_a_offset,
    scale_b_slot,
    scale_b_offset,
    metadata_slot,
    metadata_offset,
    block_count,
    mask_slot,
    collector_use,
    word_count
  };
};

}  // namespace tartan::TARTAN_ABI::emulator
