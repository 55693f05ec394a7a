// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/attention.h"

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
                       kernels::attention, attention_grid);
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
