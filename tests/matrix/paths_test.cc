// SPDX-License-Identifier: Apache-2.0
// The vector code against the scalar code, and the scalar code against an independent fused sum.
#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/emulator/matrix/fused_sum.h"
#include "runtime/emulator/matrix/tile.h"
#include "tartan/isa/instruction.h"
#include "tests/matrix/warp.h"

namespace tartan::emulator {
namespace {

// Kinds of numbers: any bits; ordinary ones; zeros, subnormals and the smallest normal ones; the
// largest ones.
enum class Numbers { bits, ordinary, small, large };
constexpr Numbers all_numbers[] = {Numbers::bits, Numbers::ordinary, Numbers::small,
                                   Numbers::large};

struct Layout {
  int exponent_bits, fraction_bits;
};

Layout layout(Type type) {
  switch (type) {
    case Type::f16: return {5, 10};
    case Type::bf16: return {8, 7};
    case Type::e5m2: return {5, 2};
    case Type::e4m3: return {4, 3};
    case Type::f64: return {11, 52};
    case Type::f32:
    case Type::tf32: return {8, 23};
    default: return {0, 0};
  }
}

std::uint64_t draw(Type type, Numbers numbers, std::mt19937_64& random) {
  const std::uint64_t bits = random();
  const auto [exponent_bits, fraction_bits] = layout(type);
  if (numbers == Numbers::bits || exponent_bits == 0) return bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int low = numbers == Numbers::ordinary ? bias - 5
                  : numbers == Numbers::small  ? 0
                                               : 2 * bias - 2;
  const int high = numbers == Numbers::ordinary ? bias + 3
                   : numbers == Numbers::small  ? 3
                                                : 2 * bias;
  std::uint64_t field = static_cast<std::uint64_t>(
      low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1)));
  std::uint64_t fraction = bits & ((std::uint64_t{1} << fraction_bits) - 1);
  if (numbers == Numbers::small && random() % 3 == 0) field = fraction = 0;
  return (bits >> 63) << (exponent_bits + fraction_bits) | field << fraction_bits | fraction;
}

void fill(Warp& warp, Numbers numbers, std::mt19937_64& random) {
  for (Registers* registers : {&warp.a, &warp.b, &warp.c})
    registers->fill_with([&] { return draw(registers->fragment().type, numbers, random); });
  if (numbers == Numbers::ordinary && random() % 2) warp.c.fill(0);
  constexpr std::uint32_t codes[] = {0x4, 0x8, 0x9, 0xC, 0xD, 0xE};
  for (std::uint32_t& word : warp.metadata) {
    word = static_cast<std::uint32_t>(random());
    if (numbers == Numbers::bits) continue;  // illegal codes too
    for (int j = 0; j < 8; ++j)
      word = word << 4 | (warp.form.a == tf32 ? (random() % 2 ? 0x4 : 0xE) : codes[random() % 6]);
  }
  for (auto* scales : {&warp.scale_a, &warp.scale_b})
    for (std::uint32_t& word : *scales)
      word = static_cast<std::uint32_t>(numbers == Numbers::bits ? random() : 0x7F7E807D);
}

TEST(MatrixPaths, GiveTheSameBits) {
  std::mt19937_64 random(20);
  int products = 0;
  for (const isa::Form& form : isa::forms()) {
    if (form.opcode != isa::Opcode::mma && form.opcode != isa::Opcode::wmma_mma) continue;
    for (int h = 0; h < hardware_count; ++h)
      for (const Numbers numbers : all_numbers) {
        Warp warp(form);
        fill(warp, numbers, random);
        if (form.sparsity != isa::Sparsity::dense)
          warp.selector = static_cast<int>(random() % static_cast<unsigned>(isa::selectors(form)));
        const auto hardware = static_cast<Hardware>(h);
        warp.run(hardware, Path::reference);
        const Registers expected = warp.d;
        for (const Path path : {Path::portable, Path::avx2, Path::avx512}) {
          if (!tile_kernel(path)) continue;
          warp.d.fill(0);
          warp.run(hardware, path);
          ASSERT_EQ(warp.d, expected)
              << isa::spell(form) << " on " << name(hardware) << ", path " << static_cast<int>(path)
              << ", numbers " << static_cast<int>(numbers);
        }
        ++products;
      }
  }
  EXPECT_GT(products, 10000);
}

