// SPDX-License-Identifier: Apache-2.0
// From an instruction's row and operands to its step.
#include <algorithm>

#include "runtime/emulator/algebra/steps.h"
#include "runtime/emulator/instructions/table.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

struct Packed {
  Type element = Type::none;
  std::uint8_t count = 1;
};

Packed packed(Type type) {
  switch (type) {
    case Type::f16x2: return {Type::f16, 2};
    case Type::bf16x2: return {Type::bf16, 2};
    case Type::f32x2: return {Type::f32, 2};
    case Type::e4m3x2: return {Type::e4m3, 2};
    case Type::e5m2x2: return {Type::e5m2, 2};
    case Type::e2m3x2: return {Type::e2m3, 2};
    case Type::e3m2x2: return {Type::e3m2, 2};
    case Type::ue8m0x2: return {Type::ue8m0, 2};
    case Type::e4m3x4: return {Type::e4m3, 4};
    case Type::e5m2x4: return {Type::e5m2, 4};
    case Type::e2m3x4: return {Type::e2m3, 4};
    case Type::e3m2x4: return {Type::e3m2, 4};
    case Type::e2m1x2:
    case Type::e2m1x4:
    case Type::s2f6x2:
    case Type::ue5m3x2: return {};
    default: return {type, 1};
  }
}

bool floating(Type type) { return info(packed(type).element).floating; }

void run_lifted(Warp& warp, const Op& op) {
  const Lift& lift = (*warp.program->observation<Lifts>())[warp.pc - 1];
  // Lanes that met there from several places of the text bring registers that nobody knows.
  if (&op != &warp.program->ops[warp.pc - 1]) {
    algebra_of(warp).give_up(&warp, "lanes meet at different places");
    return lift.inner(warp, op);
  }
  if (lift.step(warp, op, lift)) lift.inner(warp, op);
}

// ---- Operands.

std::uint8_t lane_bytes(Type type) {
  return static_cast<std::uint8_t>(std::max(bits(type), 8) / 8);
}

class Operands {
 public:
  Operands(Decoder& d, Lift& lift) : d_(d), lift_(lift) {}

  /// The registers of all operands, results apart, as the row says.
  void registers() {
    const isa::Spelling& spelling = *lift_.spelling;
    if (spelling.signatures.empty()) return;
    const auto rows = isa::operands(*spelling.signatures.front(), spelling);
    for (std::size_t i = 0; i < d_.operand_count(); ++i)
      add(d_.operand(i), i < rows.size && rows[i]->written ? lift_.d : lift_.s);
  }
  /// Operand `i` in `to`; constants as elements of `type`.
  void typed(std::size_t i, Type type, std::vector<LiftedRegister>& to) {
    if (i >= d_.operand_count()) return;
    const ptx::Operand& operand = d_.operand(i);
    if (operand.kind == ptx::OperandKind::Vector || operand.kind == ptx::OperandKind::Pair)
      for (const ptx::Operand& each : d_.children(operand)) one(each, type, to);
    else one(operand, type, to);
  }

 private:
  void add(const ptx::Operand& operand, std::vector<LiftedRegister>& to) {
    if (operand.kind == ptx::OperandKind::Vector || operand.kind == ptx::OperandKind::Pair)
      for (const ptx::Operand& each : d_.children(operand)) add(each, to);
    else if (const auto found = d_.register_of(operand); found && found->type != Type::pred)
      to.push_back({found->slot, lane_bytes(found->type)});
  }
  void one(const ptx::Operand& operand, Type type, std::vector<LiftedRegister>& to) {
    if (operand.kind == ptx::OperandKind::Name && operand.text == "_")
      return to.push_back({~0u, lane_bytes(type)});
    if (const auto found = d_.register_of(operand)) {
      if (found->type != Type::pred) to.push_back({found->slot, lane_bytes(found->type)});
      return;
    }
    to.push_back({d_.source(operand, type), lane_bytes(type)});
  }

  Decoder& d_;
  Lift& lift_;
};

// ---- What an opcode does to values.

Step with_types(Lift& lift, Step step) {
  const isa::Spelling& spelling = *lift.spelling;
  const Packed to = packed(spelling.type(0));
  lift.to = to.element;
  lift.count = to.count;
  lift.from = spelling.types.size > 1 ? packed(spelling.type(1)).element : to.element;
  return lift.to == Type::none || lift.from == Type::none ? compute_bits : step;
}

