// SPDX-License-Identifier: Apache-2.0
// Arithmetic without a Hopper recording: stochastic rounding and pairs of f32, against exact or
// recorded arithmetic; and results that the assembler or memory determines, not an instruction.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "runtime/emulator/numbers/small_float.h"
#include "tests/emulator/kernel.h"
#include "tests/emulator/scalar_sweep.h"

namespace tartan {
namespace {

using emulator::SmallFormat;
using scalar_sweep::Form;
using scalar_sweep::Kind;
using scalar_sweep::row_count;
using Words = std::vector<std::uint64_t>;

Words run_form(const Form& form) {
  auto engine = emulator::make_engine({});
  EXPECT_TRUE(static_cast<bool>(engine));
  const auto runs = scalar_sweep::run_forms(**engine, {form});
  EXPECT_EQ(runs[0].complaint, "") << form.text;
  return runs[0].results;
}

// ---- Stochastic rounding.

struct Target {
  std::string name;
  SmallFormat format;
  int elements, bits, random_bits;
  std::uint32_t nan;
};
const Target targets[] = {
    {"f16x2", emulator::format_f16, 2, 16, 13, 0x7FFF},
    {"bf16x2", emulator::format_bf16, 2, 16, 16, 0x7FFF},
    {"e4m3x4", emulator::format_e4m3, 4, 8, 16, 0x7F},
    {"e5m2x4", emulator::format_e5m2, 4, 8, 16, 0x7F},
    {"e2m3x4", emulator::format_e2m3, 4, 8, 16, 0x1F},
    {"e3m2x4", emulator::format_e3m2, 4, 8, 16, 0x1F},
    {"e2m1x4", emulator::format_e2m1, 4, 4, 16, 0x7},
};

// x in units of the last place of the format there: the whole ones, plus one if the remainder and
// the random bits, as fractions, sum to at least one unit.
std::uint32_t expected_of(const Target& target, float x, std::uint32_t random, bool satfinite,
                          bool relu) {
  if (std::isnan(x)) return target.nan;
  if (std::signbit(x) && relu) return 0;
  const SmallFormat& format = target.format;
  const int least = 2 - (1 << (format.exponent - 1));
  double rounded = std::fabs(static_cast<double>(x));
  if (rounded != 0 && std::isfinite(rounded)) {
    const double unit = std::ldexp(1.0, std::max(std::ilogb(rounded), least) - format.mantissa),
                 units = std::floor(rounded / unit), rest = rounded / unit - units;
    rounded = (units + (rest + std::ldexp(random, -target.random_bits) >= 1 ? 1 : 0)) * unit;
  }
  std::uint32_t magnitude = emulator::narrow(format, rounded, emulator::Rounding::rz);
  if (rounded > emulator::widen(format, format.largest))
    magnitude = satfinite || !format.infinite ? format.largest : format.largest + 1;
  return magnitude | static_cast<std::uint32_t>(std::signbit(x))
                         << (format.exponent + format.mantissa);
}

std::uint32_t reversed(std::uint32_t x) {
  std::uint32_t out = 0;
  for (int i = 0; i < 16; ++i)
    if (x & 1u << i) out |= 0x8000u >> i;
  return out;
}

void expect_stochastic(const Target& target, bool satfinite, bool relu) {
  const bool four = target.elements == 4;
  const std::string name = "cvt.rs" + std::string(relu ? ".relu" : "") +
                           (satfinite ? ".satfinite." : ".") + target.name + ".f32 d, ";
  // Two sources near limits of f32, two of f16; c also serves as the random bits.
  const std::vector<Kind> kinds(4, Kind::f32);
  const Form form{name + (four ? "{a, b, c, e}, c;" : "a, b, c;"), target.bits == 4 ? 16 : 32,
                  kinds};
  const Words inputs = scalar_sweep::inputs_of(form), got = run_form(form);
  ASSERT_EQ(got.size(), static_cast<std::size_t>(row_count));
  for (std::size_t row = 0; row < got.size(); ++row) {
    const auto random = static_cast<std::uint32_t>(inputs[2 * row_count + row]);
    std::uint32_t want = 0;
    for (int i = 0; i < target.elements; ++i) {
      const std::size_t source = static_cast<std::size_t>(target.elements - 1 - i);
      const float x =
          std::bit_cast<float>(static_cast<std::uint32_t>(inputs[source * row_count + row]));
      const std::uint32_t half = random >> (four ? i / 2 : i) * 16 & 0xFFFF;
      const std::uint32_t bits =
          four && i % 2 ? reversed(half) : half & ((1u << target.random_bits) - 1);
      want |= expected_of(target, x, bits, satfinite, relu) << i * target.bits;
    }
    EXPECT_EQ(got[row], want) << form.text << " row " << row;
  }
}

TEST(EmulatorRounding, StochasticRoundingAddsTheRandomBits) {
  for (const Target& target : targets)
    for (const bool relu : {false, true}) {
      expect_stochastic(target, true, relu);
      if (target.elements == 2) expect_stochastic(target, false, relu);
    }
}

TEST(EmulatorRounding, StochasticRoundingOfFourTakesSatfinite) {
  const auto run = test::run_body("cvt.rs.e4m3x4.f32 r1, {f1, f2, f3, f4}, r2;");
  EXPECT_FALSE(run.launched);
  EXPECT_NE(run.complaint.find("satfinite"), std::string::npos) << run.complaint;
}

// ---- Pairs of f32: each half equals the scalar instruction's result.

TEST(EmulatorRounding, PairsOfSinglesMatchScalars) {
  const std::vector<Kind> kinds(3, Kind::f32);
  for (const std::string name : {"add", "sub", "mul", "fma"})
    for (const std::string round : {".rn", ".rz", ".rm", ".rp"})
      for (const std::string ftz : {"", ".ftz"}) {
        const std::string opcode = name + round + ftz + ".f32";
        const bool three = name == "fma";
        const std::string pair = "mov.b64 x, {a, b}; mov.b64 y, {b, c}; mov.b64 z, {c, a}; " +
                                 opcode + "x2 x, x, y" + (three ? ", z; " : "; ");
        for (const bool upper : {false, true}) {
          const std::string one = upper ? "b, c, a" : "a, b, c";
          const Form form{pair + (upper ? "mov.b64 {_, d}, x;" : "mov.b64 {d, _}, x;"), 32, kinds},
              single{opcode + " d, " + (three ? one : one.substr(0, 4)) + ";", 32, kinds};
          EXPECT_EQ(run_form(form), run_form(single)) << form.text;
        }
      }
}

// ---- Out-of-bounds elements of a tensor.

TEST(EmulatorRounding, ProductsWithOutOfBoundsOperandsAreZero) {
  const auto run = test::run_body(R"(mov.b32 r1, 0x7FF73C00;
mov.b32 r2, 0x3C003C00;
mov.b32 r3, 0xBC00BC00;
fma.rn.oob.f16x2 r4, r1, r2, r3;
fma.rn.oob.f16x2 r5, r2, r1, r2;
fma.rn.f16x2 r6, r1, r2, r3;
fma.rn.oob.relu.bf16x2 r7, r1, r2, r3;
st.global.v4.b32 [rd0], {r4, r5, r6, r7};)",
                                  {.grid = {1}, .block = {1}}, 4);
  ASSERT_EQ(run.complaint, "");
  EXPECT_EQ(run.out[0], 0x00000000u);  // 1 - 1 in the lower half
  EXPECT_EQ(run.out[1], 0x00004000u);
  EXPECT_EQ(run.out[2], 0x7FFF0000u);
  EXPECT_EQ(run.out[3] >> 16, 0u);
}

// All 65536 numbers as each operand; result r of number x at [16 * x + r].
std::vector<std::uint32_t> products_with_all_numbers(detail::Engine& engine) {
  std::string text = R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .b16 x, y;
.reg .b32 i, xs, ys, one, minus, d;
.reg .b64 to, at;
ld.param.u64 to, [out];
mov.u32 i, %ctaid.x;
mad.lo.u32 i, i, 256, 0;
mov.u32 d, %tid.x;
add.u32 i, i, d;
mul.wide.u32 at, i, 64;
add.s64 to, to, at;
cvt.u16.u32 x, i;
mul.lo.u16 y, x, 40503;
mov.b32 xs, {x, y};
xor.b32 ys, xs, 0xC0003C00;
mov.b32 one, 0x3C003F80;
mov.b32 minus, 0xBF807FF7;
)";
  int word = 0;
  for (const char* type : {"f16", "bf16"})
    for (const char* relu : {"", ".relu"}) {
      for (const char* sources : {"xs, ys, one", "ys, xs, minus", "ys, one, xs"})
        text += fmt::format("fma.rn.oob{}.{}x2 d, {};\nst.global.b32 [to+{}], d;\n", relu, type,
                            sources, 4 * word++);
      text +=
          fmt::format("fma.rn.oob{}.{} y, x, x, x;\ncvt.u32.u16 d, y;\nst.global.b32 [to+{}], d;\n",
                      relu, type, 4 * word++);
    }
  const auto module = engine.load(text + "ret;\n}\n", "oob.ptx");
  EXPECT_TRUE(module) << module.diags().text();
  const auto kernel = (*module)->kernel("k");
  EXPECT_TRUE(kernel) << kernel.diags().text();
  const auto out = engine.allocate(16 * 4 << 16);
  EXPECT_TRUE((*kernel)->launch({.grid = {256}, .block = {256}}, Arguments().add(*out), nullptr));
  std::vector<std::uint32_t> results(16 << 16);
  EXPECT_TRUE(engine.read(*out, std::as_writable_bytes(std::span(results))));
  return results;
}

