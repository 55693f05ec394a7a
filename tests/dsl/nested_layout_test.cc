// SPDX-License-Identifier: Apache-2.0
// Matrices with nested rows and columns in kernels, on the emulator: the layout determines every
// element's address, and products must not depend on the operands' layouts.
#include <gtest/gtest.h>

#include <numeric>

#include <tartan/tartan.h>

#include "tests/support/engine.h"

namespace tartan {
namespace {

const Target sm_80 = *Target::parse("sm_80");
const Target sm_90a = *Target::parse("sm_90a");

using Halves = std::vector<std::uint16_t>;

Halves numbered(std::size_t count) {
  Halves out(count);
  std::iota(out.begin(), out.end(), std::uint16_t{0});
  return out;
}

// f16 numbers between 1 and 2.
Halves fractions(std::size_t count, int step) {
  Halves out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::uint16_t>(0x3C00 + i * static_cast<std::size_t>(step) % 1024);
  return out;
}

// The contents of the kernel's last parameter, `count` elements of T.
template <typename T>
std::vector<T> run(const Compiled& compiled, const std::vector<Halves>& inputs, std::size_t count) {
  Device device = test::open_engine();
  auto module = device.load(compiled.ptx);
  EXPECT_TRUE(module) << module.diags().text();
  Arguments arguments;
  std::vector<Buffer> buffers;
  for (const Halves& input : inputs) {
    buffers.push_back(*device.allocate(2 * input.size()));
    EXPECT_TRUE(buffers.back().write(input));
    arguments.add(buffers.back());
  }
  Buffer out = *device.allocate(count * sizeof(T));
  EXPECT_TRUE(out.write(std::vector<T>(count)));
  arguments.add(out);
  LoadedKernel kernel = *module->kernel(compiled.name);
  const auto launched =
      kernel.launch({.block = {static_cast<unsigned>(compiled.block)}}, arguments);
  EXPECT_TRUE(launched) << launched.diags().text();
  const auto status = device.synchronize();
  EXPECT_TRUE(status) << status.diags().text();
  return *out.read_all<T>();
}

std::string taken(const Compiled& compiled, std::string_view what) {
  for (const Choice& choice : compiled.choices)
    if (choice.what.starts_with(what)) return choice.taken;
  return "nothing";
}

TEST(NestedMatrix, TheSameAsItIsWritten) {
  EXPECT_EQ(blocked(row_major(8, 8), row_major(8, 8)).text(), "((8,8),(8,8)):((8,512),(1,64))");
  EXPECT_EQ(nested("((8,8),(8,8)):((8,512),(1,64))").text(), "((8,8),(8,8)):((8,512),(1,64))");
  EXPECT_EQ(blocked(row_major(8, 8), col_major(8, 4)).text(), "(64,(8,4)):(8,(1,512))");
  EXPECT_EQ(blocked(col_major(16, 8), row_major(2, 2, 3)).text(), "((16,2),16):((1,384),16)");
  EXPECT_EQ(blocked(blocked(row_major(2, 2), row_major(2, 2)), row_major(2, 2)).text(),
            "((2,2,2),(2,2,2)):((2,8,32),(1,4,16))");
  EXPECT_EQ(nested("(64,32):(32,1) swizzle<2,3,3>").text(), "64x32:(32,1) swizzle<2,3,3>");
  EXPECT_EQ(nested("((8,8),(4,8)):((32,256),(1,4))").text(), "64x32:(32,1)");
  EXPECT_EQ(nested("((8,8),(8,8)):((8,512),(1,64))").transposed().text(),
            "((8,8),(8,8)):((1,64),(8,512))");
  EXPECT_EQ(nested("((8,8),(8,8)):((8,512),(1,64))").extent(), 4096);
  EXPECT_EQ(nested("8:1").text(), "8:1: expected two modes, rows and columns, found 1");
  EXPECT_EQ(nested("(8,8").text(), "(8,8: column 5: expected , or ), found the end");
}

TEST(NestedMatrix, TilesBeginBetweenBlocks) {
  const Layout matrix = nested("((8,8),(8,8)):((8,512),(1,64))");
  const auto tile = [&](int rows, int cols) {
    const auto found = matrix.tile(rows, cols);
    return found ? found->text() : "none";
  };
  EXPECT_EQ(tile(8, 8), "8x8:(8,1)");
  EXPECT_EQ(tile(16, 16), "((8,2),(8,2)):((8,512),(1,64))");
  EXPECT_EQ(tile(64, 8), "((8,8),8):((8,512),1)");
  EXPECT_EQ(tile(4, 2), "4x2:(8,1)");
  EXPECT_EQ(tile(1, 64), "(1,(8,8)):(8,(1,64))");
  EXPECT_EQ(tile(12, 8), "none");
  EXPECT_EQ(tile(8, 3), "none");
  EXPECT_EQ(nested("((2,4,8),8):((1,64,2),512)").tile(8, 8)->text(), "((2,4),8):((1,64),512)");
  EXPECT_EQ(nested("((2,4,8),8):((1,64,2),512)").tile(4, 8)->text(), "((2,2),8):((1,64),512)");
  EXPECT_FALSE(nested("((2,4,8),8):((1,64,2),512)").tile(6, 8));
}

const char* const layouts_64x64[] = {"((8,8),(8,8)):((8,512),(1,64))",
                                     "((8,8),(8,8)):((8,64),(1,512))",
                                     "((8,8),(8,8)):((1,64),(8,512))",
                                     "((16,4),(32,2)):((32,1024),(1,512))",
                                     "((8,8),(8,8)):((8,576),(1,72))",
                                     "((4,16),(4,16)):((4,256),(1,16))",
                                     "((2,32),(2,32)):((1,4),(2,128))",
                                     "(64,(2,2,16)):(64,(2,1,4))",
                                     "((8,8),(16,4)):((64,512),(1,16)) swizzle<3,3,3>",
                                     "((16,4),(64,1)):((64,1024),(1,0)) swizzle<3,3,3>"};

// The address of each element is the one that the algebra computes.
TEST(NestedMatrix, AddressesMatchTheLayout) {
  for (const char* text : layouts_64x64) {
    SCOPED_TRACE(text);
    const auto compiled = compile(kernel("addresses", {.block = 64},
                                         [&](Builder& k) {
                                           auto out = k.global("out", u32, row_major(64, 64));
                                           auto s = k.shared("s", u16, nested(text));
                                           const Scalar base = k.address(s, 0, 0);
                                           for (int c = 0; c < 64; c += 16)
                                             k.loop(0, 16, 1, [&](Scalar i) {
                                               k.write(out, k.thread(), i + c,
                                                       k.address(s, k.thread(), i + c) - base);
                                             });
                                         }),
                                  sm_80);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    const auto got = run<std::uint32_t>(*compiled, {}, 64 * 64);
    const NestedLayout layout = *NestedLayout::parse(text);
    for (int r = 0; r < 64; ++r)
      for (int c = 0; c < 64; ++c)
        ASSERT_EQ(got[static_cast<std::size_t>(r * 64 + c)], 2 * layout({r, c})) << r << "," << c;
  }
}

// In through a copy; out through tiles whose places depend on the warp, or through a copy.
TEST(NestedMatrix, CopiesAndTilesMoveEveryElement) {
  const Halves values = numbered(64 * 64);
  for (const char* text : layouts_64x64)
    for (const bool copied : {false, true}) {
      SCOPED_TRACE(text);
      const auto compiled = compile(kernel("moves", {.block = 64},
                                           [&](Builder& k) {
                                             auto in = k.global("in", u16, row_major(64, 64));
                                             auto out = k.global("out", u16, row_major(64, 64));
                                             auto s = k.shared("s", u16, nested(text));
                                             k.copy(in, s);
                                             k.barrier();
                                             if (copied) return k.copy(s, out);
                                             k.loop(k.lane(), 32 * 32, 32, [&](Scalar i) {
                                               for (int half = 0; half < 2; ++half) {
                                                 auto from = s.tile({k.warp(), half}, {32, 32});
                                                 auto to = out.tile({1 - k.warp(), half}, {32, 32});
                                                 k.write(to, i / 32, i % 32,
                                                         k.read(from.transposed(), i % 32, i / 32));
                                               }
                                             });
                                           }),
                                    sm_80);
      ASSERT_TRUE(compiled) << compiled.diags().text();
      const Halves got = run<std::uint16_t>(*compiled, {values}, 64 * 64);
      for (std::size_t r = 0; r < 64; ++r)
        for (std::size_t c = 0; c < 64; ++c)
          ASSERT_EQ(got[r * 64 + c], values[(copied ? r : (r + 32) % 64) * 64 + c])
              << r << "," << c;
    }
}

TEST(NestedMatrix, CopyWidthFollowsContiguity) {
  const auto width = [](const char* text, bool from_columns = false) {
    const auto compiled =
        compile(kernel("copy", {.block = 64},
                       [&](Builder& k) {
                         auto in = k.global("in", u16,
                                            from_columns ? col_major(64, 64) : row_major(64, 64));
                         k.copy(in, k.shared("s", u16, nested(text)));
                       }),
                sm_80);
    return compiled ? taken(*compiled, "copy in to s") : compiled.diags().text();
  };
  EXPECT_EQ(width("((8,8),(8,8)):((8,512),(1,64))"), "16 bytes per access");
  EXPECT_EQ(width("((8,8),(8,8)):((8,576),(1,72))"), "16 bytes per access");
  EXPECT_EQ(width("((8,8),(8,8)):((12,768),(1,96))"), "8 bytes per access");
  EXPECT_EQ(width("((4,16),(4,16)):((4,256),(1,16))"), "8 bytes per access");
  EXPECT_EQ(width("(64,(2,32)):(2,(1,128))"), "4 bytes per access");
  EXPECT_EQ(width("(64,(2,2,16)):(64,(2,1,4))"), "2 bytes per access");
  EXPECT_EQ(width("((8,8),(8,8)):((1,64),(8,512))"), "2 bytes per access");
  EXPECT_EQ(width("((8,8),(8,8)):((1,64),(8,512))", true), "16 bytes per access");
}

struct Product {
  const char *a, *b;  // B as it is stored: n x k
  const char *load_a, *load_b;
};

// A product of blocked operands has the same bits as one of row-major operands.
TEST(NestedMatrix, ProductsDoNotDependOnTheLayout) {
  const auto product = [](const Product& product) {
    return compile(
        kernel("product", {.block = 32},
               [&](Builder& k) {
                 auto a = k.global("A", f16, row_major(16, 64));
                 auto b = k.global("B", f16, row_major(8, 64));
                 auto d = k.global("D", f32, row_major(16, 8));
                 auto sa = k.shared("sa", f16, nested(product.a));
                 auto sb = k.shared("sb", f16, nested(product.b));
                 k.copy(a, sa);
                 k.copy(b, sb);
                 k.barrier();
                 FragmentVariable sum = k.variable(operand_c(m16n8k16, f32));
                 for (int i = 0; i < 4; ++i)
                   sum = k.mma(
                       k.load(operand_a(m16n8k16, f16), sa.tile({0, i}, {16, 16})),
                       k.load(operand_b(m16n8k16, f16), sb.tile({0, i}, {8, 16}).transposed()),
                       sum);
                 k.store(d, sum);
               }),
        sm_90a);
  };
  const std::string x4 = "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
                    x2 = "ldmatrix.sync.aligned.m8n8.x2.shared.b16",
                    x4_trans = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
                    x2_trans = "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16";
  const Halves a = fractions(16 * 64, 7), b = fractions(8 * 64, 11);
  std::vector<float> expected;
  for (const auto& [layout_a, layout_b, load_a, load_b] :
       {Product{"(16,64):(64,1)", "(8,64):(64,1)", x4.c_str(), x2.c_str()},
        Product{"((8,2),(8,8)):((8,512),(1,64))", "(8,(8,8)):(8,(1,64))", x4.c_str(), x2.c_str()},
        Product{"((8,2),(8,8)):((1,64),(8,128))", "(8,(8,8)):(1,(8,64))", x4_trans.c_str(),
                x2_trans.c_str()},
        Product{"((8,2),(32,2)):((32,256),(1,512)) swizzle<2,3,3>",
                "(8,(16,4)):(16,(1,128)) swizzle<1,3,3>", x4.c_str(), x2.c_str()},
        Product{"((8,2),(4,16)):((4,512),(1,32))", "(8,(2,32)):(2,(1,16))", "ld.shared of 32 bits",
                "ld.shared of 32 bits"},
        Product{"(16,(2,32)):(2,(32,64))", "((2,4),64):((1,128),2)", "ld.shared of 16 bits",
                "ld.shared of 16 bits"}}) {
    SCOPED_TRACE(layout_a);
    const auto compiled = product({layout_a, layout_b, load_a, load_b});
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_EQ(taken(*compiled, "load A"), load_a);
    EXPECT_EQ(taken(*compiled, "load B"), load_b);
    const auto got = run<float>(*compiled, {a, b}, 16 * 8);
    if (expected.empty()) expected = got;
    EXPECT_EQ(got, expected);
  }
  EXPECT_GT(expected[0], 64);  // 64 products of numbers between 1 and 2
}

// Fragments are stored to blocks by stmatrix, by pairs or element by element.
TEST(NestedMatrix, StoredFragmentsArrive) {
  const std::pair<const char*, const char*> cases[] = {
      {"((8,2),8):((8,64),1)", "stmatrix.sync.aligned.m8n8.x2.shared.b16"},
      {"((4,4),(2,4)):((2,32),(1,8))", "st.shared of 32 bits"},
      {"((2,8),(2,4)):((1,16),(2,4))", "st.shared of 16 bits"}};
  const Halves values = fractions(16 * 8, 3);
  for (const auto& [text, how] : cases) {
    SCOPED_TRACE(text);
    const auto compiled = compile(kernel("stores", {.block = 32},
                                         [&, text = text](Builder& k) {
                                           auto in = k.global("in", f16, row_major(16, 8));
                                           auto out = k.global("out", f16, row_major(16, 8));
                                           auto s = k.shared("s", f16, nested(text));
                                           k.store(s, k.load(operand_c(m16n8k16, f16), in));
                                           k.barrier();
                                           k.copy(s, out);
                                         }),
                                  sm_90a);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_EQ(taken(*compiled, "store C"), how);
    EXPECT_EQ(run<std::uint16_t>(*compiled, {values}, 16 * 8), values);
  }
}

// A pipeline over a ring of blocked matrices, multiplied by four warps.
TEST(NestedMatrix, TiledProductsOfBlocks) {
  constexpr Tile tile{64, 64, 32, 2, 2};
  const auto product = [&](bool in_blocks) {
    return compile(
        kernel("tiles", {.block = tile.threads()},
               [&](Builder& k) {
                 auto a = k.global("A", f16, row_major(64, 128));
                 auto b = k.global("B", f16, row_major(128, 64));
                 auto d = k.global("D", f32, row_major(64, 64));
                 const TiledMma mma = k.tiled_mma(m16n8k16(f16, f16, f32), tile);
                 RingLayout layout_a = mma.shared_a(2), layout_b = mma.shared_b(2, Major::row);
                 if (in_blocks) {
                   layout_a.layout = blocked(row_major(8, 8), row_major(8, 4));
                   layout_b.layout = blocked(row_major(8, 8), col_major(4, 8));
                 }
                 Ring sa = k.shared("sa", f16, layout_a), sb = k.shared("sb", f16, layout_b);
                 Accumulator sum = mma.accumulator();
                 k.pipeline(
                     {.stages = 2}, 4,
                     [&](Scalar t, Scalar stage) {
                       k.copy(a.tile({0, t}, {64, 32}), sa[stage]);
                       k.copy(b.tile({t, 0}, {32, 64}), sb[stage]);
                     },
                     [&](Scalar, Scalar stage) { sum = mma(sum, sa[stage], sb[stage]); });
                 k.store(d, sum);
               }),
        sm_80);
  };
  const Halves a = fractions(64 * 128, 7), b = fractions(128 * 64, 11);
  std::vector<float> results[2];
  for (const bool in_blocks : {false, true}) {
    const auto compiled = product(in_blocks);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_NE(taken(*compiled, "load A").find("ldmatrix"), std::string::npos);
    EXPECT_NE(taken(*compiled, "load B").find("ldmatrix"), std::string::npos);
    EXPECT_EQ(taken(*compiled, "copy A to sa"), "cp.async.cg, 16 bytes per access");
    results[in_blocks] = run<float>(*compiled, {a, b}, 64 * 64);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_GT(results[0][0], 128);
}

// Packed weights, a matrix for each block of the grid: only the launch knows how many blocks each
// has.
TEST(NestedMatrix, BlocksOfARunTimeMatrix) {
  constexpr std::uint32_t rows = 40, cols = 48;
  const auto compiled =
      compile(kernel("unpack", {.block = 32},
                     [&](Builder& k) {
                       auto m = k.param("m", u32);
                       auto n = k.param("n", u32);
                       const Layout layout = blocked(row_major(8, 8), row_major(m, n));
                       EXPECT_EQ(layout.text(), "((8,?),(8,?)):((8,?),(1,64))");
                       auto packed = k.global("packed", u16, layout).matrix(k.block_z());
                       auto out = k.global("out", u16, row_major(m * 8, n * 8)).matrix(k.block_z());
                       auto s = k.shared("s", u16, blocked(row_major(8, 8), row_major(2, 2)));
                       // 16 x 16 at a time; the last row of tiles is ragged.
                       k.loop(0, (m + 1) / 2, 1, [&](Scalar y) {
                         k.loop(0, (n + 1) / 2, 1, [&](Scalar x) {
                           k.copy(packed.tile({y, x}, {16, 16}), s);
                           k.barrier();
                           k.copy(s, out.tile({y, x}, {16, 16}));
                           k.barrier();
                         });
                       });
                     }),
              sm_80);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(taken(*compiled, "copy packed to s"), "16 bytes per access");

  Device device = test::open_engine();
  const NestedLayout layout =
      *blocked_product(*NestedLayout::parse("(8,8):(8,1)"), *NestedLayout::parse("(5,6):(6,1)"));
  ASSERT_EQ(layout.text(), "((8,5),(8,6)):((8,384),(1,64))");
  Halves packed(2 * rows * cols), expected(2 * rows * cols);
  for (std::uint32_t r = 0; r < rows; ++r)
    for (std::uint32_t c = 0; c < cols; ++c)
      for (std::uint32_t z = 0; z < 2; ++z)
        expected[(z * rows + r) * cols + c] =
            packed[z * rows * cols + static_cast<std::size_t>(layout({r, c}))] =
                static_cast<std::uint16_t>((z * rows + r) * cols + c);
  Buffer in = *device.allocate(4 * rows * cols), out = *device.allocate(4 * rows * cols);
  ASSERT_TRUE(in.write(packed));
  LoadedKernel loaded = *device.load(compiled->ptx)->kernel("unpack");
  ASSERT_TRUE(loaded.launch({.grid = {1, 1, 2}, .block = {32}},
                            Arguments().add(rows / 8).add(cols / 8).add(in).add(out)));
  const auto status = device.synchronize();
  ASSERT_TRUE(status) << status.diags().text();
  EXPECT_EQ(*out.read_all<std::uint16_t>(), expected);
}

TEST(NestedMatrix, RejectsInvalidLayouts) {
  const auto complaints = [](const std::function<void(Builder&)>& body) {
    const auto compiled = compile(kernel("refused", {.block = 32}, body), sm_80);
    std::string out;
    if (!compiled)
      for (const Diag& diag : compiled.diags())
        out += diag.message + " [" + std::string(diag.id) + "]\n";
    return out;
  };
  EXPECT_EQ(complaints([](Builder& k) {
              auto s = k.shared("s", f16, nested("((8,8),(8,8)):((8,512),(1,64))"));
              s.tile({1, 1}, {4, 4});
              s.tile({1, 1}, {32, 32});
              s.tile({0, 3}, {64, 1});
              auto t = k.shared("t", f16, nested("((6,8),16):((16,96),1)").transposed());
              (void)t;
              auto u = k.shared("u", f16, nested("((6,8),16):((16,100),1)"));
              u.tile({1, 0}, {4, 16});
            }),
            "tiles of 4x16 elements do not divide the blocks of u (((6,8),16):((16,100),1)) "
            "[tile-divide]\n");
  EXPECT_EQ(complaints([](Builder& k) {
              k.shared("s", f16, nested("((8,8),(8,8)):((8,512),(1,64)"));
              k.global("g", f16, nested("(8,8,8)"));
              k.shared("t", f16, blocked(row_major(8, 8).swizzled({1, 3, 3}), row_major(2, 2)));
              k.shared("u", f16, blocked(row_major(k.param("m", u32), 8), row_major(2, 2)));
            }),
            "s: ((8,8),(8,8)):((8,512),(1,64): column 30: expected , or ), found the end "
            "[layout-mismatch]\ng: (8,8,8):(1,8,64): expected two modes, rows and columns, found 3 "
            "[layout-mismatch]\nt: blocked: a block is swizzled; swizzle the whole matrix instead "
            "[layout-mismatch]\nu: blocked: expected a block of constant shape, found ?x8:(8,1) "
            "[layout-mismatch]\n");
  EXPECT_EQ(complaints([](Builder& k) {
              auto s = k.shared("s", f16, blocked(row_major(8, 8), row_major(2, 2)));
              k.load(operand_a(wmma_m16n16k16, f16), s);
            }),
            "wmma.load cannot load A of wmma m16n16k16 (f16) from "
            "((8,2),(8,2)):((8,128),(1,64)) [no-instruction]\n");
}

}  // namespace
}  // namespace tartan
