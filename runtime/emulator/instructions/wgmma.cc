// SPDX-License-Identifier: Apache-2.0
// wgmma (PTX ISA 9.0, 9.7.15): products of a warpgroup. The last of its four warps to arrive
// computes for all of them.
//
// A product is done when it is issued: recorded hardware gives the result of program order,
// whatever fences and waits are left out. wgmma.fence, commit_group and wait_group only bring the
// warp's lanes together.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "compiler/isa/hints.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::size_t warp_lanes = 32, warpgroup_lanes = 128;

// A value that all threads of the warpgroup must agree on, by its name in the manual.
struct SharedOperand {
  std::string_view name;
  std::uint64_t value = 0;
  bool agreed = true;
  std::uint32_t warp = 0;
  int lane = 0;  // of the first that differs

  template <typename ValueOf>
  SharedOperand(std::string_view name, std::span<Warp> warps, ValueOf&& value_of) : name(name) {
    value = value_of(warps[0], 0);
    for (std::uint32_t w = 0; w < warps.size(); ++w)
      for (int l = 0; l < static_cast<int>(warp_lanes) && agreed; ++l)
        if (value_of(warps[w], l) != value) {
          agreed = false;
          warp = w;
          lane = l;
        }
  }
};

SharedOperand descriptor(std::string_view name, std::span<Warp> warps, std::uint32_t slot) {
  return {name, warps,
          [=](Warp& warp, int lane) { return lanes<std::uint64_t>(warp, slot)[lane]; }};
}

// Registers of a fragment as 128 threads' words, and back.
class Registers {
 public:
  explicit Registers(std::size_t count) : words_(count * warpgroup_lanes) {
    for (std::size_t r = 0; r < count; ++r)
      pointers_.push_back(words_.data() + r * warpgroup_lanes);
  }
  void load(std::span<Warp> warps, const std::vector<std::uint32_t>& slots) {
    for (std::size_t r = 0; r < slots.size(); ++r)
      for (std::size_t w = 0; w < warps.size(); ++w)
        std::copy_n(lanes<std::uint32_t>(warps[w], slots[r]), warp_lanes,
                    pointers_[r] + w * warp_lanes);
  }
  void store(std::span<Warp> warps, const std::vector<std::uint32_t>& slots) const {
    for (std::size_t r = 0; r < slots.size(); ++r)
      for (std::size_t w = 0; w < warps.size(); ++w)
        std::copy_n(pointers_[r] + w * warp_lanes, warp_lanes,
                    lanes<std::uint32_t>(warps[w], slots[r]));
  }
  std::uint32_t* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::uint32_t> words_;
  std::vector<std::uint32_t*> pointers_;
};

// Reads registers and tiles, and writes the accumulators.
void multiply(Warp& warp, std::span<Warp> warps, const WarpgroupOperation& w,
              WgmmaOperands operands) {
  Registers d(w.d.size()), a(w.a.size()), metadata(w.metadata ? 1 : 0);
  if (operands.scale_d) d.load(warps, w.d);
  a.load(warps, w.a);
  if (w.metadata) metadata.load(warps, {*w.metadata});
  operands.d = d.get();
  operands.a = a.get();
  operands.metadata = w.metadata ? metadata.get()[0] : nullptr;
  tell(warp, &ValueEvents::multiply_warpgroup, warps, w, operands);
  if (const Status status = w.product->run(operands, warp.block->cluster().scratch); !status)
    return warp.fail("memory-fault"_rule, status.diags()[0].message);
  d.store(warps, w.d);
  warp.multiply_adds += w.product->multiply_adds();
}

void product(Warp& warp, const Op& op) {
  if (!warp.gather_whole() || !warp.block->gather_warpgroup(warp)) return;
  const WarpgroupOperation& w = warp.program->warpgroup_operations[op.list];
  const std::span<Warp> warps = warp.block->warpgroup(warp);
  WgmmaOperands operands = w.immediates;

  std::vector<SharedOperand> agreed;
  agreed.emplace_back("scale-d", warps, [&](Warp& of, int lane) {
    return std::uint64_t{predicate(of, w.scale_d) >> lane & 1};
  });
  operands.scale_d = agreed[0].value != 0;
  agreed.push_back(descriptor("b-desc", warps, w.b_descriptor));
  operands.b_descriptor = agreed[1].value;
  if (w.a.empty()) {
    agreed.push_back(descriptor("a-desc", warps, w.a_descriptor));
    operands.a_descriptor = agreed[2].value;
  }
  for (const SharedOperand& one : agreed)
    if (!one.agreed)
      return warp.block->fail(
          warps[one.warp], warp.pc - 1, "warpgroup-operand"_rule,
          fmt::format("the threads of a warpgroup disagree on {}: the first thread has 0x{:x}",
                      one.name, one.value),
          one.lane, 0);

  if (!ask(warp, &ValueEvents::issue_product, warps, w)) return;
  operands.shared = {warp.block->shared(), warp.block->shared_bytes()};
  if (!ask(warp, &Events::issue_product, warps, w, operands)) return;
  warp.block->cluster().issue(warp, warp.mask, AsyncKind::product,
                              [=, &warp, &w] { multiply(warp, warps, w, operands); });
}

