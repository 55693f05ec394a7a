// SPDX-License-Identifier: Apache-2.0
// kernels/common/keys.h - the keys of built-in kernels (Kernel::keyed): all of their options.
#pragma once

#include <string>

#include "tartan/kernels/attention.h"
#include "tartan/kernels/attention_backward.h"
#include "tartan/kernels/block_scaled.h"
#include "tartan/kernels/decode.h"
#include "tartan/kernels/gate.h"
#include "tartan/kernels/gemm.h"
#include "tartan/kernels/k_grouped_gemm.h"
#include "tartan/kernels/mixed_gemm.h"
#include "tartan/kernels/mla_decode.h"
#include "tartan/kernels/scaled_gemm.h"
#include "tartan/kernels/small_products.h"

namespace tartan::TARTAN_ABI::kernels {

std::string key_of(const Gemm& options);
std::string key_of(const BlockScaled& options);
std::string key_of(const ScaledGemm& options);
std::string key_of(const KGroupedGemm& options);
std::string key_of(const Attention& options);
std::string key_of(const AttentionBackward& options);
std::string key_of(const Gate& options);
std::string key_of(const Decode& options);
std::string key_of(const MlaDecode& options);
std::string key_of(const MixedGemm& options);
std::string key_of(const SmallProducts& options);

}  // namespace tartan::TARTAN_ABI::kernels
