// SPDX-License-Identifier: Apache-2.0
// Tensor maps as 128 bytes, as the driver's cuTensorMapEncodeTiled writes them (derived from 167
// maps by driver 580, and verified against all of them): sixteen words of 64 bits, low byte first.
//
//   0     address
//   1     63..32 stride 1     18..17 promotion  16 tf32  15 fill with NaN  14..13 swizzle
//         10..7 type          6..4 rank - 1     others 0: interleave, mode
//   2     63..32 stride 3     31..0 stride 2       strides in units of 16 bytes: their low 32 bits
//   3     47..44 .. 35..32 bits 35..32 of strides 4 to 1     31..0 stride 4
//   4, 5  63..32, 31..0 extents - 1: of dimensions 1, 0 and 3, 2
//   6     63..56 box[0] - 1   46..32 element strides - 1, 3 bits each     31..0 extents[4] - 1
//   7     31..0 box[4] to box[1] - 1, 8 bits each
//   8     bytes of the box, its extents divided by the element strides and rounded down
//   9     bytes after which the swizzle's pattern repeats; 16 without one
//
// cuTensorMapEncodeIm2col writes three words differently (derived from 181 maps, and verified):
//
//   1     bit 0 set
//   6     63..56 channels - 1
//   7     63..32 pixels - 1     31..16 upper, 15..0 lower corner: 16, 8 or 5 bits for each
//         dimension of 3, 4 and 5, the innermost lowest
//   8     channels times pixels times bytes
//
// A driver of sm_90 refuses elements of four and six bits, and the swizzle of 32-byte atoms: that
// their codes are those of tensormap.replace (type 13 to 15; the atom in bits 12..11 of word 1) is
// assumed, and matters only to maps that somebody else encoded.
#include <fmt/format.h>

#include <cstring>

#include "tartan/runtime/tensor_map.h"

namespace tartan::TARTAN_ABI {
namespace {

using Words = std::array<std::uint64_t, 16>;
constexpr std::uint64_t low_32 = 0xFFFFFFFF;

// Bits that a tiled map may have set.
constexpr Words used = {
    ~std::uint64_t{0}, low_32 << 32 | 0x7FFF0, ~std::uint64_t{0},   0xFFFF'FFFFFFFF,
    ~std::uint64_t{0}, ~std::uint64_t{0},      0xFF007FFF'FFFFFFFF, low_32,
    ~std::uint64_t{0}, ~std::uint64_t{0}};

constexpr std::uint64_t im2col_mode = 1;  // of word 1

// Bits of a corner's coordinate, by the map's rank.
constexpr unsigned corner_width(std::size_t rank) { return rank == 3 ? 16 : rank == 4 ? 8 : 5; }

std::uint64_t corner_bits(const std::vector<std::int32_t>& corner, unsigned width) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < corner.size(); ++i)
    out |= (static_cast<std::uint64_t>(corner[i]) & ((1u << width) - 1)) << width * i;
  return out;
}

std::vector<std::int32_t> corner_of(std::uint64_t word, std::size_t dimensions, unsigned width) {
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const auto field = static_cast<std::int32_t>(word >> width * i & ((1u << width) - 1));
    out.push_back(field >> (width - 1) ? field - (std::int32_t{1} << width) : field);
  }
  return out;
}

struct TypeRow {
  Type type;
  bool flush_subnormals, tf32;
  std::uint64_t code;
};
constexpr TypeRow type_rows[] = {
    {Type::u8, false, false, 0},         {Type::u16, false, false, 1},
    {Type::u32, false, false, 2},        {Type::s32, false, false, 3},
    {Type::u64, false, false, 4},        {Type::s64, false, false, 5},
    {Type::f16, false, false, 6},        {Type::f32, false, false, 7},
    {Type::tf32, false, true, 7},        {Type::f32, true, false, 8},
    {Type::tf32, true, true, 8},         {Type::f64, false, false, 9},
    {Type::bf16, false, false, 10},      {Type::b4, false, false, 13},
    {Type::b4x16_p64, false, false, 14}, {Type::b6x16_p32, false, false, 15},
};

std::uint64_t type_bits(const TensorMap& map) {
  for (const TypeRow& row : type_rows)
    if (row.type == map.type && row.flush_subnormals == map.flush_subnormals)
      return row.code << 7 | std::uint64_t{row.tf32} << 16;
  return 0;  // check() rejects it
}

const TypeRow* type_row(std::uint64_t word) {
  for (const TypeRow& row : type_rows)
    if (row.code == (word >> 7 & 15) && row.tf32 == (word >> 16 & 1)) return &row;
  return nullptr;
}

// Codes of elemtype: f32 that becomes tf32, and the last one.
constexpr std::uint64_t rounded = 11, rounded_flushed = 12, packed_by_six = 15;

// The atom of a swizzle by 128 bytes: 16 or 32 bytes.
constexpr unsigned atom_bit = 11;

