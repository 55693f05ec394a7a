// SPDX-License-Identifier: Apache-2.0
// tests/runtime/fake_cuda_state.h - what the sources of the CUDA driver's test double share.
#pragma once

#include <mutex>

#include "tests/runtime/fake_cuda.h"

namespace fake_cuda_double {

inline constexpr int invalid_value = 1, invalid_context = 201, not_found = 500;

FakeCuda& state();
inline std::recursive_mutex mutex;               // of the state
inline thread_local std::vector<void*> current;  // contexts, the current one last

/// Records a call, and returns the configured code.
int enter(const char* entry, bool needs_context = true);

}  // namespace fake_cuda_double

#define ALONE const std::lock_guard alone(fake_cuda_double::mutex)
