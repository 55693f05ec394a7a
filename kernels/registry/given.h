// SPDX-License-Identifier: Apache-2.0
// kernels/registry/given.h - chooses the configuration of a product around what the caller has
// given of it: that holds in the kernel, or is an error that names the option.
#pragma once

#include "kernels/registry/registry.h"
#include "tartan/kernels/gemm.h"
#include "tartan/kernels/k_grouped_gemm.h"
#include "tartan/kernels/scaled_gemm.h"

namespace tartan::TARTAN_ABI::builtins {

/// `read`, with the fastest of what the request does not give.
Result<kernels::ScaledGemm> chosen(const kernels::ScaledGemm& read, const Request& request);
Result<kernels::KGroupedGemm> chosen(const kernels::KGroupedGemm& read, const Request& request);

}  // namespace tartan::TARTAN_ABI::builtins
