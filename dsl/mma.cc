// SPDX-License-Identifier: Apache-2.0
// Multiplying fragments.
#include "compiler/isa/instruction.h"
#include "dsl/state.h"

namespace tartan::detail {
namespace {

using codegen::Value;

std::string made_at(const Place& place) { return fmt::format("{}:{}", place.file, place.line); }

class Multiplier {
 public:
  Multiplier(KernelState& state, const Fragment& a, const Fragment& b, const Fragment* c,
             Type zero_type)
      : state_(state), a_(a), b_(b), c_(c), zero_type_(zero_type) {}

  Fragment multiply() {
    const bool good_roles =
        role(a_, Operand::a) & role(b_, Operand::b) & (!c_ || role(*c_, Operand::c));
    if (!good_roles || !same_shape()) return {};
    const Type accumulator = c_ ? c_->kind().type : zero_type_;
    const isa::Form form = this->form(accumulator);
    const auto row = isa::find(form);
    if (!row) return refuse_types(form);
    if (!row->since.has(state_.target)) return refuse_target(*row);
    const FragmentKind kind = operand_c(a_.kind().shape, accumulator);
    std::vector<Value> operands = KernelState::registers(a_);
    const auto append = [&](const std::vector<Value>& registers) {
      operands.insert(operands.end(), registers.begin(), registers.end());
    };
    append(KernelState::registers(b_));
    append(c_ ? KernelState::registers(*c_) : zeros(kind));
    return state_.fragment(kind, state_.f().matrix(form, {}, operands));
  }

 private:
  bool role(const Fragment& fragment, Operand wanted) {
    if (fragment.kind().operand == wanted) return true;
    const FragmentKind fitting{fragment.kind().shape, wanted, fragment.kind().type};
    state_.report("wrong-role"_rule,
                  fmt::format("operand {} of mma takes the fragment {}, found {} (made at {}); "
                              "load it as operand_{}({}, {})",
                              name(wanted), fitting.text(), fragment.kind().text(),
                              made_at(KernelState::made(fragment)), name(wanted),
                              fragment.kind().shape.shape.text(), name(fragment.kind().type)));
    return false;
  }

  bool same_shape() {
    const MmaShape& shape = a_.kind().shape;
    const Fragment* const others[] = {&b_, c_};
    for (const Fragment* other : others) {
      if (!other || other->kind().shape == shape) continue;
      state_.report(
          "fragment-mismatch"_rule,
          fmt::format(
              "mma takes fragments of one instruction, found {} (made at {}) and {} (made at {})",
              a_.kind().text(), made_at(KernelState::made(a_)), other->kind().text(),
              made_at(KernelState::made(*other))));
      return false;
    }
    return true;
  }

  isa::Form form(Type accumulator) const {
    const FragmentKind& a = a_.kind();
    isa::Form out{.opcode = a.shape.wmma ? isa::Opcode::wmma_mma : isa::Opcode::mma,
                  .shape = a.shape.shape};
    out.a_major = a.shape.wmma ? KernelState::major(a_) : Major::row;
    out.b_major = a.shape.wmma ? KernelState::major(b_) : Major::col;
    out.d = out.c = accumulator;
    out.a = a.type, out.b = b_.kind().type;
    return out;
  }

  Fragment refuse_types(const isa::Form& form) {
    const auto nearest = isa::nearest(form, state_.target);
    state_.report("fragment-mismatch"_rule,
                  fmt::format("there is no instruction {}{}", isa::spell(form),
                              nearest ? "; the nearest on " + state_.target.text() + " is " +
                                            isa::spell(*nearest)
                                      : ""));
    return {};
  }

  Fragment refuse_target(const isa::Instruction& row) {
    const auto nearest = isa::nearest(row.form, state_.target);
    state_.report(
        "no-instruction"_rule,
        fmt::format("{} exists from {} with PTX {} on, the target is {}{}", isa::spell(row.form),
                    isa::oldest(row.since).text(), row.since.ptx.text(), state_.target.text(),
                    nearest ? "; the nearest there is " + isa::spell(*nearest) : ""));
    return {};
  }

  std::vector<Value> zeros(const FragmentKind& kind) {
    const Type type = register_type(kind.type);
    const Value zero = info(type).floating ? state_.f().constant(type, 0.0)
                                           : state_.f().constant(type, std::int64_t{0});
    return std::vector<Value>(static_cast<std::size_t>(kind.fragment().registers), zero);
  }

  KernelState& state_;
  const Fragment& a_;
  const Fragment& b_;
  const Fragment* c_;
  Type zero_type_;
};

}  // namespace

Fragment KernelState::mma(const Fragment& a, const Fragment& b, const Fragment* c, Type zero_type) {
  const bool owned = owns(a, "operand a") & owns(b, "operand b") & (!c || owns(*c, "operand c"));
  if (!owned || is_bad(a) || is_bad(b) || (c && is_bad(*c))) return {};
  return Multiplier(*this, a, b, c, zero_type).multiply();
}

}  // namespace tartan::detail