// The code of a field of a few bits, and the legal range.
struct FieldRow {
  TensorMapField field;
  std::string_view name;
  std::uint64_t least, most;
  std::string_view more;
};
constexpr FieldRow field_rows[] = {
    {TensorMapField::rank, "rank", 0, 4, " (the rank minus one)"},
    {TensorMapField::box, "box_dim", 1, 256, ""},
    {TensorMapField::element_stride, "element_stride", 1, 8, ""},
    {TensorMapField::type, "elemtype", 0, packed_by_six, ""},
    {TensorMapField::interleave, "interleave_layout", 0, 0,
     ": layouts interleaved by 16 and 32 bytes are not emulated"},
    {TensorMapField::swizzle, "swizzle_mode", 0, 3, ": the 96-byte swizzle is not emulated"},
    {TensorMapField::swizzle_atomicity, "swizzle_atomicity", 0, 1,
     ": only swizzle atomicities of 16 and 32 bytes are emulated"},
    {TensorMapField::fill, "fill_mode", 0, 1, ""},
};

// The low 32 bits of extents and strides are the high or the low half of this word.
std::uint64_t half(const Words& words, std::size_t word, bool high) {
  return high ? words[word] >> 32 : words[word] & low_32;
}

}  // namespace

Result<TensorMapBytes> TensorMap::encode() const {
  if (auto status = check(); !status) return status.diags();
  if (im2col) {
    TensorMap tile = *this;
    tile.im2col.reset();
    tile.box.assign(rank(), 1);
    tile.box[0] = im2col->channels;
    auto out = tile.encode();
    if (!out) return out;
    Words words;
    std::memcpy(words.data(), out->bytes.data(), sizeof words);
    const unsigned width = corner_width(rank());
    words[1] |= im2col_mode;
    words[7] = corner_bits(im2col->lower, width) | corner_bits(im2col->upper, width) << 16 |
               std::uint64_t{im2col->pixels - 1} << 32;
    words[8] =
        std::uint64_t{im2col->channels} * im2col->pixels * (static_cast<unsigned>(bits(type)) / 8);
    std::memcpy(out->bytes.data(), words.data(), sizeof words);
    return out;
  }
  Words words{};
  words[0] = address;
  const bool by_pairs = swizzle == Swizzle::bytes_128_atom_32;
  const Swizzle span = by_pairs ? Swizzle::bytes_128 : swizzle;
  words[1] = (rank() - 1) << 4 | type_bits(*this) | static_cast<std::uint64_t>(span) << 13 |
             std::uint64_t{by_pairs} << atom_bit | static_cast<std::uint64_t>(fill) << 15 |
             static_cast<std::uint64_t>(promotion) << 17;
  std::uint64_t size = static_cast<unsigned>(bits(type));
  for (std::size_t i = 0; i < rank(); ++i) {
    const std::uint64_t extent = extents[i] - 1, inside = box[i] - 1,
                        step = element_strides.empty() ? 1 : element_strides[i];
    words[4 + i / 2] |= extent << 32 * (i % 2);
    words[6] |= (step - 1) << (32 + 3 * i);
    if (i == 0) words[6] |= inside << 56;
    else words[7] |= inside << 8 * (i - 1);
    size *= box[i] / step;
    if (i == 0) continue;
    const std::uint64_t stride = strides[i - 1] / 16;
    words[1 + i / 2] |= (stride & low_32) << 32 * (i % 2);
    words[3] |= (stride >> 32) << (32 + 4 * (i - 1));
  }
  words[8] = size / 8;
  words[9] = swizzle == Swizzle::none ? 16 : 8 * span_bytes(swizzle);
  TensorMapBytes out;
  std::memcpy(out.bytes.data(), words.data(), sizeof words);
  return out;
}

