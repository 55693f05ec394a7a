// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma.ws against a model written apart: layouts D, E and G, A in shared and in tensor
// memory, sparse A, masks and shifts of B's columns; its mistakes. TARTAN_TENSOR_CASES asks for so
// many random cases of each kind.
#include "tests/emulator/tensor_weights.h"

#include <gtest/gtest.h>

namespace tartan::test::tensor {
namespace {

struct Kind {
  std::string kind;
  std::vector<std::string> types, results;
};
const Kind kinds[] = {
    {"f16", {"f16", "bf16"}, {"f32", "f16"}},
    {"tf32", {"tf32"}, {"f32"}},
    {"f8f6f4", {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"}, {"f32", "f16"}},
    {"i8", {"u8", "s8"}, {"s32"}},
};

int below(std::mt19937& random, int count) {
  return static_cast<int>(random() % static_cast<unsigned>(count));
}

Layout random_layout(std::mt19937& random, int container) {
  constexpr int widths[] = {0, 32, 64, 128};
  const bool mn_major = below(random, 2);
  return mn_major && container == 32 ? Layout{128, true}
                                     : Layout{widths[below(random, 4)], mn_major};
}

Zeros random_zeros(std::mt19937& random, int most_shift, int m) {
  constexpr int shifts[] = {0, 8, 16, 32};
  Zeros out{.given = true, .masks = below(random, 4) != 0};
  out.used = 1 + below(random, below(random, 2) ? 6 : 80);
  out.zeros = 1 + below(random, 6);
  for (int i = 0; i < 4; ++i) {
    out.first[i] = below(random, 2);
    out.start[i] = below(random, out.first[i] ? out.zeros : out.used);
  }
  out.shift = below(random, 1 + std::min(shifts[most_shift], m == 32 ? 16 : 32));
  return out;
}

Weights random_weights(const Kind& kind, std::mt19937& random, int m = 0) {
  Weights w;
  Gemm& g = w.gemm;
  const auto one_of = [&](const std::vector<std::string>& list) {
    return list[static_cast<std::size_t>(below(random, static_cast<int>(list.size())))];
  };
  g.kind = kind.kind;
  g.a = one_of(kind.types);
  g.b = kind.kind == "f16" ? g.a : one_of(kind.types);
  g.d = g.a == "bf16" ? "f32" : one_of(kind.results);
  g.m = m ? m : 32 << below(random, 3);
  g.n = 64 << below(random, 2);
  g.steps = 1 + below(random, 2);
  g.layout_a = random_layout(random, g.container(g.a));
  g.layout_b = random_layout(random, g.container(g.b));
  g.accumulates = below(random, 2);
  g.saturates = g.kind == "i8" && below(random, 2);
  g.negates_a = g.kind != "i8" && below(random, 4) == 0;
  g.a_in_tensor = below(random, 2);
  if (g.a_in_tensor) g.layout_a.mn_major = false;
  g.sparse = below(random, 3) == 0;
  if (g.sparse && g.layout_b.width == 32) g.layout_b.width = 64;
  w.most_shift = below(random, 4);
  if (below(random, 2)) w.zeros = random_zeros(random, w.most_shift, g.m);
  const char* const collectors[] = {"", ".collector::b0::fill", ".collector::b3::lastuse",
                                    ".collector::b1::discard"};
  w.collector = collectors[below(random, 4)];
  Gemm wide = g;
  wide.n += w.zeros.shift;
  fill(wide, random);
  const int n = g.n;
  // Each part of D may have its own.
  if (below(random, 2))
    for (int part = 0; part < w.parts(); ++part) {
      Gemm other = wide;
      fill(other, random);
      if (g.a_in_tensor) w.a_of_part.push_back(other.a_bits);
      if (g.sparse) w.metadata_of_part.push_back(other.metadata);
    }
  g = wide;
  g.n = n;
  return w;
}

std::string text(const Weights& w) {
  const Zeros& z = w.zeros;
  return fmt::format("{}, collector {}, mask {} 0x{:x} {}", text(w.gemm), w.collector, z.given,
                     z.bits(), w.mask());
}

TEST(EmulatorTensorWeights, EqualTheModelInRandomCases) {
  for (const Kind& kind : kinds) {
    std::mt19937 random(11);
    for (int i = 0; i < cases(6); ++i) {
      const Weights w = random_weights(kind, random);
      ASSERT_EQ(difference(w), "") << "case " << i << ": " << text(w);
    }
  }
}

TEST(EmulatorTensorWeights, EqualTheModelInEachLayoutAndSize) {
  std::mt19937 random(2);
  for (const int m : {32, 64, 128})
    for (const int n : {64, 128, 256}) {
      Weights w;
      w.gemm.m = m;
      w.gemm.n = n;
      w.gemm.steps = 2;
      fill(w.gemm, random);
      ASSERT_EQ(difference(w), "") << text(w);
    }
}

// Two products at once, as FlashMLA has them: each half of the lanes has an A of its own.
TEST(EmulatorTensorWeights, EachPartOfDHasItsOwnA) {
  std::mt19937 random(6);
  for (const int m : {32, 64}) {
    Weights w;
    w.gemm.m = m;
    w.gemm.n = 128;
    w.gemm.a_in_tensor = true;
    fill(w.gemm, random);
    for (int part = 0; part < w.parts(); ++part) {
      Gemm other = w.gemm;
      fill(other, random);
      w.a_of_part.push_back(other.a_bits);
    }
    ASSERT_EQ(difference(w), "") << text(w);
  }
}

// The examples of the manual (9.7.16.4.3).
TEST(EmulatorTensorWeights, MaskColumnsAsTheManualsExamples) {
  Zeros two{.given = true, .masks = true, .used = 4, .zeros = 3};
  EXPECT_EQ(two.of_part(0, 14), "00001110000111");
  Zeros three = two;
  three.first[0] = 1;
  EXPECT_EQ(three.of_part(0, 17), "11100001110000111");
  EXPECT_EQ(three.of_part(1, 17), "00001110000111000");
  Zeros four = two;
  four.first[0] = four.first[1] = 1;
  four.start[1] = 1;
  four.start[2] = 2;
  four.start[3] = 1;
  four.shift = 2;
  EXPECT_EQ(four.of_part(0, 14), "11100001110000");
  EXPECT_EQ(four.of_part(1, 13), "1100001110000");
  EXPECT_EQ(four.of_part(2, 12), "001110000111");
  EXPECT_EQ(four.of_part(3, 13), "0001110000111");
  std::mt19937 random(5);
  for (const auto& [m, zeros] : {std::pair(128, two), {64, three}, {32, four}}) {
    Weights w = random_weights(kinds[0], random, m);
    w.gemm = {.m = m, .n = 128 + zeros.shift};
    fill(w.gemm, random);
    w.gemm.n = 128;
    w.zeros = zeros;
    w.most_shift = 1;
    ASSERT_EQ(difference(w), "") << text(w);
  }
}

TEST(EmulatorTensorWeights, EqualTheModelUnderSchedules) {
  std::mt19937 random(3);
  for (const Kind& kind : kinds) {
    const Weights w = random_weights(kind, random);
    for (const char* schedule : {"1", "2"})
      ASSERT_EQ(difference(w, {.schedule = schedule, .checks = Checks::all}), "") << text(w);
  }
}

// ---- Mistakes.

struct Mistake {
  std::string from, to;  // in the kernel's text
  std::string rule, says;
};

void expect_mistakes(const Weights& w, std::initializer_list<Mistake> mistakes) {
  const Plan made = plan(w);
  for (const Mistake& each : mistakes) {
    std::string ptx = made.text;
    const std::size_t at = ptx.find(each.from);
    ASSERT_NE(at, std::string::npos) << each.from;
    ptx.replace(at, each.from.size(), each.to);
    const std::string found = findings_text(run_tensor(ptx, output_words(w), made.in));
    EXPECT_NE(found.find("[" + each.rule + "]"), std::string::npos) << each.to << "\n" << found;
    EXPECT_NE(found.find(each.says), std::string::npos) << each.to << "\n" << found;
  }
}

TEST(EmulatorTensorWeights, FindsMistakes) {
  std::mt19937 random(1);
  Weights w;
  w.gemm.m = 64;
  w.gemm.layout_a = w.gemm.layout_b = {128, false};
  w.gemm.a_in_tensor = true;
  w.zeros.given = true;
  w.most_shift = 1;
  fill(w.gemm, random);
  const std::uint32_t idesc = instruction_descriptor(w.gemm) | 1u << 30;
  const auto with = [](std::uint32_t bits) { return fmt::format("mov.b32 r8, 0x{:x};", bits); };
  const auto mask = [](std::uint64_t bits) { return fmt::format("mov.b64 rd5, 0x{:x};", bits); };
  const std::string right = mask(w.zeros.bits());
  const std::string store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [own+256], {v0};\n";
  expect_mistakes(
      w, {
             {with(idesc), with(idesc & ~(7u << 24)), "instruction-descriptor",
              "M / 16 (bits 24 to 28) is 0: expected 2, 4 or 8"},
             {with(idesc), with((idesc & ~(63u << 17)) | 4u << 17), "instruction-descriptor",
              "N / 8 (bits 17 to 22) is 4: expected 8, 16 or 32"},
             {with(idesc), with(idesc | 1u << 29), "instruction-descriptor",
              "reserved field (bit 29)"},
             {"add.u32 r9, ta, 0", "add.u32 r9, ta, 0x100000", "tensor-memory",
              "D at address 0x100000 begins in lane 16: expected 0 with M 64 and .ws"},
             {"add.u32 r9, ta, 0", "add.u32 r9, ta, 490", "tensor-memory", "D at address 0x1ea"},
             {right, mask(std::uint64_t{1} << 36), "instruction-descriptor",
              "zero-column mask 0x0000001000000000: a reserved bit"},
             {right, mask(std::uint64_t{9} << 56), "instruction-descriptor",
              "the column shift (bits 56 to 61) is 9: expected at most 8"},
             {right, mask(std::uint64_t{1} << 39 | std::uint64_t{3} << 48 | 4),
              "instruction-descriptor", "start count 0 leaves out 4 columns of a first span of 4"},
             // The second part of D has no A, or none has.
             {store, "setp.lt.u32 p, r0, 64;\n@!p bra NO_A;\n" + store + "NO_A:\n",
              "uninitialized-read", "was never written"},
             {store, "", "uninitialized-read", "was never written"},
             {"fence.proxy.async.shared::cta;\n", "", "proxy-fence", "insert fence.proxy.async"},
             {"tcgen05.commit", "mbarrier.arrive.shared::cta.b64 _, [done];\n@!q tcgen05.commit",
              "asynchronous-race", "expected tcgen05.commit in the thread that issued it"},
         });
}

TEST(EmulatorTensorWeights, FindsMistakesOfSparseOnes) {
  std::mt19937 random(1);
  Weights w;
  w.gemm.m = 32;
  w.gemm.sparse = true;
  w.gemm.layout_b = {128, false};
  fill(w.gemm, random);
  const std::uint32_t idesc = instruction_descriptor(w.gemm);
  const auto with = [](std::uint32_t bits) { return fmt::format("mov.b32 r8, 0x{:x};", bits); };
  const std::string store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [own+480], {v0};\n";
  expect_mistakes(
      w, {
             {with(idesc), with((idesc & ~(63u << 17)) | 32u << 17), "instruction-descriptor",
              "N / 8 (bits 17 to 22) is 32: expected 8 or 16"},
             {with(idesc), with(idesc | 1), "instruction-descriptor", "sparsity selector"},
             {store, "setp.lt.u32 p, r0, 64;\n@!p mov.b32 v0, 0;\n" + store, "sparse-metadata",
              "the metadata of row 0 of A have the illegal code 0x0"},
             {store, "mov.b32 v0, 0;\n" + store, "sparse-metadata", "illegal code 0x0"},
         });
}

// Columns that are zeros are not read: nobody has to write them.
TEST(EmulatorTensorWeights, ReadNoColumnThatTheMaskLeavesOut) {
  std::mt19937 random(1);
  Weights w;
  w.gemm.m = 128;
  w.gemm.layout_b = {0, false};
  w.zeros = {.given = true, .masks = true, .used = 32, .zeros = 32};
  fill(w.gemm, random);
  EXPECT_EQ(difference(w), "");
  // B lies behind A's 4096 bytes, 8 columns after 8 columns: those from 32 on are not copied.
  Plan made = plan(w);
  const std::string limit = "setp.ge.u32 p, r5, 1536;\n";
  ASSERT_NE(made.text.find(limit), std::string::npos) << made.text;
  made.text.replace(made.text.find(limit), limit.size(), "setp.ge.u32 p, r5, 1280;\n");
  EXPECT_EQ(findings_text(run_tensor(made.text, output_words(w), made.in)), "");
  made.text.replace(made.text.find("r5, 1280"), 8, "r5, 1152");
  EXPECT_NE(findings_text(run_tensor(made.text, output_words(w), made.in)).find("uninitialized"),
            std::string::npos);
}

}  // namespace
}  // namespace tartan::test::tensor
