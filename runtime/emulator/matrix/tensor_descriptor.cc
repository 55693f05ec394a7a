// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/matrix/tensor_descriptor.h"

#include <fmt/format.h>

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr int bytes_along_k = 32;  // of an instruction

struct TypeCode {
  TensorKind kind;
  std::uint32_t code;
  Type type;
};
constexpr TypeCode factor_types[] = {
    {TensorKind::f16, 0, Type::f16},       {TensorKind::f16, 1, Type::bf16},
    {TensorKind::tf32, 2, Type::tf32},     {TensorKind::f8f6f4, 0, Type::e4m3},
    {TensorKind::f8f6f4, 1, Type::e5m2},   {TensorKind::f8f6f4, 3, Type::e2m3},
    {TensorKind::f8f6f4, 4, Type::e3m2},   {TensorKind::f8f6f4, 5, Type::e2m1},
    {TensorKind::i8, 0, Type::u8},         {TensorKind::i8, 1, Type::s8},
    {TensorKind::mxf8f6f4, 0, Type::e4m3}, {TensorKind::mxf8f6f4, 1, Type::e5m2},
    {TensorKind::mxf8f6f4, 3, Type::e2m3}, {TensorKind::mxf8f6f4, 4, Type::e3m2},
    {TensorKind::mxf8f6f4, 5, Type::e2m1}, {TensorKind::mxf4, 1, Type::e2m1},
    {TensorKind::mxf4nvf4, 1, Type::e2m1},
};
constexpr TypeCode result_types[] = {
    {TensorKind::f16, 0, Type::f16},    {TensorKind::f16, 1, Type::f32},
    {TensorKind::tf32, 1, Type::f32},   {TensorKind::f8f6f4, 0, Type::f16},
    {TensorKind::f8f6f4, 1, Type::f32}, {TensorKind::i8, 2, Type::s32},
};

template <std::size_t count>
Type find(const TypeCode (&codes)[count], TensorKind kind, std::uint32_t code) {
  for (const TypeCode& each : codes)
    if (each.kind == kind && each.code == code) return each.type;
  return Type::none;
}

// A field of the descriptor, and the message about it.
class Fields {
 public:
  Fields(TensorKind kind, std::uint32_t bits) : kind_(kind), bits_(bits) {}
  std::uint32_t get(int low, int width) const { return bits_ >> low & ((1u << width) - 1); }
  std::string wrong(std::string_view field, int low, int width, std::string_view expected) const {
    return fmt::format(
        "0x{:08x}: the {} ({} {}) is {}: expected {} for .kind::{}", bits_, field,
        width > 1 ? "bits" : "bit",
        width > 1 ? fmt::format("{} to {}", low, low + width - 1) : fmt::format("{}", low),
        get(low, width), expected, name(kind_));
  }

 private:
  TensorKind kind_;
  std::uint32_t bits_;
};

// The weight-stationary products have few shapes.
std::string decode_stationary_shape(const Fields& f, const InstructionDescriptor& to) {
  if (to.m != 32 && to.m != 64 && to.m != 128)
    return f.wrong("M / 16", 24, 5, "2, 4 or 8 (M 32, 64 or 128) with .ws");
  if (to.n != 64 && to.n != 128 && (to.n != 256 || to.sparse))
    return f.wrong("N / 8", 17, 6,
                   to.sparse ? "8 or 16 (N 64 or 128) with .ws.sp"
                             : "8, 16 or 32 (N 64, 128 or 256) with .ws");
  return {};
}

std::string decode_shape_of_pair(const Fields& f, const InstructionDescriptor& to) {
  if (is_scaled(to.kind) && to.sparse && to.m != 256)
    return f.wrong("M / 16", 24, 5, "16 (M 256) with .cta_group::2 and .sp");
  if (to.m != 128 && to.m != 256)
    return f.wrong("M / 16", 24, 5, "8 or 16 (M 128 or 256) with .cta_group::2");
  if (to.n < 16 || to.n > 256 || to.n % 16)
    return f.wrong("N / 8", 17, 6, "an even number to 32 (N 16 to 256) with .cta_group::2");
  if (to.kind == TensorKind::i8 && to.n % 32)
    return f.wrong("N / 8", 17, 6, "a multiple of 4 (N 32 to 256) with .cta_group::2");
  if (to.transposes_b && bits(to.b) <= 8 && to.n % 32)
    return f.wrong("N / 8", 17, 6,
                   "a multiple of 4 with .cta_group::2 and an MN-major B of 8 bits or less");
  return {};
}

