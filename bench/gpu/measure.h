// SPDX-License-Identifier: Apache-2.0
// bench/gpu/measure.h - races kernels on a GPU, in one process, in shuffled rounds.
//
// "cool": one launch after 40 ms of rest and one untimed launch. "hot": 20 launches back to back,
// or 5 of graphs. Figures are medians over the rounds.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/gpu/driver.h"
#include "bench/gpu/figures.h"
#include "tartan/kernels/kernels.h"
#include "tartan/runtime/device.h"

namespace gpu {

/// The value; on an error, prints the diagnostics and exits.
template <typename T>
T must(tartan::Result<T> result);
[[noreturn]] void give_up(const tartan::Diags& diags);
inline void must(tartan::Status status) {
  if (!status) give_up(status.diags());
}
template <typename T>
T must(tartan::Result<T> result) {
  if (!result) give_up(result.diags());
  return std::move(*result);
}

/// A device, the stream of all work, and the run's results.
struct Session {
  Session(int argc, char** argv, const std::string& device_name);
  tartan::Device device;
  tartan::Stream stream;
  Driver driver;
  Run run;
};

/// A contestant of a race: `launch` does `products` times the work that the figure counts.
struct Contestant {
  Figure figure;
  std::function<void()> launch;
  int products = 1;
};

/// Seconds per launch, of `count` consecutive launches.
double seconds(Session& session, const std::function<void()>& launch, int count);

void measure(Session& session, std::vector<Contestant>& contestants, int rounds);

/// Prints the table and keeps it in the session's run.
void report(Session& session, std::string title, std::string how,
            const std::vector<Contestant>& contestants);

/// A compiled kernel for repeated launches, with one of several sets of arguments.
class Runner {
 public:
  static tartan::Result<Runner> make(tartan::Device& device, const tartan::Kernel& kernel,
                                     tartan::Dim3 grid);
  tartan::Status add(const tartan::Arguments& arguments);
  tartan::Status launch(const tartan::Stream& stream, std::size_t set = 0);
  /// Launches may begin before the one in front of them has ended, where the kernel waits for it.
  void overlap() { launch_.programmatic = compiled_.target.arch.sm >= 90; }
  double compile_ms() const { return compile_ms_; }
  int shared_bytes() const { return compiled_.dynamic_shared + compiled_.shared_bytes; }

 private:
  Runner() = default;
  tartan::Compiled compiled_;
  double compile_ms_ = 0;
  std::optional<tartan::LoadedKernel> kernel_;
  tartan::Launch launch_;
  std::vector<tartan::Arguments> arguments_;
};

/// The target for kernels that are measured on `device`: all that this GPU supports.
tartan::Target target_of(const tartan::Device& device);

/// The ceiling: a kernel of only this instruction, on registers.
class Ceiling {
 public:
  static std::optional<Ceiling> make(Session& session, std::string_view spelling);
  Contestant contestant(Session& session, std::string name);

 private:
  Ceiling(tartan::Buffer sink, Runner runner, double operations)
      : sink_(std::move(sink)), runner_(std::move(runner)), operations_(operations) {}
  tartan::Buffer sink_;
  Runner runner_;
  double operations_;
};

}  // namespace gpu
