// SPDX-License-Identifier: Apache-2.0
#include "dsl/units/ptx/assembly.h"

#include <algorithm>
#include <bit>
#include <cctype>

#include "dsl/roles/warpgroups.h"
#include "dsl/state/scalars.h"
#include "tartan/dsl/builder.h"
#include "tartan/isa/spelling.h"
#include "tartan/ptx/parser.h"
#include "tartan/verify/verify.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

// The type of a register that holds a value; none are smaller than 16 bits.
std::string register_of(Type type) {
  const TypeSet own{Type::pred, s16, u16, s32, u32, s64, u64, f16, f32, f64};
  if (own.has(type)) return std::string(name(type));
  if (bits(type) < 16) return info(type).is_signed ? "s16" : "u16";
  return fmt::format("b{}", bits(type));
}

// A constant as PTX writes it.
std::string literal(const Scalar& constant) {
  if (const auto value = real(constant))
    return fmt::format("0d{:016X}", std::bit_cast<std::uint64_t>(*value));
  return fmt::format("{}", *constant.constant());
}

// A statement whose operands are numbered anew, with the constants in the text.
class Statement {
 public:
  Statement(KernelState& state, std::string_view text, std::span<const Type> results,
            std::span<const Scalar> operands)
      : state_(state), results_(results) {
    number(operands);
    good_ &= substitute(text);
  }

  bool good() const { return good_; }
  const std::string& text() const { return text_; }
  const std::vector<ir::Value>& operands() const { return values_; }

  /// Reports what the parser and the verifier say of it.
  bool check() {
    std::string declared;
    for (std::size_t i = 0; i < types_.size(); ++i)
      declared += fmt::format(".reg .{} %{};\n", register_of(types_[i]), i);
    const Target& target = state_.config.target;
    const auto source = std::make_shared<const Source>(
        "ptx", fmt::format(".version {}\n.target {}\n.address_size 64\n.visible .entry ptx() {{\n"
                           "{}{}\nret;\n}}\n",
                           target.ptx.text(), target.arch.text(), declared, text_));
    Diags diags;
    const ptx::Module module = ptx::parse(source, diags);
    if (diags.ok() && module.functions.size() != 1)
      return state_.log.report("kernel-option"_rule,
                               "the text of ptx() leaves the kernel: expected statements"),
             false;
    diags.append(verify::verify(module));
    for (const Diag& each : diags)
      if (each.level == Level::Error)
        state_.log.report(*find_rule(each.id), fmt::format("{} in \"{}\"", each.message, text_));
    if (!diags.ok()) state_.log.note_target_read();  // a later PTX version may have it
    return diags.ok();
  }

 private:
  // Gives each operand its name: a register, or its text if it is a constant.
  void number(std::span<const Scalar> operands) {
    for (const Type each : results_) {
      names_.push_back(fmt::format("%{}", types_.size()));
      types_.push_back(each);
    }
    for (const Scalar& each : operands) {
      if (is_bad(each) || (state_of(each) && !state_.owns(each, "an operand"))) {
        good_ = false;
        names_.emplace_back("0");
      } else if (is_constant(each)) {
        names_.push_back(literal(each));
      } else {
        names_.push_back(fmt::format("%{}", types_.size()));
        types_.push_back(each.type());
        values_.push_back(state_.value(each));
      }
    }
  }

  bool substitute(std::string_view text) {
    std::vector<bool> used(names_.size());
    for (std::size_t i = 0; i < text.size();) {
      std::size_t end = i + 1;
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
      if (text[i] != '%' || end == i + 1) {
        text_ += text[i++];
        continue;
      }
      const std::string_view digits = text.substr(i + 1, end - i - 1);
      const std::size_t which = digits.size() > 3
                                    ? names_.size()
                                    : static_cast<std::size_t>(std::stoi(std::string(digits)));
      if (which >= names_.size()) {
        state_.log.report(
            "operand-count"_rule,
            fmt::format("no operand %{} in \"{}\": {} results and {} operands are "
                        "given",
                        digits, text, results_.size(), names_.size() - results_.size()));
        return false;
      }
      text_ += names_[which];
      used[which] = true;
      i = end;
    }
    const auto unused = std::ranges::find(used, false);
    if (unused == used.end()) return true;
    state_.log.report(
        "operand-count"_rule,
        fmt::format("%{} does not occur in \"{}\": {} results and {} operands are "
                    "given",
                    unused - used.begin(), text, results_.size(), names_.size() - results_.size()));
    return false;
  }

  KernelState& state_;
  std::span<const Type> results_;
  std::string text_;
  std::vector<std::string> names_;  // of results and operands, as the text has them
  std::vector<Type> types_;         // of registers
  std::vector<ir::Value> values_;   // of operands in registers
  bool good_ = true;
};

}  // namespace

bool waits(std::string_view text) {
  for (std::size_t at = text.find("bar"); at != std::string_view::npos;
       at = text.find("bar", at + 1)) {
    const std::string_view words = text.substr(at, text.find_first_of(" \t\n;", at) - at);
    if (!words.starts_with("bar.") && !words.starts_with("barrier.")) continue;
    if (words.starts_with("bar.warp.")) continue;  // other warps do not wait
    for (const std::string_view word : {".sync", ".red", "wait"})
      if (words.find(word) != std::string_view::npos) return true;
  }
  return false;
}

