// SPDX-License-Identifier: Apache-2.0
// Multiplying fragments.
#include "dsl/layout/fragments.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

using ir::Value;

std::string made_at(const Place& place) { return fmt::format("{}:{}", place.file, place.line); }

class Multiplier {
 public:
  Multiplier(KernelState& state, const Fragment& a, const Fragment& b, const Fragment* c,
             Type zero_type, const MmaOptions& options)
      : state_(state), a_(a), b_(b), c_(c), zero_type_(zero_type), options_(options) {}

  Fragment multiply() {
    const bool good_roles =
        role(a_, Operand::a) & role(b_, Operand::b) & (!c_ || role(*c_, Operand::c));
    if (!good_roles || !same_shape() || !by_all_lanes(state_, "mma()")) return {};
    const Type accumulator = c_ ? c_->kind().type : zero_type_;
    const isa::Form form = this->form(accumulator);
    const auto row = isa::find(form);
    if (!row) return refuse_types(form);
    if (!row->since.has(state_.config.target)) return state_.log.refuse_target(*row), Fragment{};
    if (!may_negate(state_, options_, form.a, form.b)) return {};
    std::vector<Value> operands = registers(a_, options_.negate_a);
    const auto append = [&](const std::vector<Value>& registers) {
      operands.insert(operands.end(), registers.begin(), registers.end());
    };
    append(registers(b_, options_.negate_b));
    append(c_ ? registers_of(*c_) : zeros(operand_c(a_.kind().shape, accumulator)));
    if (!append_scalars(*row, operands)) return {};
    return make_fragment(state_, operand_c(a_.kind().shape, form.d),
                         state_.f().matrix(form, {}, operands));
  }

 private:
  std::vector<Value> registers(const Fragment& fragment, bool negate) {
    std::vector<Value> out = registers_of(fragment);
    if (!negate) return out;
    ir::FunctionBuilder& f = state_.f();
    const int element = bits(fragment.kind().type);
    const std::int64_t signs = element == 8 ? 0x80808080 : element == 16 ? 0x80008000 : 0x80000000;
    for (Value& each : out)
      each = each.type == f64
                 ? f.negate(each)
                 : f.bitcast(f.bit_xor(f.bitcast(each, u32), f.constant(u32, signs)), each.type);
    return out;
  }

  bool role(const Fragment& fragment, Operand wanted) {
    if (fragment.kind().operand == wanted) return true;
    const FragmentKind fitting{fragment.kind().shape, wanted, fragment.kind().type};
    state_.log.report(
        "wrong-role"_rule,
        fmt::format("wrong operand {} of mma: expected the fragment {}, found {} (made "
                    "at {}); load it as operand_{}({}, {})",
                    name(wanted), fitting.text(), fragment.kind().text(),
                    made_at(HandleParts::made(fragment)), name(wanted),
                    fragment.kind().shape.shape.text(), name(fragment.kind().type)));
    return false;
  }

  bool same_shape() {
    const MmaShape& shape = a_.kind().shape;
    const Fragment* const others[] = {&b_, c_};
    for (const Fragment* other : others) {
      if (!other || other->kind().shape == shape) continue;
      state_.log.report(
          "fragment-mismatch"_rule,
          fmt::format("fragments of different instructions: {} (made at {}) and {} (made at {})",
                      a_.kind().text(), made_at(HandleParts::made(a_)), other->kind().text(),
                      made_at(HandleParts::made(*other))));
      return false;
    }
    return true;
  }

  static Major major(const Fragment& fragment, Major usual) {
    const Major own =
        fragment.kind().shape.wmma ? HandleParts::major(fragment) : fragment.kind().major;
    return own == Major::none ? usual : own;
  }

  isa::Form form(Type accumulator) const {
    const FragmentKind& a = a_.kind();
    isa::Form out{.opcode = a.shape.wmma ? isa::Opcode::wmma_mma : isa::Opcode::mma,
                  .shape = a.shape.shape};
    out.a_major = major(a_, Major::row);
    out.b_major = major(b_, Major::col);
    out.c = accumulator;
    out.d = options_.d == Type::none ? accumulator : options_.d;
    out.a = a.type, out.b = b_.kind().type;
    out.kind = a.shape.kind;
    out.satfinite = options_.satfinite, out.rounding = options_.rounding;
    out.bit_op = options_.bit_op;
    out.block_scale = options_.scale_type != Type::none;
    out.scale_type = options_.scale_type;
    out.scale_vec = static_cast<std::uint8_t>(options_.scale_vec);
    if (a.shape.sparse) out.sparsity = sparsity(out);
    return out;
  }

  // The hardware's ordered metadata if the target has it.
  isa::Sparsity sparsity(isa::Form form) const {
    if (options_.sparsity != isa::Sparsity::dense) return options_.sparsity;
    form.sparsity = isa::Sparsity::sp;
    const auto plain = isa::find(form);
    form.sparsity = isa::Sparsity::sp_ordered_metadata;
    const auto ordered = isa::find(form);
    return plain && !(ordered && ordered->since.has(state_.config.target))
               ? isa::Sparsity::sp
               : isa::Sparsity::sp_ordered_metadata;
  }

