// SPDX-License-Identifier: Apache-2.0
// Tiled products for mistakes: pipelines, producers, epilogues, products of products, batches.
#include "tests/dsl/mutator.h"
#include "tests/support/numbers.h"

namespace tartan::test {
namespace {

using testing_numbers::encode;

std::vector<int> whole(int count, int seed) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back((i * 5 + seed * 3 + i / 7) % 7 - 3);
  return out;
}

std::vector<std::byte> zeros(Type type, int count) { return encode(type, std::vector<int>(count)); }

// A row-major, B column-major, from their elements `a0` and `b0` on.
std::vector<double> product(int m, int n, int k, const std::vector<int>& a,
                            const std::vector<int>& b, int a0 = 0, int b0 = 0) {
  std::vector<double> out;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      int sum = 0;
      for (int x = 0; x < k; ++x) sum += a[a0 + i * k + x] * b[b0 + j * k + x];
      out.push_back(sum);
    }
  return out;
}

// All threads fill and use; relu(A * B + bias).
Kernel pipelined(Mutator& m) {
  return kernel("pipelined", {.block = m(128)}, [&m](Builder& k) {
    const Tile tile{.m = m(32), .n = m(64), .k = m(32), .warps_m = m(2), .warps_n = m(2)};
    auto A = k.global("A", m(f16), m.layout(row_major(m(64), m(96)), col_major(64, 96)));
    auto B = k.global("B", m(f16), m.layout(col_major(m(96), m(64)), row_major(96, 64)));
    auto bias = k.global("bias", m(f32), row_major(m(1), m(64)));
    auto C = k.global("C", m(f32), row_major(m(64), m(64)));
    auto mma = k.tiled_mma(k.best_mma(m(f16), m(f16), m(f32)), tile);
    auto sA = k.shared("sA", m(f16), mma.shared_a(m(3))),
         sB = k.shared("sB", m(f16), mma.shared_b(m(3)));
    auto sum = mma.accumulator();
    WarpTile done;
    auto [row, col] = k.block_tile(m(64), m(64), tile);
    const auto fill = [&, row = row, col = col](Scalar t, Scalar stage) {
      auto [i, j] = m.pair(row, t);
      m.steps(k, {[&] {
                    k.copy(A.tile({m(k, i), m(k, j)}, {m(32), m(32)}), m.of(sA, sB)[m(k, stage)]);
                  },
                  [&] {
                    k.copy(B.tile({t, col}, {m(32), m(64)}), sB[m(k, stage)]);
                  }});
    };
    const auto use = [&](Scalar, Scalar stage) {
      auto [a, b] = m.pair(sA[m(k, stage)], sB[stage]);
      sum = mma(sum, a, b);
    };
    m.steps(k, {[&] { k.pipeline({.stages = m(3)}, m(3), fill, use); },
                [&, col = col] {
                  done = map(sum, [&](Scalar x, ElementPlace at) {
                    auto [i, j] = m.pair(at.row, at.col);
                    return x + k.read(bias, 0, m(k, col) * m(64) + m(k, j));
                  });
                },
                [&] { done = relu(done); },
                [&, row = row, col = col] {
                  auto [i, j] = m.pair(row, col);
                  k.store(m.of(C, A).tile({m(k, i), m(k, j)}, {m(32), m(64)}), done);
                }});
  });
}

