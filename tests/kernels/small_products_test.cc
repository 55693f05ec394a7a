// SPDX-License-Identifier: Apache-2.0
// Batches of small products: on the emulator with all checks, and on a GPU if there is one, against
// the naive loop.
#include <unistd.h>

#include <cmath>

#include "tests/kernels/small_products_run.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using testing_small_products::Bytes;
using testing_small_products::expect_products;
using testing_small_products::S;

constexpr const char* targets[] = {"sm_80", "sm_90a"};
constexpr std::pair<Major, Major> majors[] = {{Major::row, Major::col},
                                              {Major::row, Major::row},
                                              {Major::col, Major::col},
                                              {Major::col, Major::row}};

S on(const std::string& target, const S& with) { return tuned(with, *Target::parse(target)); }

S of(int m, int n, int k, Type type, Type c) {
  return {.m = m, .n = n, .k = k, .type = type, .c = c};
}

void expect_on_emulator(const std::string& target, const S& with, int batch, unsigned beyond = 0) {
  Device device = *Device::open("emulator", {.hardware = target, .checks = Checks::all});
  expect_products(device, *Target::parse(target), with, batch, beyond);
}

TEST(SmallProducts, EverySizeOf16Bits) {
  int i = 0;
  for (const int m : {16, 32, 48, 64})
    for (const int n : {16, 32, 48, 64})
      for (const int k : {16, 32, 48, 64}) {
        const Type type = i % 3 ? f16 : bf16;
        S with = of(m, n, k, type, i % 2 ? type : f32);
        std::tie(with.a_major, with.b_major) = majors[i++ % 4];
        const char* target = targets[i / 4 % 2];
        expect_on_emulator(target, on(target, with), 5);
      }
}

TEST(SmallProducts, EverySizeOfF64) {
  int i = 0;
  for (const int m : {8, 16, 24, 32, 40, 48, 56, 64})
    for (const int n : {8, 32, 56, 64})
      for (const int k : {8, 24, 64}) {
        S with = of(m, n, k, f64, f64);
        std::tie(with.a_major, with.b_major) = majors[i++ % 4];
        const char* target = targets[i / 4 % 2];
        expect_on_emulator(target, on(target, with), 3);
      }
}

// Every major order, of types and sizes whose accesses differ.
TEST(SmallProducts, MajorOrders) {
  for (const char* target : targets)
    for (const auto& [a_major, b_major] : majors)
      for (S with :
           {of(16, 16, 16, f16, f16), of(64, 64, 64, f16, f16), of(32, 48, 48, bf16, f32),
            of(64, 64, 32, f16, f32), of(16, 24, 40, f64, f64), of(64, 64, 64, f64, f64)}) {
        with.a_major = a_major, with.b_major = b_major;
        expect_on_emulator(target, on(target, with), 2);
      }
}

// The last block has few products, or one; blocks beyond the batch have none.
TEST(SmallProducts, Batches) {
  for (const char* target : targets)
    for (const S& with : {of(16, 16, 16, f16, f16), of(32, 32, 32, f16, f32),
                          of(48, 48, 48, f64, f64), of(64, 64, 64, f16, f16)})
      for (const int batch : {1, 5, 8, 67}) expect_on_emulator(target, on(target, with), batch, 2);
}

TEST(SmallProducts, NothingOfAnEmptyBatch) {
  for (const S& with :
       {on("sm_80", of(16, 16, 16, f16, f32)), on("sm_80", of(64, 64, 64, f64, f64))}) {
    EXPECT_EQ(with.blocks(0), 0U);
    EXPECT_EQ(with.blocks(-1), 0U);
    const auto compiled = compile(kernels::small_products(with), *Target::parse("sm_80"));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    Device device = *Device::open("emulator", {.checks = Checks::all});
    for (const int batch : {0, -1}) {  // any access is a finding
      const Bytes got = testing_small_products::run(device, *compiled, {}, {}, 16, batch, 2);
      EXPECT_EQ(got, Bytes(16, testing_small_products::untouched));
    }
  }
}

