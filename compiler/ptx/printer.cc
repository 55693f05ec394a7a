// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>

#include "compiler/ptx/declarations.h"
#include "tartan/ptx/parser.h"

namespace tartan::TARTAN_ABI::ptx {
namespace {

class Printer {
 public:
  Printer(const Module& module, const PrintOptions& options) : module_(module), options_(options) {}

  std::string module() {
    if (!(module_.version == Version{})) line(".version {}", module_.version.text());
    targets();
    if (module_.address_size) line(".address_size {}", module_.address_size);
    for (const Item& item : module_.items) {
      if (item.kind == ItemKind::Directive && stripped(module_.directives[item.index])) continue;
      out_ += '\n';
      switch (item.kind) {
        case ItemKind::Function: function(module_.functions[item.index]); break;
        case ItemKind::Variable: variable(module_.variables[item.index]), out_ += ";\n"; break;
        case ItemKind::Directive: directive(module_.directives[item.index]), out_ += '\n'; break;
      }
    }
    return std::move(out_);
  }

  std::string instruction(const Instruction& instruction) {
    if (!instruction.guard.empty())
      append("@{}{} ", instruction.guard_negated ? "!" : "", instruction.guard);
    out_ += instruction.opcode;
    list(module_.operands_of(instruction), " ");
    return std::move(out_);
  }

 private:
  bool stripped(const Directive& directive) const {
    return options_.strip_debug && (directive.name == ".file" || directive.name == ".section");
  }

  bool stripped(const Statement& at) const {
    if (at.kind == StatementKind::Directive) return stripped(module_.directives[at.index]);
    return at.kind == StatementKind::Location && options_.strip_debug;
  }

  void targets() {
    std::string_view before = ".target ";
    for (const std::string_view target : module_.targets) {
      if (options_.strip_debug && target == "debug") continue;
      (out_ += before) += target;
      before = ", ";
    }
    if (!module_.targets.empty()) out_ += '\n';
  }

  template <typename... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    append(format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  void list(std::span<const Operand> operands, std::string_view before) {
    for (const Operand& operand : operands) {
      out_ += before;
      this->operand(operand);
      before = ", ";
    }
  }

  void bracketed(const Operand& operand, char open, char close) {
    out_ += open;
    list(module_.children(operand), "");
    out_ += close;
  }

  // With -g the assembler makes other code of [r+0] than of [r].
  void offset(const Operand& operand) {
    if (operand.value != 0 || operand.adds)
      append("+{}",
             static_cast<std::int64_t>(operand.value));  // "+-8": the assembler knows no "-8"
  }

  void operand(const Operand& operand) {
    switch (operand.kind) {
      case OperandKind::Name: out_ += operand.text, offset(operand); break;
      case OperandKind::Integer:
      case OperandKind::Float:
      case OperandKind::String: out_ += operand.text; break;
      case OperandKind::Vector: bracketed(operand, '{', '}'); break;
      case OperandKind::List: bracketed(operand, '(', ')'); break;
      case OperandKind::Address: address(operand); break;
      case OperandKind::Element: out_ += operand.text, bracketed(operand, '[', ']'); break;
      case OperandKind::Not: out_ += '!', list(module_.children(operand), ""); break;
      case OperandKind::Negative: out_ += '-', list(module_.children(operand), ""); break;
      case OperandKind::Pair: {
        const auto pair = module_.children(operand);
        this->operand(pair[0]), out_ += '|', this->operand(pair[1]);
        break;
      }
    }
  }

  void address(const Operand& operand) {
    const auto parts = module_.children(operand);
    out_ += '[';
    this->operand(parts[0]);
    offset(operand);
    for (std::size_t i = 1; i < parts.size(); ++i) out_ += ", ", this->operand(parts[i]);
    out_ += ']';
    out_ += operand.text;
  }

  void directive(const Directive& directive) {
    // Blanks and line breaks are kept, so that strings stay whole.
    out_ += directive.text;
    if (directive.semicolon) out_ += ';';
  }

  void variable(const Variable& variable) {
    if (!variable.linkage.empty()) append("{} ", variable.linkage);
    append(".{}", name(variable.space));
    const bool first = variable.attributes.starts_with(
        ".attribute");  // .attribute(.managed) .align 4 .b8 x; .b64 .ptr .global y
    if (first) append(" {}", variable.attributes);
    if (variable.align) append(" .align {}", variable.align);
    if (variable.vector > 1) append(" .v{}", variable.vector);
    if (variable.type != Type::none) append(" .{}", tartan::name(variable.type));
    if (!first && !variable.attributes.empty()) append(" {}", variable.attributes);
    append(" {}{}", variable.name, variable.dimensions);
    if (variable.initialiser) {
      out_ += " = ";
      operand(module_.operands[*variable.initialiser]);
    }
  }

  void parameters(const std::vector<std::uint32_t>& indices) {
    out_ += '(';
    for (std::size_t i = 0; i < indices.size(); ++i) {
      out_ += i ? ",\n\t" : "\n\t";
      variable(module_.variables[indices[i]]);
    }
    out_ += indices.empty() ? ")" : "\n)";
  }

  void function(const Function& function) {
    if (!function.linkage.empty()) append("{} ", function.linkage);
    out_ += function.entry ? ".entry " : ".func ";
    if (!function.results.empty()) parameters(function.results), out_ += ' ';
    out_ += function.name;
    parameters(function.params);
    for (const std::uint32_t index : function.directives)
      out_ += '\n', directive(module_.directives[index]);
    if (!function.body) {
      out_ += ";\n";
      return;
    }
    out_ += "\n{\n";
    for (const Statement& at : function.statements) statement(at);
    out_ += "}\n";
  }

  void statement(const Statement& at) {
    if (stripped(at)) return;
    switch (at.kind) {
      case StatementKind::Label: line("{}:", module_.labels[at.index].name); return;
      case StatementKind::BlockBegin: out_ += "\t{\n"; return;
      case StatementKind::BlockEnd: out_ += "\t}\n"; return;
      default: break;
    }
    out_ += '\t';
    switch (at.kind) {
      case StatementKind::Instruction: body_instruction(module_.instructions[at.index]); break;
      case StatementKind::Registers: registers(module_.registers[at.index]); break;
      case StatementKind::Variable: variable(module_.variables[at.index]), out_ += ';'; break;
      case StatementKind::Location: out_ += module_.locations[at.index].text; break;
      case StatementKind::Directive: directive(module_.directives[at.index]); break;
      default: break;
    }
    out_ += '\n';
  }

  void body_instruction(const Instruction& instruction) {
    if (!instruction.guard.empty())
      append("@{}{} ", instruction.guard_negated ? "!" : "", instruction.guard);
    out_ += instruction.opcode;
    list(module_.operands_of(instruction), " ");
    out_ += ';';
  }

  void registers(const Registers& registers) {
    out_ += ".reg ";
    if (registers.vector > 1) append(".v{} ", registers.vector);
    append(".{} {}", tartan::name(registers.type), registers.name);
    if (registers.numbered) append("<{}>", registers.count);
    out_ += ';';
  }

  const Module& module_;
  const PrintOptions options_;
  std::string out_;
};

}  // namespace

std::string print(const Module& module, const PrintOptions& options) {
  return Printer(module, options).module();
}

std::string print(const Module& module, const Instruction& instruction) {
  return Printer(module, {}).instruction(instruction);
}

}  // namespace tartan::TARTAN_ABI::ptx
