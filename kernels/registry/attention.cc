// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/attention.h"

#include <fmt/format.h>

#include "kernels/registry/families.h"
#include "kernels/registry/work_space.h"
#include "tartan/kernels/attention_backward.h"
#include "tartan/kernels/decode.h"
#include "tartan/kernels/mla_decode.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

using SharedAttention = std::shared_ptr<const kernels::Attention>;

using SharedDecode = std::shared_ptr<const kernels::Decode>;

Result<kernels::Softcap> read_softcap(const std::string& word) {
  if (word == "none") return kernels::Softcap::none;
  if (word == "exp") return kernels::Softcap::by_exp;
  if (word == "tanh") return kernels::Softcap::by_tanh;
  return {"usage"_rule, fmt::format("--softcap {}: expected none, exp or tanh", word)};
}

// Tokens and pages are decode's options.
void add_mla_decode(KernelRegistry& registry, const SharedProductWords& words,
                    const SharedDecode& shared) {
  const auto options = std::make_shared<kernels::MlaDecode>();
  registry.add_option({.name = "heads",
                       .value = &options->heads,
                       .help = "Query heads, 1 to 128",
                       .group = "Options of mla_decode (and --type, --queries, --page)",
                       .shows_default = true});
  registry.add({"mla_decode",
                "decoding with multi-head latent attention (MLA), keys of 512 + 64 elements",
                {"type", "queries", "heads", "page", "gpu", "multiprocessors"},
                [=](const Request& request) -> Result<Described> {
                  const auto type = read_type(*words);
                  if (!type) return type.diags();
                  kernels::MlaDecode mla = *options;
                  mla.type = *type, mla.queries = shared->queries, mla.page = shared->page;
                  mla = tuned(mla, request.gpu);
                  return Described{.kernel = kernels::mla_decode(mla),
                                   .grid_of =
                                       [=](const LaunchSizes& sizes) {
                                         return LaunchGrid{mla.blocks(sizes.multiprocessors)};
                                       },
                                   .work_of = work_of(mla)};
                }});
}

// Its head dimension is attention's option.
void add_decode(KernelRegistry& registry, const SharedProductWords& words,
                const SharedAttention& shared) {
  const char* const group = "Options of decode (and --type, --head-dim)";
  const auto options = std::make_shared<kernels::Decode>();
  registry.add_option({.name = "queries",
                       .value = &options->queries,
                       .help = "New tokens of each sequence, 1 to 16",
                       .group = group,
                       .shows_default = true});
  registry.add_option({.name = "heads-per-kv",
                       .value = &options->group,
                       .help = "Query heads that share a head of keys and values",
                       .group = group,
                       .shows_default = true});
  registry.add_option({.name = "page",
                       .value = &options->page,
                       .help = "Keys in a page of the cache: 16, 32, 64, 128 or 256",
                       .group = group,
                       .shows_default = true});
  registry.add({"decode",
                "attention of new tokens over a paged cache of keys and values",
                {"type", "head-dim", "queries", "heads-per-kv", "page", "gpu", "multiprocessors"},
                [=](const Request& request) -> Result<Described> {
                  const auto type = read_type(*words);
                  if (!type) return type.diags();
                  kernels::Decode decode = *options;
                  decode.type = *type, decode.head_dim = shared->head_dim;
                  decode = tuned(decode, request.gpu);
                  return Described{.kernel = kernels::decode(decode),
                                   .grid_of =
                                       [=](const LaunchSizes& sizes) {
                                         return LaunchGrid{decode.blocks(sizes.multiprocessors)};
                                       },
                                   .work_of = work_of(decode)};
                }});
  add_mla_decode(registry, words, options);
}

