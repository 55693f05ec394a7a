// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/kernels.h - the built-in kernels: what `tartan emit --list` shows.
#pragma once

#include "tartan/dsl/builder.h"
#include "tartan/kernels/attention.h"
#include "tartan/kernels/attention_backward.h"
#include "tartan/kernels/block_scaled.h"
#include "tartan/kernels/decode.h"
#include "tartan/kernels/delta_rule.h"
#include "tartan/kernels/gate.h"
#include "tartan/kernels/gemm.h"
#include "tartan/kernels/gemm_schedule.h"
#include "tartan/kernels/gpu.h"
#include "tartan/kernels/k_grouped_gemm.h"
#include "tartan/kernels/mixed_gemm.h"
#include "tartan/kernels/mla_decode.h"
#include "tartan/kernels/scaled_gemm.h"
#include "tartan/kernels/small_products.h"
#include "tartan/kernels/sparse.h"
#include "tartan/kernels/transpose.h"
#include "tartan/kernels/wmma_gemm.h"

namespace tartan::TARTAN_ABI::kernels {

/// D(16x8, f32) = A(16x16, f16, row-major) * B(16x8, f16, column-major): one warp, one m16n8k16.
Kernel one_mma();

}  // namespace tartan::TARTAN_ABI::kernels