// Producers fill; tile after tile, f16 out.
Kernel specialized(Mutator& m) {
  return kernel("specialized", {.block = m(128), .producers = m(4)}, [&m](Builder& k) {
    const Tile tile{.m = m(64), .n = m(64), .k = m(64), .warps_m = m(4), .warps_n = m(1)};
    auto rows = k.param("rows", m(s32), m(1)), depth = k.param("depth", m(s32), m(8));
    auto A = k.global("A", m(f16), row_major(m(k, rows), m(k, depth)));
    auto B = k.global("B", m(f16), col_major(depth, m(64)));
    auto C = k.global("C", m(f16), row_major(m(k, rows), m(64)));
    auto mma = k.tiled_mma(k.best_mma(m(f16), m(f16), m(f32)), tile);
    auto sA = k.shared("sA", m(f16), mma.shared_a(m(2))),
         sB = k.shared("sB", m(f16), mma.shared_b(m(2)));
    auto scale = k.shared("scale", m(f32), row_major(1, m(128)));
    const auto body = [&](Scalar row, Scalar col) {
      auto sum = mma.accumulator();
      const auto fill = [&](Scalar t, Scalar stage) {
        m.steps(k, {[&] {
                      k.copy(A.tile({m(k, row), t}, {m(64), m(64)}), sA[m(k, stage)]);
                    },
                    [&] {
                      k.copy(B.tile({m(k, t), m(k, col)}, {64, 64}), m.of(sB, sA)[stage]);
                    }});
      };
      const auto use = [&](Scalar, Scalar stage) {
        auto [a, b] = m.pair(sA[stage], sB[m(k, stage)]);
        sum = mma(sum, a, b);
      };
      WarpTile out;
      m.steps(k,
              {[&] { k.pipeline({.stages = m(2)}, ceil_div(m(k, depth), m(64)), fill, use); },
               [&] { k.write(m.of(scale, scale), 0, m(k, k.thread()), k.constant(m(f32), m(2))); },
               [&] { k.barrier(); },
               [&] {
                 out = map(sum, [&](Scalar x, ElementPlace at) {
                   return x * k.read(scale, m(0), m(k, at.col));
                 });
               },
               [&] {
                 k.store(C.tile({m(k, row), m(k, col)}, {m(64), m(64)}), convert(out, m(f16)));
               },
               [&] { k.barrier(); }});
    };
    m.steps(k, {[&] { k.roles([&] { k.each_tile(m(k, rows), m(64), tile, body); }); }});
  });
}

// (relu(Q * K^T) / row sum) * V, with row operations in between; V is constant along its rows.
Kernel chained(Mutator& m) {
  return kernel("chained", {.block = m(64)}, [&m](Builder& k) {
    const Tile qk{.m = m(32), .n = m(32), .k = m(16), .warps_m = m(2), .warps_n = m(1)},
        pv{.m = m(32), .n = m(16), .k = m(32), .warps_m = m(2), .warps_n = m(1)};
    auto Q = k.global("Q", m(f16), row_major(m(32), m(16))),
         K = k.global("K", m(f16), row_major(32, 16));
    auto V = k.global("V", m(f16), row_major(m(32), m(16))),
         O = k.global("O", m(f32), row_major(32, 16));
    auto first = k.tiled_mma(k.best_mma(m(f16), f16, m(f32)), qk),
         second = k.tiled_mma(k.best_mma(m(f16), f16, m(f32)), pv);
    auto sQ = k.shared("sQ", m(f16), first.shared_a())[m(0)];
    auto sK = k.shared("sK", m(f16), first.shared_b(m(1), Major::col))[0];
    auto sV = k.shared("sV", m(f16), second.shared_b(1, Major::row))[0];
    WarpTile s, o;
    RowValues most, total;
    m.steps(
        k, {[&] { k.copy(m.of(Q, K), m.of(sQ, sK)); }, [&] { k.copy(m.of(K, Q).transposed(), sK); },
            [&] { k.copy(V, m.of(sV, sK)); }, [&] { k.barrier(); },
            [&] {
              auto [a, b] = m.pair(sQ, sK);
              s = m.of(first, second)(first.accumulator(), a, b);
            },
            [&] { most = row_maximum(m.of(s, o)); },
            [&] {
              s = map_rows(m.of(s, o), m.of(most, total), [&](Scalar x, Scalar top) {
                auto [p, q] = m.pair(x, top);
                return select(p == q, k.constant(m(f32), m(1)), k.constant(f32, m(0)));
              });
            },
            [&] { total = row_sum(m.of(s, o)); },
            [&] {
              o = second(second.accumulator(), operand_a(convert(m.of(s, o), m(f16)), m(m16n8k16)),
                         m.of(sV, sK));
            },
            [&] {
              o = map_rows(m.of(o, s), m.of(total, most),
                           [&](Scalar x, Scalar n) { return x * reciprocal(m(k, n)); });
            },
            [&] { k.store(m.of(O, Q), m.of(o, s)); }});
  });
}