  // The options' value for an operand that is not a fragment; null if they omit it.
  const BlockScale* scale(isa::Role role) const {
    const bool of_a = role == isa::Role::scale_a || role == isa::Role::select_a;
    const auto& out = of_a ? options_.a_scale : options_.b_scale;
    return out ? &*out : nullptr;
  }
  std::vector<Scalar> scalars(isa::Role role) const {
    switch (role) {
      case isa::Role::metadata:
        return options_.metadata ? std::vector{*options_.metadata} : std::vector<Scalar>{};
      case isa::Role::selector: return {options_.selector};
      case isa::Role::scale_a:
      case isa::Role::scale_b:
        return scale(role) ? std::vector{scale(role)->scales} : std::vector<Scalar>{};
      case isa::Role::select_a:
      case isa::Role::select_b:
        return scale(role) ? std::vector{scale(role)->byte_id, scale(role)->thread_id}
                           : std::vector<Scalar>{0, 0};
      default: return {};
    }
  }

  // Appends the operands after the fragments. Also reports options that the form has no operand
  // for.
  bool append_scalars(const isa::Instruction& row, std::vector<Value>& operands) {
    bool good = true;
    for (const isa::OperandSpec& spec : row.operands) {
      if (spec.kind == isa::OperandKind::Vector) continue;
      const std::vector<Scalar> given = scalars(spec.role);
      if (given.empty()) good = missing(row, spec.role, "is missing");
      for (std::size_t i = 0; i < given.size(); ++i) {
        const auto value = instruction_operand(state_, row, spec, given[i], static_cast<int>(i));
        if (value) operands.push_back(*value);
        else good = false;
      }
    }
    for (const isa::Role role : {isa::Role::metadata, isa::Role::scale_a, isa::Role::scale_b})
      if (!scalars(role).empty() && !row.operand(role)) good = missing(row, role, "is unexpected");
    return good;
  }

  bool missing(const isa::Instruction& row, isa::Role role, std::string_view what) {
    state_.log.report("operand-count"_rule,
                      fmt::format("{} {}: {} takes ({})",
                                  role == isa::Role::metadata  ? "metadata"
                                  : role == isa::Role::scale_a ? "a_scale"
                                                               : "b_scale",
                                  what, isa::spell(row.form), isa::operands_text(row)));
    return false;
  }

  Fragment refuse_types(const isa::Form& form) {
    const auto nearest = isa::nearest(form, state_.config.target);
    state_.log.report("fragment-mismatch"_rule,
                      fmt::format("unknown instruction {}{}", isa::spell(form),
                                  nearest ? "; the nearest on " + state_.config.target.text() +
                                                " is " + isa::spell(*nearest)
                                          : ""));
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
  const MmaOptions& options_;
};

}  // namespace

bool may_negate(KernelState& state, const MmaOptions& options, Type a, Type b) {
  const auto possible = [&](bool negate, Type type, std::string_view which) {
    if (!negate || (info(type).floating && bits(type) >= 8)) return true;
    state.log.report(
        "no-instruction"_rule,
        fmt::format("negation requires floating-point elements of at least 8 bits, {} is {}; "
                    "negate the accumulators instead",
                    which, name(type)));
    return false;
  };
  return possible(options.negate_a, a, "A") & possible(options.negate_b, b, "B");
}

Fragment multiply_fragments(KernelState& state, const Fragment& a, const Fragment& b,
                            const Fragment* c, Type zero_type, const MmaOptions& options) {
  const bool owned =
      state.owns(a, "operand a") & state.owns(b, "operand b") & (!c || state.owns(*c, "operand c"));
  const auto bad = [](const Fragment& each) { return is_bad(each); };
  if (!owned || bad(a) || bad(b) || (c && bad(*c))) return {};
  return Multiplier(state, a, b, c, zero_type, options).multiply();
}

}  // namespace tartan::TARTAN_ABI::detail

namespace tartan::TARTAN_ABI {

Fragment Builder::mma(const Fragment& a, const Fragment& b, const Fragment& c,
                      const MmaOptions& options, Here at) {
  return state_->at(at), multiply_fragments(*state_, a, b, &c, Type::none, options);
}
Fragment Builder::mma(const Fragment& a, const Fragment& b, const Zero& c,
                      const MmaOptions& options, Here at) {
  return state_->at(at), multiply_fragments(*state_, a, b, nullptr, c.type, options);
}

void Builder::add(FragmentVariable& sum, const Fragment& a, const Fragment& b,
                  const MmaOptions& options, Here at) {
  sum = mma(a, b, sum, options, at);
}
void Builder::multiply(FragmentVariable& sum, const Fragment& a, const Fragment& b,
                       const MmaOptions& options, Here at) {
  sum = mma(a, b, zero(detail::HandleParts::kind(sum).type), options, at);
}

}  // namespace tartan::TARTAN_ABI
