// SPDX-License-Identifier: Apache-2.0
// Decoding with a paged cache: attention of one new token, keys and values in pages, split along
// the keys; a second kernel combines the parts (flash decoding).
//
//   Q        batch x kv_heads x 8 x 64               f16: the query heads that share a head of keys
//   K, V     pages x kv_heads x 64 x 64              f16: 64 keys of a head, of 64 elements each
//   table    batch x most_pages                      s32: which page has the keys 64 i .. 64 i + 63
//   lengths  batch                                   s32: keys of each sequence, at least 1
//   P, L     batch x kv_heads x splits x 8 (x 64)    f32: a split's result, and log2 of its sum
//   O        batch x kv_heads x 8 x 64               f16
//
// Split blockIdx.x of sequence blockIdx.z folds its pages into a running maximum and sum, as
// attention over contiguous keys does; only the address of a tile of keys comes from memory. The
// eight query heads of a head of keys are the rows of one m16 product (the other eight are zeros),
// so that a consumer warp reads each key once for all of them. A producer warp reads the table and
// copies pages, by TMA on sm_90a.
//
// A split without pages gives zeros and log2(0) = -infinity. combine() weights each split with
// 2^(L - the largest L).
#include <cmath>
#include <limits>
#include <numbers>

#include "gallery.h"

using namespace tartan;

namespace {

constexpr int d = 64, page = 64, heads = 8;  // heads: query heads of a head of keys
constexpr double infinity = std::numeric_limits<double>::infinity();

Scalar power(const Scalar& x, const Scalar& top) { return exp2(x - top); }

Kernel decode() {
  constexpr Tile qk{.m = 16, .n = page, .k = d, .warps_m = 1, .warps_n = 1};
  constexpr Tile pv{.m = 16, .n = d, .k = page, .warps_m = 1, .warps_n = 1};
  return kernel("decode", {.block = qk.threads(), .producers = 1}, [=](Builder& k) {
    auto batch = k.param("batch", s32), kv_heads = k.param("kv_heads", s32),
         most_pages = k.param("most_pages", s32), splits = k.param("splits", s32);
    auto split = k.block_x(), kv_head = k.block_y(), sequence = k.block_z();
    auto head = sequence * kv_heads + kv_head, part = head * splits + split;
    auto Q = k.global("Q", f16, row_major(heads, d)).matrix(head);
    auto K = k.global("K", f16, row_major(page, d)), V = k.global("V", f16, row_major(page, d));
    auto table = k.global("table", s32, row_major(batch, most_pages));
    auto lengths = k.global("lengths", s32, row_major(1, batch));
    auto P = k.global("P", f32, row_major(heads, d)).matrix(part);
    auto L = k.global("L", f32, row_major(1, heads)).matrix(part);

    auto length = k.convert(k.read(lengths, 0, sequence), u32);
    auto pages = ceil_div(length, page), each = ceil_div(pages, splits);
    auto first = minimum(split * each, pages), count = minimum(each, pages - first);

    constexpr int stages = 3;
    auto mma_qk = k.tiled_mma(k.best_mma(f16, f16, f32), qk);
    auto mma_pv = k.tiled_mma(k.best_mma(f16, f16, f32), pv);
    auto sQ = k.shared("sQ", f16, mma_qk.shared_a());
    auto sK = k.shared("sK", f16, mma_qk.shared_b(stages, Major::col));
    auto sV = k.shared("sV", f16, mma_pv.shared_b(stages, Major::row));
    auto scale = k.constant(f32, std::numbers::log2e / std::sqrt(d));
    auto unseen = k.constant(f32, -infinity), zero = k.constant(f32, 0);

    k.roles([&] {
      k.copy(Q.tile({0, 0}, {qk.m, d}), sQ[0]);
      k.barrier();
      auto q = mma_qk.load_a(sQ[0]);
      auto top = mma_qk.row_variable(k.constant(f32, -1e30)), sum = mma_qk.row_variable(zero);
      auto o = mma_pv.accumulator();
      auto fill = [&](Scalar t, Scalar stage) {
        auto number = k.convert(k.read(table, sequence, first + t), u32) * kv_heads + kv_head;
        k.copy(K.matrix(number).transposed().tile({0, 0}, {d, page}), sK[stage]);
        k.copy(V.matrix(number).tile({0, 0}, {page, d}), sV[stage]);
      };
      auto fold = [&](Scalar t, Scalar stage) {
        auto scores =
            map(mma_qk(mma_qk.accumulator(), q, sK[stage]), [&](Scalar x, ElementPlace at) {
              return select((first + t) * page + at.col < length, x * scale, unseen);
            });
        RowValues before = top, now = map(before, row_maximum(scores), maximum);
        RowValues shrink = map(before, now, power);
        auto weights = map_rows(scores, now, power);
        sum = map(map(sum, shrink, times), row_sum(weights), plus);
        o = mma_pv(map_rows(o, shrink, times), operand_a(convert(weights, f16)), sV[stage]);
        top = now;
      };
      k.pipeline({.stages = stages}, count, fill, fold);

      RowValues most = top, all = sum;
      k.store(P.tile({0, 0}, {pv.m, d}), map_rows(o, all, [&](Scalar x, Scalar y) {
                return select(y == zero, zero, x * reciprocal(y));
              }));
      const std::vector<Scalar> rows = row_places(o);
      for (std::size_t i = 0; i < rows.size(); ++i)  // four lanes have the same row
        k.when((k.lane() % 4 == 0) & (rows[i] < heads),
               [&] { k.write(L, 0, rows[i], most[i] + log2(all[i])); });
    });
  });
}

// O = sum of 2^L * P over the splits, / sum of 2^L: a block for each head, a thread for each
// column.
Kernel combine() {
  return kernel("combine", {.block = d}, [](Builder& k) {
    auto splits = k.param("splits", s32);
    auto row = k.block_x(), kv_head = k.block_y(), col = k.thread();
    auto P = k.global("P", f32, row_major(splits * heads, d)).matrix(kv_head);
    auto L = k.global("L", f32, row_major(splits, heads)).matrix(kv_head);
    auto O = k.global("O", f16, row_major(heads, d)).matrix(kv_head);

    auto top = k.variable(k.constant(f32, -infinity));
    k.loop(0, splits, 1, [&](Scalar s) { top = maximum(top, k.read(L, s, row)); });
    auto sum = k.variable(k.constant(f32, 0)), out = k.variable(k.constant(f32, 0));
    k.loop(0, splits, 1, [&](Scalar s) {
      auto weight = exp2(k.read(L, s, row) - top);
      sum = sum + weight;
      out = out + weight * k.read(P, s * heads + row, col);
    });
    k.write(O, row, col, k.convert(out * reciprocal(sum), f16));
  });
}

}  // namespace