Step convert(Lift& lift) {
  const Type to = lift.spelling->type(0), from = lift.spelling->type(1);
  if (lift.spelling->has("scaled::n1::ue8m0"_q) || lift.spelling->has("scaled::n2::ue8m0"_q))
    return compute_bits;
  if (floating(to)) return with_types(lift, convert_values);
  if (floating(from)) return compute_bits;
  const bool sat = lift.spelling->has("sat"_q);
  return sat || (info(from).is_signed && bits(to) > bits(from)) ? compute_bits : resize_word;
}

bool is_word(Type type) {
  return bits(type) == 32 && type != Type::u16x2 && type != Type::s16x2 && type != Type::u8x4 &&
         type != Type::s8x4;
}

Step arithmetic(Lift& lift) {
  if (packed(lift.spelling->type(0)).count == 4) return compute_bits;  // sources of other types
  if (floating(lift.spelling->type(0))) return with_types(lift, compute_values);
  const bool words = is_word(lift.spelling->type(0)) && lift.spelling->types.size == 1 &&
                     !lift.spelling->has("hi"_q) && !lift.spelling->has("wide"_q);
  return words ? compute_integers : compute_bits;
}

Meaning meaning_of(const Lift& lift) { return emulated(*lift.spelling).lift; }

Step step_of(Lift& lift) {
  switch (meaning_of(lift)) {
    case Meaning::Bits:
    case Meaning::Fields: return compute_bits;
    case Meaning::LanesBits: return collect_bits;
    case Meaning::Moves: return move_words;
    case Meaning::Selects: return select;
    case Meaning::SelectsBySign: return select_by_sign;
    case Meaning::Compares: return compare_words;
    case Meaning::Shuffles: return shuffle_lanes;
    case Meaning::Permutes: return permute_bytes;
    case Meaning::ShiftsLeft:
    case Meaning::Shifts: return shift_bytes;
    case Meaning::Inverts:
    case Meaning::Combines: return combine_bits;
    case Meaning::Computes: return arithmetic(lift);
    case Meaning::Functions: return with_types(lift, compute_values);
    case Meaning::Converts: return convert(lift);
    case Meaning::Forgets: return forget;
    case Meaning::Loads: return load_words;
    case Meaning::Stores: return store_words;
    case Meaning::Updates: return update_memory;
    case Meaning::LoadsRows: return load_rows;
    case Meaning::StoresRows: return store_rows;
    case Meaning::Transposes: return transpose_matrix;
    case Meaning::ByHandler: return nullptr;
  }
  return nullptr;
}

void read_operands(Decoder& d, Lift& lift) {
  Operands operands(d, lift);
  const isa::Spelling& spelling = *lift.spelling;
  const bool values = lift.step == compute_values || lift.step == convert_values,
             selects = lift.step == select || lift.step == select_by_sign;
  if (!values && !selects && lift.step != move_words && lift.step != store_words &&
      lift.step != combine_bits && lift.step != shift_bytes && lift.step != permute_bytes &&
      lift.step != compute_integers && lift.step != update_memory && lift.step != shuffle_lanes &&
      lift.step != load_words)
    return operands.registers();
  const Type type = spelling.type(0);
  const bool stores = lift.step == store_words;
  std::size_t next = 0;
  if (emulated(spelling).access != AccessKind::Reduces && !stores)
    operands.typed(next++, lift.step == move_words ? Type::b32 : type, lift.d);
  if (stores || lift.step == update_memory) ++next;  // the address
  if (lift.step == load_words) return;
  for (; next < d.operand_count(); ++next) {
    const bool shifts = lift.step == shift_bytes && next > 1 && spelling.opcode != Opcode::bfi;
    const bool whole = spelling.opcode == Opcode::bfi && next > 2;
    const bool last = lift.step == convert_values;
    const bool signs = lift.step == select_by_sign && next == 3;
    const bool mixed = lift.step == compute_values && spelling.types.size > 1 && next < 3 &&
                       next < d.operand_count() - (spelling.opcode == Opcode::fma ? 1 : 0);
    const Type of = shifts || whole ? Type::u32 : last || signs || mixed ? spelling.type(1) : type;
    operands.typed(next, of == Type::none ? Type::b32 : of, lift.s);
  }
  if (lift.step == select)
    if (const auto found = d.register_of(d.operand(3))) lift.predicate = found->slot;
}

}  // namespace

