// SPDX-License-Identifier: Apache-2.0
// Products of few rows whose warps read B straight from global memory: their configurations, and
// what they cost.
#include <algorithm>
#include <cmath>

#include "kernels/gemm/gemm_direct.h"
#include "kernels/tuner/gemm_candidates.h"
#include "kernels/tuner/gemm_cost.h"

namespace tartan::TARTAN_ABI::kernels::detail {

namespace {

// Fitted to 272 times of an H200, of 17 problems, and those of 62 choices (2026-11-26), to 8 to
// 10 % each (standard deviation). What all launches have in common is in GemmConstants since, and
// was fitted there again.
constexpr double step_wait = 1.312;     // times the latency of loads
constexpr double step_each = 1.012;     // of each instruction of a warp's step, while it is alone
constexpr double issued = 4.744;        // instructions per cycle of a multiprocessor
constexpr double memory_share = 0.831;  // of the bandwidth
constexpr double exchanged = 13.8;      // instructions of a warp for each exchange of sums
constexpr double exchange = 12.92;      // cycles of each
constexpr double parts = 179.5;         // of a CTA whose warps divide k
// Instructions for a word of a row.
constexpr double converts_bytes = 9.264, converts_halves = 2, shifts = 5.346, multiplies = 1.5;
constexpr double loads = 6.551, loads_word = 2.474;  // of an access, and of each of its words
constexpr double row_of_a = 0.565;                   // times those of a column of B

double up(double x, double y) { return std::ceil(x / y); }

struct Shape {
  explicit Shape(const Gemm& options)
      : rows(options.tile.m),
        columns(double{1} * options.tile.n / options.tile.warps_n),
        element(bits(options.a) / 8.0),
        words(direct_bytes(options) / 4.0),
        shifted(direct_shifts(options)),
        held(words * options.stages) {}

  double rows, columns;  // of a warp
  double element, words;
  bool shifted;
  double held;  // words of a lane, of each row

  // 32-bit registers of a thread, as ptxas allots them.
  double registers() const {
    const double loaded = (rows + columns) * (held + shifted);
    return std::min(20 + loaded * (shifted ? 1.6 : 1.15) + 2 * rows * columns, 255.0);
  }
  // Instructions of a warp for a step.
  double instructions(const Gemm& options) const {
    const bool integers = !info(options.a).floating;
    const double converts = integers       ? 0
                            : element == 1 ? converts_bytes
                                           : converts_halves,
                 of_row = converts + (shifted ? shifts : 0) + loads / words + loads_word,
                 products = integers ? 1 : 4 / element;  // of a word
    return held * ((row_of_a * rows + columns) * of_row + multiplies * products * rows * columns);
  }
};

}  // namespace

GemmCost direct_cost(const Gemm& options, const isa::GpuRow& gpu, const GemmConstants& c) {
  const Shape shape(options);
  const double m = options.m ? options.m : 4096, n = options.n ? options.n : 4096,
               k = options.k ? options.k : 4096;
  const double warps = options.tile.warps_n * options.tile.warps_k, threads = 32 * warps;
  const double steps =
      std::max(up(k * shape.element, 128 * shape.held * options.tile.warps_k), 1.0);
  const double resident = std::clamp(std::floor(65536 / (threads * up(shape.registers(), 8) * 8)),
                                     1.0, std::min(2048 / threads, 32.0));
  const double ctas = up(m, options.tile.m) * up(n, options.tile.n),
               left = up(ctas, gpu.multiprocessors);
  const double exchanges = std::exp2(std::ceil(std::log2(shape.rows * shape.columns))) + 4;
  const double alone = steps * (gpu.latency * step_wait + shape.instructions(options) * step_each) +
                       exchanges * exchange + (options.tile.warps_k > 1 ? parts : 0);
  // Limits that act side by side: a CTA after another, instructions, and memory.
  const double waits = std::max(left / resident, 1.0) * alone,
               issues = left * warps *
                        (steps * shape.instructions(options) + exchanges * exchanged) / issued;
  GemmCost out;
  out.fixed = c.launch + c.direct;
  out.multiprocessor = std::cbrt(std::pow(waits, 3) + std::pow(issues, 3));
  out.memory = (m + n) * k * shape.element / (gpu.memory * memory_share);
  out.cycles = out.fixed + std::cbrt(std::pow(out.multiprocessor, 3) + std::pow(out.memory, 3));
  return out;
}

// A lane has 16 to 64 bytes of each column on their way.
std::vector<Gemm> direct_candidates(const Gemm& options, const Target& target) {
  constexpr int most = 4;
  std::vector<Gemm> out;
  Gemm each = options;
  if (each.m < 1 || each.m > most || each.splits > 1 || each.stream_blocks > 0) return out;
  const bool clusters = each.cluster * each.cluster_columns * each.cluster_splits > 1;
  if (each.producers > 0 || each.persistent || clusters) return out;
  each.direct = true;
  const int words = direct_bytes(each) / 4;
  for (const int columns : {1, 2, 4, 8})
    for (const int warps_k : {1, 2, 4, 8})
      for (const int held : {4, 8, 16}) {
        if (held < words || columns * held > 32 || each.m * columns > 16) continue;
        const int warps_n = std::max(4 / warps_k, 1);
        each.tile = {.m = each.m,
                     .n = columns * warps_n,
                     .k = 0,
                     .warps_m = 1,
                     .warps_n = warps_n,
                     .warps_k = warps_k};
        each.tile.k = direct_step(each);
        each.stages = held / words;
        if (direct_takes(each, target)) out.push_back(each);
      }
  return out;
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
