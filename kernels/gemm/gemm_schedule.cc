// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_schedule.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::TARTAN_ABI::kernels {
namespace {

bool by_parts(const Gemm& x) { return x.splits != 1 || x.stream_blocks != 0; }
bool by_cluster(const Gemm& x) { return x.cluster_splits != 1; }
bool shares(const Gemm& x) { return x.cluster != 1 || x.cluster_columns != 1; }

struct Exclusion {
  bool (*found)(const Gemm&);
  std::string_view message;  // {option}: as it is found
};

constexpr Exclusion exclusions[] = {
    {[](const Gemm& x) { return by_parts(x) && x.persistent; },
     "split-K and stream-K are unsupported for persistent kernels, whose CTAs compute whole tiles"},
    {[](const Gemm& x) { return x.stream_blocks != 0 && x.cluster != 1; },
     "stream-K requires cluster = 1, found {cluster}"},
    {[](const Gemm& x) {
       return x.cluster_columns != 1 && (x.stream_blocks != 0 || by_cluster(x));
     },
     "stream-K and cluster_splits require cluster_columns = 1, found {cluster_columns}"},
    {[](const Gemm& x) { return by_cluster(x) && by_parts(x); },
     "cluster_splits excludes splits and stream_blocks: the CTAs of its clusters divide k already"},
    {[](const Gemm& x) { return by_cluster(x) && x.persistent; },
     "cluster_splits is unsupported for persistent kernels, whose CTAs compute whole tiles"},
    {[](const Gemm& x) { return by_cluster(x) && x.cluster != 1; },
     "cluster_splits requires cluster = 1, found {cluster}: the CTAs of its clusters share a tile "
     "of C, not of B"},
    {[](const Gemm& x) { return x.tile.products != 1 && (!x.persistent || x.producers <= 0); },
     "tile.products = {products}: warpgroups that compute tiles in turn require persistent and "
     "producers"},
    {[](const Gemm& x) { return x.dynamic && (!x.persistent || x.producers <= 0); },
     "dynamic: CTAs that take over tiles require persistent and producers"},
    {[](const Gemm& x) { return x.dynamic && x.batched; },
     "dynamic excludes batched: the tile that a CTA takes over may be another product's"},
    {[](const Gemm& x) { return x.stream_blocks != 0 && x.swap; },
     "stream-K is unsupported with swap; use splits or cluster_splits"},
    {[](const Gemm& x) { return x.splits != 1 && x.stream_blocks != 0; },
     "split-K (splits) and stream-K (stream_blocks) exclude each other"},
    {[](const Gemm& x) { return x.direct && (by_parts(x) || by_cluster(x)); },
     "direct excludes splits, stream_blocks and cluster_splits: the warps of a CTA divide k"},
    {[](const Gemm& x) { return x.direct && (x.producers != 0 || x.persistent); },
     "direct excludes producers and persistent: nothing is staged"},
    {[](const Gemm& x) { return x.direct && (shares(x) || x.swap); },
     "direct requires cluster = 1, cluster_columns = 1 and swap = false"},
};

std::string text(const Exclusion& exclusion, const Gemm& options) {
  return fmt::format(fmt::runtime(exclusion.message), fmt::arg("cluster", options.cluster),
                     fmt::arg("cluster_columns", options.cluster_columns),
                     fmt::arg("products", options.tile.products));
}

Diags excluded(const Gemm& options) {
  Diags out;
  for (const Exclusion& each : exclusions)
    if (each.found(options)) out.report("kernel-option"_rule, {}, text(each, options));
  return out;
}

// Sets the members of a way; what it does not have keeps the default.
struct Setter {
  Gemm& out;

  void operator()(const OneTile& way) const { put(way.cluster, way.swap); }
  void operator()(const Persistent& way) const {
    put(way.cluster, way.swap);
    out.persistent = true, out.dynamic = way.dynamic;
  }
  void operator()(const PingPong& way) const {
    put(way.cluster, way.swap);
    out.persistent = true, out.dynamic = way.dynamic, out.tile.products = way.warpgroups;
  }
  void operator()(const SplitK& way) const {
    put(way.cluster, way.swap);
    out.splits = way.splits;
  }
  void operator()(const ClusterSplitK& way) const {
    out.cluster_splits = way.ctas, out.swap = way.swap;
  }
  void operator()(const StreamK& way) const { out.stream_blocks = way.blocks; }
  void operator()(const Direct&) const { out.direct = true; }

