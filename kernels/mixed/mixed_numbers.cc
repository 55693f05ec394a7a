// SPDX-License-Identifier: Apache-2.0
#include "kernels/mixed/mixed_numbers.h"

#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int and_or = 0xEA;  // (a & b) | c

}  // namespace

MixedNumbers::MixedNumbers(Builder& k, const MixedGemm& options)
    : k_(k),
      options_(options),
      half_(options.type == f16),
      nibbles_(options.weight == Type::u4),
      pair_(half_ ? Type::f16x2 : Type::bf16x2) {}

MixedColumns MixedNumbers::columns(const Scalar& scales, const Scalar& zeros) const {
  MixedColumns out;
  const auto both = k_.halves(k_.bitcast(scales, b32), options_.type);
  for (int column = 0; column < 2; ++column) {
    const auto at = static_cast<std::size_t>(column);
    out.scales[at] = half_ ? k_.convert(column ? both.second : both.first, f32)
                           : k_.bitcast(column ? scales & 0xFFFF0000 : scales << 16, f32);
    if (!options_.scale_sums)
      out.factors[at] = pair(prmt(scales, scales, column ? 0x3232 : 0x1010));
    // -(1024 + z), -(128 + z) twice, or -(2^23 + z).
    const bool single = !half_ && !nibbles_;
    const std::uint32_t magic = single ? 0xCB000000 : half_ ? 0xE4E4E4E4 : 0xC3C3C3C3;
    const std::uint32_t point = nibbles_ ? 8 : 128;
    Scalar bits =
        k_.constant(u32, single ? magic + point : (magic & 0xFF00FF00) + (point << 16 | point));
    if (options_.zeros)
      bits =
          prmt(k_.convert(zeros, u32), magic, single ? 0x7440 + column : 0x4040 + 0x0101 * column);
    out.base[at] = single ? k_.bitcast(bits, f32) : pair(bits);
  }
  return out;
}

Scalar MixedNumbers::scaled(const Scalar& pair, const MixedColumns& columns, int column) const {
  if (options_.scale_sums) return pair;
  return fma(pair, columns.factors[static_cast<std::size_t>(column)], -0.0);
}

// Registers 0 to 3: the lower halves are nibbles 0 to 3 of the word, the upper ones 4 to 7.
std::vector<Scalar> MixedNumbers::four(const Scalar& word, const MixedColumns& columns) const {
  std::vector<Scalar> out;
  for (int reg = 0; reg < 4; ++reg) {
    const int column = reg % 2;
    const Scalar& base = columns.base[static_cast<std::size_t>(column)];
    if (half_) {
      const Scalar source = reg / 2 ? word >> 8 : word;
      const Scalar bits = pair(lop3(source, column ? 0x00F000F0 : 0x000F000F, 0x64006400, and_or));
      // 1024 + 16 w: a sixteenth of it is 64 + w.
      const Scalar value = column ? fma(bits, 0.0625, base + 960.0) : bits + base;
      out.push_back(scaled(value, columns, column));
    } else {
      const Scalar source = reg ? word >> 4 * reg : word;
      const Scalar bits = pair(lop3(source, 0x000F000F, 0x43004300, and_or));
      out.push_back(scaled(fma(bits, 1.0, base), columns, column));
    }
  }
  return out;
}

// Two registers: bytes 0 and 2, and 1 and 3.
std::vector<Scalar> MixedNumbers::two(const Scalar& word, const MixedColumns& columns) const {
  std::vector<Scalar> out;
  for (int column = 0; column < 2; ++column) {
    const Scalar& base = columns.base[static_cast<std::size_t>(column)];
    if (half_) {
      const Scalar bits = pair(prmt(word, 0x64646464, 0x4240 + 0x0101 * column));
      out.push_back(scaled(bits + base, columns, column));
      continue;
    }
    const auto single = [&](int byte) {
      const Scalar bits = k_.bitcast(prmt(word, 0x4B000000, 0x7440 + byte), f32);
      return k_.bitcast(bits + base, u32);
    };
    // Whole numbers up to 255 have no more than 16 bits in f32.
    const Scalar bits = prmt(single(column), single(column + 2), 0x7632);
    out.push_back(scaled(pair(bits), columns, column));
  }
  return out;
}

std::vector<Fragment> MixedNumbers::fragments(const std::vector<Scalar>& words,
                                              const MixedColumns& columns) const {
  std::vector<Scalar> registers;
  for (const Scalar& word : words)
    for (const Scalar& each : nibbles_ ? four(word, columns) : two(word, columns))
      registers.push_back(k_.bitcast(each, b32));
  std::vector<Fragment> out;
  const FragmentKind kind = operand_a(m16n8k16, options_.type);
  for (std::size_t i = 0; i < registers.size(); i += 4)
    out.push_back(k_.fragment(kind, std::span(registers).subspan(i, 4)));
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels
