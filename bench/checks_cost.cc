// SPDX-License-Identifier: Apache-2.0
// checks_cost MANIFEST...: what a launch costs with all checks beside one with none, as a table:
// milliseconds of processor time on one host thread, the least of five launches, from the first
// block to the last.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <iostream>

#include "runtime/outcome.h"

namespace tartan {
namespace {

/// Milliseconds; infinite where the manifest cannot be run.
double milliseconds(const Manifest& manifest, Checks checks) {
  constexpr int launches = 5;
  double least = INFINITY;
  for (int i = 0; i < launches; ++i) {
    std::clock_t start = 0, end = 0;
    const Outcome outcome =
        run(manifest, "emulator",
            {.threads = 1, .checks = checks, .progress = [&](std::uint64_t done, std::uint64_t) {
               (done ? end : start) = std::clock();
             }});
    if (!outcome.refused.ok()) std::cerr << outcome.complaints(false);
    else least = std::min(least, 1e3 * static_cast<double>(end - start) / CLOCKS_PER_SEC);
  }
  return least;
}

int measure(int count, char** manifests) {
  double logarithms = 0, worst = 0;
  fmt::print("| Kernel | no checks, ms | all checks, ms | Ratio |\n|---|---|---|---|\n");
  for (int i = 0; i < count; ++i) {
    const auto manifest = read_manifest(manifests[i]);
    if (!manifest) {
      std::cerr << manifest.diags().text();
      return 2;
    }
    const double none = milliseconds(*manifest, Checks::none),
                 all = milliseconds(*manifest, Checks::all);
    if (!std::isfinite(none) || !std::isfinite(all)) return 2;
    fmt::print("| {} ({}) | {:.1f} | {:.1f} | {:.1f} |\n", manifest->kernel, manifests[i], none,
               all, all / none);
    logarithms += std::log(all / none);
    worst = std::max(worst, all / none);
  }
  fmt::print("\n{} kernels: geometric mean {:.1f}, worst {:.1f}\n", count,
             std::exp(logarithms / count), worst);
  return 0;
}

}  // namespace
}  // namespace tartan

int main(int argc, char** argv) {
  if (argc > 1) return tartan::measure(argc - 1, argv + 1);
  std::cerr << "checks_cost MANIFEST...\n";
  return 2;
}
