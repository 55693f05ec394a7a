// SPDX-License-Identifier: Apache-2.0
// tests/mutation/builtin_runs.h - subjects of built-in kernels: runs of what is compiled here, and
// that one run decides all schedules.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "runtime/emulator/schedules/exploration.h"
#include "tartan/kernels/kernels.h"
#include "tartan/tartan.h"
#include "tests/mutation/subjects.h"

namespace tartan::mutation {

/// An argument: a scalar, or a buffer of so many bytes.
struct Argument {
  Bytes scalar;
  std::size_t bytes = 0;
  bool output = false;
  Bytes contents = {};  // empty: numbers
};

inline Argument scalar(auto value) {
  Argument out;
  out.scalar.resize(sizeof value);
  std::memcpy(out.scalar.data(), &value, sizeof value);
  return out;
}
inline Argument in(std::int64_t bytes) { return {.bytes = static_cast<std::size_t>(bytes)}; }
inline Argument out(std::int64_t bytes) {
  return {.bytes = static_cast<std::size_t>(bytes), .output = true};
}

/// A run of a compiled kernel: numbers of 16 or 32 bits as inputs, outputs filled with 0xA5.
inline Run run_of(const Compiled& compiled, Dim3 grid, const std::vector<Argument>& arguments) {
  Run run{.launch = {.grid = grid,
                     .block = {static_cast<std::uint32_t>(compiled.block)},
                     .dynamic_shared = static_cast<std::uint32_t>(compiled.dynamic_shared)}};
  EXPECT_EQ(arguments.size(), compiled.params.size()) << compiled.name;
  unsigned seed = 1;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& each = arguments[i];
    if (!each.scalar.empty()) continue;
    const std::size_t size = std::max<std::size_t>(each.bytes, 16);
    run.buffers.push_back(each.output ? Bytes(size, std::byte{0xA5})
                          : each.contents.empty()
                              ? numbers(size, bits(compiled.params[i].type), ++seed)
                              : each.contents);
  }
  run.arguments = [compiled, arguments](const std::vector<Buffer>& buffers) -> Result<Arguments> {
    Arguments out;
    std::size_t next = 0;
    for (const Argument& each : arguments) {
      if (each.scalar.empty()) out.add(buffers[next++]);
      else out.add_bytes(each.scalar);
    }
    return arguments_of(compiled, out);
  };
  return run;
}

inline Compiled compiled_for(const Kernel& kernel, const char* target) {
  auto out = compile(kernel, *Arch::parse(target));
  EXPECT_TRUE(out) << (out ? "" : out.diags().text());
  return std::move(*out);
}

inline Subject subject_of(const std::string& name, const Compiled& compiled,
                          std::vector<Run> runs) {
  return {name, compiled.ptx, compiled.name, "", std::move(runs)};
}

inline std::int64_t bytes_of(Type type, std::int64_t count) { return (count * bits(type) + 7) / 8; }

/// Nothing stands in the way of one run's decision of all schedules. TARTAN_TIMES prints how long
/// it took.
inline void expect_decided(const Subject& subject) {
  for (std::size_t i = 0; i < subject.runs.size(); ++i) {
    const auto exploration = std::make_shared<detail::Exploration>();
    exploration->proves = true;
    const auto start = std::chrono::steady_clock::now();
    const Observation seen =
        observe(subject, subject.ptx, subject.runs[i], 10'000'000, exploration);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_FALSE(seen.after.empty()) << subject.name << ": " << seen.message;
    std::string text;
    for (const detail::Obstacle& each : exploration->obstacles) text += "\n" + each.text;
    EXPECT_EQ(text, "") << subject.name << ", run " << i;
    if (std::getenv("TARTAN_TIMES"))
      fmt::print("{:6.2f} s {}, run {}\n", took.count(), subject.name, i);
  }
}

}  // namespace tartan::mutation
