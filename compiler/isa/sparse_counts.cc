// SPDX-License-Identifier: Apache-2.0
#include "compiler/isa/sparse_counts.h"

#include "tartan/isa/tensor_memory.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

// .sp::S:T: S of T elements are kept.
struct Ratio {
  Qualifier word;
  int kept, of;
};
constexpr Ratio ratios[] = {{"sp::1:2"_q, 1, 2},   {"sp::1:4"_q, 1, 4},   {"sp::2:4"_q, 2, 4},
                            {"sp::1:8"_q, 1, 8},   {"sp::1:16"_q, 1, 16}, {"sp::2:8"_q, 2, 8},
                            {"sp::2:16"_q, 2, 16}, {"sp::4:8"_q, 4, 8},   {"sp::4:16"_q, 4, 16}};

const Ratio* ratio_of(const Spelling& spelling) {
  for (const Ratio& each : ratios)
    if (spelling.has(each.word)) return &each;
  return nullptr;
}

int registers(int bits) { return (bits + 31) / 32; }

}  // namespace

SparseCounts sparse_counts(const Spelling& spelling) {
  const Ratio* ratio = ratio_of(spelling);
  if (!ratio) return {};
  const int n = repeats(spelling.words), index = bits(spelling.type(1)),
            element = bits(spelling.type());
  // tcgen05.ld: n columns of 32 bits.
  if (spelling.opcode != Opcode::spcompress && spelling.opcode != Opcode::spdecompress)
    return {.metadata = registers(n), .values = n / 2};
  // spcompress: n registers of values.
  if (spelling.opcode == Opcode::spcompress)
    return {.metadata = (n * index + element - 1) / element, .values = n, .dense = 2 * n};
  return {.metadata = registers(ratio->kept * index * n),
          .values = registers(ratio->kept * element * n),
          .dense = registers(ratio->of * element * n)};
}

std::string_view refuses_ratio(const Spelling& spelling) {
  const Ratio* ratio = ratio_of(spelling);
  if (!ratio) return "";
  const SparseCounts counts = sparse_counts(spelling);
  constexpr int most_registers = 253;
  if (counts.metadata + counts.values + counts.dense > most_registers)
    return "has too many registers";
  if (spelling.opcode == Opcode::spcompress) return "";
  const int element = bits(spelling.type()), dense = ratio->of * element * repeats(spelling.words);
  if (ratio->of > 4 && spelling.type(1) != Type::b4) return "accepts this ratio only with .b4";
  if (ratio->kept * element > 32) return "keeps at most 32 bits of each group";
  return dense < 32 || dense > 4096 ? "makes 32 to 4096 bits" : "";
}

}  // namespace tartan::TARTAN_ABI::isa
