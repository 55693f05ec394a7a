// SPDX-License-Identifier: Apache-2.0
// dsl/state.h - a kernel while it is described: what Builder, Scalar and Fragment share. Not
// installed.
//
// KernelState says whose calls a kernel takes, and turns numbers into registers. All else belongs
// to its parts, and to functions that take it or the parts they need: dsl/addressing.h,
// dsl/fragments.h, dsl/indices.h, dsl/operations.h, dsl/scalars.h, dsl/shared_memory.h.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <source_location>
#include <string_view>

#include "compiler/codegen/function_builder.h"
#include "dsl/configuration.h"
#include "dsl/handles.h"
#include "dsl/in_flight.h"
#include "dsl/launch_interface.h"
#include "dsl/log.h"
#include "dsl/memory.h"
#include "dsl/names.h"
#include "dsl/role_state.h"
#include "tartan/dsl/kernel.h"

namespace tartan::inline TARTAN_ABI::detail {

struct KernelState : std::enable_shared_from_this<KernelState> {
  KernelState(const Kernel& kernel, const Target& target);

  Configuration config;
  Log log;
  std::unique_ptr<codegen::FunctionBuilder> function;  // gone once the kernel is compiled
  Names names;
  LaunchInterface launch;
  Memories memories;
  RoleState roles;
  StageFill fill;
  TmaStaging staging;
  Flights flights;

  // -- Whose calls and handles.

  /// Every Builder call begins here: notes the place for diagnostics, choices and .loc.
  void at(const std::source_location& here);
  /// Whether a handle was made by this kernel; reports if not. Handles of refused calls (no state)
  /// fail silently: they were reported.
  template <typename Handle>
  bool owns(const Handle& handle, std::string_view what) {
    return owns_state(state_of(handle), what);
  }
  bool owns_state(const std::shared_ptr<KernelState>& state, std::string_view what);
  /// Whether this is the kernel that the thread describes: no finished one, and none within whose
  /// description another one is compiled. Others take calls to no effect.
  bool is_described() const;
  /// The same; reports what belongs to another kernel, to the one that is described.
  bool takes_calls(std::string_view what);
  /// How calls of handles begin: at() of their kernel, if it takes calls. Handles of refused calls
  /// (no state) fail silently.
  static bool begins(const std::shared_ptr<KernelState>& state, const std::source_location& here);
  /// Whether a scalar of this kernel may count elements or rounds; reports if not.
  bool is_index(const Scalar& scalar, std::string_view what);
  /// Whether there is a function to call; reports if not.
  bool is_condition(const Scalar& scalar);
  bool has_body(bool given, std::string_view what);

  // -- Numbers and registers.

  Scalar scalar(codegen::Value value, std::int64_t multiple = 1,
                std::uint64_t ones = ~std::uint64_t{0});
  /// The value as `type` (none: its own; u32 for constants), constants and addends materialised.
  codegen::Value value(const Scalar& scalar, Type type = Type::none);
  codegen::Value dynamic(const Scalar& scalar);  // without its addend; invalid for constants
  /// Whether a value of `type` can be the constant, signed or not; reports if not.
  bool fits(std::int64_t constant, Type type);

  /// Where code is added; what calls to no effect add goes nowhere.
  codegen::FunctionBuilder& f() { return is_described() ? *function : nowhere(); }

 private:
  codegen::FunctionBuilder& nowhere();
  std::unique_ptr<codegen::FunctionBuilder> unheard;  // what calls to no effect build
};

/// While it lives, this thread describes that kernel.
class Description {
 public:
  explicit Description(KernelState& kernel);
  ~Description();
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  static KernelState* current();  // null where nobody describes any

 private:
  KernelState* before_;
};

}  // namespace tartan::inline TARTAN_ABI::detail