// Fragments of the next stage are loaded early; the epilogue finishes a few at a time.
Kernel prefetched(Mutator& m) {
  return kernel("prefetched", {.block = m(64)}, [&m](Builder& k) {
    const Tile tile{.m = m(32), .n = m(32), .k = m(32), .warps_m = m(2), .warps_n = m(1)};
    auto A = k.global("A", m(bf16), row_major(m(32), m(128))),
         B = k.global("B", m(bf16), col_major(m(128), 32));
    auto C = k.global("C", m(f32), row_major(m(32), m(32)));
    auto mma = k.tiled_mma(m(m16n8k16)(m(bf16), m(bf16), m(f32)), tile);
    auto sA = k.shared("sA", m(bf16), mma.shared_a(m(2))),
         sB = k.shared("sB", m(bf16), mma.shared_b(m(2)));
    auto first = mma.first_step(sA[m(0)], sB[m(0)]);
    auto sum = mma.accumulator();
    const auto fill = [&](Scalar t, Scalar stage) {
      m.steps(k, {[&] {
                    k.copy(A.tile({m(k, Scalar(0)), m(k, t)}, {32, m(32)}), sA[m(k, stage)]);
                  },
                  [&] {
                    k.copy(B.tile({m(k, t), 0}, {m(32), 32}), m.of(sB, sA)[m(k, stage)]);
                  }});
    };
    const auto ahead = [&](Scalar stage) {
      m.steps(k, {[&] {
                auto [a, b] = m.pair(sA[m(k, stage)], sB[stage]);
                mma.load(first, a, b);
              }});
    };
    const auto use = [&](Scalar, Scalar stage, const std::function<void()>& next) {
      m.steps(k, {[&] { mma.add(sum, sA[m(k, stage)], m.of(sB, sA)[stage], first, next); }});
    };
    const auto finished = [&](int i, int j) { return WarpTile(sum).fragment(m(i), m(j)); };
    m.steps(k, {[&] { k.pipeline({.stages = m(2)}, m(4), fill, ahead, use); },
                [&] {
                  k.store(m.of(C, A), sum,
                          {.kind = operand_c(m(m16n8k16), m(f32)), .finished = finished});
                }});
  });
}

// A batch of integer products, stored through shared memory.
Kernel batched(Mutator& m) {
  return kernel("batched", {.block = m(64)}, [&m](Builder& k) {
    const Tile tile{.m = m(32), .n = m(32), .k = m(64), .warps_m = m(2), .warps_n = m(1)};
    auto number = m(k, k.block_z());
    auto A = k.global("A", m(s8), row_major(m(32), m(64))).matrix(number);
    auto B = k.global("B", m(s8), col_major(m(64), 32)).matrix(m(k, k.block_z()));
    auto C = k.global("C", m(s32), row_major(m(32), m(32))).matrix(number, m(1024));
    auto mma = k.tiled_mma(k.best_mma(m(s8), m(s8), m(s32)), tile);
    auto sA = k.shared("sA", m(s8), mma.shared_a())[m(0)],
         sB = k.shared("sB", m(s8), mma.shared_b())[0];
    auto sC = k.shared("sC", m(s32), row_major(m(32), m(32)));
    WarpTile sum;
    m.steps(
        k, {[&] { k.copy(m.of(A, B), m.of(sA, sB)); }, [&] { k.copy(B, sB); }, [&] { k.barrier(); },
            [&] {
              auto [a, b] = m.pair(sA, sB);
              sum = mma(mma.accumulator(), a, b);
            },
            [&] { k.store(m.of(sC, sA), sum); }, [&] { k.barrier(); },
            [&] { k.copy(m.of(sC, sA), m.of(C, A)); }});
  });
}

// Two warpgroups multiply in turn, with a k-tile less for the second one; pairs of tiles.
Kernel in_ping_pong(Mutator& m) {
  return kernel("in_ping_pong", {.block = m(256), .producers = m(4)}, [&m](Builder& k) {
    const Tile tile{
        .m = m(64), .n = m(64), .k = m(32), .warps_m = m(4), .warps_n = m(1), .products = m(2)};
    auto A = k.global("A", m(f16), row_major(m(200), m(96)));
    auto B = k.global("B", m(f16), col_major(m(96), m(64)));
    auto C = k.global("C", m(f32), row_major(m(200), m(64)));
    auto mma = k.tiled_mma(k.best_mma(m(f16), m(f16), m(f32)), tile);
    auto sA = k.shared("sA", m(f16), mma.shared_a(m(3))),
         sB = k.shared("sB", m(f16), mma.shared_b(m(3)));
    const auto body = [&](int w, const Scalar& pair) {
      const Scalar row = m(k, pair) * m(2) + w;
      auto sum = mma.accumulator();
      const auto fill = [&](Scalar t, Scalar stage) {
        m.steps(k, {[&] {
                      k.copy(A.tile({m(k, row), m(k, t)}, {m(64), m(32)}), sA[m(k, stage)]);
                    },
                    [&] {
                      k.copy(B.tile({t, 0}, {m(32), m(64)}), m.of(sB, sA)[stage]);
                    }});
      };
      const auto use = [&](Scalar, Scalar stage) {
        auto [a, b] = m.pair(sA[stage], sB[m(k, stage)]);
        sum = mma(sum, a, b);
      };
      m.steps(k, {[&] {
                    k.pipeline({.stages = w ? m(3) : m(3), .turns = true}, w ? m(2) : m(3), fill,
                               use);
                  },
                  [&] {
                    k.store(m.of(C, A).tile({m(k, row), 0}, {m(64), m(64)}), sum);
                  }});
    };
    m.steps(k, {[&] {
              k.roles([&] {
                k.loop(m(0), m(2), m(1), [&](Scalar pair) {
                  m.steps(k, {[&] { k.warpgroups([&](int w) { body(w, pair); }); }});
                });
              });
            }});
  });
}

}  // namespace

