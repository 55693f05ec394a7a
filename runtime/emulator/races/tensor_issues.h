// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/tensor_issues.h - what a block's threads have issued to its tensor core:
// accumulators, whose order the manual leaves open where they overlap and are not the same, and
// what the collector keeps.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "runtime/emulator/machine/observers.h"
#include "runtime/emulator/races/numbers.h"
#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

struct TensorIssues {
  struct Product {
    TensorIssue issue;
    Epoch who;
    std::uint32_t thread = 0, pc = 0;
  };

  std::vector<Product> accumulators;  // the last product of each place and shape
  Product filled;                     // what the collector keeps: of a product with ::fill
  bool keeps = false;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> last;  // by warp, lane: a time
};

}  // namespace tartan::TARTAN_ABI::emulator
