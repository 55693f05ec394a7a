// SPDX-License-Identifier: Apache-2.0
// tests/support/unoptimized.h - what the driver's assembler makes of a text when it optimizes
// nothing: the judge where its optimized code and the emulator differ.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tartan::test {

/// A cubin of `ptx` for the first GPU, at optimization level 0; empty if the driver rejects it.
std::vector<std::byte> assemble_unoptimized(const std::string& ptx);

}  // namespace tartan::test
