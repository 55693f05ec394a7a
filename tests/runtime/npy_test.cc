// SPDX-License-Identifier: Apache-2.0
// .npy files: those of numpy (tests/data/npy) are read, others are refused by what they are; parts
// of arrays; names of C++.
#include "runtime/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "compiler/support/demangle.h"
#include "runtime/buffer_name.h"
#include "runtime/element.h"
#include "runtime/random_elements.h"
#include "runtime/slice.h"

namespace tartan {
namespace {

using Shape = std::vector<std::uint64_t>;

std::string file(const std::string& name) {
  std::ifstream in(std::string(TEST_DATA) + "/npy/" + name, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

template <typename T>
std::vector<T> values(const std::vector<std::byte>& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

template <typename T>
std::vector<std::byte> bytes(const std::vector<T>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

std::string complaint(const std::string& text) {
  const auto read = read_npy(text);
  return read ? "" : read.diags()[0].message;
}

TEST(Npy, ReadsNumpysFiles) {
  const auto f4 = read_npy(file("f4.npy"));  // arange(6).reshape(2, 3) / 4
  ASSERT_TRUE(f4);
  EXPECT_EQ(f4->type, Type::f32);
  EXPECT_EQ(f4->shape, (Shape{2, 3}));
  EXPECT_EQ(values<float>(f4->contents), (std::vector<float>{0, 0.25, 0.5, 0.75, 1, 1.25}));
  const auto b1 = read_npy(file("b1.npy"));
  ASSERT_TRUE(b1);
  EXPECT_EQ(b1->type, Type::u8);
  EXPECT_EQ(values<std::uint8_t>(b1->contents), (std::vector<std::uint8_t>{1, 0, 1}));
  const auto scalar = read_npy(file("zero_d.npy"));
  ASSERT_TRUE(scalar);
  EXPECT_EQ(scalar->shape, (Shape{1}));
  EXPECT_EQ(values<double>(scalar->contents), (std::vector<double>{2.5}));
}

TEST(Npy, PutsTheLastDimensionOfFortranOrderSideBySide) {
  const auto two = read_npy(file("fortran.npy"));  // arange(6).reshape(2, 3)
  ASSERT_TRUE(two);
  EXPECT_EQ(values<std::int16_t>(two->contents), (std::vector<std::int16_t>{0, 1, 2, 3, 4, 5}));
  const auto three = read_npy(file("three.npy"));  // arange(24).reshape(2, 3, 4)
  ASSERT_TRUE(three);
  const auto read = values<std::uint8_t>(three->contents);
  ASSERT_EQ(read.size(), 24u);
  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(read[i], i);
}

TEST(Npy, RefusesWhatItDoesNotTakeByName) {
  EXPECT_NE(complaint(file("big.npy")).find("big-endian elements (>i4)"), std::string::npos);
  EXPECT_NE(complaint(file("c8.npy")).find("of type <c8: expected f2, f4, f8"), std::string::npos);
  EXPECT_NE(complaint(file("rec.npy")).find("records"), std::string::npos);
  EXPECT_NE(complaint(file("empty.npy")).find("shape 0x3 is empty"), std::string::npos);
  EXPECT_EQ(complaint("no"), "not an .npy file");
  const std::string good = file("f4.npy");
  EXPECT_EQ(complaint(good.substr(0, 150)),
            "the .npy file is truncated: its shape 2x3 takes 24 bytes, found 22");
  EXPECT_EQ(complaint(good + "x"),
            "the .npy file has more than one array: its shape 2x3 takes 24 bytes, found 25");
  for (std::size_t size = 6; size < 128; ++size)
    EXPECT_NE(complaint(good.substr(0, size)), "") << size;
  std::string huge = good;
  huge.replace(huge.find("(2, 3)"), 6, "(99999999999999999999, 3)");
  EXPECT_NE(complaint(huge), "");
}

TEST(Npy, TakesWordsOfTypesThatNumpyLacksAndRoundsNumbers) {
  const auto words = converted(*read_npy(file("u2.npy")), Type::bf16);  // 0x3f80, 0x4000
  ASSERT_TRUE(words);
  EXPECT_EQ(values<std::uint16_t>(*words), (std::vector<std::uint16_t>{0x3f80, 0x4000}));
  const auto raw = converted(*read_npy(file("v2.npy")), Type::bf16);  // the same as V2
  ASSERT_TRUE(raw);
  EXPECT_EQ(*raw, *words);
  const auto rounded = converted({Type::f32, {2}, bytes<float>({1.00390625f, -2})}, Type::bf16);
  ASSERT_TRUE(rounded);  // half of the last place: to even
  EXPECT_EQ(values<std::uint16_t>(*rounded), (std::vector<std::uint16_t>{0x3f80, 0xc000}));
  // Of a type that numpy has, integers are numbers.
  const auto numbers = converted(*read_npy(file("u2.npy")), Type::f32);
  ASSERT_TRUE(numbers);
  EXPECT_EQ(values<float>(*numbers), (std::vector<float>{16256, 16384}));
  const auto lost = converted(*read_npy(file("u2.npy")), Type::s8);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.diags()[0].message, "element 0 is 16256: s8 has no such number");
  EXPECT_FALSE(converted(*read_npy(file("v2.npy")), Type::f32));
  EXPECT_FALSE(converted(*read_npy(file("f4.npy")), Type::s32));  // 0.25
}

TEST(Npy, WritesWhatItReads) {
  const auto contents = bytes<float>({1, 2, 3, 4, 5, 6});
  const std::string text = npy_text(Type::f32, {3, 2}, contents);
  EXPECT_NE(text.find("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"),
            std::string::npos)
      << text;
  EXPECT_EQ((text.size() - contents.size()) % 64, 0u);
  const auto read = read_npy(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->shape, (Shape{3, 2}));
  EXPECT_EQ(read->contents, contents);
  const std::string row = npy_text(Type::bf16, {}, contents);
  EXPECT_NE(row.find("{'descr': '<u2', 'fortran_order': False, 'shape': (12,), }"),
            std::string::npos);
  EXPECT_NE(npy_text(Type::e4m3, {24}, contents).find("'|u1'"), std::string::npos);
}

TEST(Slice, IsThatOfPython) {
  using Ranges = std::vector<IndexRange>;
  const auto of = [](const char* text, const Shape& shape) {
    const auto slice = Slice::parse(text);
    EXPECT_TRUE(slice) << text;
    const auto ranges = slice->of(shape);
    return ranges ? *ranges : Ranges{};
  };
  EXPECT_EQ(of("0:4, :8", {256, 128}), (Ranges{{0, 4}, {0, 8}}));
  EXPECT_EQ(of("[3]", {256, 128}), (Ranges{{3, 4}, {0, 128}}));
  EXPECT_EQ(of("-1,-2:", {4, 8}), (Ranges{{3, 4}, {6, 8}}));
  EXPECT_EQ(of(":", {4}), (Ranges{{0, 4}}));
  EXPECT_EQ(of("", {4}), (Ranges{{0, 4}}));
  EXPECT_EQ(of("2:100", {4}), (Ranges{{2, 4}}));
  EXPECT_EQ(of("4", {4}), Ranges{});
  EXPECT_EQ(of("3:3", {4}), Ranges{});
  EXPECT_EQ(of("0,0", {4}), Ranges{});
  EXPECT_EQ(of("-5", {4}), Ranges{});
  for (const char* const bad : {"a", "1:2:3", "1,", ",1", "1..2", "::"})
    EXPECT_FALSE(Slice::parse(bad)) << bad;
}

TEST(Elements, HaveValuesAndTexts) {
  EXPECT_EQ(element_value(Type::e4m3, 0x38), 1);
  EXPECT_EQ(element_value(Type::s16, 0xffff), -1);
  EXPECT_EQ(element_bits(Type::f16, 65504), 0x7bffu);
  EXPECT_EQ(element_bits(Type::s8, -128), 0x80u);
  EXPECT_EQ(element_bits(Type::s8, 128), std::nullopt);
  EXPECT_EQ(element_bits(Type::u64, 18446744073709549568.0), 0xfffffffffffff800u);
  EXPECT_EQ(element_bits(Type::u64, 18446744073709551616.0), std::nullopt);
  EXPECT_EQ(element_bits(Type::s32, 0.5), std::nullopt);
  EXPECT_EQ(element_text(Type::b16, 0x3f), "0x003f");
  EXPECT_EQ(element_text(Type::bf16, 0x3fc0), "1.5");
}

TEST(Elements, OfASeedAreTheSameAndInTheirRange) {
  const auto one = random_elements(Type::f32, 4096, 1);
  EXPECT_EQ(one, random_elements(Type::f32, 4096, 1));
  EXPECT_NE(one, random_elements(Type::f32, 4096, 2));
  double sum = 0;
  for (const float each : values<float>(one)) {
    EXPECT_LT(std::abs(each), 1);
    sum += each;
  }
  EXPECT_LT(std::abs(sum), 100);  // of 1024, four deviations are 74
  for (const int each : values<std::int8_t>(random_elements(Type::s8, 1000, 1))) {
    EXPECT_GE(each, -8);
    EXPECT_LE(each, 7);
  }
}

TEST(BufferNames, NameElements) {
  const detail::BufferName x{"x", Type::f32, {256, 128}, 131072};
  EXPECT_EQ(x.element(2048), "x[4,0]");
  EXPECT_EQ(x.element(2049), "x[4,0] (byte 1)");
  EXPECT_EQ(x.element(131072), "x[32768]");
  EXPECT_EQ(x.extent(), "32768 elements, f32 256x128");
  const detail::BufferName raw{.name = "r", .bytes = 16};
  EXPECT_EQ(raw.element(4), "r+4");
  EXPECT_EQ(raw.element(0), "r");
  EXPECT_EQ(raw.extent(), "16 bytes");
}

TEST(Demangled, NamesOfCxx) {  // as c++filt prints them
  using detail::demangled, detail::demangled_name, detail::demangled_parameters;
  EXPECT_EQ(demangled("_Z3addPKfS0_Pfi"), "add(float const*, float const*, float*, int)");
  EXPECT_EQ(demangled_name("_Z3addPKfS0_Pfi"), "add");
  EXPECT_EQ(demangled_parameters("_Z3addPKfS0_Pfi"),
            (std::vector<std::string>{"float const*", "float const*", "float*", "int"}));
  EXPECT_EQ(demangled_name("_Z5scaleIfEvPT_i"), "scale<float>");
  EXPECT_EQ(demangled_parameters("_Z5scaleIfEvPT_i"), (std::vector<std::string>{"float*", "int"}));
  EXPECT_EQ(demangled_name("_ZZ3revPfE1s"), "rev::s");
  EXPECT_EQ(demangled_name("_ZN1a1bEPf"), "a::b");
  EXPECT_EQ(demangled_name("_ZN12_GLOBAL__N_11kEv"), "(anonymous namespace)::k");
  EXPECT_EQ(demangled_parameters("_Z1kv"), std::vector<std::string>{});
  EXPECT_EQ(demangled_name("plain"), "plain");
  EXPECT_EQ(demangled_name("_Znonsense"), "_Znonsense");
  EXPECT_EQ(demangled_parameters("plain"), std::vector<std::string>{});
}

}  // namespace
}  // namespace tartan
