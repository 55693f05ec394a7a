// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/table.h - which instructions the emulator knows, by topic.
#pragma once

#include <iterator>
#include <string_view>

#include "runtime/emulator/decode/decoder.h"
#include "runtime/emulator/instructions/row.h"
#include "runtime/emulator/numbers/small_float.h"

namespace tartan::TARTAN_ABI::emulator {

struct Access;

/// Which topic an opcode belongs to: TOPIC_rows, in instructions/TOPIC.cc, has the rows in this
/// order. Each opcode is in one of these lists or in that of table.cc, refused[], which says why.
namespace topics {
using enum isa::Opcode;
inline constexpr Opcode integer[] = {add, sub, mul, mad, mul24, mad24, div,
                                     rem, min, max, abs, neg,   sad};
inline constexpr Opcode carry[] = {addc, subc, madc, clmad};
inline constexpr Opcode bits[] = {and_, or_,  xor_,  not_, cnot, shl,  shr,   shf, popc,
                                  clz,  brev, bfind, bfe,  bfi,  bmsk, szext, fns, lop3};
inline constexpr Opcode bytes[] = {prmt, dp4a, dp2a};
inline constexpr Opcode video[] = {
    vadd,      vsub,  vabsdiff, vmin,  vmax,  vshl,  vshr,   vset,      vmad,  vadd2, vsub2, vavrg2,
    vabsdiff2, vmin2, vmax2,    vset2, vadd4, vsub4, vavrg4, vabsdiff4, vmin4, vmax4, vset4};
inline constexpr Opcode comparison[] = {setp, set, selp, slct, testp, copysign};
inline constexpr Opcode conversion[] = {cvt, cvt_pack};
inline constexpr Opcode move[] = {mov, cvta, isspacep, istypep, mapa, getctarank};
inline constexpr Opcode load_store[] = {ld,
                                        ldu,
                                        st,
                                        st_async,
                                        prefetch,
                                        prefetchu,
                                        cp_async_bulk_prefetch,
                                        cp_async_bulk_prefetch_tensor,
                                        applypriority,
                                        discard,
                                        createpolicy};
inline constexpr Opcode atomics[] = {atom, red, red_async};
inline constexpr Opcode copies[] = {cp_async, cp_async_commit_group, cp_async_wait_group,
                                    cp_async_wait_all, cp_async_mbarrier_arrive};
inline constexpr Opcode mbarriers[] = {
    mbarrier_init,          mbarrier_inval,       mbarrier_expect_tx, mbarrier_complete_tx,
    mbarrier_arrive,        mbarrier_arrive_drop, mbarrier_test_wait, mbarrier_try_wait,
    mbarrier_pending_count, mbarrier_check_layout};
inline constexpr Opcode bulk[] = {cp_async_bulk, cp_reduce_async_bulk, cp_async_bulk_commit_group,
                                  cp_async_bulk_wait_group, st_bulk};
inline constexpr Opcode bulk_tensor[] = {cp_async_bulk_tensor, cp_reduce_async_bulk_tensor};
inline constexpr Opcode tensormap[] = {tensormap_replace, tensormap_cp_fenceproxy};
inline constexpr Opcode collectives[] = {shfl, vote, match, activemask, redux, elect};
inline constexpr Opcode barriers[] = {bar,
                                      bar_warp,
                                      barrier,
                                      barrier_cluster_arrive,
                                      barrier_cluster_wait,
                                      fence,
                                      fence_proxy,
                                      fence_mbarrier_init,
                                      membar};
inline constexpr Opcode control[] = {bra,       brx_idx, exit,    ret,        trap,          brkpt,
                                     nanosleep, call,    pmevent, setmaxnreg, griddepcontrol};
inline constexpr Opcode stack[] = {alloca, stacksave, stackrestore};
inline constexpr Opcode matrix[] = {ldmatrix,   stmatrix, movmatrix, wmma_load,
                                    wmma_store, wmma_mma, mma};
inline constexpr Opcode warpgroup[] = {wgmma, wgmma_fence, wgmma_commit_group, wgmma_wait_group};
inline constexpr Opcode tensor_memory[] = {tcgen05_alloc,
                                           tcgen05_dealloc,
                                           tcgen05_relinquish_alloc_permit,
                                           tcgen05_ld,
                                           tcgen05_ld_red,
                                           tcgen05_st,
                                           tcgen05_wait_ld,
                                           tcgen05_wait_st,
                                           tcgen05_fence_before_thread_sync,
                                           tcgen05_fence_after_thread_sync};
inline constexpr Opcode tensor_copies[] = {tcgen05_cp};
inline constexpr Opcode tensor_shifts[] = {tcgen05_shift};
inline constexpr Opcode tensor_products[] = {tcgen05_mma, tcgen05_mma_sp, tcgen05_mma_ws,
                                             tcgen05_mma_ws_sp, tcgen05_commit};
inline constexpr Opcode approximations[] = {fma, rcp, sqrt, rsqrt, ex2, lg2, sin, cos, tanh};
inline constexpr Opcode launch_control[] = {clusterlaunchcontrol_try_cancel,
                                            clusterlaunchcontrol_query_cancel};
}  // namespace topics

extern const EmulatedRow integer_rows[std::size(topics::integer)];
extern const EmulatedRow carry_rows[std::size(topics::carry)];
extern const EmulatedRow bits_rows[std::size(topics::bits)];
extern const EmulatedRow bytes_rows[std::size(topics::bytes)];
extern const EmulatedRow video_rows[std::size(topics::video)];
extern const EmulatedRow comparison_rows[std::size(topics::comparison)];
extern const EmulatedRow conversion_rows[std::size(topics::conversion)];
extern const EmulatedRow move_rows[std::size(topics::move)];
extern const EmulatedRow load_store_rows[std::size(topics::load_store)];
extern const EmulatedRow atomics_rows[std::size(topics::atomics)];
extern const EmulatedRow copies_rows[std::size(topics::copies)];
extern const EmulatedRow mbarriers_rows[std::size(topics::mbarriers)];
extern const EmulatedRow bulk_rows[std::size(topics::bulk)];
extern const EmulatedRow bulk_tensor_rows[std::size(topics::bulk_tensor)];
extern const EmulatedRow tensormap_rows[std::size(topics::tensormap)];
extern const EmulatedRow collectives_rows[std::size(topics::collectives)];
extern const EmulatedRow barriers_rows[std::size(topics::barriers)];
extern const EmulatedRow control_rows[std::size(topics::control)];
extern const EmulatedRow stack_rows[std::size(topics::stack)];
extern const EmulatedRow matrix_rows[std::size(topics::matrix)];
extern const EmulatedRow warpgroup_rows[std::size(topics::warpgroup)];
extern const EmulatedRow tensor_memory_rows[std::size(topics::tensor_memory)];
extern const EmulatedRow tensor_copies_rows[std::size(topics::tensor_copies)];
extern const EmulatedRow tensor_shifts_rows[std::size(topics::tensor_shifts)];
extern const EmulatedRow tensor_products_rows[std::size(topics::tensor_products)];
extern const EmulatedRow approximations_rows[std::size(topics::approximations)];
extern const EmulatedRow launch_control_rows[std::size(topics::launch_control)];

/// What rest_on() says of instructions whose last bits are a table of the hardware's.
inline constexpr std::string_view approximation_source =
    "within the manual's error bound; the hardware's last bits are unknown";
/// Of instructions whose results no GPU's were compared with.
inline constexpr std::string_view manual_source = "the manual's semantics";
/// Why a form is refused that no manual explains.
inline constexpr std::string_view semantics_unknown =
    "semantics unknown: no manual says what it does";

// Names that integers and floating point share (add, mul, min, ...) are in integer_instructions;
// for floating-point types they go on here.
void decode_float_arithmetic(Decoder& decoder);
// add, sub, mul and fma on f32x2, if it is one.
bool decode_float_pairs(Decoder& decoder);
// add, sub, mul and fma on e4m3x4 and e5m2x4, if it is one.
bool decode_small_floats(Decoder& decoder);
// add, sub, min, max, neg and set on u8x4, s8x4, u16x2 and s16x2, and add.sat.u32, if it is one
// that integer.cc does not have.
bool decode_packed_integers(Decoder& decoder);
// call.
void decode_call(Decoder& decoder);
// For functions whose variables are on the stack: at their start, in front of each return, and
// around calls that may come back into the current one (stack.cc).
void emit_enter_frame(Decoder& decoder);
void emit_leave_frame(Decoder& decoder);
void emit_save_registers(Decoder& decoder);
void emit_restore_registers(Decoder& decoder);
void emit_drop_registers(Decoder& decoder);
// add.cc, addc, sub.cc, subc, mad.cc, madc.
void decode_carry(Decoder& decoder);

// cvt.pack; cvt to and from ue8m0x2, if it is one.
void decode_integer_pack(Decoder& decoder);
// st.async and red.async that complete transactions of an mbarrier.
void decode_store_async(Decoder& decoder);
void decode_reduction_async(Decoder& decoder);
bool decode_powers_of_two(Decoder& decoder, Rounding round, bool saturate);
// cvt of pairs with scales, with .pzo, and to and from s2f6x2 and ue5m3x2, if it is one.
bool decode_scaled_pairs(Decoder& decoder, Rounding round, bool saturate, bool relu);
// What orders and places an access, and says no more of it where a warp's accesses happen at once
// and in order, and blocks see each other's memory.
inline constexpr isa::QualifierSet scopes_and_orders =
    "weak relaxed acquire release acq_rel volatile mmio cta cluster gpu sys";
inline constexpr isa::QualifierSet cache_hints =
    "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate "
    "L2::evict_normal L2::evict_unchanged L2::evict_first L2::evict_last L2::cache_hint "
    "L2::64B L2::128B L2::256B";

/// The window of the state space that a memory instruction's spelling names.
Window memory_window(Decoder& decoder);

}  // namespace tartan::TARTAN_ABI::emulator
