// SPDX-License-Identifier: Apache-2.0
// tests/emulator/random_program.h - random kernels that any two correct machines run to the same
// bits.
//
// A program is a straight list of statements: scalar arithmetic of all types, guards, branches and
// bounded loops that come together again, exchanges through shared memory, warp collectives, matrix
// instructions. Nearly every result gets a register of its own, and at the end all of them are
// stored in the order in which they were computed: the first that differs is the one whose
// instruction went wrong.
//
// What nobody defines is left out: approximations, integer division by zero, the payload of a NaN
// that neg, abs or a 64-bit operation made (such results are replaced by one NaN), races, and the
// order of floating-point atomics. The same seed gives the same text everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tartan/runtime/device.h"

namespace tartan::test {

/// A value that the kernel stores: 8 bytes a thread.
struct RandomResult {
  std::string reg;
  std::string instruction;  // what computed it
};

/// Kernel `name`(.param .u64 in, .u64 out, .u64 sums, .u32 uniform), for random_inputs().
struct RandomProgram {
  std::uint64_t seed = 0;
  std::string name;
  std::string text;  // the .entry
  std::vector<RandomResult> results;
  std::vector<std::string> sums;  // the red instructions on words 0, 1, ... of `sums`
  std::vector<std::size_t> scalar_rows, matrix_rows;  // what it uses of the lists below
  Launch launch;
  std::uint32_t uniform = 0;

  /// Bytes of out: result r of thread t of all `launch.grid.x * launch.block.x` at 8 * (r * all +
  /// t).
  std::size_t out_bytes() const;
  /// Bytes of sums: 8 a word.
  std::size_t sums_bytes() const { return 8 * sums.size() + 8; }
};

RandomProgram random_program(std::uint64_t seed);

/// PTX for sm_90 with the programs of seeds first, first + 1, ...
std::string random_module(const std::vector<RandomProgram>& programs);

/// The buffer that all programs read: numbers of every type, special values among them.
const std::vector<std::byte>& random_inputs();

/// What programs draw from: instruction spellings of one lane, and products of a warp on sm_90.
std::vector<std::string> random_scalar_instructions();
std::vector<std::string> random_matrix_instructions();

}  // namespace tartan::test
