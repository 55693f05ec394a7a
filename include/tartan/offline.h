// SPDX-License-Identifier: Apache-2.0
// tartan/offline.h - kernels compiled when a program is built: the main() of a generator, which
// writes PTX, a header with typed functions that prepare launches, and a bundle.
//
//   int main(int argc, char** argv) {
//     return tartan::offline_main(argc, argv, {product(), scale()});
//   }
//
//   $ generate --target sm_80 --target sm_90a --name kernels --header kernels.h --bundle
//   kernels.fatbin
//
// tartan_add_ptx() of the CMake package builds and runs one: docs/offline.md.
#pragma once

#include <vector>

#include "tartan/dsl/kernel.h"

namespace tartan::TARTAN_ABI {

/// Compiles every kernel for every target of the command line, and writes what it asks for; --help
/// lists the options. A target's kernels are one module. Every mistake is reported on standard
/// error, at its C++ line; files are written only if all kernels compile, each by an atomic rename.
/// The same kernels, options and Tartan give the same bytes on any machine.
///
/// Returns the exit code: 0 written, 1 a kernel does not compile, 2 invalid arguments, or a file
/// that cannot be written.
int offline_main(int argc, const char* const* argv, const std::vector<Kernel>& kernels);

}  // namespace tartan::TARTAN_ABI
