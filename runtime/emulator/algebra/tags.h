// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/algebra/tags.h - which value a byte of memory or of a register is part of.
//
// A tag is a number and a code. Code 0: the byte is what its bits say (the number is 0), or byte
// `number` - 1 of the inputs, of which nobody has said what elements they are. Else the byte is
// part `code - size` of an element of `size` bytes (1, 2, 4 or 8; the highest bit of the code),
// whose value has that number. What only moves bytes moves tags.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

using Tag = std::uint32_t;

constexpr Tag tag_of(std::uint32_t ref, std::uint32_t size, std::uint32_t part) {
  return ref << 4 | (size + part);
}
constexpr Tag input_tag(std::uint32_t byte) { return (byte + 1) << 4; }
constexpr std::uint32_t code(Tag tag) { return tag & 15; }
constexpr bool is_input(Tag tag) { return tag && code(tag) == 0; }
constexpr bool is_valued(Tag tag) { return code(tag) != 0; }
constexpr std::uint32_t input_byte(Tag tag) { return (tag >> 4) - 1; }
constexpr std::uint32_t ref_of(Tag tag) { return tag >> 4; }
constexpr std::uint32_t size_of_element(Tag tag) { return std::bit_floor(code(tag)); }
constexpr std::uint32_t part_of(Tag tag) { return code(tag) - size_of_element(tag); }

/// Tags of memory of the host: of buffers, shared and local memory.
class TagMemory {
 public:
  void load(const std::byte* at, Tag* to, std::size_t bytes);
  void store(const std::byte* at, const Tag* from, std::size_t bytes);
  void clear(const std::byte* at, std::size_t bytes);
  /// As memmove.
  void copy(const std::byte* to, const std::byte* from, std::size_t bytes);

 private:
  static constexpr std::size_t page_bytes = 4096;
  struct Cached {
    std::uintptr_t page = ~std::uintptr_t{0};
    Tag* tags = nullptr;
  };
  /// The page's tags; null where it has none.
  Tag* find(std::uintptr_t page);
  Tag* make(std::uintptr_t page);
  /// Calls body(page, first, bytes) for the pieces of a range.
  template <typename Body>
  static void each_page(const std::byte* at, std::size_t bytes, Body&& body);

  std::unordered_map<std::uintptr_t, std::unique_ptr<Tag[]>> pages_;
  Cached cache_[256];
  std::vector<Tag> between_;  // of copy()
};

}  // namespace tartan::TARTAN_ABI::emulator
