// SPDX-License-Identifier: Apache-2.0
// What a caller gives of a configuration holds in what is chosen around it, or is an error that
// names the option: of the values that tuned() would choose, of the defaults, and of others.
#include "kernels/registry/given.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bindings/c/read_json.h"
#include "kernels/common/gpus.h"
#include "tartan/kernels/mixed_gemm.h"
#include "tartan/kernels/tuning.h"
#include "tests/paths.h"
#include "tests/support/shell.h"

namespace tartan {
namespace {

using builtins::Request;
using kernels::Gemm;
using kernels::Gpu;

/// An option, the members that it stands for, and values.
struct Row {
  const char* option;
  int (*of)(const Gemm&);
  std::vector<int> values;
};
const Row rows[] = {{"stages", [](auto& g) { return g.stages; }, {2, 3, 5}},
                    {"producers", [](auto& g) { return g.producers; }, {0, 4, 8}},
                    {"cluster", [](auto& g) { return g.cluster; }, {1, 2}},
                    {"cluster-columns", [](auto& g) { return g.cluster_columns; }, {1, 2}},
                    {"group", [](auto& g) { return g.group; }, {1, 8}},
                    {"splits", [](auto& g) { return g.splits; }, {1, 4}},
                    {"stream-blocks", [](auto& g) { return g.stream_blocks; }, {0, 132}},
                    {"cluster-splits", [](auto& g) { return g.cluster_splits; }, {1, 2, 4, 8}},
                    {"products", [](auto& g) { return g.tile.products; }, {1, 2}}};

/// The same of flags.
struct Flag {
  const char* option;
  bool Gemm::*of;
};
const Flag flags[] = {
    {"swap", &Gemm::swap}, {"direct", &Gemm::direct}, {"persistent", &Gemm::persistent}};

struct Problem {
  int m, n, k;
  const char* type;
  int workspace = 0;
};
constexpr Problem problems[] = {{4096, 4096, 4096, "bf16"},      {2048, 2048, 512, "bf16"},
                                {64, 512, 8192, "bf16"},         {16, 8192, 8192, "bf16"},
                                {1, 4096, 4096, "f16"},          {128, 576, 7168, "f16", 1 << 28},
                                {300, 1000, 777, "f16", 1 << 28}};

/// What a caller says in JSON, for a GPU.
struct Said {
  Said(const Gpu& gpu, const std::string& json) : request{gpu, {}} {
    const auto given = builtins::read_json(registry.options(), "{" + json + "}", "gemm");
    EXPECT_TRUE(given) << json << given.diags().text();
    if (given) request.given = *given;
  }

