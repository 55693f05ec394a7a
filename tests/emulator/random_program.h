// SPDX-License-Identifier: Apache-2.0
// tests/emulator/random_program.h - random kernels that any two correct machines run to the same
// bits.
//
// A program is a list of statements: scalar arithmetic of all types, guards, branches and bounded
// loops that reconverge, exchanges through shared memory, warp collectives, matrix instructions.
// Nearly every result has its own register, and all of them are stored at the end in the order of
// computation: the first that differs identifies the wrong instruction.
//
// Undefined behaviour is left out: approximations, integer division by zero, the payload of a NaN
// from neg, abs or a 64-bit operation (such results are replaced by one NaN), races, and the order
// of floating-point atomics. The same seed gives the same text everywhere.
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
  std::string instruction;  // the instruction that computed it
};

/// Kernel `name`(.param .u64 in, .u64 out, .u64 sums, .u32 uniform), for random_inputs().
struct RandomProgram {
  std::uint64_t seed = 0;
  std::string name;
  std::string text;  // the .entry
  std::vector<RandomResult> results;
  std::vector<std::string> sums;  // the red instructions on words 0, 1, ... of `sums`
  std::vector<std::size_t> scalar_rows, matrix_rows;  // rows of the lists below that it uses
  Launch launch;
  std::uint32_t uniform = 0;

  /// Bytes of out. Result r of thread t, of all = `launch.grid.x * launch.block.x`, is at 8 * (r *
  /// all + t).
  std::size_t out_bytes() const;
  /// Bytes of sums: 8 a word.
  std::size_t sums_bytes() const { return 8 * sums.size() + 8; }
};

RandomProgram random_program(std::uint64_t seed);

/// PTX for sm_90 with the programs of seeds first, first + 1, ...
std::string random_module(const std::vector<RandomProgram>& programs);

/// The buffer that all programs read: numbers of every type, including special values.
const std::vector<std::byte>& random_inputs();

/// The rows from which programs draw: spellings of one-lane instructions, and warp products on
/// sm_90.
std::vector<std::string> random_scalar_instructions();
std::vector<std::string> random_matrix_instructions();

}  // namespace tartan::test
