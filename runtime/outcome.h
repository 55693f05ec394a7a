// SPDX-License-Identifier: Apache-2.0
// runtime/outcome.h - running a manifest, and what came of it.
#pragma once

#include <string>
#include <vector>

#include "runtime/manifest.h"

namespace tartan::inline TARTAN_ABI {

/// One buffer against its expected contents.
struct Expectation {
  std::string buffer;
  Comparison comparison;
  Difference difference;
  bool ok() const { return difference.mismatched == 0; }
};

struct Outcome {
  std::string manifest, ptx;  // the names of their texts
  std::string device;         // name of the device, once there is one
  std::string remark;         // on its choice: Device::remark()
  bool emulated = false;
  Diags refused;  // why the run could not start or be judged: the manifest, a file, the device, the
                  // launch
  Diags warnings;  // what the device does not know in parts of the module that do not run
  std::vector<Finding> findings;          // what is wrong with the kernel: its text, traps, faults
  std::vector<Expectation> expectations;  // in the order of the parameters; empty where the kernel
                                          // did not come to its end
  Report report;

  /// 0: every expectation holds; 1: one does not; 2: refused; 3: the kernel trapped, or a check
  /// found a defect.
  int exit_code() const;
  /// One line an expectation; with `with_report`, what the emulator counted.
  std::string text(bool with_report) const;
  /// A line on the least known arithmetic that the results rest on (NumericTrust); empty where
  /// every bit was recorded on that hardware, or is defined.
  std::string trust_note() const;
  /// That, what was refused and what was found, a line each.
  std::string complaints(bool colour) const;
  /// {"findings":[...],"expectations":[...],"report":{...}}; what was refused stands among the
  /// findings.
  std::string json() const;
};

/// Checks the PTX, loads it on the device called `device` (see Device::open), launches the kernel
/// once and compares. `options.hardware`, where it is not empty, goes before the manifest's.
Outcome run(const Manifest& manifest, const std::string& device, DeviceOptions options = {});

/// The outcome of a manifest that could not be read.
Outcome refused(Diags diags);

}  // namespace tartan::inline TARTAN_ABI
