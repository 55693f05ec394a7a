// SPDX-License-Identifier: Apache-2.0
// tests/support/lesson_kernels.h - the kernels of one instruction: one_mma, and those of lessons 2
// to 6.
#pragma once

#include <tartan/kernels/kernels.h>

#include <vector>

#include "examples/lesson.h"

namespace lesson_02 {
#include "examples/02_corner.cc"
}
namespace lesson_03 {
#include "examples/03_registers.cc"
}
namespace lesson_04 {
#include "examples/04_matrices.cc"
}
namespace lesson_05 {
#include "examples/05_majorness.cc"
}
namespace lesson_06 {
#include "examples/06_wmma.cc"
}

namespace testing_lessons {

inline std::vector<tartan::Kernel> kernels() {
  using tartan::Kernel, tartan::Major;
  std::vector<Kernel> all{tartan::kernels::one_mma()};
  for (const bool by_tile : {false, true}) all.push_back(lesson_02::ldmatrix_corner(by_tile));
  for (const int count : {1, 2, 4}) {
    all.push_back(lesson_03::ldmatrix_registers(count));
    all.push_back(lesson_03::stmatrix_registers(count));
    for (const bool trans : {false, true}) all.push_back(lesson_04::ldmatrix_matrix(count, trans));
  }
  for (const Major a : {Major::row, Major::col})
    for (const Major b : {Major::row, Major::col}) {
      all.push_back(lesson_05::stored_mma(a, b));
      all.push_back(lesson_06::one_wmma(a, b));
    }
  return all;
}

}  // namespace testing_lessons