std::string decode_shape(const Fields& f, const InstructionDescriptor& to) {
  if (to.stationary) return decode_stationary_shape(f, to);
  if (to.pair) return decode_shape_of_pair(f, to);
  const bool scaled = is_scaled(to.kind);
  if (to.m != 128 && (scaled || to.m != 64))
    return f.wrong("M / 16", 24, 5, scaled ? "8 (M 128)" : "4 or 8 (M 64 or 128)");
  if (to.n < 8 || to.n > 256) return f.wrong("N / 8", 17, 6, "1 to 32 (N 8 to 256)");
  if (to.kind == TensorKind::i8 && to.n > 32 && to.n % 16)
    return f.wrong("N / 8", 17, 6, "an even number above N 32");
  if (to.transposes_b && bits(to.b) <= 8 && to.n % 16)
    return f.wrong("N / 8", 17, 6, "an even number with an MN-major B of 8 bits or less");
  return {};
}

}  // namespace

std::string InstructionDescriptor::text() const {
  return fmt::format("M {}, N {}, K {}, A {}, B {}, D {}", m, n, k, tartan::name(a),
                     tartan::name(b), tartan::name(d));
}

int InstructionDescriptor::container_bits(Type type) const {
  return kind == TensorKind::f8f6f4 || kind == TensorKind::mxf8f6f4 ? 8 : bits(type);
}

std::string decode(TensorKind kind, const ProductWords& words, std::uint32_t bits,
                   InstructionDescriptor& to) {
  const bool sparse = words.sparse, stationary = words.stationary;
  const Fields f(kind, bits);
  const bool scaled = is_scaled(kind),
             fours = kind == TensorKind::mxf4 || kind == TensorKind::mxf4nvf4;
  if (f.get(2, 1) != sparse)
    return f.wrong("sparse bit", 2, 1, sparse ? "1 with .sp" : "0 without .sp");
  if (f.get(0, 2))
    return f.wrong("sparsity selector", 0, 2,
                   sparse ? "0: no source tells what the others choose," : "0 without .sp");
  if (kind != TensorKind::i8 && f.get(3, 1)) return f.wrong("saturate bit", 3, 1, "0");
  if (f.get(6, 1)) return f.wrong("reserved bit", 6, 1, "0");
  to = {.kind = kind, .sparse = sparse};
  to.pair = words.pair, to.stationary = stationary;
  to.saturates = f.get(3, 1);
  const int b_width = fours ? 2 : 3;
  to.a = find(factor_types, kind, f.get(7, 3));
  to.b = find(factor_types, kind, f.get(10, b_width));
  if (to.a == Type::none) return f.wrong("type of A", 7, 3, "a type of the kind");
  if (to.b == Type::none) return f.wrong("type of B", 10, b_width, "a type of the kind");
  if (fours && f.get(12, 1)) return f.wrong("reserved bit", 12, 1, "0");
  if (kind == TensorKind::f16 && to.a != to.b) return f.wrong("type of B", 10, 3, "the type of A");
  if (scaled) {
    to.d = Type::f32;
    to.scale_b_id = static_cast<int>(f.get(4, 2));
    to.scale_a_id = static_cast<int>(f.get(29, 2));
    to.scale_type = f.get(23, 1) ? Type::ue8m0 : Type::ue4m3;
    if (kind != TensorKind::mxf4nvf4 && to.scale_type != Type::ue8m0)
      return f.wrong("type of scales", 23, 1, "1 (ue8m0)");
    if (f.get(24, 3)) return f.wrong("reserved field", 24, 3, "0");
    if (f.get(31, 1) && (!fours || sparse))
      return f.wrong("K = 96 bit", 31, 1, sparse ? "0 with .sp" : "0");
  } else {
    to.d = find(result_types, kind, f.get(4, 2));
    if (to.d == Type::none) return f.wrong("type of D", 4, 2, "a type of the kind");
    if (to.a == Type::bf16 && to.d != Type::f32)
      return f.wrong("type of D", 4, 2, "1 (f32) with bf16");
    if (f.get(23, 1)) return f.wrong("reserved bit", 23, 1, "0");
    constexpr int shifts[] = {0, 8, 16, 32};
    if (stationary) to.most_shift = shifts[f.get(30, 2)];
    const int reserved = stationary ? 1 : 3;
    if (f.get(29, reserved)) return f.wrong("reserved field", 29, reserved, "0");
  }
  to.negates_a = f.get(13, 1);
  to.negates_b = f.get(14, 1);
  if (kind == TensorKind::i8 && (to.negates_a || to.negates_b))
    return f.wrong("negate field", 13, 2, "0");
  to.transposes_a = f.get(15, 1);
  to.transposes_b = f.get(16, 1);
  if (fours && (to.transposes_a || to.transposes_b))
    return f.wrong("transpose field", 15, 2, "0: both K-major");
  to.m = static_cast<int>(f.get(24, 5)) * 16;
  to.n = static_cast<int>(f.get(17, 6)) * 8;
  to.k = fours && f.get(31, 1) ? 96 : bytes_along_k * (sparse ? 16 : 8) / to.container_bits(to.a);
  return decode_shape(f, to);
}

