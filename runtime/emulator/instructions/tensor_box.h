// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/tensor_box.h - the box of a tensor that one lane copies: between
// global memory, row after row, and shared memory, with its swizzle.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/tensor_rows.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {

inline constexpr std::uint64_t chunk = 16;  // bytes that a swizzle keeps together

// Bytes of global memory that become a chunk: the rest of it is padding.
inline std::uint64_t packed_bytes(Type type) {
  return type == Type::b4x16_p64 ? 8 : type == Type::b6x16_p32 ? 12 : chunk;
}

// What an element outside of the tensor reads as: the same 16 bits again and again, as an H100
// does.
inline std::uint64_t fill_bits(const TensorMap& map) {
  return map.fill == TensorMap::Fill::zero ? 0 : 0x7FF77FF77FF77FF7;
}

// Elements of tf32 are f32 in memory and are rounded on the way, to nearest, from the middle to
// even.
inline void round_to_tf32(std::byte* at) {
  std::uint32_t bits;
  std::memcpy(&bits, at, sizeof bits);
  const bool finite = (~bits & 0x7F800000) != 0;
  const std::uint32_t half = 0xFFF + (bits >> 13 & 1);
  bits = (bits + (finite ? half : 0)) & ~std::uint32_t{0x1FFF};
  std::memcpy(at, &bits, sizeof bits);
}

// 16 elements from the low six bits of their bytes, as copies to global memory pack them
// (b6p2x16, which shares its code with b6x16_p32).
inline void pack_sixes(std::byte* to, const std::byte* from) {
  for (std::uint64_t i = 0; i < chunk; i += 4) {
    std::uint32_t word = 0;
    for (std::uint64_t k = 0; k < 4; ++k)
      word |= (static_cast<std::uint32_t>(from[i + k]) & 63) << 6 * k;
    std::memcpy(to + i / 4 * 3, &word, 3);
  }
}

// One lane's copy: where the box is in the tensor and in memory.
class TensorBox {
 public:
  TensorBox(Warp& warp, int lane, TensorMap map, const BoxCorner& place, bool gathers)
      : warp_(warp), lane_(lane), map_(std::move(map)), place_(place), gathers_(gathers) {
    element_bits_ = static_cast<unsigned>(bits(map_.type));
    packed_ = packed_bytes(map_.type);
    row_bytes_ = map_.row() * element_bits_ / 8;
    span_ = span_bytes(map_.swizzle);
    pitch_ = std::max<std::uint64_t>(span_, row_bytes_ / packed_ * chunk);
    rows_ = gathers ? gathered_rows : place_.rows(map_);
    noted_ = warp.block->context().checked;
    followed_ = warp.block->cluster().values_are_followed();
  }

  const TensorMap& map() const { return map_; }
  std::uint64_t bytes() const { return rows_ * row_bytes_; }
  std::uint64_t shared_bytes() const { return rows_ * pitch_; }
  BoxShape shape() const {
    return {.span = static_cast<std::uint32_t>(span_), .source = map_.address};
  }
  /// What touch(), load() or store() accessed of the tensor, in a launch with checks.
  std::span<const Stretch> rows() const { return touched_; }

  /// Whether all of it that is inside of the tensor exists; rows() then has what load() will read.
  bool touch() {
    return each_row([](std::uint64_t, const std::byte*, std::uint64_t, std::uint64_t) {});
  }
  /// Fills `image`, a copy of shared memory from `address` on.
  bool load(std::byte* image, std::uint64_t address) {
    std::vector<std::byte> row(row_bytes_);
    const std::uint64_t outside = fill_bits(map_),
                        element = std::max<std::uint64_t>(element_bits_ / 8, 1);
    return each_row(
        [&](std::uint64_t index, const std::byte* memory, std::uint64_t first, std::uint64_t last) {
          for (std::uint64_t i = 0; i < row_bytes_; i += element)
            if (i < first || i >= last) std::memcpy(&row[i], &outside, element);
          if (memory) std::memcpy(&row[first], memory, last - first);
          if (followed_) note_load(image, address, index, memory, first, last);
          if (memory && map_.type == tf32)
            for (std::uint64_t i = first; i < last; i += element) round_to_tf32(&row[i]);
          for (std::uint64_t i = 0; i < row_bytes_; i += packed_)
            std::memcpy(image + place(address, index, i), &row[i], packed_);
        });
  }

  /// Writes those elements of the box that are inside of the tensor.
  bool store(const std::byte* image, std::uint64_t address, Reduction reduction) {
    std::vector<std::byte> row(row_bytes_);
    return each_row(
        [&](std::uint64_t index, std::byte* memory, std::uint64_t first, std::uint64_t last) {
          if (!memory) return;
          for (std::uint64_t i = 0; i < row_bytes_; i += packed_)
            if (map_.type == Type::b6x16_p32) pack_sixes(&row[i], image + place(address, index, i));
            else std::memcpy(&row[i], image + place(address, index, i), packed_);
          each_part(address, index, first, last,
                    [&](std::uint64_t at, std::uint64_t low, std::uint64_t bytes) {
                      tell(warp_, &ValueEvents::store, lane_,
                           StoredBytes{memory + low, image + at, bytes, reduction});
                    });
          move_bytes(memory, &row[first], static_cast<std::uint32_t>(last - first), reduction);
        });
  }

