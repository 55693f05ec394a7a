// SPDX-License-Identifier: Apache-2.0
// bench/gpu_measure.h - kernels against each other on a GPU, in one process, in shuffled rounds.
//
// "cool": one launch after 40 ms of rest and one untimed launch. "hot": 20 launches back to back.
// Figures are medians over the rounds.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include <tartan/tartan.h>

namespace gpu {

template <typename T>
T must(tartan::Result<T> result) {
  if (result) return std::move(*result);
  std::cerr << result.diags().text();
  std::exit(1);
}

struct Entry {
  std::string name;
  std::function<void()> launch;
  double operations;
  std::vector<double> cool, hot;  // TFLOP/s
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

inline double seconds(tartan::Device& device, const std::function<void()>& launch, int count) {
  tartan::Event begin = must(device.event()), end = must(device.event());
  (void)begin.record();
  for (int i = 0; i < count; ++i) launch();
  (void)end.record();
  return must(end.milliseconds_since(begin)) / 1000 / count;
}

inline void measure(tartan::Device& device, std::vector<Entry>& entries, int rounds) {
  std::mt19937 random(1);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Entry*> order;
    for (Entry& entry : entries) order.push_back(&entry);
    std::shuffle(order.begin(), order.end(), random);
    for (Entry* entry : order) {
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      entry->launch();
      entry->cool.push_back(entry->operations / seconds(device, entry->launch, 1) / 1e12);
      entry->hot.push_back(entry->operations / seconds(device, entry->launch, 20) / 1e12);
    }
  }
}

/// A compiled kernel, ready to be launched again and again.
class Runner {
 public:
  Runner(tartan::Device& device, const tartan::Kernel& kernel, tartan::Dim3 grid,
         tartan::Arguments arguments)
      : arguments_(std::move(arguments)) {
    const auto begin = std::chrono::steady_clock::now();
    // What this very GPU has, other GPUs or not.
    tartan::Arch arch = device.arch();
    if (arch.sm >= 90) arch.suffix = 'a';
    compiled_ = must(tartan::compile(kernel, tartan::Target::of(arch)));
    compile_ms_ =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    kernel_.emplace(must(must(device.load(compiled_.ptx, compiled_.name)).kernel(compiled_.name)));
    arguments_ = must(tartan::arguments_of(compiled_, arguments_));
    launch_ = {.grid = grid,
               .block = {static_cast<unsigned>(compiled_.block)},
               .dynamic_shared = static_cast<unsigned>(compiled_.dynamic_shared)};
  }
  void operator()() {
    if (const auto status = kernel_->launch(launch_, arguments_); !status) {
      std::cerr << status.diags().text();
      std::exit(1);
    }
  }
  double compile_ms() const { return compile_ms_; }
  int shared_bytes() const { return compiled_.dynamic_shared + compiled_.shared_bytes; }

 private:
  tartan::Arguments arguments_;
  tartan::Compiled compiled_;
  double compile_ms_ = 0;
  std::optional<tartan::LoadedKernel> kernel_;
  tartan::Launch launch_;
};

/// The ceiling: a kernel of nothing but this instruction, from registers.
struct Ceiling {
  Ceiling(tartan::Device& device, std::string_view spelling)
      : sink(must(device.allocate(std::size_t{blocks} * options.block * 8))),
        run(device, tartan::kernels::mma_probe(spelling, options), {blocks},
            tartan::Arguments().add(rounds).add(sink)),
        operations(tartan::kernels::probe_operations(spelling, options, blocks, rounds)) {}

  static constexpr tartan::kernels::Probe options{.block = 256, .accumulators = 16};
  static constexpr unsigned blocks = 132 * 8;
  static constexpr int rounds = 8000;
  tartan::Buffer sink;
  Runner run;
  double operations;
};

/// One line for each entry; ratios to those whose names begin with the words in `peers`.
inline void print(std::string_view title, const std::vector<Entry>& entries,
                  std::initializer_list<std::string_view> peers) {
  fmt::print("\n{}\n{:<32}{:>8}{:>8}", title, "TFLOP/s", "cool", "hot");
  std::vector<double> rates;
  for (const std::string_view peer : peers) {
    double rate = 0;
    for (const Entry& entry : entries)
      if (entry.name.starts_with(peer)) rate = median(entry.cool);
    rates.push_back(rate);
    fmt::print("{:>14}", fmt::format("of {}", peer));
  }
  fmt::print("\n");
  for (const Entry& entry : entries) {
    fmt::print("{:<32}{:>8.0f}{:>8.0f}", entry.name, median(entry.cool), median(entry.hot));
    for (const double rate : rates) fmt::print("{:>14.3f}", rate ? median(entry.cool) / rate : 0);
    fmt::print("\n");
  }
  std::cout.flush();
}

}  // namespace gpu
