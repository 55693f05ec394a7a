// SPDX-License-Identifier: Apache-2.0
// tools/explore/page.h - the page of a kernel: its model as JSON, and the model inside HTML.
//
// Each part of the page has a function here and a file of its own, and each part of the model a
// script that draws it (page.js and those beside it). The model says only what other commands say,
// too: `check`, `run --report`, `layout`, `emit --explain`.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/manifest.h"
#include "runtime/outcome.h"
#include "tartan/ptx/tree.h"
#include "tartan/support/source.h"

namespace tartan::tools::explore {

using Json = nlohmann::ordered_json;

/// A decision that made the text, as `emit --explain` prints it; from a file of PTX, what its
/// comments keep of that.
struct Decision {
  std::string file;  // "../../kernels/gemm/gemm.cc", or the last part of it
  int line = 0;
  std::string what, taken, reason;
  std::vector<std::string> refused;
};

/// What a page is about.
struct Subject {
  std::string title;                  // the kernel's name, or the file's
  std::shared_ptr<const Source> ptx;  // its text
  std::optional<Manifest> manifest;   // how it is launched on the emulator
  std::string not_run;                // without that: why not
  std::vector<Decision> decisions;
};

/// Decisions among the comments at the start of a text that Tartan made.
std::vector<Decision> decisions_of_comments(std::string_view ptx);

/// All of the model, with what the checker says of the text and, where the subject can be launched,
/// the emulator.
struct Page {
  Json model;
  bool refused = false;    // the text is wrong, or cannot be run
  std::size_t errors = 0;  // that the page shows
  std::string first;       // the first of them
};
Page page_of(const Subject& subject, DeviceOptions options);

/// The model in one HTML document that loads nothing.
std::string html(const Page& page);

// ---- The parts.

/// {"name", "text", "at": [[file, line] of each line]}, where `file` is an index into the sources.
struct Code {
  Json ptx, sources, choices;
};
Code code_part(const Subject& subject, const ptx::Module& module);
/// Findings with their lines; of those that name a second access, its line too; of results that are
/// not as expected, which elements.
Json findings_part(const Subject& subject, const Diags& checked, const Outcome* outcome);
/// Matrix instructions: the lane maps of each form, and which registers each instruction has there.
Json matrices_part(const ptx::Module& module);
/// Matrices in shared memory, as the text's comments say: the place of each row and column, and the
/// swizzle. `first`: by name, where the emulator had them; without a run they begin at 0.
Json tiles_part(std::string_view ptx, const std::map<std::string, std::uint64_t>& first);
/// Numbers of the text and of the run, beside the hardware's limits.
Json report_part(const Subject& subject, const ptx::Module& module, const Outcome* outcome);
/// Registers and machine code, where NVIDIA's ptxas and nvdisasm are found, and are done within
/// that time; else what is missing. 0: some minutes.
Json machine_part(const Subject& subject, const Json& sources, double seconds);

/// A file that was put into this program when it was built; empty if no file has that name.
std::string_view embedded(std::string_view name);

}  // namespace tartan::tools::explore