bool tagged(const Warp& warp, const std::vector<LiftedRegister>& regs) {
  return std::ranges::any_of(regs, [&](const LiftedRegister& reg) { return tagged(warp, reg); });
}

bool forget(Warp& warp, const Op&, const Lift& lift) {
  for (const LiftedRegister& reg : lift.d)
    if (tagged(warp, reg))
      each_lane(warp.mask, [&](int lane) { LaneBytes().write(warp, reg, lane); });
  return true;
}

namespace {

// What takes words apart, whose elements are smaller than they are.
bool takes_fields(Meaning meaning) {
  return meaning == Meaning::Fields || meaning == Meaning::Permutes || meaning == Meaning::Shifts ||
         meaning == Meaning::Combines;
}

}  // namespace

namespace {

// The bits of sources are taken.
struct TakenBits {
  Algebra& algebra;
  bool good = true;
  Ref why = 0;  // an undecided value among them

  void take(const LaneBytes& bytes, const LiftedRegister& reg, InputUse use) {
    good &= algebra.take_bits(bytes.tags, room_of(reg), use);
    for (const Tag tag : bytes.tags)
      if (is_valued(tag) && algebra.values[ref_of(tag)].kind == Value::Kind::undecided)
        why = ref_of(tag);
  }
  // The tags of what is computed from them.
  LaneBytes result(Warp& warp, const Lift& lift) {
    if (!good && !why)
      why = algebra.undecided(
          &warp, std::string(lift.spelling->text) + " computes with the bits of a value");
    LaneBytes out;
    if (!good) std::ranges::fill(out.tags, tag_of(why, 1, 0));
    return out;
  }
};

}  // namespace

bool compute_bits(Warp& warp, const Op& op, const Lift& lift) {
  if (!tagged(warp, lift.s)) return forget(warp, op, lift);
  const bool fields = takes_fields(meaning_of(lift));
  const auto use = static_cast<InputUse>(fields ? by_bits | as_fields : by_bits);
  each_lane(warp.mask, [&](int lane) {
    TakenBits taken{algebra_of(warp)};
    for (const LiftedRegister& reg : lift.s) taken.take(LaneBytes(warp, reg, lane), reg, use);
    const LaneBytes out = taken.result(warp, lift);
    for (const LiftedRegister& reg : lift.d) out.write(warp, reg, lane);
  });
  return true;
}

bool collect_bits(Warp& warp, const Op& op, const Lift& lift) {
  std::vector<LaneBytes> sources;  // their registers may be the result's
  for (int lane = 0; lane < 32; ++lane)
    for (const LiftedRegister& reg : lift.s) sources.emplace_back(warp, reg, lane);
  lift.inner(warp, op);
  if (warp.leave) return false;
  TakenBits taken{algebra_of(warp)};
  each_lane(warp.mask, [&](int lane) {
    const std::size_t first = static_cast<std::size_t>(lane) * lift.s.size();
    for (std::size_t i = 0; i < lift.s.size(); ++i)
      taken.take(sources[first + i], lift.s[i], by_bits);
  });
  const LaneBytes out = taken.result(warp, lift);
  each_lane(warp.mask, [&](int lane) {
    for (const LiftedRegister& reg : lift.d) out.write(warp, reg, lane);
  });
  return false;
}

void Lifts::decoded(Decoder& d, std::size_t) {
  Program& program = d.program();
  const isa::Spelling& spelling = d.spelling.as_read();
  Lift lift{.spelling = &spelling};
  lift.step = step_of(lift);
  if (!lift.step) return;
  const std::size_t last = program.ops.size() - 1;
  read_operands(d, lift);
  if (d.failed() || (lift.step == compute_bits && lift.d.empty())) return;
  Op& op = program.ops[last];
  lift.inner = op.run;
  op.run = run_lifted;
  lifts_.resize(last + 1);
  lifts_[last] = std::move(lift);
}

}  // namespace tartan::TARTAN_ABI::emulator