std::uint64_t TileDescriptor::address(bool mn_major, int element_bits, int x, int k) const {
  if (absolute) {
    constexpr std::uint64_t line_bytes = 128, lines_of_group = 8;
    const auto across = tile.start % line_bytes + static_cast<std::uint64_t>(k * element_bits / 8),
               row = static_cast<std::uint64_t>(x);
    const std::uint64_t first =
        across < line_bytes ? tile.start - tile.start % line_bytes : std::uint64_t{tile.leading};
    const std::uint64_t linear = first + row / lines_of_group * tile.stride +
                                 row % lines_of_group * line_bytes + across % line_bytes;
    return linear ^ (linear >> 7 & 7) << 4;
  }
  if (!wide_atoms) return tile.address(mn_major, element_bits, x, k);
  constexpr std::uint64_t row_bytes = 128, rows = 4;
  const auto across = static_cast<std::uint64_t>(x * element_bits / 8),
             line = static_cast<std::uint64_t>(k);
  const std::uint64_t linear = tile.start + line / rows * tile.stride + line % rows * row_bytes +
                               across / row_bytes * tile.leading + across % row_bytes;
  const std::uint64_t pattern =
      ((linear >> 7) - static_cast<std::uint64_t>(tile.base)) & (rows - 1);
  return linear ^ pattern << 5;
}

std::string TileDescriptor::text() const {
  return fmt::format(
      "start address 0x{:x}, leading offset 0x{:x}, stride offset 0x{:x}, {}", tile.start,
      tile.leading, tile.stride,
      tile.width ? fmt::format("swizzle of {} bytes", tile.width) : std::string("no swizzle"));
}

namespace {

// Rows of 48 bytes.
std::string refusal_of_96(std::uint64_t bits, const TileDescriptor& to) {
  constexpr std::uint32_t row_bytes = 48, line_bytes = 128;
  const MatrixDescriptor& tile = to.tile;
  if (to.absolute && (tile.width != line_bytes || to.wide_atoms || tile.base))
    return fmt::format(
        "0x{:016x}: bit 52 is 1: absolute leading offsets need the 128-byte swizzle (mode 2) and "
        "a base offset of 0",
        bits);
  if (to.absolute && tile.leading % line_bytes)
    return fmt::format(
        "0x{:016x}: the absolute leading offset is 0x{:x}: expected a multiple of 128, where rows "
        "go on",
        bits, tile.leading);
  const auto width = static_cast<std::uint32_t>(tile.width);
  if (!to.absolute && width && tile.start % width + row_bytes > width)
    return fmt::format(
        "0x{:016x}: 48 bytes from start address 0x{:x} on cross the {} bytes of a swizzled row: "
        "expected bit 52 (absolute leading offset)",
        bits, tile.start, width);
  return {};
}

}  // namespace

std::string decode(std::uint64_t bits, bool mn_major, int element_bits, TileDescriptor& to,
                   bool of_96) {
  const auto field = [&](int low, int width) {
    return static_cast<std::uint32_t>(bits >> low & ((std::uint64_t{1} << width) - 1));
  };
  if (field(46, 3) != 1)
    return fmt::format("0x{:016x}: bits 46 to 48 are {}: expected 1", bits, field(46, 3));
  to.absolute = field(52, 1);
  if (to.absolute && !of_96)
    return fmt::format("0x{:016x}: bit 52 is 1: only K = 96 has absolute leading offsets", bits);
  if (field(14, 2) || field(30, 2) || field(53, 8))
    return fmt::format("0x{:016x}: a reserved bit (14, 15, 30, 31, 53 to 60) is set", bits);
  constexpr int widths[] = {0, 128, 128, -1, 64, -1, 32, -1};
  const std::uint32_t mode = field(61, 3);
  if (widths[mode] < 0)
    return fmt::format(
        "0x{:016x}: the swizzle mode (bits 61 to 63) is {}: expected 0, 1, 2, 4 or 6", bits, mode);
  to.wide_atoms = mode == 1;
  const bool wants_wide = mn_major && element_bits == 32;
  if (to.wide_atoms != wants_wide)
    return wants_wide ? fmt::format(
                            "0x{:016x}: an MN-major tile of 32-bit elements needs swizzle mode 1 "
                            "(128 bytes in atoms of 32), found {}",
                            bits, mode)
                      : fmt::format(
                            "0x{:016x}: swizzle mode 1 (128 bytes in atoms of 32) is for MN-major "
                            "tiles of 32-bit elements alone",
                            bits);
  to.tile = {.start = field(0, 14) << 4,
             .leading = field(16, 14) << 4,
             .stride = field(32, 14) << 4,
             .base = static_cast<int>(field(49, 3)),
             .width = widths[mode]};
  return of_96 ? refusal_of_96(bits, to) : std::string();
}

}  // namespace tartan::TARTAN_ABI::emulator