std::vector<MutatedProgram> mutated_products() {
  std::vector<MutatedProgram> out;
  const std::vector<int> a = whole(64 * 96, 1), b = whole(64 * 96, 2), bias = whole(64, 5);
  std::vector<double> sums = product(64, 64, 96, a, b);
  for (int i = 0; i < 64 * 64; ++i) sums[i] = std::max(0.0, sums[i] + bias[i % 64]);
  out.push_back({"pipelined",
                 {"sm_80", "sm_75"},
                 pipelined,
                 {2},
                 {encode(f16, a), encode(f16, b), encode(f32, bias), zeros(f32, 4096)},
                 {},
                 f32,
                 sums});
  const std::vector<int> c = whole(100 * 136, 1), d = whole(64 * 136, 2);
  std::vector<double> twice = product(100, 64, 136, c, d);
  for (double& each : twice) each *= 2;
  out.push_back({"specialized",
                 {"sm_90a", "sm_80"},
                 specialized,
                 {2},
                 {encode(f16, c), encode(f16, d), zeros(f16, 6400)},
                 {100, 136},
                 f16,
                 twice});
  const std::vector<int> q = whole(32 * 16, 1), keys = whole(32 * 16, 2);
  std::vector<int> v;
  for (int i = 0; i < 32 * 16; ++i) v.push_back(i % 16 - 8);
  std::vector<double> rows;
  for (int i = 0; i < 32 * 16; ++i) rows.push_back(v[i]);
  out.push_back({"chained",
                 {"sm_80", "sm_90a"},
                 chained,
                 {},
                 {encode(f16, q), encode(f16, keys), encode(f16, v), zeros(f32, 512)},
                 {},
                 f32,
                 rows});
  const std::vector<int> e = whole(32 * 128, 3), f = whole(32 * 128, 4);
  out.push_back({"prefetched",
                 {"sm_80"},
                 prefetched,
                 {},
                 {encode(bf16, e), encode(bf16, f), zeros(f32, 1024)},
                 {},
                 f32,
                 product(32, 32, 128, e, f)});
  const std::vector<int> g = whole(2 * 32 * 64, 3), h = whole(2 * 32 * 64, 4);
  std::vector<double> both = product(32, 32, 64, g, h);
  for (const double each : product(32, 32, 64, g, h, 2048, 2048)) both.push_back(each);
  out.push_back({"batched",
                 {"sm_80", "sm_90a"},
                 batched,
                 {1, 1, 2},
                 {encode(s8, g), encode(s8, h), zeros(s32, 2048)},
                 {},
                 s32,
                 both});
  const std::vector<int> p = whole(200 * 96, 1), r = whole(64 * 96, 2);
  std::vector<int> shorter = p;  // odd tiles of 64 rows have two k-tiles of three
  for (int i = 0; i < 200; ++i)
    if (i / 64 % 2) std::fill_n(shorter.begin() + i * 96 + 64, 32, 0);
  out.push_back({"in_ping_pong",
                 {"sm_90a", "sm_80"},
                 in_ping_pong,
                 {},
                 {encode(f16, p), encode(f16, r), zeros(f32, 200 * 64)},
                 {},
                 f32,
                 product(200, 64, 96, shorter, r)});
  return out;
}

}  // namespace tartan::test
