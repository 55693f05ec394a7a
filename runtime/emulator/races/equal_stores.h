// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/equal_stores.h - the places where threads that nothing orders store the
// same value.
//
// The race detector remembers the last store to a place, and finds that another one stores the same
// over it. That does no harm, but the store before the last may have been of another value, and in
// another order that would be the last. So where all schedules are asked for, a launch is run again
// and all its stores to such places are compared, each with each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "runtime/emulator/races/past.h"
#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

class EqualStores {
 public:
  struct Store {
    Past past;
    std::uint64_t first = 0;
    std::vector<std::byte> value;  // empty: not known
    std::uint64_t bytes = 0;
    /// Whether both leave the same in the bytes that both write.
    bool agrees(const Store& other) const;
  };

  /// Such a race was found there. Spaces of memory: ClusterRaces::place_of().
  void watch(std::uint64_t space, std::uint64_t first, std::uint64_t bytes);
  /// Whether there are places that the last run did not look at yet.
  bool grew() const { return grew_; }
  /// Another run begins.
  void begin();
  bool empty() const { return places_.empty(); }
  /// Calls body(earlier store) for those to the same bytes, then keeps it: in place of those for
  /// which the body says so. Nothing where the place is not looked at.
  template <typename Body>
  void add(std::uint64_t space, const Store& store, Body&& body) {
    for (std::uint64_t at = store.first / chunk; at <= (store.first + store.bytes - 1) / chunk;
         ++at) {
      const auto found = places_.find({space, at});
      if (found == places_.end()) continue;
      std::erase_if(found->second, body);
      found->second.push_back(store);
    }
  }

 private:
  static constexpr std::uint64_t chunk = 16;  // bytes

  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<Store>> places_;
  bool grew_ = false;
};

}  // namespace tartan::TARTAN_ABI::emulator
