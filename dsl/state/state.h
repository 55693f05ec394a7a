// SPDX-License-Identifier: Apache-2.0
// dsl/state/state.h - a kernel under description: the state shared by Builder, Scalar and Fragment.
// Not installed.
//
// KernelState checks whose calls a kernel accepts, and turns numbers into registers. Its parts, and
// functions that take it or the parts they need, do everything else: dsl/layout/addressing.h,
// dsl/layout/fragments.h, dsl/value/indices.h, dsl/state/operations.h, dsl/state/scalars.h,
// dsl/layout/shared_memory.h.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <source_location>
#include <string_view>

#include "compiler/ir/function_builder.h"
#include "dsl/state/cluster_state.h"
#include "dsl/state/configuration.h"
#include "dsl/state/handles.h"
#include "dsl/state/in_flight.h"
#include "dsl/state/lanes.h"
#include "dsl/state/launch_interface.h"
#include "dsl/state/log.h"
#include "dsl/state/memory.h"
#include "dsl/state/names.h"
#include "dsl/state/register_budget.h"
#include "dsl/state/role_state.h"
#include "dsl/state/stage_checks.h"
#include "dsl/state/tensor_sums.h"
#include "tartan/dsl/kernel.h"

namespace tartan::TARTAN_ABI::detail {

struct KernelState : std::enable_shared_from_this<KernelState> {
  KernelState(const Kernel& kernel, const Target& target);

  Configuration config;
  Log log;
  std::unique_ptr<ir::FunctionBuilder> function;  // gone once the kernel is compiled
  Names names;
  LaunchInterface launch;
  Memories memories;
  ClusterState cluster;
  RoleState roles;
  Fill* fill = nullptr;              // the callback under description
  bool has_wgmma = false;            // some product is by wgmma
  bool has_tensor_products = false;  // or by tcgen05
  /// Whether products read shared memory by the async proxy.
  bool has_async_products() const { return has_wgmma || has_tensor_products; }
  StageChecks stages;
  RegisterBudget registers;
  TmaStaging staging;
  std::map<int, int> exchange;  // memories through which warps reduce, by warpgroup; -1: all
  int conditions = 0;           // of the user's, around the current call
  ThreadValues threads;
  Partial partial;
  Flights flights;
  TensorSums tensor_sums;
  std::map<int, Place> assignments;  // by C++, of numbers from outside: the last, by body
  std::set<int> widened;             // values that a read made of an element of s8 or u8
  std::set<int> assignments_told;    // bodies of which check_assigned() has reported one

  // -- Ownership of calls and handles.

  /// Every Builder call starts here: records the place for diagnostics, choices and .loc.
  void at(const std::source_location& here);
  /// Whether a handle was made by this kernel; reports if not. Handles of refused calls (no state)
  /// fail silently: they were reported.
  template <typename Handle>
  bool owns(const Handle& handle, std::string_view what) {
    return owns_state(state_of(handle), what);
  }
  bool owns(const Scalar& scalar, std::string_view what);
  bool owns_state(const std::shared_ptr<KernelState>& state, std::string_view what);
  /// Whether this thread describes this kernel: it is not finished, and no other compilation runs
  /// inside its description. Calls to any other kernel have no effect.
  bool is_described() const;
  /// The same; reports a call to another kernel, to the kernel under description.
  bool takes_calls(std::string_view what);
  /// Starts a call of a handle: at() of its kernel, if the kernel accepts calls. Handles of refused
  /// calls (no state) fail silently.
  static bool begins(const std::shared_ptr<KernelState>& state, const std::source_location& here);
  /// Whether a scalar of this kernel may be an index or a trip count; reports if not.
  bool is_index(const Scalar& scalar, std::string_view what);
  /// Whether a scalar of this kernel is a condition; reports if not.
  bool is_condition(const Scalar& scalar);
  /// Whether a body is given; reports if not.
  bool has_body(bool given, std::string_view what);

  // -- Numbers and registers.

  Scalar scalar(ir::Value value, std::int64_t multiple = 1, std::uint64_t ones = ~std::uint64_t{0});
  /// The value as `type` (none: its own; u32 for constants), with constants and addends
  /// materialised.
  ir::Value value(const Scalar& scalar, Type type = Type::none);
  /// Reports a number that C++ has assigned in a body that is over: the GPU would not see that.
  void check_assigned(const Scalar& scalar);
  ir::Value dynamic(const Scalar& scalar);  // without its addend; invalid for constants
  /// Whether a value of `type` can hold the constant, signed or not; reports if not.
  bool fits(std::int64_t constant, Type type);

  /// Where code is added; code of calls without effect is discarded.
  ir::FunctionBuilder& f() { return is_described() ? *function : nowhere(); }

 private:
  ir::FunctionBuilder& nowhere();
  std::unique_ptr<ir::FunctionBuilder> discarded;  // receives the code of calls without effect
};

/// An expression on that line of the user is described; lines of this library and of the standard
/// library's headers, which compute on behalf of a call, are not heeded.
void note_line(const std::source_location& here);

/// Whether a variable was made; else a diagnostic.
bool is_made(const std::shared_ptr<KernelState>& state, std::string_view what);

/// While it exists, this thread describes that kernel.
class Description {
 public:
  explicit Description(KernelState& kernel);
  ~Description();
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  static KernelState* current();  // null if this thread describes none

 private:
  KernelState* before_;
};

}  // namespace tartan::TARTAN_ABI::detail
