// SPDX-License-Identifier: Apache-2.0
// Variables are no values: a copy of one does not compile, what is made of one is its value then.
// Lines of expressions: a mistake in one stands on its line, and so does its code.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/dsl/refusals.h"
#include "tests/support/engine.h"

namespace tartan {
namespace {

template <typename Variable, typename Value>
constexpr bool is_taken_by_value() {
  // What [=], `auto old = v` and a vector of copies ask for.
  return !std::is_copy_constructible_v<Variable> && std::is_move_constructible_v<Variable> &&
         std::is_convertible_v<const Variable&, Value> && std::is_copy_assignable_v<Variable>;
}
static_assert(is_taken_by_value<ScalarVariable, Scalar>());
static_assert(is_taken_by_value<FragmentVariable, Fragment>());
static_assert(is_taken_by_value<Accumulator, WarpTile>());
static_assert(is_taken_by_value<RowVariable, RowValues>());
static_assert(is_taken_by_value<ColumnVariable, ColumnValues>());

constexpr Tile tile{.m = 16, .n = 8, .k = 16, .warps_m = 1, .warps_n = 1};

TEST(Variables, GiveTheirValueOfThatMoment) {
  const Kernel values = kernel("values", {.block = 32}, [](Builder& k) {
    auto to = k.global("out", f32, row_major(1, 10));
    auto number = k.variable(k.constant(f32, 1));
    const Scalar old_number = number;
    auto& same = number;
    same += 1;

    const FragmentKind kind = operand_c(m16n8k16, f32);
    auto fragment = k.variable(kind);
    const Fragment old_fragment = fragment;
    fragment = k.pack(kind, std::vector<Scalar>(4, 3));

    auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), tile);
    auto sum = mma.accumulator();
    const WarpTile old_sum = sum;
    sum += 4;
    auto rows = mma.row_variable(k.constant(f32, 5));
    const RowValues old_rows = rows;
    rows += 1;
    auto cols = mma.col_variable(k.constant(f32, 7));
    const ColumnValues old_cols = cols;
    cols += 1;

    const std::vector<Scalar> found = {old_number,
                                       number,
                                       k.elements(old_fragment)[0],
                                       k.elements(fragment)[0],
                                       k.elements(old_sum.fragment(0, 0))[0],
                                       k.elements(WarpTile(sum).fragment(0, 0))[0],
                                       old_rows[0],
                                       RowValues(rows)[0],
                                       old_cols[0],
                                       ColumnValues(cols)[0]};
    for (std::size_t i = 0; i < found.size(); ++i) k.write_if(to, 0, i, found[i], k.lane() == 0);
  });
  Device device = test::open_engine({.checks = Checks::all});
  std::vector<float> got(10);
  const auto done = run(device, values, {1}, out(got));
  ASSERT_TRUE(done) << done.diags().text();
  EXPECT_EQ(got, (std::vector<float>{1, 2, 0, 3, 0, 4, 5, 6, 7, 8}));
}

TEST(Variables, ThatAreMovedFromAreTold) {
  test::expect_told(
      [](Builder& k) {
        auto number = k.variable(k.constant(f32, 1));
        const auto taken = std::move(number);
        number += 1;  // NOLINT
      },
      {"the variable is empty"});
  test::expect_told(
      [](Builder& k) {
        auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), {.m = 32, .n = 8, .k = 16, .warps_n = 1});
        auto x = mma.accumulator(), y = mma.accumulator();
        std::swap(x, y);
      },
      {"the accumulator is empty"});
}

// Describes statements that stand on one line each, and expects that each of them, alone, is
// reported at its line.
void expect_at_lines(const std::vector<std::pair<int, std::function<void(Builder&)>>>& all) {
  for (const auto& [line, body] : all) {
    const auto compiled = compile(kernel("wrong", {.block = 32}, body), *Target::parse("sm_80"));
    ASSERT_FALSE(compiled) << "line " << line << " compiles";
    for (const Diag& diag : compiled.diags()) {
      EXPECT_EQ(diag.place.line, line) << diag.message;
      EXPECT_EQ(diag.place.file, std::source_location::current().file_name()) << diag.message;
    }
  }
}