Status TensorMap::replace(std::span<std::byte, 128> bytes, TensorMapField field,
                          std::size_t ordinal, std::uint64_t value) {
  Words words;
  std::memcpy(words.data(), bytes.data(), sizeof words);
  const auto put = [&](std::size_t word, std::size_t low, std::size_t width, std::uint64_t number) {
    const std::uint64_t mask = (width == 64 ? 0 : std::uint64_t{1} << width) - 1;
    words[word] = (words[word] & ~(mask << low)) | (number & mask) << low;
  };
  const auto refuse = [](std::string why) { return Status("tensor-map"_rule, std::move(why)); };
  for (const FieldRow& row : field_rows)
    if (row.field == field && (value < row.least || value > row.most))
      return refuse(fmt::format("{}: expected {} to {}, found {}{}", row.name, row.least, row.most,
                                value, row.more));
  switch (field) {
    case TensorMapField::address: put(0, 0, 64, value); break;
    case TensorMapField::rank: put(1, 4, 3, value); break;
    case TensorMapField::box:
      if (ordinal == 0) put(6, 56, 8, value - 1);
      else put(7, 8 * (ordinal - 1), 8, value - 1);
      break;
    case TensorMapField::extent:
      if (ordinal == 4) put(6, 0, 32, value - 1);
      else put(4 + ordinal / 2, 32 * (ordinal % 2), 32, value - 1);
      break;
    case TensorMapField::stride: {
      const std::size_t i = ordinal + 1;
      if (i > 4) return refuse(fmt::format("stride {} does not exist: expected 0 to 3", ordinal));
      if (value % 16 != 0)
        return refuse(fmt::format("stride {}: {} bytes are not a multiple of 16", ordinal, value));
      put(1 + i / 2, 32 * (i % 2), 32, value / 16);
      put(3, 32 + 4 * ordinal, 4, value / 16 >> 32);
      break;
    }
    case TensorMapField::element_stride: put(6, 32 + 3 * ordinal, 3, value - 1); break;
    case TensorMapField::type: {
      put(1, 7, 4, value == rounded ? 7 : value == rounded_flushed ? 8 : value);
      put(1, 16, 1, value == rounded || value == rounded_flushed);
      break;
    }
    case TensorMapField::interleave: break;
    case TensorMapField::swizzle_atomicity: put(1, atom_bit, 2, value); break;
    case TensorMapField::swizzle: put(1, 13, 2, value); break;
    case TensorMapField::fill: put(1, 15, 1, value); break;
  }
  std::memcpy(bytes.data(), words.data(), sizeof words);
  return Done{};
}

Result<TensorMap> TensorMap::decode(std::span<const std::byte, 128> bytes) {
  Words words;
  std::memcpy(words.data(), bytes.data(), sizeof words);
  const auto wrong = [](std::string_view why) {
    return Result<TensorMap>("tensor-map"_rule, fmt::format("not a tiled tensor map: {}", why));
  };
  if (words[1] & im2col_mode) {
    const std::size_t dimensions = words[1] >> 4 & 7;  // rank - 1
    if (dimensions < 2 || dimensions > 4) return wrong("its rank is not 3 to 5");
    const unsigned width = corner_width(dimensions + 1);
    const std::uint64_t counts = words[7];
    Im2col im2col{.lower = corner_of(counts, dimensions - 1, width),
                  .upper = corner_of(counts >> 16, dimensions - 1, width),
                  .channels = static_cast<std::uint32_t>(words[6] >> 56) + 1,
                  .pixels = static_cast<std::uint32_t>(counts >> 32) + 1};
    words[1] &= ~im2col_mode;
    words[7] = 0;
    TensorMapBytes tile;
    std::memcpy(tile.bytes.data(), words.data(), sizeof words);
    auto map = decode(tile.bytes);
    if (!map) return map;
    map->box.clear();
    map->im2col = std::move(im2col);
    if (const Status status = map->check(); !status) return wrong(status.diags()[0].message);
    return map;
  }
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] & ~used[i])
      return wrong(
          "reserved bits are set (interleaved layouts, and modes other than tile and im2col, are "
          "not emulated)");
  const std::size_t rank = (words[1] >> 4 & 7) + 1;
  const TypeRow* row = type_row(words[1]);
  if (rank > 5) return wrong(fmt::format("its rank is {}", rank));
  if (!row) return wrong("its element type is unknown");
  TensorMap map;
  map.type = row->type;
  map.flush_subnormals = row->flush_subnormals;
  map.address = words[0];
  map.swizzle = static_cast<Swizzle>(words[1] >> 13 & 3);
  if (const std::uint64_t atom = words[1] >> atom_bit & 3; atom != 0) {
    if (atom > 1 || map.swizzle != Swizzle::bytes_128)
      return wrong("its swizzle has another atom than 16 bytes, or 32 of 128");
    map.swizzle = Swizzle::bytes_128_atom_32;
  }
  map.fill = static_cast<Fill>(words[1] >> 15 & 1);
  map.promotion = static_cast<Promotion>(words[1] >> 17 & 3);
  for (std::size_t i = 0; i < rank; ++i) {
    map.extents.push_back(half(words, 4 + i / 2, i % 2) + 1);
    map.element_strides.push_back(static_cast<std::uint32_t>(words[6] >> (32 + 3 * i) & 7) + 1);
    const std::uint64_t inside = i == 0 ? words[6] >> 56 : words[7] >> 8 * (i - 1) & 0xFF;
    map.box.push_back(static_cast<std::uint32_t>(inside) + 1);
    if (i == 0) continue;
    const std::uint64_t high = words[3] >> (32 + 4 * (i - 1)) & 15;
    map.strides.push_back((half(words, 1 + i / 2, i % 2) | high << 32) * 16);
  }
  if (const Status status = map.check(); !status) return wrong(status.diags()[0].message);
  return map;
}

}  // namespace tartan::TARTAN_ABI
