// SPDX-License-Identifier: Apache-2.0
// Loader: machine code that is assembled and loaded once, on the driver's test double.
#include "tartan/load.h"

#include <array>
#include <cstring>
#include <filesystem>

#include "tests/runtime/cuda_double.h"
#include "tests/runtime/double_cubin.h"
#include "tests/runtime/temporary_cache.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

class LoaderOnDouble : public test::CudaDouble {
 protected:
  LoaderOnDouble() { fake.cubin = test::double_cubin("scale other    "); }

  // Different texts of the same kernel.
  static Compiled scale(int number = 0) {
    Compiled out{.name = "scale", .target = Target::of({90, 0})};
    out.ptx = test::double_ptx + ("// " + std::to_string(number) + "\n");
    out.block = 32;
    out.params = {{.name = "data", .type = f32, .pointer = true, .elements = 4},
                  {.name = "factor", .type = f32},
                  {.name = "shape", .type = s32}};
    return out;
  }
  // A loader of a new process.
  Loader loader() const { return {*device, folder.open()}; }
  bool calls(const std::string& entry) {
    const bool called = fake.called(entry);
    fake.calls.clear();
    return called;
  }

  test::TemporaryCache folder;
};

TEST_F(LoaderOnDouble, MachineCodeIsAssembledOnce) {
  const auto first = loader().load(scale());
  ASSERT_TRUE(first) << first.diags().text();
  EXPECT_TRUE(calls("cuLinkComplete"));
  EXPECT_EQ((*first)->kernel.params().size(), 3u);
  const auto second = loader().load(scale());
  ASSERT_TRUE(second) << second.diags().text();
  EXPECT_FALSE(fake.called("cuLinkCreate"));
  EXPECT_TRUE(calls("cuModuleLoadDataEx"));
  ASSERT_EQ((*second)->kernel.params().size(), 3u);
  EXPECT_EQ((*second)->kernel.params()[0].name, "data");
  EXPECT_EQ(folder.open().stats().entries, 1u);
}

// The driver's linker, which makes machine code to keep, ignores setmaxnreg.
TEST_F(LoaderOnDouble, ATextThatMovesRegistersIsLoadedAsItIs) {
  Compiled moves = scale();
  for (const char* move :
       {"setmaxnreg.dec.sync.aligned.u32 24;", "setmaxnreg.inc.sync.aligned.u32 240;"}) {
    moves.ptx = test::double_ptx;
    moves.ptx.insert(moves.ptx.find("ret;"), move);
    moves.ptx.replace(moves.ptx.find("sm_90"), 5, "sm_90a");
    const auto first = loader().load(moves);
    ASSERT_TRUE(first) << first.diags().text();
    EXPECT_FALSE(fake.called("cuLinkCreate"));
    EXPECT_TRUE(calls("cuModuleLoadDataEx"));
  }
  EXPECT_EQ(folder.open().stats().entries, 0u);
  Compiled speaks = scale();
  speaks.ptx += "// registers: setmaxnreg: 240 for consumer warpgroups\n";
  ASSERT_TRUE(loader().load(speaks));
  EXPECT_TRUE(calls("cuLinkComplete"));
}

TEST_F(LoaderOnDouble, ASecondRequestDoesNothing) {
  const Loader once = loader();
  const auto first = once.load(scale());
  ASSERT_TRUE(first);
  fake.calls.clear();
  const auto second = once.load(scale());
  ASSERT_TRUE(second);
  EXPECT_EQ(*first, *second);
  EXPECT_TRUE(fake.calls.empty());
  EXPECT_NE(*once.load(scale(1)), *first);
}

TEST_F(LoaderOnDouble, TheDriversStepsAreTold) {
  const auto first = loader().load(scale());
  ASSERT_TRUE(first);
  EXPECT_GT((*first)->times.assemble, 0);
  EXPECT_GT((*first)->times.load, 0);
  EXPECT_GT((*first)->times.cache, 0);
  EXPECT_EQ((*first)->times.describe + (*first)->times.generate + (*first)->times.verify, 0);
  const auto second = loader().load(scale());
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)->times.assemble, 0) << "machine code was in the folder";
  EXPECT_GT((*second)->times.load, 0);
  StepTimes text;
  {
    const StepClock clock(text);
    ASSERT_TRUE(device->load(scale().ptx));
  }
  EXPECT_GT(text.assemble, 0) << "the driver assembles and loads in one call";
  EXPECT_EQ(text.load, 0);
}

