// SPDX-License-Identifier: Apache-2.0
// tartan/isa/opcode.h - every instruction of PTX by name (PTX ISA 9.0, chapter 9), and its effect
// on control flow and convergence.
//
//   isa::find_opcode("cp.async.bulk.tensor.2d.shared::cluster")   // Opcode::cp_async_bulk_tensor
//   isa::row(Opcode::bra).control                                 // Control::Branches
//
// An opcode corresponds to one section of the manual: its name may have dots. The signatures
// (tartan/isa/signature.h) say which qualifiers and operands it takes.
#pragma once

#include <cstdint>
#include <string_view>

#include "tartan/isa/qualifier.h"

namespace tartan::TARTAN_ABI::isa {

/// Enumerators are the names with underscores for dots and colons. An underscore is appended to C++
/// keywords.
enum class Opcode : std::uint16_t {
  none,
  // Matrix instructions: compiler/isa/tables.h has their forms.
  ldmatrix,
  stmatrix,
  movmatrix,
  wmma_load,
  wmma_store,
  wmma_mma,
  mma,
  wgmma,
  wgmma_fence,
  wgmma_commit_group,
  wgmma_wait_group,
  // Arithmetic (9.7.1 to 9.7.5).
  add,
  addc,
  sub,
  subc,
  mul,
  mad,
  madc,
  mul24,
  mad24,
  sad,
  div,
  rem,
  abs,
  neg,
  min,
  max,
  popc,
  clz,
  bfind,
  fns,
  brev,
  bfe,
  bfi,
  szext,
  bmsk,
  dp4a,
  dp2a,
  clmad,
  fma,
  rcp,
  sqrt,
  rsqrt,
  sin,
  cos,
  lg2,
  ex2,
  tanh,
  testp,
  copysign,
  // Comparison and selection, logic and shifts (9.7.6 to 9.7.8).
  set,
  setp,
  selp,
  slct,
  and_,
  or_,
  xor_,
  not_,
  cnot,
  lop3,
  shf,
  shl,
  shr,
  // Moves and conversions (9.7.9).
  mov,
  shfl,
  prmt,
  ld,
  ldu,
  st,
  st_async,
  st_bulk,
  multimem_ld_reduce,
  multimem_st,
  multimem_red,
  multimem_st_async,
  multimem_red_async,
  multimem_cp_async_bulk,
  multimem_cp_reduce_async_bulk,
  prefetch,
  prefetchu,
  applypriority,
  applypriority_async_bulk,
  applypriority_async_bulk_tensor,
  discard,
  createpolicy,
  isspacep,
  cvta,
  cvt,
  cvt_pack,
  mapa,
  getctarank,
  cp_async,
  cp_async_commit_group,
  cp_async_wait_group,
  cp_async_wait_all,
  cp_async_mbarrier_arrive,
  cp_async_bulk,
  cp_async_bulk_prefetch,
  cp_async_bulk_tensor,
  cp_async_bulk_prefetch_tensor,
  cp_async_bulk_commit_group,
  cp_async_bulk_wait_group,
  cp_reduce_async_bulk,
  cp_reduce_async_bulk_tensor,
  tensormap_replace,
  tensormap_query,
  tensormap_cp_fenceproxy,
  // Textures and surfaces (9.7.10, 9.7.11).
  tex,
  tld4,
  txq,
  istypep,
  suld,
  sust,
  sured,
  suq,
  // Control flow (9.7.12).
  bra,
  brx_idx,
  call,
  ret,
  exit,
  // Synchronization and communication (9.7.13).
  bar,
  bar_warp,
  barrier,
  barrier_cluster_arrive,
  barrier_cluster_wait,
  membar,
  fence,
  fence_proxy,
  fence_mbarrier_init,
  atom,
  red,
  red_async,
  vote,
  match,
  activemask,
  redux,
  griddepcontrol,
  elect,
  mbarrier_init,
  mbarrier_inval,
  mbarrier_expect_tx,
  mbarrier_complete_tx,
  mbarrier_arrive,
  mbarrier_arrive_drop,
  mbarrier_test_wait,
  mbarrier_try_wait,
  mbarrier_pending_count,
  mbarrier_check_layout,
  clusterlaunchcontrol_try_cancel,
  clusterlaunchcontrol_query_cancel,
  // Memory of other nodes (9.7.14).
  fabric_try_put_async,
  fabric_try_put_async_tensor,
  fabric_try_red_async,
  fabric_try_red_async_tensor,
  fabric_try_get_async,
  fabric_try_get_async_tensor,
  fabric_try_pullred_async,
  fabric_try_atom_async,
  fabric_submit,
  fabric_submit_commit_group,
  fabric_wait,
  // Sparse data in registers.
  spcompress,
  spdecompress,
  // Tensor memory (9.7.16).
  tcgen05_alloc,
  tcgen05_dealloc,
  tcgen05_relinquish_alloc_permit,
  tcgen05_ld,
  tcgen05_ld_red,
  tcgen05_ld_spcompress,
  tcgen05_ld_red_spcompress,
  tcgen05_st,
  tcgen05_wait_ld,
  tcgen05_wait_st,
  tcgen05_cp,
  tcgen05_shift,
  tcgen05_mma,
  tcgen05_mma_sp,
  tcgen05_mma_ws,
  tcgen05_mma_ws_sp,
  tcgen05_fence_before_thread_sync,
  tcgen05_fence_after_thread_sync,
  tcgen05_commit,
  // Stack (9.7.17) and video (9.7.18).
  stacksave,
  stackrestore,
  alloca,
  vadd,
  vsub,
  vabsdiff,
  vmin,
  vmax,
  vshl,
  vshr,
  vmad,
  vset,
  vadd2,
  vsub2,
  vavrg2,
  vabsdiff2,
  vmin2,
  vmax2,
  vset2,
  vadd4,
  vsub4,
  vavrg4,
  vabsdiff4,
  vmin4,
  vmax4,
  vset4,
  // Miscellaneous (9.7.19).
  brkpt,
  nanosleep,
  pmevent,
  trap,
  setmaxnreg,
  trace_mark,
  count
};

/// Where control continues after the instruction.
enum class Control : std::uint8_t {
  FallsThrough,
  Branches,  // to a label: bra, brx.idx
  Returns,   // from the function: ret
  Exits,     // the thread ends: exit
  Traps,     // the grid ends: trap
  Calls,     // a function, and returns
};

/// Which threads must execute the instruction together.
enum class Convergence : std::uint8_t {
  None,
  Mask,       // the lanes that a member mask names
  Warp,       // all lanes of the warp (.aligned)
  Warpgroup,  // four warps, each converged
  Cta,        // a barrier of the thread block
  Cluster,    // a barrier of the cluster
};

/// A row of the table of opcodes.
struct OpcodeRow {
  Opcode opcode;
  std::string_view name;  // as written, with its dots
  Control control = Control::FallsThrough;
  Convergence convergence = Convergence::None;
  QualifierSet leading = {};  // must directly follow the name; others in any order
};

const OpcodeRow& row(Opcode opcode);
inline std::string_view name(Opcode opcode) { return row(opcode).name; }

/// The opcode that `text` (an instruction up to its first blank, qualifiers included) begins with:
/// the longest name that fits whole words. Opcode::none if no name fits.
Opcode find_opcode(std::string_view text);

/// The name nearest to the first word of `text`, for diagnostics; empty if nothing is near.
std::string_view nearest_opcode(std::string_view text);

/// Whether the forms of the opcode are those of compiler/isa/tables.h.
constexpr bool is_matrix(Opcode opcode) {
  return opcode >= Opcode::ldmatrix && opcode <= Opcode::wgmma;
}

/// cp.async, cp.async.bulk, their waits and their tensor and reducing kinds.
constexpr bool is_asynchronous_copy(Opcode opcode) {
  return opcode >= Opcode::cp_async && opcode <= Opcode::cp_reduce_async_bulk_tensor;
}

/// cp.async.bulk, cp.reduce.async.bulk and their tensor kinds, groups and prefetches.
constexpr bool is_bulk_copy(Opcode opcode) {
  return opcode >= Opcode::cp_async_bulk && opcode <= Opcode::cp_reduce_async_bulk_tensor;
}

constexpr bool is_mbarrier(Opcode opcode) {
  return opcode >= Opcode::mbarrier_init && opcode <= Opcode::mbarrier_check_layout;
}

/// tcgen05.
constexpr bool is_tensor_memory(Opcode opcode) {
  return opcode >= Opcode::tcgen05_alloc && opcode <= Opcode::tcgen05_commit;
}

}  // namespace tartan::TARTAN_ABI::isa