TEST(MatrixPaths, OneOfThemAlwaysExists) {
  EXPECT_EQ(tile_kernel(Path::reference), nullptr);
  EXPECT_NE(tile_kernel(Path::portable), nullptr);
  EXPECT_NE(tile_kernel(Path::best), nullptr);
}

TEST(MatrixPaths, DestinationMayBeAnOperand) {
  std::mt19937_64 random(3);
  for (const char* mnemonic : {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                               "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
                               "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64",
                               "wmma.mma.sync.aligned.row.col.m8n32k16.f32.f32"}) {
    Warp warp(mnemonic);
    fill(warp, Numbers::ordinary, random);
    warp.run(Hardware::sm_90);
    auto product = MatrixProduct::make(warp.form, Hardware::sm_90);
    for (Registers* alias : {&warp.c, &warp.a}) {
      if (alias->pointers().size() < warp.d.pointers().size()) continue;
      Warp other = warp;
      Registers& target = alias == &warp.c ? other.c : other.a;
      const auto a = other.a.pointers(), b = other.b.pointers(), c = other.c.pointers(),
                 d = target.pointers();
      MatrixOperands operands;
      operands.a = a.data();
      operands.b = b.data();
      operands.c = c.data();
      operands.d = d.data();
      Scratch scratch;
      product->run(operands, scratch);
      const auto expected = warp.d.pointers();
      for (std::size_t r = 0; r < expected.size(); ++r)
        EXPECT_EQ(std::memcmp(d[r], expected[r],
                              32u * static_cast<unsigned>(warp.d.fragment().register_bits) / 8),
                  0)
            << mnemonic;
    }
  }
}

// ---- An independent fused sum of f16 products in f32: fixed point. Every term is a multiple of
// 2^-90 below 2^36.

__extension__ using Fixed = __int128;
constexpr int point = 90;

