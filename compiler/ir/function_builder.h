// SPDX-License-Identifier: Apache-2.0
// compiler/ir/function_builder.h - records one kernel, call by call.
//
// Each call becomes an operation of a Function (compiler/ir/function.h), of which Code
// (compiler/codegen/code.h) makes PTX; LLVM has no part in it. Values are typed handles. The
// builder does not check the user's input: the DSL above has checked shapes, types and targets, so
// invalid calls here are bugs and assert.
//
//   FunctionBuilder f("copy", *Target::parse("sm_80"), {.block = {32, 1, 1}},
//                     {{"in", StateSpace::global}, {"out", StateSpace::global}});
//   const Value at = f.multiply(f.special(isa::SpecialRegister::tid_x), f.constant(u32, 4));
//   f.store(f.offset(f.pointer_param(1), at), f.load(f.offset(f.pointer_param(0), at), u32));
//   Result<std::string> ptx = Code(f.finish()).emit();
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/function.h"
#include "compiler/ir/partition.h"
#include "compiler/isa/special_registers.h"

namespace tartan::TARTAN_ABI::ir {

class FunctionBuilder {
 public:
  /// `name` and the parameters' names must be PTX identifiers.
  FunctionBuilder(std::string name, Target target, LaunchBounds bounds,
                  std::vector<Param> params = {});

  const Target& target() const;

  /// The C++ place of the following code; becomes .loc in the PTX.
  void at(const std::source_location& place);

  // Values.
  Value param(int index);
  Pointer pointer_param(int index);
  /// Appends a parameter.
  Value add_param(Type type);
  Pointer add_pointer_param(StateSpace space);
  /// %tid, %ntid, %ctaid, %nctaid or %laneid.
  Value special(isa::SpecialRegister which);
  Value constant(Type type, std::int64_t value);
  template <std::integral Integer>
  Value constant(Type type, Integer value) {
    return constant(type, static_cast<std::int64_t>(value));
  }
  Value constant(Type type, double value);
  Value undefined(Type type);  // for values that are not read
  bool is_constant(Value value) const;
  /// Whether it surely is the same in all threads of a block, since it is computed from parameters
  /// and the block's index.
  bool is_uniform(Value value) const;
  Value add(Value x, Value y);
  Value subtract(Value x, Value y);
  Value multiply(Value x, Value y);
  Value divide(Value x, Value y);  // integers: truncating; unsigned powers of two become shifts
  Value remainder(Value x, Value y);
  Value bit_and(Value x, Value y);
  Value bit_or(Value x, Value y);
  Value bit_xor(Value x, Value y);
  Value shift_left(Value x, Value y);
  Value shift_right(Value x, Value y);
  Value minimum(Value x, Value y);
  Value maximum(Value x, Value y);
  Value fma(Value x, Value y, Value z);
  Value negate(Value x);
  Value absolute(Value x);                          // of signed integers and floats
  Value signum(Value x);                            // of signed integers and f32
  Value floor(Value x);                             // of floats
  Value approximate(Approximation which, Value x);  // f32
  Value compare(Compare how, Value x, Value y);     // -> pred
  Value select(Value condition, Value x, Value y);
  /// By value. To floats rounds to nearest even, float to integer truncates. Before sm_90 integers
  /// become bf16 through f32. The low 13 bits of a tf32 are ignored.
  Value convert(Value x, Type to);
  /// Two f32 rounded and saturated to e4m3 or e5m2: a u16, low first. convert() also converts to
  /// and from these types (cvt: PTX 8.1 on sm_89, 7.8 on sm_90 and later).
  Value convert_pair(Value low, Value high, Type to);
  Value bitcast(Value x, Type to);             // same number of bits
  Value pack(Value low, Value high, Type to);  // two 16-bit values -> one 32-bit register
  std::pair<Value, Value> unpack(Value x,
                                 Type to);  // the inverse: two values of the 16-bit type `to`

  // Memory. Accesses must be naturally aligned: a vector to its whole size.
  Pointer offset(Pointer base, Value bytes);
  Pointer offset(Pointer base, std::int64_t bytes);
  Value load(Pointer from, Type type);
  /// By a guarded ld: 0, and no access, where `condition` does not hold.
  Value load_if(Value condition, Pointer from, Type type);
  std::vector<Value> load_vector(Pointer from, Type type, int count);  // ld.vN: count 2 or 4
  void store(Pointer to, Value value);
  void store_vector(Pointer to, std::span<const Value> values);  // st.vN
  /// Static shared memory of the block, `bytes` long.
  Pointer shared(const std::string& name, std::int64_t bytes, int align);
  /// The block's dynamic shared memory (one per kernel; the launch sets its size).
  Pointer dynamic_shared(int align);
  /// Turns all static shared memory into dynamic, contiguous but aligned, and returns its size.
  /// Static shared memory is 48 KB at most.
  std::int64_t make_shared_dynamic();
  /// The shared-window address of `pointer` as u32.
  Value shared_address(Pointer pointer);
  /// The address of `pointer`, which is in global memory, as u64; its generic address is the same.
  Value global_address(Pointer pointer);

