// SPDX-License-Identifier: Apache-2.0
// Operands of tcgen05 that constants of the text decide: descriptors of instructions and of tiles,
// numbers of columns, and lanes. Fields of which a bit is unknown are not judged.
#include <fmt/format.h>

#include <bit>

#include "compiler/isa/tensor_descriptors.h"
#include "compiler/verify/known_bits.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Opcode;
using isa::PartialBits;
using isa::operator""_q;

class TensorDescriptorChecker {
 public:
  TensorDescriptorChecker(Context& context, const FunctionView& view)
      : context_(context), view_(view), bits_(context.module, view.definitions) {}

  void run() {
    for (const ptx::Statement& statement : view_.function.statements) {
      if (statement.kind == ptx::StatementKind::Label) forget();
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      const ptx::Instruction& each = context_.module.instructions[statement.index];
      const isa::Spelling& spelling = context_.module.spelling(each);
      if (spelling.row().control != isa::Control::FallsThrough && each.guard.empty()) forget();
      if (!isa::is_tensor_memory(spelling.opcode) || spelling.signatures.empty()) continue;
      instruction(each, spelling, context_.module.operands_of(each));
    }
  }

 private:
  void instruction(const ptx::Instruction& at, const isa::Spelling& spelling,
                   std::span<const ptx::Operand> operands) {
    switch (spelling.opcode) {
      case Opcode::tcgen05_alloc:
        if (operands.size() == 2) allocation(at, operands[1]);
        break;
      case Opcode::tcgen05_dealloc:
        if (operands.size() == 2) columns(at, operands[1]);
        break;
      case Opcode::tcgen05_relinquish_alloc_permit:
        if (at.guard.empty()) relinquished_ = &at;
        break;
      case Opcode::tcgen05_ld:
      case Opcode::tcgen05_ld_red:
      case Opcode::tcgen05_st: lanes(at, spelling, operands); break;
      case Opcode::tcgen05_cp:
        if (operands.size() == 2)
          tile(at, "the descriptor of the source", operands[1], std::nullopt, false);
        break;
      case Opcode::tcgen05_mma:
      case Opcode::tcgen05_mma_sp:
      case Opcode::tcgen05_mma_ws:
      case Opcode::tcgen05_mma_ws_sp: product(at, spelling, operands); break;
      default: break;
    }
  }

  // ---- Allocation, on the fall-through path.

  void forget() {
    last_count_ = 0;
    relinquished_ = nullptr;
  }

  std::optional<std::uint32_t> columns(const ptx::Instruction& at, const ptx::Operand& count) {
    const PartialBits found = bits_.of(count);
    if (count.kind != ptx::OperandKind::Name || !found.has(0, 32)) return std::nullopt;
    const std::uint32_t value = found.get(0, 32);
    if (std::has_single_bit(value) && value >= 32 && value <= 512) return value;
    std::uint32_t nearest = 32;
    while (nearest < value && nearest < 512) nearest *= 2;
    report("tensor-memory"_rule, at,
           fmt::format("{} of {} columns: expected a power of two from 32 to 512; the next one is "
                       "{}",
                       at.opcode, value, nearest));
    return std::nullopt;
  }

  void allocation(const ptx::Instruction& at, const ptx::Operand& count) {
    if (relinquished_)
      report(
          "tensor-memory"_rule, at,
          fmt::format("{} after tcgen05.relinquish_alloc_permit on line {}: the CTA may allocate "
                      "no more",
                      at.opcode, line(*relinquished_)));
    const auto size = count.kind == ptx::OperandKind::Integer
                          ? std::optional(static_cast<std::uint32_t>(count.value))
                          : columns(at, count);
    if (!size || !at.guard.empty()) return;
    if (last_count_ && *size > last_count_)
      report("tensor-memory"_rule, at,
             fmt::format("{} of {} columns after an allocation of {} on line {}: the sizes of a "
                         "CTA's allocations must not grow",
                         at.opcode, *size, last_count_, line(*last_)));
    last_count_ = *size;
    last_ = &at;
  }

  // ---- Lanes: addresses of allocations begin in lane 0, those of a warp's quarter at a multiple
  // of 32.

  void lanes(const ptx::Instruction& at, const isa::Spelling& spelling,
             std::span<const ptx::Operand> operands) {
    for (const ptx::Operand& operand : operands) {
      if (operand.kind != ptx::OperandKind::Address || operand.value >> 31) continue;
      const std::uint64_t lane = operand.value >> 16 & 0x7F;
      const std::uint64_t step = spelling.has("32x32b"_q) ? 32 : 16;
      if (lane % step == 0) continue;
      report("tensor-memory"_rule, at,
             fmt::format("{}: the offset 0x{:x} leads {} lanes further, which is not a multiple of "
                         "{}; {} is the nearest one below",
                         at.opcode, operand.value, lane, step, lane / step * step));
    }
  }

  // ---- Products and copies.

  void product(const ptx::Instruction& at, const isa::Spelling& spelling,
               std::span<const ptx::Operand> operands) {
    auto mma = isa::tensor_mma(spelling, context_.target.arch);
    const std::size_t place = 3 + (mma && mma->sparse ? 1 : 0);
    if (!mma || operands.size() <= place) return;
    mma->a_in_tensor = operands[1].kind == ptx::OperandKind::Address;
    const PartialBits idesc = bits_.of(operands[place]);
    if (const std::string why = isa::instruction_descriptor_fault(*mma, idesc); !why.empty())
      report("instruction-descriptor"_rule, at,
             describe("the instruction descriptor", idesc, 32,
                      isa::instruction_descriptor_text(*mma, idesc), why));
    const bool absolute = mma->fours() && (!idesc.has(31, 1) || idesc.get(31, 1));
    if (!mma->a_in_tensor)
      tile(at, "the descriptor of A", operands[1], isa::wants_wide_atoms(*mma, idesc, 'A'),
           absolute);
    tile(at, "the descriptor of B", operands[2], isa::wants_wide_atoms(*mma, idesc, 'B'), absolute);
  }

  void tile(const ptx::Instruction& at, std::string_view what, const ptx::Operand& operand,
            std::optional<bool> wide, bool absolute) {
    const PartialBits found = bits_.of(operand);
    const std::string why = isa::tile_descriptor_fault(found, wide, absolute);
    if (!why.empty())
      report("matrix-descriptor"_rule, at,
             describe(what, found, 64, isa::tile_descriptor_text(found), why));
  }

  static std::string describe(std::string_view what, const PartialBits& bits, int width,
                              const std::string& text, const std::string& why) {
    std::string out(what);
    const std::uint64_t all = PartialBits::ones(width);
    if ((bits.known & all) == all) out += fmt::format(" 0x{:0{}x}", bits.value & all, width / 4);
    if (!text.empty()) out += fmt::format(" ({})", text);
    return fmt::format("{}: {}", out, why);
  }

  int line(const ptx::Instruction& of) const { return context_.module.source->line(of.offset); }
  void report(const Rule& rule, const ptx::Instruction& at, std::string message) {
    context_.report(rule, at.opcode, std::move(message));
  }

  Context& context_;
  const FunctionView& view_;
  KnownBits bits_;
  std::uint32_t last_count_ = 0;
  const ptx::Instruction* last_ = nullptr;
  const ptx::Instruction* relinquished_ = nullptr;
};

}  // namespace

void check_tensor_descriptors(Context& context, const FunctionView& view) {
  TensorDescriptorChecker(context, view).run();
}

}  // namespace tartan::TARTAN_ABI::verify
