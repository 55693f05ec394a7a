// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/program.h - a kernel, decoded: a flat list of ops over a byte arena of
// registers.
//
// A warp's registers live side by side in one arena. An op names them by byte offset (a slot) and
// so do constants, which the arena holds as registers that nobody writes: a handler has one shape,
// whatever its operands were in the text.
//
//   predicate      uint32_t        bit l: lane l
//   up to 32 bits  uint32_t[32]    element l: lane l; narrower values have zeros above them
//   64 bits        uint64_t[32]
//   128 bits       uint64_t[32][2] low words of all lanes, then high words
//
// Functions that the kernel calls stand in front of it, callees first: the scheduler runs the
// lowest program counter, so lanes that call come back before those that did not go on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/isa/special_registers.h"
#include "runtime/emulator/decode/op_registers.h"
#include "runtime/emulator/instructions/row.h"
#include "runtime/emulator/matrix/matrix.h"
#include "runtime/emulator/matrix/wgmma.h"
#include "tartan/isa/form.h"
#include "tartan/isa/opcode.h"
#include "tartan/isa/tensor_memory.h"
#include "tartan/ptx/tree.h"
#include "tartan/runtime/device.h"

namespace tartan::TARTAN_ABI::emulator {

struct Warp;
struct Op;

using Handler = void (*)(Warp&, const Op&);

/// Where an address points. `cluster` is shared memory too, of any block of the cluster.
enum class Window : std::uint8_t { generic, global, constant, shared, local, param, cluster };

/// Where the addresses of a state space point; .param of a function is in local memory.
constexpr Window window_of(StateSpace space, bool in_kernel = true) {
  switch (space) {
    case StateSpace::none:
    case StateSpace::reg: return Window::generic;
    case StateSpace::global: return Window::global;
    case StateSpace::constant: return Window::constant;
    case StateSpace::shared:
    case StateSpace::shared_cta: return Window::shared;
    case StateSpace::shared_cluster: return Window::cluster;
    case StateSpace::local:
    case StateSpace::param_func: return Window::local;
    case StateSpace::param: return in_kernel ? Window::param : Window::local;
    case StateSpace::param_entry: return Window::param;
  }
  return Window::generic;
}

/// One decoded instruction. What the fields mean is between a handler and its decoder; the names
/// say what they usually hold.
struct Op {
  Handler run = nullptr;
  std::uint32_t guard = 0;  // slot of the predicate that guards it; unguarded: the constant true
  std::uint32_t guard_flip = 0;  // all ones for @!p
  std::uint32_t d = 0, e = 0;    // destination slots
  std::uint32_t a = 0, b = 0, c = 0;
  std::uint32_t list = 0;   // first of a list in Program::slots, or an index of another side table
  std::uint64_t value = 0;  // address offset, branch target, immediate
  Window window = Window::generic;
  bool wide = true;        // memory: 64-bit addresses
  std::uint8_t count = 1;  // elements of a vector
  std::uint8_t flags = 0;
  bool writes = false;    // memory: what resolve() is asked for
  bool examined = false;  // ValueEvents::run() is told of it whatever registers hold
};

/// Where an op came from.
struct Origin {
  std::uint32_t offset = 0;    // into the PTX text
  std::uint32_t location = 0;  // 1 + index into ptx::Module::locations; 0: none
};

/// Where an element of a fragment is in memory: ldmatrix and stmatrix: the lane that holds the
/// row's address, and the element of the row.
struct RowElement {
  std::uint8_t row = 0;
  std::uint8_t col = 0;
};

/// {byte-id, thread-id} of a block scale: slots, and the values that the manual allows there.
struct ScaleSelector {
  std::uint32_t byte = 0, thread = 0;
  std::uint32_t highest = 0, step = 1, threads = 1;
};

/// What the lanes of a product agree on in its selectors.
struct ScalePlaces {
  int byte_a = 0, thread_a = 0, byte_b = 0, thread_b = 0;
};

/// A decoded matrix product or fragment load or store: slots in operand order.
struct MatrixOperation {
  isa::Form form;
  std::vector<RowElement> places;  // [element][lane]; fragment moves: row and column of the matrix
  std::vector<std::uint32_t> d, a, b, c;
  std::optional<MatrixProduct> product;
  std::optional<std::uint32_t> metadata, scale_a, scale_b;
  std::optional<ScaleSelector> select_a, select_b;
  int selector = 0;
  int addresses = 0;  // ldmatrix and stmatrix: of so many lanes, from the first on, are used
  /// Of a row in memory: of 16 elements of four bits, or of 16 bytes with what fills it up.
  std::uint32_t row_bytes() const { return form.a == Type::s4 ? 8 : 16; }
};

/// A register of a function, which calls that may come back into it save.
struct SavedRegister {
  std::uint32_t slot = 0;
  std::uint32_t bytes = 0;  // of a lane; a predicate: 0
};

/// A register that holds the address of a variable on the stack.
struct FrameAddress {
  std::uint32_t slot = 0;
  int width = 64;
  std::uint32_t offset = 0;  // behind the frame's start
};

/// What a call of a function takes of the lane's stack. Functions that may be called from within
/// themselves, and those with alloca, have their variables there; the others' have one place.
struct Frame {
  std::uint32_t base = 0;   // slot, 32 bits: where it starts in local memory; 0: not on the stack
  std::uint32_t bytes = 0;  // variables, parameters and results
  std::uint32_t saved_bytes = 0;
  std::vector<SavedRegister> registers;
  std::vector<FrameAddress> addresses;
};

/// A lane's stack.
inline constexpr std::uint32_t stack_bytes = 64 * 1024;

/// A decoded wgmma.mma_async: slots in each of the four warps' arenas.
struct WarpgroupOperation {
  WgmmaOperands immediates;  // selector, scales and transpositions; the rest is filled at run time
  std::vector<std::uint32_t> d, a;  // a: empty where A is in shared memory
  std::uint32_t a_descriptor = 0, b_descriptor = 0, scale_d = 0;
  std::optional<std::uint32_t> metadata;
  std::optional<WgmmaProduct> product;
};

/// A decoded tcgen05.ld, .ld.red or .st.
struct TensorMove {
  isa::TensorAccess access;  // `first` is filled at run time
  std::vector<std::uint32_t> registers;
  std::vector<std::uint32_t> places;  // [element][lane]: lane << 16 | column, behind `first`
  std::optional<std::uint32_t> reduced;
  Type type = Type::b32;  // of the reduction
  bool maximum = false, absolute = false, passes_nan = false;
};

/// A special register whose value is fixed for a warp's life: its slot is filled when the warp
/// starts.
struct SpecialSlot {
  isa::SpecialRegister which;
  int width = 32;  // 64, 32, or 1: a predicate
  std::uint32_t slot = 0;
};

/// A constant that is an address of shared memory: Block::own_place() comes to it.
struct SharedSlot {
  std::uint32_t slot;
  int width;
  bool dynamic;  // counts from Program::dynamic_shared_base
};

/// A register that may be read before it is written.
struct UnwrittenRegister {
  std::uint32_t slot = 0;
  std::uint32_t bits = 32;  // of a lane: 1, 32, 64 or 128
  std::uint32_t used = 32;  // of them: the width of its type
};

/// A shared variable's place.
struct NamedRange {
  std::string name;
  std::uint64_t first = 0, bytes = 0;
  bool dynamic = false;  // counts from Program::dynamic_shared_base
};

/// A variable whose address an instruction takes. `place.dynamic` if it is on the stack, too: then
/// it counts from the function's frame.
struct TakenAddress {
  Window window = Window::global;
  NamedRange place;
};

/// The least known of the arithmetic that a program's results rest on.
struct NumericBasis {
  Trust trust = Trust::Recorded;
  std::string instruction;
  std::string_view source;  // static storage
};

/// Observers have different ones (runtime/emulator/observers.cc).
using Seat = std::size_t;
inline constexpr Seat seats = 5;

struct Program;

/// What an observer keeps of a program that is decoded for it, by op.
class Observation {
 public:
  virtual ~Observation() = default;
  /// The ops of the current instruction are those from `first` on: the observer may put handlers of
  /// its own around theirs.
  virtual void decoded(Decoder&, std::size_t /*first*/) {}
  /// So is the whole program.
  virtual void finish(Program&, const ptx::Module&) {}
};

struct Program {
  std::string name;
  std::optional<NumericBasis> basis;  // none: all of it is exact by definition
  std::vector<Op> ops;
  std::vector<Origin> origins;              // one an op
  OpRegisters registers;                    // where they were asked for
  std::uint32_t entry = 0, kernel_end = 0;  // ops of the kernel itself
  std::uint32_t gathering_slot =
      0;  // six registers of 64 bits, if ops with a member mask are there
  std::vector<std::uint32_t> slots;
  std::vector<MatrixOperation> matrices;
  std::vector<WarpgroupOperation> warpgroup_operations;
  std::vector<TensorMove> tensor_moves;
  std::vector<Frame> frames;  // of functions
  std::vector<SpecialSlot> specials;
  std::vector<SharedSlot> shared_slots;
  std::vector<std::byte> arena;  // a warp's arena as it starts: constants in place, registers zero
  std::vector<KernelParam> params;
  std::vector<std::uint32_t> param_offsets;
  std::uint32_t param_bytes = 0;
  std::uint32_t shared_bytes = 0;  // static
  std::uint32_t dynamic_shared_base = 0;
  std::uint32_t local_bytes = 0;  // of a lane, with its stack
  std::uint32_t stack_begin = 0;  // where that is in local memory
  std::uint32_t stack_slot = 0;   // 32 bits: up to where it is taken; 0: there is no stack
  std::uint32_t stack_alignment = 16;
  bool uses_heap = false;                    // it calls malloc or free
  std::vector<UnwrittenRegister> unwritten;  // where they were looked for
  std::vector<NamedRange> shared_variables;
  std::vector<TakenAddress> taken_addresses;
  // It has bulk copies, wgmma or mbarriers: accesses to its shared memory are looked at in any
  // case.
  bool ordered = false;
  bool invalidates = false;  // it has mbarrier.inval
  bool uses_tensor_memory = false;
  bool takes_clusters = false;    // it has clusterlaunchcontrol.try_cancel
  int cta_group = 0;              // of its tcgen05 instructions; 0: of none so far
  Dim3 required_block{0, 0, 0};   // .reqntid; zero: not stated
  std::uint64_t max_threads = 0;  // .maxntid; 0: not stated
  // Of a thread: as many as the kernel's bounds allow (0: none stated, so that setmaxnreg is
  // ignored) and as the largest setmaxnreg asks for. It starts with the fewer of them.
  std::uint32_t most_registers = 0, largest_budget = 0;
  Dim3 required_cluster{0, 0, 0};  // .reqnctapercluster; zero: not stated
  bool explicit_cluster = false;   // .explicitcluster: launches state the cluster
  Dim3 grid_unit;                  // blocks of what a launch's grid counts: .blocksareclusters
  std::uint64_t max_cluster = 0;   // .maxclusterrank; 0: not stated

  std::array<std::unique_ptr<Observation>, seats> observations;  // of those for whom it is decoded
  std::vector<Handler> plain;  // observed: what ops do without the handlers of observers
  /// Null: it is not decoded for that observer.
  template <typename T>
  const T* observation() const {
    return static_cast<const T*>(observations[T::seat].get());
  }
};

/// Adds to the address that a slot of an arena holds for all lanes.
inline void move_address(std::byte* arena, const SharedSlot& slot, std::uint64_t distance) {
  const std::size_t bytes = slot.width == 64 ? 8 : 4;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    std::byte* at = arena + slot.slot + bytes * lane;
    std::uint64_t address = 0;
    std::memcpy(&address, at, bytes);
    address += distance;
    std::memcpy(at, &address, bytes);
  }
}

/// The slot of the constant true in every program.
inline constexpr std::uint32_t always_slot = 0;

}  // namespace tartan::TARTAN_ABI::emulator
