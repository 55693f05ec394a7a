// SPDX-License-Identifier: Apache-2.0
// Every configuration that the cost model or a search can choose, on a product of awkward sizes:
// the emulator gives the naive loop's results and, if there is one, a GPU the emulator's bits; few
// registers spill, as the GPU's assembler or ptxas says. A sample of them; with
// TARTAN_CANDIDATES=I/N, every N-th from number I on.
#include "kernels/tuner/gemm_candidates.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "library/tune_search.h"
#include "tests/kernels/gemm_run.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using kernels::Gemm;
using testing_gemm::Bytes;
using testing_gemm::Product;

struct Sizes {
  int m, n, k;
};
// Rows of whole lines, of 16 bytes, of 8 and of elements; one row to thousands; short and long k.
constexpr Sizes wanted[] = {
    {1, 4096, 4096},     {8, 512, 8192},     {14, 2048, 7936},   {24, 1480, 11496},
    {40, 3656, 1044},    {64, 1024, 8192},   {112, 1912, 11312}, {144, 2768, 12576},
    {200, 10928, 11720}, {256, 256, 8192},   {360, 1240, 8496},  {500, 4032, 11000},
    {1000, 1000, 1000},  {1432, 1952, 4136}, {3432, 7424, 3736}, {3432, 7424, 736},
    {4096, 4096, 4096},  {12, 1351, 13927},  {57, 822, 6778},    {348, 3328, 2773},
    {2453, 1726, 4235},  {1, 1463, 561},     {3, 4234, 4228},    {640, 672, 8192},
    {896, 896, 5888},    {1320, 568, 5992},  {5248, 1024, 4096}, {696, 1872, 3840},
    {496, 3192, 3712}};
constexpr Type types[] = {bf16, Type::e4m3, Type::s8, f32};

Gemm problem(const Sizes& sizes, Type type) {
  Gemm out{.m = sizes.m, .n = sizes.n, .k = sizes.k, .a = type, .b = type, .c = type};
  if (type == Type::s8) out.accumulator = out.c = s32;
  if (type == Type::e4m3) out.c = bf16;
  return out;
}

// A configuration, and the first of the sizes for which it is a candidate.
struct Case {
  Gemm options;
  Sizes of;
};

// Each configuration of a type once for each way to copy: what k is a multiple of decides.
std::vector<Case> all_cases(const Target& target) {
  const isa::GpuRow& gpu = *isa::find_gpu(target.arch);
  std::vector<Case> out;
  std::map<std::string, bool> known;
  for (const Type type : types) {
    if (type == Type::e4m3 && target.arch.sm < 89) continue;
    for (const Sizes& sizes : wanted)
      for (const Gemm& each :
           kernels::detail::candidates(problem(sizes, type), target, gpu, true)) {
        const bool tma = kernels::detail::by_tma(each, target);
        const std::string key =
            fmt::format("{} {} {} {}", name(type), tma, tma ? 16 : std::min(sizes.k & -sizes.k, 16),
                        detail::text_of(each));
        if (known.emplace(key, true).second) out.push_back({each, sizes});
      }
  }
  return out;
}

// The product, or its partial sums.
Bytes launched(Device& device, const Compiled& compiled, const Product& product) {
  const Gemm& options = product.options;
  testing_gemm::Launch launch = product.launch();
  launch.grid = {options.grid_x(product.m, product.n, 132), static_cast<unsigned>(options.splits)};
  if (options.splits == 1) return testing_gemm::run_on(device, compiled, launch);
  launch.arguments = [&](Device& on, Arguments& arguments, std::vector<Buffer>& buffers) {
    product.add_inputs(on, arguments, buffers);
    Buffer parts = *on.allocate(
        static_cast<std::size_t>(options.workspace_elements(product.m, product.n) * 4));
    EXPECT_TRUE(parts.fill(0xFF));
    arguments.add(parts);
    return parts;
  };
  return testing_gemm::run_on(device, compiled, launch);
}

Bytes summed(Device& device, const Compiled& compiled, const Product& product, const Bytes& parts) {
  testing_gemm::Launch launch = product.launch();
  launch.grid = {static_cast<unsigned>((product.m * product.n + 255) / 256)};
  launch.arguments = [&](Device& on, Arguments& arguments, std::vector<Buffer>& buffers) {
    buffers.push_back(testing_gemm::buffer_of(on, parts));
    arguments.add(buffers.back());
    return product.add_output(on, arguments);
  };
  return testing_gemm::run_on(device, compiled, launch);
}

