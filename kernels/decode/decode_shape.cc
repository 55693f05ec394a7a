// SPDX-License-Identifier: Apache-2.0
#include "kernels/decode/decode_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/common/integers.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr int most_head_dim = 256, most_queries = 16, most_rows = 128;

// Upper bound of the bytes of shared memory.
std::int64_t shared_bytes(const Decode& options, const Target& target) {
  const DecodeShape shape = decode_shape(options, target);
  const std::int64_t line = 2 * std::int64_t{options.head_dim};
  const std::int64_t padded = line & (line - 1) ? line + 16 : line;
  constexpr std::int64_t others = 2048;
  return (shape.tile_m + std::int64_t{2} * options.stages * options.keys_per_step) * padded +
         (shape.groups > 1
              ? std::int64_t{4} * shape.groups * options.rows() * (options.head_dim + 8)
              : 0) +
         others;
}

}  // namespace

bool by_tensor_memory(const Decode& options, const Target& target) {
  constexpr int least_rows = 33, rows_of_half = 64, widest_head = 128;
  // Wide heads: O of 128 rows takes 256 registers of a thread, or both halves more columns than
  // there are.
  const bool fits = options.rows() <= rows_of_half || options.head_dim <= widest_head;
  return options.rows() >= least_rows && fits && options.producers > 0 &&
         target.has(Feature::tensor_memory);
}

DecodeShape decode_shape(const Decode& options, const Target& target) {
  const int rows = (std::clamp(options.rows(), 1, most_rows) + 15) / 16;
  // By wgmma, which computes 64 rows; by tcgen05, which takes as long for 64 as for 128.
  const bool by_tensor = by_tensor_memory(options, target),
             wide = by_tensor || (rows > 1 && options.producers > 0 && target.has(Feature::wgmma));
  DecodeShape out{};
  const bool has_tma = target.has(Feature::tma);
  constexpr int short_page = 32;  // with longer pages panels are up to 0.3 % faster
  out.whole_lines = rows == 1 && has_tma && options.producers > 0 && options.head_dim == 128 &&
                    options.page <= short_page;
  out.warps_m = by_tensor ? 4 : wide ? (rows + 3) / 4 * 4 : rows;
  out.tile_m = by_tensor && rows > 4 ? 128 : 16 * out.warps_m;
  out.groups = options.key_groups > 0
                   ? options.key_groups
                   : std::max(1, std::min(4 / out.warps_m, options.keys_per_step / 16));
  out.keys = options.keys_per_step / out.groups;
  return out;
}

bool is_possible(Builder& k, const Decode& options) {
  const DecodeShape shape = decode_shape(options, k.target());
  const int d = options.head_dim, n = options.keys_per_step, page = options.page;
  const auto in = [&](const char* what, int value, int least, int most, const std::string& why) {
    return k.require(value >= least && value <= most,
                     fmt::format("{} = {}: expected {} to {}{}; the nearest is {}", what, value,
                                 least, most, why, std::clamp(value, least, most)));
  };
  bool out =
      k.require(d >= 16 && d <= most_head_dim && d % 16 == 0,
                fmt::format("head_dim = {}: expected a multiple of 16, from 16 to {}; the "
                            "nearest is {}",
                            d, most_head_dim, std::clamp(d, 16, most_head_dim + 15) / 16 * 16));
  out &= k.require(
      options.type == f16 || options.type == bf16,
      fmt::format("type = {}: expected f16 or bf16 for Q, K, V and O", name(options.type)));
  out &= in("queries", options.queries, 1, most_queries, " new tokens of a sequence");
  out &= in("group", options.group, 1, most_rows / std::clamp(options.queries, 1, most_queries),
            fmt::format(" query heads that share a head of keys (at most {} rows with the tokens)",
                        most_rows));
  out &= k.require(is_power(page, 16, 256),
                   fmt::format("page = {}: expected 16, 32, 64, 128 or 256 keys", page));
  out &= k.require(is_power(n, 16, 256),
                   fmt::format("keys_per_step = {}: expected 16, 32, 64, 128 or 256", n));
  out &= in("stages", options.stages, 1, 256, "");
  out &= in("blocks_per_multiprocessor", options.blocks_per_multiprocessor, 1, 32, "");
  out &= in("whole_steps", options.whole_steps, 0, 1024, "");
  out &= k.require(shape.keys >= 16 && shape.keys * shape.groups == n,
                   fmt::format("key_groups = {}: expected groups of at least 16 of the {} keys of "
                               "a step",
                               shape.groups, n));
  return out;
}

unsigned Decode::blocks(int multiprocessors, int batch, int kv_heads, int keys) const {
  const std::int64_t heads = std::int64_t{batch} * kv_heads, at_a_time = blocks(multiprocessors);
  constexpr int keys_of_head = 2048;
  // 3.5 and more for each block.
  const bool many = 2 * heads >= 7 * at_a_time && keys >= keys_of_head;
  if (!many || at_a_time == 0) return static_cast<unsigned>(at_a_time);
  // Few rows take no longer than memory needs, so that a last wave of few blocks ends sooner.
  const std::int64_t last = heads % at_a_time;
  const bool fills = rows() <= 16 || last == 0 || 2 * last >= at_a_time;
  return static_cast<unsigned>(fills ? heads : at_a_time);
}

Decode tuned(const Decode& options, const Gpu& gpu) {
  const Target& target = gpu.target();
  Decode out = options;
  const ArchRow* arch = find_arch(target.arch);
  if (!arch) return out;
  Decode with_producers = out;
  with_producers.producers = 4;
  if (by_tensor_memory(with_producers, target)) {
    // Not measured. S and P of 128 rows are in registers, a row in each thread.
    out.keys_per_step = out.rows() > 64 || out.head_dim > 128 ? 64 : 128;
    out.stages = 3, out.key_groups = 0, out.producers = 4, out.blocks_per_multiprocessor = 1;
    out.whole_steps = 12;
  } else if (target.has(Feature::wgmma)) {
    // One CTA. With few rows 128 KB in flight are faster than all of its shared memory: DRAM then
    // reads longer pieces. Two rows of warpgroups and wide heads need the producers' registers.
    const bool few = out.rows() <= 16;
    constexpr int in_flight = 128 << 10;
    const int dim = std::clamp(out.head_dim, 16, most_head_dim);  // decode() refuses others
    out.keys_per_step = !few && out.head_dim > 128 ? 64 : 128;
    out.stages = few ? std::clamp(in_flight / (4 * out.keys_per_step * dim), 2, 3) : 3;
    out.key_groups = 0;
    out.producers = out.rows() > 64 || out.head_dim > 128 ? 4 : 1;
    out.blocks_per_multiprocessor = 1;
    // Parts of more rows take longer to write and to add.
    out.whole_steps = few ? 3 : 12;
  }
  const auto fits = [&] { return shared_bytes(out, target) <= arch->shared_bytes; };
  while (!fits() && out.stages > 2) --out.stages;
  while (!fits() && out.keys_per_step > 16) out.keys_per_step /= 2;
  while (!fits() && out.stages > 1) --out.stages;
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels
