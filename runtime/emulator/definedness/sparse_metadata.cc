// SPDX-License-Identifier: Apache-2.0
// PTX ISA 9.0, 9.7.14.6.1: of the two indices of a group none may be the other;
// .sp::ordered_metadata wants them in increasing order, and tf32 has two codes, for the first and
// the second element.
#include "runtime/emulator/definedness/sparse_metadata.h"

#include <fmt/format.h>

namespace tartan::TARTAN_ABI::emulator {
namespace {

std::string_view complaint(const isa::Form& form, std::uint32_t code) {
  const std::uint32_t first = code & 3, second = code >> 2;
  if (bits(form.a) == 32)
    return code == 0x4 || code == 0xE ? "" : "tf32 has the codes 0b0100 and 0b1110";
  if (first == second) return "expected two different indices";
  const bool ordered = form.sparsity == isa::Sparsity::sp_ordered_metadata;
  return ordered && first > second ? "expected increasing indices" : "";
}

}  // namespace

std::optional<IllegalCode> find_illegal_code(const isa::Form& form, const std::uint32_t* words,
                                             int selector) {
  for (int row = 0; row < form.shape.m; ++row)
    for (int j = 0; j < isa::codes_per_row(form); ++j) {
      const isa::MetadataBits at = isa::metadata(form, row, j, selector);
      const std::uint32_t word = words[at.lane], code = word >> at.lowest & 15;
      const std::string_view why = complaint(form, code);
      if (why.empty()) continue;
      return IllegalCode{
          at.lane,
          fmt::format("illegal sparse metadata: {}, found {:#06b} (indices {} and {}) for row {}, "
                      "group {} of A, in bits {} to {} of 0x{:08x}",
                      why, code, code & 3, code >> 2, row, j, at.lowest, at.lowest + 3, word)};
    }
  return std::nullopt;
}

}  // namespace tartan::TARTAN_ABI::emulator
