// SPDX-License-Identifier: Apache-2.0
// Vectorized handlers against the scalar ones: the same bits, for whole warps and for some of their
// lanes.
#include <fmt/format.h>

#include <random>
#include <set>

#include "runtime/emulator/machine/lanes.h"
#include "tests/emulator/scalar.h"

namespace tartan {
namespace {

class Vectors {
 public:
  explicit Vectors(bool allowed) { emulator::set_vectors(allowed); }
  ~Vectors() { emulator::set_vectors(true); }
};

TEST(EmulatorVectors, ComputeTheSameOfEdges) {
  if (!emulator::use_vectors()) GTEST_SKIP() << "this machine has no AVX2";
  const auto cases = test::read_scalar_cases(std::string(TEST_DATA) + "/emulator/scalar.txt");
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  const auto fast = test::run_scalar_cases(**engine, cases);
  const Vectors off(false);
  const auto slow = test::run_scalar_cases(**engine, cases);
  ASSERT_EQ(fast.size(), slow.size());
  for (std::size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(fast[i], slow[i]) << cases[i].text;
}

constexpr std::uint32_t words = 1 << 16;

// d = the instruction on words a, b, c of three buffers; only in odd lanes, if `guard`.
std::vector<std::uint32_t> run(detail::Engine& engine, const std::string& instruction, bool guard,
                               std::uint64_t in, std::uint64_t out) {
  const std::string text = R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .pred p;
  .reg .b16 ha, hb, hc, hd;
  .reg .b32 a, b, c, d, i, high;
  .reg .f64 xa, xb, xc, xd;
  .reg .b64 from, to;
  mov.u32 i, %ctaid.x;
  mad.lo.u32 i, i, 256, %tid.x;
  ld.param.u64 from, [in];
  ld.param.u64 to, [out];
  mad.wide.u32 from, i, 12, from;
  mad.wide.u32 to, i, 4, to;
  ld.global.b32 a, [from];
  ld.global.b32 b, [from+4];
  ld.global.b32 c, [from+8];
  cvt.u16.u32 ha, a;
  cvt.u16.u32 hb, b;
  cvt.u16.u32 hc, c;
  mov.b64 xa, {c, a};
  mov.b64 xb, {a, b};
  mov.b64 xc, {b, c};
  mov.b16 hd, 0;
  mov.b32 d, 0;
  mov.b64 xd, 0;
  and.b32 high, a, 0x10000;
  setp.ne.u32 p, high, 0;
  )" + std::string(guard ? "@p " : "") +
                           instruction + R"(;
  mov.b64 {high, i}, xd;
  xor.b32 d, d, high;
  xor.b32 d, d, i;
  cvt.u32.u16 i, hd;
  xor.b32 d, d, i;
  st.global.b32 [to], d;
  ret;
})";
  const auto module = engine.load(text, "vectors.ptx");
  EXPECT_TRUE(module) << (module ? "" : module.diags().text());
  if (!module) return {};
  const auto kernel = (*module)->kernel("k");
  EXPECT_TRUE(kernel) << (kernel ? "" : kernel.diags().text());
  if (!kernel) return {};
  EXPECT_TRUE((*kernel)->launch({.grid = {words / 256}, .block = {256}},
                                Arguments().add(in).add(out), nullptr));
  EXPECT_TRUE(engine.synchronize());
  std::vector<std::uint32_t> got(words);
  EXPECT_TRUE(engine.read(out, std::as_writable_bytes(std::span(got))));
  return got;
}

std::vector<std::string> instructions() {
  std::vector<std::string> out;
  for (const std::string name : {"add", "sub", "mul", "fma.rn"})
    for (const std::string mode : {"", ".ftz", ".sat", ".ftz.sat", ".relu", ".ftz.relu"})
      for (const std::string type : {"f16", "f16x2", "bf16", "bf16x2"}) {
        const bool fused = name == "fma.rn", bfloat = type.starts_with("bf");
        if (mode.ends_with("relu") && !fused) continue;
        if (bfloat && mode != "" && mode != ".relu") continue;
        out.push_back(name + mode + "." + type +
                      (type.ends_with("x2") ? std::string(" d, a, b") : " hd, ha, hb") +
                      (!fused                 ? ""
                       : type.ends_with("x2") ? ", c"
                                              : ", hc"));
      }
  for (const std::string round : {"rn", "rz"})
    for (const std::string relu : {"", ".relu"})
      for (const std::string finite : {"", ".satfinite"})
        for (const std::string type : {"f16", "bf16"}) {
          if (finite.empty()) out.push_back("cvt." + round + relu + "." + type + ".f32 hd, a");
          out.push_back("cvt." + round + relu + finite + "." + type + "x2.f32 d, a, b");
        }
  for (const char* text :
       {"cvt.f32.f16 d, ha", "cvt.ftz.f32.f16 d, ha", "cvt.f32.bf16 d, ha", "fma.rn.f32 d, a, b, c",
        "fma.rn.ftz.sat.f32 d, a, b, c", "fma.rn.f64 xd, xa, xb, xc", "ex2.approx.f32 d, a",
        "ex2.approx.ftz.f32 d, a", "rcp.approx.ftz.f32 d, a", "sqrt.approx.f32 d, a",
        "rsqrt.approx.f32 d, a", "ex2.approx.f16x2 d, a", "ex2.approx.ftz.bf16x2 d, a",
        "min.f16x2 d, a, b", "max.NaN.bf16x2 d, a, b"})
    out.push_back(text);
  return out;
}

