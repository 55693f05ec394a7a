// SPDX-License-Identifier: Apache-2.0
// Scalars against C++: the values that kernels compute on the emulator, folded or not, and the
// diagnostics for impossible numbers.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <limits>

#include "tests/support/engine.h"

namespace tartan {
namespace {

const Target sm_80 = *Target::parse("sm_80");

// The same expressions of a Scalar and of a C++ integer.
template <typename X>
std::vector<X> expressions(const X& n) {
  return {(n + 32) / 8,       (n + 32) % 8,           (n + 32 - 16) / 8,   (n - 32) / 8,
          (n - 32) % 8,       (n * 8 + 16) / 8,       (n * 8 + 16) % 8,    (n * 6 + 12) / 4 % 5,
          (n + 64) / 16 * 16, ((n + 3) * 5 + 30) / 5, (n + 8) / 8 % 8 + n, (n + 5) * 7 - n,
          n / 8 * 8 + n % 8,  (n + 40) / 8 - n / 8,   (n << 3) + 24,       (n + 24) & 31};
}

template <typename T>
std::vector<T> computed(Type type, T n) {
  const std::size_t count = expressions<T>(n).size();
  const auto compiled = compile(kernel("scalars", {},
                                       [&](Builder& k) {
                                         const Scalar x = k.param("n", type);
                                         auto out = k.global("out", type, row_major(1, count));
                                         k.when(k.thread() == 0, [&] {
                                           int i = 0;
                                           for (const Scalar& each : expressions(x))
                                             k.write(out, 0, i++, each);
                                         });
                                       }),
                                sm_80);
  EXPECT_TRUE(compiled) << compiled.diags().text();
  if (!compiled) return {};
  Device device = test::open_engine();
  Buffer out = *device.allocate(count * sizeof(T));
  LoadedKernel loaded = *device.load(compiled->ptx)->kernel("scalars");
  EXPECT_TRUE(loaded.launch({.block = {32}}, Arguments().add(n).add(out)));
  EXPECT_TRUE(device.synchronize());
  return *out.read_all<T>();
}

TEST(Scalars, FoldAsCppComputes) {
  for (const int n : {-100, -33, -32, -31, -8, -4, -1, 0, 1, 5, 31, 32, 1000}) {
    SCOPED_TRACE(n);
    EXPECT_EQ(computed<std::int32_t>(s32, n), expressions<std::int32_t>(n));
    EXPECT_EQ(computed<std::int64_t>(s64, n), expressions<std::int64_t>(n));
  }
  // Indices: differences that are not negative.
  for (const unsigned n : {32U, 33U, 40U, 1000U, 1U << 24}) {
    SCOPED_TRACE(n);
    EXPECT_EQ(computed<std::uint32_t>(u32, n), expressions<std::uint32_t>(n));
    EXPECT_EQ(computed<std::uint64_t>(u64, n), expressions<std::uint64_t>(n));
  }
}

TEST(Scalars, ConstantsWrapAround) {
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ((Scalar(lowest) / -1).constant(), lowest);
  EXPECT_EQ((Scalar(lowest) % -1).constant(), 0);
  EXPECT_EQ((Scalar(lowest) - 1).constant(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ((Scalar(lowest) * -1).constant(), lowest);
  EXPECT_GT(Scalar(lowest).multiple(), 0);
}

TEST(Scalars, TrackGuaranteedDivisors) {
  EXPECT_TRUE(compile(kernel("multiples", {},
                             [](Builder& k) {
                               const Scalar x = k.param("x", f32), n = k.param("n", u32, 24);
                               EXPECT_EQ((x * 8).multiple(), 1);
                               EXPECT_EQ(k.convert(x * 8, u32).multiple(), 1);
                               EXPECT_EQ((n * 2).multiple(), 48);
                               EXPECT_EQ((n * 2 + 16).multiple(), 16);
                               EXPECT_EQ(k.convert(n, u64).multiple(), 24);
                               EXPECT_EQ(k.convert(n, u8).multiple(), 8);
                             }),
                      sm_80));
}

// The first diagnostic for `body`'s use of a thread index; empty: none.
std::string complaint(const std::function<void(Builder&, const Scalar&)>& body) {
  const auto compiled =
      compile(kernel("wrong", {}, [&](Builder& k) { body(k, k.thread()); }), sm_80);
  return compiled ? "" : compiled.diags()[0].message;
}

TEST(Scalars, RejectNumbersThatDoNotFit) {
  const auto refuses = [](const std::function<void(Builder&, const Scalar&)>& body) {
    return complaint(body);
  };
  EXPECT_EQ(refuses([](Builder&, const Scalar& x) { x / 0; }), "division by the constant 0");
  EXPECT_EQ(refuses([](Builder&, const Scalar&) { Scalar(8) % 0; }), "division by the constant 0");
  EXPECT_EQ(refuses([](Builder&, const Scalar& x) { x << 32; }),
            "shift of a value of type u32: expected 0 to 31 bits, found 32");
  EXPECT_EQ(refuses([](Builder& k, const Scalar& x) { k.when(x < (1LL << 32), [] {}); }),
            "the constant 4294967296 does not fit type u32; the nearest value is 4294967295");
  EXPECT_EQ(refuses([](Builder& k, const Scalar&) { k.loop(0, 1LL << 40, 1, [](Scalar) {}); }),
            "the constant 1099511627776 does not fit type u32; the nearest value is 4294967295");
  EXPECT_EQ(refuses([](Builder& k, const Scalar& x) { k.loop(x, 8, 0, [](Scalar) {}); }),
            "loop step: expected at least 1, found 0");
  EXPECT_EQ(refuses([](Builder& k, const Scalar& x) { k.loop(-4, x, 1, [](Scalar) {}); }),
            "bounds of a loop over u32: expected 0 or more, found -4; use k.constant(s32, -4) for "
            "a signed loop");
  EXPECT_EQ(refuses([](Builder& k, const Scalar& x) { k.loop(0, x < 3, 1, [](Scalar) {}); }),
            "the loop's bound: expected an integer, found a value of type pred; convert() it");
  // As C++ does: all bits set.
  EXPECT_EQ(refuses([](Builder& k, const Scalar& x) { k.when((x ^ -1) == 0xFFFFFFFF, [] {}); }),
            "");
}

}  // namespace
}  // namespace tartan
