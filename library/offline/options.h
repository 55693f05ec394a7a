// SPDX-License-Identifier: Apache-2.0
// library/offline/options.h - the command line of a generator. Not installed.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tartan/isa/target.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::offline {

struct Options {
  std::vector<Arch> targets;
  std::optional<Version> ptx;
  std::string name;                     // of the module
  std::string folder;                   // of FOLDER/NAME.TARGET.ptx
  std::string header, bundle, depfile;  // files; empty: none
  std::string root;                     // source files below it are named relative to it
  std::string ptxas;                    // the assembler; empty: no cubins
  bool list = false;
};

/// Help was printed.
struct Helped {};

/// The options; else mistakes of rule "usage", all of them.
Result<std::variant<Options, Helped>> parse(int argc, const char* const* argv);

}  // namespace tartan::TARTAN_ABI::offline
