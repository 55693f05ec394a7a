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
#include "dsl/in_flight.h"
#include "dsl/launch_numbers.h"
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
  Diags diags;
  std::vector<Choice> choices;
  std::vector<CompiledParam> params;
  std::vector<Memory> memories;
  std::vector<std::string> names;  // of parameters and shared matrices
  Version wanted;                  // the first with all that was refused for its version, if any
  bool looked_at_target = false;   // whether the description may depend on it otherwise
  std::int64_t shared_bytes = 0;
  Place place;  // of the call in progress
  std::source_location location;
  bool asynchronous = false;  // copies to shared memory go by cp.async where they can
  RoleState roles;
  StageFill fill;
  TensorMaps tensor_maps;
  TmaStaging staging;
  LaunchNumbers launch_numbers;

  // -- Every Builder call begins here: notes the place for diagnostics, choices and .loc.
  void at(const std::source_location& here);
  /// Once for each place: loops and fragments say the same many times.
  void report(const Rule& rule, std::string message);
  /// Notes that something refused would be there with a later PTX version.
  void would_take(const Since& since);
  /// Says from where on there is an instruction that the target lacks, and what is near.
  void refuse_target(const isa::Instruction& row);
  void choose(std::string what, std::string taken, std::string reason,
              std::vector<std::string> refused = {});
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

  // -- Scalars.
  Scalar scalar(codegen::Value value, std::int64_t multiple = 1,
                std::uint64_t ones = ~std::uint64_t{0});
  static std::uint64_t ones(const Scalar& x);  // the bits that may be set
  static Scalar bad();                         // the result of a refused operation
  static bool is_bad(const Scalar& scalar);
  /// The value as `type` (none: its own; u32 for constants), constants and addends materialised.
  codegen::Value value(const Scalar& scalar, Type type = Type::none);
  codegen::Value dynamic(const Scalar& scalar);  // without its addend; invalid for constants
  static std::int64_t addend(const Scalar& scalar) { return scalar.addend_; }
  static bool wraps(const Scalar& scalar) { return scalar.wraps_; }
  static const std::shared_ptr<KernelState>& state_of(const Scalar& scalar) {
    return scalar.state_;
  }
  static const std::shared_ptr<KernelState>& state_of(const Tensor& tensor) { return tensor.state; }
  static const std::shared_ptr<KernelState>& state_of(const Fragment& fragment) {
    return fragment.state_;
  }
  enum class Operator : std::uint8_t {
    add,
    subtract,
    multiply,
    divide,
    remainder,
    bit_and,
    bit_or,
    bit_xor,
    shift_left,
    shift_right,
    lt,
    le,
    gt,
    ge,
    eq,
    ne
  };
  static Scalar arithmetic(Operator op, const Scalar& x, const Scalar& y);
  /// Whether a value of `type` can be the constant, signed or not; reports if not.
  bool fits(std::int64_t constant, Type type);

  // -- Fragments.
  Fragment fragment(const FragmentKind& kind, std::vector<codegen::Value> registers,
                    Major major = Major::none);
  /// A fragment's registers, to look at: waits for a product that computes them.
  static std::vector<codegen::Value> registers(const Fragment& fragment);
  static bool is_bad(const Fragment& fragment) { return fragment.registers_.empty(); }
  static Major major(const Fragment& fragment) { return fragment.major_; }
  static const Place& made(const Fragment& fragment) { return fragment.made_; }
  FragmentVariable fragment_variable(const FragmentKind& kind,
                                     std::vector<codegen::Variable> registers);
  static void assign(FragmentVariable& variable, const Fragment& fragment);
  static std::vector<Fragment> read(std::span<const FragmentVariable> variables);

  // -- Products in flight: see dsl/in_flight.h.
  FlightLog log;
  /// Registers to be added to, or copied: as they are.
  static std::vector<codegen::Value> flying_registers(const Fragment& fragment);
  /// What a product that was committed just now computes: accumulators `like` those.
  std::vector<Fragment> take_off(const std::vector<Fragment>& like,
                                 const std::vector<codegen::Value>& registers,
                                 std::vector<codegen::Value> kept);
  std::shared_ptr<Flight> flight_of(std::span<const FragmentVariable> variables);
  bool has_landed(const Flight& flight) const;
  void land(Flight& flight);
  bool land_before_body(Flight& flight);
  void land_all();
  /// Whether a fragment is of a variable that nothing was assigned to since it was declared.
  bool still_zero(const Fragment& fragment) const;
  /// Around the body of a loop or condition: in front of it, and in it.
  BeforeBody before_body(bool loops);
  void in_body(BeforeBody before, const std::function<void()>& body);

  bool has_copy_engine() const { return target.arch.sm >= 90 && target.ptx >= Version{8, 0}; }
  /// Of the blocks of a cluster, which this one is.
  Scalar block_of_cluster();
  /// A number that a launch knows: a constant or a parameter.
  std::optional<MapNumber> map_number(const Scalar& scalar) const;
  /// Notes what a launch knows of `result`, op of x and a constant.
  void derive_number(const Scalar& result, Operator op, const Scalar& x, std::int64_t y);

  codegen::Pointer shared_memory(const std::string& name, std::int64_t bytes, int align = 128);
  /// What the block's threads write to shared memory is there for each other behind a barrier only.
  /// Whether a ring has the stage; reports if not.
  void check_stage(const std::string& ring, const Scalar& stage, int stages);
  void note_write(const Tensor& to);
  void note_fill(const Tensor& to);  // by a pipeline's producers
  bool require_barrier(const Tensor& from);
  void barrier();
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

/// Zero of a type.
codegen::Value zero_value(codegen::FunctionBuilder& f, Type type);

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

/// The type of one 32 or 64-bit register of a fragment of `type`.
constexpr Type register_type(Type type) { return type == f32 || type == f64 ? type : b32; }

}  // namespace tartan::inline TARTAN_ABI::detail
