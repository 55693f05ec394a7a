// SPDX-License-Identifier: Apache-2.0
// dsl/state.h - a kernel while it is described: what Builder, Scalar and Fragment share. Not
// installed.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/function_builder.h"
#include "dsl/handles.h"
#include "dsl/in_flight.h"
#include "dsl/launch_numbers.h"
#include "dsl/log.h"
#include "dsl/memory.h"
#include "dsl/role_state.h"
#include "dsl/tensor_maps.h"
#include "tartan/dsl/builder.h"
#include "tartan/isa/instruction.h"

namespace tartan::inline TARTAN_ABI::detail {

/// Names of kernels, parameters and shared matrices become PTX identifiers (PTX ISA 4.4).
bool is_identifier(std::string_view name);
inline constexpr std::string_view identifier_rule =
    "expected letters, digits, _ and $, not starting with a digit, and not _, $ or WARP_SZ";

struct KernelState : std::enable_shared_from_this<KernelState> {
  KernelState(const Kernel& kernel, const Target& target);

  Target target;
  KernelOptions options;
  std::unique_ptr<codegen::FunctionBuilder> function;  // gone once the kernel is compiled
  std::vector<CompiledParam> params;
  Memories memories;
  std::vector<std::string> names;  // of parameters and shared matrices
  Log log;
  RoleState roles;
  StageFill fill;
  TensorMaps tensor_maps;
  TmaStaging staging;
  LaunchNumbers launch_numbers;
  Flights flights;

  // -- Every Builder call begins here: notes the place for diagnostics, choices and .loc.
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
  bool has_body(bool given, std::string_view what);
  bool fresh_name(const std::string& name, std::string_view what);
  std::string unused_name(std::string name);  // this one, or with _ behind it

  Scalar scalar(codegen::Value value, std::int64_t multiple = 1,
                std::uint64_t ones = ~std::uint64_t{0});
  /// The value as `type` (none: its own; u32 for constants), constants and addends materialised.
  codegen::Value value(const Scalar& scalar, Type type = Type::none);
  codegen::Value dynamic(const Scalar& scalar);  // without its addend; invalid for constants
  /// Whether a value of `type` can be the constant, signed or not; reports if not.
  bool fits(std::int64_t constant, Type type);

  bool has_copy_engine() const { return target.arch.sm >= 90 && target.ptx >= Version{8, 0}; }
  /// Of the blocks of a cluster, which this one is.
  Scalar block_of_cluster();
  /// Whether producers give registers to consumers (setmaxnreg): whole warpgroups on sm_90a, one
  /// block on a multiprocessor.
  bool moves_registers() const {
    return target.arch.text() == "sm_90a" && options.producers > 0 && options.producers % 4 == 0 &&
           options.block % 128 == 0 && options.min_blocks <= 1 && options.max_registers == 0;
  }
  /// How many a thread has, of those who compute.
  int registers() const;
  int all_threads() const { return options.block + 32 * options.producers; }
  int threads() const;  // of the role
  Scalar thread();      // within the role
  codegen::Value lane();
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