// The three kernels of the backward pass; head dimension and mask are attention's options.
void add_attention_backward(KernelRegistry& registry, const SharedProductWords& words,
                            const SharedAttention& shared) {
  const auto options = std::make_shared<kernels::AttentionBackward>();
  registry.add_option(
      {.name = "deterministic",
       .value = &options->deterministic,
       .help = "The gradient of Q is summed in the order of the keys",
       .group = "Options of attention_backward (and --type, --head-dim, --causal)"});
  using With = kernels::AttentionBackward;
  using Size = std::uint32_t (*)(const With&, const LaunchSizes&);
  const auto add = [&](const char* name, const char* summary, Kernel (*kernel)(const With&),
                       Size blocks, const char* heads) {
    registry.add({name,
                  summary,
                  {"type", "head-dim", "causal", "deterministic", "gpu", "multiprocessors"},
                  [=](const Request& request) -> Result<Described> {
                    const auto type = read_type(*words);
                    if (!type) return type.diags();
                    With with = *options;
                    with.type = *type, with.head_dim = shared->head_dim;
                    with.causal = shared->causal;
                    with = tuned(with, request.gpu);
                    return Described{.kernel = kernel(with),
                                     .grid_of =
                                         [=](const LaunchSizes& sizes) {
                                           return LaunchGrid{
                                               blocks(with, sizes),
                                               static_cast<std::uint32_t>(sizes.of(heads)),
                                               {}};
                                         },
                                     .work_of = work_of(with)};
                  }});
  };
  const Size rows = [](const With& with, const LaunchSizes& sizes) {
    return with.row_blocks(static_cast<int>(sizes.of("queries")));
  };
  add("attention_backward_rows", "first kernel of attention's gradients: sums along rows",
      kernels::attention_backward_rows, rows, "heads");
  add(
      "attention_backward", "second kernel: the gradients of K and V, the sums of that of Q",
      kernels::attention_backward,
      [](const With& with, const LaunchSizes& sizes) {
        return with.blocks(static_cast<int>(sizes.of("keys")));
      },
      "kv_heads");
  add("attention_backward_queries", "third kernel: the gradient of Q from its sums",
      kernels::attention_backward_queries, rows, "heads");
}

}  // namespace

void add_attention(KernelRegistry& registry, const SharedProductWords& words) {
  const char* const group = "Options of attention (and --type)";
  const auto options = std::make_shared<kernels::Attention>();
  registry.add_option({.name = "head-dim",
                       .value = &options->head_dim,
                       .help = "Head dimension, a multiple of 16",
                       .group = group,
                       .shows_default = true});
  registry.add_option(
      {.name = "causal",
       .value = &options->causal,
       .help = "Causal mask, bottom-right aligned: the last query attends to all keys",
       .group = group});
  registry.add_option({.name = "window",
                       .value = &options->window,
                       .help = "With --causal: a query attends to the last keys up to its own, as "
                               "many as the parameter window says",
                       .group = group});
  const auto softcap = std::make_shared<std::string>("none");
  registry.add_option({.name = "softcap",
                       .value = softcap.get(),
                       .help = "Scores become cap * tanh(scale * score / cap), cap a parameter: "
                               "none, exp (tanh by exp2, error 2^-20 of the cap) or tanh "
                               "(tanh.approx, faster, error 2^-11 of the score)",
                       .group = group,
                       .shows_default = true});
  registry.add_option({.name = "sinks",
                       .value = &options->sinks,
                       .help = "A sink for each head, the logarithm of a weight without a value",
                       .group = group});
  registry.add_option({.name = "packed",
                       .value = &options->packed,
                       .help = "Sequences of different lengths behind each other, [row][head]"
                               "[element]; query_starts and key_starts say where they begin",
                       .group = group});
  registry.add(
      {"attention",
       "softmax(scale * Q * K^T) * V",
       {"type", "head-dim", "causal", "window", "softcap", "sinks", "packed", "gpu",
        "multiprocessors"},
       [=](const Request& request) -> Result<Described> {
         const auto type = read_type(*words);
         if (!type) return type.diags();
         const auto cap = read_softcap(*softcap);
         if (!cap) return cap.diags();
         kernels::Attention attention = *options;
         attention.type = *type, attention.softcap = *cap;
         attention = tuned(attention, request.gpu);
         return Described{
             .kernel = kernels::attention(attention), .grid_of = [=](const LaunchSizes& sizes) {
               const auto heads = static_cast<std::uint32_t>(sizes.of("heads"));
               if (attention.packed)  // its longest sequence, no argument tells
                 return LaunchGrid{{}, heads, static_cast<std::uint32_t>(sizes.of("sequences"))};
               const auto queries = static_cast<int>(sizes.of("queries"));
               // By default as many blocks as run at a time; a caller that divides heads or tiles
               // along y or x gets the other dimension of one block for each tile.
               if (attention.persistent && sizes.given.x == 0 && sizes.given.y == 0)
                 return LaunchGrid{attention.persistent_blocks(queries, static_cast<int>(heads),
                                                               static_cast<int>(sizes.given.z),
                                                               sizes.multiprocessors),
                                   1,
                                   {}};
               return LaunchGrid{attention.blocks(queries), heads, {}};
             }};
       }});
  add_attention_backward(registry, words, options);
  add_decode(registry, words, options);
}

}  // namespace tartan::TARTAN_ABI::builtins
