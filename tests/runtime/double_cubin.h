// SPDX-License-Identifier: Apache-2.0
// tests/runtime/double_cubin.h - machine code for the CUDA driver's double.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tartan::test {

// An ELF file of 64 bits with one section of 16 bytes, and the name that the double looks for.
inline std::vector<std::byte> double_cubin(const char (&name)[16]) {
  std::array<std::uint64_t, 8> header{0x464c457f};
  constexpr std::uint64_t text_at = 64, text_bytes = sizeof name, table_at = text_at + text_bytes;
  header[5] = table_at;
  std::vector<std::byte> out(table_at + 64);
  std::memcpy(out.data(), header.data(), sizeof header);
  const std::uint16_t entry_bytes = 64, entries = 1;
  std::memcpy(out.data() + 58, &entry_bytes, 2);
  std::memcpy(out.data() + 60, &entries, 2);
  std::memcpy(out.data() + text_at, name, sizeof name);
  const std::uint32_t kind = 1;
  std::memcpy(out.data() + table_at + 4, &kind, 4);
  std::memcpy(out.data() + table_at + 24, &text_at, 8);
  std::memcpy(out.data() + table_at + 32, &text_bytes, 8);
  return out;
}

}  // namespace tartan::test
