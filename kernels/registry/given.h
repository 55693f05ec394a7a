// SPDX-License-Identifier: Apache-2.0
// kernels/registry/given.h - chooses the configuration of a product around what the caller has
// given of it: that holds in the kernel, or is an error that names the option.
#pragma once

#include "kernels/registry/registry.h"
#include "tartan/kernels/gemm.h"
#include "tartan/kernels/k_grouped_gemm.h"
#include "tartan/kernels/scaled_gemm.h"

namespace tartan::TARTAN_ABI::builtins {

/// The options as given, or all errors in the text and in the options themselves.
Result<kernels::Gemm> read_gemm(const KernelRegistry& registry, const Request& request);
/// For gemm and gemm_sum: settings that are not given become the fastest, as a file of tune() says
/// if it has the product, else as kernels::tuned() does, with a warning.
struct Completed {
  kernels::Gemm gemm;
  Diags warnings;
};
Result<Completed> completed_gemm(const KernelRegistry& registry, const Request& request);
/// Without a tile, the fastest that has what is given.
Result<kernels::ScaledGemm> read_scaled_gemm(const KernelRegistry& registry,
                                             const Request& request);
Result<kernels::KGroupedGemm> read_k_grouped_gemm(const KernelRegistry& registry,
                                                  const Request& request);

/// `read`, with the fastest of what the request does not give.
Result<kernels::ScaledGemm> chosen(const kernels::ScaledGemm& read, const Request& request);
Result<kernels::KGroupedGemm> chosen(const kernels::KGroupedGemm& read, const Request& request);

}  // namespace tartan::TARTAN_ABI::builtins
