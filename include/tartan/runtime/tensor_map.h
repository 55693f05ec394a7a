// SPDX-License-Identifier: Apache-2.0
// tartan/runtime/tensor_map.h - tensor maps: how the TMA unit of sm_90 and later
// (cp.async.bulk.tensor) finds the elements of a tensor in global memory, and how it lays a box of
// them out in shared memory.
//
//   TensorMap map{.type = f16, .address = a.address(), .extents = {4096, 1024},
//                 .strides = {8192}, .box = {64, 128}, .swizzle = TensorMap::Swizzle::bytes_128};
//   const auto bytes = map.encode();            // or diagnostics that name each bad argument
//   Status launched = kernel->launch(shape, Arguments().add(*bytes).add(c));
//
// The kernel takes it as `.param .align 64 .b8 map[128]` and passes the parameter's address to the
// instruction. The maps of kernels that compile() made come from arguments_of() of tartan/launch.h.
// Dimension 0 is the innermost one everywhere: its elements are neighbours in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tartan/isa/type.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI {

/// The 128 bytes that a kernel receives.
struct TensorMapBytes {
  std::array<std::byte, 128> bytes{};
  bool operator==(const TensorMapBytes&) const = default;
};

/// The fields that tensormap.replace writes, named as in PTX: box_dim, global_dim and so on.
enum class TensorMapField : std::uint8_t {
  address,
  rank,  // minus one
  box,
  extent,
  stride,  // bytes, of dimension ordinal + 1
  element_stride,
  type,
  interleave,
  swizzle,
  swizzle_atomicity,
  fill
};

/// The arguments of cuTensorMapEncode: a tensor in global memory, and the box that TMA copies.
struct TensorMap {
  /// Where the 16-byte chunks of a box's rows go in shared memory: the chunk's number in its row,
  /// XORed with as many bits of the shared address above bit 7 as the span has room for.
  /// bytes_128_atom_32 moves pairs of chunks (sm_100 and later): MN-major tiles of 32-bit elements
  /// of tcgen05.mma have it.
  enum class Swizzle : std::uint8_t { none, bytes_32, bytes_64, bytes_128, bytes_128_atom_32 };
  /// How much L2 fetches at once.
  enum class Promotion : std::uint8_t { none, bytes_64, bytes_128, bytes_256 };
  /// The value that a load gives for elements outside the tensor.
  enum class Fill : std::uint8_t { zero, nan };

  /// Images whose pixels become rows of a box, for convolutions (PTX ISA "im2col mode"). Dimension
  /// 0 is the channels, the last one is the image's number, those between are its width, height and
  /// depth.
  ///
  /// A copy visits `pixels` pixels, first along the width; at the end of a line it continues with
  /// the next line, then with the next image. They are positions of a filter within corners: from
  /// `lower` to the image's last pixel + `upper`, in each dimension. The instruction's offsets
  /// select the pixel under the filter that is read.
  struct Im2col {
    std::vector<std::int32_t> lower = {}, upper = {};  // of width, height, depth
    std::uint32_t channels = 0;                        // of a pixel
    std::uint32_t pixels = 0;

    bool operator==(const Im2col&) const = default;
  };

  /// u8, u16, u32, s32, u64, s64, f16, bf16, f32, tf32 or f64. Formats of 8 bits are u8 here.
  ///
  /// Elements of four and six bits (sm_100 and later; PTX ISA "Sub-byte types"), packed in global
  /// memory: b4 leaves them packed in shared memory, b4x16_p64 and b6x16_p32 put 16 of them into
  /// 16 bytes, of which 8 or 4 are padding, as tcgen05.mma and tcgen05.cp read them. A box of the
  /// latter two is 128 elements wide. Extents count elements, strides bytes.
  Type type = Type::none;
  std::uint64_t address = 0;                // of element 0, a multiple of 16
  std::vector<std::uint64_t> extents = {};  // elements; one a dimension, 1 to 5 dimensions
  std::vector<std::uint64_t> strides = {};  // bytes, of dimensions 1 and up: one fewer than extents
  std::vector<std::uint32_t> box = {};      // elements that one copy covers; empty with im2col
  /// The element stride in each dimension of the box; empty: 1. Dimension 0 is never strided.
  std::vector<std::uint32_t> element_strides = {};
  Swizzle swizzle = Swizzle::none;
  Promotion promotion = Promotion::none;
  Fill fill = Fill::zero;
  bool flush_subnormals = false;  // f32 and tf32
  std::optional<Im2col> im2col = {};

  std::size_t rank() const { return extents.size(); }
  /// Reports every argument that TMA does not support.
  Status check() const;
  /// The bytes that the driver's cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col writes.
  Result<TensorMapBytes> encode() const;
  /// The map in those bytes; nothing, with a reason, if they are not a map.
  static Result<TensorMap> decode(std::span<const std::byte, 128> bytes);
  /// Writes one field of a map that may be incomplete.
  static Status replace(std::span<std::byte, 128> bytes, TensorMapField field, std::size_t ordinal,
                        std::uint64_t value);

  // Require a map that check() accepts.

  /// Elements along dimension `i` that a copy moves: the box divided by the element stride. For
  /// tiled maps, not im2col.
  std::uint32_t copied(std::size_t i) const;
  /// Elements of a box's row, which are contiguous in memory.
  std::uint32_t row() const { return im2col ? im2col->channels : box[0]; }
  /// Rows of a box.
  std::uint64_t rows() const;
  /// Bytes that a copy completes on its mbarrier: always the whole box, in bounds or not, without
  /// the padding of b4x16_p64 and b6x16_p32.
  std::uint64_t box_bytes() const;

  bool operator==(const TensorMap&) const = default;
};

/// Bytes after which the swizzle pattern repeats in a row: 0, 32, 64, 128.
constexpr std::uint32_t span_bytes(TensorMap::Swizzle swizzle) {
  switch (swizzle) {
    case TensorMap::Swizzle::none: return 0;
    case TensorMap::Swizzle::bytes_32: return 32;
    case TensorMap::Swizzle::bytes_64: return 64;
    case TensorMap::Swizzle::bytes_128:
    case TensorMap::Swizzle::bytes_128_atom_32: break;
  }
  return 128;
}

}  // namespace tartan::TARTAN_ABI
