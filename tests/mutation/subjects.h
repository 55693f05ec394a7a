// SPDX-License-Identifier: Apache-2.0
// tests/mutation/subjects.h - the kernels that are mutated, each with one launch, and what a launch
// of a text gives.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tartan/runtime/device.h"

namespace tartan::mutation {

using Bytes = std::vector<std::byte>;

/// One launch of a kernel.
struct Run {
  Launch launch;
  std::vector<Bytes> buffers;  // what they hold before
  std::function<Result<Arguments>(const std::vector<Buffer>&)> arguments;
};

/// A kernel and its launches.
struct Subject {
  std::string name, ptx, kernel, hardware;
  std::vector<Run> runs;
};

/// What tartan check says of a line; mutants keep the lines.
struct Warning {
  std::string id;
  int line = 0;
  bool operator==(const Warning&) const = default;
};

/// What a launch gave.
struct Observation {
  bool refused = false;            // by tartan check, or by the engine: nothing ran
  std::vector<std::string> ids;    // of what was found or refused, each once
  std::vector<Warning> warnings;   // of tartan check
  std::string message;             // the first finding
  std::vector<Bytes> after;        // the buffers; empty where the kernel did not come to its end
  std::uint64_t instructions = 0;  // of warps
};

/// Launches the text under all checks, on this thread alone. `max_steps`: of one warp.
/// `exploration`: what one run says of all schedules.
Observation observe(const Subject& subject, const std::string& ptx, const Run& run,
                    std::uint64_t max_steps,
                    std::shared_ptr<detail::Exploration> exploration = nullptr);

/// Another launch of a recorded kernel, with some arguments changed: awkward sizes.
struct Variant {
  std::string subject;
  std::map<std::size_t, std::int64_t> scalars;  // by parameter
  Dim3 grid{0, 0, 0};                           // zero: the manifest's
  std::map<std::size_t, std::size_t> bytes;     // of buffers, by parameter: cut to these
  Dim3 block{0, 0, 0};                          // zero: the manifest's
};

/// A subject for each manifest in the folders of `folder`, of tests/data.
std::vector<Subject> recorded_subjects(const std::string& folder,
                                       const std::vector<Variant>& variants);

/// `size` bytes of floating-point numbers of `bits` (32 or else 16) that are neither small nor
/// large, or of any bits.
Bytes numbers(std::size_t size, int bits, unsigned seed);

}  // namespace tartan::mutation
