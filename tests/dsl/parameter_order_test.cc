// SPDX-License-Identifier: Apache-2.0
// Parameters in one order, destinations and sources before places, places before sizes: the forms
// of the last version give the same code.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <functional>

#include "tests/dsl/code_of.h"
#include "tests/dsl/refusals.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // the old forms, until 0.3

namespace tartan {
namespace {

using Body = std::function<void(Builder&)>;

std::string code_of(const Body& body, const char* target, const KernelOptions& options) {
  return test::code_of(kernel("ordered", options, body), target);
}

void expect_same(const Body& before, const Body& now, const KernelOptions& options = {.block = 128},
                 const std::source_location& at = std::source_location::current()) {
  SCOPED_TRACE(testing::Message() << "called in line " << at.line());
  for (const char* target : {"sm_80", "sm_90a"}) {
    const std::string code = code_of(now, target, options);
    EXPECT_NE(code, "");
    EXPECT_EQ(code_of(before, target, options), code) << target;
  }
}

struct Matrices {
  explicit Matrices(Builder& k)
      : rows(k.param("rows", s32)),
        A(k.global("A", f32, row_major(rows, 64))),
        C(k.global("C", f32, row_major(64, 32))),
        s(k.shared("s", f32, row_major(64, 32))) {}
  Scalar rows;
  Global A, C;
  Shared s;
};

TEST(ParameterOrder, OfTilesAndWindows) {
  expect_same(
      [](Builder& k) {
        Matrices x(k);
        k.copy(x.A.tile(64, 32, k.block_x(), 1), x.s);
        k.barrier();
        k.copy(x.s.tile(32, 16, 1, 0), x.C.tile(32, 16, 0, 1));
      },
      [](Builder& k) {
        Matrices x(k);
        k.copy(x.A.tile({k.block_x(), 1}, {64, 32}), x.s);
        k.barrier();
        k.copy(x.s.tile({1, 0}, {32, 16}), x.C.tile({0, 1}, {32, 16}));
      });
  expect_same(
      [](Builder& k) {
        Matrices x(k);
        k.copy(x.A.window(x.rows - 70, 8, 64, 32), x.s);
        k.barrier();
        k.copy(x.s, x.C);
      },
      [](Builder& k) {
        Matrices x(k);
        k.copy(x.A.window({x.rows - 70, 8}, {64, 32}), x.s);
        k.barrier();
        k.copy(x.s, x.C);
      });
}

TEST(ParameterOrder, OfCopies) {
  const auto twice = [](Scalar i) { return i * 2; };
  expect_same(
      [=](Builder& k) {
        Matrices x(k);
        k.copy_rows(x.A.tile({0, 0}, {128, 32}), twice, x.s);
        k.barrier();
        k.copy(x.s, x.C);
      },
      [=](Builder& k) {
        Matrices x(k);
        k.copy_rows(x.A.tile({0, 0}, {128, 32}), x.s, twice);
        k.barrier();
        k.copy(x.s, x.C);
      });
  const auto images = [](bool old, bool pixels) {
    return [=](Builder& k) {
      auto X = k.tensor("X", f16, {4, 16, 16, 64});
      auto C = k.global("C", f16, row_major(64, 64));
      auto s = k.shared("s", f16, RingLayout{row_major(64, 64), 2});
      const Filter filter{.size = {3, 3}, .padding = {1, 1}};
      k.roles([&] {
        k.pipeline(
            {.stages = 2}, 2,
            [&](Scalar t, Scalar stage) {
              const Shared to = s[stage];  // the compiler orders arguments as it likes
              const Scalar first = t * 64;
              if (pixels && old) k.copy_pixels(X, filter, first, {1, 2}, 0, to);
              else if (pixels) k.copy_pixels(X, to, filter, first, {1, 2}, 0);
              else if (old) k.copy_box(X, {t, 3, -1, 0}, {1, 4, 16, 64}, to);
              else k.copy_box(X, to, {t, 3, -1, 0}, {1, 4, 16, 64});
            },
            [&](Scalar, Scalar stage) { k.copy(s[stage], C); });
      });
    };
  };
  for (const bool pixels : {false, true})
    expect_same(images(true, pixels), images(false, pixels), {.block = 128, .producers = 4});
}

TEST(ParameterOrder, OfElementsUnderACondition) {
  expect_same(
      [](Builder& k) {
        Matrices x(k);
        k.write(x.s, 0, k.lane(), k.constant(f32, 1));
        k.barrier();
        const Scalar a = k.read_if(k.thread() < x.rows, x.A, k.thread(), 3),
                     b = k.read_if(k.thread() < 32, x.s, 0, k.thread());
        k.write_if(k.thread() < 64, x.C, k.thread(), 1, a + b);
        k.write_if(k.thread() < 9, x.s, 1, k.thread(), a);
      },
      [](Builder& k) {
        Matrices x(k);
        k.write(x.s, 0, k.lane(), k.constant(f32, 1));
        k.barrier();
        const Scalar a = k.read_if(x.A, k.thread(), 3, k.thread() < x.rows),
                     b = k.read_if(x.s, 0, k.thread(), k.thread() < 32);
        k.write_if(x.C, k.thread(), 1, a + b, k.thread() < 64);
        k.write_if(x.s, 1, k.thread(), a, k.thread() < 9);
      });
}

TEST(ParameterOrder, OfPipelines) {
  const auto described = [](int form) {
    return [=](Builder& k) {
      auto A = k.global("A", f32, row_major(64, 128)), C = k.global("C", f32, row_major(64, 32));
      auto s = k.shared("s", f32, RingLayout{row_major(64, 32), 3});
      const auto fill = [&](Scalar t, Scalar stage) { k.copy(A.tile({0, t}, {64, 32}), s[stage]); };
      const auto use = [&](Scalar, Scalar stage) { k.copy(s[stage], C); };
      const auto use_next = [&](Scalar, Scalar stage, const std::function<void()>& next) {
        k.copy(s[stage], C);
        next();
      };
      if (form == 0) k.pipeline(3, 4, fill, use);
      if (form == 1) k.pipeline({.stages = 3}, 4, fill, use);
      if (form == 2) k.pipeline(3, 4, fill, nullptr, use_next);
      if (form == 3) k.pipeline({.stages = 3}, 4, fill, nullptr, use_next);
    };
  };
  expect_same(described(0), described(1));
  expect_same(described(2), described(3));
}

TEST(ParameterOrder, OfTurns) {
  const auto described = [](bool old) {
    return [=](Builder& k) {
      auto A = k.global("A", f32, row_major(64, 128)), C = k.global("C", f32, row_major(128, 32));
      auto s = k.shared("s", f32, RingLayout{row_major(64, 32), 3});
      k.roles([&] {
        k.warpgroups([&](int w) {
          const auto fill = [&](Scalar t, Scalar stage) {
            k.copy(A.tile({0, t}, {64, 32}), s[stage]);
          };
          const auto use = [&](Scalar, Scalar stage) {
            k.copy(s[stage], C.tile({w, 0}, {64, 32}));
          };
          if (old) k.ping_pong(3, 4, fill, use);
          else k.pipeline({.stages = 3, .turns = true}, 4, fill, use);
        });
      });
    };
  };
  expect_same(described(true), described(false), {.block = 256, .producers = 4});
}

// The line in a message is the caller's, in the old forms, too.
TEST(ParameterOrder, MistakesAreToldAtTheirLine) {
  test::expect_told(Body([](Builder& k) {
                      Matrices x(k);
                      x.s.tile({0, 9}, {32, 16});
                      x.C.window({0, 0}, {-1, 16});
                      k.read_if(x.C, 0, 0, k.constant(f32, 1));
                      k.read_if(k.constant(f32, 1), x.C, 0, 0);
                      k.copy_rows(x.C, x.s, nullptr);
                      k.copy_rows(x.C, nullptr, x.s);
                      k.pipeline(
                          {.stages = 0}, 1, [](Scalar, Scalar) {}, [](Scalar, Scalar) {});
                      k.pipeline(
                          300, 1, [](Scalar, Scalar) {}, [](Scalar, Scalar) {});
                    }),
                    {"copy_rows", "expected 1 to 256, found 0", "expected 1 to 256, found 300"});
}

// ---- Roles as a list.

Body staged() {
  return [](Builder& k) {
    auto A = k.global("A", f32, row_major(64, 128)), C = k.global("C", f32, row_major(64, 32));
    auto s = k.shared("s", f32, RingLayout{row_major(64, 32), 3});
    k.roles([&] {
      k.pipeline(
          {.stages = 3}, 4,
          [&](Scalar t, Scalar stage) {
            k.copy(A.tile({0, t}, {64, 32}), s[stage]);
          },
          [&](Scalar, Scalar stage) { k.copy(s[stage], C); });
    });
  };
}

TEST(RolesAsAList, AreTheSameKernel) {
  for (const char* target : {"sm_75", "sm_80", "sm_90a"}) {
    EXPECT_EQ(code_of(staged(), target, {.roles = {{"compute", 8}, {"load", 4}}}),
              code_of(staged(), target, {.block = 256, .producers = 4}))
        << target;
    EXPECT_EQ(code_of(staged(), target, {.roles = {{"compute", 4}}}),
              code_of(staged(), target, {.block = 128}))
        << target;
  }
  const auto compiled =
      compile(kernel("listed", {.roles = {{"compute", 8}, {"load", 4}}}, staged()),
              *Target::parse("sm_80"));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(compiled->block, 384);
}

TEST(RolesAsAList, OthersAreRefused) {
  const auto refused = [](const KernelOptions& options, std::vector<std::string_view> texts,
                          const std::source_location& at = std::source_location::current()) {
    test::expect_told(compile(kernel("wrong", options, staged()), *Target::parse("sm_90a")), texts,
                      at);
  };
  const std::string_view expected =
      R"(roles: expected {{"compute", warps}} or {{"compute", warps}, {"load", warps}} with 1 to 32)";
  refused({.roles = {{"load", 4}, {"compute", 8}}},
          {expected, R"(found {{"load", 4}, {"compute", 8}})"});
  refused({.roles = {{"load", 4}}}, {expected, R"(found {{"load", 4}})"});
  refused({.roles = {{"compute", 8}, {"mma", 1}}}, {expected});
  refused({.roles = {{"compute", 8}, {"load", 1}, {"mma", 1}}}, {expected});
  refused({.roles = {{"compute", 0}, {"load", 1}}}, {expected});
  refused({.roles = {{"compute", 32}, {"load", 4}}}, {"expected at most 1024 threads in total"});
  refused({.block = 256, .roles = {{"compute", 8}, {"load", 4}}},
          {"expected roles, or block and producers", "block = 256, producers = 0"});
  refused({.producers = 4, .roles = {{"compute", 8}}}, {"block = 32, producers = 4"});
}

}  // namespace
}  // namespace tartan
