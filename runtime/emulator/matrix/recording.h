// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/recording.h - replays recorded hardware behaviour on the emulator.
//
// A recording is an index (JSON: one entry per instruction form) and data (little-endian words). A
// test of a warp-level entry has the input registers, word by word for 32 lanes; for ldmatrix and
// similar instructions a block of memory; the output registers; and the block afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/emulator/matrix/matrix.h"

namespace tartan::TARTAN_ABI::emulator {

/// A recorded instruction form.
struct RecordedEntry {
  std::string mnemonic;
  std::string operand;  // wmma.load and wmma.store
  int selector = 0;     // sparse forms
  int tests = 0;
  int in_words = 0, out_words = 0;  // registers per lane (wgmma: words in all)
  int memory_bytes = 0;
  bool memory_out = false;
  std::uint64_t offset = 0;        // of the first test in the data, in bytes
  std::vector<std::string> kinds;  // of input, by test; may be empty
  // wgmma
  bool a_in_registers = false;
  int trans_a = 0, trans_b = 0, scale_a = 1, scale_b = 1;
  int steps = 1;

  std::uint64_t bytes_per_test() const;
  bool warpgroup() const;
};

struct Recording {
  std::vector<RecordedEntry> entries;
  std::vector<std::uint32_t> words;

  /// Reads and checks both files: the data must contain every test of every entry.
  static Result<Recording> read(const std::string& index_path, const std::string& data_path);
};

/// The result of replaying one entry. Words are those that the instruction writes: 32 bits of one
/// lane, or of memory.
struct ReplayedEntry {
  const RecordedEntry* entry = nullptr;
  bool skipped = false;  // the tables have no such form
  std::uint64_t words = 0, mismatched = 0;
  // The first word that differs.
  int test = 0, word = 0, lane = 0;  // lane -1: a word of memory
  std::uint32_t expected = 0, got = 0;
};

ReplayedEntry replay(const Recording& recording, const RecordedEntry& entry, Hardware hardware,
                     Path path = Path::best);

/// The same for wgmma: `form` is the entry's. Called by replay.
ReplayedEntry replay_wgmma(const Recording& recording, const RecordedEntry& entry,
                           const isa::Form& form, Path path);

/// Compares `got` with the recording. `lanes`: words per register; 0: memory.
void compare(ReplayedEntry& result, int test, const std::vector<std::uint32_t>& got,
             const std::uint32_t* expected, int lanes);

struct Replay {
  std::vector<ReplayedEntry> entries;
  std::uint64_t words = 0, mismatched = 0;
  int skipped = 0;

  std::string text() const;  // a line per entry that differs, the entries skipped, and the sums
  std::string json() const;
};

/// Calls `progress` after every entry with the number of entries done.
Replay replay(const Recording& recording, Hardware hardware, Path path = Path::best,
              const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {});

}  // namespace tartan::TARTAN_ABI::emulator
