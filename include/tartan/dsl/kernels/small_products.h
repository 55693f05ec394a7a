// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/kernels/small_products.h - the former place of what is included here, kept for one
// release.
#pragma once

#include "tartan/kernels/small_products.h"
