// SPDX-License-Identifier: Apache-2.0
#include "tartan/runtime/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tartan::TARTAN_ABI {
namespace {

constexpr std::size_t most_dimensions = 5;
constexpr std::uint64_t unit = 16;  // bytes: of addresses, strides and rows of a box
constexpr std::uint64_t most_elements = std::uint64_t{1} << 32,
                        most_stride = std::uint64_t{1} << 40;
constexpr std::uint64_t most_box_bytes = 232448;  // the shared memory of a block, at most
constexpr std::uint32_t most_in_box = 256, most_element_stride = 8, most_pixels = 1024;

constexpr TypeSet element_types{Type::u8,  Type::u16,       Type::u32,       Type::s32, Type::u64,
                                Type::s64, Type::f16,       Type::bf16,      Type::f32, Type::tf32,
                                Type::f64, Type::b4x16_p64, Type::b6x16_p32, Type::b4};

// What the driver asks of the elements that get padding (cuTensorMapEncodeTiled).
constexpr TypeSet padded_types{Type::b4x16_p64, Type::b6x16_p32};
constexpr std::uint32_t padded_elements =
    128;                                   // of a box's row, and of what a row is a multiple of
constexpr std::uint64_t padded_unit = 32;  // bytes: of the address and the strides

class Checker {
 public:
  explicit Checker(const TensorMap& map) : map_(map) {}

  Status run() {
    if (!check_shape()) return std::move(diags_);
    check_type();
    check_memory();
    check_packed();
    check_element_strides();
    if (map_.im2col) check_pixels();
    else check_box();
    check_row();
    if (!diags_.ok()) return std::move(diags_);
    return Done{};
  }