TEST(SmallProducts, Grids) {
  const S one = on("sm_90a", of(16, 16, 16, f16, f32));
  EXPECT_EQ(one.products_per_block(), 16);
  EXPECT_EQ(one.blocks(1), 1U);
  EXPECT_EQ(one.blocks(16), 1U);
  EXPECT_EQ(one.blocks(17), 2U);
  EXPECT_EQ(one.blocks(2147483647), 134217728U);
  const S shared = on("sm_90a", of(64, 64, 64, f16, f16));
  EXPECT_EQ(shared.team(), 4);
  EXPECT_EQ(shared.blocks(67), 67U);
  EXPECT_EQ(on("sm_90a", of(32, 32, 32, f16, f16)).blocks(67), 17U);
  EXPECT_EQ(S{.products = 0}.blocks(5), 2U);  // refused by small_products()
}

// Warps, products and steps of any number, not only tuned() ones.
TEST(SmallProducts, Divisions) {
  const auto with = [](S base, int warps_m, int warps_n, int products, int ahead) {
    base.warps_m = warps_m, base.warps_n = warps_n, base.products = products, base.ahead = ahead;
    return base;
  };
  for (const char* target : targets) {
    const S small = of(32, 32, 64, f16, f16), wide = of(32, 48, 64, f64, f64);
    for (const S& each :
         {with(small, 2, 1, 3, 1), with(small, 1, 2, 2, 64), with(small, 2, 2, 8, 3),
          with(wide, 1, 3, 2, 1), with(wide, 1, 6, 1, 5), with(wide, 4, 2, 2, 64)})
      expect_on_emulator(target, each, 7);
  }
}

// Through shared memory: of every major order, of rows that end anywhere in a line of banks.
TEST(SmallProducts, Staged) {
  auto gpu = Device::open("cuda");
  for (const char* target : targets)
    for (const auto& [a_major, b_major] : majors)
      for (S with : {of(64, 64, 64, f64, f64), of(48, 48, 48, f64, f64), of(24, 40, 56, f64, f64),
                     of(32, 32, 8, f64, f64), of(64, 48, 40, f64, f64)}) {
        with = on(target, with);
        with.a_major = a_major, with.b_major = b_major, with.staged = true, with.products = 1;
        with.warps_m = with.m % 16 ? 3 : 2, with.warps_n = with.n % 16 ? 1 : 2;
        expect_on_emulator(target, with, 3);
        if (gpu && gpu->arch().sm == 90) expect_products(*gpu, *Target::parse(target), with, 9, 1);
      }
}

// What follows from the accesses' places, as the emulator counts it: whole sectors of 32 bytes, by
// accesses of 16 bytes wherever there are as many neighbours, and shared memory only where a
// product is staged, there in twice the fewest wavefronts at most.
TEST(SmallProducts, WholeSectors) {
  for (const char* target : targets)
    for (const auto& [a_major, b_major] : majors)
      for (S with : {of(16, 16, 16, f16, f16), of(16, 16, 16, f16, f32), of(32, 32, 32, f16, f16),
                     of(32, 32, 32, bf16, f32), of(48, 48, 48, f16, f16), of(48, 48, 48, f16, f32),
                     of(64, 64, 64, f16, f16), of(64, 64, 64, f16, f32), of(8, 24, 40, f64, f64),
                     of(32, 32, 32, f64, f64), of(64, 64, 64, f64, f64)}) {
        with.a_major = a_major, with.b_major = b_major;
        Device device = *Device::open("emulator", {.hardware = target, .profile = true});
        with = on(target, with);
        expect_products(device, *Target::parse(target), with, 4);
        std::uint64_t sectors = 0;
        for (const InstructionProfile& each : device.report().instructions) {
          EXPECT_TRUE(with.staged || each.shared.requests == 0) << each.opcode;
          EXPECT_LE(each.shared.wavefronts, 2 * each.shared.minimum) << each.opcode << each.source;
          EXPECT_EQ(each.global.sectors, each.global.minimum) << each.opcode << each.source;
          EXPECT_EQ(each.global.bytes, 32 * each.global.sectors) << each.opcode;
          sectors += each.global.sectors;
        }
        EXPECT_GT(sectors, 0U);
      }
}

