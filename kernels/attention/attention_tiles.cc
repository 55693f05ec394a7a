// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention_tiles.h"

#include <numbers>

#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::kernels {

namespace {

// Of a number of at least 1: groups of so many heads are mostly equal. At most 32.
Scalar power_below(const Scalar& x) {
  Scalar out = minimum(x, 1);
  for (const int power : {2, 4, 8, 16, 32}) out = select(x >= power, power, out);
  return out;
}

}  // namespace

std::pair<Scalar, Scalar> TileOrder::longest_first(const Scalar& number) const {
  constexpr int most_keys = 1 << 20;  // more than L2 holds
  // 16 and 32 MB are slower on an H100, and 8 where blocks of 4 batches are persistent.
  const int kilobytes = (with.persistent ? 6 : 8) * 1024;
  const Scalar of_head =
      maximum(minimum(keys, most_keys) / 256 * with.head_dim, 1);  // 4 bytes for each element
  const Scalar share = heads / kv_heads;               // query heads that have a head of keys
  Scalar at_a_time = maximum(kilobytes / of_head, 1);  // heads of keys
  if (with.persistent) at_a_time = power_below(at_a_time);
  const Scalar most = minimum(at_a_time, kv_heads) * share;
  const Scalar of_blocks = maximum(blocks, 1);
  const Scalar first = number / (most * of_blocks) * most, within = number - first * of_blocks,
               together = maximum(minimum(most, heads - first), 1);
  Scalar behind = within / together;  // tiles of later queries
  if (with.persistent && with.causal) {
    // In every second group the shortest come first: each block gets as much work as the others.
    const Scalar groups = ceil_div(heads, most), group = first / most;
    behind = select((groups - group) % 2 == 0, of_blocks - 1 - behind, behind);
  }
  return {first + within % together, blocks - 1 - behind};
}

RowValues log_sums(Builder& k, const RowValues& top, const RowValues& sum, const Scalar& scale) {
  const Scalar ln2 = k.constant(f32, std::numbers::ln2);
  return map(top, sum, [&](Scalar b, Scalar s) { return (b * scale + log2(s)) * ln2; });
}

void write_rows(Builder& k, const Global& to, const Scalar& begin, const Scalar& count,
                const Scalar& first, const WarpTile& tile, const RowValues& values) {
  const RowValues rows = row_places(tile);
  for (std::size_t i = 0; i < rows.size() && i < values.size(); ++i) {
    const Scalar row = first + rows[i];
    k.when((k.lane() % 4 == 0) & (row < count), [&] { k.write(to, 0, begin + row, values[i]); });
  }
}

void clear_rows(Builder& k, const Shared& tile, const Scalar& first, int rows, int columns,
                int threads) {
  const int vectors = columns / 8;
  k.loop(first * vectors + k.convert(k.thread(), s32), rows * vectors, threads, [&](Scalar i) {
    k.ptx("st.shared.v4.b32 [%0], {%1, %1, %1, %1};", {},
          {k.address(tile, i / vectors, i % vectors * 8), k.constant(u32, 0)});
  });
  k.instruction("fence.proxy.async.shared::cta", {});  // of what TMA wrote and wgmma reads
  k.barrier();
}

Scalar any(const RowValues& rows, Scalar (*is)(const Scalar&)) {
  Scalar out = is(rows.empty() ? Scalar(0) : rows[0]);
  for (std::size_t i = 1; i < rows.size(); ++i) out = out | is(rows[i]);
  return out;
}
Scalar is_far(const Scalar& product) { return maximum(product, product * -1) > 4096; }
Scalar is_not_one(const Scalar& x) { return x != 1; }

}  // namespace tartan::TARTAN_ABI::kernels