TEST(EmulatorRounding, OutOfBoundsIsANanOfEitherSign) {
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  const auto got = products_with_all_numbers(**engine);
  for (const std::uint32_t x : {0x7FF7u, 0xFFF7u})
    for (const std::size_t result : {0, 1, 4, 5, 8, 9, 12, 13})
      EXPECT_EQ(got[16 * x + result] & 0xFFFF, 0u) << x << " " << result;
  for (const std::uint32_t x : {0x7FF6u, 0x7FF8u, 0xFFF6u, 0xFFF8u})
    for (const std::size_t result : {0, 4, 8, 12})
      EXPECT_EQ(got[16 * x + result] & 0xFFFF, 0x7FFFu) << x << " " << result;
  EXPECT_EQ(got[16 * 0x7FF7 + 2] & 0xFFFF, 0x7FFFu) << "as what is added it is any NaN";
}

TEST(EmulatorRounding, GpuAgreesOnOutOfBoundsOperands) {
  auto gpu = cuda::make_engine(0);
  if (!gpu || (*gpu)->arch().sm != 90) GTEST_SKIP() << "no Hopper GPU here";
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  const auto got = products_with_all_numbers(**engine), expected = products_with_all_numbers(**gpu);
  int wrong = 0;
  for (std::size_t i = 0; i < got.size() && wrong < 100; ++i) {
    EXPECT_EQ(got[i], expected[i]) << fmt::format("0x{:x} result {}", i / 16, i % 16);
    wrong += got[i] != expected[i];
  }
}

