// SPDX-License-Identifier: Apache-2.0
// compiler/support/option.h - options by name, for a command line and for JSON: "m" is --m of
// `tartan emit` and a key of the object that tartan_compile() of tartan/c.h takes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::detail {

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

/// Stores the members of a JSON object in the options of their names: {"m": 0, "type": "bf16",
/// "causal": true, "epilogue": ["bias", "gelu"]}; "" is an empty object. Returns the names, or a
/// usage error for each member that is unknown, of another type or an empty string, which would
/// mean the same as no member. It begins with `what`.
Result<std::vector<std::string>> read_json(std::span<const Option> options, std::string_view json,
                                           std::string_view what);

}  // namespace tartan::TARTAN_ABI::detail
