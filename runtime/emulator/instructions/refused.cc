// SPDX-License-Identifier: Apache-2.0
// What the emulator does not run: rows for a message that says so.
#include <fmt/format.h>

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
    {Opcode::multimem_cp_async_bulk, refuse_multimem},
    {Opcode::multimem_cp_reduce_async_bulk, refuse_multimem},
    {Opcode::tcgen05_alloc, refuse_tensor_memory},
    {Opcode::tcgen05_dealloc, refuse_tensor_memory},
    {Opcode::tcgen05_relinquish_alloc_permit, refuse_tensor_memory},
    {Opcode::tcgen05_ld, refuse_tensor_memory},
    {Opcode::tcgen05_ld_red, refuse_tensor_memory},
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
};

}  // namespace

std::span<const InstructionRow> refused_instructions() { return rows; }

}  // namespace tartan::TARTAN_ABI::emulator
