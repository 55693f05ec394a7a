// SPDX-License-Identifier: Apache-2.0
// The values that forms run on: edges of each kind, values whose product, quotient or sum is near a
// limit of the format, and noise.
#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "runtime/emulator/numbers/small_float.h"
#include "tests/emulator/scalar_sweep.h"

namespace tartan::scalar_sweep {
namespace {

using emulator::narrow;
using emulator::Rounding;
using emulator::SmallFormat;
using emulator::widen;

constexpr int edge_rows = 64, limit_rows = 48;

std::uint64_t mix(std::uint64_t x) {
  x = (x + 1) * 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

constexpr std::uint16_t half_edges[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x0401, 0x3C00, 0xBC00,
    0x3BFF, 0x3C01, 0x3800, 0x3E00, 0x4000, 0x4200, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7C01,
    0x7E00, 0xFE00, 0xFD23, 0x7FFF, 0xFFFF, 0x7FF7, 0x6800, 0x5C00, 0x57FF, 0x5BFF, 0xD801,
    0x1400, 0x2000, 0x2001, 0xA000, 0x0002, 0x0200, 0x77FF, 0x7800, 0x5F00, 0x5F40, 0x4701};
constexpr std::uint16_t bfloat_edges[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x807F, 0x0080, 0x8080, 0x0081, 0x3F80, 0xBF80,
    0x3F7F, 0x3F81, 0x3F00, 0x3FC0, 0x4000, 0x4040, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7F81,
    0x7FC0, 0xFFC0, 0xFFA5, 0x7FFF, 0xFFFF, 0x7FF7, 0x4380, 0x437F, 0x4F00, 0x4F80, 0xCF00,
    0x5F00, 0x5F80, 0x2000, 0x1F80, 0x0040, 0x477F, 0x4780, 0x3380, 0x3300, 0x43E0, 0x4060};
constexpr std::uint32_t single_edges[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000,
    0x00800001, 0x00FFFFFF, 0x01000000, 0x3F800000, 0xBF800000, 0x3F7FFFFF, 0x3F800001, 0x3F000000,
    0xBF000000, 0x3EFFFFFF, 0x3FC00000, 0x40000000, 0x40400000, 0xC0200000, 0x7F7FFFFF, 0xFF7FFFFF,
    0x7F7FEFFF, 0x7F7FF000, 0x7F000000, 0x7E800000, 0x7E800001, 0x7F800000, 0xFF800000, 0x7FC00000,
    0xFFC00000, 0x7F800001, 0xFF800001, 0x7FA12345, 0xFFC12345, 0x7FFFFFFF, 0xFFFFFFFF, 0x4B000001,
    0x4B7FFFFF, 0x4AFFFFFF, 0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x4F7FFFFF, 0x4F800000,
    0x5EFFFFFF, 0x5F000000, 0xDF000000, 0x5F7FFFFF, 0x5F800000, 0x47000000, 0x477FE000, 0x477FEFFF,
    0x477FF000, 0x38800000, 0x387FE000, 0x387FF000, 0x33800000, 0x33000000, 0x33000001, 0x43E00000,
    0x43E80000, 0x43E80001, 0x47600000, 0x47700000, 0x42FF0000, 0x437F8000, 0x40E00000, 0x41F00000,
    0xC2000000, 0x43000000, 0xC3160000, 0x40490FDB, 0x3F7FFFFE, 0x34000000};
constexpr std::uint64_t double_edges[] = {
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x8000000000000001,
    0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x8010000000000000, 0x0010000000000001,
    0x3FF0000000000000, 0xBFF0000000000000, 0x3FEFFFFFFFFFFFFF, 0x3FF0000000000001,
    0x3FE0000000000000, 0xBFE0000000000000, 0x3FDFFFFFFFFFFFFF, 0x3FF8000000000000,
    0x4000000000000000, 0x4008000000000000, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF,
    0x7FD0000000000000, 0x7FD0000000000001, 0x7FF0000000000000, 0xFFF0000000000000,
    0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFF0000000000001,
    0x7FF4000012345678, 0xFFFC000000012345, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF,
    0x36A0000000000000, 0x3690000000000000, 0x3690000000000001, 0x380FFFFFC0000000,
    0x380FFFFFE0000000, 0x380FFFFFF0000000, 0x380FFFFFEFFFFFFF, 0xB80FFFFFF0000001,
    0x3810000000000000, 0x3810000010000000, 0x380FFFFFFFFFFFFF, 0x47EFFFFFE0000000,
    0x47EFFFFFEFFFFFFF, 0x47EFFFFFF0000000, 0xC7EFFFFFF0000000, 0x47F0000000000000,
    0x40EFFC0000000000, 0x40EFFDFFFFFFFFFF, 0x40EFFE0000000000, 0x3F10000000000000,
    0x3E70000000000000, 0x3E60000000000000, 0x3E60000000000001, 0x3FF0020000000000,
    0x3FF0010000000000, 0x3FF0010000000001, 0x3FF0000010000000, 0x3FF0000010000001,
    0x41DFFFFFFFC00000, 0x41DFFFFFFFE00000, 0x41E0000000000000, 0xC1E0000000000000,
    0xC1E0000000200000, 0x41EFFFFFFFE00000, 0x41F0000000000000, 0x43DFFFFFFFFFFFFF,
    0x43E0000000000000, 0xC3E0000000000000, 0xC3E0000000000001, 0x43EFFFFFFFFFFFFF,
    0x43F0000000000000, 0x4330000000000001, 0x432FFFFFFFFFFFFF, 0x40DFFFC000000000};
constexpr std::uint32_t word_edges[] = {
    0x00000000, 0x00000001, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0x80000001, 0x00000002, 0xFFFFFFFE,
    0x00000007, 0x00000008, 0x0000000F, 0x00000010, 0x0000001F, 0x00000020, 0x00000021, 0x0000003F,
    0x00000040, 0x0000007F, 0x00000080, 0x000000FF, 0x00000100, 0x00007FFF, 0x00008000, 0x0000FFFF,
    0x00010000, 0xFFFF8000, 0xFFFF7FFF, 0xFFFFFF80, 0xFFFFFF7F, 0x00FFFFFF, 0x01000000, 0x01000001,
    0x7F7F7F7F, 0x80808080, 0xAAAAAAAA, 0x55555555, 0xFFFF0000, 0x12345678, 0x9ABCDEF1, 0x3F800000};
constexpr std::uint32_t small_edges[] = {
    0,   1,   2,   3,   7,   8,   15,         16,         17,         24,
    30,  31,  32,  33,  47,  48,  63,         64,         65,         95,
    127, 128, 200, 255, 256, 288, 0xFFFFFFFF, 0xFFFFFFF8, 0x80000000, 0x80000001};

struct FloatKind {
  SmallFormat format;
  std::span<const std::uint16_t> edges;
};
constexpr FloatKind half_kind{emulator::format_f16, half_edges},
    bfloat_kind{emulator::format_bf16, bfloat_edges};
constexpr SmallFormat single_format{8, 23, true, 0x7F7FFFFF};

std::uint64_t edge(Kind kind, std::uint64_t pick) {
  const auto from = [&](const auto& list) -> std::uint64_t { return list[pick % std::size(list)]; };
  switch (kind) {
    case Kind::b16: return from(word_edges) & 0xFFFF;
    case Kind::b32: return from(word_edges);
    case Kind::b64: {
      const std::uint64_t low = from(word_edges), high = word_edges[mix(pick) % 8];
      return pick % 3 == 0 ? low : pick % 3 == 1 ? high << 32 | low : low << 32 | high;
    }
    case Kind::f16: return from(half_edges);
    case Kind::bf16: return from(bfloat_edges);
    case Kind::f32: return from(single_edges);
    case Kind::f64: return from(double_edges);
    case Kind::f16x2: return edge(Kind::f16, mix(pick)) << 16 | edge(Kind::f16, pick);
    case Kind::bf16x2: return edge(Kind::bf16, mix(pick)) << 16 | edge(Kind::bf16, pick);
    case Kind::small: return from(small_edges);
  }
  return 0;
}

// For a float: any bits, or a number of moderate size.
std::uint64_t noise(Kind kind, std::uint64_t hash) {
  const bool moderate = hash >> 60 & 1;
  switch (kind) {
    case Kind::f32:
      return moderate ? (hash & 0x807FFFFF) | (0x7F - 12 + (hash >> 32) % 24) << 23
                      : hash & 0xFFFFFFFF;
    case Kind::f64:
      return moderate ? (hash & 0x800FFFFFFFFFFFFF) | (0x3FF - 40 + mix(hash) % 80) << 52 : hash;
    case Kind::f16x2: return noise(Kind::f16, hash) << 16 | noise(Kind::f16, mix(hash));
    case Kind::bf16x2: return noise(Kind::bf16, hash) << 16 | noise(Kind::bf16, mix(hash));
    case Kind::f16:
      return moderate ? (hash & 0x83FF) | (15 - 6 + (hash >> 32) % 12) << 10 : hash & 0xFFFF;
    case Kind::bf16:
      return moderate ? (hash & 0x807F) | (127 - 8 + (hash >> 32) % 16) << 7 : hash & 0xFFFF;
    case Kind::small: return hash % 40;
    case Kind::b64: return hash;
    case Kind::b32: return hash & 0xFFFFFFFF;
    case Kind::b16: return hash & 0xFFFF;
  }
  return 0;
}

bool is_pair(Kind kind) { return kind == Kind::f16x2 || kind == Kind::bf16x2; }
bool is_float(Kind kind) {
  return is_pair(kind) || kind == Kind::f16 || kind == Kind::bf16 || kind == Kind::f32 ||
         kind == Kind::f64;
}
Kind element(Kind kind) {
  return kind == Kind::f16x2 ? Kind::f16 : kind == Kind::bf16x2 ? Kind::bf16 : kind;
}

double value(Kind kind, std::uint64_t raw) {
  if (kind == Kind::f64) return std::bit_cast<double>(raw);
  if (kind == Kind::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(raw));
  return widen(kind == Kind::f16 ? emulator::format_f16 : emulator::format_bf16,
               static_cast<std::uint32_t>(raw));
}
std::uint64_t nearest(Kind kind, double x) {
  if (kind == Kind::f64) return std::bit_cast<std::uint64_t>(x);
  return narrow(kind == Kind::f32   ? single_format
                : kind == Kind::f16 ? emulator::format_f16
                                    : emulator::format_bf16,
                x, Rounding::rn);
}

struct Limits {
  int least, most, precision;  // exponents of the normal numbers; bits of a mantissa
};
Limits limits(Kind kind) {
  switch (kind) {
    case Kind::f64: return {-1022, 1023, 53};
    case Kind::f32: return {-126, 127, 24};
    case Kind::f16: return {-14, 15, 11};
    default: return {-126, 127, 8};
  }
}

// a, b and c with a * b, a / b or a * b + c near a limit of the format: the smallest normal number,
// the largest, one, half of the smallest subnormal.
void at_limit(Kind kind, std::uint64_t hash, std::span<std::uint64_t> out) {
  const Limits range = limits(kind);
  const auto step = [&](int shift) { return static_cast<int>(hash >> shift & 7) - 3; };
  const int targets[] = {range.least,    range.least, range.least - 1,
                         range.most + 1, 0,           range.least - range.precision};
  const int target = targets[hash % 6];
  // a: a random mantissa; exponents that keep the other operand in range, too.
  const int exponent = target / 2 + static_cast<int>(hash >> 8 & 7) - 4;
  const double mantissa = 1 + static_cast<double>(mix(hash) >> 12) * 0x1p-52;
  const std::uint64_t a = nearest(kind, std::ldexp(mantissa, exponent));
  const bool divide = hash >> 40 & 1;
  const double reach = std::ldexp(1.0, target - exponent);
  const double other = divide ? std::ldexp(value(kind, a), -exponent) / reach
                              : reach / std::ldexp(value(kind, a), -exponent);
  std::uint64_t b = nearest(kind, other) + static_cast<std::uint64_t>(step(16));
  const std::uint64_t sign = std::uint64_t{1} << (bits(kind) - 1);
  const std::uint64_t mask = sign | (sign - 1);
  out[0] = (hash >> 20 & 1 ? a | sign : a) & mask;
  if (out.size() > 1) out[1] = (hash >> 21 & 1 ? b | sign : b) & mask;
  if (out.size() < 3) return;
  const double product = value(kind, out[0]) * value(kind, out[1]);
  switch (hash >> 24 & 3) {
    case 0: out[2] = hash >> 22 & 1 ? sign : 0; break;
    case 1:  // the remainder of the product, plus or minus a few units
      out[2] = (nearest(kind, -product) + static_cast<std::uint64_t>(step(28))) & mask;
      break;
    case 2: {  // up to the limit, plus or minus a few units
      const double left = std::ldexp(hash >> 23 & 1 ? -1.0 : 1.0, target) - product;
      out[2] = (nearest(kind, left) + static_cast<std::uint64_t>(step(28))) & mask;
      break;
    }
    default:  // far below the product's last bit
      out[2] = nearest(kind, product * std::ldexp(1.0, -static_cast<int>(hash >> 32 & 63)));
  }
}

}  // namespace

int bits(Kind kind) {
  switch (kind) {
    case Kind::b16:
    case Kind::f16:
    case Kind::bf16: return 16;
    case Kind::b64:
    case Kind::f64: return 64;
    default: return 32;
  }
}

std::vector<std::uint64_t> inputs_of(const Form& form) {
  const std::size_t count = form.sources.size();
  std::vector<std::uint64_t> out(count * row_count);
  if (!form.values.empty()) {
    const std::size_t given = form.values.size() / count;
    for (std::size_t s = 0; s < count; ++s)
      std::copy_n(form.values.begin() + static_cast<std::ptrdiff_t>(s * given), given,
                  out.begin() + static_cast<std::ptrdiff_t>(s * row_count));
    return out;
  }
  const bool same = count > 0 && is_float(form.sources[0]) &&
                    std::equal(form.sources.begin() + 1, form.sources.end(), form.sources.begin());
  for (int row = 0; row < row_count; ++row) {
    const auto at = [&](std::size_t s) -> std::uint64_t& {
      return out[s * row_count + static_cast<std::size_t>(row)];
    };
    const auto r = static_cast<std::uint64_t>(row);
    const bool is_edge = row < edge_rows || (count == 1 && row < edge_rows + 16);
    if (!is_edge && row < edge_rows + limit_rows && same && count > 1) {
      const Kind kind = element(form.sources[0]);
      std::vector<std::uint64_t> low(count), high(count);
      at_limit(kind, mix(r), low);
      at_limit(kind, mix(r + 1000), high);
      for (std::size_t s = 0; s < count; ++s)
        at(s) = is_pair(form.sources[0]) ? high[s] << 16 | low[s] : low[s];
      continue;
    }
    for (std::size_t s = 0; s < count; ++s) {
      const std::uint64_t hash = mix(r * 4 + s);
      // The first source runs through its edges, or two of them if there are more edges than rows.
      if (is_edge) at(s) = edge(form.sources[s], s == 0 ? r : hash >> 8);
      else if (hash % 4 == 0) at(s) = edge(form.sources[s], hash >> 8);
      else at(s) = noise(form.sources[s], mix(hash));
    }
  }
  return out;
}

std::uint64_t key_of(const Form& form) {
  std::uint64_t key = mix(static_cast<std::uint64_t>(form.d));
  for (const char c : form.text) key = mix(key ^ static_cast<unsigned char>(c));
  for (const std::uint64_t word : inputs_of(form)) key = mix(key ^ word);
  return key;
}

}  // namespace tartan::scalar_sweep