// The call before each statement is on another line.
#define AT(...)                 \
  {                             \
    __LINE__, [&](Builder& k) { \
      before(k);                \
      __VA_ARGS__;              \
    }                           \
  }

TEST(Lines, OfExpressionsAreTheirOwn) {
  Scalar f, h, i, j, wide, yes;
  const auto before = [&](Builder& k) {
    auto all = k.global("all", f32, row_major(1, 64));
    f = k.read(all, 0, 0), h = k.convert(f, f16), i = k.thread(), j = k.convert(i, s32);
    wide = k.convert(i, u64), yes = i < 3;
  };
  // clang-format off
  expect_at_lines({
      AT(f + i), AT(f - h), AT(f * j), AT(i / 0), AT(i % 0), AT(f & 1), AT(f | f), AT(f ^ f),
      AT(i << 32), AT(f >> 1), AT(f < i), AT(i <= wide), AT(f > h), AT(i >= wide), AT(f == h),
      AT(yes != i), AT(!f), AT(f && yes), AT(yes || i), AT(-yes), AT(i + 0.5), AT(i * 0.5),
      AT(minimum(f, i)), AT(maximum(h, f)), AT(select(f, i, i)), AT(select(yes, f, h)),
      AT(relu(yes)), AT(fma(f, f, h)), AT(exp2(h)), AT(log2(i)), AT(exp(h)), AT(log(i)),
      AT(tanh(h)), AT(rsqrt(i)), AT(reciprocal(h)), AT(abs(yes)), AT(sign(i)), AT(floor(i)),
      AT(convert_pair(f, f, f16)), AT(multiple_of(i, 0)), AT(ceil_div(i, 0)),
      AT(auto v = k.variable(f); const int at = 0; static_cast<void>(at); v = h),
      AT(i += f), AT(f *= h),
  });
  // clang-format on
}

#undef AT

// Functions by name are called by a line of the standard library; theirs is the call that takes
// them.
TEST(Lines, OfTheStandardLibraryAreNobodys) {
  int line = 0;
  const auto compiled = compile(kernel("wrong", {.block = 32},
                                       [&](Builder& k) {
                                         auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), tile);
                                         auto sum = mma.accumulator();
                                         sum = map(sum, [](Scalar x) { return x + 1; });
                                         const RowValues wrong{k.thread()};
                                         line = __LINE__ + 1;
                                         std::ignore = map(wrong, tartan::exp2);
                                       }),
                                *Target::parse("sm_80"));
  ASSERT_FALSE(compiled);
  for (const Diag& diag : compiled.diags()) {
    EXPECT_EQ(diag.place.line, line) << diag.message;
    EXPECT_EQ(diag.place.file, std::source_location::current().file_name()) << diag.message;
  }
}

TEST(Lines, OfExpressionsAreInThePtx) {
  int line = 0;
  const auto compiled = compile(kernel("lines", {.block = 32},
                                       [&](Builder& k) {
                                         auto all = k.global("all", f32, row_major(1, 64));
                                         const Scalar x = k.read(all, 0, k.thread());
                                         line = __LINE__ + 1;
                                         const Scalar y = x * 3;
                                         k.write(all, 0, k.thread(), y);
                                       }),
                                *Target::parse("sm_80"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  const std::size_t product = compiled->ptx.find("mul.rn.f32");
  ASSERT_NE(product, std::string::npos) << compiled->ptx;
  const std::size_t loc = compiled->ptx.rfind(".loc", product);
  ASSERT_NE(loc, std::string::npos);
  EXPECT_EQ(std::atoi(compiled->ptx.c_str() + compiled->ptx.find(' ', loc + 5)), line)
      << compiled->ptx;
}

}  // namespace
}  // namespace tartan