 private:
  void put(const ClusterShape& cluster, bool swap) const {
    out.cluster = cluster.rows, out.cluster_columns = cluster.columns, out.swap = swap;
  }
};

}  // namespace

namespace detail {

bool is_one_way(const Gemm& options) {
  return std::ranges::none_of(exclusions,
                              [&](const Exclusion& each) { return each.found(options); });
}

bool is_one_way(Builder& k, const Gemm& options) {
  bool out = true;
  for (const Exclusion& each : exclusions)
    out &= k.require(!each.found(options), text(each, options));
  return out;
}

Dim3 sum_grid(const Gemm& options, int m, int n) {
  constexpr std::int64_t block = 256;  // threads of gemm_sum()
  if (options.stream_blocks) return {options.blocks(m, n)};
  return {static_cast<std::uint32_t>((std::int64_t{m} * n + block - 1) / block)};
}

}  // namespace detail

Gemm flat(const GemmProblem& problem, const GemmSchedule& schedule) {
  // Each member, or it does not compile.
  const auto& [m, n, k, a, b, accumulator, c, a_major, b_major, multiple, multiple_c, bit_op,
               epilogue, batched] = problem;
  const auto& [tile, stages, producers, group, promote, way] = schedule;
  Gemm out{.m = m, .n = n, .k = k, .a = a, .b = b};
  out.accumulator = accumulator, out.c = c, out.a_major = a_major, out.b_major = b_major;
  out.multiple = multiple, out.multiple_c = multiple_c, out.bit_op = bit_op;
  out.epilogue = epilogue, out.batched = batched;
  out.tile = tile, out.tile.products = 1;
  out.stages = stages, out.producers = producers, out.group = group, out.promote = promote;
  std::visit(Setter{out}, way);
  return out;
}

GemmProblem problem_of(const Gemm& options) {
  return {.m = options.m,
          .n = options.n,
          .k = options.k,
          .a = options.a,
          .b = options.b,
          .accumulator = options.accumulator,
          .c = options.c,
          .a_major = options.a_major,
          .b_major = options.b_major,
          .multiple = options.multiple,
          .multiple_c = options.multiple_c,
          .bit_op = options.bit_op,
          .epilogue = options.epilogue,
          .batched = options.batched};
}

Result<GemmSchedule> schedule_of(const Gemm& options) {
  if (Diags wrong = excluded(options); !wrong.ok()) return wrong;
  GemmSchedule out{.tile = options.tile,
                   .stages = options.stages,
                   .producers = options.producers,
                   .group = options.group,
                   .promote = options.promote};
  out.tile.products = 1;
  const ClusterShape cluster{options.cluster, options.cluster_columns};
  const bool swap = options.swap;
  if (options.direct) out.way = Direct{};
  else if (options.stream_blocks) out.way = StreamK{options.stream_blocks};
  else if (options.splits != 1) out.way = SplitK{options.splits, cluster, swap};
  else if (options.cluster_splits != 1) out.way = ClusterSplitK{options.cluster_splits, swap};
  else if (options.tile.products != 1)
    out.way = PingPong{options.tile.products, cluster, swap, options.dynamic};
  else if (options.persistent) out.way = Persistent{cluster, swap, options.dynamic};
  else out.way = OneTile{cluster, swap};
  return out;
}

GemmLaunch GemmLaunch::of(const Gemm& options, int m, int n, int multiprocessors) {
  GemmLaunch out{
      .grid = {options.grid_x(m, n, multiprocessors), static_cast<std::uint32_t>(options.splits)}};
  if (!by_parts(options)) return out;
  out.workspace = options.workspace_elements(m, n);
  out.sum = detail::sum_grid(options, m, n);
  return out;
}

Kernel gemm(const GemmProblem& problem, const GemmSchedule& schedule) {
  return gemm(flat(problem, schedule));
}

GemmSchedule tuned(const GemmProblem& problem, const Gpu& gpu) {
  return *schedule_of(tuned(flat(problem, {}), gpu));
}

}  // namespace tartan::TARTAN_ABI::kernels