Bytes result(Device& device, const Compiled& gemm, const std::optional<Compiled>& sum,
             const Product& product) {
  const Bytes first = launched(device, gemm, product);
  return sum ? summed(device, *sum, product, first) : first;
}

std::size_t local_bytes(Device& gpu, const Compiled& compiled) {
  const auto module = gpu.load(compiled.ptx, compiled.name);
  EXPECT_TRUE(module) << (module ? "" : module.diags().text());
  if (!module) return 0;
  const auto kernel = module->kernel(compiled.name);
  EXPECT_TRUE(kernel) << (kernel ? "" : kernel.diags().text());
  if (!kernel) return 0;
  const auto resources = kernel->resources();
  EXPECT_TRUE(resources && resources->local_bytes) << compiled.name;
  return resources ? resources->local_bytes.value_or(0) : 0;
}

// Nothing where nobody says it.
std::optional<std::size_t> spilled_bytes(const Compiled& compiled, const Target& target) {
  if (testing_gemm::runs_on_gpu(target) && target.arch.sm == testing_gemm::gpu()->arch().sm)
    return local_bytes(*testing_gemm::gpu(), compiled);
  if (!test::has_assembler()) return std::nullopt;
  const std::string at = testing::TempDir() + std::to_string(getpid()) + "_tartan_candidate";
  return static_cast<std::size_t>(test::spilled_bytes(compiled.ptx, target.arch.text(), at));
}

// Rows and columns that end inside of tiles, a k that ends inside of a k-tile, as small as they can
// be while clusters still have a second tile, and splits a k-tile.
void check(const Case& each, const Target& target) {
  const Gemm& options = each.options;
  const int line = 1024 / bits(options.a), parts = options.splits * options.cluster_splits;
  const int unit = std::min(each.of.k & -each.of.k, line);
  const int rows = std::min(each.of.m, options.m > 137 ? 137 : options.m),
            cols = 131 + each.of.n % 8,
            depth = (std::max(parts / 2, 2) * options.tile.k / unit + 1) * unit;
  SCOPED_TRACE(fmt::format("{} {}: {} x {} x {}", name(options.a), detail::text_of(options), rows,
                           cols, depth));
  const Product product(options, rows, cols, depth, true);
  const auto gemm = compile(kernels::gemm(product.options), target);
  ASSERT_TRUE(gemm) << gemm.diags().text();
  for (const Diag& warning : gemm->warnings)
    EXPECT_NE(warning.id, "register-pressure"_rule.id) << warning.message;
  std::optional<Compiled> sum;
  if (options.splits > 1) {
    auto compiled = compile(kernels::gemm_sum(product.options), target);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    sum = std::move(*compiled);
  }
  const Bytes here = result(testing_gemm::emulator(), *gemm, sum, product);
  EXPECT_EQ(product.wrong(here), 0);
  if (testing_gemm::runs_on_gpu(target)) {
    EXPECT_EQ(here, result(*testing_gemm::gpu(), *gemm, sum, product));
  }
  // mma.sync of fp8 needs registers for operands unpacked to f16: six tiles of e4m3 whose elements
  // are copied one by one spill 100 to 124 bytes, the other kernels 40 at most.
  const bool unpacked = options.a == Type::e4m3 && !kernels::detail::by_wgmma(options, target);
  const std::size_t spilled = spilled_bytes(*gemm, target).value_or(0);
  EXPECT_LE(spilled, unpacked ? 124u : 16u);
}

void check_all(const char* name, std::size_t some) {
  const Target target = testing_gemm::target_of(name);
  const std::vector<Case> all = all_cases(target);
  ASSERT_GT(all.size(), some);
  std::size_t step = all.size() / some, first = step / 2;
  if (const char* const part = std::getenv("TARTAN_CANDIDATES")) {
    ASSERT_EQ(std::sscanf(part, "%zu/%zu", &first, &step), 2) << part << " is no part such as 0/1";
    ASSERT_LT(first, step) << part;
    fmt::print("{}: part {} of {} configurations\n", name, part, all.size());
  }
  for (std::size_t i = first; i < all.size(); i += step) check(all[i], target);
}

TEST(GemmCandidates, OfHopper) { check_all("sm_90a", 12); }
TEST(GemmCandidates, OfAmpere) { check_all("sm_80", 4); }
TEST(GemmCandidates, OfAda) { check_all("sm_89", 3); }

}  // namespace
}  // namespace tartan
