// SPDX-License-Identifier: Apache-2.0
// kernels/tuner/gemm_tensor.h - the configurations of products by tcgen05. Not installed.
#pragma once

#include <vector>

#include "kernels/common/gpus.h"
#include "tartan/kernels/gemm.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// Configurations by tcgen05, the best first. Not measured: they follow what CUTLASS and DeepGEMM
/// publish for sm_100a, and a count of cycles by data sheets.
std::vector<Gemm> tensor_candidates(const Gemm& options, const Target& target,
                                    const isa::GpuRow& gpu);

}  // namespace tartan::TARTAN_ABI::kernels::detail