 private:
  // Values of a row of the tensor go where its bytes do; what is outside of it is filled.
  void note_load(std::byte* image, std::uint64_t address, std::uint64_t index,
                 const std::byte* memory, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = 0; i < row_bytes_; i += packed_)
      tell(warp_, &ValueEvents::fill, image + place(address, index, i), packed_);
    if (memory)
      each_part(address, index, first, last,
                [&](std::uint64_t at, std::uint64_t inside, std::uint64_t bytes) {
                  tell(warp_, &ValueEvents::move, image + at, memory + inside, bytes);
                });
  }

  // Calls body(place in the box, bytes from `first` on, how many) for the parts of bytes [first,
  // last) of a row that lie in one piece, if anybody follows them.
  template <typename Body>
  void each_part(std::uint64_t address, std::uint64_t index, std::uint64_t first,
                 std::uint64_t last, Body&& body) {
    for (std::uint64_t i = first / packed_ * packed_; followed_ && i < last; i += packed_) {
      const std::uint64_t low = std::max(i, first), high = std::min(i + packed_, last);
      body(place(address, index, i) + (low - i), low - first, high - low);
    }
  }

  // The chunk of the bytes at `inside` of row `index`, counted from the start of the box.
  std::uint64_t place(std::uint64_t address, std::uint64_t index, std::uint64_t inside) const {
    const std::uint64_t linear = address + index * pitch_ + inside / packed_ * chunk;
    const bool by_pairs = map_.swizzle == TensorMap::Swizzle::bytes_128_atom_32;
    const unsigned atom = by_pairs ? 5 : 4;  // a power of two
    const std::uint64_t mask = span_ ? (span_ >> atom) - 1 : 0;
    return (linear ^ (linear >> 7 & mask) << atom) - address;
  }

  // Calls body(index, memory, first, last) for each row: its bytes [first, last) are inside of the
  // tensor and start at `memory`; null: the row has none.
  template <typename Body>
  bool each_row(Body&& body) {
    const std::int64_t extent = static_cast<std::int64_t>(map_.extents[0]), x = place_.at[0];
    const std::int64_t low = std::clamp<std::int64_t>(-x, 0, map_.row()),
                       high = std::clamp<std::int64_t>(extent - x, low, map_.row());
    const auto first = static_cast<std::uint64_t>(low) * element_bits_ / 8,
               last = static_cast<std::uint64_t>(high) * element_bits_ / 8;
    Rows rows(map_, place_, gathers_);
    touched_.clear();
    for (std::uint64_t index = 0; index < rows_; ++index, rows.next()) {
      std::byte* memory = nullptr;
      if (first < last) {
        std::uint64_t address =
            map_.address + static_cast<std::uint64_t>(x + low) * element_bits_ / 8;
        if (add_outer(rows, address)) {
          memory = find(address, last - first);
          if (!memory) return false;
          if (noted_) touched_.push_back({Window::global, address, last - first});
        }
      }
      body(index, memory, first, memory ? last : first);
    }
    return true;
  }

  // Adds where the row lies along dimensions 1 and up; false if it is outside of the tensor.
  bool add_outer(const Rows& rows, std::uint64_t& address) const {
    for (std::size_t i = 1; i < map_.rank(); ++i) {
      const std::int64_t at = rows.at(i);
      if (at < 0 || at >= static_cast<std::int64_t>(map_.extents[i])) return false;
      address += static_cast<std::uint64_t>(at) * map_.strides[i - 1];
    }
    return true;
  }

  std::byte* find(std::uint64_t address, std::uint64_t bytes) {
    if (!allocation_.host || !allocation_.holds(address, bytes)) {
      const Allocation* found = warp_.block->memory().find(address, bytes);
      if (!found) {
        const Allocation* near = warp_.block->memory().nearest(address);
        warp_.fail(
            "memory-fault"_rule,
            fmt::format(
                "the tensor map's tensor has {} bytes at 0x{:x}, which are not inside a buffer{}",
                bytes, address,
                near ? fmt::format("; the nearest is 0x{:x} with {} bytes", near->address,
                                   near->bytes)
                     : std::string()),
            lane_, address);
        return nullptr;
      }
      allocation_ = *found;
    }
    return allocation_.host + (address - allocation_.address);
  }

  Warp& warp_;
  int lane_;
  TensorMap map_;
  BoxCorner place_;
  bool gathers_;
  std::uint64_t element_bits_ = 0;
  std::uint64_t row_bytes_ = 0;  // of global memory
  std::uint64_t packed_ = chunk, span_ = 0, pitch_ = 0, rows_ = 1;
  Allocation allocation_;
  bool noted_ = false;
  std::vector<Stretch> touched_;
  bool followed_ = false;
};

}  // namespace tartan::TARTAN_ABI::emulator
