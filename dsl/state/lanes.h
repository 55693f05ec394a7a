// SPDX-License-Identifier: Apache-2.0
// dsl/state/lanes.h - conditions that surely differ between the threads of a block: those computed
// from the thread's index and constants alone (lane() < 16, warp() == 0). Not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include "tartan/isa/type.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::detail {

struct KernelState;

/// Who runs the code under description: everyone, as far as one knows; whole warps, but not all of
/// them; some lanes of a warp.
enum class Split : std::uint8_t { none, warps, lanes };

/// The strictest condition around the current call, and where it is.
struct Partial {
  Split split = Split::none;
  Place place = {};
  bool once = true;  // surely all threads of a block run the code, and once, or none does
};

/// Values that depend on the thread's index and constants alone.
class ThreadValues {
 public:
  using Fold = std::function<std::optional<std::int64_t>(std::int64_t, std::int64_t)>;
  /// A value plus a constant; without a value, the constant.
  struct Term {
    int value = -1;
    std::int64_t addend = 0;
  };

  /// The index of a thread, less `first`.
  void note_index(int value, int first) { nodes_[value] = {.first = first}; }
  void note(int value, Type type, Fold fold, Term x, Term y) {
    nodes_[value] = {type, std::move(fold), x, y, 0};
  }
  /// A value plus a constant in a thread; none: it depends on more than the thread's index.
  std::optional<std::int64_t> value(int value, std::int64_t addend, int thread) const {
    Known known;
    return nodes_.contains(value) ? at({value, addend}, u32, thread, known) : std::nullopt;
  }
  /// Whom of the threads `first` to `first + count` - 1 a condition lets pass.
  Split split(int condition, int first, int count) const;

 private:
  struct Node {
    Type type = u32;
    Fold fold = {};  // none: the thread's index
    Term x = {}, y = {};
    int first = 0;
  };
  using Known = std::map<int, std::optional<std::int64_t>>;
  std::optional<std::int64_t> at(const Term& term, Type type, int thread, Known& known) const;

  std::map<int, Node> nodes_;
};

/// Whether all lanes of a warp, or all threads, may reach a call; reports if they surely do not.
bool by_all_lanes(KernelState& state, std::string_view call);
bool by_all_threads(KernelState& state, std::string_view call);

}  // namespace tartan::TARTAN_ABI::detail
