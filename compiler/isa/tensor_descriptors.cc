// SPDX-License-Identifier: Apache-2.0
#include "compiler/isa/tensor_descriptors.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

namespace tartan::TARTAN_ABI::isa {
namespace {

using Mma = TensorMmaKind;

struct KindWord {
  Qualifier word;
  TensorMmaKind kind;
  std::string_view name;
};
constexpr KindWord kind_words[] = {{"kind::f16"_q, Mma::f16, "f16"},
                                   {"kind::tf32"_q, Mma::tf32, "tf32"},
                                   {"kind::f8f6f4"_q, Mma::f8f6f4, "f8f6f4"},
                                   {"kind::i8"_q, Mma::i8, "i8"},
                                   {"kind::mxf8f6f4"_q, Mma::mxf8f6f4, "mxf8f6f4"},
                                   {"kind::mxf4"_q, Mma::mxf4, "mxf4"},
                                   {"kind::mxf4nvf4"_q, Mma::mxf4nvf4, "mxf4nvf4"}};

std::string_view kind_name(TensorMmaKind kind) {
  return kind_words[static_cast<std::size_t>(kind)].name;
}

struct Code {
  std::uint32_t code;
  std::string_view name;
};
constexpr Code halves[] = {{0, "f16"}, {1, "bf16"}};
constexpr Code tf32s[] = {{2, "tf32"}};
constexpr Code bytes[] = {{0, "e4m3"}, {1, "e5m2"}, {3, "e2m3"}, {4, "e3m2"}, {5, "e2m1"}};
constexpr Code integers[] = {{0, "u8"}, {1, "s8"}};
constexpr Code fours[] = {{1, "e2m1"}};
constexpr Code half_results[] = {{0, "f16"}, {1, "f32"}};
constexpr Code float_results[] = {{1, "f32"}};
constexpr Code integer_results[] = {{2, "s32"}};

std::span<const Code> factors(TensorMmaKind kind) {
  switch (kind) {
    case Mma::f16: return halves;
    case Mma::tf32: return tf32s;
    case Mma::i8: return integers;
    case Mma::f8f6f4:
    case Mma::mxf8f6f4: return bytes;
    default: return fours;
  }
}

std::span<const Code> results(TensorMmaKind kind) {
  if (kind == Mma::i8) return integer_results;
  return kind == Mma::tf32 ? std::span<const Code>(float_results) : half_results;
}

std::string_view name_of(std::span<const Code> codes, std::uint32_t code) {
  for (const Code& each : codes)
    if (each.code == code) return each.name;
  return {};
}

std::optional<std::uint32_t> code_of(std::span<const Code> codes, Type type) {
  for (const Code& each : codes)
    if (each.name == name(type)) return each.code;
  return std::nullopt;
}

std::string list(std::span<const Code> codes) {
  std::string out;
  for (std::size_t i = 0; i < codes.size(); ++i)
    out += fmt::format("{}{} ({})",
                       i == 0                  ? ""
                       : i + 1 == codes.size() ? " or "
                                               : ", ",
                       codes[i].code, codes[i].name);
  return out;
}

std::string wrong(const PartialBits& bits, std::string_view field, int low, int width,
                  std::string_view expected) {
  return fmt::format(
      "the {} ({}) is {}: expected {}", field,
      width > 1 ? fmt::format("bits {} to {}", low, low + width - 1) : fmt::format("bit {}", low),
      bits.get(low, width), expected);
}

int b_width(const TensorMma& mma) { return mma.fours() ? 2 : 3; }

std::string flags_fault(const TensorMma& mma, const PartialBits& b) {
  if (b.has(2, 1) && b.get(2, 1) != static_cast<std::uint32_t>(mma.sparse))
    return wrong(b, "sparse bit", 2, 1, mma.sparse ? "1, since it is .sp" : "0 without .sp");
  const bool selects = mma.kind == Mma::f16 || mma.kind == Mma::tf32;
  if (mma.sparse && !selects && b.has(0, 2) && b.get(0, 2))
    return wrong(b, "sparsity selector", 0, 2,
                 fmt::format("0 with .kind::{}", kind_name(mma.kind)));
  if (mma.kind != Mma::i8 && b.has(3, 1) && b.get(3, 1))
    return wrong(b, "saturate bit", 3, 1, "0: only .kind::i8 saturates");
  if (mma.kind == Mma::i8 && b.has(13, 2) && b.get(13, 2))
    return wrong(b, "negate field", 13, 2, "0 with .kind::i8");
  if (mma.fours() && b.has(15, 2) && b.get(15, 2))
    return wrong(b, "transpose field", 15, 2, "0: tiles of 4-bit elements are K-major");
  if (mma.a_in_tensor && b.has(15, 1) && b.get(15, 1))
    return wrong(b, "transpose bit of A", 15, 1, "0: A in tensor memory is K-major");
  const bool thirty_one = mma.scaled() && b.has(31, 1) && b.get(31, 1);
  if (thirty_one && !(mma.fours() && mma.sm == 103 && !mma.sparse))
    return wrong(b, "K = 96 bit", 31, 1,
                 "0: K 96 is for dense .kind::mxf4 and .kind::mxf4nvf4 on sm_103a");
  return {};
}

std::string types_fault(const TensorMma& mma, const PartialBits& b) {
  const std::span<const Code> allowed = factors(mma.kind);
  const auto expected = [&](std::span<const Code> codes) {
    return fmt::format("{} with .kind::{}", list(codes), kind_name(mma.kind));
  };
  if (b.has(7, 3) && name_of(allowed, b.get(7, 3)).empty())
    return wrong(b, "type of A", 7, 3, expected(allowed));
  if (b.has(10, b_width(mma)) && name_of(allowed, b.get(10, b_width(mma))).empty())
    return wrong(b, "type of B", 10, b_width(mma), expected(allowed));
  if (!mma.scaled()) {
    const std::span<const Code> of_d = results(mma.kind);
    if (b.has(4, 2) && name_of(of_d, b.get(4, 2)).empty())
      return wrong(b, "type of D", 4, 2, expected(of_d));
    const bool bf16 = mma.kind == Mma::f16 && b.has(7, 3) && b.get(7, 3) == 1;
    if (bf16 && b.has(4, 2) && b.get(4, 2) == 0)
      return wrong(b, "type of D", 4, 2, "1 (f32), since A is bf16");
    return {};
  }
  const bool ue4m3 = b.has(23, 1) && !b.get(23, 1);
  if (ue4m3 && (mma.kind != Mma::mxf4nvf4 || mma.scales == 2))
    return wrong(b, "type of scales", 23, 1,
                 mma.kind == Mma::mxf4nvf4
                     ? std::string("1 (ue8m0) with two scales a row")
                     : fmt::format("1 (ue8m0) with .kind::{}", kind_name(mma.kind)));
  for (const auto& [name, low] : {std::pair("A's scales", 29), {"B's scales", 4}})
    if (mma.scales > 1 && b.has(low, 2) && b.has(31, 1) && !b.get(31, 1) &&
        b.get(low, 2) % static_cast<std::uint32_t>(mma.scales))
      return wrong(b, fmt::format("id of {}", name), low, 2,
                   mma.scales == 4 ? "0: a row has four scales" : "0 or 2: a row has two scales");
  return {};
}

// Values of M, each a multiple of 16.
std::span<const int> legal_m(const TensorMma& mma) {
  static constexpr int stationary[] = {32, 64, 128}, single[] = {64, 128}, pair[] = {128, 256},
                       wide[] = {128}, widest[] = {256};
  if (mma.stationary) return stationary;
  if (mma.group == 1) return mma.scaled() ? std::span<const int>(wide) : single;
  return mma.scaled() && mma.sparse ? std::span<const int>(widest) : pair;
}

std::string m_fault(const TensorMma& mma, const PartialBits& b) {
  // Of scaled kinds the field is M / 128, and the three bits below it are reserved.
  if (!b.has(24, 5)) return {};
  const int m = static_cast<int>(b.get(24, 5)) * 16;
  std::string expected;
  for (const int each : legal_m(mma)) {
    if (each == m) return {};
    expected += fmt::format("{}{}", expected.empty() ? "" : " or ", each);
  }
  return fmt::format(
      "M (bits 24 to 28, M / 16) is {}: expected {} with .kind::{} and "
      ".cta_group::{}",
      m, expected, kind_name(mma.kind), mma.group);
}

bool legal_n(const TensorMma& mma, int n, bool narrow_transposed) {
  if (n < 8 || n > 256) return false;
  if (mma.stationary) return n == 64 || n == 128 || (n == 256 && !mma.sparse);
  const bool pair = mma.group == 2;
  if (narrow_transposed) return n % (pair ? 32 : 16) == 0;
  if (mma.kind == Mma::i8) return pair ? n % 32 == 0 : n == 8 || n == 24 || n % 16 == 0;
  return n % (pair ? 16 : 8) == 0;
}

std::string n_fault(const TensorMma& mma, const PartialBits& b) {
  if (!b.has(17, 6)) return {};
  const bool of_bytes = mma.kind == Mma::f8f6f4 || mma.kind == Mma::i8 || mma.kind == Mma::mxf8f6f4;
  const bool transposed = of_bytes && b.has(16, 1) && b.get(16, 1);
  const int n = static_cast<int>(b.get(17, 6)) * 8;
  if (legal_n(mma, n, transposed)) return {};
  int nearest = 8;
  for (int each = 8; each <= 256; each += 8) {
    const bool closer = std::abs(each - n) < std::abs(nearest - n);
    if (legal_n(mma, each, transposed) && (closer || !legal_n(mma, nearest, transposed)))
      nearest = each;
  }
  return fmt::format(
      "N (bits 17 to 22, N / 8) is {}: illegal with .kind::{}{}, .cta_group::{}{}; "
      "the nearest legal one is {}",
      n, kind_name(mma.kind), mma.stationary ? ", .ws" : "", mma.group,
      transposed ? " and an MN-major B of 8 bits or less" : "", nearest);
}

std::string reserved_fault(const TensorMma& mma, const PartialBits& b) {
  const auto set = [&](int low, int width) { return b.has(low, width) && b.get(low, width); };
  if (set(6, 1)) return wrong(b, "reserved bit", 6, 1, "0");
  if (mma.fours() && set(12, 1)) return wrong(b, "reserved bit", 12, 1, "0");
  if (mma.scaled()) return {};
  if (set(23, 1)) return wrong(b, "reserved bit", 23, 1, "0");
  if (set(29, 1)) return wrong(b, "reserved bit", 29, 1, "0");
  if (!mma.stationary && set(30, 2)) return wrong(b, "reserved field", 30, 2, "0 without .ws");
  return {};
}

constexpr std::string_view swizzles[] = {
    "no swizzle",       "128-byte swizzle in atoms of 32 bytes",
    "128-byte swizzle", {},
    "64-byte swizzle",  {},
    "32-byte swizzle",  {}};

void add(std::string& to, const std::string& what) {
  if (!to.empty()) to += ", ";
  to += what;
}

}  // namespace

std::optional<TensorMma> tensor_mma(const Spelling& spelling, Arch arch) {
  TensorMma out;
  bool found = false;
  for (const KindWord& each : kind_words)
    if (spelling.has(each.word)) out.kind = each.kind, found = true;
  if (!found) return std::nullopt;
  out.group = spelling.has("cta_group::2"_q) ? 2 : 1;
  out.sparse =
      spelling.opcode == Opcode::tcgen05_mma_sp || spelling.opcode == Opcode::tcgen05_mma_ws_sp;
  out.stationary =
      spelling.opcode == Opcode::tcgen05_mma_ws || spelling.opcode == Opcode::tcgen05_mma_ws_sp;
  if (out.kind == Mma::mxf8f6f4) out.scales = 1;
  else if (out.scaled())
    out.scales = spelling.has("scale_vec::4X"_q) || spelling.has("block16"_q) ? 4 : 2;
  out.sm = arch.sm;
  return out;
}

std::optional<std::uint32_t> instruction_descriptor(TensorMmaKind kind, const TensorProduct& of) {
  const auto a = code_of(factors(kind), of.a), b = code_of(factors(kind), of.b),
             d = code_of(results(kind), of.d);
  if (!a || !b || !d) return std::nullopt;
  const auto field = [](int value, int at) { return static_cast<std::uint32_t>(value) << at; };
  const auto bit = [&](bool is, int at) { return field(is, at); };
  const std::uint32_t of_kind =
      of.scale == Type::none
          ? *d << 4
          : field(of.scale_b, 4) | field(of.scale_a, 29) | bit(of.scale == Type::ue8m0, 23);
  return of_kind | bit(of.sparse, 2) | *a << 7 | *b << 10 | bit(of.negate_a, 13) |
         bit(of.negate_b, 14) | bit(of.mn_major_a, 15) | bit(of.mn_major_b, 16) |
         static_cast<std::uint32_t>(of.n / 8) << 17 | static_cast<std::uint32_t>(of.m / 16) << 24;
}

// sm_107 has more fields, in bits that were reserved.
std::string instruction_descriptor_fault(const TensorMma& mma, const PartialBits& bits) {
  if (mma.sm > 103 && mma.sm != 110) return {};
  for (const auto fault : {flags_fault, types_fault, m_fault, n_fault, reserved_fault})
    if (std::string why = fault(mma, bits); !why.empty()) return why;
  return {};
}

std::string instruction_descriptor_text(const TensorMma& mma, const PartialBits& b) {
  std::string out;
  if (b.has(24, 5)) add(out, fmt::format("M {}", b.get(24, 5) * 16));
  if (b.has(17, 6)) add(out, fmt::format("N {}", b.get(17, 6) * 8));
  const auto factor = [&](char name, int low, int width, int major) {
    const std::string_view type =
        b.has(low, width) ? name_of(factors(mma.kind), b.get(low, width)) : std::string_view();
    if (type.empty()) return;
    add(out, fmt::format("{} {}{}", name, type,
                         !b.has(major, 1)  ? ""
                         : b.get(major, 1) ? " MN-major"
                                           : " K-major"));
  };
  factor('A', 7, 3, 15);
  factor('B', 10, b_width(mma), 16);
  if (mma.scaled()) {
    if (b.has(23, 1)) add(out, fmt::format("scales {}", b.get(23, 1) ? "ue8m0" : "ue4m3"));
    if (b.has(29, 2)) add(out, fmt::format("id of A's {}", b.get(29, 2)));
    if (b.has(4, 2)) add(out, fmt::format("id of B's {}", b.get(4, 2)));
  } else if (const std::string_view d =
                 b.has(4, 2) ? name_of(results(mma.kind), b.get(4, 2)) : std::string_view();
             !d.empty()) {
    add(out, fmt::format("D {}", d));
  }
  return out;
}

std::optional<bool> wants_wide_atoms(const TensorMma& mma, const PartialBits& idesc, char operand) {
  if (mma.kind != Mma::tf32) return false;
  const int bit = operand == 'A' ? 15 : 16;
  if (!idesc.has(bit, 1)) return std::nullopt;
  return idesc.get(bit, 1) != 0;
}

std::string tile_descriptor_fault(const PartialBits& b, std::optional<bool> wide,
                                  bool absolute_offsets) {
  if (b.has(46, 3) && b.get(46, 3) != 1)
    return wrong(b, "version", 46, 3, "1: a descriptor of wgmma has 0 there");
  if (!absolute_offsets && b.has(52, 1) && b.get(52, 1))
    return wrong(b, "mode of the leading offset", 52, 1, "0: only K 96 has absolute offsets");
  if (b.has(53, 8) && b.get(53, 8)) return wrong(b, "reserved field", 53, 8, "0");
  if (!b.has(61, 3)) return {};
  const std::uint32_t mode = b.get(61, 3);
  if (swizzles[mode].empty())
    return wrong(b, "swizzle mode", 61, 3, "0 (none), 1 and 2 (128 bytes), 4 (64) or 6 (32)");
  if (!wide) return {};
  if (*wide && mode != 1)
    return wrong(b, "swizzle mode", 61, 3,
                 "1 (128 bytes in atoms of 32) for an MN-major tile of 32-bit elements");
  if (!*wide && mode == 1)
    return wrong(b, "swizzle mode", 61, 3,
                 "0, 2, 4 or 6: atoms of 32 bytes are for MN-major tiles of 32-bit elements");
  return {};
}

std::string tile_descriptor_text(const PartialBits& b) {
  std::string out;
  if (b.has(0, 14)) add(out, fmt::format("start 0x{:x}", b.get(0, 14) << 4));
  if (b.has(16, 14)) add(out, fmt::format("leading offset 0x{:x}", b.get(16, 14) << 4));
  if (b.has(32, 14)) add(out, fmt::format("stride offset 0x{:x}", b.get(32, 14) << 4));
  if (b.has(61, 3) && !swizzles[b.get(61, 3)].empty())
    add(out, std::string(swizzles[b.get(61, 3)]));
  return out;
}

}  // namespace tartan::TARTAN_ABI::isa
