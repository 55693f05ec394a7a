// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/matrix/rule.h"

#include <cassert>

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

constexpr std::uint8_t on(std::initializer_list<Hardware> list) {
  std::uint8_t mask = 0;
  for (const Hardware hardware : list)
    mask |= static_cast<std::uint8_t>(1 << static_cast<int>(hardware));
  return mask;
}

using enum Hardware;
using enum Trust;
using enum Method;

constexpr std::uint8_t any = 0xFF;
constexpr std::uint8_t mma = 1, wmma = 2, wgmma = 4;
constexpr std::uint8_t warp = mma | wmma;

constexpr TypeSet halves{f16, bf16};
constexpr TypeSet bytes{Type::e4m3, Type::e5m2};
constexpr TypeSet small{Type::e4m3, Type::e5m2, Type::e3m2, Type::e2m3, Type::e2m1};
constexpr TypeSet integers{Type::s8, Type::u8, Type::s4, Type::u4};
constexpr Shape quad_pair{8, 8, 4};

constexpr std::string_view recorded = "bits recorded on an H100";
constexpr std::string_view exact = "exact by definition; recorded on an H100";
constexpr std::string_view scalar =
    "the assembler replaces it by the scalar code that was recorded on an H100";
constexpr std::string_view volta =
    "published V100 measurements: steps of 4 products, 23 fraction bits";
constexpr std::string_view turing = "published measurements disagree on the step's length (8 or 4)";
constexpr std::string_view ampere =
    "published A100 measurements: steps of 8 products (tf32: 4), 24 fraction bits";
constexpr std::string_view ada =
    "published L40S and RTX 4090 measurements: steps of 16 products, 13 fraction bits";
constexpr std::string_view blackwell = "published B200 measurements: as on an H100";
constexpr std::string_view consumer =
    "published RTX 5090 measurements: one step of 32 products, 25 fraction bits";
constexpr std::string_view scaled =
    "the manual's semantics; the sum is taken as the unscaled instruction's";
constexpr std::string_view directed =
    "recorded on an H100 for .rn and .rz of mma, and for wmma; taken to hold for .rm and .rp of "
    "mma";
constexpr std::string_view nearest = "nothing published: the nearest generation's rule";

