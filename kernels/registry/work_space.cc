// SPDX-License-Identifier: Apache-2.0
#include "kernels/registry/work_space.h"

#include "kernels/registry/families.h"

namespace tartan::TARTAN_ABI::builtins {

WorkOf work_of(const kernels::Gemm& gemm, const char* buffer) {
  if (gemm.splits == 1 && gemm.stream_blocks == 0) return {};
  return [=](const LaunchSizes& sizes, const Dim3&) -> std::vector<WorkBuffer> {
    const int m = size_of(sizes, "m", gemm.m), n = size_of(sizes, "n", gemm.n);
    return {{buffer, gemm.workspace_elements(m, n)}};
  };
}

WorkOf work_of(const kernels::MixedGemm& mixed) {
  if (!mixed.sums_in_memory()) return {};
  return [=](const LaunchSizes& sizes, const Dim3& grid) -> std::vector<WorkBuffer> {
    const int m = size_of(sizes, "m", mixed.m), n = size_of(sizes, "n", mixed.n);
    return {{"P", mixed.partial_elements(grid.x)},
            {"counters", mixed.counter_elements(m, n), true}};
  };
}

WorkOf work_of(const kernels::AttentionBackward& backward) {
  return [=](const LaunchSizes& sizes, const Dim3& grid) -> std::vector<WorkBuffer> {
    const auto queries = static_cast<int>(sizes.of("queries"));
    const std::int64_t heads = sizes.of("heads") * grid.z;
    std::vector<WorkBuffer> out{{"stats", heads * backward.stat_elements(queries)},
                                {"sums", heads * backward.sum_elements(queries)}};
    if (backward.deterministic)
      out.push_back({"turns", backward.turn_elements(queries, static_cast<int>(heads))});
    return out;
  };
}

WorkOf work_of(const kernels::Decode& decode) {
  return [=](const LaunchSizes& sizes, const Dim3& grid) -> std::vector<WorkBuffer> {
    return {{"P", decode.partial_elements(grid.x)},
            {"L", decode.weight_elements(grid.x)},
            {"counters", sizes.of("batch") * sizes.of("kv_heads"), true}};
  };
}

WorkOf work_of(const kernels::MlaDecode& decode) {
  return [=](const LaunchSizes& sizes, const Dim3& grid) -> std::vector<WorkBuffer> {
    return {{"P", decode.partial_elements(grid.x)},
            {"L", decode.weight_elements(grid.x)},
            {"counters", sizes.of("batch") * decode.row_tiles(), true}};
  };
}

WorkOf work_of(const kernels::DeltaRule& rule) {
  return [=](const LaunchSizes& sizes, const Dim3&) -> std::vector<WorkBuffer> {
    const auto tokens = static_cast<int>(sizes.of("tokens")),
               heads = static_cast<int>(sizes.of("heads")),
               sequences = static_cast<int>(sizes.of("sequences"));
    const std::int64_t each = rule.transform_elements(tokens, heads, sequences),
                       scaled = std::int64_t{tokens} * heads * rule.key_dim;
    return {{"transforms", each},
            {"weights", each},
            {"decays", rule.decay_elements(tokens, heads, sequences)},
            {"Qg", scaled},
            {"Kg", scaled},
            {"Ke", scaled}};
  };
}

}  // namespace tartan::TARTAN_ABI::builtins
