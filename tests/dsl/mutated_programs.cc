// SPDX-License-Identifier: Apache-2.0
// Small DSL programs for mistakes: one instruction, numbers of threads, shared memory, fragments by
// hand, instructions by name.
#include "tests/dsl/mutator.h"
#include "tests/support/numbers.h"

namespace tartan::test {
namespace {

using testing_numbers::encode;

std::vector<int> whole(int count, int seed) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back((i * 7 + seed * 3 + i / 5) % 9 - 4);
  return out;
}

std::vector<std::byte> zeros(Type type, int count) { return encode(type, std::vector<int>(count)); }

// A row-major, B column-major.
std::vector<double> product(int m, int n, int k, const std::vector<int>& a,
                            const std::vector<int>& b) {
  std::vector<double> out;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      int sum = 0;
      for (int x = 0; x < k; ++x) sum += a[i * k + x] * b[j * k + x];
      out.push_back(sum);
    }
  return out;
}

// The product of README.
Kernel one_mma(Mutator& m) {
  return kernel("one_mma", {.block = m(32)}, [&m](Builder& k) {
    auto a = k.global("A", m(f16), m.layout(row_major(m(16), m(16)), col_major(16, 16)));
    auto b = k.global("B", m(f16), m.layout(col_major(m(16), m(8)), row_major(16, 8)));
    auto d = k.global("D", m(f32), m.layout(row_major(m(16), m(8)), col_major(16, 8)));
    auto sa = k.shared("sa", m(f16), m.layout(row_major(16, m(16)), col_major(16, 16)));
    auto sb = k.shared("sb", m(f16), m.layout(col_major(m(16), 8), row_major(16, 8)));
    Fragment fa, fb, sum;
    m.steps(k, {[&] { k.copy(m.of(a, b), m.of(sa, sb)); }, [&] { k.copy(m.of(b, d), sb); },
                [&] { k.barrier(); },
                [&] { fa = k.load(operand_a(m(m16n8k16), m(f16)), m.of(sa, sb)); },
                [&] { fb = k.load(operand_b(m(m16n8k16), m(f16)), m.of(sb, sa)); },
                [&] {
                  auto [x, y] = m.pair(fa, fb);
                  sum = k.mma(x, y, zero(m(f32)));
                },
                [&] { k.store(m.of(d, a), m.of(sum, fa)); }});
  });
}

// Each thread adds its column of x and scales it, if it is asked to.
Kernel columns(Mutator& m) {
  return kernel("columns", {.block = m(64)}, [&m](Builder& k) {
    auto rows = k.param("rows", m(s32), m(8)), factor = k.param("factor", m(s32));
    auto x = k.global("x", m(f32), row_major(m(24), m(128)));
    auto y = k.global("y", m(f32), row_major(m(1), m(128)));
    auto sum = k.variable(k.constant(m(f32), m(0)));
    auto column = k.block_x() * m(64) + k.thread();
    m.steps(k, {[&] {
                  k.loop(m(k, 0), m(k, rows), m(1), [&](Scalar row) {
                    auto [i, j] = m.pair(row, column);
                    sum = sum + k.read(x, m(k, i), m(k, j));
                  });
                },
                [&] {
                  k.when(m(k, factor) > m(1),
                         [&] { sum = Scalar(sum) * k.convert(m(k, factor), m(f32)); });
                },
                [&] { k.write(m.of(y, x), m(k, Scalar(0)), m(k, column), sum); }});
  });
}

// Rows turned around in shared memory, then summed by shuffles.
Kernel turned(Mutator& m) {
  return kernel("turned", {.block = m(32)}, [&m](Builder& k) {
    auto x = k.global("x", m(s32), row_major(m(4), m(32))),
         y = k.global("y", m(s32), row_major(4, 32));
    auto s = k.shared("s", m(s32), row_major(m(4), m(32)));
    Scalar sum = 0;
    const Scalar lane = k.lane(), row = k.block_x();
    m.steps(k,
            {[&] { k.write(s, m(k, row), m(k, m(31) - lane), k.read(x, m(k, row), m(k, lane))); },
             [&] { k.barrier(); },
             [&] {
               sum = k.read(m.of(s, s), m(k, row), m(k, lane));
               for (int mask = m(16); mask > 0; mask /= 2) sum = sum + shuffle_xor(sum, mask);
             },
             [&] {
               auto [i, j] = m.pair(row, lane);
               k.write(m.of(y, x), m(k, i), j, sum + k.read(s, m(k, row), lane));
             }});
  });
}

