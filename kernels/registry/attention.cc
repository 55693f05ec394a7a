// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/registry/families.h"
#include "tartan/kernels/attention_backward.h"
#include "tartan/kernels/decode.h"
#include "tartan/kernels/mla_decode.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

using kernels::Attention;
using kernels::AttentionBackward;
using kernels::Decode;
using kernels::MlaDecode;

std::uint32_t count_of(const LaunchSizes& sizes, std::string_view param) {
  return static_cast<std::uint32_t>(sizes.of(param));
}

// By default as many blocks as run at a time; a caller that divides heads or tiles along y or x
// gets the other dimension of one block for each tile.
LaunchGrid attention_grid(const Attention& with, const LaunchSizes& sizes) {
  const std::uint32_t heads = count_of(sizes, "heads");
  if (with.packed)  // its longest sequence, no argument tells
    return {{}, heads, count_of(sizes, "sequences")};
  const auto queries = static_cast<int>(sizes.of("queries"));
  if (with.persistent && sizes.given.x == 0 && sizes.given.y == 0)
    return {with.persistent_blocks(queries, static_cast<int>(heads),
                                   static_cast<int>(sizes.given.z), sizes.multiprocessors),
            1,
            {}};
  return {with.blocks(queries), heads, {}};
}

// How many queries of a packed sequence the caller's grid has room for, in tiles of `with`.
std::int64_t most_queries(const Attention& with, const LaunchSizes& sizes) {
  return std::min(std::int64_t{sizes.given.x} * with.tile_queries(), sizes.of("queries"));
}

// About how many keys a query of the launch sees at most. Packed, the longest sequence has about as
// many as queries, and no fewer than the mean.
std::int64_t keys_seen(const Attention& with, const LaunchSizes& sizes) {
  std::int64_t keys = sizes.of("keys");
  if (with.packed)
    keys = std::min(keys, std::max(most_queries(with, sizes),
                                   keys / std::max<std::int64_t>(sizes.of("sequences"), 1)));
  return with.window ? std::min(keys, std::max<std::int64_t>(sizes.number("window"), 0)) : keys;
}

// The grid of `few` for a launch of `many`, if it has at most that many keys. A caller who divides
// heads or tiles among blocks means those of `many`.
std::optional<LaunchGrid> few_keys_grid(const Attention& few, const Attention& many,
                                        const LaunchSizes& sizes) {
  const Dim3& given = sizes.given;
  if (keys_seen(many, sizes) > few.keys) return std::nullopt;
  if (!many.packed && (given.x || given.y)) return std::nullopt;
  LaunchGrid out = attention_grid(few, sizes);
  if (many.packed && given.x) out.x = few.blocks(static_cast<int>(most_queries(many, sizes)));
  if (given.y) out.y = given.y;
  if (given.z) out.z = given.z;
  return out;
}

// Whoever launches a kernel that was compiled for no number of keys gets those for few keys, too.
std::vector<Variant> few_keys(const Attention& read, const kernels::Gpu& gpu) {
  std::vector<Variant> out;
  if (read.keys) return out;
  const Attention many = tuned(read, gpu);
  for (const int keys : key_limits(read, gpu)) {
    Attention few = read;
    few.keys = keys;
    few = tuned(few, gpu);
    out.push_back(
        {.option = fmt::format("keys={}", keys),
         .kernel = kernels::attention(few),
         .grid_of = [=](const LaunchSizes& sizes) { return few_keys_grid(few, many, sizes); }});
  }
  return out;
}

LaunchGrid rows_grid(const AttentionBackward& with, const LaunchSizes& sizes) {
  return {with.row_blocks(static_cast<int>(sizes.of("queries"))), count_of(sizes, "heads"), {}};
}

LaunchGrid keys_grid(const AttentionBackward& with, const LaunchSizes& sizes) {
  return {with.blocks(static_cast<int>(sizes.of("keys"))), count_of(sizes, "kv_heads"), {}};
}

// Of a cache of keys.
template <typename Options>
LaunchGrid cache_grid(const Options& with, const LaunchSizes& sizes) {
  return {with.blocks(sizes.multiprocessors)};
}

}  // namespace

void add_attention(KernelRegistry& registry) {
  add_tuned<Attention>(registry, "attention", "attention", "softmax(scale * Q * K^T) * V",
                       kernels::attention, attention_grid, {}, few_keys);
  const char* const backward = "attention_backward";
  add_tuned<AttentionBackward>(registry, backward, "attention_backward_rows",
                               "first kernel of attention's gradients: sums along rows",
                               kernels::attention_backward_rows, rows_grid);
  add_tuned<AttentionBackward>(registry, backward, "attention_backward",
                               "second kernel: the gradients of K and V, the sums of that of Q",
                               kernels::attention_backward, keys_grid);
  add_tuned<AttentionBackward>(registry, backward, "attention_backward_queries",
                               "third kernel: the gradient of Q from its sums",
                               kernels::attention_backward_queries, rows_grid);
  add_tuned<Decode>(registry, "decode", "decode",
                    "attention of new tokens over a paged cache of keys and values",
                    kernels::decode, cache_grid<Decode>);
  add_tuned<MlaDecode>(registry, "mla_decode", "mla_decode",
                       "decoding with multi-head latent attention (MLA), keys of 512 + 64 elements",
                       kernels::mla_decode, cache_grid<MlaDecode>, {.type = f16});
}

}  // namespace tartan::TARTAN_ABI::builtins
