// SPDX-License-Identifier: Apache-2.0
// checks_cost MANIFEST...: what a launch costs with checks beside one with none, as a table:
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

class Summary {
 public:
  void add(double ratio) {
    logarithms_ += std::log(ratio);
    worst_ = std::max(worst_, ratio);
    ++count_;
  }
  std::string text() const {
    return fmt::format("{:.1f}, {:.1f}", std::exp(logarithms_ / count_), worst_);
  }

 private:
  double logarithms_ = 0, worst_ = 0;
  int count_ = 0;
};

int measure(int count, char** manifests) {
  Summary of_memory, of_all;
  fmt::print("| Kernel | none, ms | memory, ms | all, ms | Ratios |\n|---|---|---|---|---|\n");
  for (int i = 0; i < count; ++i) {
    const auto manifest = read_manifest(manifests[i]);
    if (!manifest) {
      std::cerr << manifest.diags().text();
      return 2;
    }
    const double none = milliseconds(*manifest, Checks::none),
                 memory = milliseconds(*manifest, Checks::memory),
                 all = milliseconds(*manifest, Checks::all);
    if (!std::isfinite(none) || !std::isfinite(memory) || !std::isfinite(all)) return 2;
    fmt::print("| {} ({}) | {:.1f} | {:.1f} | {:.1f} | {:.1f}, {:.1f} |\n", manifest->kernel,
               manifests[i], none, memory, all, memory / none, all / none);
    of_memory.add(memory / none);
    of_all.add(all / none);
  }
  fmt::print("| geometric mean, worst | | | | memory {}; all {} |\n", of_memory.text(),
             of_all.text());
  return 0;
}

}  // namespace
}  // namespace tartan

int main(int argc, char** argv) {
  if (argc > 1) return tartan::measure(argc - 1, argv + 1);
  std::cerr << "checks_cost MANIFEST...\n";
  return 2;
}
