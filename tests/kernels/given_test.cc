// SPDX-License-Identifier: Apache-2.0
// What a caller gives of a configuration holds in what is chosen around it, or is an error that
// names the option: of the values that tuned() would choose, of the defaults, and of others.
#include "kernels/registry/given.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bindings/c/read_json.h"
#include "kernels/common/gpus.h"
#include "kernels/registry/product_options.h"
#include "tartan/kernels/mixed_gemm.h"
#include "tartan/kernels/tuning.h"
#include "tests/paths.h"
#include "tests/support/shell.h"

namespace tartan {
namespace {

using builtins::ProductWords;
using builtins::Request;
using kernels::Gemm;
using kernels::Gpu;

/// An option, the members that it stands for, and values.
struct Row {
  const char* option;
  int& (*word)(ProductWords&);
  int (*of)(const Gemm&);
  std::vector<int> values;
};
const Row rows[] = {
    {"stages",
     [](auto& w) -> int& { return w.stages; },
     [](auto& g) { return g.stages; },
     {2, 3, 5}},
    {"producers",
     [](auto& w) -> int& { return w.producers; },
     [](auto& g) { return g.producers; },
     {0, 4, 8}},
    {"cluster",
     [](auto& w) -> int& { return w.cluster; },
     [](auto& g) { return g.cluster; },
     {1, 2}},
    {"cluster-columns",
     [](auto& w) -> int& { return w.cluster_columns; },
     [](auto& g) { return g.cluster_columns; },
     {1, 2}},
    {"group", [](auto& w) -> int& { return w.group; }, [](auto& g) { return g.group; }, {1, 8}},
    {"splits", [](auto& w) -> int& { return w.splits; }, [](auto& g) { return g.splits; }, {1, 4}},
    {"stream-blocks",
     [](auto& w) -> int& { return w.stream_blocks; },
     [](auto& g) { return g.stream_blocks; },
     {0, 132}},
    {"cluster-splits",
     [](auto& w) -> int& { return w.cluster_splits; },
     [](auto& g) { return g.cluster_splits; },
     {1, 2, 4, 8}},
    {"products",
     [](auto& w) -> int& { return w.products; },
     [](auto& g) { return g.tile.products; },
     {1, 2}}};

/// The same of flags.
struct Flag {
  const char* option;
  bool ProductWords::*word;
  bool Gemm::*of;
};
const Flag flags[] = {{"swap", &ProductWords::swap, &Gemm::swap},
                      {"direct", &ProductWords::direct, &Gemm::direct},
                      {"persistent", &ProductWords::persistent, &Gemm::persistent}};

struct Problem {
  int m, n, k;
  const char* type;
  int workspace = 0;
};
constexpr Problem problems[] = {{4096, 4096, 4096, "bf16"},      {2048, 2048, 512, "bf16"},
                                {64, 512, 8192, "bf16"},         {16, 8192, 8192, "bf16"},
                                {1, 4096, 4096, "f16"},          {128, 576, 7168, "f16", 1 << 28},
                                {300, 1000, 777, "f16", 1 << 28}};

ProductWords words_of(const Problem& of) {
  ProductWords out;
  out.m = of.m, out.n = of.n, out.k = of.k, out.type = out.c = of.type;
  out.workspace = of.workspace;
  return out;
}

Result<Gemm> choose(const ProductWords& words, const Gpu& gpu, std::vector<std::string> given) {
  const auto read = builtins::read_gemm(words);
  if (!read) return read.diags();
  const auto full = builtins::completed(words, *read, Request{gpu, std::move(given)});
  if (!full) return full.diags();
  return full->gemm;
}

std::vector<Gpu> gpus() {
  return {Gpu(*Target::parse("sm_80")), *Gpu::find("H100"), *Gpu::find("H200"), *Gpu::find("B200")};
}

// What is chosen differs from every default in some problem: the sweeps below see it kept away.
TEST(Given, WithoutOptionsTunedChooses) {
  std::set<std::string> differ;
  for (const Gpu& gpu : gpus())
    for (const Problem& each : problems) {
      const auto chosen = choose(words_of(each), gpu, {});
      ASSERT_TRUE(chosen) << chosen.diags().text();
      const auto usual = kernels::tuned(*builtins::read_gemm(words_of(each)), gpu, each.workspace);
      for (const Row& row : rows) {
        EXPECT_EQ(row.of(*chosen), row.of(usual)) << row.option;
        if (row.of(*chosen) != row.of(Gemm{})) differ.insert(row.option);
      }
      for (const Flag& flag : flags)
        if ((*chosen).*flag.of) differ.insert(flag.option);
    }
  for (const char* option : {"stages", "producers", "group", "cluster-splits", "swap", "direct",
                             "persistent", "products", "splits"})
    EXPECT_TRUE(differ.contains(option)) << option;
}

TEST(Given, NumbersHoldOrAreErrors) {
  int held = 0, refused = 0;
  for (const Gpu& gpu : gpus())
    for (const Problem& each : problems)
      for (const Row& row : rows)
        for (const int value : row.values) {
          ProductWords words = words_of(each);
          row.word(words) = value;
          const auto chosen = choose(words, gpu, {row.option});
          const std::string what = fmt::format("--{} {}, {} x {} x {} on {}", row.option, value,
                                               each.m, each.n, each.k, gpu.name());
          if (chosen) {
            EXPECT_EQ(row.of(*chosen), value) << what;
          } else {
            EXPECT_TRUE(chosen.diags()[0].message.find(fmt::format("--{} {}", row.option, value)) !=
                        std::string::npos)
                << what << ": " << chosen.diags().text();
          }
          ++(chosen ? held : refused);
          // The default is always possible.
          EXPECT_TRUE(chosen || value != row.of(Gemm{})) << what;
        }
  EXPECT_GT(held, 300);
  EXPECT_GT(refused, 5);
}

TEST(Given, FlagsHoldOrAreErrors) {
  int held = 0, refused = 0;
  for (const Gpu& gpu : gpus())
    for (const Problem& each : problems)
      for (const Flag& flag : flags)
        for (const bool value : {false, true}) {
          ProductWords words = words_of(each);
          words.*flag.word = value;
          const auto chosen = choose(words, gpu, {flag.option});
          const std::string what = fmt::format("--{}={}, {} x {} x {} on {}", flag.option, value,
                                               each.m, each.n, each.k, gpu.name());
          if (chosen) {
            EXPECT_EQ((*chosen).*flag.of, value) << what;
          } else {
            EXPECT_NE(chosen.diags()[0].message.find(fmt::format("--{}", flag.option)),
                      std::string::npos)
                << what;
          }
          EXPECT_TRUE(chosen || value) << what;
          ++(chosen ? held : refused);
        }
  EXPECT_GT(held, 100);
  EXPECT_GT(refused, 5);
}

// Several at a time, and kernels that compile.
TEST(Given, WhatIsChosenAroundItCompiles) {
  const Gpu gpu = *Gpu::find("H100");
  struct Case {
    Problem problem;
    std::vector<std::pair<const char*, int>> given;
  };
  const Case cases[] = {{{64, 2112, 7168, "bf16"}, {{"cluster-splits", 1}}},
                        {{64, 2112, 7168, "bf16"}, {{"cluster-splits", 4}, {"stages", 5}}},
                        {{2048, 2048, 512, "bf16"}, {{"products", 1}}},
                        {{2048, 2048, 512, "bf16"}, {{"products", 2}, {"group", 4}}},
                        {{2048, 2048, 512, "bf16"}, {{"producers", 0}, {"stages", 7}}},
                        {{4096, 4096, 4096, "bf16"}, {{"producers", 5}, {"cluster", 2}}},
                        {{128, 576, 7168, "f16"}, {{"splits", 4}, {"stages", 2}}}};
  for (const Case& each : cases) {
    ProductWords words = words_of(each.problem);
    std::vector<std::string> given;
    for (const auto& [option, value] : each.given)
      for (const Row& row : rows)
        if (std::string_view(row.option) == option)
          row.word(words) = value, given.push_back(option);
    ASSERT_EQ(given.size(), each.given.size());
    const auto chosen = choose(words, gpu, given);
    ASSERT_TRUE(chosen) << chosen.diags().text();
    for (const auto& [option, value] : each.given)
      for (const Row& row : rows)
        EXPECT_TRUE(std::string_view(row.option) != option || row.of(*chosen) == value) << option;
    const auto compiled = compile(kernels::gemm(*chosen), gpu.target().arch);
    EXPECT_TRUE(compiled) << fmt::format("{}", fmt::join(given, " ")) << compiled.diags().text();
  }
}

TEST(Given, OfScaledProducts) {
  const Gpu gpu = *Gpu::find("H200");
  ProductWords words{.m = 64, .n = 2112, .k = 7168};
  const builtins::ScaledWords own;
  const auto choose = [&](const builtins::ScaledWords& with, std::vector<std::string> given) {
    return builtins::read_scaled_gemm(words, with, Request{gpu, std::move(given)});
  };
  EXPECT_EQ(choose(own, {})->cluster_splits, 2);
  EXPECT_EQ(choose(own, {"cluster-splits"})->cluster_splits, 1);
  EXPECT_GT(choose(own, {})->blocks_k, 1);
  EXPECT_EQ(choose(own, {"blocks-k"})->blocks_k, 1);
  words.cluster_splits = 4, words.stages = 3;
  const auto four = choose(own, {"cluster-splits", "stages"});
  EXPECT_EQ(std::pair(four->cluster_splits, four->stages), std::pair(4, 3));
  EXPECT_TRUE(compile(kernels::scaled_gemm(*four), gpu.target().arch));
  // None that is chosen has such a cluster: it is put there. One that divides k has no other.
  words.cluster_splits = 1, words.cluster = 4;
  const auto wide = choose(own, {"cluster"});
  ASSERT_TRUE(wide) << wide.diags().text();
  EXPECT_EQ(std::pair(wide->cluster, wide->cluster_splits), std::pair(4, 1));
  EXPECT_TRUE(compile(kernels::scaled_gemm(*wide), gpu.target().arch));
  words.cluster_splits = 2;
  const auto none = choose(own, {"cluster", "cluster-splits"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.diags()[0].message,
            "--cluster 4 --cluster-splits 2: the configurations that are chosen for sm_90a have no "
            "such one of this product; name a --tile, or leave out some of these");
  words.cluster_splits = 1, words.cluster = 2;
  const auto apart = choose({.grouping = "masked"}, {"cluster", "grouping", "share-a"});
  ASSERT_FALSE(apart);
  EXPECT_EQ(apart.diags()[0].message,
            "--share-a=false: the CTAs of a cluster share A with --grouping masked, whose groups "
            "have a B each; leave it out, or take --cluster 1");
  words = {.m = 4096, .n = 4096, .k = 4096};
  EXPECT_EQ(choose(own, {})->cluster, 2);
  EXPECT_EQ(choose(own, {"cluster"})->cluster, 1);
  EXPECT_FALSE(choose(own, {"share-a"})->share_a);
  // The k of a tile is the caller's, too.
  words.tile = "128x128x64", words.warps = "8x1";
  EXPECT_EQ(choose(own, {"tile", "warps"})->tile.k, 64);
  EXPECT_EQ(choose(own, {"tile", "warps"})->stages, kernels::ScaledGemm{}.stages);
}

TEST(Given, OfProductsInGroups) {
  const Gpu gpu = *Gpu::find("H200");
  ProductWords words{.m = 4096, .n = 4096, .k = 8192};
  const auto choose = [&](std::vector<std::string> given) {
    return builtins::read_k_grouped_gemm(words, {}, false, Request{gpu, std::move(given)});
  };
  const auto usual = kernels::tuned(kernels::KGroupedGemm{.m = 4096, .n = 4096, .k = 8192}, gpu);
  EXPECT_EQ(choose({})->tile.n, usual.tile.n);
  EXPECT_EQ(choose({})->cluster, 2);
  EXPECT_EQ(choose({"cluster"})->cluster, 1);
  // Other clusters, and those of few rows, are put there.
  for (const int cluster : {2, 8}) {
    words.m = 128, words.cluster = cluster;
    const auto put = choose({"cluster"});
    ASSERT_TRUE(put) << put.diags().text();
    EXPECT_EQ(put->cluster, cluster);
    EXPECT_TRUE(compile(kernels::k_grouped_gemm(*put), gpu.target().arch));
  }
}

TEST(Given, NoClustersBeforeSm90) {
  const auto emit = [](const std::string& words) {
    return test::shell(TARTAN_COMMAND " emit " + words + " 2>&1");
  };
  for (const std::string kernel : {"gemm", "scaled_gemm", "sparse_gemm"})
    EXPECT_EQ(emit(kernel + " --target sm_89 --cluster 2").out,
              "error: --cluster 2: clusters require sm_90, the target is sm_89; leave it out "
              "[usage]\n");
  EXPECT_EQ(emit("gemm --target sm_80 --cluster 1 --cluster-splits 1").code, 0);
}

// Bytes that are given are enough.
TEST(Given, WorkspaceHolds) {
  const Gpu gpu = *Gpu::find("H100");
  ProductWords words = words_of({128, 576, 7168, "f16"});
  words.splits = 4, words.workspace = 1000;
  const auto refused = choose(words, gpu, {"splits", "workspace"});
  ASSERT_FALSE(refused);
  EXPECT_NE(
      refused.diags()[0].message.find("--workspace 1000: the partial sums of --splits 4 take"),
      std::string::npos)
      << refused.diags().text();
  EXPECT_TRUE(choose(words, gpu, {"splits"}));
}

// The command and JSON give the same.
TEST(Given, BothInterfacesTellWhatIsGiven) {
  const std::string words = "emit gemm --gpu H100 --m 64 --n 512 --k 8192 --type bf16 --c bf16";
  const auto emit = [&](const std::string& more) {
    const auto ran = test::shell(fmt::format("{} {}{} 2>&1", TARTAN_COMMAND, words, more));
    EXPECT_EQ(ran.code, 0) << ran.out;
    return ran.out;
  };
  const std::string clusters = ".reqnctapercluster";
  EXPECT_NE(emit("").find(clusters), std::string::npos);
  EXPECT_EQ(emit(" --cluster-splits 1 --cluster 1 --cluster-columns 1").find(clusters),
            std::string::npos);
  const auto by_json = [](const char* more) {
    const builtins::KernelRegistry registry;
    const auto given = builtins::read_json(
        registry.options(),
        fmt::format(R"({{"m": 64, "n": 512, "k": 8192, "type": "bf16", "c": "bf16"{}}})", more),
        "gemm");
    EXPECT_TRUE(given) << given.diags().text();
    const auto described =
        registry.describe(*registry.find("gemm"), {*Gpu::find("H100"), *given}, "option ");
    EXPECT_TRUE(described);
    return compile(described->kernel, *Arch::parse("sm_90a"))->ptx;
  };
  EXPECT_NE(by_json("").find(clusters), std::string::npos);
  EXPECT_EQ(by_json(R"(, "cluster-splits": 1, "cluster": 1, "cluster-columns": 1)").find(clusters),
            std::string::npos);
}

// An option that no kernel takes would be ignored by all of them.
TEST(Given, EveryOptionIsTakenByAKernel) {
  const builtins::KernelRegistry registry;
  for (const builtins::Option& option : registry.options())
    EXPECT_TRUE(std::ranges::any_of(registry.all(), [&](const builtins::BuiltinKernel& each) {
      return std::ranges::find(each.options, option.name) != each.options.end();
    })) << option.name;
}

TEST(Given, EmptyStringsAreNoValues) {
  const builtins::KernelRegistry registry;
  const auto read = builtins::read_json(registry.options(), R"({"type": ""})", "gemm");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.diags()[0].message,
            "gemm: option type: expected a string that is not empty, found \"\"");
}

// A part of a GPU, and variants of it, have fewer multiprocessors: the choice is for these.
TEST(Given, MultiprocessorsDecideWhatIsChosen) {
  const auto columns = [](const char* json) {
    const builtins::KernelRegistry registry;
    EXPECT_TRUE(builtins::read_json(registry.options(), json, "gemm"));
    const auto gpu = registry.gpu(*Target::parse("sm_90a"));
    EXPECT_TRUE(gpu) << gpu.diags().text();
    return std::pair(std::string(gpu->name()), gpu->multiprocessors());
  };
  EXPECT_EQ(columns(R"({"gpu": "H100", "multiprocessors": 66})"),
            std::pair(std::string("H100"), 66));
  EXPECT_EQ(columns(R"({"multiprocessors": 16})"), std::pair(std::string("H100"), 16));
  EXPECT_EQ(columns(R"({"gpu": "H20"})"), std::pair(std::string("H20"), 78));
  const builtins::KernelRegistry registry;
  ASSERT_TRUE(builtins::read_json(registry.options(), R"({"multiprocessors": -1})", "gemm"));
  EXPECT_FALSE(registry.gpu({}));
  // As that of a device with so many.
  const Gpu part = kernels::detail::GpuAccess::of(
      "NVIDIA H100 80GB HBM3 MIG 3g.40gb", *Arch::parse("sm_90a"), *Target::parse("sm_90a"), 66);
  const kernels::MixedGemm few{.m = 1, .n = 8192, .k = 8192};
  EXPECT_EQ(tuned(few, kernels::detail::GpuAccess::part(*Gpu::find("H100"), 66)).tile_n,
            tuned(few, part).tile_n);
  EXPECT_NE(tuned(few, part).tile_n, tuned(few, *Gpu::find("H100")).tile_n);
}

}  // namespace
}  // namespace tartan