void converge(Warp& warp, const Op&) { warp.gather_whole(); }

void commit(Warp& warp, const Op&) {
  if (!warp.gather_whole()) return;
  warp.block->cluster().commit(warp, AsyncKind::product);
}

// op.value: groups that may be pending.
void wait(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  warp.block->cluster().wait(warp, AsyncKind::product, static_cast<std::uint32_t>(op.value));
}

// ---- Decoding.

void read_operand(Decoder& d, const ptx::Operand& operand, const isa::OperandSpec& spec,
                  WarpgroupOperation& w) {
  using isa::Role;
  WgmmaOperands& immediates = w.immediates;
  switch (spec.role) {
    case Role::d: w.d = d.fragment(operand, spec, true); break;
    case Role::a: w.a = d.fragment(operand, spec, false); break;
    case Role::a_descriptor: w.a_descriptor = d.source(operand, Type::b64); break;
    case Role::b_descriptor: w.b_descriptor = d.source(operand, Type::b64); break;
    case Role::metadata: w.metadata = d.source(operand, Type::b32); break;
    case Role::scale_d: w.scale_d = d.predicate_source(operand); break;
    case Role::selector: immediates.selector = d.immediate(operand, spec); break;
    case Role::imm_scale_a: immediates.scale_a = d.immediate(operand, spec); break;
    case Role::imm_scale_b: immediates.scale_b = d.immediate(operand, spec); break;
    case Role::imm_trans_a:  // with A in registers there is one immediate, and it is B's
      (w.a.empty() ? immediates.trans_a : immediates.trans_b) = d.immediate(operand, spec);
      break;
    case Role::imm_trans_b: immediates.trans_b = d.immediate(operand, spec); break;
    default: d.unsupported(); break;
  }
}

void decode_product(Decoder& d) {
  const isa::Spelling& spelling = d.spelling.as_read();
  d.spelling.ignore_all();
  if (spelling.signatures.empty())
    return d.error(isa::mismatch_rule(spelling), isa::mismatch(spelling));
  isa::Form form = isa::form_of(spelling);
  form.a_in_registers = d.operand_count() > 1 && d.operand(1).kind == ptx::OperandKind::Vector;
  const auto instruction = isa::find(form);
  if (!instruction)
    return d.error("unknown-form"_rule, fmt::format("unknown instruction {}", d.spelling.text()));
  if (d.hardware() != Hardware::sm_90)
    return d.unsupported(fmt::format("wgmma is unsupported on {}", name(d.hardware())));
  if (!d.expect_operands(instruction->operands.size(), instruction->operands.size())) return;
  WarpgroupOperation w;
  for (std::size_t i = 0; i < instruction->operands.size() && !d.failed(); ++i)
    read_operand(d, d.operand(i), instruction->operands[i], w);
  if (d.failed()) return;
  auto made = WgmmaProduct::make(form);
  if (!made) return d.unsupported(made.diags()[0].message);
  w.product = std::move(*made);
  d.rest_on(w.product->trust(), w.product->source());
  d.emit(product).list = static_cast<std::uint32_t>(d.program().warpgroup_operations.size());
  d.program().warpgroup_operations.push_back(std::move(w));
}

void decode_group(Decoder& d) {
  const bool waits = d.spelling.opcode() == Opcode::wgmma_wait_group,
             commits = d.spelling.opcode() == Opcode::wgmma_commit_group;
  d.spelling.ignore("sync aligned");
  if (!d.expect_operands(waits ? 1 : 0, waits ? 1 : 0)) return;
  if (!waits && !commits) return void(d.emit(converge));
  if (commits) return void(d.emit(commit));
  d.emit(wait).value = static_cast<std::uint64_t>(d.integer(d.operand(0)).value_or(0));
}

}  // namespace

constexpr EmulatedRow warpgroup_rows[] = {
    {Opcode::wgmma, decode_product, Flow::ByHandler, ValueSources::Factors, Meaning::ByHandler,
     AccessKind::None, Idle::No, nothing},
    {Opcode::wgmma_fence, decode_group, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::wgmma_commit_group, decode_group, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
    {Opcode::wgmma_wait_group, decode_group, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(warpgroup_rows, topics::warpgroup));

}  // namespace tartan::TARTAN_ABI::emulator
