// SPDX-License-Identifier: Apache-2.0
// Stages that index rings: out of the ring, another pipeline's, used after their step, in a ring
// that another pipeline fills. With and without producers; what is right compiles without a word.
#include "tests/dsl/refusals.h"

namespace tartan {
namespace {

constexpr int block = 128;

struct Rings {
  Builder& k;
  Global in, out;            // f32
  Ring first, second, wide;  // of 2, 2 and 4 stages

  Scalar element(const Shared& of) const { return k.read(of, 0, k.thread()); }
  void use(const Shared& of) const { k.write(out, 0, k.thread(), element(of)); }
  void pipeline(const std::function<void(Scalar, Scalar)>& fill,
                const std::function<void(Scalar, Scalar)>& use) const {
    k.pipeline({.stages = 2}, 4, fill, use);
  }
  void fill(const Shared& to) const { k.copy(in.tile({0, 0}, {1, block}), to); }
};
using Body = std::function<void(Rings&)>;

Kernel kernel_of(const Body& body, bool roles, bool dynamic) {
  return kernel("rings", {.block = block, .producers = roles ? 4 : 0}, [=](Builder& k) {
    auto in = k.global("in", f32, row_major(64, block)),
         out = k.global("out", f32, row_major(1, block));
    const auto ring = [&](const char* name, int stages) {
      return k.shared(name, f32, RingLayout{row_major(1, block), stages});
    };
    if (dynamic) (void)k.shared("room", f32, row_major(100, 128));
    Rings rings{k, in, out, ring("first", 2), ring("second", 2), ring("wide", 4)};
    k.roles([&] { body(rings); });
  });
}

void for_all(const std::function<void(bool roles, bool dynamic, Arch arch)>& check) {
  for (const char* target : {"sm_80", "sm_90a"})
    for (const bool roles : {false, true})
      for (const bool dynamic : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << target << ", roles " << roles << ", dynamic " << dynamic);
        check(roles, dynamic, *Arch::parse(target));
      }
}

void expect_refused(const Body& body, const std::vector<std::string_view>& told,
                    const std::source_location& at = std::source_location::current()) {
  for_all([&](bool roles, bool dynamic, Arch arch) {
    test::expect_told(compile(kernel_of(body, roles, dynamic), arch), told, at);
  });
}

void expect_right(const Body& body) {
  for_all([&](bool roles, bool dynamic, Arch arch) {
    const auto compiled = compile(kernel_of(body, roles, dynamic), arch);
    EXPECT_TRUE(compiled) << compiled.diags().text();
  });
}

TEST(StageIndex, ReachesNoFurtherThanTheRing) {
  expect_refused(
      [](Rings& r) {
        r.pipeline([&](Scalar, Scalar s) { r.fill(r.first[s]); },
                   [&](Scalar, Scalar s) { r.use(r.first[s + 1]); });
      },
      {"first is indexed by the pipeline's stage + 1: there is none behind the last one"});
  expect_refused(
      [](Rings& r) {
        r.pipeline([&](Scalar, Scalar s) { r.fill(r.first[s - 1]); },
                   [&](Scalar, Scalar s) { r.use(r.first[s]); });
      },
      {"first is indexed by the pipeline's stage - 1: there is none before the first one"});
  // Two matrices for each stage.
  expect_right([](Rings& r) {
    r.pipeline([&](Scalar, Scalar s) { r.fill(r.wide[s]), r.fill(r.wide[s + 2]); },
               [&](Scalar, Scalar s) { r.use(r.wide[s + 2]); });
    r.pipeline([&](Scalar, Scalar s) { r.fill(r.first[s]); },
               [&](Scalar, Scalar s) { r.use(r.first[(s + 1) - 1]); });
  });
}

TEST(StageIndex, IsUsedInItsStep) {
  const auto keep = [](std::vector<Scalar>& kept, const Scalar& stage) { kept.push_back(stage); };
  expect_refused(
      [&](Rings& r) {
        std::vector<Scalar> kept;
        r.pipeline([&](Scalar, Scalar s) { r.fill(r.first[s]); },
                   [&](Scalar, Scalar s) { keep(kept, s), r.use(r.first[s]); });
        r.use(r.first[kept.back()]);
      },
      {"first is indexed by a stage of the pipeline at", "whose step is over",
       "expected the access inside of that pipeline's callback"});
  expect_refused(
      [&](Rings& r) {
        std::vector<Scalar> kept;
        r.pipeline([&](Scalar, Scalar s) { r.fill(r.first[s]); },
                   [&](Scalar, Scalar s) { keep(kept, s), r.use(r.first[s]); });
        r.pipeline([&](Scalar, Scalar s) { r.fill(r.second[s]); },
                   [&](Scalar, Scalar) { r.use(r.second[kept.back()]); });
      },
      {"second is indexed by a stage of the pipeline at",
       "expected the stage that this callback is given"});
}

TEST(StageIndex, IsOfTheRingThatThePipelineFills) {
  expect_refused(
      [](Rings& r) {
        r.pipeline([&](Scalar, Scalar s) { r.fill(r.first[s]); },
                   [&](Scalar, Scalar s) { r.use(r.second[s]); });
        r.pipeline([&](Scalar, Scalar s) { r.fill(r.second[s]); },
                   [&](Scalar, Scalar s) { r.use(r.second[s]); });
      },
      {"second is indexed by the stage of the pipeline at", "and filled by the one at",
       "expected a ring that the same pipeline fills"});
  expect_right([](Rings& r) {
    for (const Ring& each : {r.first, r.second})
      r.pipeline([&](Scalar, Scalar s) { r.fill(each[s]); },
                 [&](Scalar, Scalar s) { r.use(each[s]); });
  });
}

}  // namespace
}  // namespace tartan
