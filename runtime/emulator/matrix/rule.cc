// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/matrix/rule.h"

#include <cassert>

namespace tartan::TARTAN_ABI::emulator {
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
constexpr std::uint8_t mma = 1, wmma = 2, wgmma = 4, tcgen05 = 8;
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
    "ordinary numbers recorded on a V100: steps of 4 products, 23 fraction bits";
constexpr std::string_view volta_quads =
    "published V100 measurements: steps of 4 products, 23 fraction bits";
constexpr std::string_view turing =
    "published Turing measurements, and machine code: steps of 8 products, 24 fraction bits";
constexpr std::string_view ampere =
    "ordinary numbers recorded on an A100 and an RTX 1000 Ada: steps of 8 products (wmma of tf32: "
    "4), 24 fraction bits";
constexpr std::string_view ampere_tf32 =
    "published A100 measurements: steps of 4 products, 24 fraction bits";
constexpr std::string_view ada =
    "ordinary numbers recorded on an RTX 1000 Ada: steps of 16 products, 13 fraction bits";
constexpr std::string_view blackwell = "ordinary numbers recorded on a B200: as on an H100";
constexpr std::string_view blackwell_tf32 = "published B200 measurements: as on an H100";
constexpr std::string_view consumer_halves = "published RTX Blackwell measurements: as on an H100";
constexpr std::string_view steps_of_four =
    "the machine code is two steps of 4 products, each measured as on an H100";
constexpr std::string_view consumer =
    "published RTX 5090 measurements: one step of 32 products, 25 fraction bits";
constexpr std::string_view tensor =
    "published B200 measurements of tcgen05.mma: one step for K, 25 fraction bits; results of f16 "
    "are assumed";
constexpr std::string_view tensor_integers = "published B200 measurements of tcgen05.mma: exact";
constexpr std::string_view tensor_half =
    "the least exponent is assumed to be that of mma; the rest as for results of f32";
constexpr std::string_view scaled =
    "published RTX Blackwell and B200 measurements: one step of 32 products, 25 fraction bits";
constexpr std::string_view fours =
    "published RTX Blackwell and B200 measurements: exact groups of 16 products, 35 fraction bits";
constexpr std::string_view directed =
    "recorded on an H100 for .rn and .rz of mma, and for wmma; assumed for .rm and .rp of mma";
constexpr std::string_view nearest = "nothing published: assumed equal to the nearest generation";

// clang-format off
constexpr NumericRule rules[] = {
    // Exact everywhere.
    {.hardware = any, .opcodes = mma | wmma | wgmma, .a = integers, .method = integer, .trust = Recorded, .source = exact},
    {.hardware = any, .opcodes = mma | wmma | wgmma, .a = Type::b1, .method = popcount, .trust = Recorded, .source = exact},
    {.hardware = on({sm_90}), .opcodes = mma, .a = f64, .method = fma_chain, .trust = Documented, .source = directed, .directed = true},
    {.hardware = on({sm_90}), .opcodes = warp, .a = f64, .method = fma_chain, .trust = Recorded, .source = recorded},
    {.hardware = on({sm_80, sm_89, sm_100, sm_120}), .opcodes = warp, .a = f64, .method = fma_chain, .trust = Measured, .source = "one or more DMMA m8n8k4, .directed = an fma chain"},
    {.hardware = any, .opcodes = warp, .a = f64, .method = fma_chain, .trust = Assumed, .source = nearest},
    // wgmma: sm_90 alone has it.
    {.hardware = any, .opcodes = wgmma, .a = halves, .method = fused_sum, .length = 16, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Recorded, .source = recorded},
    {.hardware = any, .opcodes = wgmma, .a = tf32, .method = fused_sum, .length = 8, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Recorded, .source = recorded},
    {.hardware = any, .opcodes = wgmma, .a = bytes, .method = fused_sum, .length = 32, .fraction = 13, .floor_f32 = -133, .floor_f16 = -21, .kept = 14, .trust = Recorded, .source = recorded},
    // tcgen05.mma: published measurements, one step for the instruction's K.
    {.hardware = any, .opcodes = tcgen05, .a = halves, .d = f16, .method = fused_sum, .length = 16, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Assumed, .source = tensor_half},
    {.hardware = any, .opcodes = tcgen05, .a = halves, .method = fused_sum, .length = 16, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Measured, .source = tensor},
    {.hardware = any, .opcodes = tcgen05, .a = tf32, .method = fused_sum, .length = 8, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Measured, .source = tensor},
    {.hardware = any, .opcodes = tcgen05, .a = small, .method = fused_sum, .length = 32, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Measured, .source = tensor},
    {.hardware = any, .opcodes = tcgen05, .a = integers, .method = integer, .trust = Measured, .source = tensor_integers},
    // The f16 product of a quad pair: native up to sm_75.
    {.hardware = on({sm_70}), .opcodes = mma, .a = f16, .shape = quad_pair, .method = fused_sum, .length = 4, .fraction = 23, .floor_f32 = -131, .floor_f16 = -19, .kept = 24, .trust = Measured, .source = volta_quads},
    {.hardware = on({sm_75}), .opcodes = mma, .a = f16, .shape = quad_pair, .method = fused_sum, .length = 4, .fraction = 24, .floor_f32 = -132, .floor_f16 = -20, .kept = 24, .trust = Assumed, .source = nearest},
    {.hardware = on({sm_90}), .opcodes = mma, .a = f16, .d = f32, .shape = quad_pair, .method = float_chain, .trust = Recorded, .source = recorded},
    {.hardware = on({sm_90}), .opcodes = mma, .a = f16, .d = f16, .shape = quad_pair, .method = half_tree, .trust = Recorded, .source = recorded},
    {.hardware = any, .opcodes = mma, .a = f16, .d = f32, .shape = quad_pair, .method = float_chain, .trust = Measured, .source = scalar},
    {.hardware = any, .opcodes = mma, .a = f16, .d = f16, .shape = quad_pair, .method = half_tree, .trust = Measured, .source = scalar},
    // f16 and bf16.
    {.hardware = on({sm_70}), .opcodes = warp, .a = f16, .method = fused_sum, .length = 4, .fraction = 23, .floor_f32 = -131, .floor_f16 = -19, .kept = 24, .trust = PartlyRecorded, .source = volta},
    {.hardware = on({sm_75}), .opcodes = warp, .a = f16, .method = fused_sum, .length = 8, .fraction = 24, .floor_f32 = -132, .floor_f16 = -20, .kept = 24, .trust = Measured, .source = turing},
    {.hardware = on({sm_80, sm_89}), .opcodes = warp, .a = halves, .method = fused_sum, .length = 8, .fraction = 24, .floor_f32 = -132, .floor_f16 = -20, .kept = 24, .trust = PartlyRecorded, .source = ampere},
    {.hardware = on({sm_90}), .opcodes = warp, .a = halves, .method = fused_sum, .length = 16, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Recorded, .source = recorded},
    {.hardware = on({sm_100}), .opcodes = warp, .a = halves, .method = fused_sum, .length = 16, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = PartlyRecorded, .source = blackwell},
    {.hardware = on({sm_120}), .opcodes = warp, .a = halves, .method = fused_sum, .length = 16, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Measured, .source = consumer_halves},
    {.hardware = on({sm_70, sm_75}), .opcodes = warp, .a = halves, .method = fused_sum, .length = 8, .fraction = 24, .floor_f32 = -132, .floor_f16 = -20, .kept = 24, .trust = Assumed, .source = nearest},
    // tf32: wmma chains two steps where mma has one.
    {.hardware = on({sm_80, sm_89}), .opcodes = mma, .a = tf32, .method = fused_sum, .length = 4, .fraction = 24, .floor_f32 = -132, .floor_f16 = -20, .kept = 24, .trust = Measured, .source = ampere_tf32},
    {.hardware = on({sm_80, sm_89}), .opcodes = wmma, .a = tf32, .method = fused_sum, .length = 4, .fraction = 24, .floor_f32 = -132, .floor_f16 = -20, .kept = 24, .trust = PartlyRecorded, .source = ampere},
    {.hardware = on({sm_90}), .opcodes = mma, .a = tf32, .method = fused_sum, .length = 8, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Recorded, .source = recorded},
    {.hardware = on({sm_90}), .opcodes = wmma, .a = tf32, .method = fused_sum, .length = 4, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Recorded, .source = recorded},
    {.hardware = on({sm_100, sm_120}), .opcodes = mma, .a = tf32, .method = fused_sum, .length = 8, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Measured, .source = blackwell_tf32},
    {.hardware = on({sm_100}), .opcodes = wmma, .a = tf32, .method = fused_sum, .length = 4, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = PartlyRecorded, .source = blackwell},
    {.hardware = on({sm_120}), .opcodes = wmma, .a = tf32, .method = fused_sum, .length = 4, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Measured, .source = steps_of_four},
    {.hardware = on({sm_70, sm_75}), .opcodes = warp, .a = tf32, .method = fused_sum, .length = 4, .fraction = 24, .floor_f32 = -132, .floor_f16 = -20, .kept = 24, .trust = Assumed, .source = nearest},
    // 8, 6 and 4-bit floats.
    {.hardware = on({sm_89}), .opcodes = mma, .a = bytes, .method = fused_sum, .length = 16, .fraction = 13, .floor_f32 = -133, .floor_f16 = -21, .kept = 14, .trust = PartlyRecorded, .source = ada},
    {.hardware = on({sm_90}), .opcodes = mma, .a = bytes, .method = half_pairs, .length = 16, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Recorded, .source = recorded},
    {.hardware = on({sm_100}), .opcodes = mma, .a = bytes, .method = half_pairs, .length = 16, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = PartlyRecorded, .source = blackwell},
    {.hardware = on({sm_120}), .opcodes = mma, .a = bytes, .method = fused_sum, .length = 32, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Measured, .source = consumer},
    {.hardware = on({sm_120}), .opcodes = mma, .a = small, .method = fused_sum, .length = 32, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Documented, .source = consumer},
    {.hardware = on({sm_100, sm_90}), .opcodes = mma, .a = small, .method = half_pairs, .length = 16, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Assumed, .source = nearest},
    {.hardware = any, .opcodes = mma, .a = small, .method = fused_sum, .length = 16, .fraction = 13, .floor_f32 = -133, .floor_f16 = -21, .kept = 14, .trust = Assumed, .source = nearest},
};

// Block-scaled products.
constexpr NumericRule scaled_bytes = {.hardware = any, .opcodes = mma, .a = small, .method = fused_sum, .length = 32, .fraction = 25, .floor_f32 = -133, .floor_f16 = -21, .kept = 24, .trust = Measured, .source = scaled};
constexpr NumericRule scaled_fours = {.hardware = any, .opcodes = mma, .a = Type::e2m1, .method = scaled_groups, .length = 16, .fraction = 35, .floor_f32 = -139, .kept = 24, .trust = Measured, .source = fours};
// clang-format on

std::uint8_t opcode_bit(isa::Opcode opcode) {
  switch (opcode) {
    case isa::Opcode::mma: return mma;
    case isa::Opcode::wmma_mma: return wmma;
    case isa::Opcode::tcgen05_mma: return tcgen05;
    default: return wgmma;
  }
}

}  // namespace

const NumericRule& rule_of(const isa::Form& form, Hardware hardware) {
  if (form.block_scale) return form.kind == isa::Kind::mxf8f6f4 ? scaled_bytes : scaled_fours;
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
  return scaled_bytes;
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

}  // namespace tartan::TARTAN_ABI::emulator
