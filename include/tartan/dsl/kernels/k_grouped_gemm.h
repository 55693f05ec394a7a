// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/kernels/k_grouped_gemm.h - the former place of what is included here, kept for one
// release.
#pragma once

#include "tartan/kernels/k_grouped_gemm.h"
