// SPDX-License-Identifier: Apache-2.0
// Unusual products with producers and consumers: correct, or rejected at the C++ line. On sm_90a by
// wgmma and TMA, on sm_80 by mma.sync and cp.async.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tartan/tartan.h"
#include "tests/support/engine.h"
#include "tests/support/numbers.h"

namespace tartan {
namespace {

constexpr int size = 64;

int element_a(int i) { return i * 7 % 13 - 6; }
int element_b(int i) { return i * 5 % 7 - 3; }

// The kernel around a test's body: C = A * B with tiles of 64 x 64 x 64, rings of two stages.
struct Parts {
  Builder& k;
  TiledMma mma;
  Global a, b, c;
  Ring sa, sb;
  Accumulator sum;

  void add(const Scalar& stage) { sum = mma(sum, sa[stage], sb[stage]); }
  void fill(const Scalar& t, const Scalar& stage) {
    k.copy(a.tile(size, size, 0, t), sa[stage]);
    k.copy(b.tile(size, size, t, 0), sb[stage]);
  }
};
using Body = std::function<void(Parts&)>;

Kernel product(int depth, const Body& body, int producers = 4) {
  return kernel("product", {.block = 128, .producers = producers}, [=](Builder& k) {
    const Tile tile{.m = size, .n = size, .k = size, .warps_m = 4, .warps_n = 1};
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto a = k.global("A", f16, row_major(size, depth)),
         b = k.global("B", f16, col_major(depth, size)),
         c = k.global("C", f32, row_major(size, size));
    auto sa = k.shared("sA", f16, mma.shared_a(2)), sb = k.shared("sB", f16, mma.shared_b(2));
    Parts parts{k, mma, a, b, c, sa, sb, mma.accumulator()};
    body(parts);
  });
}

Target target_of(const char* name) {
  Target target = *Target::parse(name);
  target.ptx = newest_version;
  return target;
}

class Roles : public testing::TestWithParam<const char*> {
 protected:
  // The contents of C, which held sevens before. A is four matrices long.
  std::vector<double> run(int depth, const Body& body) {
    const auto compiled = compile(product(depth, body), target_of(GetParam()));
    EXPECT_TRUE(compiled) << compiled.diags().text();
    if (!compiled) return {};
    Device device = test::open_engine({.max_steps = 3'000'000});
    LoadedKernel kernel = *device.load(compiled->ptx)->kernel("product");
    const auto buffer = [&](Type type, int count, auto element) {
      std::vector<int> values;
      for (int i = 0; i < count; ++i) values.push_back(element(i));
      const auto bytes = testing_numbers::encode(type, values);
      Buffer out = *device.allocate(bytes.size());
      EXPECT_TRUE(out.write(bytes));
      return out;
    };
    const Buffer a = buffer(f16, 4 * size * depth, element_a),
                 b = buffer(f16, depth * size, element_b),
                 c = buffer(f32, size * size, [](int) { return 7; });
    const auto started = launch(kernel, *compiled, {}, Arguments().add(a).add(b).add(c));
    EXPECT_TRUE(started) << started.diags().text();
    const auto done = device.synchronize();
    EXPECT_TRUE(done) << done.diags().text();
    for (const Finding& finding : device.findings())
      ADD_FAILURE() << finding.id << ": " << finding.message;
    return testing_numbers::decode(f32, *c.read_all<std::byte>());
  }

  // The sum over columns [first, last) of A, starting at element `from`.
  static std::vector<double> expected(int depth, int first, int last,
                                      std::initializer_list<int> from = {0}) {
    std::vector<double> out;
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) {
        int sum = 0;
        for (const int begin : from)
          for (int q = first; q < last; ++q)
            sum += element_a(begin + i * depth + q) * element_b(j * depth + q);
        out.push_back(sum);
      }
    return out;
  }

  std::string refusal(int depth, const Body& body, int producers = 4) {
    const auto compiled = compile(product(depth, body, producers), target_of(GetParam()));
    return compiled ? "" : compiled.diags().text();
  }
  void expect_refused(const Body& body, std::string_view part, std::string_view id) {
    const std::string text = refusal(2 * size, body);
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find(id), std::string::npos) << text;
    EXPECT_NE(text.find("roles_test.cc"), std::string::npos) << text;
  }
};

// What consumers keep in shared memory, once for each pass over it, is none of the producers' work.
TEST_P(Roles, ConsumersWriteSharedMemory) {
  const auto got = run(2 * size, [](Parts& p) {
    auto factors = p.k.shared("factors", f32, row_major(2, 128));
    p.k.roles([&] {
      p.k.write(factors, 0, p.k.thread(), p.k.constant(f32, 1));
      p.k.barrier();
      p.k.pipeline(
          2, 2, [&](Scalar t, Scalar s) { p.fill(t, s); }, [&](Scalar, Scalar s) { p.add(s); });
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
                                2, 2, [&](Scalar t, Scalar s) { p.fill(t, s); },
                                [&](Scalar, Scalar s) { p.add(s); });
                            p.k.store(p.c, p.sum);
                          });
                        });
                      }),
              target_of(GetParam()));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  for (std::size_t at = 0; (at = compiled->ptx.find("\t.file\t", at)) != std::string::npos; ++at) {
    const std::string line = compiled->ptx.substr(at, compiled->ptx.find('\n', at) - at);
    EXPECT_NE(line.find("roles_test.cc"), std::string::npos) << line;
  }
}