 private:
  template <typename... Arguments>
  void report(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    diags_.report("tensor-map"_rule, {}, fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  bool check_shape() {
    const std::size_t rank = map_.rank();
    if (rank < 1 || rank > most_dimensions)
      report("wrong number of extents: a tensor map has 1 to {}, found {}", most_dimensions, rank);
    else if (map_.strides.size() + 1 != rank)
      report("wrong number of strides: a tensor of {} dimensions has {}, found {}", rank, rank - 1,
             map_.strides.size());
    if (map_.im2col && (rank < 3 || !map_.box.empty()))
      report("im2col: expected 3 to {} dimensions and no box, found {} and {}", most_dimensions,
             rank, map_.box.size());
    else if (!map_.im2col && map_.box.size() != rank)
      report("box: expected one number per dimension ({}), found {}", rank, map_.box.size());
    if (!map_.element_strides.empty() && map_.element_strides.size() != rank)
      report("element_strides: expected one number per dimension ({}), found {}", rank,
             map_.element_strides.size());
    if (map_.im2col && rank >= 3)
      for (const auto* corner : {&map_.im2col->lower, &map_.im2col->upper})
        if (corner->size() != rank - 2)
          report("im2col: a corner of images in {} dimensions has {} numbers, found {}", rank,
                 rank - 2, corner->size());
    return diags_.ok();
  }

  void check_type() {
    if (!element_types.has(map_.type))
      report(
          "type: {} is unsupported in tensor maps: expected u8, u16, u32, s32, u64, s64, f16, "
          "bf16, f32, tf32, f64, b4, b4x16_p64 or b6x16_p32",
          map_.type == Type::none ? "none" : name(map_.type));
    else if (map_.flush_subnormals && map_.type != Type::f32 && map_.type != Type::tf32)
      report("flush_subnormals is unsupported for {}: expected f32 or tf32", name(map_.type));
    if (map_.fill == TensorMap::Fill::nan && !info(map_.type).floating)
      report("fill: {} has no NaN", name(map_.type));
  }

  void check_memory() {
    if (map_.address % unit != 0)
      report("address: 0x{:x} is not a multiple of {}", map_.address, unit);
    for (std::size_t i = 0; i < map_.rank(); ++i)
      if (map_.extents[i] < 1 || map_.extents[i] > most_elements)
        report("extents[{}]: expected 1 to 2^32 elements, found {}", i, map_.extents[i]);
    for (std::size_t i = 0; i < map_.strides.size(); ++i)
      if (map_.strides[i] % unit != 0 || map_.strides[i] >= most_stride)
        report("strides[{}]: expected a multiple of {} below 2^40 bytes, found {}", i, unit,
               map_.strides[i]);
  }

  // Elements of less than a byte.
  void check_packed() {
    if (map_.type == Type::b4 && map_.extents[0] % 2 != 0)
      report("extents[0]: expected a multiple of 2 elements of b4, found {}", map_.extents[0]);
    if (bits(map_.type) < 8 && map_.im2col)
      report("im2col: elements of {} are not emulated: expected at least 8 bits", name(map_.type));
    if (!padded_types.has(map_.type)) return;
    if (map_.address % padded_unit != 0)
      report("address: 0x{:x} is not a multiple of {}, as {} requires", map_.address, padded_unit,
             name(map_.type));
    if (map_.extents[0] % padded_elements != 0)
      report("extents[0]: expected a multiple of {} elements of {}, found {}", padded_elements,
             name(map_.type), map_.extents[0]);
    for (std::size_t i = 0; i < map_.strides.size(); ++i)
      if (map_.strides[i] % padded_unit != 0)
        report("strides[{}]: expected a multiple of {} bytes with {}, found {}", i, padded_unit,
               name(map_.type), map_.strides[i]);
    if (!map_.box.empty() && map_.box[0] != padded_elements)
      report("box[0]: expected {} elements of {}, found {}", padded_elements, name(map_.type),
             map_.box[0]);
    if (map_.swizzle == TensorMap::Swizzle::bytes_32 ||
        map_.swizzle == TensorMap::Swizzle::bytes_64)
      report("swizzle: elements of {} are swizzled by 128 bytes or not at all, found {}",
             name(map_.type), span_bytes(map_.swizzle));
  }

  // Corners share 16 bits among their dimensions.
  void check_pixels() {
    const TensorMap::Im2col& im2col = *map_.im2col;
    const std::int32_t most = map_.rank() == 3 ? 1 << 15 : map_.rank() == 4 ? 1 << 7 : 1 << 4;
    for (std::size_t i = 0; i + 2 < map_.rank(); ++i) {
      for (const std::int32_t corner : {im2col.lower[i], im2col.upper[i]})
        if (corner < -most || corner >= most)
          report("im2col: corners of {} dimensions are {} to {}, found {}", map_.rank(), -most,
                 most - 1, corner);
      if (static_cast<std::int64_t>(map_.extents[i + 1]) - 1 + im2col.upper[i] < im2col.lower[i])
        report("im2col: no pixel lies between the corners {} and {} of dimension {}, which has {}",
               im2col.lower[i], im2col.upper[i], i + 1, map_.extents[i + 1]);
    }
    if (im2col.channels < 1 || im2col.channels > most_in_box)
      report("im2col: expected 1 to {} channels, found {}", most_in_box, im2col.channels);
    if (im2col.pixels < 1 || im2col.pixels > most_pixels)
      report("im2col: expected 1 to {} pixels, found {}", most_pixels, im2col.pixels);
  }

  void check_element_strides() {
    for (std::size_t i = 0; i < map_.element_strides.size(); ++i)
      if (map_.element_strides[i] < 1 || map_.element_strides[i] > most_element_stride)
        report("element_strides[{}]: expected 1 to {}, found {}", i, most_element_stride,
               map_.element_strides[i]);
  }

  void check_box() {
    for (std::size_t i = 0; i < map_.rank(); ++i)
      if (map_.box[i] < 1 || map_.box[i] > most_in_box)
        report("box[{}]: expected 1 to {} elements, found {}", i, most_in_box, map_.box[i]);
  }

  void check_row() {
    const std::string_view what = map_.im2col ? "im2col channels" : "box[0]";
    const std::uint64_t row =
        std::uint64_t{map_.row()} * static_cast<unsigned>(bits(map_.type)) / 8;
    if (row % unit != 0)
      report("{}: {} elements of {} are {} bytes, which is not a multiple of {}", what, map_.row(),
             name(map_.type), row, unit);
    std::uint64_t bytes = row;
    if (map_.im2col) bytes *= map_.im2col->pixels;
    else
      for (std::size_t i = 1; i < map_.rank(); ++i) bytes *= map_.box[i] / step(i);
    if (bytes > most_box_bytes)
      report("box: {} bytes exceed the {} bytes of shared memory of a thread block", bytes,
             most_box_bytes);
    const std::uint32_t span = span_bytes(map_.swizzle);
    if (span != 0 && row > span)
      report("{}: {} elements of {} are {} bytes, the swizzle allows at most {}", what, map_.row(),
             name(map_.type), row, span);
  }

  std::uint32_t step(std::size_t i) const {
    return map_.element_strides.empty() ? 1 : std::max(map_.element_strides[i], 1u);
  }

  const TensorMap& map_;
  Diags diags_;
};

}  // namespace

std::uint32_t TensorMap::copied(std::size_t i) const {
  const std::uint32_t step = i == 0 || element_strides.empty() ? 1 : element_strides[i];
  return (box[i] + step - 1) / step;
}

std::uint64_t TensorMap::rows() const {
  if (im2col) return im2col->pixels;
  std::uint64_t rows = 1;
  for (std::size_t i = 1; i < rank(); ++i) rows *= copied(i);
  return rows;
}

std::uint64_t TensorMap::box_bytes() const {
  return rows() * row() * static_cast<unsigned>(bits(type)) / 8;
}

Status TensorMap::check() const { return Checker(*this).run(); }

}  // namespace tartan::TARTAN_ABI
