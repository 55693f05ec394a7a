// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/heap.h - what malloc and free of the device runtime give kernels: pieces
// of one buffer, which outlive the launch.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

class Heap {
 public:
  /// As large as CUDA's (cudaLimitMallocHeapSize) unless a program asks for more.
  static constexpr std::uint64_t bytes = 8 << 20;

  /// Takes [address, address + bytes) as its room.
  void open(std::uint64_t address);
  bool is_open() const { return room_ != 0; }

  /// A multiple of 16; 0 where there is no room, and for 0 bytes.
  std::uint64_t allocate(std::uint64_t size);
  /// False for an address that is none of its pieces.
  bool free(std::uint64_t address);

 private:
  std::mutex mutex_;
  std::uint64_t room_ = 0;
  std::map<std::uint64_t, std::uint64_t> free_, used_;  // address -> bytes
};

}  // namespace tartan::TARTAN_ABI::emulator
