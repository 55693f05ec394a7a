// SPDX-License-Identifier: Apache-2.0
// Lane maps of tensor memory against CuTe's layouts (tests/data/isa/tensor_memory.txt) and against
// formulas copied by hand.
#include "tartan/isa/tensor_memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace tartan::isa {
namespace {

TensorAccess access_of(const std::string& shape, int repeats, bool packed) {
  QualifierSet words = *find_qualifier(shape);
  words.add(*find_qualifier("x" + std::to_string(repeats)));
  if (packed) words.add("pack::16b"_q);
  return tensor_access(words);
}

// ---- CuTe's layouts, with an evaluator of their own.

constexpr long lane_stride = 1 << 20;  // in bits, more than a lane has

// "((2,2,8),32):((512,32,64),1)" without its nesting: index / 2 / 2 is multiplied by 64.
struct FlatLayout {
  std::vector<long> shape, stride;

  explicit FlatLayout(const std::string& text) {
    const std::size_t colon = text.find(':');
    shape = numbers(text.substr(0, colon)), stride = numbers(text.substr(colon + 1));
    EXPECT_EQ(shape.size(), stride.size()) << text;
  }
  long operator()(long index) const {
    long out = 0;
    for (std::size_t i = 0; i < shape.size(); index /= shape[i], ++i)
      out += (i + 1 < shape.size() ? index % shape[i] : index) * stride[i];
    return out;
  }
  static std::vector<long> numbers(std::string text) {
    std::vector<long> out;
    for (char& c : text)
      if (c == '(' || c == ')' || c == ',') c = ' ';
    std::istringstream in(text);
    for (std::string word; in >> word;)
      out.push_back(word == "lane" ? lane_stride : std::stol(word));
    return out;
  }
};

TEST(TensorMemory, CutesLayouts) {
  std::ifstream file(std::string(TEST_DATA) + "/isa/tensor_memory.txt");
  std::set<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    SCOPED_TRACE(line);
    lines.insert(line);
    std::istringstream words(line);
    std::string shape, repeats, pack, held, memory;
    words >> shape >> repeats >> pack >> held >> memory;
    TensorAccess access = access_of(shape, std::stoi(repeats.substr(1)), pack != "-");
    ASSERT_TRUE(access.shape);
    access.half_split_offset = access.columns();
    const FlatLayout held_at(held), memory_at(memory);
    const int bits = 32 / access.per_register();
    long indices = 1;
    for (const long each : held_at.shape) indices *= each;
    ASSERT_EQ(access.elements() * bits * 32, indices);
    for (int thread = 0; thread < 32; ++thread)
      for (int i = 0; i < access.elements(); ++i) {
        const long bit = memory_at(held_at(thread + 32L * bits * i));
        const TensorCell expected{static_cast<int>(bit / lane_stride),
                                  static_cast<int>(bit % lane_stride / 32)};
        ASSERT_EQ(bit % 32, 0) << "an element begins in the lowest bit of a cell";
        ASSERT_EQ(cell(access, thread, i), expected) << "thread " << thread << " element " << i;
      }
  }
  EXPECT_EQ(lines.size(), 74u);  // five shapes, with at most 128 registers, packed or not
}

// ---- The formulas of TVM's documentation (tvm.apache.org/docs/tirx/tile_ops/tcgen05_ld_st.html).

struct Formula {
  const char* shape;
  int registers, columns;             // with .x1
  TensorCell (*where)(int l, int r);  // of thread l's register r
};

// clang-format off
const Formula formulas[] = {
    {"32x32b", 1, 1, [](int l, int r) { return TensorCell{l, r}; }},
    {"16x64b", 1, 2, [](int l, int r) { return TensorCell{l / 4 + 8 * (l % 2), l / 2 % 2 + 2 * r}; }},
    {"16x128b", 2, 4, [](int l, int r) { return TensorCell{l / 4 + 8 * (r % 2), l % 4 + 4 * (r / 2)}; }},
    {"16x256b", 4, 8, [](int l, int r) { return TensorCell{l / 4 + 8 * (r / 2 % 2), r % 2 + 2 * (l % 4) + 8 * (r / 4)}; }},
};
// clang-format on