namespace {

// Threads may meet in the user's own text.
void note_user_text(KernelState& state, std::string_view text) {
  note_meeting(state);
  if (waits(text)) state.memories.forget_writes();
}

}  // namespace

std::vector<Scalar> assembled(KernelState& state, std::string_view text,
                              std::span<const Type> results, std::span<const Scalar> operands,
                              Effect effect) {
  const std::vector<Scalar> refused(results.size(), bad_scalar());
  if (!state.is_described()) return refused;
  Statement statement(state, text, results, operands);
  if (!statement.good() || !statement.check()) return refused;
  if (text.starts_with("fence.proxy.async") && text.find(".global") == std::string_view::npos)
    state.memories.note_fence();
  std::vector<Scalar> out;
  for (const ir::Value& each :
       state.f().statement(statement.text(), results, statement.operands(), effect == Effect::none))
    out.push_back(state.scalar(each));
  return out;
}

namespace {

// A type twice or half as wide.
Type scaled(Type type, int scale) {
  if (scale == 0) return type;
  const int width = scale > 0 ? bits(type) * 2 : bits(type) / 2;
  const char kind = info(type).floating ? 'f' : name(type)[0];
  return parse_type(fmt::format("{}{}", kind, width)).value_or(Type::none);
}

// The type of the register that receives a result.
Type result_type(const isa::OperandRow& row, const isa::Spelling& spelling) {
  const isa::OperandType& of = row.type;
  const Type type = of.written < 0
                        ? of.fixed
                        : scaled(spelling.type(static_cast<std::size_t>(of.written)), of.scale);
  if (type == Type::pred || bits(type) >= 16) return type == tf32 ? b32 : type;
  return info(type).is_signed ? s16 : u16;
}

// An instruction with numbered operands.
struct Numbered {
  std::string text;
  std::vector<Type> results;
  bool good = false;
};

// As a signature writes it with so many inputs; not good if it takes another number.
Numbered numbered(const isa::Signature& signature, const isa::Spelling& spelling,
                  std::size_t inputs) {
  const auto rows = isa::operands(signature, spelling);
  const auto count = [&](const isa::OperandRow& row) {
    if (!(row.accepts & isa::a_vector)) return 1;
    return row.elements == isa::as_written ? isa::written_elements(spelling) : int{row.elements};
  };
  const auto is_result = [](const isa::OperandRow& row) {
    return row.written && !(row.accepts & isa::an_address);
  };
  Numbered out{std::string(spelling.text), {}, false};
  for (const isa::OperandRow* const row : rows)
    for (int i = 0; is_result(*row) && i < count(*row); ++i)
      out.results.push_back(result_type(*row, spelling));
  std::size_t result = 0, input = out.results.size();
  const std::size_t end = input + inputs;
  for (const isa::OperandRow* const row : rows) {
    if (count(*row) < 1 || row->coordinates || (row->accepts & isa::a_list)) return out;
    if (row->optional && input == end && !is_result(*row)) break;
    const bool braces = count(*row) > 1, brackets = (row->accepts & isa::an_address) != 0;
    std::string text;
    for (int i = 0; i < count(*row); ++i)
      text += fmt::format("{}%{}", i ? ", " : "", is_result(*row) ? result++ : input++);
    if (input > end) return out;
    out.text += fmt::format("{}{}{}{}", row == rows[0] ? " " : ", ",
                            braces     ? "{"
                            : brackets ? "["
                                       : "",
                            text,
                            braces     ? "}"
                            : brackets ? "]"
                                       : "");
  }
  out.text += ';';
  out.good = input == end;
  return out;
}

}  // namespace

std::vector<Scalar> any_instruction(KernelState& state, std::string_view spelling,
                                    std::span<const Scalar> operands) {
  constexpr std::size_t most_results = 128;
  const std::vector<Scalar> refused(most_results, bad_scalar());
  const isa::Spelling read = isa::read_spelling(spelling);
  if (read.opcode == isa::Opcode::none || read.signatures.empty()) {
    const std::string why =
        read.opcode == isa::Opcode::none ? "no such opcode" : isa::mismatch(read);
    state.log.report("unknown-form"_rule, fmt::format("unknown instruction {}: {}", spelling, why));
    return refused;
  }
  if (read.row().control != isa::Control::FallsThrough) {
    state.log.report(
        "unknown-form"_rule,
        fmt::format("{} changes the flow of control: use when(), loop() and the like", spelling));
    return refused;
  }
  std::string expected;
  for (const isa::Signature* const signature : read.signatures) {
    const Numbered text = numbered(*signature, read, operands.size());
    if (text.good) {
      note_user_text(state, text.text);
      return assembled(state, text.text, text.results, operands, Effect::any);
    }
    expected += (expected.empty() ? "" : " or ") + isa::syntax(*signature);
  }
  state.log.report(
      "operand-count"_rule,
      fmt::format("wrong number of operands: expected {}, found {} beside the results; "
                  "ptx() takes operands in any notation",
                  expected, operands.size()));
  return refused;
}

}  // namespace tartan::TARTAN_ABI::detail

namespace tartan::TARTAN_ABI {

std::vector<Scalar> Builder::ptx(std::string_view text, std::span<const Type> results,
                                 std::span<const Scalar> operands, Here at) {
  state_->at(at);
  detail::note_user_text(*state_, text);
  return detail::assembled(*state_, text, results, operands, detail::Effect::any);
}

}  // namespace tartan::TARTAN_ABI