// ---- The assembler takes the 32 bits of 0f... unchanged, also as 64 bits.

TEST(EmulatorRounding, SingleLiteralsInPlacesOfDoublesAreTheirBits) {
  const auto run =
      test::run_body(R"(.reg .f64 x;
ld.global.v2.b32 {r1, r2}, [number];
mov.f64 x, 0f3F800001;
mov.b64 {r3, r4}, x;
st.global.v4.b32 [rd0], {r1, r2, r3, r4};)",
                     {.grid = {1}, .block = {1}}, 4, {}, ".global .f64 number = 0f3F800001;\n");
  ASSERT_EQ(run.complaint, "");
  EXPECT_EQ(run.out, (std::vector<std::uint32_t>{0x3F800001, 0, 0x3F800001, 0}));
}

// ---- A destination that is also a later element's operand.

TEST(EmulatorRounding, AtomicsOnVectorsReadBeforeTheyWrite) {
  const auto run = test::run_body(R"(mov.f32 f1, 0f3F800000;
mov.f32 f2, 0f40000000;
mov.f32 f3, 0f40800000;
mov.f32 f4, 0f41000000;
atom.global.v4.f32.add {f1, f2, f3, f4}, [rd0], {f2, f3, f4, f1};)",
                                  {.grid = {1}, .block = {1}}, 4);
  ASSERT_EQ(run.complaint, "");
  EXPECT_EQ(run.out, (std::vector<std::uint32_t>{0x40000000, 0x40800000, 0x41000000, 0x3F800000}));
}

}  // namespace
}  // namespace tartan