// A product whose fragments are packed by hand, in a loop over k.
Kernel by_hand(Mutator& m) {
  return kernel("by_hand", {.block = m(32)}, [&m](Builder& k) {
    auto a = k.global("A", m(f16), row_major(m(16), m(64)));
    auto b = k.global("B", m(f16), col_major(m(64), m(8)));
    auto c = k.global("C", m(f32), row_major(m(16), m(8)));
    auto acc = k.variable(operand_c(m(m16n8k16), m(f32)));
    const FragmentKind kind_a = operand_a(m(m16n8k16), m(f16)),
                       kind_b = operand_b(m(m16n8k16), m(f16));
    const auto packed = [&](const FragmentKind& kind, const Global& tile) {
      std::vector<Scalar> elements;
      for (int i = 0; i < kind.fragment().elements(); ++i) {
        const ElementPlace at = k.place(kind, i);
        auto [row, col] = m.pair(at.row, at.col);
        elements.push_back(k.read(tile, m(k, row), m(k, col)));
      }
      return k.pack(m.of(kind, kind_a), elements);
    };
    m.steps(k, {[&] {
                  k.loop(m(0), m(64), m(16), [&](Scalar t) {
                    auto fa = packed(kind_a, a.tile({m(0), m(k, t / m(16))}, {m(16), m(16)}));
                    auto fb = packed(kind_b, b.tile({m(k, t / 16), m(0)}, {m(16), m(8)}));
                    auto [x, y] = m.pair(fa, fb);
                    acc = k.mma(x, y, acc);
                  });
                },
                [&] { k.store(m.of(c, a), acc); }});
  });
}

// The same instruction by name, with addresses.
Kernel by_name(Mutator& m) {
  return kernel("by_name", {.block = m(32)}, [&m](Builder& k) {
    auto a = k.global("A", f16, row_major(m(16), m(16))),
         b = k.global("B", f16, col_major(16, m(8)));
    auto d = k.global("D", m(f32), row_major(16, 8));
    auto sa = k.shared("sa", m(f16), row_major(16, m(16))),
         sb = k.shared("sb", f16, col_major(16, m(8)));
    std::vector<Scalar> ra, rb, rd;
    m.steps(k, {[&] { k.copy(a, sa); }, [&] { k.copy(b, sb); }, [&] { k.barrier(); },
                [&] {
                  auto [row, col] = m.pair(k.lane() % m(16), k.lane() / m(16) * m(8));
                  ra = k.instruction("ldmatrix.sync.aligned.m8n8.x4.shared.b16",
                                     {k.address(m.of(sa, sb), m(k, row), m(k, col))});
                },
                [&] {
                  auto [row, col] = m.pair(k.lane() / m(8) % m(2) * m(8), k.lane() % m(8));
                  rb = k.instruction("ldmatrix.sync.aligned.m8n8.x2.shared.b16",
                                     {k.address(m.of(sb, sa), m(k, row), m(k, col))});
                },
                [&] {
                  std::vector<Scalar> operands = ra;
                  operands.insert(operands.end(), rb.begin(), rb.end());
                  for (int i = 0; i < m(4); ++i) operands.push_back(k.constant(m(f32), 0));
                  rd = k.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", operands);
                },
                [&] { k.store(d, k.fragment(operand_c(m(m16n8k16), m(f32)), rd)); }});
  });
}

}  // namespace

std::vector<MutatedProgram> mutated_programs() {
  std::vector<MutatedProgram> out;
  const std::vector<int> a = whole(16 * 64, 1), b = whole(8 * 64, 2);
  const std::vector<int> a16 = whole(16 * 16, 1), b16 = whole(8 * 16, 2);
  out.push_back({"one_mma",
                 {"sm_80", "sm_90a"},
                 one_mma,
                 {},
                 {encode(f16, a16), encode(f16, b16), zeros(f32, 128)},
                 {},
                 f32,
                 product(16, 8, 16, a16, b16)});
  const std::vector<int> x = whole(24 * 128, 3);
  std::vector<double> sums(128);
  for (int i = 0; i < 24 * 128; ++i) sums[i % 128] += 3 * x[i];
  out.push_back(
      {"columns", {"sm_80"}, columns, {2}, {encode(f32, x), zeros(f32, 128)}, {24, 3}, f32, sums});
  const std::vector<int> four = whole(4 * 32, 4);
  std::vector<double> turns;
  for (int i = 0; i < 4; ++i) {
    int sum = 0;
    for (int j = 0; j < 32; ++j) sum += four[i * 32 + j];
    for (int j = 0; j < 32; ++j) turns.push_back(sum + four[i * 32 + 31 - j]);
  }
  out.push_back(
      {"turned", {"sm_80"}, turned, {4}, {encode(s32, four), zeros(s32, 128)}, {}, s32, turns});
  out.push_back({"by_hand",
                 {"sm_80"},
                 by_hand,
                 {},
                 {encode(f16, a), encode(f16, b), zeros(f32, 128)},
                 {},
                 f32,
                 product(16, 8, 64, a, b)});
  out.push_back({"by_name",
                 {"sm_80"},
                 by_name,
                 {},
                 {encode(f16, a16), encode(f16, b16), zeros(f32, 128)},
                 {},
                 f32,
                 product(16, 8, 16, a16, b16)});
  for (MutatedProgram& each : mutated_products()) out.push_back(std::move(each));
  return out;
}

}  // namespace tartan::test