TEST(TensorMemory, Formulas) {
  for (const Formula& formula : formulas)
    for (int repeats = 1; repeats * formula.registers <= 128; repeats *= 2) {
      const TensorAccess access = access_of(formula.shape, repeats, false);
      EXPECT_EQ(access.registers(), formula.registers * repeats) << formula.shape;
      EXPECT_EQ(access.columns(), formula.columns * repeats) << formula.shape;
      for (int thread = 0; thread < 32; ++thread)
        for (int reg = 0; reg < access.registers(); ++reg)
          ASSERT_EQ(cell(access, thread, reg), formula.where(thread, reg))
              << formula.shape << " thread " << thread << " register " << reg;
    }
}

// The lower half of the lanes' threads first; the offset may be anything.
TEST(TensorMemory, HalvesAreApart) {
  TensorAccess access = access_of("16x32bx2", 4, false);
  access.half_split_offset = 100;
  EXPECT_EQ(cell(access, 15, 3), (TensorCell{15, 3}));
  EXPECT_EQ(cell(access, 16, 3), (TensorCell{0, 103}));
  EXPECT_EQ(holder(access, {0, 103}), (TensorHolder{16, 3}));
  EXPECT_EQ(holder(access, {0, 4}), std::nullopt);
  access.half_split_offset = -100;
  EXPECT_EQ(holder(access, {0, -97}), (TensorHolder{16, 3}));
  access.half_split_offset = 2;  // columns 2 and 3 are read twice
  EXPECT_EQ(holder(access, {1, 3}), (TensorHolder{1, 3}));
  EXPECT_EQ(holder(access, {1, 5}), (TensorHolder{17, 3}));
}

// Each warp of a warpgroup has its quarter, whatever lane the address names; 16 lanes are one of
// its halves.
TEST(TensorMemory, AWarpHasItsQuarter) {
  const TensorShape &whole = *access_of("32x32b", 1, false).shape,
                    &half = *access_of("16x64b", 1, false).shape;
  constexpr std::uint32_t address = (32 * 3 + 16) << 16 | 40;
  EXPECT_EQ(first_cell(whole, address, 3), (TensorCell{96, 40}));
  EXPECT_EQ(first_cell(half, address, 3), (TensorCell{112, 40}));
  EXPECT_EQ(first_cell(half, 40, 7), (TensorCell{96, 40}));
  EXPECT_EQ(first_cell(half, address, 1), (TensorCell{48, 40}));
}

// All cells of a rectangle have different holders, nothing around it has one, and cell() is their
// inverse.
TEST(TensorMemory, HoldersAreTheInverse) {
  for (const TensorShape& shape : tensor_shapes)
    for (int repeats = 1; repeats * shape.registers() <= 128; repeats *= 2)
      for (const bool packed : {false, true}) {
        TensorAccess access{.shape = &shape, .repeats = repeats, .packed = packed};
        access.first = {64, 7};
        const int halves = shape.split ? 2 : 1, columns = halves * access.columns();
        access.half_split_offset = access.columns();
        int held = 0;
        for (int lane = 60; lane < 100; ++lane)
          for (int column = 0; column < columns + 20; ++column) {
            const auto found = holder(access, {lane, column});
            const bool inside =
                lane >= 64 && lane < 64 + shape.lanes() && column >= 7 && column < 7 + columns;
            ASSERT_EQ(found.has_value(), inside) << shape.word.word() << lane << " " << column;
            if (!found) continue;
            ++held;
            ASSERT_LT(found->element, access.elements());
            ASSERT_EQ(cell(access, found->thread, found->element), (TensorCell{lane, column}));
          }
        EXPECT_EQ(held, 32 * access.elements()) << shape.word.word() << repeats;
      }
}

}  // namespace
}  // namespace tartan::isa