double half_value(std::uint32_t bits) {
  const int field = bits >> 10 & 31;
  const double fraction = bits & 0x3FF;
  const double magnitude =
      field ? std::ldexp(1024 + fraction, field - 25) : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// Doubles hold the values exactly.
Fixed fixed(double value) {
  int exponent;
  const double fraction = std::frexp(value, &exponent);
  const auto whole =
      static_cast<Fixed>(std::ldexp(fraction, 53));  // value = whole * 2^(exponent - 53)
  const int shift = exponent - 53 + point;
  return shift >= 0 ? whole * (Fixed{1} << shift) : whole / (Fixed{1} << -shift);
}

int exponent_of(double value, int smallest) { return std::max(std::ilogb(value), smallest); }

float naive(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b, float c,
            int fraction) {
  int largest = c == 0 ? -1000 : exponent_of(c, -126);
  for (std::size_t k = 0; k < a.size(); ++k)
    if (half_value(a[k]) != 0 && half_value(b[k]) != 0)
      largest = std::max(largest,
                         exponent_of(half_value(a[k]), -14) + exponent_of(half_value(b[k]), -14));
  if (largest == -1000) return 0;
  const int cut = std::max(point + largest - fraction, 0);
  const auto kept = [&](double value) {
    return fixed(value) / (Fixed{1} << cut) * (Fixed{1} << cut);
  };  // division cuts toward zero
  Fixed sum = kept(c);
  for (std::size_t k = 0; k < a.size(); ++k) sum += kept(half_value(a[k]) * half_value(b[k]));
  Fixed unit = 1;
  while (sum / unit >= (1 << 24) || sum / unit <= -(1 << 24)) unit *= 2;
  const auto whole = static_cast<long>(sum / unit);
  if (whole == 0) return 0;
  double value = static_cast<double>(whole);
  for (Fixed u = unit; u > 1; u /= 2) value *= 2;
  return static_cast<float>(std::ldexp(value, -point));
}

TEST(MatrixFusedSum, AgreesWithFixedPoint) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 400; ++round) {
    Warp warp("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
    const auto half = [&] {
      const std::uint64_t bits = random();
      if (bits >> 60 == 0) return std::uint64_t{0};
      if (round % 3 == 0) return bits & 0x83FF;  // subnormal
      return round % 3 == 1 ? bits & 0xBFFF : (bits & 0x83FF) | (12 + (bits >> 32) % 6) << 10;
    };
    warp.a.fill_with(half);
    warp.b.fill_with(half);
    warp.c.fill_with([&]() -> std::uint64_t {
      const std::uint64_t bits = random();
      const auto exponent =
          static_cast<std::uint64_t>(round % 3 == 0 ? 127 - 45 : 127 - 25) + (bits >> 40) % 40;
      return round % 4 == 0 ? 0 : (bits & 0x807FFFFF) | exponent << 23;
    });
    for (const Hardware hardware : {Hardware::sm_90, Hardware::sm_80, Hardware::sm_70}) {
      const int length = hardware == Hardware::sm_90 ? 16 : hardware == Hardware::sm_80 ? 8 : 4;
      const int fraction = hardware == Hardware::sm_90 ? 25 : hardware == Hardware::sm_80 ? 24 : 23;
      warp.run(hardware);
      for (int row = 0; row < 16; row += 5)
        for (int col = 0; col < 8; col += 3) {
          float sum = std::bit_cast<float>(static_cast<std::uint32_t>(warp.c.get(row, col)));
          for (int first = 0; first < 16; first += length) {
            std::vector<std::uint32_t> a, b;
            for (int k = first; k < first + length; ++k) {
              a.push_back(static_cast<std::uint32_t>(warp.a.get(row, k)));
              b.push_back(static_cast<std::uint32_t>(warp.b.get(k, col)));
            }
            sum = naive(a, b, sum, fraction);
          }
          ASSERT_EQ(warp.d.get(row, col), std::bit_cast<std::uint32_t>(sum))
              << name(hardware) << ", round " << round;
        }
    }
  }
}

// ---- Integers and bits: the plain sum.

TEST(MatrixIntegers, AreThePlainSum) {
  std::mt19937_64 random(9);
  int products = 0;
  for (const isa::Form& form : isa::forms()) {
    if (form.opcode != isa::Opcode::mma && form.opcode != isa::Opcode::wmma_mma) continue;
    if (form.sparsity != isa::Sparsity::dense || form.d != s32) continue;
    Warp warp(form);
    fill(warp, Numbers::bits, random);
    warp.run(Hardware::sm_90);
    const auto value = [](Type type, std::uint64_t bits) {
      const int width = tartan::bits(type);
      const auto number = static_cast<std::int64_t>(bits);
      return info(type).is_signed && bits >> (width - 1) ? number - (std::int64_t{1} << width)
                                                         : number;
    };
    for (int row = 0; row < form.shape.m; row += 3)
      for (int col = 0; col < form.shape.n; col += 3) {
        std::int64_t sum = static_cast<std::int32_t>(warp.c.get(row, col));
        for (int k = 0; k < form.shape.k; ++k) {
          const std::uint64_t a = warp.a.get(row, k), b = warp.b.get(k, col);
          if (form.a == Type::b1)
            sum += static_cast<std::int64_t>(form.bit_op == isa::BitOp::xor_popc ? a ^ b : a & b);
          else sum += value(form.a, a) * value(form.b, b);
        }
        if (form.satfinite) sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
        ASSERT_EQ(warp.d.get(row, col), static_cast<std::uint32_t>(sum)) << isa::spell(form);
      }
    ++products;
  }
  EXPECT_GT(products, 60);
}

}  // namespace
}  // namespace tartan::emulator