TEST_P(Roles, SumAllStages) {
  const auto got = run(3 * size, [](Parts& p) {
    p.k.roles([&] {
      p.k.pipeline(
          2, 3, [&](Scalar t, Scalar s) { p.fill(t, s); }, [&](Scalar, Scalar s) { p.add(s); });
      p.k.store(p.c, p.sum);
    });
  });
  EXPECT_EQ(got, expected(3 * size, 0, 3 * size));
}

// What is filled before griddepcontrol_wait() runs ahead, what comes after it follows, whether TMA
// or threads copy either; again when the pipeline runs a second time, with any number of k-tiles.
TEST_P(Roles, CopiesBeforeTheWaitRunAhead) {
  for (const int tiles : {1, 2, 5})
    for (const bool early_by_threads : {false, true})
      for (const bool late_by_threads : {false, true}) {
        const auto got = run(tiles * size, [=](Parts& p) {
          const auto copy = [&](bool by_threads, const Scalar& t, const auto& body) {
            if (by_threads) p.k.when(t < 100, body);
            else body();
          };
          const auto fill = [&](Scalar t, Scalar s) {
            copy(early_by_threads, t, [&] { p.k.copy(p.b.tile(size, size, t, 0), p.sb[s]); });
            p.k.griddepcontrol_wait();
            copy(late_by_threads, t, [&] { p.k.copy(p.a.tile(size, size, 0, t), p.sa[s]); });
          };
          p.k.roles([&] {
            p.k.griddepcontrol_wait();
            p.k.loop(0, 2, 1, [&](Scalar) {
              p.k.pipeline(2, tiles, fill, [&](Scalar, Scalar s) { p.add(s); });
            });
            p.k.store(p.c, p.sum);
          });
        });
        EXPECT_EQ(got, expected(tiles * size, 0, tiles * size, {0, 0}))
            << tiles << early_by_threads << late_by_threads;
      }
}

// In front of roles() all threads wait, when their mbarriers have been initialized.
TEST_P(Roles, MbarriersAreInitializedBeforeTheWait) {
  const Body body = [](Parts& p) {
    p.k.griddepcontrol_wait();
    p.k.roles([&] {
      p.k.pipeline(
          2, 2, [&](Scalar t, Scalar s) { p.fill(t, s); }, [&](Scalar, Scalar s) { p.add(s); });
      p.k.store(p.c, p.sum);
    });
  };
  EXPECT_EQ(run(2 * size, body), expected(2 * size, 0, 2 * size));
  const std::string ptx = compile(product(2 * size, body), target_of(GetParam()))->ptx;
  const auto wait = ptx.find("griddepcontrol.wait");
  if (std::string_view(GetParam()) != "sm_90a") {
    EXPECT_EQ(wait, std::string::npos);
    return;
  }
  EXPECT_LT(ptx.rfind("mbarrier.init"), wait);
  EXPECT_LT(wait, ptx.find("mbarrier.try_wait"));
}

// Statements before the wait run with the early copies alone: late ones that need their results are
// refused, whether they take them as coordinates or as conditions.
TEST_P(Roles, ResultsDoNotCrossTheWait) {
  const auto around = [](const std::function<void(Parts&, Scalar, Scalar)>& fill) {
    return [fill](Parts& p) {
      p.k.roles([&] {
        p.k.griddepcontrol_wait();
        p.k.pipeline(
            2, 2, [&](Scalar t, Scalar s) { fill(p, t, s); }, [&](Scalar, Scalar s) { p.add(s); });
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
      p.k.copy(p.b.tile(size, size, same, 0), p.sb[s]);
      p.k.griddepcontrol_wait();
      const auto late = [&] { p.k.copy(p.a.tile(size, size, 0, conditional ? t : same), p.sa[s]); };
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
                  p.k.copy(p.b.tile(size, size, asked(p, t), 0), p.sb[s]);
                  p.k.griddepcontrol_wait();
                  p.k.copy(p.a.tile(size, size, 0, asked(p, t)), p.sa[s]);
                })),
            expected(2 * size, 0, 2 * size));
}