// Random bits, and numbers of one size: of f32, and of f16 in both halves.
std::vector<std::uint32_t> inputs() {
  std::mt19937_64 random(7);
  std::vector<std::uint32_t> out(3 * words);
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto word = static_cast<std::uint32_t>(random());
    if (i / 3 % 4 == 1) word = (word & 0x81FFFFFF) | 0x3C000000;  // near 1
    if (i / 3 % 4 == 2) word = (word & 0x83FF83FF) | 0x34003400;
    if (i / 3 % 4 == 3) word = (word & 0x87FF87FF) | (i % 3 == 2 ? 0x00000000 : 0x08001800);
    out[i] = word;
  }
  return out;
}

TEST(EmulatorVectors, ComputeTheSameOfRandomBits) {
  if (!emulator::use_vectors()) GTEST_SKIP() << "this machine has no AVX2";
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  const auto numbers = inputs();
  const auto in = (*engine)->allocate(4 * numbers.size()), out = (*engine)->allocate(4 * words);
  ASSERT_TRUE(in && out);
  ASSERT_TRUE((*engine)->write(*in, std::as_bytes(std::span(numbers))));
  std::vector<std::string> texts = instructions();
  for (const std::string shift :
       {"shl.b16 hd, ha", "shl.b32 d, a", "shl.b64 xd, xa", "shr.u16 hd, ha", "shr.s16 hd, ha",
        "shr.u32 d, a", "shr.s32 d, a", "shr.u64 xd, xa", "shr.s64 xd, xa"})
    for (const char* amount : {"0", "7", "16", "32", "33", "64", "i"})  // i: the thread
      texts.push_back(fmt::format("{}, {}", shift, amount));
  for (const std::string& instruction : texts)
    for (const bool guard : {false, true}) {
      const auto fast = run(**engine, instruction, guard, *in, *out);
      const Vectors off(false);
      const auto slow = run(**engine, instruction, guard, *in, *out);
      ASSERT_EQ(fast.size(), slow.size());
      for (std::size_t i = 0; i < fast.size(); ++i)
        ASSERT_EQ(fast[i], slow[i])
            << instruction << std::hex << " a 0x" << numbers[3 * i] << " b 0x" << numbers[3 * i + 1]
            << " c 0x" << numbers[3 * i + 2];
    }
}

// Predicates of a whole warp are computed in vectors, those of some lanes one by one. The words use
// few bits: some are equal, some are NaN.
TEST(EmulatorVectors, WholeWarpsCompareAsTheirLanesDo) {
  auto engine = emulator::make_engine({});
  ASSERT_TRUE(engine);
  const auto numbers = inputs();
  const auto in = (*engine)->allocate(4 * numbers.size()), out = (*engine)->allocate(4 * words);
  ASSERT_TRUE(in && out);
  ASSERT_TRUE((*engine)->write(*in, std::as_bytes(std::span(numbers))));
  const auto results = [&](const std::string& type, bool apart) {
    std::string text = R"(and.b32 a, a, 0xFFF00000;
  and.b32 b, b, 0xFFF00000;
  mov.b64 xa, {b, a};
  mov.b64 xb, {a, b};
  shr.u32 high, a, 16;
  cvt.u16.u32 ha, high;
  shr.u32 high, b, 16;
  cvt.u16.u32 hb, high;
  .reg .pred o;
)";
    const bool is_float = type.find('f') != std::string::npos && type[0] != 'b';
    std::vector<std::string> names = {"eq", "ne"};
    if (type[0] != 'b') names.insert(names.end(), {"lt", "le", "gt", "ge"});
    if (is_float)
      names.insert(names.end(), {"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
    const bool wide = type.ends_with("64"), narrow = type.ends_with("16");
    const std::string operands = wide ? "o, xa, xb" : narrow ? "o, ha, hb" : "o, a, b";
    for (const std::string& name : names) {
      for (const std::string guard : {"@p ", "@!p "})
        if (apart || guard == "@p ")
          text += fmt::format("  {}setp.{}.{} {};\n", apart ? guard : "", name, type, operands);
      text += "  selp.b32 i, 1, 0, o;\n  shl.b32 d, d, 1;\n  or.b32 d, d, i;\n";
    }
    return run(**engine, text + "  mov.b64 xd, 0; mov.b16 hd, 0", false, *in, *out);
  };
  for (const std::string type :
       {"b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f16", "f32", "f64"}) {
    const auto together = results(type, false), apart = results(type, true);
    EXPECT_TRUE(together == apart) << type;
    EXPECT_GE(std::set(together.begin(), together.end()).size(), type[0] == 'f' ? 4u : 2u) << type;
  }
}

}  // namespace
}  // namespace tartan
