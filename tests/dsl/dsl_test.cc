// SPDX-License-Identifier: Apache-2.0
// The DSL: its choices, and its diagnostics for misuse.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <tuple>

#include "tests/support/engine.h"

namespace tartan {
namespace {

const Target sm_80 = *Target::parse("sm_80");
const Target sm_90a = *Target::parse("sm_90a");

Kernel one_warp(std::function<void(Builder&)> body) {
  return kernel("test", {.block = 32}, std::move(body));
}

// "line: message [id]" of each diagnostic, lines counted from `first`.
std::string complaints(const Kernel& kernel, const Target& target, int first) {
  const auto compiled = compile(kernel, target);
  if (compiled) return "compiled\n";
  std::string out;
  for (const Diag& diag : compiled.diags()) {
    EXPECT_TRUE(diag.place.file.ends_with("dsl_test.cc")) << to_string(diag);
    out += std::to_string(diag.place.line - first) + ": " + diag.message + " [" +
           std::string(diag.id) + "]\n";
  }
  // Messages that name another line of this file count from `first`, too.
  const std::string file = __FILE__ ":";
  for (std::size_t at = out.find(file); at != std::string::npos; at = out.find(file)) {
    const std::size_t end = out.find_first_not_of("0123456789", at + file.size());
    const int line = std::stoi(out.substr(at + file.size(), end - at - file.size()));
    out.replace(at, end - at, "line " + std::to_string(line - first));
  }
  return out;
}

std::string taken(const Compiled& compiled, std::string_view what) {
  for (const Choice& choice : compiled.choices)
    if (choice.what == what) return choice.taken;
  return "nothing";
}

TEST(Dsl, ReportsSeveralErrorsInOneCompile) {
  const int first = __LINE__;
  const Kernel wrong = one_warp([](Builder& k) {
    auto a = k.global("A", f16, row_major(16, 16));
    auto b = k.global("A", f16, col_major(16, 8));
    auto s = k.shared("s", f16, row_major(16, 16));
    k.copy(a, s.tile({0, 0}, {16, 8}));
    auto fa = k.load(operand_a(m16n8k16, f16), s);
    auto fc = k.load(operand_a(m16n8k16, bf16), s);
    std::ignore = k.mma(fa, fa, zero(f32));
    k.store(a.tile({0, 2}, {16, 8}), k.mma(fa, fc, zero(f32)));
    k.write(s, 16, 0, k.lane());
    k.instruction("ldmatrix.sync.aligned.m8n8.x3.shared.b16", {k.address(s, 0, 0)});
    (void)b;
  });
  EXPECT_EQ(
      complaints(wrong, sm_80, first),
      "3: parameter A: name already used by a parameter or shared matrix of the kernel "
      "[duplicate-name]\n5: copy between different shapes: A is 16x16:(16,1) and s is 16x8:(16,1) "
      "[layout-mismatch]\n7: element type mismatch: A of m16n8k16 (bf16) has elements of bf16, s "
      "of f16 [layout-mismatch]\n8: wrong operand b of mma: expected the fragment B of m16n8k16 "
      "(f16), found A of m16n8k16 (f16) (made at line 6); load it as operand_b(m16n8k16, f16) "
      "[wrong-role]\n9: tile 2 along the columns is out of bounds: A has 2 tiles of 8 "
      "[tile-bounds]\n10: row 16 is out of bounds of s, which is 16x16:(16,1) [tile-bounds]\n11: "
      "unknown instruction ldmatrix.sync.aligned.m8n8.x3.shared.b16; the nearest on sm_80, PTX 7.8 "
      "is ldmatrix.sync.aligned.m8n8.x1.shared.b16 [unknown-form]\n");
}

TEST(Dsl, RejectsTilesThatDoNotFit) {
  const int first = __LINE__;
  const Kernel wrong = one_warp([](Builder& k) {
    auto a = k.shared("A", f16, row_major(24, 16));
    auto s = k.shared("s", f16, row_major(16, 16));
    k.load(operand_a(m16n8k16, f16), a.tile({0, 0}, {16, 16}));
    k.load(operand_b(m16n8k16, f16), s.tile({0, 0}, {8, 16}));
    k.copy(k.global("G", f16, row_major(24, 16)).tile({0, 0}, {0, 16}), s);
  });
  EXPECT_EQ(complaints(wrong, sm_80, first),
            "4: tiles of 16 rows do not divide the 24 of A (24x16:(16,1)) [tile-divide]\n5: wrong "
            "tile shape for B of m16n8k16 (f16): expected 16x8 elements, s is 8x16:(16,1); "
            "s.transposed() has that shape [layout-mismatch]\n6: number of rows of a tile: "
            "expected a positive constant [tile-divide]\n");
}

TEST(Dsl, RejectsInvalidKernels) {
  const auto nothing = [](Builder&) {};
  const auto text = [](const Kernel& kernel, const Target& target) {
    const auto compiled = compile(kernel, target);
    return compiled
               ? std::string("compiled")
               : compiled.diags()[0].message + " [" + std::string(compiled.diags()[0].id) + "]";
  };
  EXPECT_EQ(text(kernel("ns::k<int>", {.block = 32}, nothing), sm_80),
            "kernel 'ns::k<int>': expected letters, digits, _ and $, not starting with a digit, "
            "and not _, $ or WARP_SZ [kernel-name]");
  EXPECT_EQ(text(kernel("", {.block = 32}, nothing), sm_80),
            "kernel '': expected letters, digits, _ and $, not starting with a digit, and not _, $ "
            "or WARP_SZ [kernel-name]");
  EXPECT_EQ(
      text(kernel("k", {.block = 48}, nothing), sm_80),
      "kernel k: block size: expected 32 to 1024 threads in whole warps, found 48 [launch-bounds]");
  EXPECT_EQ(text(kernel("k", {.block = 32}, nothing), Target({90, 'a'}, {7, 0})),
            "target sm_90a requires PTX 8.0 to 9.5, found 7.0 [target-version]");
  EXPECT_EQ(text(one_warp([](Builder& k) { k.shared("big", f32, row_major(256, 256)); }), sm_80),
            "kernel test uses 262144 bytes of shared memory: a thread block of sm_80 has at most "
            "166912 [shared-size]");
  // Rings of one part for each stage, and of four.
  EXPECT_NE(text(one_warp([](Builder& k) {
                   k.shared("parts", f32, RingLayout{row_major(32, 32), 36});
                   k.shared("scales", f32, RingLayout{row_major(32, 32), 9});
                 }),
                 sm_80)
                .find("; 8 stages instead of 9 fit [shared-size]"),
            std::string::npos);
}

TEST(Dsl, TargetsWithoutTheInstruction) {
  const int first = __LINE__;
  const Kernel sixteen = one_warp([](Builder& k) {
    auto s = k.shared("s", f16, row_major(16, 16));
    auto a = k.load(operand_a(m16n8k16, f16), s),
         b = k.load(operand_b(m16n8k16, f16), s.tile({0, 0}, {16, 8}));
    std::ignore = k.mma(a, b, zero(f32));
  });
  EXPECT_EQ(complaints(sixteen, *Target::parse("sm_75"), first),
            "5: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 requires sm_80 and PTX 7.0, the "
            "target is sm_75, PTX 7.8; the nearest supported form is "
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 [no-instruction]\n");
}

TEST(Dsl, RejectsValuesOfAnotherKernel) {
  Fragment kept;
  Scalar number;
  Shared tile;
  ASSERT_TRUE(compile(one_warp([&](Builder& k) {
                        tile = k.shared("s", f16, row_major(16, 16));
                        kept = k.load(operand_a(m16n8k16, f16), tile);
                        number = k.lane();
                      }),
                      sm_80));
  const int first = __LINE__;
  const Kernel thief = one_warp([&](Builder& k) {
    auto s = k.shared("s", f16, row_major(16, 16));
    auto b = k.load(operand_b(m16n8k16, f16), s.tile({0, 0}, {16, 8}));
    std::ignore = k.mma(kept, b, zero(f32));
    k.write(tile, 0, 0, 1);
    k.loop(0, number, 1, [](Scalar) {});
  });
  EXPECT_EQ(complaints(thief, sm_80, first),
            "4: operand a belongs to another kernel [foreign-value]\n"
            "5: s belongs to another kernel [foreign-value]\n"
            "6: the loop's bound belongs to another kernel [foreign-value]\n");
}

TEST(Dsl, ScalarTypes) {
  const int first = __LINE__;
  const Kernel wrong = one_warp([](Builder& k) {
    auto x = k.param("x", f32), n = k.param("n", u32);
    auto y = x + n;
    k.when(n, [] {});
    k.write(k.global("out", f16, row_major(1, 1)), 0, 0, x);
    k.param("h", f16);
    (void)y;
  });
  EXPECT_EQ(complaints(wrong, sm_80, first),
            "3: no such operation on operands of type f32 and u32; convert() one of them "
            "[scalar-type]\n4: expected a condition of type pred, such as a comparison, found a "
            "value of type u32 [scalar-type]\n5: element type mismatch: out has elements of f16, "
            "the value is f32; convert() it [scalar-type]\n6: parameter h: expected a scalar of "
            "type u32, s32, u64, s64, f32 or f64, found f16 [scalar-type]\n");
}

TEST(Dsl, ChoosesTransFromTheLayout) {
  for (const bool is_row_major : {true, false}) {
    const auto compiled =
        compile(one_warp([&](Builder& k) {
                  auto s = k.shared("s", f16, is_row_major ? row_major(16, 16) : col_major(16, 16));
                  k.load(operand_a(m16n8k16, f16), s);
                  k.load(operand_b(m16n8k16, f16), s.tile({0, 1}, {16, 8}));
                }),
                sm_80);
    ASSERT_TRUE(compiled);
    const std::string plain = ".shared.b16", trans = ".trans.shared.b16";
    EXPECT_EQ(taken(*compiled, "load A of m16n8k16 (f16) from s"),
              "ldmatrix.sync.aligned.m8n8.x4" + (is_row_major ? plain : trans));
    EXPECT_EQ(taken(*compiled, "load B of m16n8k16 (f16) from s"),
              "ldmatrix.sync.aligned.m8n8.x2" + (is_row_major ? trans : plain));
  }
}

TEST(Dsl, ExplainsRefusedChoices) {
  const auto compiled = compile(one_warp([](Builder& k) {
                                  auto odd = k.shared("odd", f16, row_major(16, 16, 18));
                                  auto g = k.global("G", f32, row_major(16, 8));
                                  k.load(operand_a(m16n8k16, f16), odd);
                                  k.store(g, k.load(operand_c(m16n8k16, f32), g));
                                }),
                                sm_80);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  const std::string why = explain(compiled->choices);
  EXPECT_NE(
      why.find(
          "not ldmatrix: its rows must be 16-byte aligned, 16x16:(18,1) guarantees only 4 bytes"),
      std::string::npos)
      << why;
  EXPECT_EQ(compiled->ptx.find("ldmatrix"), std::string::npos);
}

TEST(Dsl, StoresHalvesByStmatrixIfAvailable) {
  const Kernel kernel = one_warp([](Builder& k) {
    auto s = k.shared("s", f16, row_major(16, 16));
    auto out = k.shared("out", f16, row_major(16, 8));
    auto d = k.mma(k.load(operand_a(m16n8k16, f16), s),
                   k.load(operand_b(m16n8k16, f16), s.tile({0, 0}, {16, 8})), zero(f32));
    k.store(out, k.convert(d, f16));
  });
  const auto on_80 = compile(kernel, sm_80), on_90 = compile(kernel, sm_90a);
  ASSERT_TRUE(on_80 && on_90);
  EXPECT_EQ(taken(*on_80, "store C of m16n8k16 (f16) to out"), "st.shared of 32 bits");
  EXPECT_EQ(taken(*on_90, "store C of m16n8k16 (f16) to out"),
            "stmatrix.sync.aligned.m8n8.x2.shared.b16");
}

TEST(Dsl, CppLinesReachThePtx) {
  const int first = __LINE__;
  const auto compiled = compile(one_warp([](Builder& k) {
                                  auto s = k.shared("s", f16, row_major(16, 16));
                                  k.load(operand_a(m16n8k16, f16), s);
                                  k.barrier();
                                }),
                                sm_80);
  ASSERT_TRUE(compiled);
  EXPECT_NE(compiled->ptx.find("\t.loc\t1 " + std::to_string(first + 4) + " "), std::string::npos)
      << compiled->ptx;
  EXPECT_NE(compiled->ptx.find("dsl_test.cc"), std::string::npos);
}

// Swizzled, padded, transposed and offset tiles on the emulator: every element must arrive where
// the layout puts it.
TEST(Dsl, LayoutsMoveEveryElement) {
  Device device = test::open_engine();
  const Layout layouts[] = {row_major(64, 64),
                            col_major(64, 64),
                            row_major(64, 64, 72),
                            row_major(64, 64).swizzled({3, 3, 3}),
                            col_major(64, 64).swizzled({3, 3, 3}),
                            row_major(64, 64).swizzled({2, 3, 3})};
  for (const Layout& layout : layouts) {
    SCOPED_TRACE(layout.text());
    const auto compiled =
        compile(kernel("layouts", {.block = 64},
                       [&](Builder& k) {
                         auto in = k.global("in", u16, row_major(64, 64));
                         auto out = k.global("out", u16, row_major(64, 64));
                         auto s = k.shared("s", u16, layout);
                         k.copy(in, s);
                         k.barrier();
                         // Quarters exchanged through sub-tiles whose places depend on the warp.
                         const Scalar other = 1 - k.warp();
                         k.when(k.warp() < 1, [&] { k.write(out, 32, 0, k.read(s, 0, 0)); });
                         k.loop(k.lane(), 32 * 64, 32, [&](Scalar i) {
                           auto from = s.tile({k.warp(), 0}, {32, 64});
                           auto to = out.tile({other, 0}, {32, 64});
                           k.write(to, i / 64, i % 64, k.read(from, i / 64, i % 64));
                         });
                       }),
                sm_90a);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    std::vector<std::uint16_t> values(64 * 64);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i * 37);
    Buffer in = *device.allocate(8192), out = *device.allocate(8192);
    ASSERT_TRUE(in.write(values));
    LoadedKernel loaded = *device.load(compiled->ptx)->kernel("layouts");
    ASSERT_TRUE(loaded.launch({.block = {64}}, Arguments().add(in).add(out)));
    const auto status = device.synchronize();
    ASSERT_TRUE(status) << status.diags().text();
    const std::vector<std::uint16_t> got = *out.read_all<std::uint16_t>();
    for (int r = 0; r < 64; ++r)
      for (int c = 0; c < 64; ++c)
        ASSERT_EQ(got[r * 64 + c], values[(r + 32) % 64 * 64 + c]) << r << "," << c;
  }
}

// read_if(): the element, or 0 and no access, of every width, in global and shared memory. The
// buffer ends where the matrix does, so a read beyond it would be a memory-fault.
TEST(Dsl, MaskedReadsGiveZeroAndTouchNothing) {
  Device device = test::open_engine();
  for (const Type type : {u8, Type::e4m3, f16, s32, f32, s64, f64}) {
    SCOPED_TRACE(name(type));
    const std::size_t bytes = static_cast<std::size_t>(bits(type)) / 8;
    const auto compiled =
        compile(kernel("masked", {.block = 32},
                       [&](Builder& k) {
                         const Scalar n = k.param("n", u32), i = k.thread();
                         auto in = k.global("in", type, row_major(1, n));
                         auto out = k.global("out", type, row_major(4, 32));
                         auto s = k.shared("s", type, row_major(1, 16));
                         k.when(i < 16, [&] { k.write(s, 0, i, k.read_if(in, 0, i, i < n)); });
                         k.barrier();
                         k.write(out, 0, i, k.read_if(in, 0, i, i < n));
                         k.write(out, 1, i, k.read_if(s, 0, i, (i % 2 == 0) & (i < 16)));
                         k.write(out, 2, i, k.read_if(in, 0, i % 16, 1));
                         k.write(out, 3, i, k.read_if(in, 0, i, 0));
                       }),
                sm_80);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    constexpr std::size_t n = 21;
    std::vector<std::uint8_t> values(n * bytes);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i + 1);
    Buffer in = *device.allocate(values.size()), out = *device.allocate(4 * 32 * bytes);
    ASSERT_TRUE(in.write(values));
    LoadedKernel loaded = *device.load(compiled->ptx)->kernel("masked");
    ASSERT_TRUE(loaded.launch({.block = {32}},
                              Arguments().add(static_cast<std::uint32_t>(n)).add(in).add(out)));
    const auto status = device.synchronize();
    ASSERT_TRUE(status) << status.diags().text();
    const auto got = *out.read_all<std::uint8_t>();
    for (std::size_t i = 0; i < 32; ++i)
      for (std::size_t byte = 0; byte < bytes; ++byte) {
        const auto value = [&](std::size_t of) { return values[of * bytes + byte]; };
        const auto at = [&](std::size_t row) { return got[(row * 32 + i) * bytes + byte]; };
        ASSERT_EQ(at(0), i < n ? value(i) : 0) << i;
        ASSERT_EQ(at(1), i % 2 == 0 && i < 16 ? value(i) : 0) << i;
        ASSERT_EQ(at(2), value(i % 16)) << i;
        ASSERT_EQ(at(3), 0) << i;
      }
  }
}

// ldmatrix from swizzled shared memory gives the same fragments as from plain.
TEST(Dsl, SwizzledTilesMultiply) {
  Device device = test::open_engine();
  std::vector<float> results[2];
  for (const bool swizzled : {false, true}) {
    const auto compiled = compile(
        kernel("product", {.block = 32},
               [&](Builder& k) {
                 auto a = k.global("A", f16, row_major(16, 64));
                 auto d = k.global("D", f32, row_major(16, 8));
                 const Layout layout = row_major(16, 64);
                 auto s = k.shared("s", f16, swizzled ? layout.swizzled({3, 3, 3}) : layout);
                 k.copy(a, s);
                 k.barrier();
                 FragmentVariable acc = k.variable(operand_c(m16n8k16, f32));
                 for (int i = 0; i < 4; ++i)
                   acc = k.mma(
                       k.load(operand_a(m16n8k16, f16), s.tile({0, i}, {16, 16})),
                       k.load(operand_b(m16n8k16, f16), s.tile({0, i}, {8, 16}).transposed()), acc);
                 k.store(d, acc);
               }),
        sm_90a);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    std::vector<std::uint16_t> values(16 * 64);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::uint16_t>(0x3C00 + i * 7 % 1024);
    Buffer in = *device.allocate(2048), out = *device.allocate(512);
    ASSERT_TRUE(in.write(values));
    LoadedKernel loaded = *device.load(compiled->ptx)->kernel("product");
    ASSERT_TRUE(loaded.launch({.block = {32}}, Arguments().add(in).add(out)));
    ASSERT_TRUE(device.synchronize());
    results[swizzled] = *out.read_all<float>();
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0][0], 0);
}

}  // namespace
}  // namespace tartan
