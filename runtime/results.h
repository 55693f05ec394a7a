// SPDX-License-Identifier: Apache-2.0
// runtime/results.h - what a manifest wants done with its buffers' results: files and text.
//
//   diags = save_results(manifest, outcome);       // "save"
//   fmt::print("{}", printed_results(manifest, outcome));   // "print"
//
//   y[0:2,0:4], f32 256x128:
//     0:  1.5   -2  0.25  3
//     1:  0.5   12     0  7
#pragma once

#include <string>

#include "runtime/outcome.h"

namespace tartan::TARTAN_ABI {

/// Writes the files, .npy where the buffer has a type, else its bytes. Of a run that did not end
/// there are no results, and a warning says that nothing was saved.
Diags save_results(const Manifest& manifest, const Outcome& outcome);

/// The parts that the manifest names, by rows of the last dimension. An element that the kernel did
/// not write, nor anybody else, is a question mark. Of more than 1024 elements the first and last
/// three of each dimension are shown.
std::string printed_results(const Manifest& manifest, const Outcome& outcome);

}  // namespace tartan::TARTAN_ABI
