// SPDX-License-Identifier: Apache-2.0
// `tartan equal` on what equal_test.cc leaves: lessons, kernels of one target in two tiles,
// and a split product with its sum.
#include <gtest/gtest.h>

#include <tartan/kernels/kernels.h>

#include "bindings/c/read_json.h"
#include "kernels/registry/registry.h"
#include "tests/kernels/equal_manifest.h"
#include "tests/support/lesson_kernels.h"

namespace tartan {
namespace {

using testing_equal::Argument;
using testing_equal::compiled_for;
using testing_equal::manifest_of;
using Verdict = Equality::Verdict;

void expect_same(const Equality& out, const std::string& what) {
  EXPECT_EQ(out.verdict, Verdict::same) << what << '\n' << out.complaints(false);
  EXPECT_GT(out.elements, 0u) << what;
}

std::vector<Argument> arguments_of(const Compiled& compiled) {
  std::vector<Argument> out;
  for (const CompiledParam& each : compiled.params) {
    EXPECT_TRUE(each.pointer && each.elements > 0) << compiled.name << ' ' << each.name;
    out.emplace_back(each.name, static_cast<std::size_t>(each.elements * bits(each.type) + 7) / 8);
  }
  return out;
}

// Kernels whose options say all of a launch: one_mma and gemm.
TEST(EqualBuiltIn, TheTextsForTwoTargets) {
  const builtins::KernelRegistry registry;
  ASSERT_TRUE(
      builtins::read_json(registry.options(), R"({"m": 128, "n": 64, "k": 96})", "options"));
  const Target ampere = *Target::parse("sm_80"), hopper = *Target::parse("sm_90a");
  int compared = 0;
  for (const builtins::BuiltinKernel& each : registry.all()) {
    if (each.name == "block_scaled") continue;  // below
    // sm_80 has no product of e4m3.
    if (each.name == "scaled_gemm" || each.name == "k_grouped_gemm") continue;
    const auto compiled = [&](const Target& target) {
      const auto described = each.describe({target});
      EXPECT_TRUE(described) << each.name;
      return std::pair{*compile(described->kernel, target.arch), described->grid};
    };
    const auto [one, grid] = compiled(ampere);
    const auto [other, other_grid] = compiled(hopper);
    if (!grid || !other_grid) continue;
    expect_same(equal(manifest_of(one, *grid, arguments_of(one)),
                      manifest_of(other, *other_grid, arguments_of(other))),
                each.name);
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

TEST(EqualBuiltIn, LessonsForTwoTargets) {
  for (const Kernel& each : testing_lessons::kernels()) {
    const bool new_one = each.name().starts_with("stmatrix");
    const auto of = [&](const char* target) {
      const Compiled compiled = compiled_for(each, target);
      return manifest_of(compiled, Dim3{}, arguments_of(compiled));
    };
    expect_same(equal(of(new_one ? "sm_90a" : "sm_80"), of(new_one ? "sm_100a" : "sm_90a")),
                each.name());
  }
}

TEST(EqualBuiltIn, Gate) {
  for (const Type type : {f16, bf16, f32})
    for (const auto activation : {kernels::Activation::silu, kernels::Activation::relu}) {
      const auto of = [&](const std::string& target) {
        const Compiled compiled =
            compiled_for(kernels::gate({.activation = activation, .type = type}), target);
        const std::size_t bytes = 1000 * static_cast<std::size_t>(bits(type)) / 8;
        return manifest_of(
            compiled, {1},
            {1000u, Argument("gate", bytes), Argument("up", bytes), Argument("out", bytes)});
      };
      expect_same(equal(of("sm_80"), of("sm_90a")), std::string(name(type)));
    }
}

// Different instructions, orders of the sum and divisions among warps.
TEST(EqualBuiltIn, SmallProducts) {
  for (const Type type : {f16, f64})
    for (const Major a_major : {Major::row, Major::col})
      for (const int size : {32, 64}) {
        const auto of = [&](const std::string& target) {
          kernels::SmallProducts with{.m = size, .n = 32, .k = 48, .type = type, .c = type};
          with.a_major = a_major;
          with = tuned(with, *Target::parse(target));
          if (target == "sm_90a")
            with.products = 2, with.warps_n = 2, with.ahead = 1, with.staged = false;
          const std::size_t each = static_cast<std::size_t>(bits(type)) / 8;
          const Compiled compiled = compiled_for(kernels::small_products(with), target);
          return manifest_of(compiled, {with.blocks(1)},
                             {1, Argument("A", each * size * 48), Argument("B", each * 48 * 32),
                              Argument("C", each * size * 32)});
        };
        const Manifest one = of("sm_80");
        expect_same(equal(one, of("sm_90a")), std::string(name(type)));
        if (a_major == Major::row) expect_same(equal(one, "C = A * B'"), std::string(name(type)));
      }
}

Manifest scaled_product(const kernels::BlockScaled& options) {
  const Compiled compiled = compiled_for(kernels::block_scaled(options), "sm_120a");
  return manifest_of(compiled, {options.blocks(options.m, options.n)}, arguments_of(compiled));
}

TEST(EqualBuiltIn, BlockScaledProductsInTwoTiles) {
  struct Row {
    Type a, b, scale;
  };
  for (const Row& row :
       {Row{Type::e4m3, Type::e4m3, Type::ue8m0}, Row{Type::e5m2, Type::e4m3, Type::ue8m0},
        Row{Type::e2m1, Type::e2m1, Type::ue8m0}, Row{Type::e2m1, Type::e2m1, Type::ue4m3}}) {
    kernels::BlockScaled options{
        .m = 64, .n = 64, .k = 256, .a = row.a, .b = row.b, .scale = row.scale};
    const Manifest large = scaled_product(options);
    options.tile = {.m = 32, .n = 64, .k = 128, .warps_m = 2, .warps_n = 1};
    options.stages = 2;
    expect_same(equal(large, scaled_product(options)), std::string(name(row.a)));
  }
}

// Products of single bits, by their bits.
TEST(EqualBuiltIn, BitsInTwoTiles) {
  for (const auto op : {isa::BitOp::xor_popc, isa::BitOp::and_popc}) {
    kernels::Gemm options{
        .m = 64, .n = 64, .k = 512, .a = Type::b1, .b = Type::b1, .accumulator = s32, .c = s32};
    options.bit_op = op;
    const auto of = [&](Tile tile, const std::string& target) {
      options.tile = tile;
      const Compiled compiled = compiled_for(kernels::gemm(options), target);
      return manifest_of(compiled, {options.blocks(64, 64)}, arguments_of(compiled));
    };
    const Manifest one = of({.m = 64, .n = 64, .k = 0, .warps_m = 2, .warps_n = 2}, "sm_80"),
                   other = of({.m = 32, .n = 32, .k = 256, .warps_m = 1, .warps_n = 2}, "sm_90a");
    expect_same(equal(one, other), "b1");
  }
}

// The lines of a module behind its head, without places in C++: they follow another's.
std::string body_of(const std::string& ptx) {
  std::string out;
  bool inside = false;
  for (std::size_t at = 0; at < ptx.size();) {
    const std::size_t end = ptx.find('\n', at);
    const std::string line = ptx.substr(at, end - at + 1);
    at = end + 1;
    const std::size_t first = line.find_first_not_of(" \t");
    const auto starts = [&](std::string_view word) {
      return first != std::string::npos && line.compare(first, word.size(), word) == 0;
    };
    if (inside && !starts(".loc") && !starts(".file")) out += line;
    inside |= starts(".address_size");
  }
  return out;
}

// Two launches: the splits, and their sum.
Manifest split_gemm(const std::string& target, int splits) {
  kernels::Gemm options{.m = 128, .n = 64, .k = 192, .c = f32};
  options.tile = {.m = 64, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2};
  kernels::Gemm parts = options;
  parts.splits = splits;
  const Compiled product = compiled_for(kernels::gemm(parts), target),
                 sum = compiled_for(kernels::gemm_sum(parts), target);
  const std::size_t workspace = 4 * static_cast<std::size_t>(parts.workspace_elements(128, 64));
  Manifest out = manifest_of(
      product, {parts.blocks(128, 64), static_cast<std::uint32_t>(splits)},
      {Argument("A", 2 * 128 * 192), Argument("B", 2 * 192 * 64), Argument("parts", workspace)});
  const Manifest second = manifest_of(sum, {128 * 64 / 256},
                                      {Argument("parts", workspace), Argument("C", 4 * 128 * 64)});
  out.ptx = Source(target + ".ptx", product.ptx + body_of(sum.ptx));
  ManifestLaunch& then = out.then.emplace_back(ManifestLaunch{sum.name, second.launch, {}});
  ManifestParam from;
  from.scalar.resize(8);
  from.members.push_back({.at = 0, .tensor_map = {}, .buffer = "parts"});
  then.params = {from, second.params[1]};
  return out;
}

TEST(EqualBuiltIn, SplitsAndTheirSumAreTheProduct) {
  const EqualOptions outputs{.outputs = {"C"}};
  for (const std::string target : {"sm_80", "sm_90a"}) {
    expect_same(equal(split_gemm(target, 3), std::string("C = A * B'"), outputs), target);
    EXPECT_EQ(equal(split_gemm(target, 3), std::string("C = 2 * A * B'"),
                    {.outputs = {"C"}, .explain = 0})
                  .verdict,
              Verdict::different);
  }
  expect_same(equal(split_gemm("sm_80", 2), split_gemm("sm_90a", 2), outputs), "both");
}

}  // namespace
}  // namespace tartan