// clang-format off
constexpr NumericRule rules[] = {
    // Exact everywhere.
    {any, mma | wmma | wgmma, integers, Type::none, {}, integer, 0, 0, 0, 0, 0, Recorded, exact},
    {any, mma | wmma | wgmma, Type::b1, Type::none, {}, popcount, 0, 0, 0, 0, 0, Recorded, exact},
    {on({sm_90}), mma, f64, Type::none, {}, fma_chain, 0, 0, 0, 0, 0, Documented, directed, true},
    {on({sm_90}), warp, f64, Type::none, {}, fma_chain, 0, 0, 0, 0, 0, Recorded, recorded},
    {on({sm_80, sm_89, sm_100, sm_120}), warp, f64, Type::none, {}, fma_chain, 0, 0, 0, 0, 0, Measured, "one or more DMMA m8n8k4, an fma chain"},
    {any, warp, f64, Type::none, {}, fma_chain, 0, 0, 0, 0, 0, Assumed, nearest},
    // wgmma: sm_90 alone has it.
    {any, wgmma, halves, Type::none, {}, fused_sum, 16, 25, -133, -21, 24, Recorded, recorded},
    {any, wgmma, tf32,   Type::none, {}, fused_sum,  8, 25, -133, -21, 24, Recorded, recorded},
    {any, wgmma, bytes,  Type::none, {}, fused_sum, 32, 13, -133, -21, 14, Recorded, recorded},
    // The f16 product of a quad pair: native up to sm_75.
    {on({sm_70}), mma, f16, Type::none, quad_pair, fused_sum, 4, 23, -131, -19, 24, Measured, volta},
    {on({sm_75}), mma, f16, Type::none, quad_pair, fused_sum, 4, 24, -132, -20, 24, Assumed, turing},
    {on({sm_90}), mma, f16, f32,        quad_pair, float_chain, 0, 0, 0, 0, 0, Recorded, recorded},
    {on({sm_90}), mma, f16, f16,        quad_pair, half_tree, 0, 0, 0, 0, 0, Recorded, recorded},
    {any, mma, f16, f32,                quad_pair, float_chain, 0, 0, 0, 0, 0, Measured, scalar},
    {any, mma, f16, f16,                quad_pair, half_tree, 0, 0, 0, 0, 0, Measured, scalar},
    // f16 and bf16.
    {on({sm_70}), warp, f16, Type::none, {}, fused_sum, 4, 23, -131, -19, 24, Measured, volta},
    {on({sm_75}), warp, f16, Type::none, {}, fused_sum, 8, 24, -132, -20, 24, Assumed, turing},
    {on({sm_80, sm_89}), warp, halves, Type::none, {}, fused_sum, 8, 24, -132, -20, 24, Measured, ampere},
    {on({sm_90}), warp, halves, Type::none, {}, fused_sum, 16, 25, -133, -21, 24, Recorded, recorded},
    {on({sm_100, sm_120}), warp, halves, Type::none, {}, fused_sum, 16, 25, -133, -21, 24, Measured, blackwell},
    {on({sm_70, sm_75}), warp, halves, Type::none, {}, fused_sum, 8, 24, -132, -20, 24, Assumed, nearest},
    // tf32: wmma chains two steps where mma has one.
    {on({sm_80, sm_89}), warp, tf32, Type::none, {}, fused_sum, 4, 24, -132, -20, 24, Measured, ampere},
    {on({sm_90}), mma,  tf32, Type::none, {}, fused_sum, 8, 25, -133, -21, 24, Recorded, recorded},
    {on({sm_90}), wmma, tf32, Type::none, {}, fused_sum, 4, 25, -133, -21, 24, Recorded, recorded},
    {on({sm_100, sm_120}), mma,  tf32, Type::none, {}, fused_sum, 8, 25, -133, -21, 24, Measured, blackwell},
    {on({sm_100, sm_120}), wmma, tf32, Type::none, {}, fused_sum, 4, 25, -133, -21, 24, Assumed, nearest},
    {on({sm_70, sm_75}), warp, tf32, Type::none, {}, fused_sum, 4, 24, -132, -20, 24, Assumed, nearest},
    // 8, 6 and 4-bit floats.
    {on({sm_89}), mma, bytes, Type::none, {}, fused_sum, 16, 13, -133, -21, 14, Measured, ada},
    {on({sm_90}), mma, bytes, Type::none, {}, half_pairs, 16, 25, -133, -21, 24, Recorded, recorded},
    {on({sm_100}), mma, bytes, Type::none, {}, half_pairs, 16, 25, -133, -21, 24, Measured, blackwell},
    {on({sm_120}), mma, bytes, Type::none, {}, fused_sum, 32, 25, -133, -21, 24, Measured, consumer},
    {on({sm_120}), mma, small, Type::none, {}, fused_sum, 32, 25, -133, -21, 24, Documented, consumer},
    {on({sm_100, sm_90}), mma, small, Type::none, {}, half_pairs, 16, 25, -133, -21, 24, Assumed, nearest},
    {any, mma, small, Type::none, {}, fused_sum, 16, 13, -133, -21, 14, Assumed, nearest},
};

// Block-scaled products: scaling is exact, so that only the sum has to be chosen.
constexpr NumericRule block_scaled = {any, mma, small, Type::none, {}, fused_sum, 64, 25, -133, -21, 24, Documented, scaled};
// clang-format on

std::uint8_t opcode_bit(isa::Opcode opcode) {
  switch (opcode) {
    case isa::Opcode::mma: return mma;
    case isa::Opcode::wmma_mma: return wmma;
    default: return wgmma;
  }
}

}  // namespace

const NumericRule& rule_of(const isa::Form& form, Hardware hardware) {
  if (form.block_scale) return block_scaled;
  for (const NumericRule& rule : rules) {
    if (!(rule.hardware >> static_cast<int>(hardware) & 1) ||
        !(rule.opcodes & opcode_bit(form.opcode)))
      continue;
    if (!rule.a.has(form.a) || (rule.d != Type::none && rule.d != form.d)) continue;
    if (rule.shape != Shape{} && rule.shape != form.shape) continue;
    if (rule.directed && form.rounding != isa::Rounding::rm && form.rounding != isa::Rounding::rp)
      continue;
    if (form.kind == isa::Kind::f8f6f4 && !rule.a.has(form.b)) continue;
    return rule;
  }
  assert(false && "every form has a rule on every hardware");
  return block_scaled;
}

std::optional<Hardware> hardware_of(Arch arch) {
  if (arch.sm < 70) return std::nullopt;
  if (arch.sm < 75) return sm_70;
  if (arch.sm < 80) return sm_75;
  if (arch.sm < 89) return sm_80;
  if (arch.sm < 90) return sm_89;
  if (arch.sm < 100) return sm_90;
  if (arch.sm < 120) return sm_100;
  return sm_120;
}

}  // namespace tartan::inline TARTAN_ABI::emulator
