// SPDX-License-Identifier: Apache-2.0
// kernels/attention/attention_shape.h - which options the attention kernel takes, and what fits in
// shared memory.
#pragma once

#include "tartan/kernels/attention.h"

namespace tartan::TARTAN_ABI::kernels {

/// Reports options that do not go together.
bool is_possible(Builder& k, const Attention& options);

/// Whether the output has shared memory of its own, so that producers may fill that of the queries.
bool has_own_output(const Attention& options, const Target& target);

}  // namespace tartan::TARTAN_ABI::kernels
