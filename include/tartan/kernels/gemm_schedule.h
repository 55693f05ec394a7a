// SPDX-License-Identifier: Apache-2.0
// tartan/kernels/gemm_schedule.h - a GEMM in three parts: what is computed, how CTAs divide the
// work, and the launch.
//
//   const GemmProblem problem{.m = 4096, .n = 4096, .k = 4096, .c = bf16};
//   GemmSchedule schedule = tuned(problem, gpu);                    // or by hand:
//   schedule = {.tile = {.m = 128, .n = 128, .k = 64, .warps_m = 8, .warps_n = 1},
//               .stages = 4, .producers = 4, .way = Persistent{.cluster = {.rows = 2}}};
//   const auto compiled = compile(gemm(problem, schedule), target);
//   const GemmLaunch launch = GemmLaunch::of(flat(problem, schedule), 4096, 4096, multiprocessors);
//
// What excludes each other cannot be said: each way has the options that go with it, and no others.
// `Gemm` (gemm.h) has all of these members side by side, of which many exclude each other.
#pragma once

#include <variant>

#include "tartan/kernels/gemm.h"
#include "tartan/support/dim3.h"

namespace tartan::TARTAN_ABI::kernels {

/// What is computed: C = epilogue(A * B). The members are those of Gemm.
struct GemmProblem {
  int m = 256, n = 256, k = 256;  // 0: a parameter of the kernel
  Type a = f16, b = f16, accumulator = f32, c = f32;
  Major a_major = Major::row, b_major = Major::col;
  int multiple = 8, multiple_c = 8;  // what the lengths of lines of A and B, and of C, divide by
  isa::BitOp bit_op = isa::BitOp::xor_popc;
  Epilogue epilogue = {};
  bool batched = false;
};

/// CTAs of a cluster: `rows` have adjacent rows of tiles and share B, `columns` share A.
struct ClusterShape {
  int rows = 1, columns = 1;
};

// ---- How the CTAs of a launch divide the tiles of C, and the k of each.

/// A CTA for each tile.
struct OneTile {
  ClusterShape cluster = {};
  bool swap = false;  // see Gemm::swap
};
/// CTAs that compute tile after tile.
struct Persistent {
  ClusterShape cluster = {};
  bool swap = false;
  bool dynamic = false;  // see Gemm::dynamic
};
/// Persistent CTAs whose warpgroups take tiles in turn: one multiplies while another stores. Needs
/// producers, and a tile of 4 warps.
struct PingPong {
  int warpgroups = 2;  // tile.products of Gemm
  ClusterShape cluster = {};
  bool swap = false;
  bool dynamic = false;
};
/// So many CTAs divide the k of a tile; gemm_sum() adds what they leave in the workspace.
struct SplitK {
  int splits = 2;  // 2 to most_splits
  ClusterShape cluster = {};
  bool swap = false;
};
/// The CTAs of a cluster divide the k of a tile and add their sums in shared memory.
struct ClusterSplitK {
  int ctas = 2;  // 2, 4 or 8
  bool swap = false;
};
/// So many CTAs divide the k-tiles of all tiles evenly; gemm_sum() adds what they leave.
struct StreamK {
  int blocks = 132;  // 1 to most_stream_blocks
};
/// One to four rows without tensor cores, see Gemm::direct.
struct Direct {};

/// How it is computed. The members are those of Gemm; `tile.products` is the way's.
struct GemmSchedule {
  Tile tile = Gemm{}.tile;
  int stages = 3;
  int producers = 0;
  int group = 8;
  int promote = 0;
  std::variant<OneTile, Persistent, PingPong, SplitK, ClusterSplitK, StreamK, Direct> way = {};
};

/// The same as one struct.
Gemm flat(const GemmProblem& problem, const GemmSchedule& schedule);
GemmProblem problem_of(const Gemm& options);
/// Diagnostics [kernel-option], all of them: options that exclude each other.
Result<GemmSchedule> schedule_of(const Gemm& options);

/// The launch of gemm(), and of gemm_sum() where that adds partial sums.
struct GemmLaunch {
  Dim3 grid;                   // z, the products of a batch, is the caller's
  std::int64_t workspace = 0;  // elements of the accumulator's type; 0: C is written by gemm()
  Dim3 sum = {0, 0, 0};        // the grid of gemm_sum(); 0: there is nothing to add

  /// For sizes m and n on a GPU of that many multiprocessors.
  static GemmLaunch of(const Gemm& options, int m, int n, int multiprocessors);
};

Kernel gemm(const GemmProblem& problem, const GemmSchedule& schedule);

/// As tuned() of a Gemm.
GemmSchedule tuned(const GemmProblem& problem, const Gpu& gpu);

}  // namespace tartan::TARTAN_ABI::kernels
