// SPDX-License-Identifier: Apache-2.0
// Common errors with tiles, and their diagnostics: messages as recorded in data/misuse.txt, each
// with the line of the description counted from its first.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <optional>
#include <tuple>

#include "tests/support/text_files.h"

namespace tartan {
namespace {

struct Misuse {
  const char* name;
  int line;
  const char* target;
  Kernel kernel;
};

constexpr Tile small{.m = 64, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2};
constexpr Tile large{.m = 128, .n = 256, .k = 64, .warps_m = 2, .warps_n = 2};

Kernel described(int block, const std::function<void(Builder&)>& body,
                 const std::source_location& at = std::source_location::current()) {
  return kernel("misused", {.block = block}, body, at);
}

Kernel in_cluster(int cluster, const std::function<void(Builder&)>& body,
                  const std::source_location& at = std::source_location::current()) {
  return kernel("misused", {.block = 128, .cluster = cluster}, body, at);
}

std::vector<Misuse> misuses() {
  static Fragment kept;
  static Scalar kept_number;
  static std::optional<TiledMma> kept_mma;
  std::vector<Misuse> out;
  out.push_back(
      {"a tile that the warps do not divide", __LINE__, "sm_80", described(128, [](Builder& k) {
         k.tiled_mma(m16n8k16(f16, f16, f32),
                     {.m = 72, .n = 64, .k = 40, .warps_m = 2, .warps_n = 2});
       })});
  out.push_back(
      {"tiles that do not fit each other", __LINE__, "sm_80", described(128, [](Builder& k) {
         auto a = k.global("A", f16, row_major(64, 64));
         auto s = k.shared("s", f16, row_major(64, 32));
         k.copy(a, s);
       })});
  out.push_back({"operands of another tile size", __LINE__, "sm_80", described(128, [](Builder& k) {
                   auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), small);
                   auto a = k.shared("a", f16, row_major(64, 64));
                   auto b = k.shared("b", f16, col_major(64, 32));
                   auto sum = mma.accumulator();
                   sum = mma(sum, a, b);
                 })});
  out.push_back(
      {"a tile larger than the fragment", __LINE__, "sm_80", described(32, [](Builder& k) {
         auto sa = k.shared("sa", f16, row_major(32, 32));
         k.load(operand_a(m16n8k16, f16), sa);
       })});
  out.push_back(
      {"4-bit elements stored the wrong way", __LINE__, "sm_80", described(32, [](Builder& k) {
         auto s = k.shared("s", Type::s4, row_major(64, 8));
         k.load(operand_b(m16n8k64, Type::s4), s);
       })});
  out.push_back({"stages that do not fit", __LINE__, "sm_80", described(128, [](Builder& k) {
                   auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), large);
                   k.shared("a", f16, mma.shared_a(4));
                   k.shared("b", f16, mma.shared_b(4));
                 })});
  out.push_back({"too much shared memory", __LINE__, "sm_86",
                 described(128, [](Builder& k) { k.shared("all", f32, row_major(256, 128)); })});
  out.push_back({"a type that the target lacks", __LINE__, "sm_80", described(128, [](Builder& k) {
                   k.tiled_mma(k.best_mma(Type::e4m3, Type::e4m3, f32), small);
                 })});
  out.push_back({"a block of another size", __LINE__, "sm_80",
                 described(256, [](Builder& k) { k.tiled_mma(m16n8k16(f16, f16, f32), small); })});
  out.push_back(
      {"a fragment that outlives its kernel", __LINE__, "sm_80", described(32, [](Builder& k) {
         auto s = k.shared("s", f16, row_major(16, 16));
         (void)compile(described(32,
                                 [](Builder& other) {
                                   kept = other.load(operand_a(m16n8k16, f16),
                                                     other.shared("t", f16, row_major(16, 16)));
                                 }),
                       k.target());
         std::ignore =
             k.mma(kept, k.load(operand_b(m16n8k16, f16), s.tile({0, 0}, {16, 8})), zero(f32));
       })});
  out.push_back({"a run-time value where a constant must be", __LINE__, "sm_80",
                 described(32, [](Builder& k) {
                   auto n = k.param("n", s32);
                   auto a = k.global("A", f16, row_major(n, n));
                   k.shared("s", f16, row_major(n, 16));
                   k.copy(a.tile({0, 0}, {n, 16}), k.shared("t", f16, row_major(16, 16)));
                 })});
  out.push_back({"a tile read before any barrier", __LINE__, "sm_80", described(32, [](Builder& k) {
                   auto a = k.global("A", f16, row_major(16, 16));
                   auto s = k.shared("s", f16, row_major(16, 16));
                   k.copy(a, s);
                   k.load(operand_a(m16n8k16, f16), s);
                 })});
  out.push_back(
      {"memory of another CTA, unsynchronized", __LINE__, "sm_90a", in_cluster(4, [](Builder& k) {
         auto s = k.shared("s", u32, row_major(4, 32));
         auto t = k.shared("t", f16, row_major(16, 16));
         auto next = (k.cluster_rank() + 1) % 4;
         k.read(s.of_cta(next), 0, 0);
         k.write(s, 0, k.thread(), 1);
         k.barrier();
         k.read(s.of_cta(next), 0, 0);
         k.cluster_barrier();
         k.write(t.of_cta(next), 0, 0, k.constant(f16, 1));
         k.barrier();
         k.load(operand_a(m16n8k16, f16), t);
         k.atomic(AtomicOp::add, s.of_cta(0), 0, 1, 1);
       })});
  out.push_back({"CTAs that are not there", __LINE__, "sm_90a", in_cluster(2, [](Builder& k) {
                   auto s = k.shared("s", f16, row_major(16, 16));
                   auto A = k.global("A", f16, row_major(16, 16));
                   s.of_cta(2);
                   s.of_cta(0).of_cta(1);
                   k.copy(A, s), k.cluster_barrier();
                   k.instruction("ldmatrix.sync.aligned.m8n8.x4.shared.b16", s.of_cta(1),
                                 k.lane() % 16, 0, {});
                   k.cluster_barrier();
                   k.when(k.warp() == 0, [&] { k.cluster_barrier(); });
                 })});
  out.push_back(
      {"a cluster that the target lacks", __LINE__, "sm_80", in_cluster(2, [](Builder& k) {
         auto s = k.shared("s", u32, row_major(4, 32));
         k.write(s, 0, k.cluster_rank(), 1);
         k.cluster_barrier();
         k.read(s.of_cta(1), 0, 0);
         std::ignore = cluster_sum(RowValues{k.constant(f32, 1)});
       })});
  out.push_back(
      {"another CTA of a cluster of one", __LINE__, "sm_80", described(32, [](Builder& k) {
         auto s = k.shared("s", u32, row_major(4, 32));
         k.write(s.of_cta(0), 0, k.lane(), 1);
         k.read(s.of_cta(k.block_x() % 2), 0, 0);
       })});
  out.push_back({"sums that CTAs cannot divide", __LINE__, "sm_90a", in_cluster(8, [](Builder& k) {
                   auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), small);
                   std::ignore = reduce_scatter(mma.accumulator());
                   std::ignore = reduce_scatter(mma.accumulator(), 9);
                   std::ignore = reduce_scatter(mma.accumulator(), 0);
                   std::ignore =
                       reduce_scatter(WarpTile({k.variable(operand_c(m16n8k16, f32))}, 1, {}));
                 })});
  out.push_back({"a ring of another CTA in a pipeline", __LINE__, "sm_90a",
                 kernel("misused", {.block = 32, .producers = 1, .cluster = 2}, [](Builder& k) {
                   auto a = k.global("A", f16, row_major(64, 64));
                   auto ring = k.shared("ring", f16, RingLayout{row_major(16, 16), 2});
                   k.roles([&] {
                     k.pipeline(
                         {.stages = 2}, 4,
                         [&](Scalar t, Scalar stage) {
                           k.copy(a.tile({0, t}, {16, 16}), ring[stage].of_cta(1));
                           k.cluster_barrier();
                         },
                         [&](Scalar, Scalar stage) { k.read(ring[stage], 0, 0); });
                   });
                 })});
  out.push_back({"partial sums that are used", __LINE__, "sm_80", described(128, [](Builder& k) {
                   const Tile tile{
                       .m = 16, .n = 32, .k = 64, .warps_m = 1, .warps_n = 1, .warps_k = 4};
                   auto c = k.global("C", f32, row_major(16, 32));
                   auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), tile);
                   auto sum = mma.accumulator();
                   k.store(c, sum);
                   std::ignore = row_sum(sum);
                   WarpTile whole = mma.sum(sum);
                   std::ignore = mma.sum(whole);
                   k.store(c, whole);
                 })});
  out.push_back(
      {"k that the warps do not divide", __LINE__, "sm_80", described(128, [](Builder& k) {
         Tile tile{.m = 16, .n = 24, .k = 48, .warps_m = 1, .warps_n = 1, .warps_k = 4};
         k.tiled_mma(m16n8k16(f16, f16, f32), tile);
         tile.k = 64;
         auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), tile);
         std::ignore = mma.sum(mma.accumulator());
         tile.products = 2;
         k.tiled_mma(m16n8k16(f16, f16, f32), tile);
         tile.products = 0;
         k.tiled_mma(m16n8k16(f16, f16, f32), tile);
         tile.products = 1, tile.k = 128;
         k.tiled_mma(sparse(m16n8k32)(f16, f16, f32), tile);
       })});
  out.push_back(
      {"rows that are stored elsewhere", __LINE__, "sm_80", described(128, [](Builder& k) {
         auto n = k.param("n", s32);
         auto c = k.global("C", f32, row_major(n, 64)), wide = k.global("W", f32, row_major(n, n));
         auto halves = k.global("H", f16, row_major(n, 64));
         auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), small);
         auto sum = mma.accumulator();
         const auto same = [](Scalar i) { return i; };
         k.store_rows(wide, sum, same);
         k.store_rows(halves, sum, same);
         k.store_rows(c, sum, [&](Scalar) { return k.constant(f32, 1); });
         k.store_rows(c, sum, nullptr);
       })});
  out.push_back(
      {"accumulators as operand A too early", __LINE__, "sm_80", described(128, [](Builder& k) {
         auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), small);
         std::ignore = operand_a(mma.accumulator());
       })});
  out.push_back({"a pipeline without stages, a tile that is not there", __LINE__, "sm_80",
                 described(128, [](Builder& k) {
                   auto a = k.global("A", f16, row_major(64, 64));
                   k.pipeline(
                       {.stages = 0}, 2, [](Scalar, Scalar) {}, [](Scalar, Scalar) {});
                   a.tile({0, 2}, {64, 32});
                 })});
  out.push_back({"row values of another tile", __LINE__, "sm_80", described(128, [](Builder& k) {
                   auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), small);
                   std::ignore = map_rows(mma.accumulator(), RowValues(3, k.constant(f32, 0)),
                                          [](Scalar x, Scalar) { return x; });
                 })});
  out.push_back(
      {"a number that outlives its kernel", __LINE__, "sm_80", described(32, [](Builder& k) {
         (void)compile(described(32, [](Builder& other) { kept_number = other.lane(); }),
                       *Target::parse("sm_80"));
         auto g = k.global("g", f32, row_major(64, 64));
         auto r = k.shared("r", f32, RingLayout{row_major(16, 16), 2});
         k.write(g, kept_number, 0, k.constant(f32, 1));
         k.write(g, 0, kept_number * 2, k.constant(f32, 1));
         k.copy(g.tile({kept_number, 0}, {16, 16}), r[0]);
         k.copy(g.tile({0, 0}, {16, 16}), r[kept_number]);
         k.global("h", f32, row_major(kept_number, 64));
         k.write(g, 0, 0, maximum(kept_number, 1));
       })});
  out.push_back(
      {"a product that outlives its kernel", __LINE__, "sm_80", described(128, [](Builder& k) {
         (void)compile(described(128,
                                 [](Builder& other) {
                                   kept_mma = other.tiled_mma(m16n8k16(f16, f16, f32), small);
                                 }),
                       *Target::parse("sm_80"));
         auto c = k.global("C", f32, row_major(64, 64));
         auto a = k.shared("a", f16, row_major(64, 32));
         auto b = k.shared("b", f16, row_major(32, 64));
         auto sum = kept_mma->accumulator();
         sum = (*kept_mma)(sum, a, b);
         k.store(c, sum);
       })});
  out.push_back(
      {"the builder of the kernel around", __LINE__, "sm_80", described(32, [](Builder& k) {
         auto g = k.global("g", u32, row_major(1, 32));
         (void)compile(described(32, [&](Builder&) { k.write(g, 0, k.thread(), 1); }),
                       *Target::parse("sm_80"));
       })});
  out.push_back({"places that are no integers", __LINE__, "sm_80", described(32, [](Builder& k) {
                   auto g = k.global("g", f32, row_major(64, 64));
                   auto x = k.read(g, 0, 0);
                   k.write(g, x, 0, x);
                   k.write(g, 0, k.thread() < 3, x);
                   g.tile({x, 0}, {16, 16});
                   k.loop(0, x, 1, [](Scalar) {});
                   k.read_if(g, 0, 0, x);
                   k.read_if(g, 0, 64, k.thread() < 3);
                 })});
  out.push_back({"shared matrices that cannot be", __LINE__, "sm_80", described(32, [](Builder& k) {
                   k.shared("a", f32, row_major(1LL << 31, 1LL << 31));
                   k.shared("b", f32, row_major(32768, 32768, 1 << 20));
                   k.shared("c", f16, row_major(64, 64).swizzled({3, 3, 0}));
                   k.shared("d", f16, row_major(64, 64).swizzled({3, 70, 3}));
                   k.shared("e", f16, row_major(16, 16, 8));
                   k.shared("f", f16, row_major(16, 16, -16));
                   k.shared("g", f16, row_major(-4, -16));
                   k.shared("h", f16, nested("((4,2),8):((8,1),2)"));
                 })});
  out.push_back({"elements that share bytes", __LINE__, "sm_120a", described(32, [](Builder& k) {
                   auto g = k.global("g", Type::e2m3, row_major(16, 64));
                   auto h = k.global("h", Type::s4, row_major(16, 15));
                   k.copy(g, k.shared("s", Type::e2m3, row_major(16, 64)));
                   k.copy(h, k.shared("t", Type::s4, row_major(16, 15)));
                   k.copy(h.tile({0, 0}, {16, 8}), k.shared("u", Type::s4, col_major(16, 8)));
                 })});
  out.push_back({"functions that are not there", __LINE__, "sm_80", described(32, [](Builder& k) {
                   k.when(k.thread() < 3, nullptr);
                   k.loop(0, 3, 1, nullptr);
                   k.pipeline({.stages = 2}, 3, nullptr, nullptr);
                   k.each_tile(64, 64, {}, nullptr);
                 })});
  // Each index of a ring but the stage, and what runs ahead of use.
  const auto pipelined = [](auto filled, auto used) {
    return [=](Builder& k) {
      auto A = k.global("A", f16, row_major(64, 256)), B = k.global("B", f16, col_major(256, 64));
      auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), small);
      auto sA = k.shared("sA", f16, mma.shared_a(3)), sB = k.shared("sB", f16, mma.shared_b(3));
      auto sum = mma.accumulator();
      k.pipeline(
          {.stages = 3}, 8,
          [&](Scalar t, Scalar stage) {
            k.copy(A.tile({0, t}, {64, 32}), filled(sA, t, stage));
            k.copy(B.tile({t, 0}, {32, 64}), sB[stage]);
          },
          [&](Scalar t, Scalar stage) { sum = mma(sum, used(sA, t, stage), sB[stage]); });
    };
  };
  const auto right = [](const Ring& s, Scalar, Scalar stage) { return s[stage]; };
  const auto by_t = [](const Ring& s, Scalar t, Scalar) { return s[t]; };
  const auto zero = [](const Ring& s, Scalar, Scalar) { return s[0]; };
  out.push_back({"a stage filled by the k-tile's number", __LINE__ - 3, "sm_80",
                 described(128, pipelined(by_t, right))});
  out.push_back({"one stage filled all the time", __LINE__ - 4, "sm_80",
                 described(128, pipelined(zero, right))});
  out.push_back({"a stage used by the k-tile's number", __LINE__ - 7, "sm_80",
                 described(128, pipelined(right, by_t))});
  out.push_back({"one stage used all the time", __LINE__ - 8, "sm_80",
                 described(128, pipelined(right, zero))});
  out.push_back(
      {"a fill that reads what use changes", __LINE__, "sm_80", described(128, [](Builder& k) {
         auto g = k.global("g", f32, row_major(64, 32));
         auto s = k.shared("s", f32, RingLayout{row_major(1, 32), 2});
         auto x = k.variable(k.constant(u32, 0));
         k.pipeline(
             {.stages = 2}, 8,
             [&](Scalar, Scalar stage) {
               k.copy(g.tile({x, 0}, {1, 32}), s[stage]);
             },
             [&](Scalar t, Scalar) { x = t + 1; });
       })});
  out.push_back(
      {"operands of one shape, swapped", __LINE__, "sm_80", described(128, [](Builder& k) {
         constexpr Tile square{.m = 32, .n = 32, .k = 32, .warps_m = 2, .warps_n = 2};
         auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), square);
         auto sA = k.shared("sA", f16, mma.shared_a())[0];
         auto sB = k.shared("sB", f16, mma.shared_b())[0];
         k.copy(k.global("A", f16, row_major(32, 32)), sA);
         k.copy(k.global("B", f16, col_major(32, 32)), sB);
         k.barrier();
         auto sum = mma(mma.accumulator(), sB, sA);
         k.store(k.global("C", f32, row_major(32, 32)), sum);
       })});
  out.push_back({"a fraction as an integer", __LINE__, "sm_80", described(32, [](Builder& k) {
                   k.write(k.global("g", s32, row_major(1, 1)), 0, 0, k.constant(s32, 0.5));
                 })});
  out.push_back(
      {"warpgroup instructions by name", __LINE__, "sm_90a", described(128, [](Builder& k) {
         k.instruction("wgmma.fence.sync.aligned", {});
         k.instruction("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", {});
       })});
  out.push_back({"more k-tiles than there are", __LINE__, "sm_80", described(128, [](Builder& k) {
                   auto g = k.global("g", f32, row_major(64, 64));
                   auto s = k.shared("s", f32, RingLayout{row_major(64, 16), 2});
                   k.pipeline(
                       {.stages = 2}, 5,
                       [&](Scalar t, Scalar stage) {
                         k.copy(g.tile({0, t}, {64, 16}), s[stage]);
                       },
                       [&](Scalar, Scalar) {});
                 })});
  out.push_back({"calls of a warp or a block by some threads", __LINE__, "sm_80",
                 described(128, [](Builder& k) {
                   auto g = k.global("g", f16, row_major(16, 16));
                   auto s = k.shared("s", f16, row_major(16, 16));
                   auto x = k.variable(k.constant(f32, 1));
                   k.when(k.lane() < 16, [&] {
                     k.copy(g, s);
                     k.barrier();
                     auto a = k.load(operand_a(m16n8k16, f16), s);
                     x = shuffle_xor(x, 1);
                     k.instruction("movmatrix.sync.aligned.m8n8.trans.b16", {k.lane()});
                     k.write(g, 0, k.lane(), k.constant(f16, 1));
                   });
                   k.when(k.thread() / 32 == 2, [&] {
                     k.load(operand_a(m16n8k16, f16), g);
                     k.copy(g, s);
                     k.barrier();
                   });
                   k.when((k.thread() + 8) % 64 > 15, [&] {
                     k.store(g.tile({0, 0}, {16, 8}),
                             k.load(operand_c(m16n8k16, f16), g.tile({0, 1}, {16, 8})));
                   });
                 })});
  out.push_back({"what was never made", __LINE__, "sm_80", described(32, [](Builder& k) {
                   Fragment a, b;
                   b = k.load(operand_b(m16n8k16, f16), k.global("B", f16, col_major(16, 8)));
                   std::ignore = k.mma(a, b, Zero{f32});
                 })});
  out.push_back({"a tile that was never made", __LINE__, "sm_80", described(128, [](Builder& k) {
                   WarpTile none;
                   k.store(k.global("C", f32, row_major(64, 64)), relu(none));
                 })});
  out.push_back({"a part that is larger than what it takes", __LINE__, "sm_80",
                 described(128, [](Builder& k) {
                   auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), small);
                   auto wide =
                       k.tiled_mma(m16n8k16(f16, f16, f32),
                                   {.m = 64, .n = 128, .k = 32, .warps_m = 2, .warps_n = 2});
                   auto c = k.global("C", f32, row_major(256, 256));
                   k.store(c.tile({0, 0}, {128, 64}), mma.accumulator());
                   auto sum = mma.accumulator();
                   sum = wide.accumulator();
                 })});
  out.push_back(
      {"numbers that are stored as their bits", __LINE__, "sm_80", described(32, [](Builder& k) {
         auto g = k.global("g", f32, row_major(1, 32));
         k.write(g, 0, 0, k.constant(s32, 2));
         k.write(g, 0, 1, k.constant(Type::none, 2));
         ceil_div(k.thread(), -1);
       })});
  out.push_back({"tiles of no size", __LINE__, "sm_80", described(128, [](Builder& k) {
                   k.block_tile(64, 64, {.m = 0, .n = 64});
                   k.global("g", Type::none, row_major(64, 64));
                 })});
  out.push_back({"a kernel without a function", __LINE__, "sm_80", described(32, nullptr)});
  out.push_back({"what follows a refused call", __LINE__, "sm_80", described(128, [](Builder& k) {
                   auto s = k.shared("s", f16, row_major(8, 8));
                   auto a = k.elements(k.load(operand_a(m16n8k16, f16), s));
                   auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), small);
                   auto wrong = k.tiled_mma(m16n8k16(f16, f16, f32), {.m = 17});
                   WarpTile none = wrong.accumulator(), some = mma.accumulator();
                   k.pack(operand_a(m16n8k16, f16), a);
                   k.elements(none.fragment(0, 0));
                   k.elements(some.fragment(2, 0));
                 })});
  out.push_back(
      {"the first step of another tile", __LINE__, "sm_80", described(128, [](Builder& k) {
         auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), small);
         auto other = k.tiled_mma(m16n8k16(f16, f16, f32),
                                  {.m = 128, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2});
         auto a = k.shared("a", f16, row_major(64, 32)), b = k.shared("b", f16, row_major(32, 64));
         auto large_a = k.shared("large_a", f16, row_major(128, 32));
         auto first = mma.first_step(a, b);
         auto sum = other.accumulator();
         other.load(first, large_a, b);
         other.add(sum, large_a, b, first, [] {});
         k.tiled_mma(m16n8k16(f16, f16, f32), {.m = 17}).load(first, a, b);
       })});
  out.push_back(
      {"fragments that are finished as others", __LINE__, "sm_80", described(128, [](Builder& k) {
         auto mma = k.tiled_mma(m16n8k16(f16, f16, f32), {.m = 64, .n = 64, .k = 32});
         auto c = k.global("C", f16, row_major(64, 64));
         const WarpTile sum = mma.accumulator();
         const FragmentKind kind = operand_c(m16n8k16, f16);
         const auto same = [&](int i, int j) { return sum.fragment(i, j); };
         k.store(c, sum, {.kind = kind, .finished = same});
         k.store(c, sum, {.kind = operand_a(m16n8k16, f16), .finished = same});
         k.store(c, sum, {.kind = kind});
       })});
  return out;
}

std::string told(const Misuse& misuse) {
  const auto compiled = compile(misuse.kernel, *Target::parse(misuse.target));
  std::string out = fmt::format("{} ({})\n", misuse.name, misuse.target);
  if (compiled) return out + "  compiled\n";
  for (const Diag& diag : compiled.diags()) {
    std::string message = diag.message;
    // Lines inside messages refer to this file, too.
    const std::string file = "misuse_test.cc:";
    for (auto at = message.find(file); at != std::string::npos; at = message.find(file, at + 1)) {
      const auto begin = at + file.size();
      std::size_t end = begin;
      while (end < message.size() && std::isdigit(static_cast<unsigned char>(message[end]))) ++end;
      const int line = std::stoi(message.substr(begin, end - begin)) - misuse.line;
      message.replace(begin, end - begin, fmt::format("+{}", line));
    }
    out += fmt::format("  +{}: {} [{}]\n", diag.place.line - misuse.line, message, diag.id);
  }
  return out;
}

TEST(Misuse, IsExplained) {
  std::string got;
  for (const Misuse& misuse : misuses()) got += told(misuse);
  test::expect_file(TEST_DATA "/misuse.txt", got);
}

}  // namespace
}  // namespace tartan