TEST(SmallProducts, AccessesOf16Bytes) {
  const auto text = [](const S& with) {
    return compile(kernels::small_products(on("sm_90a", with)), *Target::parse("sm_90a"))->ptx;
  };
  for (const S& with :
       {of(32, 32, 32, f16, f16), of(64, 64, 64, f16, f32), of(64, 64, 64, bf16, bf16),
        of(64, 64, 64, f64, f64), of(32, 32, 32, f64, f64)}) {
    const std::string ptx = text(with);
    const char* wide = with.type == f64 ? ".v2." : ".v4.";
    for (const char* opcode : {"ld.global", "st.global"})
      for (std::size_t at = ptx.find(opcode); at != std::string::npos;
           at = ptx.find(opcode, at + 1))
        EXPECT_EQ(ptx.substr(at + 9, 4), wide) << ptx.substr(at, 40);
    const bool staged = on("sm_90a", with).staged;
    EXPECT_NE(ptx.find(staged ? "cp.async.cg.shared.global" : "ld.global"), std::string::npos);
  }
}

// Sums that are infinite, beyond f16's range, or NaN, in one product of several.
TEST(SmallProducts, InfinitiesAndNan) {
  for (const Type c : {f16, f32}) {
    const S with = on("sm_80", of(16, 16, 16, f16, c));
    const auto compiled = compile(kernels::small_products(with), *Target::parse("sm_80"));
    ASSERT_TRUE(compiled) << compiled.diags().text();
    constexpr int each = 16 * 16;
    std::vector<double> a(3 * each, 1), b(3 * each, 2);
    a[each + 16 * 3] = HUGE_VAL;      // product 1, row 3
    a[each + 16 * 5] = std::nan("");  // row 5
    a[each + 16 * 7] = 65504;         // row 7: 131008 + 30
    b[each + 16 * 4] = 0;             // column 4: infinity times 0
    const auto encoded = [](const std::vector<double>& values) {
      Bytes out;
      for (const double x : values) {
        const std::uint64_t word = std::isnan(x)   ? 0x7e00
                                   : std::isinf(x) ? 0x7c00
                                                   : testing_numbers::float_bits(f16, x);
        out.push_back(static_cast<std::byte>(word)),
            out.push_back(static_cast<std::byte>(word >> 8));
      }
      return out;
    };
    Device device = *Device::open("emulator", {.checks = Checks::all});
    const Bytes got =
        testing_small_products::run(device, *compiled, encoded(a), encoded(b),
                                    static_cast<std::size_t>(3 * each * bits(c) / 8), 3, 1);
    const std::vector<double> values = testing_numbers::decode(c, got);
    ASSERT_EQ(values.size(), 3U * each);
    for (int i = 0; i < 3 * each; ++i) {
      const int row = i / 16 - 16, col = i % 16;
      const double want = row == 3                           ? col == 4 ? NAN : HUGE_VAL
                          : row == 5                         ? NAN
                          : row == 7                         ? col == 4   ? 30
                                                               : c == f16 ? HUGE_VAL
                                                                          : 131038
                          : row >= 0 && row < 16 && col == 4 ? 30
                                                             : 32;
      EXPECT_TRUE(std::isnan(want) ? std::isnan(values[i]) : values[i] == want)
          << i << ": " << values[i] << ", expected " << want;
    }
  }
}

TEST(SmallProducts, GpuAgrees) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  for (const std::string& name : {std::string("sm_80"), device->arch().text()})
    for (const auto& [a_major, b_major] : majors)
      for (S with : {of(16, 16, 16, f16, f16), of(32, 32, 32, f16, f32), of(32, 48, 16, bf16, bf16),
                     of(64, 64, 64, f16, f16), of(16, 8, 24, f64, f64), of(24, 40, 56, f64, f64),
                     of(64, 64, 64, f64, f64)}) {
        with.a_major = a_major, with.b_major = b_major;
        for (const int batch : {1, 5, 67, 700})
          expect_products(*device, *Target::parse(name), on(name, with), batch, 1);
      }
}

