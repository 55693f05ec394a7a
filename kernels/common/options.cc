// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/options.h"

#include <utility>
#include <vector>

namespace tartan::TARTAN_ABI::kernels::detail {
namespace {

// ---- That each member of a struct has a row, and only one.

struct AnyValue {
  template <typename Value>
  constexpr operator Value() const;
};

template <typename Options, std::size_t... i>
constexpr bool has_members(std::index_sequence<i...>) {
  return requires { Options{((void)i, AnyValue{})...}; };
}
template <typename Options, std::size_t count = 1>
constexpr std::size_t members_of() {
  if constexpr (has_members<Options>(std::make_index_sequence<count + 1>()))
    return members_of<Options, count + 1>();
  else return count;
}

template <typename Options, std::size_t count>
constexpr bool complete(const std::array<OptionRow<Options>, count>& rows) {
  const Options options{};
  std::vector<const void*> members;
  for (const OptionRow<Options>& row : rows)
    std::visit(
        [&](const auto& member) {
          using Of = std::decay_t<decltype(member)>;
          if constexpr (std::is_same_v<Of, Sizes<Options>>)
            for (const auto each : {member.m, member.n, member.k})
              members.push_back(&(options.*each));
          else if constexpr (!std::is_same_v<Of, Both<Options>>)
            members.push_back(&(options.*member));
        },
        row.member);
  for (std::size_t i = 0; i < members.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (members[i] == members[j]) return false;
  return members.size() == members_of<Options>();
}

// ---- The rows. Their order is that of the keys, which caches have: a new one is the last.

constexpr Chosen put = Chosen::put, sought = Chosen::sought, shape = Chosen::shape;

template <typename Options>
constexpr auto rows = nullptr;

// clang-format off
template <>
constexpr auto rows<Tile> = std::to_array<OptionRow<Tile>>({
    {"tile",
     Sizes<Tile>{&Tile::m, &Tile::n, &Tile::k, Third::follows, "MxN or MxNxK, such as 128x128x32"},
     {}, shape,
     "CTA tile, MxN or MxNxK; default: the fastest for these sizes on --gpu, together with its "
     "warps, stages, producers, cluster, group and --persistent, of those that have what else is "
     "given"},
    {"warps",
     Sizes<Tile>{&Tile::warps_m, &Tile::warps_n, &Tile::warps_k, Third::one,
                 "MxN or MxNxK, such as 2x2"},
     {1, 32}, shape,
     "Warps of a --tile along m and n, or MxNxK of which some divide each k-tile; default: 2x2"},
    {"products", &Tile::products, {1, 8}, shape,
     "Ping-pong: so many warpgroups of a --persistent kernel compute a --tile each, in turn, so "
     "that one stores while another multiplies"},
});

template <>
constexpr auto rows<Epilogue> = std::to_array<OptionRow<Epilogue>>({
    {"alpha", &Epilogue::alpha},
    {"beta", &Epilogue::beta},
    {"row-scales", &Epilogue::row_scales},
    {"column-scales", &Epilogue::column_scales},
    {"bias", &Epilogue::bias},
    {"activation", &Epilogue::activation},
    {"residual", &Epilogue::residual},
});

template <>
constexpr auto rows<Gemm> = std::to_array<OptionRow<Gemm>>({
    {"m", &Gemm::m, {0}, {}, "Rows of A and C; 0: a kernel parameter"},
    {"n", &Gemm::n, {0}, {}, "Columns of B and C; 0: a kernel parameter"},
    {"k", &Gemm::k, {0}, {}, "Columns of A, rows of B; 0: a kernel parameter"},
    {"type", Both<Gemm>{&Gemm::a, &Gemm::b}, {}, {}, "Element type of A and B; default: f16"},
    {"a", &Gemm::a, {}, {}, "Element type of A alone"},
    {"b", &Gemm::b, {}, {}, "Element type of B alone"},
    {"accumulator", &Gemm::accumulator, {}, {},
     "Accumulator type: f32, f16, f64 or s32; default: follows A"},
    {"c", &Gemm::c, {}, {}, "Element type of C; default: the accumulator's"},
    {"a-major", &Gemm::a_major, {}, {}, "Major order of A: row or col"},
    {"b-major", &Gemm::b_major, {}, {}, "Major order of B: row or col"},
    {"multiple", &Gemm::multiple, {1}, {},
     "Guaranteed divisor of A's and B's leading dimensions, in elements, for run-time sizes"},
    {"multiple-c", &Gemm::multiple_c, {1}, {}, "Same for C"},
    {"", &Gemm::tile},
    {"stages", &Gemm::stages, {1, 256}, put, "Pipeline stages"},
    {"promote", &Gemm::promote, {0}, {},
     "fp8: k-tiles between promotions of the tensor cores' accumulators (about 14 bits on sm_89 "
     "and sm_90a) into full f32; 0: never"},
    {"bit-op", &Gemm::bit_op, {}, {}, "b1: bit operation of the product, xor or and"},
    {"epilogue", &Gemm::epilogue, {}, {}, "Epilogue operations, separated by commas"},
    {"splits", &Gemm::splits, {1, most_splits}, shape,
     "Split-K: number of splits of k, which gemm_sum reduces; chosen only with --workspace"},
    {"stream-blocks", &Gemm::stream_blocks, {0, most_stream_blocks}, Chosen::kept,
     "Stream-K: number of CTAs that divide all k-tiles evenly; gemm_sum reduces the partial tiles; "
     "0: off"},
    {"group", &Gemm::group, {1}, put,
     "Rasterization: rows of tiles visited together, column by column, for reuse in L2"},
    {"persistent", &Gemm::persistent, {}, put,
     "Persistent kernel: each CTA computes tile after tile, for any grid size"},
    {"dynamic", &Gemm::dynamic, {}, Chosen::kept,
     "Persistent kernel of a grid with a CTA for each tile, whose CTAs take over tiles of CTAs that "
     "have not started (clusterlaunchcontrol, from sm_100 on)"},
    {"producers", &Gemm::producers, {0, 31}, put, "Producer warps of a warp-specialized kernel"},
    {"cluster", &Gemm::cluster, {1}, put,
     "Cluster size, whose CTAs share B by TMA multicast, from sm_90a on: 1, 2, 4 or 8"},
    {"cluster-columns", &Gemm::cluster_columns, {1, 8}, put,
     "So many columns of such CTAs form a cluster, whose rows share A"},
    {"cluster-splits", &Gemm::cluster_splits, {1, 8}, shape,
     "Split-K within a cluster, from sm_90 on: CTAs that divide the k-tiles of a tile and add "
     "their sums in distributed shared memory: 1, 2, 4 or 8"},
    {"swap", &Gemm::swap, {}, shape,
     "Computes the transpose of C, so that a --tile is one of n rows and m columns: for few rows"},
    {"direct", &Gemm::direct, {}, shape,
     "For a --tile of one to eight rows: warps read the columns of B straight from global memory, "
     "without shared memory and tensor cores; --stages is then the accesses to a row that a lane "
     "makes at a time, and the k of --tile follows from the rest"},
    {"batched", &Gemm::batched, {}, {}, "Batched GEMM: blockIdx.z selects the product"},
});

template <>
constexpr auto rows<BlockScaled> = std::to_array<OptionRow<BlockScaled>>({
    {"m", &BlockScaled::m, {0}},
    {"n", &BlockScaled::n, {0}},
    {"k", &BlockScaled::k, {0}},
    {"type", Both<BlockScaled>{&BlockScaled::a, &BlockScaled::b}},
    {"a", &BlockScaled::a},
    {"b", &BlockScaled::b},
    {"scale", &BlockScaled::scale, {.types = {Type::ue8m0, Type::ue4m3}}, {},
     "Type of the scales: ue8m0, one per 32 elements, or ue4m3, one per 16 elements of e2m1"},
    {"kind", &BlockScaled::kind, {}, {},
     "mxf8f6f4, mxf4 or mxf4nvf4; default: the kind with the largest shape"},
    {"c", &BlockScaled::c},
    {"multiple", &BlockScaled::multiple, {1}},
    {"multiple-c", &BlockScaled::multiple_c, {1}},
    {"", &BlockScaled::tile},
    {"stages", &BlockScaled::stages, {1, 256}, put},
    {"producers", &BlockScaled::producers, {0, 28}, shape,
     "Producer warps of a warp-specialized kernel, which products by tcgen05 need"},
    {"persistent", &BlockScaled::persistent, {}, put},
    {"cluster", &BlockScaled::cluster, {1, 2}, put},
    {"epilogue", &BlockScaled::epilogue},
});

template <>
constexpr auto rows<ScaledGemm> = std::to_array<OptionRow<ScaledGemm>>({
    {"m", &ScaledGemm::m, {0}},
    {"n", &ScaledGemm::n, {0}},
    {"k", &ScaledGemm::k, {0}},
    {"c", &ScaledGemm::c},
    {"grouping", &ScaledGemm::grouping, {}, {},
     "Whether rows of A belong to groups with a B each: none, contiguous (group_of_row) or masked "
     "(rows_of_group)"},
    {"", &ScaledGemm::tile},
    {"", &ScaledGemm::parts_n, {}, shape},
    {"blocks-k", &ScaledGemm::blocks_k, {1, 4}, shape,
     "K-tiles of a stage; with several, one is multiplied while another is promoted"},
    {"", &ScaledGemm::overlap, {}, shape},
    {"stages", &ScaledGemm::stages, {1, 256}, put},
    {"group", &ScaledGemm::group, {1}, put},
    {"cluster", &ScaledGemm::cluster, {1}, sought},
    {"share-a", &ScaledGemm::share_a, {}, sought, "CTAs of a cluster share A, not B"},
    {"cluster-splits", &ScaledGemm::cluster_splits, {1, 8}, shape},
});

template <>
constexpr auto rows<KGroupedGemm> = std::to_array<OptionRow<KGroupedGemm>>({
    {"m", &KGroupedGemm::m, {0}},
    {"n", &KGroupedGemm::n, {0}},
    {"k", &KGroupedGemm::k, {0}},
    {"accumulate", &KGroupedGemm::accumulate, {}, {}, "Adds the products to what C has"},
    {"", &KGroupedGemm::tile},
    {"stages", &KGroupedGemm::stages, {1, 256}, put},
    {"group", &KGroupedGemm::group, {1}, put},
    {"cluster", &KGroupedGemm::cluster, {1}, sought},
    {"share-a", &KGroupedGemm::share_a, {}, sought},
});

template <>
constexpr auto rows<MixedGemm> = std::to_array<OptionRow<MixedGemm>>({
    {"m", &MixedGemm::m, {0}},
    {"n", &MixedGemm::n, {0}},
    {"k", &MixedGemm::k, {0}},
    {"type", &MixedGemm::type},
    {"weight", &MixedGemm::weight, {.types = {Type::u4, Type::u8}}, {},
     "Type of the weights: u4 or u8"},
    {"scale-group", &MixedGemm::group, {}, {}, "Weights along k that share a scale: 64 or 128"},
    {"zeros", &MixedGemm::zeros, {}, {},
     "A zero point for each scale; otherwise it is 8, or 128 with u8"},
    {"", &MixedGemm::scale_sums, {}, shape},
    {"", &MixedGemm::tile_m, {}, shape},
    {"", &MixedGemm::tile_n, {}, shape},
    {"", &MixedGemm::tile_k, {}, shape},
    {"", &MixedGemm::warps_n, {}, shape},
    {"", &MixedGemm::warps_k, {}, shape},
    {"", &MixedGemm::stages, {}, put},
    {"", &MixedGemm::producers, {}, shape},
    {"", &MixedGemm::min_blocks, {}, put},
    {"", &MixedGemm::warpgroups, {}, shape},
    {"", &MixedGemm::split, {}, shape},
    {"", &MixedGemm::even, {}, shape},
    {"", &MixedGemm::cluster, {}, shape},
    {"", &MixedGemm::overlap, {}, put},
});

template <>
constexpr auto rows<Attention> = std::to_array<OptionRow<Attention>>({
    {"head-dim", &Attention::head_dim, {}, {}, "Head dimension, a multiple of 16"},
    {"type", &Attention::type},
    {"causal", &Attention::causal, {}, {},
     "Causal mask, bottom-right aligned: the last query attends to all keys"},
    {"window", &Attention::window, {}, {},
     "With --causal: a query attends to the last keys up to its own, as many as the parameter "
     "window says"},
    {"softcap", &Attention::softcap, {}, {},
     "Scores become cap * tanh(scale * score / cap), cap a parameter: none, exp (tanh by exp2, "
     "error 2^-20 of the cap) or tanh (tanh.approx, faster, error 2^-11 of the score)"},
    {"sinks", &Attention::sinks, {}, {},
     "A sink for each head, the logarithm of a weight without a value"},
    {"packed", &Attention::packed, {}, {},
     "Sequences of different lengths behind each other, [row][head][element]; query_starts and "
     "key_starts say where they begin"},
    {"", &Attention::queries_per_block, {}, shape},
    {"", &Attention::keys_per_step, {}, shape},
    {"", &Attention::warps, {}, shape},
    {"", &Attention::stages, {}, put},
    {"", &Attention::producers, {}, shape},
    {"", &Attention::persistent, {}, shape},
    {"", &Attention::together, {}, shape},
    {"", &Attention::blocks_per_multiprocessor, {}, put},
    {"keys", &Attention::keys, {.least = 0}, {},
     "About how many keys a query sees at most, for which the configuration is chosen; the kernel "
     "takes any number. 0: unknown"},
});

template <>
constexpr auto rows<AttentionBackward> = std::to_array<OptionRow<AttentionBackward>>({
    {"head-dim", &AttentionBackward::head_dim},
    {"type", &AttentionBackward::type},
    {"causal", &AttentionBackward::causal},
    {"deterministic", &AttentionBackward::deterministic, {}, {},
     "The gradient of Q is summed in the order of the keys"},
    {"", &AttentionBackward::queries_per_step, {}, shape},
    {"", &AttentionBackward::keys_per_block, {}, shape},
    {"", &AttentionBackward::warps, {}, shape},
    {"", &AttentionBackward::stages, {}, put},
    {"", &AttentionBackward::producers, {}, shape},
});

template <>
constexpr auto rows<Decode> = std::to_array<OptionRow<Decode>>({
    {"head-dim", &Decode::head_dim},
    {"type", &Decode::type},
    {"queries", &Decode::queries, {}, {}, "New tokens of each sequence, 1 to 16"},
    {"heads-per-kv", &Decode::group, {}, {}, "Query heads that share a head of keys and values"},
    {"page", &Decode::page, {}, {}, "Keys in a page of the cache: 16, 32, 64, 128 or 256"},
    {"", &Decode::keys_per_step, {}, shape},
    {"", &Decode::key_groups, {}, shape},
    {"", &Decode::stages, {}, put},
    {"", &Decode::producers, {}, shape},
    {"", &Decode::blocks_per_multiprocessor, {}, put},
    {"", &Decode::whole_steps, {}, put},
});

template <>
constexpr auto rows<MlaDecode> = std::to_array<OptionRow<MlaDecode>>({
    {"type", &MlaDecode::type},
    {"queries", &MlaDecode::queries},
    {"heads", &MlaDecode::heads, {}, {}, "Query heads, 1 to 128"},
    {"page", &MlaDecode::page},
    {"", &MlaDecode::keys_per_step, {}, shape},
    {"", &MlaDecode::stages, {}, put},
    {"", &MlaDecode::producers, {}, shape},
    {"", &MlaDecode::whole_steps, {}, put},
});

template <>
constexpr auto rows<DeltaRule> = std::to_array<OptionRow<DeltaRule>>({
    {"key-dim", &DeltaRule::key_dim, {}, {}, "Elements of a head's keys and queries"},
    {"value-dim", &DeltaRule::value_dim, {}, {}, "Elements of a head's values"},
    {"type", &DeltaRule::type},
    {"channel-gates", &DeltaRule::channel_gates, {}, {},
     "Kimi Delta Attention: a gate for each element of a key"},
    {"initial-state", &DeltaRule::initial_state, {}, {},
     "S0 is the state before the first token; else it is zero"},
    {"final-state", &DeltaRule::final_state, {}, {}, "S1 gets the state after the last token"},
    {"", &DeltaRule::values_per_block, {}, shape},
    {"", &DeltaRule::stages, {}, put},
    {"", &DeltaRule::producers, {}, shape},
});

template <>
constexpr auto rows<DeltaRuleDecode> = std::to_array<OptionRow<DeltaRuleDecode>>({
    {"key-dim", &DeltaRuleDecode::key_dim},
    {"value-dim", &DeltaRuleDecode::value_dim},
    {"type", &DeltaRuleDecode::type},
    {"channel-gates", &DeltaRuleDecode::channel_gates},
    {"", &DeltaRuleDecode::values_per_block, {}, shape},
});

template <>
constexpr auto rows<Gate> = std::to_array<OptionRow<Gate>>({
    {"activation", &Gate::activation, {}, {}, "Of the gate: relu, gelu, silu or sigmoid"},
    {"type", &Gate::type},
});

template <>
constexpr auto rows<SmallProducts> = std::to_array<OptionRow<SmallProducts>>({
    {"size",
     Sizes<SmallProducts>{&SmallProducts::m, &SmallProducts::n, &SmallProducts::k, Third::given,
                          "MxNxK, such as 32x32x32"},
     {}, {},
     "MxNxK of each product, multiples of 16 up to 64; f64: multiples of 8"},
    {"type", &SmallProducts::type},
    {"c", &SmallProducts::c},
    {"a-major", &SmallProducts::a_major},
    {"b-major", &SmallProducts::b_major},
    {"", &SmallProducts::warps_m, {}, shape},
    {"", &SmallProducts::warps_n, {}, shape},
    {"", &SmallProducts::products, {}, put},
    {"", &SmallProducts::ahead, {}, put},
    {"", &SmallProducts::staged, {}, shape},
});

// clang-format on
}  // namespace

template <typename Options>
std::span<const OptionRow<Options>> options_of() {
  static_assert(complete(rows<Options>), "a member has no row, or two");
  return rows<Options>;
}
template std::span<const OptionRow<Tile>> options_of();
template std::span<const OptionRow<Epilogue>> options_of();
template std::span<const OptionRow<Gemm>> options_of();
template std::span<const OptionRow<BlockScaled>> options_of();
template std::span<const OptionRow<ScaledGemm>> options_of();
template std::span<const OptionRow<KGroupedGemm>> options_of();
template std::span<const OptionRow<MixedGemm>> options_of();
template std::span<const OptionRow<Attention>> options_of();
template std::span<const OptionRow<AttentionBackward>> options_of();
template std::span<const OptionRow<Decode>> options_of();
template std::span<const OptionRow<MlaDecode>> options_of();
template std::span<const OptionRow<DeltaRule>> options_of();
template std::span<const OptionRow<DeltaRuleDecode>> options_of();
template std::span<const OptionRow<Gate>> options_of();
template std::span<const OptionRow<SmallProducts>> options_of();

}  // namespace tartan::TARTAN_ABI::kernels::detail
