// SPDX-License-Identifier: Apache-2.0
// griddepcontrol_wait() in kernels with producers and consumers: what runs ahead of it, and what
// may not cross it.
#include "tests/dsl/roles_testing.h"

namespace tartan {
namespace {

using namespace roles_testing;

class RolesWait : public RolesTest {};

// What is filled before griddepcontrol_wait() runs ahead, what comes after it follows, whether TMA
// or threads copy either; again when the pipeline runs a second time, with any number of k-tiles.
TEST_P(RolesWait, CopiesBeforeTheWaitRunAhead) {
  for (const int tiles : {1, 2, 5})
    for (const bool early_by_threads : {false, true})
      for (const bool late_by_threads : {false, true}) {
        const auto got = run(tiles * size, [=](Parts& p) {
          const auto copy = [&](bool by_threads, const Scalar& t, const auto& body) {
            if (by_threads) p.k.when(t < 100, body);
            else body();
          };
          const auto fill = [&](Scalar t, Scalar s) {
            copy(early_by_threads, t, [&] { p.k.copy(p.b.tile({t, 0}, {size, size}), p.sb[s]); });
            p.k.griddepcontrol_wait();
            copy(late_by_threads, t, [&] { p.k.copy(p.a.tile({0, t}, {size, size}), p.sa[s]); });
          };
          p.k.roles([&] {
            p.k.griddepcontrol_wait();
            p.k.loop(0, 2, 1, [&](Scalar) {
              p.k.pipeline({.stages = 2}, tiles, fill, [&](Scalar, Scalar s) { p.add(s); });
            });
            p.k.store(p.c, p.sum);
          });
        });
        EXPECT_EQ(got, expected(tiles * size, 0, tiles * size, {0, 0}))
            << tiles << early_by_threads << late_by_threads;
      }
}

// In front of roles() all threads wait, when their mbarriers have been initialized.
TEST_P(RolesWait, MbarriersAreInitializedBeforeTheWait) {
  const Body body = [](Parts& p) {
    p.k.griddepcontrol_wait();
    p.k.roles([&] {
      p.k.pipeline(
          {.stages = 2}, 2, [&](Scalar t, Scalar s) { p.fill(t, s); },
          [&](Scalar, Scalar s) { p.add(s); });
      p.k.store(p.c, p.sum);
    });
  };
  EXPECT_EQ(run(2 * size, body), expected(2 * size, 0, 2 * size));
  const std::string ptx = compile(product(2 * size, body), target_of(GetParam()))->ptx;
  const auto wait = ptx.find("griddepcontrol.wait");
  if (std::string_view(GetParam()) == "sm_80") {
    EXPECT_EQ(wait, std::string::npos);
    return;
  }
  EXPECT_LT(ptx.rfind("mbarrier.init"), wait);
  EXPECT_LT(wait, ptx.find("mbarrier.try_wait"));
}

// Statements before the wait run with the early copies alone: late ones that need their results are
// refused, whether they take them as coordinates or as conditions.
TEST_P(RolesWait, ResultsDoNotCrossTheWait) {
  const auto around = [](const std::function<void(Parts&, Scalar, Scalar)>& fill) {
    return [fill](Parts& p) {
      p.k.roles([&] {
        p.k.griddepcontrol_wait();
        p.k.pipeline(
            {.stages = 2}, 2, [&](Scalar t, Scalar s) { fill(p, t, s); },
            [&](Scalar, Scalar s) { p.add(s); });
        p.k.store(p.c, p.sum);
      });
    };
  };
  const auto asked = [](Parts& p, const Scalar& t) {
    return p.k.ptx("mov.b32 %0, %1;", {s32}, {p.k.convert(t, s32)})[0];
  };
  const auto fill = [=](bool conditional) {
    return around([=](Parts& p, const Scalar& t, const Scalar& s) {
      const Scalar same = asked(p, t);
      p.k.copy(p.b.tile({same, 0}, {size, size}), p.sb[s]);
      p.k.griddepcontrol_wait();
      const auto late = [&] {
        p.k.copy(p.a.tile({0, conditional ? t : same}, {size, size}), p.sa[s]);
      };
      if (conditional) p.k.when(same < 2, late);
      else late();
    });
  };
  if (std::string_view(GetParam()) != "sm_90a") return;  // no others divide the callback
  for (const bool conditional : {false, true})
    expect_refused(fill(conditional),
                   "copies behind griddepcontrol_wait() need a result from before it",
                   "[wrong-role]");
  EXPECT_EQ(run(2 * size, around([=](Parts& p, const Scalar& t, const Scalar& s) {
                  p.k.copy(p.b.tile({asked(p, t), 0}, {size, size}), p.sb[s]);
                  p.k.griddepcontrol_wait();
                  p.k.copy(p.a.tile({0, asked(p, t)}, {size, size}), p.sa[s]);
                })),
            expected(2 * size, 0, 2 * size));
}

INSTANTIATE_TEST_SUITE_P(Targets, RolesWait, testing::Values("sm_80", "sm_90a", "sm_100a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tartan
