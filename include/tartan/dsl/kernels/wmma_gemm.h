// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/kernels/wmma_gemm.h - the former place of what it includes, kept for one release.
#pragma once

#include "tartan/kernels/wmma_gemm.h"
