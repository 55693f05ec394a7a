// SPDX-License-Identifier: Apache-2.0
// runtime/outcome.h - runs a manifest, and holds the outcome.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/manifest.h"

namespace tartan::TARTAN_ABI {

/// One buffer and its expected contents.
struct Expectation {
  std::string buffer;
  Comparison comparison;
  Difference difference;
  std::vector<std::uint64_t> shape;  // of the buffer, if its elements are those compared
  bool ok() const { return difference.mismatched == 0; }
};

struct Outcome {
  std::string manifest, ptx;  // the names of their texts
  std::string device;         // name of the device, once there is one
  std::string kernel;         // that was launched first
  std::string hardware;       // whose arithmetic the emulator reproduces: "sm_90"
  std::uint64_t blocks = 0;   // of all launches
  std::string remark;         // on its choice: Device::remark()
  bool emulated = false;
  Diags refused;  // why the run could not start or be judged: the manifest, a file, the device, the
                  // launch
  Diags warnings;  // what the device does not know in parts of the module that do not run
  std::vector<Finding> findings;          // what is wrong with the kernel: its text, traps, faults
  std::vector<Expectation> expectations;  // by parameter; empty if the kernel did not finish
  Report report;
  std::string schedules;   // which schedules were run, and what came of it; empty: the usual order
  bool undecided = false;  // not all that were asked for
  bool unchecked = false;  // nothing was compared, and that is an error (summary.h)
  std::string output;      // what the kernel printed, where that was collected
  std::string printed;     // what printed_results() (results.h) shows of the buffers
  std::size_t output_left_out = 0;                                      // bytes of it that were not
  std::vector<std::pair<std::string, std::vector<std::byte>>> results;  // what buffers hold then
  // What nobody has written of them: ranges from a byte on, of so many bytes.
  std::map<std::string, std::vector<std::pair<std::size_t, std::size_t>>> unwritten;
  // What stood in buffers that nobody had written, in a run that has something else there than
  // zeros.
  std::map<std::string, std::vector<std::byte>> unwritten_contents;
  bool ended = false;                    // every launch ran to its end, whatever was found
  RuleLevels levels;                     // as the user wants them
  std::shared_ptr<detail::Trial> trial;  // what the run has told for the second look at it

  /// The level of one of the findings; none: it is to be ignored.
  std::optional<Level> level(const Finding& finding) const;
  bool has_errors() const;
  /// 0: every expectation holds; 1: one does not; 2: refused; 3: the kernel trapped, or a check
  /// found a defect; 4: none of that, and not all schedules that were asked for were run.
  int exit_code() const;
  /// One line per expectation; with `with_report`, also the emulator's counters.
  std::string text(bool with_report) const;
  /// A line on the least trusted arithmetic of the results (NumericTrust); empty if every bit was
  /// recorded on that hardware, or is defined.
  std::string trust_note() const;
  /// The trust note, refusals and findings, one line each.
  std::string complaints(bool colour) const;
  /// {"findings":[...],"expectations":[...],"report":{...}}; refusals are among the findings.
  std::string json() const;
};

/// Checks the PTX, loads it on the device called `device` (see Device::open), launches the kernel
/// once, settles the levels of what is found (levels.h), and compares unless there is an error.
/// `options.hardware`, if not empty, overrides the manifest's; `options.timeout` bounds all its
/// launches together.
Outcome run(const Manifest& manifest, const std::string& device, DeviceOptions options = {},
            const RuleLevels& levels = {});

/// The same up to the results, which are compared with nothing.
Outcome launch_once(const Manifest& manifest, const std::string& device, DeviceOptions options);

/// The outcome of a manifest that could not be read.
Outcome refused(Diags diags);

}  // namespace tartan::TARTAN_ABI
