// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/wide_registers.h - registers of cvt and cvt.pack that are wider
// than what they hold (PTX ISA 9.0, 9.4.1).
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/emulator/decode/decoder.h"

namespace tartan::TARTAN_ABI::emulator {

/// A source of cvt, whose register may be wider than `type`: a slot with what is read of it.
std::uint32_t narrow_source(Decoder& decoder, std::size_t i, Type type);
/// The result of cvt, whose register may be wider than `type`.
class WideResult {
 public:
  WideResult(Decoder& decoder, Type type);
  /// After the ops that write `slot`.
  void widen(Decoder& decoder) const;
  /// The bits of a register that they write.
  std::uint64_t mask() const {
    return bits_ >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits_) - 1;
  }
  std::uint32_t slot = 0;

 private:
  Type type_;
  RegisterRef destination_{};
  bool widens_ = false;
  int bits_ = 64;
};

}  // namespace tartan::TARTAN_ABI::emulator
