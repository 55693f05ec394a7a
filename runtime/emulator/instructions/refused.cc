// SPDX-License-Identifier: Apache-2.0
// What the emulator does not run: rows for a message that says so.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/isa/hints.h"
#include "runtime/emulator/instructions/table.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

void refuse(Decoder& d, std::string_view what) {
  d.error("unsupported-instruction"_rule,
          fmt::format("{} are not emulated: {}", what, d.spelling.text()));
}

void refuse_textures(Decoder& d) { refuse(d, "textures and samplers"); }
void refuse_surfaces(Decoder& d) { refuse(d, "surfaces"); }
void refuse_multimem(Decoder& d) { refuse(d, "multimem addresses (memory of several GPUs)"); }
void refuse_fabric(Decoder& d) { refuse(d, "copies to and from other nodes (fabric)"); }
void refuse_sparse_data(Decoder& d) { refuse(d, "compression of sparse data"); }
void refuse_priorities(Decoder& d) { refuse(d, "priorities of L2 lines by the copy engine"); }
void refuse_allocations(Decoder& d) { refuse(d, "allocation classes of tensor maps"); }
void refuse_traces(Decoder& d) { refuse(d, "marks of a trace"); }
void refuse_carryless(Decoder& d) { refuse(d, "carry-less multiplications"); }
void refuse_layouts(Decoder& d) { refuse(d, "layouts of mbarriers"); }
void refuse_tensor_memory(Decoder& d) { refuse(d, "tensor memory and tcgen05 MMAs"); }

constexpr InstructionRow rows[] = {
    {Opcode::tex, refuse_textures},
    {Opcode::tld4, refuse_textures},
    {Opcode::txq, refuse_textures},
    {Opcode::suld, refuse_surfaces},
    {Opcode::sust, refuse_surfaces},
    {Opcode::sured, refuse_surfaces},
    {Opcode::suq, refuse_surfaces},
    {Opcode::multimem_ld_reduce, refuse_multimem},
    {Opcode::multimem_st, refuse_multimem},
    {Opcode::multimem_red, refuse_multimem},
    {Opcode::multimem_st_async, refuse_multimem},
    {Opcode::multimem_red_async, refuse_multimem},
    {Opcode::multimem_cp_async_bulk, refuse_multimem},
    {Opcode::multimem_cp_reduce_async_bulk, refuse_multimem},
    {Opcode::tcgen05_alloc, refuse_tensor_memory},
    {Opcode::tcgen05_dealloc, refuse_tensor_memory},
    {Opcode::tcgen05_relinquish_alloc_permit, refuse_tensor_memory},
    {Opcode::tcgen05_ld, refuse_tensor_memory},
    {Opcode::tcgen05_ld_red, refuse_tensor_memory},
    {Opcode::tcgen05_ld_spcompress, refuse_tensor_memory},
    {Opcode::tcgen05_ld_red_spcompress, refuse_tensor_memory},
    {Opcode::tcgen05_st, refuse_tensor_memory},
    {Opcode::tcgen05_wait_ld, refuse_tensor_memory},
    {Opcode::tcgen05_wait_st, refuse_tensor_memory},
    {Opcode::tcgen05_cp, refuse_tensor_memory},
    {Opcode::tcgen05_shift, refuse_tensor_memory},
    {Opcode::tcgen05_mma, refuse_tensor_memory},
    {Opcode::tcgen05_mma_sp, refuse_tensor_memory},
    {Opcode::tcgen05_mma_ws, refuse_tensor_memory},
    {Opcode::tcgen05_mma_ws_sp, refuse_tensor_memory},
    {Opcode::tcgen05_fence_before_thread_sync, refuse_tensor_memory},
    {Opcode::tcgen05_fence_after_thread_sync, refuse_tensor_memory},
    {Opcode::tcgen05_commit, refuse_tensor_memory},
    {Opcode::fabric_try_put_async, refuse_fabric},
    {Opcode::fabric_try_put_async_tensor, refuse_fabric},
    {Opcode::fabric_try_red_async, refuse_fabric},
    {Opcode::fabric_try_red_async_tensor, refuse_fabric},
    {Opcode::fabric_try_get_async, refuse_fabric},
    {Opcode::fabric_try_get_async_tensor, refuse_fabric},
    {Opcode::fabric_try_pullred_async, refuse_fabric},
    {Opcode::fabric_try_atom_async, refuse_fabric},
    {Opcode::fabric_submit, refuse_fabric},
    {Opcode::fabric_submit_commit_group, refuse_fabric},
    {Opcode::fabric_wait, refuse_fabric},
    {Opcode::spcompress, refuse_sparse_data},
    {Opcode::spdecompress, refuse_sparse_data},
    {Opcode::applypriority_async_bulk, refuse_priorities},
    {Opcode::applypriority_async_bulk_tensor, refuse_priorities},
    {Opcode::tensormap_query, refuse_allocations},
    {Opcode::trace_mark, refuse_traces},
    {Opcode::clmad, refuse_carryless},
    {Opcode::mbarrier_check_layout, refuse_layouts},
};

}  // namespace

std::span<const InstructionRow> refused_instructions() { return rows; }

bool is_newer_than_emulated(const isa::Spelling& spelling, Decode decode) {
  constexpr Version emulated{9, 0};
  if (spelling.opcode == Opcode::ld || spelling.opcode == Opcode::st) return false;
  return isa::first_version(spelling) > emulated &&
         std::ranges::find(rows, decode, &InstructionRow::decode) == std::end(rows);
}

}  // namespace tartan::TARTAN_ABI::emulator
