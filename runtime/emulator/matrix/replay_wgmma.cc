// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/emulator/matrix/recording.h"
#include "runtime/emulator/matrix/wgmma.h"
#include "tartan/isa/fragment.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr int threads = 128;
constexpr std::size_t header_words = 16;

// A test: header, d before, a's registers and the metadata of each step, shared memory; then d
// after.
struct WgmmaTest {
  const std::uint32_t* header;  // both descriptors, scale-d of the first step, what each step adds
                                // to the descriptors
  const std::uint32_t* d;
  const std::uint32_t* a;
  const std::uint32_t* metadata;
  const std::uint32_t* memory;
  const std::uint32_t* d_after;
};

std::uint64_t descriptor(const std::uint32_t* words) {
  return words[0] | std::uint64_t{words[1]} << 32;
}

}  // namespace

ReplayedEntry replay_wgmma(const Recording& recording, const RecordedEntry& entry,
                           const isa::Form& form, Path path) {
  ReplayedEntry result;
  result.entry = &entry;
  const auto steps = static_cast<std::size_t>(entry.steps);
  const auto registers = static_cast<std::size_t>(isa::fragment(form, Operand::d).registers);
  const std::size_t d_words = registers * threads,
                    a_words = form.a_in_registers ? steps * 4 * threads : 0;
  const std::size_t metadata_words = form.sparsity != isa::Sparsity::dense ? steps * threads : 0;
  auto product = WgmmaProduct::make(form, path);
  if (!product ||
      entry.in_words != static_cast<int>(header_words + d_words + a_words + metadata_words) ||
      entry.out_words != static_cast<int>(d_words)) {
    result.skipped = true;
    return result;
  }
  for (int t = 0; t < entry.tests; ++t) {
    WgmmaTest test;
    test.header = recording.words.data() +
                  (entry.offset + static_cast<std::uint64_t>(t) * entry.bytes_per_test()) / 4;
    test.d = test.header + header_words;
    test.a = test.d + d_words;
    test.metadata = test.a + a_words;
    test.memory = test.metadata + metadata_words;
    test.d_after = test.memory + entry.memory_bytes / 4;

    std::vector<std::uint32_t> d(test.d, test.d + d_words);
    std::vector<std::uint32_t*> d_registers;
    for (std::size_t r = 0; r < registers; ++r) d_registers.push_back(d.data() + r * threads);
    Scratch scratch;
    WgmmaOperands operands;
    operands.d = d_registers.data();
    operands.a_descriptor = descriptor(test.header);
    operands.b_descriptor = descriptor(test.header + 2);
    operands.scale_d = test.header[4] != 0;
    operands.shared =
        std::as_bytes(std::span(test.memory, static_cast<std::size_t>(entry.memory_bytes) / 4));
    operands.selector = entry.selector;
    operands.scale_a = entry.scale_a;
    operands.scale_b = entry.scale_b;
    operands.trans_a = entry.trans_a;
    operands.trans_b = entry.trans_b;
    for (std::size_t step = 0; step < steps; ++step) {
      const std::uint32_t* a_registers[4] = {};
      for (std::size_t r = 0; form.a_in_registers && r < 4; ++r)
        a_registers[r] = test.a + (step * 4 + r) * threads;
      operands.a = a_registers;
      operands.metadata = metadata_words ? test.metadata + step * threads : nullptr;
      if (!product->run(operands, scratch))
        std::fill(d.begin(), d.end(), 0);  // a fault, which no recording has
      operands.a_descriptor += test.header[5];
      operands.b_descriptor += test.header[6];
      operands.scale_d = true;
    }
    compare(result, t, d, test.d_after, threads);
  }
  return result;
}

}  // namespace tartan::TARTAN_ABI::emulator
