// SPDX-License-Identifier: Apache-2.0
// kernels/registry/work_space.h - how large the work space of a launch is, which no layout says:
// its parts belong to blocks, and a description does not know how many there are.
#pragma once

#include "kernels/registry/registry.h"
#include "tartan/kernels/attention_backward.h"
#include "tartan/kernels/decode.h"
#include "tartan/kernels/delta_rule.h"
#include "tartan/kernels/gemm.h"
#include "tartan/kernels/mixed_gemm.h"
#include "tartan/kernels/mla_decode.h"

namespace tartan::TARTAN_ABI::builtins {

using WorkOf = std::function<std::vector<WorkBuffer>(const LaunchSizes&, const Dim3& grid)>;

/// `buffer`: where the partial sums of split-K or stream-K are, C of gemm() and parts of
/// gemm_sum().
WorkOf work_of(const kernels::Gemm& gemm, const char* buffer);
WorkOf work_of(const kernels::MixedGemm& mixed);
WorkOf work_of(const kernels::AttentionBackward& backward);
WorkOf work_of(const kernels::Decode& decode);
WorkOf work_of(const kernels::MlaDecode& decode);
WorkOf work_of(const kernels::DeltaRule& rule);

}  // namespace tartan::TARTAN_ABI::builtins
