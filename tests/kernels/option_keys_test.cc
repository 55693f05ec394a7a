// SPDX-License-Identifier: Apache-2.0
// The keys of built-in kernels, by which caches find them, and the files of tune(): neither may
// change when options are described in another way, or all that is cached and measured is lost.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bindings/c/read_json.h"
#include "kernels/common/keys.h"
#include "kernels/common/options.h"
#include "kernels/registry/registry.h"
#include "tartan/kernels/tuning.h"
#include "tests/support/text_files.h"

namespace tartan {
namespace {

using namespace kernels;

constexpr Tile tile{
    .m = 101, .n = 102, .k = 103, .warps_m = 104, .warps_n = 105, .warps_k = 106, .products = 107};
const std::string tile_key = "101 102 103 104 105 106 107 ";

// Each member has another value: its place in the key shows.
TEST(OptionKeys, HaveAllMembersInTheirOrder) {
  const Epilogue epilogue{.alpha = true,
                          .row_scales = true,
                          .bias = true,
                          .activation = Activation::sigmoid,
                          .residual = true};
  const std::string epilogue_key = "1 0 1 0 1 4 1 ";
  const auto types = [](std::initializer_list<Type> all) {
    std::string out;
    for (const Type each : all) out += fmt::format("{} ", static_cast<int>(each));
    return out;
  };
  EXPECT_EQ(key_of(Gemm{.m = 1,
                        .n = 2,
                        .k = 3,
                        .a = e4m3,
                        .b = e5m2,
                        .accumulator = f16,
                        .c = bf16,
                        .a_major = Major::col,
                        .b_major = Major::row,
                        .multiple = 4,
                        .multiple_c = 5,
                        .tile = tile,
                        .stages = 6,
                        .promote = 7,
                        .bit_op = isa::BitOp::and_popc,
                        .epilogue = epilogue,
                        .splits = 8,
                        .cluster_splits = 9,
                        .stream_blocks = 10,
                        .group = 11,
                        .persistent = true,
                        .dynamic = true,
                        .producers = 12,
                        .cluster = 13,
                        .cluster_columns = 14,
                        .swap = true,
                        .direct = true,
                        .batched = true}),
            "1 2 3 " + types({e4m3, e5m2, f16, bf16}) +
                "2 1 4 5 6 7 1 8 10 11 1 1 12 13 14 9 1 1 1 " + tile_key + epilogue_key);
  EXPECT_EQ(key_of(BlockScaled{.m = 1,
                               .n = 2,
                               .k = 3,
                               .a = e5m2,
                               .b = e4m3,
                               .scale = Type::ue4m3,
                               .kind = isa::Kind::mxf4,
                               .c = bf16,
                               .multiple = 4,
                               .multiple_c = 5,
                               .tile = tile,
                               .stages = 6,
                               .producers = 7,
                               .persistent = true,
                               .cluster = 8,
                               .epilogue = epilogue}),
            "1 2 3 " + types({e5m2, e4m3, Type::ue4m3}) + "3 " + types({bf16}) + "4 5 6 7 1 8 " +
                tile_key + epilogue_key);
  EXPECT_EQ(key_of(ScaledGemm{.m = 1,
                              .n = 2,
                              .k = 3,
                              .c = f16,
                              .grouping = Grouping::masked,
                              .tile = tile,
                              .parts_n = 4,
                              .blocks_k = 5,
                              .overlap = true,
                              .stages = 6,
                              .group = 7,
                              .cluster = 8,
                              .share_a = true,
                              .cluster_splits = 9}),
            "1 2 3 " + types({f16}) + "2 4 5 1 6 7 8 1 9 " + tile_key);
  EXPECT_EQ(key_of(KGroupedGemm{.m = 1,
                                .n = 2,
                                .k = 3,
                                .accumulate = true,
                                .tile = tile,
                                .stages = 4,
                                .group = 5,
                                .cluster = 6,
                                .share_a = true}),
            "1 2 3 1 4 5 6 1 " + tile_key);
  EXPECT_EQ(key_of(Attention{.head_dim = 1,
                             .type = bf16,
                             .causal = true,
                             .window = false,
                             .softcap = Softcap::by_tanh,
                             .sinks = true,
                             .packed = false,
                             .queries_per_block = 2,
                             .keys_per_step = 3,
                             .warps = 4,
                             .stages = 5,
                             .producers = 6,
                             .persistent = true,
                             .together = false,
                             .blocks_per_multiprocessor = 7,
                             .keys = 8}),
            "1 " + types({bf16}) + "1 0 2 1 0 2 3 4 5 6 1 0 7 8 ");
  EXPECT_EQ(key_of(AttentionBackward{.head_dim = 1,
                                     .type = bf16,
                                     .causal = true,
                                     .deterministic = false,
                                     .queries_per_step = 2,
                                     .keys_per_block = 3,
                                     .warps = 4,
                                     .stages = 5,
                                     .producers = 6}),
            "1 " + types({bf16}) + "1 0 2 3 4 5 6 ");
  EXPECT_EQ(key_of(Decode{.head_dim = 1,
                          .type = bf16,
                          .queries = 2,
                          .group = 3,
                          .page = 4,
                          .keys_per_step = 5,
                          .key_groups = 6,
                          .stages = 7,
                          .producers = 8,
                          .blocks_per_multiprocessor = 9,
                          .whole_steps = 10}),
            "1 " + types({bf16}) + "2 3 4 5 6 7 8 9 10 ");
  EXPECT_EQ(key_of(MlaDecode{.type = f16,
                             .queries = 1,
                             .heads = 2,
                             .page = 3,
                             .keys_per_step = 4,
                             .stages = 5,
                             .producers = 6,
                             .whole_steps = 7}),
            types({f16}) + "1 2 3 4 5 6 7 ");
  EXPECT_EQ(key_of(SmallProducts{.m = 1,
                                 .n = 2,
                                 .k = 3,
                                 .type = bf16,
                                 .c = f64,
                                 .a_major = Major::col,
                                 .b_major = Major::row,
                                 .warps_m = 4,
                                 .warps_n = 5,
                                 .products = 6,
                                 .ahead = 7,
                                 .staged = true}),
            "1 2 3 " + types({bf16, f64}) + "2 1 4 5 6 7 1 ");
  EXPECT_EQ(key_of(MixedGemm{.m = 1,
                             .n = 2,
                             .k = 3,
                             .type = f16,
                             .weight = u8,
                             .group = 4,
                             .zeros = true,
                             .scale_sums = false,
                             .tile_m = 5,
                             .tile_n = 6,
                             .tile_k = 7,
                             .warps_n = 8,
                             .warps_k = 9,
                             .stages = 10,
                             .producers = 11,
                             .min_blocks = 12,
                             .warpgroups = true,
                             .split = false,
                             .even = true,
                             .cluster = 13,
                             .overlap = true}),
            "1 2 3 " + types({f16, u8}) + "4 1 0 5 6 7 8 9 10 11 12 1 0 1 13 1 ");
  EXPECT_EQ(key_of(DeltaRule{.key_dim = 1,
                             .value_dim = 2,
                             .type = f16,
                             .channel_gates = true,
                             .initial_state = false,
                             .final_state = true,
                             .values_per_block = 3,
                             .stages = 4,
                             .producers = 5}),
            "1 2 " + types({f16}) + "1 0 1 3 4 5 ");
  EXPECT_EQ(
      key_of(DeltaRuleDecode{
          .key_dim = 1, .value_dim = 2, .type = f16, .channel_gates = true, .values_per_block = 3}),
      "1 2 " + types({f16}) + "1 3 ");
  EXPECT_EQ(key_of(Gate{.activation = Activation::gelu, .type = bf16}), "2 " + types({bf16}));
}

/// Values of an option, as JSON. Those that scripts/ptx_snapshot has, and some that are refused.
struct Values {
  std::string_view option;
  std::vector<const char*> values;
};
const Values all_values[] = {
    {"m", {"0", "1", "7", "16", "100", "4096", "-1"}},
    {"n", {"0", "8", "120", "4096"}},
    {"k", {"0", "100", "4096"}},
    {"multiple", {"1", "2", "64", "0"}},
    {"multiple-c", {"1", "64", "0"}},
    {"type",
     {"\"f16\"", "\"bf16\"", "\"tf32\"", "\"f32\"", "\"f64\"", "\"e4m3\"", "\"e5m2\"", "\"s8\"",
      "\"u8\"", "\"s4\"", "\"b1\"", "\"e2m1\"", "\"f15\""}},
    {"a", {"\"e5m2\"", "\"s8\"", "\"f15\""}},
    {"b", {"\"e4m3\"", "\"s8\"", "\"f15\""}},
    {"accumulator", {"\"f16\"", "\"f32\"", "\"f64\"", "\"s32\"", "\"f15\""}},
    {"c",
     {"\"f16\"", "\"bf16\"", "\"f32\"", "\"f64\"", "\"s32\"", "\"s8\"", "\"e4m3\"", "\"f15\""}},
    {"a-major", {"\"row\"", "\"col\"", "\"rows\""}},
    {"b-major", {"\"row\"", "\"col\"", "\"rows\""}},
    {"tile",
     {"\"128x128\"", "\"64x128x32\"", "\"128x256x64\"", "\"16\"", "\"16x\"", "\"0x16\"",
      "\"1x2x3x4\"", "\"axb\""}},
    {"warps", {"\"1x4\""}},
    {"stages", {"1", "2", "6", "0", "257"}},
    {"key-dim", {"64", "96", "80"}},
    {"value-dim", {"64", "256", "32"}},
    {"channel-gates", {"true"}},
    {"initial-state", {"true"}},
    {"final-state", {"true"}},
    {"promote", {"4", "-1"}},
    {"epilogue",
     {R"(["alpha"])", R"(["beta"])", R"(["row-scales"])", R"(["column-scales"])", R"(["bias"])",
      R"(["relu"])", R"(["gelu"])", R"(["silu"])", R"(["sigmoid"])", R"(["residual"])",
      R"(["alpha", "beta", "row-scales", "column-scales", "bias", "gelu", "residual"])",
      R"(["relu", "gelu"])", R"(["bias", "bias"])", R"(["softmax"])"}},
    {"gpu", {"\"H200\"", "\"A100\"", "\"GTX\""}},
    {"multiprocessors", {"66", "-1"}},
    {"tuning", {"\"no/such/file\""}},
    {"workspace", {"16777216", "-1"}},
    {"splits", {"1", "4", "0", "257"}},
    {"stream-blocks", {"0", "132", "-1", "65537"}},
    {"cluster-splits", {"1", "2", "4", "9"}},
    {"products", {"1", "2", "9"}},
    {"swap", {"true", "false"}},
    {"direct", {"true", "false"}},
    {"producers", {"0", "1", "4", "32"}},
    {"cluster", {"1", "2", "4", "0"}},
    {"cluster-columns", {"1", "2", "9"}},
    {"group", {"1", "4", "0"}},
    {"bit-op", {"\"and\"", "\"xor\"", "\"or\""}},
    {"batched", {"true"}},
    {"persistent", {"true", "false"}},
    {"dynamic", {"true", "false"}},
    {"scale", {"\"ue4m3\"", "\"f32\"", "\"f15\""}},
    {"kind", {"\"mxf8f6f4\"", "\"mxf4\"", "\"mxf4nvf4\"", "\"mxf5\""}},
    {"grouping", {"\"none\"", "\"contiguous\"", "\"masked\"", "\"some\""}},
    {"blocks-k", {"1", "2", "5"}},
    {"share-a", {"true", "false"}},
    {"accumulate", {"true"}},
    {"weight", {"\"u4\"", "\"u8\"", "\"s4\""}},
    {"scale-group", {"64", "1"}},
    {"zeros", {"true"}},
    {"head-dim", {"16", "80", "96", "128", "192", "256", "1"}},
    {"causal", {"true"}},
    {"window", {"true"}},
    {"softcap", {"\"none\"", "\"exp\"", "\"tanh\"", "\"log\""}},
    {"sinks", {"true"}},
    {"packed", {"true"}},
    {"keys", {"256", "4096", "-1"}},
    {"deterministic", {"true"}},
    {"queries", {"2", "16", "17"}},
    {"heads-per-kv", {"1", "16", "32", "0"}},
    {"page", {"16", "256", "1"}},
    {"heads", {"16", "0"}},
    {"activation", {"\"relu\"", "\"gelu\"", "\"sigmoid\"", "\"none\""}},
    {"size", {"\"64x64x64\"", "\"16x48x16\"", "\"8x8x8\"", "\"8x8\"", "\"1x2x3x4\"", "\"a\""}}};

/// Options that go together.
struct Set {
  const char *kernel, *options;
};
const Set sets[] = {
    {"gemm", R"("tile": "128x256x64", "warps": "8x1", "stages": 4, "producers": 4,
                "persistent": true, "m": 0, "n": 0, "k": 0)"},
    {"gemm", R"("tile": "128x128x64", "warps": "8x1", "stages": 4, "producers": 4, "cluster": 2,
                "cluster-columns": 2, "m": 4096)"},
    {"gemm", R"("tile": "64x256x64", "warps": "4x1", "producers": 4, "products": 2,
                "persistent": true, "m": 4096, "n": 4096)"},
    {"gemm", R"("tile": "128x64x64", "warps": "4x1", "producers": 4, "cluster-splits": 4)"},
    {"gemm", R"("tile": "128x64x64", "warps": "2x1x2", "splits": 4, "m": 512, "k": 8192)"},
    {"gemm", R"("tile": "128x128x64", "stages": 3, "stream-blocks": 132, "m": 1000, "n": 1000)"},
    {"gemm", R"("tile": "2x64", "direct": true, "m": 2, "n": 4096, "k": 4096)"},
    {"gemm", R"("m": 120, "n": 3001, "k": 9007)"},
    {"gemm", R"("m": 16, "n": 4096, "k": 4096, "type": "bf16", "stages": 5)"},
    {"gemm", R"("m": 64, "n": 2112, "k": 7168, "type": "bf16", "cluster-splits": 4)"},
    {"gemm", R"("m": 128, "n": 576, "k": 7168, "workspace": 268435456)"},
    {"gemm", R"("m": 128, "n": 576, "k": 7168, "workspace": 1000, "splits": 4)"},
    {"gemm", R"("type": "e4m3", "m": 4096, "n": 4096, "k": 4096, "promote": 4)"},
    {"gemm", R"("type": "tf32", "a-major": "col", "b-major": "row", "m": 512)"},
    {"gemm", R"("type": "b1", "bit-op": "and")"},
    {"gemm", R"("type": "f16", "a": "e4m3", "b": "e5m2")"},
    {"gemm", R"("type": "f16", "a": "e4m3")"},
    {"gemm", R"("m": 2147483647, "n": 2147483647, "k": 2147483647)"},
    {"gemm", R"("m": -1, "stages": 0, "type": "f15", "a-major": "x", "warps": "2x2")"},
    {"gemm", R"("tile": "128x128x32", "warps": "8x8")"},
    {"gemm", R"("tile": "128x128x32", "warps": "2")"},
    {"gemm", R"("tile": "128x128x32", "tuning": "no/such/file")"},
    {"gemm", R"("cluster": 4, "cluster-splits": 2, "swap": false)"},
    {"sparse_gemm", R"("tile": "128x128x64", "warps": "8x1", "producers": 4)"},
    {"block_scaled", R"("tile": "128x128", "warps": "4x2", "stages": 2, "type": "e2m1")"},
    {"block_scaled", R"("tile": "128x128x256", "a": "e2m1", "b": "e3m2", "epilogue": ["gelu"])"},
    {"scaled_gemm", R"("m": 4096, "n": 4096, "k": 4096)"},
    {"scaled_gemm", R"("m": 64, "n": 4096, "k": 7168)"},
    {"scaled_gemm", R"("m": 4096, "n": 4096, "k": 4096, "grouping": "contiguous")"},
    {"scaled_gemm", R"("m": 128, "n": 4096, "k": 7168, "grouping": "masked")"},
    {"scaled_gemm", R"("tile": "128x192x128", "warps": "8x1", "blocks-k": 2, "cluster": 2)"},
    {"scaled_gemm", R"("tile": "64x64", "stages": 6, "share-a": true, "cluster": 4)"},
    {"scaled_gemm", R"("grouping": "masked", "cluster": 2, "share-a": false)"},
    {"scaled_gemm", R"("cluster": 4, "cluster-splits": 2)"},
    {"k_grouped_gemm", R"("m": 4096, "n": 4096, "k": 8192)"},
    {"k_grouped_gemm", R"("m": 4096, "n": 7168, "k": 0, "accumulate": true)"},
    {"k_grouped_gemm", R"("tile": "128x192", "warps": "8x1", "stages": 5, "share-a": true)"},
    {"mixed_gemm", R"("m": 1, "n": 4096, "k": 4096, "zeros": true)"},
    {"mixed_gemm", R"("m": 64, "n": 4096, "k": 4096, "weight": "u8", "scale-group": 64)"},
    {"attention", R"("head-dim": 128, "causal": true, "window": true, "softcap": "tanh")"},
    {"attention", R"("head-dim": 96, "type": "bf16", "packed": true, "sinks": true)"},
    {"decode", R"("head-dim": 128, "heads-per-kv": 32, "page": 16, "queries": 4)"},
    {"mla_decode", R"("queries": 2, "heads": 16, "page": 32, "type": "bf16")"},
    {"small_products", R"("size": "16x16x64", "type": "f64", "a-major": "col")"},
    {"small_products", R"("size": "16x16x64", "c": "f16", "b-major": "row")"},
    {"wmma_gemm", R"("multiple": 2, "multiple-c": 4, "a-major": "col", "b-major": "row")"}};

/// Keys of a kernel's cases, one after the other, and how many of them are kernels.
struct Digest {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  int described = 0;

