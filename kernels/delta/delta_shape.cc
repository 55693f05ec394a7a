// SPDX-License-Identifier: Apache-2.0
#include "kernels/delta/delta_shape.h"

#include <fmt/format.h>

#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

bool has_legal_type(Builder& k, Type type) {
  return k.require(type == f16 || type == bf16,
                   fmt::format("type = {}: expected f16 or bf16 for Q, K, V and O", name(type)));
}

// Upper bound of the bytes of shared memory of the second kernel.
std::int64_t shared_bytes(const DeltaRule& with) {
  const std::int64_t keys = with.channel_gates ? 3 : 2, c = DeltaRule::chunk, bytes = 2;
  const std::int64_t line = bytes * with.key_dim, padding = line & (line - 1) ? 16 : 0;
  const std::int64_t stage = keys * c * (line + padding) +
                             bytes * (c * with.values_per_block + 2 * c * c) +
                             4 * (with.channel_gates ? with.key_dim : 2 * c);
  constexpr std::int64_t barriers = 1024, of_warp = 4096;
  return with.stages * stage + with.values_per_block / 16 * of_warp + barriers;
}

}  // namespace

bool is_possible(Builder& k, const DeltaRule& options) {
  const int d = options.key_dim, rows = options.values_per_block;
  bool good = k.require(d == 64 || d == 96 || d == 128,
                        fmt::format("key_dim = {}: expected 64, 96 or 128; the nearest is {}", d,
                                    d <= 80    ? 64
                                    : d <= 112 ? 96
                                               : 128));
  good &= k.require(
      options.value_dim >= 64 && options.value_dim <= 256 && options.value_dim % 64 == 0,
      fmt::format("value_dim = {}: expected a multiple of 64, from 64 to 256", options.value_dim));
  good &= has_legal_type(k, options.type);
  good &= k.require(rows >= 64 && rows <= 128 && rows % 64 == 0 && options.value_dim % rows == 0,
                    fmt::format("values_per_block = {}: expected 64 or 128, a divisor of "
                                "value_dim = {}",
                                rows, options.value_dim));
  return good;
}

bool is_possible(Builder& k, const DeltaRuleDecode& options) {
  const int d = options.key_dim, rows = options.values_per_block;
  bool good = k.require(d >= 32 && d <= 256 && d % 32 == 0,
                        fmt::format("key_dim = {}: expected a multiple of 32, from 32 to 256", d));
  good &= has_legal_type(k, options.type);
  good &= k.require(rows >= 16 && rows <= 128 && rows % 16 == 0 && options.value_dim > 0 &&
                        options.value_dim % rows == 0,
                    fmt::format("values_per_block = {}, value_dim = {}: expected a multiple of 16 "
                                "up to 128 that divides value_dim",
                                rows, options.value_dim));
  return good;
}

DeltaPlace::DeltaPlace(Builder& k, const Scalar& all_heads, const Scalar& all_key_heads,
                       const Global& starts)
    : heads(all_heads), key_heads(all_key_heads) {
  head = k.convert(k.block_y(), s32), key_head = head / (heads / key_heads);
  const Scalar sequence = k.convert(k.block_z(), s32);
  first = k.read(starts, 0, sequence);
  count = k.read(starts, 0, sequence + 1) - first;
  first_chunk = first / DeltaRule::chunk + sequence;
}

DeltaRule tuned(const DeltaRule& options, const Gpu& gpu) {
  DeltaRule out = options;
  const Target& target = gpu.target();
  const ArchRow* arch = find_arch(target.arch);
  if (target.has(Feature::wgmma)) out.producers = 4, out.stages = 3;
  while (arch && out.stages > 1 && shared_bytes(out) > arch->shared_bytes) --out.stages;
  return out;
}

DeltaRuleDecode tuned(const DeltaRuleDecode& options, const Gpu&) {
  DeltaRuleDecode out = options;
  out.values_per_block = out.value_dim % 32 == 0 ? 32 : 16;
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels
