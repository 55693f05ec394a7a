// SPDX-License-Identifier: Apache-2.0
// bench/gpu/elements.h - matrices as bytes: random ones, and how far two are apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tartan/isa/type.h"

namespace gpu {

/// Normal numbers of about one, either sign, that tf32 holds; of integers any.
std::vector<std::uint8_t> random_elements(tartan::Type type, std::size_t count, unsigned seed);

/// Zeros where a sparse matrix has them: two of four neighbours, or, of 32 bits, one of two.
void prune(tartan::Type type, std::vector<std::uint8_t>& elements);

struct Difference {
  std::size_t differ = 0, count = 0;  // elements
  double largest = 0;                 // difference, as a part of the largest value
  /// "equal to cuBLAS", "1024 of 65536 elements differ from cuBLAS, by up to 1.2e-3 of the largest"
  std::string text(const std::string& other) const;
};

Difference compare(tartan::Type type, const std::vector<std::uint8_t>& mine,
                   const std::vector<std::uint8_t>& theirs);

}  // namespace gpu
