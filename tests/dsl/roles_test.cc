// SPDX-License-Identifier: Apache-2.0
// Unusual products with producers and consumers: correct, or rejected at the C++ line. On sm_90a by
// wgmma and TMA, on sm_80 by mma.sync and cp.async.
#include "tests/dsl/roles_testing.h"

namespace tartan {
namespace {

using namespace roles_testing;

class Roles : public RolesTest {};

// What consumers keep in shared memory, once for each pass over it, is none of the producers' work.
TEST_P(Roles, ConsumersWriteSharedMemory) {
  const auto got = run(2 * size, [](Parts& p) {
    auto factors = p.k.shared("factors", f32, row_major(2, 128));
    p.k.roles([&] {
      p.k.write(factors, 0, p.k.thread(), p.k.constant(f32, 1));
      p.k.barrier();
      p.k.pipeline(
          {.stages = 2}, 2, [&](Scalar t, Scalar s) { p.fill(t, s); },
          [&](Scalar, Scalar s) { p.add(s); });
      p.k.write(factors, 1, p.k.thread(), p.k.read(factors, 0, p.k.thread()) * 3);
      p.k.barrier();
      p.k.store(p.c, map(p.sum, [&](Scalar x, ElementPlace at) {
                  return x * p.k.read(factors, 1, at.col);
                }));
    });
  });
  std::vector<double> wanted = expected(2 * size, 0, 2 * size);
  for (double& each : wanted) each *= 3;
  EXPECT_EQ(got, wanted);
}

// Lines of the PTX, and so those of a deadlock, are the description's.
TEST_P(Roles, EveryLineIsTheUsers) {
  const auto compiled =
      compile(product(2 * size,
                      [](Parts& p) {
                        p.k.roles([&] {
                          p.k.each_tile(size, size, p.mma.tile(), [&](Scalar, Scalar) {
                            p.k.pipeline(
                                {.stages = 2}, 2, [&](Scalar t, Scalar s) { p.fill(t, s); },
                                [&](Scalar, Scalar s) { p.add(s); });
                            p.k.store(p.c, p.sum);
                          });
                        });
                      }),
              target_of(GetParam()));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  for (std::size_t at = 0; (at = compiled->ptx.find("\t.file\t", at)) != std::string::npos; ++at) {
    const std::string line = compiled->ptx.substr(at, compiled->ptx.find('\n', at) - at);
    EXPECT_NE(line.find("tests/dsl/roles_test"), std::string::npos) << line;
  }
}

TEST_P(Roles, SumAllStages) {
  const auto got = run(3 * size, [](Parts& p) {
    p.k.roles([&] {
      p.k.pipeline(
          {.stages = 2}, 3, [&](Scalar t, Scalar s) { p.fill(t, s); },
          [&](Scalar, Scalar s) { p.add(s); });
      p.k.store(p.c, p.sum);
    });
  });
  EXPECT_EQ(got, expected(3 * size, 0, 3 * size));
}

// Outside of fill callbacks consumers alone execute statements.
TEST_P(Roles, ProducersHaveNoResultsOfConsumers) {
  const auto body = [](bool needed) {
    return [=](Parts& p) {
      p.k.roles([&] {
        const Scalar zero = p.k.ptx("mov.b32 %0, 0;", {s32}, {})[0];
        p.k.pipeline(
            {.stages = 2}, 2,
            [&](Scalar t, Scalar s) {
              p.k.copy(p.a.tile({needed ? zero : Scalar(0), t}, {size, size}), p.sa[s]);
              p.k.copy(p.b.tile({t, 0}, {size, size}), p.sb[s]);
            },
            [&](Scalar, Scalar s) { p.add(s); });
        p.k.when(zero == 0, [&] { p.k.store(p.c, p.sum); });
      });
    };
  };
  expect_refused(body(true),
                 "producer warps need a result that they do not have: expected the statement "
                 "inside the fill callback",
                 "[wrong-role]");
  EXPECT_EQ(run(2 * size, body(false)), expected(2 * size, 0, 2 * size));
}

// A thread has another number in each role, and consumers alone execute a use callback.
TEST_P(Roles, FillsTakeNothingOfTheConsumersThreads) {
  const auto by_thread = [](bool inside) {
    return [=](Parts& p) {
      p.k.roles([&] {
        const Scalar outside = p.k.thread() / 512;
        p.k.pipeline(
            {.stages = 2}, 2,
            [&](Scalar t, Scalar s) {
              const Scalar row = inside ? p.k.thread() / 512 : outside;
              p.k.copy(p.a.tile({row, t}, {size, size}), p.sa[s]);
              p.k.copy(p.b.tile({t, 0}, {size, size}), p.sb[s]);
            },
            [&](Scalar, Scalar s) { p.add(s); });
        p.k.store(p.c, p.sum);
      });
    };
  };
  expect_refused(by_thread(false),
                 "the index of a thread that is computed outside of a fill callback",
                 "[wrong-role]");
  EXPECT_EQ(run(2 * size, by_thread(true)), expected(2 * size, 0, 2 * size));
}

// Operands of mma.sync, which threads load, and of wgmma, which reads them by itself.
TEST_P(Roles, OperandsThatConsumersWriteNeedABarrier) {
  using Meet = std::function<void(Builder&)>;
  const auto body = [](const Meet& meet) {
    return [=](Parts& p) {
      const Shared own = p.k.shared("own", f16, p.mma.shared_a(1))[0];
      p.k.roles([&] {
        p.k.pipeline(
            {.stages = 2}, 2,
            [&](Scalar t, Scalar s) {
              p.k.copy(p.b.tile({t, 0}, {size, size}), p.sb[s]);
            },
            [&](Scalar t, Scalar s) {
              p.k.copy(p.a.tile({0, t}, {size, size}), own);
              meet(p.k);
              p.sum = p.mma(p.sum, own, p.sb[s]);
              p.k.barrier();
            });
        p.k.store(p.c, p.sum);
      });
    };
  };
  const Meet never[] = {
      [](Builder&) {}, [](Builder& k) { k.arrive(2, 64); },
      [](Builder& k) { k.ptx("bar.arrive 2, 64;", {}, {}); },
      [](Builder& k) { k.ptx("mbarrier.arrive.shared.b64 _, [%0];", {}, {k.constant(u32, 0)}); },
      [](Builder& k) {
        if (k.target().arch.sm >= 90) k.ptx("fence.mbarrier_init.release.cluster;", {}, {});
      }};
  for (const Meet& each : never)
    expect_refused(body(each), "is loaded without a barrier; insert a barrier() between them",
                   "[unsynchronized-tile]");
  EXPECT_EQ(run(2 * size, body([](Builder& k) { k.barrier(); })), expected(2 * size, 0, 2 * size));
}

TEST_P(Roles, FillsReadWhatIsWrittenBeforeRoles) {
  const auto body = [](bool before) {
    return [=](Parts& p) {
      const Shared list = p.k.shared("list", u32, row_major(1, 128));
      const auto write = [&] {
        p.k.when(p.k.thread() < 128,
                 [&] { p.k.write(list, 0, p.k.thread(), p.k.constant(u32, 0)); });
        p.k.barrier();
      };
      if (before) write();
      p.k.roles([&] {
        if (!before) write();
        p.k.pipeline(
            {.stages = 2}, 2,
            [&](Scalar t, Scalar s) {
              p.k.copy(p.a.tile({p.k.read(list, 0, t), t}, {size, size}), p.sa[s]);
              p.k.copy(p.b.tile({t, 0}, {size, size}), p.sb[s]);
            },
            [&](Scalar, Scalar s) { p.add(s); });
        p.k.store(p.c, p.sum);
      });
    };
  };
  expect_refused(body(false), "a fill callback reads list, which consumers write at",
                 "[wrong-role]");
  EXPECT_EQ(run(2 * size, body(true)), expected(2 * size, 0, 2 * size));
}

// Producers do not need what only consumers compute of such a result.
TEST_P(Roles, ConsumersComputeOfTheirResults) {
  const std::function<Scalar(Parts&, const Scalar&)> uses[] = {
      [](Parts&, const Scalar& zero) { return shuffle(zero, 0); },
      [](Parts&, const Scalar& zero) { return zero + shuffle_xor(zero, 16); },
      [](Parts& p, const Scalar& zero) {
        return p.k.convert(exp2(p.k.convert(zero, f32)), s32) - 1;
      },
      [](Parts& p, const Scalar& zero) {
        p.k.when(zero == 0, [&] { p.k.warp_sync(); });
        return zero;
      },
      [](Parts& p, const Scalar& zero) {
        return zero + p.k.convert(p.k.read_if(p.a, zero, zero, zero < 1) * Scalar(0.0F), s32);
      }};
  for (const auto& use : uses)
    EXPECT_EQ(run(2 * size,
                  [&](Parts& p) {
                    p.k.roles([&] {
                      p.k.pipeline(
                          {.stages = 2}, 2, [&](Scalar t, Scalar s) { p.fill(t, s); },
                          [&](Scalar, Scalar s) { p.add(s); });
                      const Scalar zero = p.k.ptx("mov.b32 %0, 0;", {s32}, {})[0];
                      p.k.when(use(p, zero) == 0, [&] { p.k.store(p.c, p.sum); });
                    });
                  }),
              expected(2 * size, 0, 2 * size));
}

// The description of a fill callback that only tells whether it waits counts for nothing.
TEST_P(Roles, FillCallbackKeepsItsOwnResult) {
  EXPECT_EQ(run(2 * size,
                [](Parts& p) {
                  p.k.roles([&] {
                    p.k.griddepcontrol_wait();
                    auto column = p.k.variable(p.k.constant(s32, 0));
                    p.k.pipeline(
                        {.stages = 2}, 2,
                        [&](Scalar t, Scalar s) {
                          p.k.copy(p.a.tile({Scalar(column), t}, {size, size}), p.sa[s]);
                          p.k.copy(p.b.tile({t, 0}, {size, size}), p.sb[s]);
                          column = p.k.ptx("mov.b32 %0, 0;", {s32}, {})[0];
                        },
                        [&](Scalar, Scalar s) { p.add(s); });
                    p.k.store(p.c, p.sum);
                  });
                }),
            expected(2 * size, 0, 2 * size));
}

// TMA may not store there: warps do.
TEST_P(Roles, StoresBeginBeforeAnEdge) {
  const auto shifted = [](const Scalar& row) {
    return [=](Parts& p) {
      p.k.roles([&] {
        p.k.pipeline(
            {.stages = 2}, 1, [&](Scalar t, Scalar s) { p.fill(t, s); },
            [&](Scalar, Scalar s) { p.add(s); });
        p.k.store(p.c.window({row, 0}, {size, size}), p.sum);
      });
    };
  };
  const auto whole = expected(size, 0, size), got = run(size, shifted(-8));
  ASSERT_EQ(got.size(), whole.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], i < (size - 8) * size ? whole[i + 8 * size] : 7) << i;
  const auto stores = [&](const Scalar& row) {
    const auto compiled = compile(product(size, shifted(row)), target_of(GetParam()));
    return compiled && compiled->ptx.find("cp.async.bulk.tensor.2d.global") != std::string::npos;
  };
  EXPECT_FALSE(stores(-8));
  EXPECT_EQ(stores(8), std::string_view(GetParam()) != "sm_80");
}

// A tile of a tile ends where the outer one does, although A continues.
TEST_P(Roles, NestedTilesEndWithTheOuterTile) {
  const auto got = run(96, [](Parts& p) {
    const Global a = p.a.tile({0, 0}, {size, 48}), b = p.b.tile({0, 0}, {48, size});
    p.k.roles([&] {
      p.k.pipeline(
          {.stages = 2}, 1,
          [&](Scalar t, Scalar s) {
            p.k.copy(a.tile({0, t}, {size, size}), p.sa[s]);
            p.k.copy(b.tile({t, 0}, {size, size}), p.sb[s]);
          },
          [&](Scalar, Scalar s) { p.add(s); });
      p.k.store(p.c, p.sum);
    });
  });
  EXPECT_EQ(got, expected(96, 0, 48));
}

// Two views of one parameter, with different strides.
TEST_P(Roles, BatchedMatrices) {
  const auto got = run(size, [](Parts& p) {
    const Scalar one = p.k.block_x() + 1;
    const Global near = p.a.matrix(one, size * size), far = p.a.matrix(one, 2 * size * size);
    const Ring more = p.k.shared("more", f16, p.mma.shared_a(2));
    p.k.roles([&] {
      p.k.pipeline(
          {.stages = 2}, 1,
          [&](Scalar, Scalar s) {
            p.k.copy(p.b.tile({0, 0}, {size, size}), p.sb[s]);
            p.k.copy(near, p.sa[s]);
            p.k.copy(far, more[s]);
          },
          [&](Scalar, Scalar s) {
            p.add(s);
            p.sum = p.mma(p.sum, more[s], p.sb[s]);
          });
      p.k.store(p.c, p.sum);
    });
  });
  EXPECT_EQ(got, expected(size, 0, size, {size * size, 2 * size * size}));
}

TEST_P(Roles, NestedBatches) {
  const auto got = run(size, [](Parts& p) {
    const Scalar one = p.k.block_x() + 1;
    const Global a = p.a.matrix(one, size * size).matrix(one, 2 * size * size);
    p.k.roles([&] {
      p.k.pipeline(
          {.stages = 2}, 1,
          [&](Scalar, Scalar s) {
            p.k.copy(p.b.tile({0, 0}, {size, size}), p.sb[s]);
            p.k.copy(a, p.sa[s]);
          },
          [&](Scalar, Scalar s) { p.add(s); });
      p.k.store(p.c, p.sum);
    });
  });
  EXPECT_EQ(got, expected(size, 0, size, {3 * size * size}));
}

TEST_P(Roles, CopiesInConditionsAndLoops) {
  const auto got = run(2 * size, [](Parts& p) {
    Builder& k = p.k;
    k.roles([&] {
      k.pipeline(
          {.stages = 2}, 2,
          [&](Scalar t, Scalar s) {
            k.loop(0, k.block_x() + 2, 1, [&](Scalar half) {
              k.copy(p.a.tile({half, t}, {size / 2, size}),
                     p.sa[s].tile({half, 0}, {size / 2, size}));
            });
            k.when(t + k.block_x() < 1, [&] { k.copy(p.b.tile({t, 0}, {size, size}), p.sb[s]); });
          },
          [&](Scalar t, Scalar s) { k.when(t < 1, [&] { p.add(s); }); });
      k.store(p.c, p.sum);
    });
  });
  EXPECT_EQ(got, expected(2 * size, 0, size));
}

TEST_P(Roles, ProducersWriteElements) {
  const auto got = run(size, [](Parts& p) {
    Builder& k = p.k;
    const Ring ring = k.shared("ring", f32, RingLayout{row_major(1, 32), 2});
    k.roles([&] {
      k.pipeline(
          {.stages = 2}, 2,
          [&](Scalar t, Scalar s) {
            k.when(k.thread() < 32, [&] { k.write(ring[s], 0, k.thread(), k.convert(t, f32)); });
          },
          [&](Scalar t, Scalar s) {
            k.write(p.c, t, k.thread() % 32, k.read(ring[s], 0, k.thread() % 32));
          });
    });
  });
  std::vector<double> want(size * size, 7);
  for (int i = 0; i < 32; ++i)
    want[static_cast<std::size_t>(i)] = 0, want[static_cast<std::size_t>(size + i)] = 1;
  EXPECT_EQ(got, want);
}

TEST_P(Roles, RejectsInvalidUse) {
  const auto use = [](Parts& p) { return [&p](Scalar, Scalar s) { p.add(s); }; };
  const auto fill = [](Parts& p) { return [&p](Scalar t, Scalar s) { p.fill(t, s); }; };
  const auto once = [&](Parts& p, int stages) {
    p.k.pipeline({.stages = stages}, 2, fill(p), use(p));
  };
  expect_refused(
      [&](Parts& p) {
        p.k.roles([&] {
          p.k.pipeline(
              {.stages = 2}, 1, [](Scalar, Scalar) {}, use(p));
        });
      },
      "consumers would wait forever", "[kernel-option]");
  expect_refused(
      [&](Parts& p) {
        p.k.roles(
            [&] { p.k.pipeline({.stages = 2}, 1, fill(p), [&](Scalar, Scalar) { once(p, 2); }); });
      },
      "pipeline inside another pipeline's stage", "[kernel-option]");
  expect_refused(
      [&](Parts& p) {
        for (int i = 0; i < 2; ++i) p.k.roles([&] { once(p, 2); });
      },
      "roles() must be called once", "[kernel-option]");
  expect_refused(
      [&](Parts& p) {
        p.k.loop(0, p.k.block_x(), 1, [&](Scalar) { p.k.roles([&] { once(p, 2); }); });
      },
      "outside loops and conditions", "[kernel-option]");
  expect_refused([&](Parts& p) { p.k.roles([&] { once(p, 4); }); },
                 "sA has 2 stages, its pipeline 4", "[tile-bounds]");
  expect_refused([&](Parts& p) { p.k.roles([&] { p.add(2); }); },
                 "stage index out of bounds: expected 0 to 1 for sA, found 2", "[tile-bounds]");
  expect_refused(
      [&](Parts& p) {
        p.k.roles([&] {
          once(p, 2);
          p.k.store(p.c.tile({0, 0}, {32, 32}), p.sum);
        });
      },
      "wrong tile shape: the warps' tile has 64x64 elements, C is 32x32", "[layout-mismatch]");
  expect_refused(
      [&](Parts& p) {
        p.k.roles([&] {
          p.k.pipeline(
              {.stages = 2}, 1, [&](Scalar t, Scalar s) { p.fill(t, s), p.k.barrier(); }, use(p));
        });
      },
      "barrier() in a fill callback", "[kernel-option]");
  expect_refused([&](Parts& p) { p.k.roles([&] { p.k.shared("late", f16, p.mma.shared_a(2)); }); },
                 "shared matrix late is declared inside roles()", "[kernel-option]");
  expect_refused([&](Parts& p) { p.k.roles([&] { once(p, 2), once(p, 2); }); },
                 "sA is also filled by another pipeline, at roles_testing.h",
                 "[unsynchronized-tile]");
  expect_refused(
      [&](Parts& p) {
        p.k.roles([&] {
          p.k.copy(p.a.tile({0, 0}, {size, size}), p.sa[0]);
          p.k.barrier();
          once(p, 2);
        });
      },
      "sA is filled by producers and also written by consumers at", "[unsynchronized-tile]");
  expect_refused([&](Parts& p) { once(p, 2); }, "kernel product has producer warps but no roles()",
                 "[kernel-option]");
}

// From six stages on, a stage is released when the next one's products have been issued; where the
// description calls next(), there.
TEST_P(Roles, NextReleasesTheStageAtOnce) {
  constexpr int stages = 6, depth = 9 * size;
  for (const bool asks : {false, true}) {
    const Body body = [=](Parts& p) {
      p.k.roles([&] {
        p.k.pipeline(
            {.stages = stages}, depth / size, [&](Scalar t, Scalar s) { p.fill(t, s); }, {},
            [&](Scalar, Scalar s, const std::function<void()>& next) {
              p.add(s);
              if (asks) next();
            });
        p.k.store(p.c, p.sum);
      });
    };
    EXPECT_EQ(run(depth, body, stages), expected(depth, 0, depth)) << asks;
    if (std::string_view(GetParam()) != "sm_90a") continue;
    const std::string ptx = compile(product(depth, body, 4, stages), target_of(GetParam()))->ptx;
    EXPECT_EQ(ptx.find("wgmma.wait_group.sync.aligned 1;") == std::string::npos, asks);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Roles, testing::Values("sm_80", "sm_90a", "sm_100a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tartan
