// SPDX-License-Identifier: Apache-2.0
// compile() with a cache: the same result, found without LLVM or without describing.
#include <gtest/gtest.h>

#include <tartan/kernels/kernels.h>
#include <tartan/tartan.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "dsl/compile/compile_cache.h"

namespace tartan {
namespace {

class CompileCache : public testing::Test {
 protected:
  CompileCache() {
    std::string name = (std::filesystem::temp_directory_path() / "tartan-cache-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~CompileCache() override { std::filesystem::remove_all(folder_); }
  Cache open() const { return *Cache::open({.folder = folder_}); }
  std::string folder_;
};

std::string everything(const Compiled& compiled) { return detail::entry_of(compiled); }

// Writes `value`, and counts how often it is described.
Kernel counted(int value, int& described) {
  return kernel("counted", {.block = 32}, [value, &described](Builder& k) {
    ++described;
    auto C = k.global("C", s32, row_major(1, 32));
    k.write(C, 0, k.lane(), k.constant(s32, value));
  });
}

TEST_F(CompileCache, AKernelWithoutAKeyIsDescribedAndFoundByItsCode) {
  int described = 0;
  const Arch arch{80, 0};
  const Compiled plain = *compile(counted(7, described), arch);
  const Compiled first = *compile(counted(7, described), arch, open());
  const Cache again = open();
  const Compiled second = *compile(counted(7, described), arch, again);
  EXPECT_EQ(described, 3);
  EXPECT_EQ(again.stats().hits, 1u);
  EXPECT_EQ(everything(first), everything(second));
  EXPECT_EQ(plain.ptx.substr(plain.ptx.find(".version")),
            first.ptx.substr(first.ptx.find(".version")));
}

TEST_F(CompileCache, AnotherDescriptionIsAnotherEntry) {
  int described = 0;
  const Compiled seven = *compile(counted(7, described), Arch{80, 0}, open());
  const Compiled eight = *compile(counted(8, described), Arch{80, 0}, open());
  const Compiled newer = *compile(counted(7, described), Arch{90, 'a'}, open());
  EXPECT_NE(seven.ptx, eight.ptx);
  EXPECT_NE(newer.ptx.find("sm_90a"), std::string::npos);
  EXPECT_EQ(open().stats().entries, 3u);
}

TEST_F(CompileCache, AKeySkipsDescribing) {
  int described = 0;
  const auto compiled = [&](const char* key) {
    return *compile(counted(7, described).keyed(key), Arch{80, 0}, open());
  };
  const Compiled first = compiled("seven"), second = compiled("seven");
  EXPECT_EQ(described, 1);
  EXPECT_EQ(everything(first), everything(second));
  compiled("other");
  EXPECT_EQ(described, 2);
}

TEST_F(CompileCache, MistakesAreReportedEachTimeAndNotKept) {
  const auto wrong = kernel("wrong", {.block = 32}, [](Builder& k) {
    auto C = k.global("C", s32, row_major(1, 32));
    k.write(C, 0, 32, k.constant(s32, 0.5));
  });
  for (int i = 0; i < 2; ++i) {
    const auto compiled = compile(wrong.keyed("wrong"), Arch{80, 0}, open());
    ASSERT_FALSE(compiled);
  }
  EXPECT_EQ(open().stats().entries, 0u);
}

TEST_F(CompileCache, AnEntryOfAnotherFormIsMadeAgain) {
  int described = 0;
  const Kernel kernel = counted(7, described).keyed("seven");
  const Compiled first = *compile(kernel, Arch{80, 0}, open());
  const CacheKey key =
      detail::compile_key("kernel", "sm_80").add("name", "counted").add("key", "seven");
  const std::string whole = open().find(key).value_or("");
  ASSERT_FALSE(whole.empty()) << "the test has another key than compile()";
  std::string long_name = whole;  // of more bytes than there are
  long_name[7] = '\x7f';
  const std::string contents[] = {
      "",          "no entry", whole.substr(0, whole.size() / 2), whole.substr(0, whole.size() - 1),
      whole + "x", long_name};
  for (const std::string& each : contents) {
    ASSERT_TRUE(open().store(key, each));
    EXPECT_EQ(everything(*compile(kernel, Arch{80, 0}, open())), everything(first));
  }
  EXPECT_EQ(described, 7);
}

// Processes that compile the same at once find whole entries, and leave one.
TEST_F(CompileCache, ProcessesRaceForOneKey) {
  int described = 0;
  const std::string expected = everything(*compile(counted(7, described), Arch{80, 0}));
  std::vector<pid_t> processes;
  for (int i = 0; i < 6; ++i) {
    const pid_t made = ::fork();
    ASSERT_GE(made, 0);
    if (made == 0) {
      const Cache cache = open();
      const auto found = compile(counted(7, described).keyed("seven"), Arch{80, 0}, cache);
      ::_exit(found && everything(*found) == expected && cache.problems().empty() ? 0 : 1);
    }
    processes.push_back(made);
  }
  for (const pid_t each : processes) {
    int status = 0;
    ASSERT_EQ(::waitpid(each, &status, 0), each);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(open().stats().entries, 1u);
}

// Each option of a built-in kernel is part of its key.
TEST(KernelKeys, HaveEveryOptionOfGemm) {
  using kernels::Gemm;
  const std::vector<std::function<void(Gemm&)>> changes = {
      [](Gemm& g) { g.m = 1; },
      [](Gemm& g) { g.n = 1; },
      [](Gemm& g) { g.k = 1; },
      [](Gemm& g) { g.a = bf16; },
      [](Gemm& g) { g.b = bf16; },
      [](Gemm& g) { g.accumulator = f16; },
      [](Gemm& g) { g.c = f16; },
      [](Gemm& g) { g.a_major = Major::col; },
      [](Gemm& g) { g.b_major = Major::row; },
      [](Gemm& g) { g.multiple = 1; },
      [](Gemm& g) { g.multiple_c = 1; },
      [](Gemm& g) { g.tile.m = 128; },
      [](Gemm& g) { g.tile.n = 128; },
      [](Gemm& g) { g.tile.k = 64; },
      [](Gemm& g) { g.tile.warps_m = 4; },
      [](Gemm& g) { g.tile.warps_n = 4; },
      [](Gemm& g) { g.tile.warps_k = 2; },
      [](Gemm& g) { g.tile.products = 2; },
      [](Gemm& g) { g.stages = 2; },
      [](Gemm& g) { g.promote = 4; },
      [](Gemm& g) { g.bit_op = isa::BitOp::and_popc; },
      [](Gemm& g) { g.epilogue.alpha = true; },
      [](Gemm& g) { g.epilogue.beta = true; },
      [](Gemm& g) { g.epilogue.row_scales = true; },
      [](Gemm& g) { g.epilogue.column_scales = true; },
      [](Gemm& g) { g.epilogue.bias = true; },
      [](Gemm& g) { g.epilogue.activation = kernels::Activation::relu; },
      [](Gemm& g) { g.epilogue.residual = true; },
      [](Gemm& g) { g.splits = 2; },
      [](Gemm& g) { g.cluster_splits = 2; },
      [](Gemm& g) { g.stream_blocks = 2; },
      [](Gemm& g) { g.group = 2; },
      [](Gemm& g) { g.persistent = true; },
      [](Gemm& g) { g.producers = 1; },
      [](Gemm& g) { g.cluster = 2; },
      [](Gemm& g) { g.cluster_columns = 2; },
      [](Gemm& g) { g.swap = true; },
      [](Gemm& g) { g.direct = true; },
      [](Gemm& g) { g.batched = true; },
  };
  std::set<std::string> keys = {kernels::gemm({}).key()};
  for (const auto& change : changes) {
    Gemm options;
    change(options);
    keys.insert(kernels::gemm(options).key());
  }
  EXPECT_EQ(keys.size(), changes.size() + 1);
}

TEST_F(CompileCache, BuiltInKernelsComeBackWhole) {
  using namespace kernels;
  const Arch ampere{80, 0}, hopper{90, 'a'};
  const Target target = Target::of(hopper);
  struct Case {
    Kernel kernel;
    Arch arch;
  };
  const Case cases[] = {
      {gemm({.epilogue = {.bias = true, .activation = Activation::gelu}}), ampere},
      {gemm(tuned(Gemm{.m = 0, .n = 0, .k = 0}, target)), hopper},
      {gemm_sum({.splits = 3}), ampere},
      {sparse_gemm({}), ampere},
      {attention(tuned(Attention{.head_dim = 128}, target)), hopper},
      {gate({}), ampere},
  };
  for (const Case& each : cases) {
    const Compiled first = *compile(each.kernel, each.arch, open());
    const Cache cache = open();
    const Compiled second = *compile(each.kernel, each.arch, cache);
    EXPECT_EQ(everything(first), everything(second)) << each.kernel.name();
    EXPECT_EQ(cache.stats().misses, 0u) << each.kernel.name();
    EXPECT_EQ(first.choices.size(), second.choices.size());
    EXPECT_FALSE(second.ptx.empty());
  }
}

}  // namespace
}  // namespace tartan
