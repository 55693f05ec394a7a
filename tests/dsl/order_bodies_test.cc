// SPDX-License-Identifier: Apache-2.0
// The order of accesses to shared memory where conditions and loops decide it, of warps that access
// together, and of what both roles compute.
#include "tests/dsl/order_programs.h"

namespace tartan {
namespace {

using namespace testing_order;

FragmentKind rows_of_a() { return operand_a(m16n8k16, f16); }

// Elements of a fragment, so that it is needed.
void use(Given& g, const Fragment& fragment, const Scalar& row) {
  g.k.write(g.out, row, g.t, g.k.convert(g.k.elements(fragment)[0], f32));
}

const Program programs[] = {
    {"the last iteration of eight reads",
     [](Given& g) {
       g.k.loop(0, 8, 1, [&](Scalar i) {
         g.k.write(g.s, 0, g.t, g.k.read(g.in, i, g.t));
         g.k.when(i == 7, [&] {
           g.order();
           g.k.write(g.out, 0, g.t, g.k.read(g.s, 0, 127 - g.t));
         });
       });
     },
     {"s was written at", "and is loaded without a barrier"}},
    {"a barrier in one iteration of four",
     [](Given& g) {
       const auto meet = [&](const Scalar& i) {
         if (g.right) g.k.barrier();
         else g.k.when(i == 0, [&] { g.k.barrier(); });
       };
       g.k.loop(0, 4, 1, [&](Scalar i) {
         g.k.write(g.s, 0, g.t, g.k.read(g.in, i, g.t));
         meet(i);
         g.k.write(g.out, i, g.t, g.k.read(g.s, 0, 127 - g.t));
         meet(i);
       });
     },
     {"without a barrier"}},
    {"a barrier of the lane that is elected",
     [](Given& g) {
       g.k.write(g.s, 0, g.t, g.element(g.t));
       if (g.right) g.k.barrier();
       else g.k.when(g.k.elect(), [&] { g.k.barrier(); });
       g.k.write(g.out, 0, g.t, g.k.read(g.s, 0, 127 - g.t));
     },
     {"barrier(): expected all threads, found the condition at"}},
    {"a barrier of the lanes whose neighbour's index is small",
     [](Given& g) {
       g.k.write(g.s, 0, g.t, g.element(g.t));
       if (g.right) g.k.barrier();
       else g.k.when(shuffle_xor(g.t, 1) < 64, [&] { g.k.barrier(); });
       g.k.write(g.out, 0, g.t, g.k.read(g.s, 0, 127 - g.t));
     },
     {"barrier: expected all 128 threads, found 64"}},
    {"the user's barrier of a warp",
     [](Given& g) {
       g.k.write(g.s, 0, g.t, g.element(g.t));
       g.k.ptx(g.right ? "bar.sync 0;" : "bar.warp.sync 0xffffffff;", {}, {});
       g.k.write(g.out, 0, g.t, g.k.read(g.s, 0, 127 - g.t));
     },
     {"s was written at", "and is loaded without a barrier"}},
    {"more threads than a barrier has",
     [](Given& g) {
       g.k.write(g.s, 0, g.t, g.element(g.t));
       g.k.barrier(3, g.right ? block : 64);
       g.k.write(g.out, 0, g.t, g.k.read(g.s, 0, 127 - g.t));
     },
     {"barrier of 64 threads: 128 come to it"}},
    {"warps that hand over in two bodies",
     [](Given& g) {
       g.k.when(
           g.k.warp() < 2,
           [&] {
             g.k.write(g.s, 0, g.t, g.element(g.t));
             g.k.barrier();
           },
           [&] {
             if (g.right) g.k.barrier();
             g.k.write(g.out, 0, g.t, g.k.read(g.s, 0, g.t - 64));
             if (!g.right) g.k.barrier();
           });
     },
     {"s was written at", "and is loaded without a barrier"}},
    {"a warp's own rows, as a fragment",
     [](Given& g) {
       g.k.copy(g.halves.tile({0, 0}, {64, 64}), g.tile);
       g.k.barrier();
       const Shared rows = g.tile.tile({g.k.warp(), 0}, {16, 16});
       g.k.write(rows, g.k.lane() / 2, g.k.lane() % 2, g.k.convert(g.element(g.t), f16));
       g.order_warp();
       use(g, g.k.load(rows_of_a(), rows), 0);
     },
     {"tile was written at", "by other lanes of the warp without a warp_sync()"}},
    {"a warp's own rows behind the user's barrier of a warp",
     [](Given& g) {
       g.k.copy(g.halves.tile({0, 0}, {64, 64}), g.tile);
       g.k.barrier();
       const Shared rows = g.tile.tile({g.k.warp(), 0}, {16, 16});
       g.k.write(rows, g.k.lane() / 2, g.k.lane() % 2, g.k.convert(g.element(g.t), f16));
       if (g.right) g.k.ptx("bar.warp.sync 0xffffffff;", {}, {});
       use(g, g.k.load(rows_of_a(), rows), 0);
     },
     {"tile was written at", "by other lanes of the warp without a warp_sync()"}},
    {"another warp's rows, as a fragment",
     [](Given& g) {
       g.k.copy(g.halves.tile({0, 0}, {64, 64}), g.tile);
       g.k.barrier();
       const Shared rows = g.tile.tile({g.k.warp(), 0}, {16, 16});
       g.k.write(rows, g.k.lane() / 2, g.k.lane() % 2, g.k.convert(g.element(g.t), f16));
       g.k.warp_sync();
       g.order();
       use(g, g.k.load(rows_of_a(), g.tile.tile({3 - g.k.warp(), 0}, {16, 16})), 0);
     },
     {"tile was written at", "and is loaded without a barrier"}},
    {"two buffers in turn, as fragments",
     [](Given& g) {
       const Ring both = g.k.shared("both", f16, RingLayout{row_major(64, 64), 2});
       g.k.copy(g.halves.tile({0, 0}, {64, 64}), both[0]);
       g.k.barrier();
       g.k.loop(0, 6, 1, [&](Scalar i) {
         g.k.copy(g.halves.tile({0, i % 2}, {64, 64}), both[(i + 1) % 2]);
         use(g, g.k.load(rows_of_a(), both[i % 2].tile({g.k.warp(), 0}, {16, 16})), i);
         g.order();
       });
     },
     {"both is read at", "and the next iteration of the loop writes it without a barrier"}},
    {"a thread's own element at a distance that a parameter gives",
     [](Given& g) {
       const Scalar place = g.k.convert(g.t, s32) * g.n;
       const Scalar own = g.k.convert(g.t, s32) / g.n;
       g.k.when(g.t < 32, [&] {
         g.k.write(g.s, 0, place, g.element(g.t));
         g.k.write(g.out, 0, g.t, g.k.read(g.s, 0, place));
       });
       g.k.barrier();
       g.k.when(g.k.convert(g.t, s32) % g.n == 0, [&] {
         g.k.write(g.s, 0, own, g.element(g.t));
         g.k.write(g.out, 1, own, g.k.read(g.s, 0, own));
       });
     },
     {}},
};

TEST(OrderInBodies, WhatOrdersItDecides) {
  for (const Program& program : programs) check(program);
}

// A pipeline, and what is around it.
struct Stages {
  Given& g;
  Ring ring;
  explicit Stages(Given& of, const char* name = "ring")
      : g(of), ring(of.k.shared(name, f16, RingLayout{row_major(64, 64), 2})) {}
  void fill(const Scalar& stage) const { g.k.copy(g.halves.tile({0, 0}, {64, 64}), ring[stage]); }
  Scalar element(const Scalar& stage) const {
    return g.k.convert(g.k.read(ring[stage], 0, g.k.thread() % 64), f32);
  }
  void use(const Scalar& t, const Scalar& stage) const {
    g.k.write(g.out, t, g.k.thread(), element(stage));
  }
  void run(
      const Scalar& count, const std::function<void()>& filled = [] {},
      const std::function<void()>& used = [] {}) const {
    g.k.pipeline(
        {.stages = 2}, count,
        [&](Scalar, Scalar s) {
          fill(s);
          filled();
        },
        [&](Scalar t, Scalar s) {
          use(t, s);
          used();
        });
  }
};

const Program of_roles[] = {
    {"a fill of memory without stages",
     [](Given& g) {
       const Stages stages(g);
       const Ring own = g.k.shared("own", f32, RingLayout{row_major(1, 128), g.right ? 2 : 1});
       const auto at = [&](const Scalar& s) { return own[g.right ? s : Scalar(0)]; };
       g.k.roles([&] {
         g.k.pipeline(
             {.stages = 2}, 4,
             [&](Scalar t, Scalar s) {
               stages.fill(s);
               g.k.write(at(s), 0, g.k.thread(), g.k.convert(t, f32));
             },
             [&](Scalar t, Scalar s) {
               g.k.write(g.out, t, g.k.thread(),
                         g.k.read(at(s), 0, g.k.thread()) + stages.element(s));
             });
       });
     },
     {"own is filled for the next step while consumers read it at",
      "its pipeline has 2 stages, and it 1; expected a ring of 2 stages"},
     4},
    {"a stage behind next()",
     [](Given& g) {
       const Stages stages(g);
       g.k.roles([&] {
         g.k.pipeline(
             {.stages = 2}, 8, [&](Scalar, Scalar s) { stages.fill(s); }, {},
             [&](Scalar t, Scalar s, const std::function<void()>& next) {
               if (!g.right) next();
               stages.use(t, s);
               if (g.right) next();
             });
       });
     },
     {"ring is accessed behind next(), which lets producers fill its stage again"},
     4},
    {"a count that a fill changes",
     [](Given& g) {
       const Stages first(g), second(g, "second");
       g.k.roles([&] {
         auto count = g.k.variable(g.k.constant(u32, 4));
         first.run(2, [&] {
           if (!g.right) count = Scalar(count) - 1;
         });
         second.run(count);
       });
     },
     {"the count of a pipeline needs a variable that a fill callback changes at"},
     4},
    {"a count that a fill changes for the next iteration",
     [](Given& g) {
       const Stages stages(g);
       g.k.roles([&] {
         auto count = g.k.variable(g.k.constant(u32, 1));
         g.k.loop(0, 2, 1, [&](Scalar) {
           stages.run(count, [&] {
             if (!g.right) count = Scalar(count) + 1;
           });
         });
       });
     },
     {"a variable that a fill callback changes at"},
     4},
    {"a variable that a fill changes and consumers store",
     [](Given& g) {
       const Stages stages(g);
       g.k.roles([&] {
         auto sum = g.k.variable(g.k.constant(u32, 0));
         stages.run(
             2,
             [&] {
               if (!g.right) sum = Scalar(sum) + 1;
             },
             [&] {
               if (g.right) sum = Scalar(sum) + 1;
             });
         g.k.write(g.out, 3, g.k.thread(), g.k.convert(Scalar(sum), f32));
       });
     },
     {"consumers need a variable that a fill callback changes at"},
     4},
    {"scratch of each role for itself",
     [](Given& g) {
       const Stages stages(g);
       g.k.roles([&] {
         auto scratch = g.k.variable(g.k.constant(u32, 0));
         g.k.pipeline(
             {.stages = 2}, 4,
             [&](Scalar t, Scalar s) {
               scratch = t / 4;
               g.k.copy(g.halves.tile({scratch, 0}, {64, 64}), stages.ring[s]);
             },
             [&](Scalar t, Scalar s) {
               scratch = t % 4;
               stages.use(scratch, s);
             });
       });
     },
     {},
     4},
};

TEST(OrderInBodies, RolesShareNoVariablesAndNoMemoryWithoutStages) {
  for (const Program& program : of_roles) check(program);
}

TEST(OrderInBodies, APipelineOfTheElectedLaneIsRefused) {
  const Program program{"elected",
                        [](Given& g) {
                          const Stages stages(g);
                          g.k.roles([&] {
                            if (g.right) stages.run(2);
                            else g.k.when(g.k.elect(), [&] { stages.run(2); });
                          });
                        },
                        {"producer warps need the index of a thread"},
                        4};
  check(program);
}

// Products see what threads have written before any barrier between them, not barrier() alone.
TEST(OrderInBodies, NamedBarriersFenceOperands) {
  const Target target = *Target::parse("sm_90a");
  for (const bool computed : {false, true}) {
    const Kernel product = kernel("product", {.block = 128, .producers = 4}, [=](Builder& k) {
      const auto a = k.global("A", f16, row_major(64, 128)),
                 b = k.global("B", f16, row_major(128, 64)),
                 c = k.global("C", f32, row_major(64, 64));
      const auto id = k.param("id", u32);
      auto mma = k.tiled_mma(k.best_mma(f16, f16, f32),
                             {.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1});
      const Shared own = k.shared("own", f16, mma.shared_a(1))[0];
      const Ring ring = k.shared("ring", f16, mma.shared_b(2));
      const auto meet = [&] {
        if (computed) k.barrier(id, 128);
        else k.barrier(2, 128);
      };
      k.roles([&] {
        auto sum = mma.accumulator();
        k.pipeline(
            {.stages = 2}, 2,
            [&](Scalar t, Scalar s) {
              k.copy(b.tile({t, 0}, {64, 64}), ring[s]);
            },
            [&](Scalar t, Scalar s) {
              k.copy(a.tile({0, t}, {64, 64}), own);
              meet();
              mma.add(sum, own, ring[s]);
              meet();
            });
        k.store(c, sum);
      });
    });
    const auto compiled = compile(product, target);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    Device device = test::open_engine({.hardware = "sm_90a", .checks = Checks::all});
    const std::vector<host::f16> a(64 * 128, host::f16(1.0F)), b(128 * 64, host::f16(0.5F));
    std::vector<float> c(64 * 64);
    const auto done = run(device, *compiled, {1}, in(a), in(b), out(c), 2U);
    EXPECT_TRUE(done) << done.diags().text();
    EXPECT_EQ(c, std::vector<float>(64 * 64, 64.0F));
    for (const Finding& each : device.findings()) ADD_FAILURE() << each.id << ": " << each.message;
  }
}

// Accesses of the same bytes count once: without, this took minutes.
TEST(OrderInBodies, ManyAccessesTakeLittleTime) {
  const Kernel many = kernel("many", {.block = 1024}, [](Builder& k) {
    const auto in = k.global("in", f32, row_major(1, 1024)),
               out = k.global("out", f32, row_major(4, 1024));
    const Shared s = k.shared("s", f32, row_major(4, 1024));
    const Scalar t = k.thread();
    for (int i = 0; i < 400; ++i) {
      k.write(s, i % 4, t, k.read(in, 0, t));
      k.warp_sync();
      k.write(out, i % 4, t, k.read(s, i % 4, t ^ 1));
      k.warp_sync();
    }
  });
  const auto start = std::chrono::steady_clock::now();
  const auto compiled = compile(many, *Target::parse("sm_80"));
  EXPECT_TRUE(compiled) << compiled.diags().text();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

}  // namespace
}  // namespace tartan