// Outside of fill callbacks consumers alone execute statements.
TEST_P(Roles, ProducersHaveNoResultsOfConsumers) {
  const auto body = [](bool needed) {
    return [=](Parts& p) {
      p.k.roles([&] {
        const Scalar zero = p.k.ptx("mov.b32 %0, 0;", {s32}, {})[0];
        p.k.pipeline(
            2, 2,
            [&](Scalar t, Scalar s) {
              p.k.copy(p.a.tile(size, size, needed ? zero : Scalar(0), t), p.sa[s]);
              p.k.copy(p.b.tile(size, size, t, 0), p.sb[s]);
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
        return zero + p.k.convert(p.k.read_if(zero < 1, p.a, zero, zero) * Scalar(0.0F), s32);
      }};
  for (const auto& use : uses)
    EXPECT_EQ(run(2 * size,
                  [&](Parts& p) {
                    p.k.roles([&] {
                      p.k.pipeline(
                          2, 2, [&](Scalar t, Scalar s) { p.fill(t, s); },
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
                        2, 2,
                        [&](Scalar t, Scalar s) {
                          p.k.copy(p.a.tile(size, size, Scalar(column), t), p.sa[s]);
                          p.k.copy(p.b.tile(size, size, t, 0), p.sb[s]);
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
            2, 1, [&](Scalar t, Scalar s) { p.fill(t, s); }, [&](Scalar, Scalar s) { p.add(s); });
        p.k.store(p.c.window(row, 0, size, size), p.sum);
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
  EXPECT_EQ(stores(8), std::string_view(GetParam()) == "sm_90a");
}

// A tile of a tile ends where the outer one does, although A continues.
TEST_P(Roles, NestedTilesEndWithTheOuterTile) {
  const auto got = run(96, [](Parts& p) {
    const Global a = p.a.tile(size, 48, 0, 0), b = p.b.tile(48, size, 0, 0);
    p.k.roles([&] {
      p.k.pipeline(
          2, 1,
          [&](Scalar t, Scalar s) {
            p.k.copy(a.tile(size, size, 0, t), p.sa[s]);
            p.k.copy(b.tile(size, size, t, 0), p.sb[s]);
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
          2, 1,
          [&](Scalar, Scalar s) {
            p.k.copy(p.b.tile(size, size, 0, 0), p.sb[s]);
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
          2, 1,
          [&](Scalar, Scalar s) {
            p.k.copy(p.b.tile(size, size, 0, 0), p.sb[s]);
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
          2, 2,
          [&](Scalar t, Scalar s) {
            k.loop(0, k.block_x() + 2, 1, [&](Scalar half) {
              k.copy(p.a.tile(size / 2, size, half, t), p.sa[s].tile(size / 2, size, half, 0));
            });
            k.when(t + k.block_x() < 1, [&] { k.copy(p.b.tile(size, size, t, 0), p.sb[s]); });
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
          2, 2,
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
  const auto once = [&](Parts& p, int stages) { p.k.pipeline(stages, 2, fill(p), use(p)); };
  expect_refused(
      [&](Parts& p) {
        p.k.roles([&] {
          p.k.pipeline(
              2, 1, [](Scalar, Scalar) {}, use(p));
        });
      },
      "consumers would wait forever", "[kernel-option]");
  expect_refused(
      [&](Parts& p) {
        p.k.roles([&] { p.k.pipeline(2, 1, fill(p), [&](Scalar, Scalar) { once(p, 2); }); });
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
                 "stage index out of bounds: sA has no stage 2, only 2", "[tile-bounds]");
  expect_refused(
      [&](Parts& p) {
        p.k.roles([&] {
          once(p, 2);
          p.k.store(p.c.tile(32, 32, 0, 0), p.sum);
        });
      },
      "wrong tile shape: the warps' tile has 64x64 elements, C is 32x32", "[layout-mismatch]");
  expect_refused(
      [&](Parts& p) {
        p.k.roles([&] {
          p.k.pipeline(
              2, 1, [&](Scalar t, Scalar s) { p.fill(t, s), p.k.barrier(); }, use(p));
        });
      },
      "barrier() in a fill callback", "[kernel-option]");
  expect_refused([&](Parts& p) { p.k.roles([&] { p.k.shared("late", f16, p.mma.shared_a(2)); }); },
                 "shared matrix late is declared inside roles()", "[kernel-option]");
  expect_refused([&](Parts& p) { p.k.roles([&] { once(p, 2), once(p, 2); }); },
                 "sA is also filled by another pipeline, at roles_test.cc",
                 "[unsynchronized-tile]");
  expect_refused(
      [&](Parts& p) {
        p.k.roles([&] {
          p.k.copy(p.a.tile(size, size, 0, 0), p.sa[0]);
          p.k.barrier();
          once(p, 2);
        });
      },
      "sA is filled by producers and also written by consumers at", "[unsynchronized-tile]");
  expect_refused([&](Parts& p) { once(p, 2); }, "kernel product has producer warps but no roles()",
                 "[kernel-option]");
}

INSTANTIATE_TEST_SUITE_P(Targets, Roles, testing::Values("sm_80", "sm_90a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tartan
