// SPDX-License-Identifier: Apache-2.0
// compiler/ir/operation.h - the operations of a kernel under description: one row for each.
// Not installed.
#pragma once

#include <cstdint>
#include <string_view>

#include "tartan/abi.h"
#include "tartan/isa/state_space.h"

namespace tartan::TARTAN_ABI::ir {

/// Which lines L2 evicts before others.
enum class Eviction : std::uint8_t { normal, first, last };

/// The approximations of PTX ISA 9.0, 9.7.3 on f32: ex2.approx.ftz, lg2.approx.ftz, rcp.approx.ftz,
/// rsqrt.approx.ftz, tanh.approx.
enum class Approximation : std::uint8_t { ex2, lg2, rcp, rsqrt, tanh };
enum class Compare : std::uint8_t { eq, ne, lt, le, gt, ge };

/// Cache behaviour of cp.async: ca (all levels) or cg (L2 only; 16 bytes).
enum class CacheOperator : std::uint8_t { ca, cg };

/// An address: generic, or in global, shared or local memory, or in the shared memory of the
/// cluster. Offsets are in bytes; constants added last fold into [base+offset].
struct Pointer {
  int id = -1;
  StateSpace space = StateSpace::none;
};

enum class OperationKind : std::uint8_t {
  // The frame.
  param,
  pointer_param,
  add_param,
  add_pointer_param,
  add_tensor_map,
  // Values.
  special,
  constant,
  real_constant,
  undefined,
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
  minimum,
  maximum,
  fma,
  negate,
  absolute,
  signum,
  floor,
  approximate,
  compare,
  select,
  convert,
  convert_pair,
  bitcast,
  pack,
  unpack,
  // Memory.
  offset,
  constant_offset,
  shared,
  dynamic_shared,
  shared_address,
  global_address,
  shared_of_block,
  shared_pointer,
  load,
  load_if,
  load_vector,
  store,
  store_vector,
  // Asynchronous copies and mbarriers.
  copy_async,
  copy_async_commit,
  copy_async_wait,
  copy_async_arrive,
  mbarrier_init,
  mbarrier_init_fence,
  mbarrier_expect,
  mbarrier_arrive,
  mbarrier_arrive_if,
  mbarrier_arrive_in_block,
  mbarrier_arrive_in_block_if,
  mbarrier_wait,
  cluster_mbarrier_arrive,
  cluster_mbarrier_wait,
  prefetch_tensor_map,
  tensor_load,
  pixels_load,
  tensor_store,
  bulk_commit,
  bulk_wait_read,
  proxy_fence,
  elect,
  set_max_registers,
  // Variables and control flow.
  variable,
  get,
  set,
  if_then,
  if_else,
  for_range,
  while_loop,
  mark,
  by_role,
  if_of_role,
  split,
  // The block and the warp.
  barrier,
  barrier_of_some,
  cluster_barrier,
  warp_sync,
  shuffle_xor,
  shuffle,
  // Instructions by their forms, and text.
  matrix,
  warpgroup_product,
  warpgroup_wait,
  statement,
  pure_statement,
  print,
  fail_assertion,
};

/// What an operation does beyond its results.
enum class Effect : std::uint8_t {
  none,       // nothing: it may be repeated, or left out with its results
  frame,      // it names or adds something of the function: a parameter, a variable, memory
  reads,      // memory
  variable,   // reads or writes a variable of this thread
  structure,  // what its regions do
  exchange,   // with other lanes of the warp, and nothing else
  acts,       // all else: memory, barriers, asynchronous operations
};

/// Whether its results surely are the same in all threads of a block.
enum class Uniform : std::uint8_t {
  no,
  yes,
  operands,  // where its operands are
  special,   // where the special register is
};

/// By which operand an operation accesses memory, if by one: its number, or one of these.
constexpr std::int8_t no_operand = -1, any_operand = -2;

struct OperationRow {
  OperationKind kind;
  std::string_view name;
  Effect effect;
  bool folds;  // its results are constants where its operands are
  Uniform uniform;
  // The addresses that it reads and writes; instructions of a form write if they have no result.
  std::int8_t reads = no_operand, writes = no_operand;
};

const OperationRow& row_of(OperationKind kind);

}  // namespace tartan::TARTAN_ABI::ir
