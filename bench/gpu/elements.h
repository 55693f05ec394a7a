// SPDX-License-Identifier: Apache-2.0
// bench/gpu/elements.h - matrices as bytes: random ones, and their differences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tartan/isa/type.h"

namespace gpu {

/// Normal numbers near one, of either sign, exact in tf32; any integers.
std::vector<std::uint8_t> random_elements(tartan::Type type, std::size_t count, unsigned seed);

/// Inserts the zeros of a sparse matrix: two of four neighbours or, of 32 bits, one of two.
void prune(tartan::Type type, std::vector<std::uint8_t>& elements);

struct Difference {
  std::size_t differ = 0, count = 0;  // elements
  double largest = 0;                 // relative to the largest value
  /// "equal to cuBLAS", "1024 of 65536 elements differ from cuBLAS, by up to 1.2e-3 of the largest"
  std::string text(const std::string& other) const;
};

Difference compare(tartan::Type type, const std::vector<std::uint8_t>& mine,
                   const std::vector<std::uint8_t>& theirs);

}  // namespace gpu
