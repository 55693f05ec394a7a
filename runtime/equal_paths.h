// SPDX-License-Identifier: Apache-2.0
// runtime/equal_paths.h - the choices of `tartan equal`'s kernels that went one way in all draws.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/equal_launch.h"

namespace tartan::TARTAN_ABI::detail {

class TakenPaths {
 public:
  /// What a run of that text decided.
  void add(const EqualRun& run, const Source& ptx);
  /// In the order of the texts.
  std::vector<EqualPath> one_way() const;

 private:
  struct Choice {
    const Source* ptx = nullptr;
    std::uint8_t sides = 0;
  };
  std::map<std::tuple<std::string, int, std::string>, Choice> choices_;  // text, line, instruction
};

}  // namespace tartan::TARTAN_ABI::detail
