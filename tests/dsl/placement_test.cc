// SPDX-License-Identifier: Apache-2.0
// Tiles, row values and accumulators of different placement: joined where they agree, refused where
// their elements are elsewhere. On the emulator with all checks, against loops in C++.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <random>

#include "tests/support/engine.h"
#include "tests/support/text_files.h"

namespace tartan {
namespace {

using Numbers = std::vector<host::f16>;

Numbers numbers(int count, unsigned seed) {
  std::mt19937 random(seed);
  Numbers out;
  for (int i = 0; i < count; ++i)
    out.push_back(host::f16(static_cast<float>(static_cast<int>(random() % 5) - 2)));
  return out;
}

// Row-major X (m x depth) times row-major Y (depth x n).
std::vector<double> product(const std::vector<double>& x, const std::vector<double>& y, int m,
                            int n, int depth) {
  std::vector<double> out(static_cast<std::size_t>(m * n));
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      for (int t = 0; t < depth; ++t)
        out[static_cast<std::size_t>(i * n + j)] +=
            x[static_cast<std::size_t>(i * depth + t)] * y[static_cast<std::size_t>(t * n + j)];
  return out;
}

std::vector<double> widened(const Numbers& from) {
  std::vector<double> out;
  for (const host::f16& each : from) out.push_back(static_cast<float>(each));
  return out;
}

// Joins tiles of two products of the same A (m x 64) and B (64 x 64).
struct Products {
  Builder& k;
  const TiledMma &first, &second;
  Shared a, b;
};
using Join = std::function<WarpTile(const Products&, const WarpTile& p)>;

constexpr int depth = 64, cols = 64;

// C = join(first: A * B), by best_mma() and another product.
Kernel joined(const Join& join, bool both_best, int rows, int warps) {
  const Tile tile{.m = rows, .n = cols, .k = depth, .warps_m = warps, .warps_n = 1};
  return kernel("joined", {.block = tile.threads(), .producers = 4}, [=](Builder& k) {
    auto A = k.global("A", f16, row_major(rows, depth)),
         B = k.global("B", f16, row_major(depth, cols));
    auto C = k.global("C", f32, row_major(rows, cols));
    const MmaKind best = k.best_mma(f16, f16, f32);
    auto first = k.tiled_mma(best, tile);
    auto second = k.tiled_mma(both_best ? best : m16n8k16(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, first.shared_a()),
         sB = k.shared("sB", f16, first.shared_b(1, Major::row));
    k.roles([&] {
      auto out = second.accumulator();
      k.pipeline(
          {.stages = 1}, 1,
          [&](Scalar, Scalar stage) { k.copy(A, sA[stage]), k.copy(B, sB[stage]); },
          [&](Scalar, Scalar stage) {
            auto sum = first.accumulator();
            sum = first(sum, sA[stage], sB[stage]);
            out = map(join({k, first, second, sA[stage], sB[stage]}, sum),
                      [](Scalar x) { return x; });
          });
      k.store(C, out);
    });
  });
}

const std::pair<const char*, Join> joins[] = {
    {"continued", [](const Products& x, const WarpTile& p) { return x.second(p, x.a, x.b); }},
    {"sum", [](const Products& x,
               const WarpTile& p) { return x.second(x.second.accumulator(), x.a, x.b) + p; }},
    {"sum with the later product",  // which is waited for first
     [](const Products& x, const WarpTile& p) {
       return p + x.second(x.second.accumulator(), x.a, x.b);
     }},
    {"row values",
     [](const Products& x, const WarpTile& p) {
       return x.second(x.second.accumulator(), x.a, x.b) * row_sum(p);
     }},
    {"row variable",
     [](const Products& x, const WarpTile& p) {
       auto rows = x.second.row_variable(x.k.constant(f32, 0));
       rows = row_sum(p) * 1.0;
       return x.second(x.second.accumulator(), x.a, x.b) * rows;
     }},
    {"operand",
     [](const Products& x, const WarpTile& p) {
       return x.second(x.second.accumulator(), operand_a(convert(p, f16)), x.b);
     }},
};

std::vector<double> expected(std::string_view join, const Numbers& a, const Numbers& b, int rows) {
  const std::vector<double> p = product(widened(a), widened(b), rows, cols, depth);
  if (join == "operand") return product(p, widened(b), rows, cols, depth);
  std::vector<double> out = p;
  for (int i = 0; i < rows; ++i) {
    double sum = 0;
    for (int j = 0; j < cols; ++j) sum += p[static_cast<std::size_t>(i * cols + j)];
    for (int j = 0; j < cols; ++j)
      out[static_cast<std::size_t>(i * cols + j)] *=
          join == "continued" || join.starts_with("sum") ? 2 : sum;
  }
  return out;
}

template <typename... Arguments>
void run_on(const char* target, const Kernel& kernel, const Arguments&... arguments) {
  Device device = test::open_engine({.hardware = target, .checks = Checks::all});
  const auto compiled = compile(kernel, Target::parse(target)->arch);
  ASSERT_TRUE(compiled) << compiled.diags().text();
  const auto done = run(device, *compiled, {1}, arguments...);
  EXPECT_TRUE(done) << done.diags().text();
}

void expect_joined(const char* target, std::string_view name, const Join& join, bool both_best,
                   int rows, int warps) {
  SCOPED_TRACE(fmt::format("{} {} {} rows, {}", target, name, rows, both_best));
  const Numbers a = numbers(rows * depth, 1), b = numbers(depth * cols, 2);
  std::vector<float> c(static_cast<std::size_t>(rows * cols));
  run_on(target, joined(join, both_best, rows, warps), in(a), in(b), out(c));
  EXPECT_EQ(std::vector<double>(c.begin(), c.end()), expected(name, a, b, rows));
}

TEST(Placement, ProductsOfOneKindAreJoined) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const auto& [name, join] : joins)
      for (const int rows : {64, 128}) expect_joined(target, name, join, true, rows, 4);
}

// With m16n8k16 on sm_80, and on sm_90a with a wgmma of 64 rows, the places are the same.
TEST(Placement, ProductsOfOtherKindsAreJoinedWhereTheyAgree) {
  for (const auto& [name, join] : joins) {
    expect_joined("sm_80", name, join, false, 128, 4);
    expect_joined("sm_90a", name, join, false, 64, 4);
  }
}

// Each line of the text: the target, what is joined, and the message.
std::string messages(const Result<Compiled>& compiled, std::string_view what) {
  std::string out;
  EXPECT_FALSE(compiled) << what;
  if (compiled) return {};
  EXPECT_EQ(compiled.diags().size(), 1U) << compiled.diags().text();
  for (const Diag& each : compiled.diags()) {
    EXPECT_NE(each.place.file.find("placement_test.cc"), std::string::npos);
    out += fmt::format("{}: {} [{}]\n", what, each.message, each.id);
  }
  return out;
}

// Without line numbers, which change with this file.
std::string without_lines(std::string text) {
  const std::string file = "placement_test.cc:";
  for (std::size_t at = text.find(file); at != std::string::npos; at = text.find(file, at)) {
    const std::size_t end = text.find_first_not_of("0123456789", at + file.size());
    text.replace(at, end - at, "LINE");
  }
  return text;
}

TEST(Placement, OthersAreRefusedWithBothProducts) {
  std::string all;
  for (const auto& [name, join] : joins)
    all += messages(compile(joined(join, false, 128, 4), *Arch::parse("sm_90a")),
                    fmt::format("sm_90a, {}", name));
  for (const char* target : {"sm_80", "sm_90a"}) {
    const auto two = [&](const std::function<void(const WarpTile&, const WarpTile&)>& body) {
      return compile(kernel("two", {.block = 128},
                            [&](Builder& k) {
                              const MmaKind kind = m16n8k16(f16, f16, f32);
                              const auto tall = k.tiled_mma(kind, {64, 32, 16, 4, 1}),
                                         wide = k.tiled_mma(kind, {16, 128, 16, 1, 4});
                              const auto x = tall.accumulator(), y = wide.accumulator();
                              body(x, y);
                            }),
                     *Arch::parse(target));
    };
    const auto add = [&](std::string_view what, const Result<Compiled>& compiled) {
      all += messages(compiled, fmt::format("{}, {}", target, what));
    };
    add("tile and tile", two([](const auto& x, const auto& y) { std::ignore = x + y; }));
    add("tile and row values", two([](const auto& x, const auto& y) {
          std::ignore = map_rows(x, row_places(y), [](Scalar a, Scalar) { return a; });
        }));
    add("row values",
        two([](const auto& x, const auto& y) { std::ignore = row_places(x) + row_places(y); }));
  }
  test::expect_file(TEST_DATA "/dsl/placement.txt", without_lines(all));
}

// B in registers: fragments that all warps load, in the rows of wgmma's accumulators.
Kernel b_in_registers(const Tile& tile) {
  return kernel("b_in_registers", {.block = tile.threads(), .producers = 4}, [=](Builder& k) {
    const int steps = 2;
    auto A = k.global("A", f16, row_major(tile.m, steps * tile.k)),
         B = k.global("B", f16, row_major(steps * tile.k, tile.n));
    auto C = k.global("C", f32, row_major(tile.m, tile.n));
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(2)),
         sB = k.shared("sB", f16, mma.shared_b(2, Major::row));
    k.roles([&] {
      auto sum = mma.accumulator();
      k.pipeline(
          {.stages = 2}, steps,
          [&](Scalar t, Scalar stage) {
            k.copy(A.tile({0, t}, {tile.m, tile.k}), sA[stage]);
            k.copy(B.tile({t, 0}, {tile.k, tile.n}), sB[stage]);
          },
          [&](Scalar, Scalar stage) {
            const MmaShape shape = mma.kind().shape;
            std::vector<Fragment> b;
            for (int i = 0; i < tile.k / 16; ++i)
              for (int j = 0; j < tile.n / 8; ++j)
                b.push_back(k.load(operand_b(shape, f16), sB[stage].tile({i, j}, {16, 8})));
            sum = mma(sum, sA[stage], WarpTile(b, tile.n / 8, {}));
          });
      k.store(C, sum);
    });
  });
}

TEST(Placement, BInRegistersInEveryTile) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const Tile& tile :
         {Tile{64, 64, 64, 4, 1}, Tile{128, 64, 64, 4, 1}, Tile{128, 32, 64, 8, 1},
          Tile{256, 32, 64, 8, 1}, Tile{192, 16, 64, 4, 1}}) {
      SCOPED_TRACE(fmt::format("{} {} x {} by {} warps", target, tile.m, tile.n, tile.warps_m));
      const Numbers a = numbers(tile.m * 2 * tile.k, 3), b = numbers(2 * tile.k * tile.n, 4);
      std::vector<float> c(static_cast<std::size_t>(tile.m * tile.n));
      run_on(target, b_in_registers(tile), in(a), in(b), out(c));
      EXPECT_EQ(std::vector<double>(c.begin(), c.end()),
                product(widened(a), widened(b), tile.m, tile.n, 2 * tile.k));
    }
}

}  // namespace
}  // namespace tartan
