// SPDX-License-Identifier: Apache-2.0
// compile(kernel, arch): finds the first PTX version that has everything in the kernel, without
// trying all of them.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include "tests/dsl/refusals.h"

namespace tartan {
namespace {

struct Compiling {
  int descriptions = 0;
  Version version = {};  // none: refused
  std::size_t complaints = 0;
};

Compiling compiling(const char* arch, const std::function<void(Builder&)>& body) {
  Compiling out;
  const auto compiled = compile(kernel("k", {.block = 128},
                                       [&](Builder& k) {
                                         ++out.descriptions;
                                         body(k);
                                       }),
                                *Arch::parse(arch));
  if (compiled) out.version = compiled->target.ptx;
  else out.complaints = compiled.diags().size();
  return out;
}

TEST(CompileVersion, InvalidKernelIsDescribedOnce) {
  const Compiling found = compiling("sm_80", [](Builder& k) {
    k.global("A", f16, row_major(16, 16)).tile({9, 9}, {5, 5});
    k.best_mma(Type::e4m3, Type::e4m3, f32);  // which no PTX version gives to sm_80
  });
  EXPECT_EQ(found.descriptions, 1);
  EXPECT_EQ(found.version, Version{});
  EXPECT_GE(found.complaints, 2u);
}

TEST(CompileVersion, VersionThatAnInstructionRequires) {
  const auto product = [](Type accumulator) {
    return [=](Builder& k) { k.best_mma(Type::e4m3, Type::e4m3, accumulator); };
  };
  const Compiling single = compiling("sm_89", product(f32)),
                  half = compiling("sm_89", product(f16)),
                  none = compiling("sm_89", [](Builder&k) { k.best_mma(f16, f16, f32); });
  EXPECT_EQ(single.version, (Version{8, 4}));
  EXPECT_EQ(single.descriptions, 2);
  EXPECT_EQ(half.version, (Version{8, 7}));
  EXPECT_EQ(half.descriptions, 2);
  EXPECT_EQ(none.version, (Version{7, 8}));
  EXPECT_EQ(none.descriptions, 1);
}

TEST(CompileVersion, DescriptionsThatReadTheTarget) {
  const Compiling asked = compiling("sm_80", [](Builder& k) {
    k.require(k.target().ptx >= Version{8, 3}, "PTX 8.3 is wanted");
  });
  EXPECT_EQ(asked.version, (Version{8, 3}));
  const char* const eight = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32";
  const Compiling has = compiling(
      "sm_89", [&](Builder& k) { k.require(k.has(eight), "products of e4m3 are wanted"); });
  EXPECT_EQ(has.version, (Version{8, 4}));
  EXPECT_EQ(has.descriptions, 2);
}

// A branch on has() takes the fast path where any version that the target has offers it.
TEST(CompileVersion, HasAnswersForTheVersionThatIsTaken) {
  const char* const eight = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32";
  const char* const later = "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16";
  bool fast = false;
  const Compiling one = compiling("sm_89", [&](Builder& k) { fast = k.has(eight); });
  EXPECT_TRUE(fast);
  EXPECT_EQ(one.version, (Version{8, 4}));
  const Compiling two =
      compiling("sm_89", [&](Builder& k) { fast = k.has(eight) && k.has(later); });
  EXPECT_TRUE(fast);
  EXPECT_EQ(two.version, (Version{8, 7}));
  const Compiling other = compiling("sm_80", [&](Builder& k) { fast = k.has(eight); });
  EXPECT_FALSE(fast);
  EXPECT_EQ(other.version, (Version{7, 8}));
  EXPECT_EQ(other.descriptions, 1);
  // Of any kind of instruction; what is there anyway needs no other version.
  const Compiling there = compiling("sm_90", [&](Builder& k) {
    fast = k.has("redux.sync.add.s32") && k.has("ldmatrix.sync.aligned.m8n8.x4.shared.b16");
  });
  EXPECT_TRUE(fast);
  EXPECT_EQ(there.descriptions, 1);
  const Compiling elect = compiling("sm_90", [&](Builder& k) { fast = k.has("elect.sync"); });
  EXPECT_TRUE(fast);
  EXPECT_EQ(elect.version, (Version{8, 0}));
  compiling("sm_80", [&](Builder& k) { fast = k.has("elect.sync"); });
  EXPECT_FALSE(fast);
}

TEST(CompileVersion, HasOfWhatNoTargetHasIsTold) {
  test::expect_told([](Builder& k) { k.has("mma.sync.aligned.m16n8k15.row.col.f32.f16.f16.f32"); },
                    {"has(): there is no instruction mma.sync.aligned.m16n8k15"});
  test::expect_told([](Builder& k) { k.has("redux.sync.ad.s32"); },
                    {"has(): there is no instruction redux.sync.ad.s32"});
  test::expect_told([](Builder& k) { k.has("elekt.sync"); }, {"no such opcode"});
}

// The same version and text as from trying one after the other.
TEST(CompileVersion, FindsTheFirstSufficientVersion) {
  using kernels::Gemm;
  const std::pair<Kernel, const char*> kernels[] = {
      {kernels::gemm({}), "sm_80"},
      {kernels::gemm({.a = Type::e4m3, .b = Type::e4m3}), "sm_89"},
      {kernels::gemm({.a = Type::e4m3, .b = Type::e4m3, .accumulator = f16, .c = f16}), "sm_89"},
      {kernels::gemm({.c = Type::e4m3}), "sm_89"},
      {kernels::gemm({.a = Type::e4m3, .b = Type::e5m2, .c = Type::e4m3}), "sm_90"},
      {kernels::gemm(tuned(Gemm{.a = Type::e4m3, .b = Type::e4m3}, *Target::parse("sm_90a"))),
       "sm_90a"},
      {kernels::sparse_gemm({.a = Type::e4m3, .b = Type::e4m3}), "sm_89"},
      {kernels::sparse_gemm({}), "sm_80"},
      {kernels::gemm({.producers = 4}), "sm_90"},
      {kernels::block_scaled({}), "sm_120a"},
      {kernels::block_scaled({}), "sm_121f"},
      {kernels::attention({}), "sm_100"}};
  for (const auto& [kernel, name] : kernels) {
    SCOPED_TRACE(kernel.name() + " on " + name);
    const auto got = compile(kernel, *Arch::parse(name));
    ASSERT_TRUE(got) << got.diags().text();
    Target target = *Target::parse(name);
    auto expected = compile(kernel, target);
    while (!expected && target.ptx < newest_version) {
      target.ptx = target.ptx.next();
      expected = compile(kernel, target);
    }
    ASSERT_TRUE(expected);
    EXPECT_EQ(got->target, expected->target);
    EXPECT_EQ(got->ptx, expected->ptx);
  }
}

}  // namespace
}  // namespace tartan
