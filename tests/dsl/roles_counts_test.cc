// SPDX-License-Identifier: Apache-2.0
// Counts of pipelines in kernels with producers and consumers, which both compute: of what.
#include "tests/dsl/roles_testing.h"

namespace tartan {
namespace {

using namespace roles_testing;

class RolesCounts : public RolesTest {};

// Producers once had zeros in place of it, and another count.
TEST_P(RolesCounts, TakeNothingOfProducts) {
  expect_refused(
      [](Parts& p) {
        p.k.roles([&] {
          p.k.pipeline(
              {.stages = 2}, 2, [&](Scalar t, Scalar s) { p.fill(t, s); },
              [&](Scalar, Scalar s) { p.add(s); });
          const Scalar more = select(row_maximum(p.sum)[0] > 1, 3, 1);
          p.k.loop(0, more, 1, [&](Scalar) {
            p.k.pipeline(
                {.stages = 2}, 1, [&](Scalar t, Scalar s) { p.fill(t, s); },
                [&](Scalar, Scalar s) { p.add(s); });
          });
          p.k.store(p.c, p.sum);
        });
      },
      "producer warps need a", "[wrong-role]");
}

TEST_P(RolesCounts, TakeNothingThatAUseCallbackChanges) {
  const auto body = [](bool needed) {
    return [=](Parts& p) {
      p.k.roles([&] {
        auto count = p.k.variable(p.k.constant(u32, 1));
        p.k.loop(0, 2, 1, [&](Scalar pass) {
          p.k.pipeline(
              {.stages = 2}, needed ? Scalar(count) : Scalar(1),
              [&](Scalar t, Scalar s) { p.fill(t + pass, s); },
              [&](Scalar, Scalar s) {
                p.add(s);
                count = p.k.constant(u32, 2);
              });
        });
        p.k.store(p.c, p.sum);
      });
    };
  };
  expect_refused(body(true), "a variable that a use callback changes", "[wrong-role]");
  EXPECT_EQ(run(2 * size, body(false)), expected(2 * size, 0, 2 * size));
}

// Producers load the count, too, and do not wait for the consumers that write it.
TEST_P(RolesCounts, AreWrittenBeforeRoles) {
  const auto body = [](bool before) {
    return [=](Parts& p) {
      const Shared counts = p.k.shared("counts", u32, row_major(1, 128));
      const auto write = [&] {
        p.k.when(p.k.thread() < 128,
                 [&] { p.k.write(counts, 0, p.k.thread(), p.k.constant(u32, 2)); });
        p.k.barrier();
      };
      if (before) write();
      p.k.roles([&] {
        if (!before) write();
        p.k.pipeline(
            {.stages = 2}, p.k.read(counts, 0, 1), [&](Scalar t, Scalar s) { p.fill(t, s); },
            [&](Scalar, Scalar s) { p.add(s); });
        p.k.store(p.c, p.sum);
      });
    };
  };
  expect_refused(body(false), "an element of memory that consumers write at", "[wrong-role]");
  EXPECT_EQ(run(2 * size, body(true)), expected(2 * size, 0, 2 * size));
}

// Other memory of the kernel's may be both read and written.
TEST_P(RolesCounts, AreOfGlobalMemoryThatNobodyWrites) {
  const auto body = [](bool same) {
    return [=](Parts& p) {
      const Scalar row = p.k.constant(u32, 0);
      p.k.roles([&] {
        p.k.when(p.k.thread() == 0, [&] { p.k.write(p.c, row, 0, p.k.constant(f32, 2)); });
        p.k.barrier();
        const Scalar count = same ? p.k.convert(p.k.read(p.c, row, 0), u32)
                                  : p.k.convert(p.k.read(p.a, 0, 0), u32) * 0 + 2;
        p.k.pipeline(
            {.stages = 2}, count, [&](Scalar t, Scalar s) { p.fill(t, s); },
            [&](Scalar, Scalar s) { p.add(s); });
        p.k.store(p.c, p.sum);
      });
    };
  };
  expect_refused(body(true), "an element of memory that consumers write at", "[wrong-role]");
  EXPECT_EQ(run(2 * size, body(false)), expected(2 * size, 0, 2 * size));
}

INSTANTIATE_TEST_SUITE_P(Targets, RolesCounts, testing::Values("sm_80", "sm_90a", "sm_100a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tartan
