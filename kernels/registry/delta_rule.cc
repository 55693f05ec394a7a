// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/delta_rule.h"

#include "kernels/registry/families.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

using kernels::DeltaRule;
using kernels::DeltaRuleDecode;

// Of a kernel whose y is the head and whose z is the sequence.
LaunchGrid heads_grid(std::uint32_t x, const LaunchSizes& sizes) {
  return {x, static_cast<std::uint32_t>(sizes.of("heads")),
          static_cast<std::uint32_t>(sizes.of("sequences"))};
}

// Where the caller does not say how many chunks the longest sequence has: those of all tokens.
LaunchGrid chunks_grid(const DeltaRule& with, const LaunchSizes& sizes) {
  return heads_grid(with.chunk_blocks(static_cast<int>(sizes.of("tokens"))), sizes);
}

template <typename Options>
LaunchGrid state_grid(const Options& with, const LaunchSizes& sizes) {
  return heads_grid(with.blocks(), sizes);
}

}  // namespace

void add_delta_rule(KernelRegistry& registry) {
  add_tuned<DeltaRule>(registry, "delta_rule", "delta_rule_chunks",
                       "first kernel of the gated delta rule: the chunks of all sequences",
                       kernels::delta_rule_chunks, chunks_grid);
  add_tuned<DeltaRule>(registry, "delta_rule", "delta_rule",
                       "second kernel: the recurrence over the chunks of a sequence",
                       kernels::delta_rule, state_grid<DeltaRule>);
  add_tuned<DeltaRuleDecode>(registry, "delta_rule_decode", "delta_rule_decode",
                             "the gated delta rule token by token, for a few new tokens",
                             kernels::delta_rule_decode, state_grid<DeltaRuleDecode>);
}

}  // namespace tartan::TARTAN_ABI::builtins