  void add(const std::string& key) {
    ++described;
    for (const char each : key + "\n")
      hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  }
};

// Empty: refused.
std::string key_of_case(const std::string& kernel, const std::string& options, const char* target) {
  const builtins::KernelRegistry registry;
  const auto given = builtins::read_json(registry.options(), "{" + options + "}", kernel);
  if (!given) return {};
  const auto gpu = registry.gpu(*Target::parse(target));
  if (!gpu) return {};
  const auto described = registry.describe(*registry.find(kernel), {*gpu, *given}, "--");
  return described ? described->kernel.key() : std::string();
}

std::string digest_of(const std::string& kernel, const std::vector<std::string>& cases) {
  Digest out;
  for (const std::string& options : cases)
    for (const char* target : {"sm_80", "sm_90a", "sm_120a"})
      if (const auto key = key_of_case(kernel, options, target); !key.empty()) out.add(key);
  return fmt::format("{} {:016x}\n", out.described, out.hash);
}

// tests/data/option_keys.txt: a line for each kernel and option, over all values.
TEST(OptionKeys, AreThoseOfTheLastVersion) {
  const builtins::KernelRegistry registry;
  std::string got;
  for (const builtins::BuiltinKernel& kernel : registry.all()) {
    if (kernel.options.empty()) continue;
    got += kernel.name + " " + digest_of(kernel.name, {""});
    for (const Values& each : all_values) {
      if (std::ranges::find(kernel.options, each.option) == kernel.options.end()) continue;
      std::vector<std::string> cases;
      for (const char* value : each.values)
        cases.push_back(fmt::format("\"{}\": {}", each.option, value));
      got += fmt::format("{} --{} {}", kernel.name, each.option, digest_of(kernel.name, cases));
    }
    std::vector<std::string> cases;
    for (const Set& each : sets)
      if (kernel.name == each.kernel) cases.emplace_back(each.options);
    if (!cases.empty()) got += kernel.name + " sets " + digest_of(kernel.name, cases);
  }
  test::expect_file(TEST_DATA "/option_keys.txt", got);
}

// An option whose values are not swept above would change unseen.
TEST(OptionKeys, SweepEveryOption) {
  const builtins::KernelRegistry registry;
  for (const builtins::Option& option : registry.options())
    EXPECT_TRUE(std::ranges::any_of(all_values, [&](const Values& of) {
      return of.option == option.name;
    })) << option.name;
}

// tests/data/tuning.json has each member that a file may have, with values of both kinds.
TEST(OptionKeys, TuningFilesAreWrittenAsTheyWereRead) {
  const auto tuning = Tuning::read(TEST_DATA "/tuning.json");
  ASSERT_TRUE(tuning) << tuning.diags().text();
  EXPECT_EQ(tuning->entries().size(), 6u);
  test::expect_file(TEST_DATA "/tuning.json", tuning->text());
}

}  // namespace
}  // namespace tartan