  /// The same place in the shared memory of another block of the cluster: mapa. sm_90 and later.
  Pointer shared_of_block(Pointer pointer, Value block);
  /// The inverse of shared_address(): the pointer of a shared-window address.
  Pointer shared_pointer(Value address);

  // Asynchronous copies by threads: cp.async (sm_80 and later).
  /// 4, 8 or 16 bytes, shared <- global; with `valid_bytes` the rest is filled with zeros.
  void copy_async(Pointer to, Pointer from, int bytes, CacheOperator cache, Value valid_bytes = {});
  void copy_async_commit();
  void copy_async_wait(int pending_groups);

  // mbarriers (PTX ISA 9.0, 9.7.13.15, sm_80 and later): 8 bytes of shared memory each, 8-byte
  // aligned.
  void mbarrier_init(Pointer at, int arrivals);
  void mbarrier_arrive(Pointer at);
  /// Where the condition holds, by a predicate: no branch divides the code around it.
  void mbarrier_arrive_if(Value condition, Pointer at);
  /// Arrives; the phase also waits for that many more bytes. sm_90 and later.
  void mbarrier_expect(Pointer at, int bytes);
  /// Arrives when this thread's earlier cp.async are done.
  void copy_async_arrive(Pointer mbarrier);
  /// Waits until the phase of that parity (0 or 1) is complete; the phase before the first has
  /// parity 1.
  void mbarrier_wait(Pointer at, Value parity);
  /// Arrives at the same mbarrier of another block of the cluster. sm_90 and later.
  void mbarrier_arrive(Pointer at, Value block);
  void mbarrier_arrive_if(Value condition, Pointer at, Value block);
  /// The same two for a barrier of a cluster: what was written before the arrivals, to the shared
  /// memory of any of its blocks, is visible after the wait.
  void cluster_mbarrier_arrive(Pointer at, Value block);
  void cluster_mbarrier_wait(Pointer at, Value parity);
  /// Makes this thread's mbarrier_init() visible to the cluster, after a cluster_barrier().
  void mbarrier_init_fence();

  // TMA (PTX ISA 9.0, 9.7.9.27, sm_90 and later). One thread starts the copy of a whole box.
  /// Appends a parameter of 128 bytes, a tensor map, and returns its address.
  Pointer add_tensor_map();
  /// Prefetches a tensor map ahead of its first use.
  void prefetch_tensor_map(Pointer map);
  /// The box at `coordinates` (elements, innermost first); its bytes count down `mbarrier`.
  /// `blocks`: to the same place of those blocks of the cluster, a bit each; none: of this one.
  /// `eviction`: of the lines that it reads.
  void tensor_load(Pointer to, Pointer map, std::span<const Value> coordinates, Pointer mbarrier,
                   Value blocks = {}, Eviction eviction = Eviction::normal);
  /// Pixels from the one at `coordinates` (channel, width, height, ..., image) on, each moved by
  /// `offsets` (width, height, ...): im2col mode.
  void pixels_load(Pointer to, Pointer map, std::span<const Value> coordinates,
                   std::span<const Value> offsets, Pointer mbarrier);
  /// A box of so many bytes. `adds`: to what is there, by cp.reduce.async.bulk.tensor.
  void tensor_store(Pointer map, std::span<const Value> coordinates, Pointer from,
                    std::int64_t bytes, bool adds = false);
  void bulk_commit();
  /// Waits until at most `pending_groups` groups of this thread's stores still read shared memory.
  void bulk_wait_read(int pending_groups);
  /// Makes this thread's writes to shared memory visible to TMA and to wgmma.
  void proxy_fence();
  Value elect();  // true in one lane of the warp
  /// setmaxnreg, by a whole warpgroup (sm_90a).
  void set_max_registers(int count, bool more);

  // Variables and control flow. Bodies run at build time, once each.
  Variable variable(Value initial);
  Value get(Variable variable);
  void set(Variable variable, Value value);
  void if_then(Value condition, const std::function<void()>& then);
  void if_else(Value condition, const std::function<void()>& then,
               const std::function<void()>& otherwise);
  /// for (i = begin; i < end; i += step); i has begin's type.
  void for_range(Value begin, Value end, Value step, const std::function<void(Value i)>& body);
  void while_loop(const std::function<Value()>& condition, const std::function<void()>& body);

  /// A position at which at_mark() can insert code later.
  int mark();
  void at_mark(int mark, const std::function<void()>& body);
  /// The region of a mark, and a mark at the `index`th operation of a region that has been
  /// described: for passes over function().
  std::uint32_t region_of(int mark) const { return marks_.at(static_cast<std::size_t>(mark)); }
  int mark_at(std::uint32_t region, std::size_t index);
  /// A mark whose position is told later, once: where place() is called.
  int detached_mark();
  void place(int mark);

