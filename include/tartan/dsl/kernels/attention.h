// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/kernels/attention.h - the former place of what it includes, kept for one release.
#pragma once

#include "tartan/kernels/attention.h"
