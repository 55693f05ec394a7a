// SPDX-License-Identifier: Apache-2.0
// Accesses to shared memory that no barrier orders: writes behind reads, the end of a loop's body
// against its beginning, reads of others' elements.
#include "tests/dsl/order_programs.h"

namespace tartan {
namespace {

using namespace testing_order;

const Program programs[] = {
    {"an element that another thread has read",
     [](Given& g) {
       g.k.write(g.s, 0, g.t, g.element(g.t));
       g.k.barrier();
       const Scalar x = g.k.read(g.s, 0, 127 - g.t);
       g.order();
       g.k.write(g.s, 0, g.t, x);
       g.k.barrier();
       g.k.write(g.out, 0, g.t, g.k.read(g.s, 0, g.t));
     },
     {"s was read at", "and is written without a barrier; insert a barrier() between them"}},
    {"an element that another thread has written",
     [](Given& g) {
       g.k.write(g.s, 0, g.t, g.element(g.t));
       g.order();
       g.k.write(g.out, 0, g.t, g.k.read(g.s, 0, 127 - g.t));
     },
     {"s was written at", "and is loaded without a barrier; insert a barrier() between them"}},
    {"a vector",
     [](Given& g) {
       g.k.write(g.s, 0, g.t, g.element(g.t));
       g.k.barrier();
       const auto x = g.k.read_vector(g.s, 0, g.t % 32 * 4, 4);
       g.order();
       g.k.when(g.t < 32, [&] { g.k.write_vector(g.s, 0, g.t * 4, x); });
     },
     {"s was read at", "is written without a barrier"}},
    {"the same element of a broadcast",
     [](Given& g) {
       g.k.when(g.t == 0, [&] { g.k.write(g.s, 0, 0, g.element(0)); });
       g.k.barrier();
       const Scalar x = g.k.read(g.s, 0, 0);
       g.order();
       g.k.when(g.t == 0, [&] { g.k.write(g.s, 0, 0, x + 1); });
     },
     {"s was read at", "is written without a barrier"}},
    {"lanes of a warp",
     [](Given& g) {
       g.k.write(g.s, 0, g.t, g.element(g.t));
       g.k.warp_sync();
       const Scalar x = g.k.read(g.s, 0, g.k.warp() * 32 + (31 - g.k.lane()));
       g.order_warp();
       g.k.write(g.s, 0, g.t, x);
     },
     {"s was read at", "is written by other lanes of the warp without a warp_sync()",
      "insert a warp_sync() between them"}},
    {"a tile that a fragment was loaded of",
     [](Given& g) {
       g.k.copy(g.halves.tile({0, 0}, {64, 64}), g.tile);
       g.k.barrier();
       const Fragment a =
           g.k.load(operand_a(m16n8k16, f16), g.tile.tile({g.k.warp(), 0}, {16, 16}));
       g.order();
       g.k.copy(g.halves.tile({0, 1}, {64, 64}), g.tile);
       g.k.barrier();
       g.k.write(g.out, 0, g.t, g.k.convert(g.k.elements(a)[0], f32));
     },
     {"tile was read at", "is written without a barrier"}},
    {"a tile that was copied to global memory",
     [](Given& g) {
       g.k.copy(g.halves.tile({0, 0}, {64, 64}), g.tile);
       g.k.barrier();
       g.k.copy(g.tile, g.halves.tile({1, 1}, {64, 64}));
       g.order();
       g.k.write(g.tile, 63 - g.t / 2, g.t % 2, g.k.convert(g.element(0), f16));
     },
     {"tile was read at", "is written without a barrier"}},
    {"a count that threads have added to",
     [](Given& g) {
       auto count = g.k.shared("count", u32, row_major(1, 1));
       g.k.when(g.t == 0, [&] { g.k.write(count, 0, 0, g.k.constant(u32, 0)); });
       g.k.barrier();
       g.k.atomic(AtomicOp::add, count, 0, 0, g.k.constant(u32, 1));
       g.order();
       g.k.write(g.out, 0, g.t, g.k.convert(g.k.read(count, 0, 0), f32));
     },
     {"count was written at", "is loaded without a barrier"}},
    {"a loop's body",
     [](Given& g) {
       g.k.loop(0, g.n, 1, [&](Scalar i) {
         g.k.write(g.s, 0, g.t, g.k.read(g.in, i, g.t));
         g.k.barrier();
         g.k.write(g.out, i, g.t, g.k.read(g.s, 0, 127 - g.t));
         g.order();
       });
     },
     {"s is read at",
      "and the next iteration of the loop writes it without a barrier; insert a "
      "barrier() at the end of the loop's body"}},
    {"a loop's body that reads what it has written before",
     [](Given& g) {
       g.k.write(g.s, 0, g.t, g.element(g.t));
       g.k.barrier();
       g.k.loop(0, 3, 1, [&](Scalar i) {
         const Scalar x = g.k.read(g.s, 0, 127 - g.t);
         g.k.barrier();
         g.k.write(g.s, 0, g.t, x + 1);
         g.k.write(g.out, i, g.t, x);
         g.order();
       });
     },
     {"s is written at", "and the next iteration of the loop loads it without a barrier"}},
    {"a loop while a condition holds",
     [](Given& g) {
       auto i = g.k.variable(g.k.constant(s32, 0));
       g.k.loop_while([&] { return Scalar(i) < g.n; },
                      [&] {
                        g.k.copy(g.halves.tile({0, 0}, {64, 64}), g.tile);
                        g.k.barrier();
                        const Scalar x = g.k.read(g.tile, g.t % 64, g.t / 2);
                        g.k.write(g.out, i, g.t, g.k.convert(x, f32));
                        g.order();
                        i = Scalar(i) + 1;
                      });
     },
     {"tile is read at", "and the next iteration of the loop writes it without a barrier"}},
    {"a loop of tiles",
     [](Given& g) {
       g.k.each_tile(128, 128, {.m = 64, .n = 64}, [&](Scalar row, Scalar col) {
         g.k.copy(g.halves.tile({row, col}, {64, 64}), g.tile);
         g.k.barrier();
         const Fragment a =
             g.k.load(operand_a(m16n8k16, f16), g.tile.tile({g.k.warp(), 0}, {16, 16}));
         g.order();
         g.k.write(g.out, row, col * 64 + g.t, g.k.convert(g.k.elements(a)[0], f32));
       });
     },
     {"tile is read at", "and the next iteration of the loop writes it without a barrier"}},
    {"a loop in a loop",
     [](Given& g) {
       g.k.loop(0, g.n, 1, [&](Scalar i) {
         g.k.write(g.s, 0, g.t, g.k.read(g.in, i, g.t));
         g.k.barrier();
         auto sum = g.k.variable(g.k.constant(f32, 0));
         g.k.loop(0, g.n, 1, [&](Scalar j) { sum = Scalar(sum) + g.k.read(g.s, 0, j); });
         g.k.write(g.out, i, g.t, sum);
         g.order();
       });
     },
     {"s is read at", "and the next iteration of the loop writes it without a barrier"}},
    {"the consumers' own array next to a ring",
     [](Given& g) {
       auto ring = g.k.shared("ring", f16, RingLayout{row_major(64, 64), 2});
       g.k.roles([&] {
         g.k.pipeline(
             {.stages = 2}, 4,
             [&](Scalar, Scalar stage) {
               g.k.copy(g.halves.tile({0, 0}, {64, 64}), ring[stage]);
             },
             [&](Scalar, Scalar stage) {
               const Scalar x = g.k.convert(g.k.read(ring[stage], 0, g.k.thread() % 64), f32);
               g.k.write(g.s, 0, g.k.thread(), x);
               g.k.barrier();
               g.k.write(g.out, 0, g.k.thread(), g.k.read(g.s, 0, 127 - g.k.thread()));
               g.order();
             });
       });
     },
     {"s is read at", "and the next iteration of the loop writes it without a barrier"},
     4},
    {"a product that reads what threads write next",
     [](Given& g) {
       const Tile shape{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
       auto mma = g.k.tiled_mma(g.k.best_mma(f16, f16, f32), shape);
       auto a = g.k.shared("a", f16, mma.shared_a(1))[0],
            b = g.k.shared("b", f16, mma.shared_b(1))[0];
       g.k.copy(g.halves.tile({0, 0}, {64, 64}), a);
       g.k.copy(g.halves.tile({0, 1}, {64, 64}), b);
       g.k.barrier();
       auto sum = mma.accumulator();
       sum = mma(sum, a, b);
       g.order();
       g.k.copy(g.halves.tile({1, 0}, {64, 64}), a);
       g.k.barrier();
       sum = mma(sum, a, b);
       g.k.store(g.out.tile({0, 0}, {64, 64}), sum);
     },
     {"a was read at", "is written without a barrier"}},
    {"accumulators that are stored to shared memory",
     [](Given& g) {
       const Tile shape{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
       auto mma = g.k.tiled_mma(g.k.best_mma(f16, f16, f32), shape);
       auto c = g.k.shared("c", f16, row_major(64, 64));
       auto sum = mma.accumulator();
       g.k.loop(0, g.n, 1, [&](Scalar i) {
         g.k.store(c, convert(sum, f16));
         g.k.barrier();
         g.k.write(g.out, i, g.t, g.k.convert(g.k.read(c, 63 - g.t / 2, g.t % 2), f32));
         g.order();
       });
     },
     {"c is read at", "and the next iteration of the loop writes it without a barrier"}},
    {"values of rows",
     [](Given& g) {
       const Tile shape{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
       auto mma = g.k.tiled_mma(g.k.best_mma(f16, f16, f32), shape);
       auto rows = g.k.shared("rows", f32, row_major(1, 64));
       auto sum = mma.accumulator();
       const auto store = [&] { g.k.store(rows, row_maximum(sum), sum); };
       store();
       g.k.barrier();
       g.k.write(g.out, 0, g.t, g.k.read(rows, 0, 63 - g.t / 2));
       g.order();
       store();
     },
     {"rows was read at", "is written without a barrier"}},
    {"tiles of a persistent kernel with producers",
     [](Given& g) {
       const Tile shape{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
       auto mma = g.k.tiled_mma(g.k.best_mma(f16, f16, f32), shape);
       auto a = g.k.shared("a", f16, mma.shared_a(2)), b = g.k.shared("b", f16, mma.shared_b(2));
       auto rows = g.k.shared("rows", f32, row_major(1, 64));
       g.k.roles([&] {
         g.k.each_tile(128, 128, shape, [&](Scalar row, Scalar col) {
           auto sum = mma.accumulator();
           g.k.pipeline(
               {.stages = 2}, 2,
               [&](Scalar t, Scalar stage) {
                 g.k.copy(g.halves.tile({row, t}, {64, 64}), a[stage]);
                 g.k.copy(g.halves.tile({t, col}, {64, 64}), b[stage]);
               },
               [&](Scalar, Scalar stage) { mma.add(sum, a[stage], b[stage]); });
           g.k.store(rows, row_maximum(sum), sum);
           g.k.barrier();
           g.k.write(g.out, row * 2 + col, g.k.thread(), g.k.read(rows, 0, 63 - g.k.thread() / 2));
           g.order();
         });
       });
     },
     {"rows is read at", "and the next iteration of the loop writes it without a barrier"},
     4},

    // Right as they are.
    {"a thread's own elements",
     [](Given& g) {
       g.k.loop(0, g.n, 1, [&](Scalar i) {
         g.k.write(g.s, 0, g.t, g.k.read(g.in, i, g.t));
         g.k.write(g.s, 0, g.t, g.k.read(g.s, 0, g.t) + 1);
         g.k.write(g.out, i, g.t, g.k.read(g.s, 0, g.t));
       });
     },
     {}},
    {"a place that only the thread knows",
     [](Given& g) {
       const Scalar place = (g.k.convert(g.element(g.t), s32) + g.k.convert(g.t, s32)) % 128;
       g.k.write(g.s, 0, place, g.element(g.t));
       g.k.write(g.s, 0, place, g.k.read(g.s, 0, place) + 1);
     },
     {}},
    {"a tile that the same threads copy out and in",
     [](Given& g) {
       g.k.loop(0, g.n, 1, [&](Scalar) {
         g.k.copy(g.halves.tile({0, 0}, {64, 64}), g.tile);
         g.k.barrier();
         g.k.copy(g.tile, g.halves.tile({1, 1}, {64, 64}));
       });
     },
     {}},
    {"two arrays in turn, with a barrier for each iteration",
     [](Given& g) {
       auto both = g.k.shared("both", f32, row_major(2, 128));
       g.k.loop(0, g.n, 1, [&](Scalar i) {
         g.k.write(both, i % 2, g.t, g.k.read(g.in, i, g.t));
         g.k.barrier();
         g.k.write(g.out, i, g.t, g.k.read(both, i % 2, 127 - g.t));
       });
     },
     {}},
    {"two arrays in turn, by a variable",
     [](Given& g) {
       auto both = g.k.shared("both", f32, row_major(2, 128));
       auto which = g.k.variable(g.k.constant(u32, 0));
       g.k.loop(0, g.n, 1, [&](Scalar i) {
         g.k.write(both, which, g.t, g.k.read(g.in, i, g.t));
         g.k.barrier();
         g.k.write(g.out, i, g.t, g.k.read(both, which, 127 - g.t));
         which = Scalar(which) ^ 1;
       });
     },
     {}},
    {"each warp's own part",
     [](Given& g) {
       g.k.loop(0, g.n, 1, [&](Scalar i) {
         g.k.write(g.s, 0, g.t, g.k.read(g.in, i, g.t));
         g.k.warp_sync();
         g.k.write(g.out, i, g.t, g.k.read(g.s, 0, g.k.warp() * 32 + (31 - g.k.lane())));
         g.k.warp_sync();
       });
     },
     {}},
    {"a sum by halves",
     [](Given& g) {
       g.k.write(g.s, 0, g.t, g.element(g.t));
       for (int half = block / 2; half > 0; half /= 2) {
         g.k.barrier();
         g.k.when(g.t < half, [&] {
           g.k.write(g.s, 0, g.t, g.k.read(g.s, 0, g.t) + g.k.read(g.s, 0, g.t + half));
         });
       }
       g.k.barrier();
       g.k.write(g.out, 0, g.t, g.k.read(g.s, 0, 0));
     },
     {}},
    {"either one or the other",
     [](Given& g) {
       g.k.write(g.s, 0, g.t, g.element(g.t));
       g.k.barrier();
       g.k.when(
           g.n > 2, [&] { g.k.write(g.out, 0, g.t, g.k.read(g.s, 0, 127 - g.t)); },
           [&] { g.k.write(g.s, 0, g.t, g.element(0)); });
     },
     {}},
    {"pipelines of all threads",
     [](Given& g) {
       auto ring = g.k.shared("ring", f16, RingLayout{row_major(64, 64), 3});
       g.k.pipeline(
           {.stages = 3}, g.n,
           [&](Scalar, Scalar stage) {
             g.k.copy(g.halves.tile({0, 0}, {64, 64}), ring[stage]);
           },
           [&](Scalar t, Scalar stage) {
             g.k.write(g.out, t, g.k.thread(),
                       g.k.convert(g.k.read(ring[stage], 5, g.k.thread() % 64), f32));
           });
     },
     {}},
    {"named barriers of some warps",
     [](Given& g) {
       g.k.write(g.s, 0, g.t, g.element(g.t));
       g.k.when(g.t < 64, [&] {
         g.k.barrier(3, 64);
         const Scalar x = g.k.read(g.s, 0, 63 - g.t);
         g.k.barrier(3, 64);
         g.k.write(g.s, 0, g.t, x);
       });
     },
     {}},
};

// Two warpgroups hand an array on: an mbarrier orders them, and a barrier the threads of each.
TEST(SharedOrder, OfWarpgroupsIsThatOfTheirTurns) {
  const auto in_turn = [](bool right) {
    return kernel("turns", {.block = 256, .producers = 4}, [=](Builder& k) {
      auto in = k.global("in", f32, row_major(1, 128)),
           out = k.global("out", f32, row_major(2, 128));
      auto ring = k.shared("ring", f32, RingLayout{row_major(1, 128), 2});
      auto s = k.shared("s", f32, row_major(1, 128));
      k.roles([&] {
        k.pipeline(
            {.stages = 2}, 2, [&](Scalar, Scalar stage) { k.copy(in, ring[stage]); },
            [&](Scalar, Scalar stage) {
              k.write(out, k.thread() / 128, k.thread() % 128,
                      k.read(ring[stage], 0, k.thread() % 128));
            });
        k.warpgroups([&](int w) {
          k.in_turn([&] {
            k.write(s, 0, k.thread(), k.read(in, 0, k.thread()));
            k.barrier();
            k.write(out, w, k.thread(), k.read(s, 0, 127 - k.thread()));
            if (right) k.barrier();
            k.write(s, 0, k.thread(), 1.0);
          });
        });
      });
    });
  };
  for (const char* target : {"sm_80", "sm_90a"}) {
    const auto right = compile(in_turn(true), *Arch::parse(target));
    ASSERT_TRUE(right) << right.diags().text();
    Device device = test::open_engine({.hardware = target, .checks = Checks::all});
    std::vector<float> in(128), out(256);
    const auto done = run(device, *right, {1}, tartan::in(in), in_out(out));
    EXPECT_TRUE(done) << done.diags().text();
    test::expect_told(compile(in_turn(false), *Arch::parse(target)),
                      {"s was read at", "is written without a barrier"});
  }
}

TEST(SharedOrder, IsAskedForAndHeeded) {
  for (const Program& each : programs) check(each);
}

}  // namespace
}  // namespace tartan