// NVIDIA's assembler accepts the text and spills nothing.
TEST(SmallProducts, AssembleWithoutSpills) {
  if (!test::has_assembler()) GTEST_SKIP() << "no ptxas";
  for (const char* target : targets)
    for (const auto& [a_major, b_major] : majors)
      for (S with : {of(16, 16, 16, f16, f16), of(32, 32, 32, f16, f32), of(48, 48, 48, bf16, bf16),
                     of(64, 64, 64, f16, f16), of(32, 32, 32, f64, f64), of(48, 48, 48, f64, f64),
                     of(64, 64, 64, f64, f64)}) {
        with.a_major = a_major, with.b_major = b_major;
        with = on(target, with);
        SCOPED_TRACE(testing_small_products::text(with) + target);
        const auto compiled = compile(kernels::small_products(with), *Target::parse(target));
        ASSERT_TRUE(compiled) << compiled.diags().text();
        const int spilled = test::spilled_bytes(
            compiled->ptx, target, testing::TempDir() + std::to_string(getpid()) + "_small");
        EXPECT_EQ(spilled, 0);
      }
}

// One diagnostic for each error.
TEST(SmallProducts, RefusesWrongOptions) {
  const auto with = [](auto change) {
    S out;
    change(out);
    return out;
  };
  const std::pair<S, const char*> wrong[] = {
      {with([](S& s) { s.type = f32; }), "type = f32: expected f16, bf16 or f64, for A and B"},
      {with([](S& s) { s.c = bf16; }), "c = bf16: expected f32 or f16, for products of f16"},
      {with([](S& s) { s.type = f64; }), "c = f32: expected f64, for products of f64"},
      {with([](S& s) { s.m = 24; }),
       "m = 24: expected a multiple of 16 from 16 to 64, for f16; the nearest is 32"},
      {with([](S& s) { s.n = 80; }),
       "n = 80: expected a multiple of 16 from 16 to 64, for f16; the nearest is 64"},
      {with([](S& s) { s.k = 0; }),
       "k = 0: expected a multiple of 16 from 16 to 64, for f16; the nearest is 16"},
      {with([](S& s) { s.type = s.c = f64, s.k = 20; }),
       "k = 20: expected a multiple of 8 from 8 to 64, for f64; the nearest is 24"},
      {with([](S& s) { s.warps_m = 3; }),
       "warps_m = 3: expected 1 to 8, a divisor of m = 32 into parts of 16; the nearest is 2"},
      {with([](S& s) { s.warps_n = 0; }),
       "warps_n = 0: expected 1 to 8, a divisor of n = 32 into parts of 16; the nearest is 1"},
      {with([](S& s) { s.m = s.n = 64, s.warps_m = s.warps_n = 4; }),
       "warps_m * warps_n = 16: expected up to 8 warps; the nearest is 4 x 2"},
      {with([](S& s) { s.products = 0; }), "products = 0: expected 1 to 8; the nearest is 1"},
      {with([](S& s) { s.ahead = 65; }), "ahead = 65: expected 1 to 64; the nearest is 64"},
      {with([](S& s) { s.staged = true; }),
       "staged: expected products of f64, one for each block of three warps or more; found f16, 1 "
       "and 1 x 1"},
      {with([](S& s) {
         s.type = s.c = f64, s.warps_m = s.warps_n = s.products = 2, s.staged = true;
       }),
       "staged: expected products of f64, one for each block of three warps or more; found f64, 2 "
       "and 2 x 2"}};
  for (const auto& [options, message] : wrong) {
    const auto compiled = compile(kernels::small_products(options), *Target::parse("sm_80"));
    ASSERT_FALSE(compiled) << message;
    ASSERT_EQ(compiled.diags().size(), 1U) << compiled.diags().text();
    EXPECT_EQ(compiled.diags()[0].message, message);
  }
  // Whatever else is wrong, tuned() changes nothing of it and says nothing.
  EXPECT_EQ(on("sm_80", of(0, -3, 1 << 30, f32, f32)).m, 0);
}

TEST(SmallProducts, NeedsSm80) {
  for (const Type type : {f16, bf16, f64}) {
    const auto compiled =
        compile(kernels::small_products(of(32, 32, 32, type, type)), *Target::parse("sm_75"));
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.diags()[0].id, "no-instruction");
  }
}

}  // namespace
}  // namespace tartan
