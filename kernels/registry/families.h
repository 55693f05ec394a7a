// SPDX-License-Identifier: Apache-2.0
// kernels/registry/families.h - the functions that add kernels to the registry, one per source
// here.
#pragma once

#include <memory>

#include "kernels/registry/product_options.h"
#include "kernels/registry/registry.h"

namespace tartan::TARTAN_ABI::builtins {

using SharedProductWords = std::shared_ptr<const ProductWords>;

void add_gemm(KernelRegistry& registry, const SharedProductWords& words);
void add_block_scaled(KernelRegistry& registry, const std::shared_ptr<ProductWords>& words);
/// And k_grouped_gemm, which has some of its options.
void add_scaled_gemm(KernelRegistry& registry, const SharedProductWords& words);
void add_k_grouped_gemm(KernelRegistry& registry, const SharedProductWords& words,
                        const std::shared_ptr<const ScaledWords>& scaled);
void add_mixed_gemm(KernelRegistry& registry, const SharedProductWords& words);
/// Its gradients, decode and mla_decode.
void add_attention(KernelRegistry& registry, const SharedProductWords& words);
void add_wmma_gemm(KernelRegistry& registry, const SharedProductWords& words);
void add_transpose(KernelRegistry& registry, const SharedProductWords& words);
void add_gate(KernelRegistry& registry, const SharedProductWords& words);
void add_small_products(KernelRegistry& registry, const SharedProductWords& words);
void add_one_mma(KernelRegistry& registry);

}  // namespace tartan::TARTAN_ABI::builtins