int main(int argc, char** argv) {
  return gallery::main(argc, argv, [](gallery::Session& session) {
    constexpr int kv_heads = 2, most_pages = 5, splits = 3;
    const std::vector<std::int32_t> lengths{300, 64, 1, 129};
    const int batch = static_cast<int>(lengths.size()), pages = batch * most_pages;
    const int of_page = page * d, parts = batch * kv_heads * splits;
    std::vector<std::int32_t> table(pages);
    for (int i = 0; i < pages; ++i) table[i] = i * 7 % pages;  // 7 and 20 have no common divisor
    const auto q = gallery::numbers<host::f16>(batch * kv_heads * heads * d, 1),
               k = gallery::numbers<host::f16>(pages * kv_heads * of_page, 2),
               v = gallery::numbers<host::f16>(pages * kv_heads * of_page, 3);
    std::vector<float> p(parts * heads * d), l(parts * heads);
    std::vector<host::f16> o(q.size());
    session.run(decode(), {splits, kv_heads, static_cast<unsigned>(batch)}, batch, kv_heads,
                most_pages, splits, in(q), in(k), in(v), in(table), in(lengths), out(p), out(l));
    session.run(combine(), {heads, static_cast<unsigned>(batch * kv_heads)}, splits, in(p), in(l),
                out(o));

    std::vector<double> expected;
    for (int head = 0; head < batch * kv_heads; ++head) {
      const int sequence = head / kv_heads, length = lengths[sequence];
      std::vector<host::f16> keys, values;
      for (int i = 0; i < length * d; ++i) {
        const int number = table[sequence * most_pages + i / of_page] * kv_heads + head % kv_heads;
        keys.push_back(k[number * of_page + i % of_page]);
        values.push_back(v[number * of_page + i % of_page]);
      }
      const auto of_head = reference::attention(
          reference::row_major(std::span(q).subspan(head * heads * d, heads * d), heads, d),
          reference::row_major(keys, length, d), reference::row_major(values, length, d),
          {.scale = 1 / std::sqrt(d)});
      expected.insert(expected.end(), of_head.begin(), of_head.end());
    }
    // Weights and results are rounded to f16, half a unit of 2^-10 each: twice that is allowed.
    session.expect("paged decode", o, expected, d, {.absolute = 0x1p-9});
  });
}
