// SPDX-License-Identifier: Apache-2.0
// Mutants of the built-in kernels and of the lessons; and of the kernels themselves, that they are
// race-free and deadlock-free in every schedule.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "examples/lesson.h"
#include "kernels/registry/registry.h"
#include "tartan/kernels/kernels.h"
#include "tartan/tartan.h"
#include "tests/mutation/builtin_runs.h"
#include "tests/mutation/soak.h"
#include "tests/support/lesson_kernels.h"

// The kernels of the lessons that are whole programs.
namespace lesson_07 {
#include "examples/07_gemm.cc"
}
namespace lesson_08 {
#include "examples/08_attention.cc"
}
namespace lesson_09 {
#include "examples/09_hopper.cc"
}

namespace tartan::mutation {
namespace {

using kernels::Gemm;

// ---- Products.

struct Sizes {
  int m, n, k;
};

const std::vector<Sizes> awkward{{72, 80, 104}, {64, 64, 8}, {8, 136, 200}};

/// Edges at each multiple of 8 of a warp's 32 x 32; and more than eight tiles below each other,
/// which are a group of their own.
const std::vector<Sizes> edges{{16, 96, 56}, {24, 32, 24},  {40, 104, 40},
                               {48, 88, 48}, {96, 56, 176}, {568, 48, 16}};

Subject product(const std::string& name, const Gemm& wanted, const char* target,
                const std::vector<Sizes>& sizes, unsigned persistent_blocks = 0) {
  Gemm options = wanted;
  options.m = options.n = options.k = 0;
  const Compiled compiled = compiled_for(kernels::gemm(options), target);
  std::vector<Sizes> all = sizes;
  for (Sizes each : edges) {
    each.k *= options.multiple / 8;
    all.push_back(each);
  }
  std::vector<Run> runs;
  for (const auto& [m, n, k] : all) {
    std::vector<Argument> arguments{scalar(m), scalar(n), scalar(k)};
    const bool partial = options.splits > 1 || options.stream_blocks;
    const int batch = options.batched ? 2 : 1;
    if (options.batched)
      for (const std::int64_t stride : {m * k, k * n, m * n}) arguments.push_back(scalar(stride));
    arguments.push_back(in(bytes_of(options.a, std::int64_t{m} * k * batch)));
    arguments.push_back(in(bytes_of(options.b, std::int64_t{k} * n * batch)));
    arguments.push_back(out(partial && !options.stream_blocks
                                ? bytes_of(options.accumulator, options.workspace_elements(m, n))
                                : bytes_of(options.c, std::int64_t{m} * n * batch)));
    if (options.stream_blocks)
      arguments.push_back(out(bytes_of(options.accumulator, options.workspace_elements(m, n))));
    if (options.epilogue.bias) arguments.push_back(in(4 * n));
    if (options.epilogue.residual)
      arguments.push_back(in(bytes_of(options.c, std::int64_t{m} * n)));
    const Dim3 grid{persistent_blocks ? persistent_blocks : options.grid_x(m, n, 4),
                    static_cast<unsigned>(options.splits), static_cast<unsigned>(batch)};
    runs.push_back(run_of(compiled, grid, arguments));
  }
  return subject_of("gemm/" + name, compiled, std::move(runs));
}

Subject sum(const std::string& name, Gemm options, Sizes size) {
  options.m = options.n = options.k = 0;
  const auto [m, n, k] = size;
  const Compiled compiled = compiled_for(kernels::gemm_sum(options), "sm_80");
  std::vector<Argument> arguments{scalar(m), scalar(n)};
  if (options.stream_blocks) arguments.push_back(scalar(k));
  arguments.push_back(in(bytes_of(options.accumulator, options.workspace_elements(m, n))));
  arguments.push_back(out(bytes_of(options.c, std::int64_t{m} * n)));
  const unsigned blocks =
      options.stream_blocks ? options.blocks(m, n) : static_cast<unsigned>((m * n + 255) / 256);
  return subject_of("gemm_sum/" + name, compiled, {run_of(compiled, {blocks}, arguments)});
}

std::vector<Subject> products() {
  const Tile small{.m = 64, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2};
  const Tile wide{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
  const Gemm plain{.tile = small};
  Gemm hopper{.tile = wide, .producers = 4};
  std::vector<Subject> out;
  const auto with = [](Gemm gemm, auto change) { return change(gemm), gemm; };
  out.push_back(product("sm_75", plain, "sm_75", awkward));
  out.push_back(product("sm_80", plain, "sm_80", awkward));
  out.push_back(product(
      "columns", with(plain, [](Gemm& g) { g.a_major = Major::col, g.b_major = Major::row; }),
      "sm_80", awkward));
  out.push_back(product("s8",
                        with(plain,
                             [](Gemm& g) {
                               g.a = g.b = s8, g.accumulator = g.c = s32;
                               g.multiple = 16;
                             }),
                        "sm_80", {{80, 72, 144}, {16, 64, 16}}));
  out.push_back(product("persistent", with(plain, [](Gemm& g) { g.persistent = true; }), "sm_80",
                        awkward, 2));
  out.push_back(
      product("batched", with(plain, [](Gemm& g) { g.batched = true; }), "sm_80", {{72, 40, 72}}));
  out.push_back(product(
      "epilogue",
      with(plain,
           [](Gemm& g) {
             g.epilogue = {.bias = true, .activation = kernels::Activation::relu, .residual = true};
           }),
      "sm_80", {{72, 80, 40}}));
  out.push_back(product("splits", with(plain, [](Gemm& g) { g.splits = 2; }), "sm_80",
                        {{72, 80, 200}, {64, 64, 8}}));
  // So long that an arrival too few adds up to a warp's.
  out.push_back(product("producers", with(plain, [](Gemm& g) { g.producers = 1; }), "sm_80",
                        {{72, 80, 104}, {64, 64, 8}, {64, 64, 3360}}));
  out.push_back(product("sm_90a", hopper, "sm_90a", {{72, 80, 392}, {64, 64, 8}, {64, 64, 1160}}));
  out.push_back(product("no_producers", with(hopper, [](Gemm& g) { g.producers = 0; }), "sm_90a",
                        {{72, 80, 392}, {64, 64, 8}}));
  out.push_back(product("sm_90a_persistent", with(hopper, [](Gemm& g) { g.persistent = true; }),
                        "sm_90a", {{72, 80, 392}, {200, 64, 392}}, 2));
  out.push_back(product("cluster", with(hopper, [](Gemm& g) { g.cluster = 2; }), "sm_90a",
                        {{136, 72, 392}, {128, 64, 8}, {128, 64, 1992}}));
  out.push_back(product("promote",
                        with(hopper,
                             [](Gemm& g) {
                               g.a = g.b = Type::e4m3, g.promote = 2;
                               g.multiple = 16, g.tile.k = 128;
                             }),
                        "sm_90a", {{64, 64, 912}, {64, 64, 2320}}));
  out.push_back(sum("splits", with(plain, [](Gemm& g) { g.splits = 2; }), {40, 24, 64}));
  const auto splits = [](Gemm& g) { g.cluster_splits = 2; };
  out.push_back(product("cluster_splits", with(Gemm{.tile = small}, splits), "sm_90",
                        {{72, 80, 200}, {64, 64, 8}}));
  out.push_back(product("sm_90a_cluster_splits", with(hopper, splits), "sm_90a",
                        {{72, 80, 392}, {64, 64, 2320}}));
  out.push_back(product("ping_pong",
                        with(hopper, [](Gemm& g) { g.tile.products = 2, g.persistent = true; }),
                        "sm_90a", {{200, 136, 392}, {64, 64, 1160}}, 2));
  return out;
}

// ---- The others.

Subject attention(const std::string& name, const kernels::Attention& options, const char* target) {
  const Compiled compiled = compiled_for(kernels::attention(options), target);
  std::vector<Run> runs;
  for (const auto& [queries, keys, heads, kv_heads] :
       {std::array{75, 100, 2, 1}, std::array{64, 1, 1, 1}, std::array{1, 200, 1, 1},
        std::array{64, 1100, 1, 1}, std::array{16, 80, 1, 1}, std::array{32, 112, 1, 1},
        std::array{48, 128, 1, 1}}) {
    const auto bytes = [&](int rows, int matrices) {
      return std::int64_t{2} * rows * matrices * options.head_dim;
    };
    runs.push_back(
        run_of(compiled, {options.blocks(queries), static_cast<unsigned>(heads)},
               {scalar(queries), scalar(keys), scalar(heads), scalar(kv_heads), scalar(0.02f),
                in(bytes(queries, heads)), in(bytes(keys, kv_heads)), in(bytes(keys, kv_heads)),
                out(bytes(queries, heads)), out(4 * queries * heads)}));
  }
  return subject_of("attention/" + name, compiled, std::move(runs));
}

Subject sparse(const std::string& name, Gemm options, const char* target) {
  options.m = options.n = options.k = 0;
  const Compiled compiled = compiled_for(kernels::sparse_gemm(options), target);
  std::vector<Run> runs;
  for (const auto& [m, n, k] : {Sizes{72, 80, 464}, Sizes{64, 64, 16}, Sizes{16, 96, 32},
                                Sizes{96, 88, 48}, Sizes{520, 16, 16}}) {
    Bytes dense = numbers(static_cast<std::size_t>(m) * k * 2, 16, 5);
    for (std::size_t i = 0; i < dense.size(); i += 8)  // two of four, now these, now those
      std::memset(dense.data() + i + (i / 8 % 3 ? 0 : 4), 0, 4);
    const auto compressed = kernels::compress(dense, m, k, options.a);
    EXPECT_TRUE(compressed) << (compressed ? "" : compressed.diags().text());
    Argument metadata = in(static_cast<std::int64_t>(compressed->metadata.size() * 4));
    metadata.contents.resize(metadata.bytes);
    std::memcpy(metadata.contents.data(), compressed->metadata.data(), metadata.bytes);
    Argument values = in(static_cast<std::int64_t>(compressed->values.size()));
    values.contents = compressed->values;
    runs.push_back(run_of(compiled, {options.blocks(m, n)},
                          {scalar(m), scalar(n), scalar(k), values, metadata,
                           in(std::int64_t{2} * k * n), out(std::int64_t{4} * m * n)}));
  }
  return subject_of("sparse_gemm/" + name, compiled, std::move(runs));
}

Subject transpose() {
  const Compiled compiled = compiled_for(kernels::transpose(8), "sm_75");
  std::vector<Run> runs;
  for (const auto& [rows, cols] : {std::pair{72, 104}, std::pair{64, 64}, std::pair{8, 136},
                                   std::pair{16, 24}, std::pair{32, 40}, std::pair{48, 96}})
    runs.push_back(
        run_of(compiled,
               {static_cast<unsigned>((cols + 63) / 64), static_cast<unsigned>((rows + 63) / 64)},
               {scalar(rows), scalar(cols), in(2 * rows * cols), out(2 * rows * cols)}));
  return subject_of("transpose", compiled, std::move(runs));
}

Subject wmma_gemm() {
  const kernels::WmmaGemm options;
  const Tile tile = kernels::wmma_tile(options);
  const Compiled compiled = compiled_for(kernels::wmma_gemm(options), "sm_75");
  std::vector<Run> runs;
  std::vector<Sizes> all = awkward;
  all.insert(all.end(), edges.begin(), edges.end());
  for (const auto& [m, n, k] : all)
    runs.push_back(
        run_of(compiled, {Gemm{.tile = tile}.blocks(m, n)},
               {scalar(m), scalar(n), scalar(k), in(2 * m * k), in(2 * n * k), out(4 * m * n)}));
  return subject_of("wmma_gemm", compiled, std::move(runs));
}

Subject gate() {
  const Compiled compiled = compiled_for(kernels::gate(), "sm_80");
  const int count = 2500;
  return subject_of(
      "gate", compiled,
      {run_of(compiled, {2}, {scalar(count), in(2 * count), in(2 * count), out(2 * count)})});
}

/// Small e4m3 and e5m2.
Argument elements(int count) {
  Argument out = in(count);
  for (int i = 0; i < count; ++i)
    out.contents.push_back(static_cast<std::byte>(0x30 + i * 7 % 13 + i % 2 * 128));
  return out;
}

/// Grouped: two groups, of 70 rows and the rest; masked: 70 rows and none.
Subject scaled(const std::string& name, kernels::ScaledGemm options,
               const std::vector<Sizes>& sizes) {
  using kernels::Grouping;
  const bool masked = options.grouping == Grouping::masked;
  options.m = options.n = 0, options.k = masked ? sizes[0].k : 0;
  const Compiled compiled = compiled_for(kernels::scaled_gemm(options), "sm_90a");
  const int experts = options.grouping == Grouping::none ? 1 : 2, stacked = masked ? 2 : 1;
  std::vector<Run> runs;
  for (const auto& [m, n, k] : sizes) {
    const int line = (m + 3) / 4 * 4, steps = (k + 127) / 128, across = (n + 127) / 128;
    std::vector<Argument> arguments{scalar(m), scalar(n)};
    arguments.push_back(masked ? scalar(experts) : scalar(k));
    arguments.insert(arguments.end(), {elements(m * k * stacked), in(4 * line * steps * stacked),
                                       elements(n * k * experts), in(4 * across * steps * experts),
                                       out(2 * m * n * stacked)});
    std::vector<int> list(static_cast<std::size_t>(masked ? 2 : m), masked ? 0 : 1);
    for (int row = 0; options.grouping == Grouping::contiguous && row < 128; ++row)
      list[static_cast<std::size_t>(row)] = row < 70 ? 0 : -1;
    if (masked) list[0] = 70;
    if (experts > 1) {
      arguments.push_back(in(static_cast<std::int64_t>(4 * list.size())));
      arguments.back().contents.resize(arguments.back().bytes);
      std::memcpy(arguments.back().contents.data(), list.data(), arguments.back().bytes);
    }
    const bool splits = options.cluster_splits > 1;  // a cluster has one tile
    const unsigned grid =
        splits ? options.grid_x(m, n, 1) : static_cast<unsigned>(2 * options.cluster);
    runs.push_back(run_of(compiled, {grid}, std::move(arguments)));
  }
  return subject_of("scaled_gemm/" + name, compiled, std::move(runs));
}

/// Of three groups: 130 deep, empty, 40 deep.
Subject along_k(const std::string& name, kernels::KGroupedGemm options, int m, int n) {
  constexpr int k = 3 * 128;
  const std::vector<int> depths{130, 0, 40};
  const int groups = static_cast<int>(depths.size()), line = (m + 3) / 4 * 4;
  options.m = options.n = options.k = 0;
  const Compiled compiled = compiled_for(kernels::k_grouped_gemm(options), "sm_90a");
  std::vector<Argument> arguments{scalar(m),       scalar(n),           scalar(k),
                                  scalar(groups),  elements(m * k),     in(4 * line * k / 128),
                                  elements(n * k), in(4 * n * k / 128), out(4 * groups * m * n),
                                  in(4 * groups)};
  Argument& of_groups = arguments.back();
  of_groups.contents.resize(of_groups.bytes);
  std::memcpy(of_groups.contents.data(), depths.data(), of_groups.bytes);
  return subject_of("k_grouped_gemm/" + name, compiled,
                    {run_of(compiled, {static_cast<unsigned>(2 * options.cluster)}, arguments)});
}

std::vector<Subject> scaled_products() {
  using kernels::Grouping;
  const Tile wide{.m = 64, .n = 32, .k = 128, .warps_m = 4, .warps_n = 1};
  const Tile two{.m = 128, .n = 48, .k = 128, .warps_m = 4, .warps_n = 1};
  return {
      scaled("dense", {.tile = wide, .stages = 2}, {{72, 72, 656}, {64, 136, 16}}),
      scaled("blocks_k", {.tile = wide, .blocks_k = 2, .overlap = true, .stages = 2},
             {{72, 40, 1168}, {64, 32, 16}}),
      scaled("cluster", {.tile = two, .stages = 2, .cluster = 2, .share_a = true},
             {{136, 200, 656}}),
      scaled("contiguous", {.grouping = Grouping::contiguous, .tile = wide, .stages = 2},
             {{200, 72, 400}}),
      scaled("masked", {.grouping = Grouping::masked, .tile = wide, .stages = 2}, {{100, 72, 400}}),
      along_k("adds", {.accumulate = true, .tile = wide, .stages = 2}, 72, 72),
      along_k("cluster", {.tile = two, .stages = 2, .cluster = 2}, 136, 104),
      scaled("cluster_splits", {.tile = wide, .stages = 2, .cluster_splits = 2},
             {{72, 72, 656}, {64, 136, 16}, {64, 32, 4640}})};
}

Subject block_scaled() {
  kernels::BlockScaled options;
  options.m = 72, options.n = 80, options.k = 264;
  const Compiled compiled = compiled_for(kernels::block_scaled(options), "sm_120a");
  const int m = options.m, n = options.n, k = options.k, blocks = (k + 31) / 32;
  const auto scales = [](int count) {
    Argument out = in(count);
    for (int i = 0; i < count; ++i) out.contents.push_back(static_cast<std::byte>(125 + i % 5));
    return out;
  };
  return subject_of("block_scaled", compiled,
                    {run_of(compiled, {options.blocks(m, n)},
                            {elements(m * k), scales(m * blocks), elements(k * n),
                             scales(n * blocks), out(4 * m * n)})});
}

/// A run whose buffers are as large as the description says.
Run whole_run(const Compiled& compiled, Dim3 grid) {
  std::vector<Argument> arguments;
  for (const CompiledParam& param : compiled.params)
    arguments.push_back(in(bytes_of(param.type, param.elements)));
  return run_of(compiled, grid, arguments);
}

Subject lesson(const std::string& name, const Kernel& kernel, const char* target,
               const std::vector<Dim3>& grids) {
  const Compiled compiled = compiled_for(kernel, target);
  std::vector<Run> runs;
  for (const Dim3& grid : grids) runs.push_back(whole_run(compiled, grid));
  return subject_of("lesson/" + name, compiled, std::move(runs));
}

/// Lesson 8: a matrix for each of the heads.
Subject attention_lesson(const std::string& name, bool causal) {
  using namespace lesson_08;
  const Compiled compiled = compiled_for(lesson_08::attention(causal), "sm_80");
  const std::int64_t q = 2 * heads * queries * d, kv = 2 * kv_heads * keys * d;
  return subject_of(
      "lesson/" + name, compiled,
      {run_of(compiled, {(queries + 63) / 64, heads}, {in(q), in(kv), in(kv), out(q)})});
}

/// The kernels of one instruction: one_mma, and those of lessons 2 to 6.
std::vector<Subject> instructions() {
  std::vector<Subject> out;
  for (const Kernel& each : testing_lessons::kernels()) {
    const Compiled compiled = compiled_for(each, "sm_90");
    out.push_back(subject_of("lesson/" + each.name(), compiled, {whole_run(compiled, Dim3{})}));
  }
  return out;
}

std::vector<Subject> others() {
  const Tile wide{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
  return {attention("sm_80", {.queries_per_block = 64}, "sm_80"),
          attention("causal", {.causal = true, .queries_per_block = 64}, "sm_80"),
          attention("sm_90a", {.queries_per_block = 64, .producers = 4}, "sm_90a"),
          sparse("sm_80", {.multiple = 16}, "sm_80"),
          sparse("sm_90a", {.multiple = 16, .tile = wide, .producers = 4}, "sm_90a"),
          transpose(),
          wmma_gemm(),
          block_scaled()};
}

std::vector<Subject> lessons() {
  std::vector<Subject> all = instructions();
  all.push_back(lesson("07", lesson_07::product(72, 80, 104), "sm_80", {{4}}));
  all.push_back(attention_lesson("08", false));
  all.push_back(attention_lesson("08_causal", true));
  all.push_back(lesson("09", lesson_09::product(), "sm_90a", {{4}, {2}}));
  all.push_back(lesson("09_sm_80", lesson_09::product(), "sm_80", {{4}, {2}}));
  return all;
}

TEST(MutationOfBuiltin, Products) { soak(products(), "products.txt"); }

TEST(MutationOfBuiltin, Others) { soak(others(), "others.txt"); }

TEST(MutationOfBuiltin, Scaled) { soak(scaled_products(), "scaled.txt"); }

TEST(MutationOfBuiltin, Lessons) { soak(lessons(), "lessons.txt"); }

// ---- All schedules.

/// Stream-K, its sum, split-K with TMA, A and B swapped, a persistent cluster: what has no mutants
/// of its own.
std::vector<Subject> more_products() {
  const Tile small{.m = 64, .n = 64, .k = 32, .warps_m = 2, .warps_n = 2};
  const Tile wide{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};
  const Gemm streams{.tile = small, .stream_blocks = 3};
  const Gemm hopper{.tile = wide, .producers = 4};
  const auto with = [](Gemm gemm, auto change) { return change(gemm), gemm; };
  std::vector<Subject> out;
  out.push_back(product("stream_k", streams, "sm_80", {{72, 80, 200}, {64, 64, 8}}));
  out.push_back(sum("stream_k", streams, {72, 80, 200}));
  out.push_back(product("sm_90a_stream_k", with(hopper, [](Gemm& g) { g.stream_blocks = 3; }),
                        "sm_90a", {{72, 80, 392}}));
  out.push_back(product("sm_90a_splits", with(hopper, [](Gemm& g) { g.splits = 2; }), "sm_90a",
                        {{72, 80, 392}}));
  out.push_back(product("sm_90a_one_producer", with(hopper, [](Gemm& g) { g.producers = 1; }),
                        "sm_90a", {{72, 80, 392}, {64, 64, 1160}}));
  out.push_back(product("cluster_persistent",
                        with(hopper, [](Gemm& g) { g.cluster = 2, g.persistent = true; }), "sm_90a",
                        {{264, 72, 392}}, 2));
  out.push_back(product("cluster_columns",
                        with(hopper, [](Gemm& g) { g.cluster = g.cluster_columns = 2; }), "sm_90a",
                        {{72, 80, 136}}));
  const Gemm direct{.multiple = 1,
                    .multiple_c = 1,
                    .tile = {.m = 2, .n = 8, .k = 0, .warps_m = 1, .warps_n = 2, .warps_k = 2},
                    .stages = 2,
                    .direct = true};
  out.push_back(product("direct", direct, "sm_80", {{3, 21, 203}, {2, 16, 128}}));
  out.push_back(
      product("swap", with(hopper, [](Gemm& g) { g.swap = true; }), "sm_90a", {{72, 80, 392}}));
  return out;
}

/// One run decides each of them: what `tartan run --schedules all` does first.
TEST(SchedulesOfBuiltin, OneRunDecidesProducts) {
  for (const Subject& each : products()) expect_decided(each);
  for (const Subject& each : more_products()) expect_decided(each);
}

TEST(SchedulesOfBuiltin, OneRunDecidesOthers) {
  for (const Subject& each : others()) expect_decided(each);
  expect_decided(gate());
}

TEST(SchedulesOfBuiltin, OneRunDecidesScaled) {
  for (const Subject& each : scaled_products()) expect_decided(each);
}

TEST(SchedulesOfBuiltin, OneRunDecidesLessons) {
  for (const Subject& each : lessons()) expect_decided(each);
}

}  // namespace
}  // namespace tartan::mutation
