// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/mbarrier.h - an mbarrier: 64 bits of shared memory that programs must
// not look into. Here they are
//
//   63      62..42                 41       40..21              20..0
//   phase   transactions pending   layout   arrivals expected   arrivals pending
//
// with a phase that flips when both pending counts are zero. No operation that runs here reports
// anything, so that the conditional phase of .layout::v1 is the primary one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

/// What instructions do to one.
enum class MbarrierAction : std::uint8_t {
  init,
  invalidate,
  arrive,
  expect,
  complete,
  arrive_expect,
  arrive_drop,
  arrive_drop_expect
};

struct Mbarrier {
  static constexpr std::uint64_t field = (std::uint64_t{1} << 21) - 1;
  static constexpr std::uint32_t most_arrivals = 0xFFFFF, most_arrivals_v1 = 0x1FF;
  static constexpr std::int32_t most_transactions = 0xFFFFF;

  std::uint32_t pending = 0, expected = 0;
  std::int32_t transactions = 0;  // signed: completions may come before the expectation
  bool phase = false;
  bool v1 = false;  // .layout::v1

  static Mbarrier load(const std::byte* at) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    const auto raw = static_cast<std::uint32_t>(word >> 42 & field);
    return {static_cast<std::uint32_t>(word & field),
            static_cast<std::uint32_t>(word >> 21 & most_arrivals),
            static_cast<std::int32_t>(raw << 11) >> 11, static_cast<bool>(word >> 63),
            static_cast<bool>(word >> 41 & 1)};
  }
  std::uint64_t word() const {
    return std::uint64_t{phase} << 63 |
           (static_cast<std::uint64_t>(static_cast<std::uint32_t>(transactions)) & field) << 42 |
           std::uint64_t{v1} << 41 | std::uint64_t{expected} << 21 | pending;
  }
  /// Writes it back, in its next phase if this one is complete: then true.
  bool store(std::byte* at) {
    const bool ends = pending == 0 && transactions == 0;
    if (ends) {
      phase = !phase;
      pending = expected;
    }
    const std::uint64_t bits = word();
    std::memcpy(at, &bits, 8);
    return ends;
  }
  /// `bytes` of an asynchronous operation have arrived.
  static bool complete(std::byte* at, std::uint32_t bytes) {
    Mbarrier barrier = load(at);
    barrier.transactions -= static_cast<std::int32_t>(bytes);
    return barrier.store(at);
  }
};

}  // namespace tartan::TARTAN_ABI::emulator
