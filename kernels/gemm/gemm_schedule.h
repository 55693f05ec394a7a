// SPDX-License-Identifier: Apache-2.0
// kernels/gemm/gemm_schedule.h - options of Gemm that exclude each other, and the launch of its
// sum.
#pragma once

#include "tartan/kernels/gemm_schedule.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// Whether no two options exclude each other: schedule_of() would say which.
bool is_one_way(const Gemm& options);

/// The same; reports those that do.
bool is_one_way(Builder& k, const Gemm& options);

/// The grid of gemm_sum(): a block for each tile of stream-K, else a thread for each element.
Dim3 sum_grid(const Gemm& options, int m, int n);

}  // namespace tartan::TARTAN_ABI::kernels::detail
