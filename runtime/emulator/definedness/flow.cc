// SPDX-License-Identifier: Apache-2.0
// How undefined bits go through each instruction.
#include "runtime/emulator/definedness/definedness.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::emulator {

using isa::Opcode;
using isa::operator""_q;

Flow flow_of(const isa::Spelling& spelling) {
  if (isa::is_mbarrier(spelling.opcode)) return Flow::Uses;
  if (isa::is_asynchronous_copy(spelling.opcode)) return Flow::ByHandler;
  switch (spelling.opcode) {
    case Opcode::mov: return Flow::Copies;
    case Opcode::not_: return Flow::Not;
    case Opcode::and_: return Flow::And;
    case Opcode::or_: return Flow::Or;
    case Opcode::xor_: return Flow::Xor;
    case Opcode::lop3: return Flow::Table;
    case Opcode::shl: return Flow::ShiftsLeft;
    case Opcode::shr: return Flow::ShiftsRight;
    case Opcode::shf: return Flow::Funnels;
    case Opcode::brev: return Flow::Reverses;
    case Opcode::bfe: return Flow::Extracts;
    case Opcode::bfi: return Flow::Inserts;
    case Opcode::prmt: return Flow::Permutes;
    case Opcode::selp: return Flow::Selects;
    case Opcode::cvt: return Flow::Converts;
    case Opcode::ld:
    case Opcode::ldu: return Flow::Loads;
    case Opcode::st: return Flow::Stores;
    case Opcode::atom:
    case Opcode::red: return Flow::Atomic;
    case Opcode::ldmatrix: return Flow::LoadsRows;
    case Opcode::stmatrix: return Flow::StoresRows;
    case Opcode::movmatrix: return Flow::Transposes;
    case Opcode::mma:
    case Opcode::wmma_mma: return Flow::Multiplies;
    case Opcode::vote:
    case Opcode::match:
    case Opcode::redux: return Flow::Collects;
    case Opcode::bar:
    case Opcode::barrier: return spelling.has("red"_q) ? Flow::Collects : Flow::Uses;
    case Opcode::shfl:
    case Opcode::call:
    case Opcode::wmma_load:
    case Opcode::wmma_store:
    case Opcode::wgmma: return Flow::ByHandler;
    case Opcode::bra:
    case Opcode::brx_idx:
    case Opcode::ret:
    case Opcode::exit:
    case Opcode::trap:
    case Opcode::brkpt:
    case Opcode::bar_warp:
    case Opcode::barrier_cluster_arrive:
    case Opcode::barrier_cluster_wait:
    case Opcode::membar:
    case Opcode::fence:
    case Opcode::fence_proxy:
    case Opcode::fence_mbarrier_init:
    case Opcode::elect:
    case Opcode::st_async:
    case Opcode::st_bulk:
    case Opcode::red_async:
    case Opcode::tensormap_replace:
    case Opcode::tensormap_cp_fenceproxy:
    case Opcode::clusterlaunchcontrol_try_cancel:
    case Opcode::griddepcontrol:
    case Opcode::setmaxnreg:
    case Opcode::nanosleep:
    case Opcode::alloca:
    case Opcode::stackrestore: return Flow::Uses;
    default: return Flow::Spreads;
  }
}

// In the order of Flow: what comes behind Loads does, or brings lanes together.
bool has_side_effect(Flow flow) { return flow > Flow::Loads; }

bool is_value(const isa::Spelling& spelling, const RegisterUse& use) {
  switch (spelling.opcode) {
    case Opcode::call: return use.operand != 0 || spelling.signatures.empty();
    case Opcode::wgmma: return use.operand <= 1 && use.type != Type::b64;
    case Opcode::bar:
    case Opcode::barrier: return use.type == Type::pred;
    case Opcode::shfl:
    case Opcode::vote:
    case Opcode::match:
    case Opcode::redux:
    case Opcode::wmma_store: return use.operand == 1;
    default: return false;
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