  builtins::KernelRegistry registry;
  Request request;
};

std::string words_of(const Problem& of) {
  return fmt::format(R"("m": {}, "n": {}, "k": {}, "type": "{}", "c": "{}")", of.m, of.n, of.k,
                     of.type, of.type) +
         (of.workspace ? fmt::format(", \"workspace\": {}", of.workspace) : "");
}

Result<Gemm> choose(const Problem& of, const Gpu& gpu, const std::string& more = "") {
  const Said said(gpu, words_of(of) + more);
  const auto full = builtins::completed_gemm(said.registry, said.request);
  if (!full) return full.diags();
  return full->gemm;
}

Gemm product_of(const Problem& of, const Gpu& gpu) {
  const Said said(gpu, words_of(of));
  return *builtins::read_gemm(said.registry, said.request);
}

std::vector<Gpu> gpus() {
  return {Gpu(*Target::parse("sm_80")), *Gpu::find("H100"), *Gpu::find("H200"), *Gpu::find("B200")};
}

// What is chosen differs from every default in some problem: the sweeps below see it kept away.
TEST(Given, WithoutOptionsTunedChooses) {
  std::set<std::string> differ;
  for (const Gpu& gpu : gpus())
    for (const Problem& each : problems) {
      const auto chosen = choose(each, gpu);
      ASSERT_TRUE(chosen) << chosen.diags().text();
      const auto usual = kernels::tuned(product_of(each, gpu), gpu, each.workspace);
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
          const auto chosen = choose(each, gpu, fmt::format(", \"{}\": {}", row.option, value));
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
          const auto chosen = choose(each, gpu, fmt::format(", \"{}\": {}", flag.option, value));
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
    std::string given;
    for (const auto& [option, value] : each.given)
      given += fmt::format(", \"{}\": {}", option, value);
    const auto chosen = choose(each.problem, gpu, given);
    ASSERT_TRUE(chosen) << chosen.diags().text();
    for (const auto& [option, value] : each.given)
      for (const Row& row : rows)
        EXPECT_TRUE(std::string_view(row.option) != option || row.of(*chosen) == value) << option;
    const auto compiled = compile(kernels::gemm(*chosen), gpu.target().arch);
    EXPECT_TRUE(compiled) << given << compiled.diags().text();
  }
}

TEST(Given, OfScaledProducts) {
  const Gpu gpu = *Gpu::find("H200");
  const std::string few = R"("m": 64, "n": 2112, "k": 7168)";
  const auto choose = [&](const std::string& json) {
    const Said said(gpu, json);
    return builtins::read_scaled_gemm(said.registry, said.request);
  };
  EXPECT_EQ(choose(few)->cluster_splits, 2);
  EXPECT_EQ(choose(few + R"(, "cluster-splits": 1)")->cluster_splits, 1);
  EXPECT_GT(choose(few)->blocks_k, 1);
  EXPECT_EQ(choose(few + R"(, "blocks-k": 1)")->blocks_k, 1);
  const auto four = choose(few + R"(, "cluster-splits": 4, "stages": 3)");
  EXPECT_EQ(std::pair(four->cluster_splits, four->stages), std::pair(4, 3));
  EXPECT_TRUE(compile(kernels::scaled_gemm(*four), gpu.target().arch));
  // None that is chosen has such a cluster: it is put there. One that divides k has no other.
  const auto wide = choose(few + R"(, "cluster": 4)");
  ASSERT_TRUE(wide) << wide.diags().text();
  EXPECT_EQ(std::pair(wide->cluster, wide->cluster_splits), std::pair(4, 1));
  EXPECT_TRUE(compile(kernels::scaled_gemm(*wide), gpu.target().arch));
  const auto none = choose(few + R"(, "cluster": 4, "cluster-splits": 2)");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.diags()[0].message,
            "--cluster 4 --cluster-splits 2: the configurations that are chosen for sm_90a have no "
            "such one of this product; name a --tile, or leave out some of these");
  const auto apart = choose(few + R"(, "cluster": 2, "grouping": "masked", "share-a": false)");
  ASSERT_FALSE(apart);
  EXPECT_EQ(apart.diags()[0].message,
            "--share-a=false: the CTAs of a cluster share A with --grouping masked, whose groups "
            "have a B each; leave it out, or take --cluster 1");
  const std::string many = R"("m": 4096, "n": 4096, "k": 4096)";
  EXPECT_EQ(choose(many)->cluster, 2);
  EXPECT_EQ(choose(many + R"(, "cluster": 1)")->cluster, 1);
  EXPECT_FALSE(choose(many + R"(, "share-a": false)")->share_a);
  // The k of a tile is the caller's, too.
  const auto tile = choose(many + R"(, "tile": "128x128x64", "warps": "8x1")");
  EXPECT_EQ(tile->tile.k, 64);
  EXPECT_EQ(tile->stages, kernels::ScaledGemm{}.stages);
}

TEST(Given, OfProductsInGroups) {
  const Gpu gpu = *Gpu::find("H200");
  const auto choose = [&](int m, const std::string& more = "") {
    const Said said(gpu, fmt::format(R"("m": {}, "n": 4096, "k": 8192{})", m, more));
    return builtins::read_k_grouped_gemm(said.registry, said.request);
  };
  const auto usual = kernels::tuned(kernels::KGroupedGemm{.m = 4096, .n = 4096, .k = 8192}, gpu);
  EXPECT_EQ(choose(4096)->tile.n, usual.tile.n);
  EXPECT_EQ(choose(4096)->cluster, 2);
  EXPECT_EQ(choose(4096, R"(, "cluster": 1)")->cluster, 1);
  // Other clusters, and those of few rows, are put there.
  for (const int cluster : {2, 8}) {
    const auto put = choose(128, fmt::format(", \"cluster\": {}", cluster));
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
  const Problem few{128, 576, 7168, "f16"};
  const auto refused = choose(few, gpu, R"(, "splits": 4, "workspace": 1000)");
  ASSERT_FALSE(refused);
  EXPECT_NE(
      refused.diags()[0].message.find("--workspace 1000: the partial sums of --splits 4 take"),
      std::string::npos)
      << refused.diags().text();
  EXPECT_TRUE(choose(few, gpu, R"(, "splits": 4)"));
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