  // Two roles, see compiler/ir/partition.h. In what the first one executes:
  /// what each of them does here;
  void by_role(const std::function<void()>& first, const std::function<void()>& second);
  /// a condition of the first role, which the second one passes by.
  void if_of_role(Value condition, const std::function<void()>& then);
  /// Whether a value is computed at a C++ place, or read from a variable that is changed there.
  bool depends_on(Value value, const std::source_location& place) const;
  /// Here is what the second role executes of what has been described at a mark, which holds no
  /// more than the first role's part from then on.
  std::vector<Need> take_second_role(int of_mark);

  // Code that is executed elsewhere, whole or in halves. In its description, at a detached mark
  // that has no place: a number and a pointer that each copy has another of,
  Value stand_in(Type type);
  Pointer stand_in(StateSpace space);
  /// and where the second half begins.
  void split();
  /// Here is a copy of what has been described at a mark, or a half of it; `with`: what stands for
  /// which stand-in.
  std::vector<Need> copy_of(int mark, Half half, std::span<const Renamed> with);
  // The block and the warp.
  void barrier();                     // bar.sync 0
  void barrier(int id, int threads);  // bar.sync of some of the block's warps
  /// All threads of the cluster (sm_90 on). `orders`: memory too, for which an arrival waits until
  /// this thread's stores are visible.
  void cluster_barrier(bool orders = true);
  void warp_sync();                      // bar.warp.sync of all lanes
  Value shuffle_xor(Value x, int mask);  // shfl.sync.bfly of all lanes; 32-bit types
  Value shuffle(Value x, Value lane);    // shfl.sync.idx

  /// A matrix instruction: `form` must exist for the target. Operands are those of isa::Instruction
  /// in PTX order, without d: vectors and {byte-id, thread-id} pairs flattened, immediates as
  /// constant(), an address as `address` (else {}). Returns d's registers (empty for stores). Uses
  /// LLVM's intrinsic if LLVM has one that it can select, else inline assembly. Not for wgmma.
  std::vector<Value> matrix(const isa::Form& form, Pointer address,
                            std::span<const Value> operands);

  /// A statement of PTX by inline assembly: in `text`, %0, %1, ... are the results and then the
  /// operands, as in CUDA's asm(). `pure`: it has no effect but its results, and no other lane
  /// takes part; else nothing moves across it.
  std::vector<Value> statement(std::string_view text, std::span<const Type> results,
                               std::span<const Value> operands, bool pure);

  // The warpgroup (sm_90a).
  /// Products that add to the same accumulators, in one group: wgmma.fence, a wgmma with each
  /// step's operands (those of isa::Instruction without d, flattened), wgmma.commit_group. Returns
  /// the accumulators; only another product may use them before a wait.
  std::vector<Value> warpgroup_product(const isa::Form& form, std::span<const Value> accumulators,
                                       std::span<const std::vector<Value>> steps);
  /// wgmma.wait_group: all but `pending_groups` groups are done. Returns the values of
  /// `accumulators` after it; the old values are dead. `kept`, registers that the products read,
  /// keep their values until then.
  std::vector<Value> warpgroup_wait(int pending_groups, std::span<const Value> accumulators,
                                    std::span<const Value> kept = {});

  // What the device runtime does for a thread.

  /// Prints by vprintf: the format of C, at most 32 values of 32 or 64 bits (floats are f64).
  void print(const std::string& format, std::span<const Value> values);
  /// Stops the grid by __assertfail, which prints the text and the place.
  void fail_assertion(const std::string& text, const std::string& file, int line);

  /// What has been recorded so far.
  const Function& function() const { return function_; }
  /// What was recorded. After it the builder is empty.
  Function finish();

 private:
  using Body = std::function<void()>;
  struct Fact {
    bool constant = false, uniform = false;
  };

  /// The operation that is recorded last.
  Operation& record(OperationKind kind, Type type, std::initializer_list<Operand> operands = {},
                    std::initializer_list<std::int64_t> numbers = {});
  void take(Operation& operation, std::span<const Value> more);
  void note(Operation& operation, std::string_view text);
  bool is_constant(OperationKind kind, std::span<const Operand> operands) const;
  bool is_uniform(const Operation& operation) const;  // its results
  Operand make(Operation& operation, Operand result);
  Value make(Operation& operation, Type type);
  Pointer make(Operation& operation, StateSpace space);
  std::vector<Value> make(Operation& operation, Type type, int count);
  /// What records one operation with one result.
  Value value(OperationKind kind, Type type, std::initializer_list<Operand> operands = {},
              std::initializer_list<std::int64_t> numbers = {});
  Pointer pointer(OperationKind kind, StateSpace space,
                  std::initializer_list<Operand> operands = {},
                  std::initializer_list<std::int64_t> numbers = {});

  /// Gives the operation recorded last so many regions; the first one's place.
  std::uint32_t add_regions(Operation& operation, std::uint32_t count);
  void describe(std::uint32_t region, const Body& body);

  Function function_;
  std::vector<std::uint32_t> open_;  // regions, the innermost last
  std::vector<Fact> facts_;          // of values, by id
  std::uint32_t place_ = 0;
  std::vector<std::uint32_t> marks_;  // regions
};

}  // namespace tartan::TARTAN_ABI::ir
