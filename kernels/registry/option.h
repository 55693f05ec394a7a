// SPDX-License-Identifier: Apache-2.0
// kernels/registry/option.h - options by name, for a command line and for JSON: "m" is --m of
// `tartan emit` and a key of the object that tartan_compile() of tartan/c.h takes.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::builtins {

/// An option, and where its value goes.
struct Option {
  /// Where the value goes, which also says what it may be: a number, a word, yes or no, a list of
  /// words. It holds the default until then.
  using Value = std::variant<int*, double*, std::string*, bool*, std::vector<std::string>*>;
  std::string name;  // "head-dim"
  Value value;
  std::string help = {};
  std::string group = {};  // its heading in the help
  bool shows_default = false;
  std::string default_text = {};  // to show, if the stored one is empty
};

}  // namespace tartan::TARTAN_ABI::builtins