TEST_F(LoaderOnDouble, TwoGpusShareOneCache) {
  fake.devices = 2;
  const auto other = Device::open("cuda:1");
  ASSERT_TRUE(other) << other.diags().text();
  const Cache cache = folder.open();
  const Loader here(*device, cache), there(*other, cache);
  const auto first = here.load(scale());
  ASSERT_TRUE(first);
  EXPECT_TRUE(calls("cuLinkComplete"));
  const auto second = there.load(scale());
  ASSERT_TRUE(second) << second.diags().text();
  EXPECT_NE(*first, *second) << "each GPU has a module of its own";
  EXPECT_FALSE(fake.called("cuLinkCreate")) << "of one machine code";
  EXPECT_TRUE(calls("cuModuleLoadDataEx"));
  EXPECT_EQ((*second)->times.assemble, 0);
  EXPECT_EQ(cache.stats().entries, 1u);
}

TEST_F(LoaderOnDouble, AnotherDriverOrGpuAssemblesAnew) {
  ASSERT_TRUE(loader().load(scale()));
  EXPECT_TRUE(calls("cuLinkComplete"));
  fake.driver_version = 13010;
  ASSERT_TRUE(loader().load(scale()));
  EXPECT_TRUE(calls("cuLinkComplete"));
  fake.capability = 100;
  ASSERT_TRUE(loader().load(scale()));
  EXPECT_TRUE(calls("cuLinkComplete"));
  EXPECT_EQ(folder.open().stats().entries, 3u);
  fake.driver_version = 13000, fake.capability = 90;
  ASSERT_TRUE(loader().load(scale()));
  EXPECT_FALSE(calls("cuLinkComplete"));
}

TEST_F(LoaderOnDouble, MachineCodeThatTheDriverRefusesIsMadeAgain) {
  ASSERT_TRUE(loader().load(scale()));
  fake.calls.clear();
  fake.failures_once = {{"cuModuleLoadDataEx", 209}};  // CUDA_ERROR_NO_BINARY_FOR_GPU
  const Loader again = loader();
  const auto ready = again.load(scale());
  ASSERT_TRUE(ready) << ready.diags().text();
  EXPECT_TRUE(calls("cuLinkComplete"));
  ASSERT_EQ(again.problems().size(), 1u);
  EXPECT_EQ(again.problems()[0].level, Level::Warning);
  EXPECT_TRUE(again.problems()[0].message.starts_with(
      "the cache's machine code of kernel scale was deleted and is assembled again: "))
      << again.problems().text();
  ASSERT_TRUE(loader().load(scale()));
  EXPECT_FALSE(calls("cuLinkComplete")) << "the new one is kept";
}

TEST_F(LoaderOnDouble, AnEntryOfAnotherFormIsMadeAgain) {
  ASSERT_TRUE(loader().load(scale()));
  const std::string ptx =
      CacheKey("ptx").add("name", scale().name).add("ptx", scale().ptx).digest();
  const CacheKey key = CacheKey("cubin").add("assembler", device->assembler()).add("ptx", ptx);
  const std::string no_cubin(8, '\0');
  for (const std::string& contents : {std::string(), std::string("not a size"), no_cubin,
                                      no_cubin + "\xf6", no_cubin + "\x81\x01"}) {  // null, [1]
    ASSERT_TRUE(folder.open().find(key)) << "the test has another key than the Loader";
    ASSERT_TRUE(folder.open().store(key, contents));
    fake.calls.clear();
    const Loader again = loader();
    ASSERT_TRUE(again.load(scale()));
    EXPECT_TRUE(calls("cuLinkComplete"));
    EXPECT_EQ(again.problems().size(), 1u);
  }
}

TEST_F(LoaderOnDouble, ACacheThatCannotKeepMachineCodeCostsNoResult) {
  const Loader once = loader();
  fs::remove_all(folder.path());
  EXPECT_TRUE(once.load(scale()));
  EXPECT_NE(once.problems().text().find("No such file"), std::string::npos);
}

TEST_F(LoaderOnDouble, WhatTheAssemblerRejectsIsNotKept) {
  fake.failures = {{"cuLinkAddData", 218}};
  fake.error_log = "ptxas fatal   : no";
  EXPECT_FALSE(loader().load(scale()));
  EXPECT_EQ(folder.open().stats().entries, 0u);
}

TEST_F(LoaderOnDouble, AThousandKernelsDoNotAccumulate) {
  {
    const Loader once = loader();
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(once.load(scale(i)));
    EXPECT_EQ(fake.modules, 256);
    fake.calls.clear();
    ASSERT_TRUE(once.load(scale(999)));
    EXPECT_TRUE(fake.calls.empty());
  }
  EXPECT_EQ(fake.modules, 0);
}

}  // namespace
}  // namespace tartan
