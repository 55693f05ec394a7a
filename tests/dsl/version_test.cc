// SPDX-License-Identifier: Apache-2.0
// compile(kernel, arch): finds the first PTX version that has everything in the kernel, without
// trying all of them.
#include <gtest/gtest.h>

#include <tartan/tartan.h>

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
    k.global("A", f16, row_major(16, 16)).tile(5, 5, 9, 9);
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
