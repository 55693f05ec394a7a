// SPDX-License-Identifier: Apache-2.0
// dsl/state/operations.h - Builder's operations on tiles and fragments: each reports errors or adds
// its code to the kernel. Not installed.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/state/state.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::detail {

// -- Tiles: dsl/units/threads/copy.cc, dsl/units/tma/tensor_copy.cc, dsl/tile/tensor_store.cc,
// dsl/units/tma/box_stores.cc.

/// What a copy selects; everything by default. What is not selected, or outside the matrix, is zero
/// in shared memory and stays as it is in global memory.
struct CopySelection {
  /// Row i of the tile in shared memory is this row of the matrix in global memory.
  std::function<Scalar(Scalar)> row_of = nullptr;
  /// Whether to copy the element at (row, column) of the tile, and its `together` - 1 neighbours.
  std::function<Scalar(Scalar, Scalar)> where = nullptr;
  int together = 0;
};
/// What TMA is told: which CTAs of the cluster want the tile, and what L2 does with it.
struct TmaHints {
  Among among = Among::none;
  ir::Eviction eviction = ir::Eviction::normal;
};
/// With all threads of the role.
void copy_tile(KernelState& state, const Tensor& from, const Tensor& to,
               const CopySelection& selection = {}, const TmaHints& hints = {});
/// With this thread's warp alone, for tiles of the same size.
void copy_by_warp(KernelState& state, const Tensor& from, const Tensor& to);
/// By TMA if possible; otherwise gives the reason.
bool copy_by_tma(KernelState& state, const Tensor& from, const Tensor& to, const TmaHints& hints,
                 std::vector<std::string>& refused);
/// Before a warp that stored by TMA exits, TMA must have read its shared memory.
void finish_stores(KernelState& state);

// -- Fragments: dsl/units/warp_mma/load.cc, dsl/units/warp_mma/mma.cc, dsl/units/warp_mma/store.cc.

Fragment load_fragment(KernelState& state, const FragmentKind& kind, const Tensor& from);
/// `count` adjacent fragments, two per ldmatrix if possible: vertically for A, horizontally for B.
std::vector<Fragment> load_side(KernelState& state, const FragmentKind& kind, const Tensor& from,
                                int count);
/// `c`: null for a zero accumulator of `zero_type`.
Fragment multiply_fragments(KernelState& state, const Fragment& a, const Fragment& b,
                            const Fragment* c, Type zero_type, const MmaOptions& options = {});
/// Whether elements of A and B can be negated, if the options ask for it; reports if not.
bool may_negate(KernelState& state, const MmaOptions& options, Type a, Type b);
/// `as`: what explain() calls the fragment; empty: what it is.
void store_fragment(KernelState& state, const Tensor& to, const Fragment& fragment,
                    std::string as = {});
/// What explain() calls the choice of best_mma().
std::string product_text(Type a, Type b);

// -- Products by tcgen05: dsl/units/tcgen05/tensor_sums.cc.

/// Whether this thread issues the products of its warpgroup of consumers.
ir::Value issues_products(KernelState& state);
/// The tensor core arrives at an mbarrier when all products are done that the thread has issued.
/// `blocks`: at the same mbarrier of those blocks of the cluster, a bit each; none: at this one's,
/// or at those of both CTAs of a pair, which are the cluster.
void commit_products(KernelState& state, ir::Pointer mbarrier, ir::Value blocks = {});
/// The consumers' body has been described, at a mark: what accumulators in tensor memory take is
/// known.
void settle_tensor_sums(KernelState& state, int body);
/// In the prologue: tensor memory for the accumulators, and one thread's initialization of the
/// mbarriers at which warpgroups wait for products.
void allocate_tensor_memory(KernelState& state);
void init_tensor_barriers(KernelState& state);
/// A stage has arrived. Of a pair of CTAs, the thread that issues products for both waits, at an
/// mbarrier of the first one, until the same stage of the other has.
void meet_stage_of_pair(KernelState& state, ir::Pointer peer, ir::Value parity);
/// At the end of what consumers execute; of a pair of CTAs, when the cluster has met.
void free_tensor_memory(KernelState& state);
void free_tensor_memory_of_pair(KernelState& state);

// -- Elements: dsl/units/threads/element_access.cc.

/// Whether a thread may read or write an element, as far as is known; reports if not.
bool is_element(KernelState& state, const Tensor& tensor, const Scalar& row, const Scalar& col);

// -- Instructions by name: dsl/units/ptx/instruction.cc.

/// `address`: the target of the instruction's address operand; `operands` are then the others.
std::vector<Scalar> named_instruction(KernelState& state, std::string_view spelling,
                                      std::span<const Scalar> operands,
                                      const ir::Pointer* address = nullptr);
/// Checks one operand of an instruction against its row; returns the value, or reports. `part`:
/// which element of a {byte-id, thread-id}.
std::optional<ir::Value> instruction_operand(KernelState& state, const isa::Instruction& row,
                                             const isa::OperandSpec& spec, const Scalar& scalar,
                                             int part = 0);

/// Whether the target has an instruction, in a later PTX version if need be; reports those that no
/// target has.
bool has_instruction(KernelState& state, std::string_view spelling);

// -- Numbers: dsl/value/math.cc.

/// Reports that the target does not convert e4m3 and e5m2; returns a refused scalar.
Scalar refuse_eight_bits(KernelState& state);

/// An element that was loaded, as a number: of s8 and u8 as s32 and u32, as Builder::elements()
/// gives them.
Scalar widened_element(KernelState& state, ir::Value element);
/// `result`, which is one of `from` as it was: what may be written to bytes stays so.
Scalar one_of(KernelState& state, Scalar result, std::initializer_list<const Scalar*> from);
/// Whether a matrix of `element` takes the low bits of a value: of one that a read has widened, and
/// no call has changed.
bool takes_low_bits(const KernelState& state, Type element, const Scalar& value);

}  // namespace tartan::TARTAN_ABI::detail
