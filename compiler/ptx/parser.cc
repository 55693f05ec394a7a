// SPDX-License-Identifier: Apache-2.0
#include "tartan/ptx/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ptx/declarations.h"
#include "compiler/ptx/parse_all.h"
#include "compiler/support/messages.h"
#include "compiler/support/names.h"

namespace tartan::inline TARTAN_ABI::ptx {
namespace {

enum class Header { Begin, Version, Target, AddressSize, End };

// The statements of a module and of its functions. Declarations are in declarations.cc, operands in
// operands.cc.
class Parser : public DeclarationParser {
 public:
  using DeclarationParser::DeclarationParser;

  /// Up to that number of errors; 0: all of it.
  void module(int most) {
    errors_left_ = most;
    while (token_.kind != TokenKind::End) item();
    if (stopped_)
      diags_.add({.level = Level::Note,
                  .id = "syntax"_rule.id,
                  .place = {source_.name(), 0, 0},
                  .message = fmt::format("stopped after {} errors: there may be more", most)});
    else finish();
  }

 private:
  void item() {
    if (token_.kind != TokenKind::Dot) {
      if (source_.text().substr(token_.offset).starts_with("@@DWARF")) return skip_line();
      syntax("a directive");
      return recover_item();
    }
    if (token_.text == ".version") return header(Header::Version), version();
    if (token_.text == ".target") return header(Header::Target), target();
    if (token_.text == ".address_size") return header(Header::AddressSize), address_size();
    header_ = Header::End;
    if (token_.text == ".section") return keep(ItemKind::Directive, section());
    if (token_.text == ".file") return keep(ItemKind::Directive, file());
    const std::string_view linkage = take_linkage();
    if (at_word(".entry") || at_word(".func")) return function(linkage);
    if (declared_space(token_.text) != StateSpace::none) {
      const std::uint32_t first = static_cast<std::uint32_t>(module_.variables.size());
      variables(linkage);
      for (std::uint32_t i = first; i < module_.variables.size(); ++i) keep(ItemKind::Variable, i);
      return;
    }
    if (!linkage.empty() || token_.kind != TokenKind::Dot) {
      syntax(".entry, .func or a state space");
      return recover_item();
    }
    keep(ItemKind::Directive, module_directive());
  }

  // Skips a statement, and its block if it has one.
  void recover_item() {
    recover();
    int depth = 0;
    do {
      if (token_.is('{')) ++depth;
      if (token_.is('}')) --depth;
      if (!token_.is('{') && !token_.is('}') && depth <= 0) return;
      advance();
    } while (depth > 0 && token_.kind != TokenKind::End);
  }

  void keep(ItemKind kind, std::uint32_t index) { module_.items.push_back({kind, index}); }

  // A module begins with .version, .target (may be repeated) and .address_size, in this order.
  void header(Header now) {
    const bool again = now == header_ && now == Header::Target;
    const bool first = now == Header::Target && header_ == Header::Begin;  // see finish()
    if (!again && !first && now != static_cast<Header>(static_cast<int>(header_) + 1))
      report("syntax"_rule, token_.offset, token_.text.size(),
             fmt::format("{} in the wrong place: expected .version, .target and .address_size once "
                         "each, in this order, at the start of the module",
                         token_.text));
    if (now > header_) header_ = now;
  }

  void version() {
    module_.version_offset = token_.offset;
    advance();
    if (const auto version =
            token_.kind == TokenKind::Number ? Version::parse(token_.text) : std::nullopt) {
      module_.version = *version;
      advance();
    } else {
      syntax("a version such as 8.0");
      recover_line();
    }
  }

  void target() {
    module_.target_offset = token_.offset;
    do {
      advance();
      if (token_.kind != TokenKind::Identifier)
        return syntax("a target such as sm_90a"), recover_line();
      module_.targets.push_back(target_name());
    } while (token_.is(','));
  }

  // With what follows it on the line, as in sm_8.0: one name that no target has.
  std::string_view target_name() {
    const std::uint32_t from = token_.offset;
    const int line = source_.line(from);
    do advance();
    while ((token_.kind == TokenKind::Identifier || token_.kind == TokenKind::Number) &&
           source_.line(token_.offset) == line);
    return source_.text().substr(from, behind_ - from);
  }

  void address_size() {
    advance();
    if (token_.text != "32" && token_.text != "64") return syntax("32 or 64"), recover_line();
    module_.address_size = token_.text == "32" ? 32 : 64;
    advance();
  }

  void function(std::string_view linkage) {
    Function function;
    function.linkage = linkage;
    function.entry = token_.text == ".entry";
    if (linkage == ".common")
      report("declaration"_rule, token_.offset, token_.text.size(),
             "functions cannot have linkage .common: expected .visible, .extern, .weak or none");
    advance();
    if (token_.is('(') && !function.entry && !parameters(function.results, false))
      return recover_item();
    if (!at_name()) return syntax("the function's name"), recover_item();
    function.name = token_.text;
    function.offset = token_.offset;
    advance();
    if (token_.is('(') && !parameters(function.params, function.entry)) return recover_item();
    while (token_.kind == TokenKind::Dot && (function.entry || !at_item()))
      function.directives.push_back(function_directive(function.entry));
    if (token_.is('{')) {
      function.body = true;
      advance();
      body(function.statements);
    } else if (!ends_prototype(function) && !expect(';')) {
      recover_item();
    }
    const auto index = static_cast<std::uint32_t>(module_.functions.size());
    keep(ItemKind::Function, index);
    const auto [known, fresh] = module_.function_index.try_emplace(function.name, index);
    if (!fresh && !module_.functions[known->second].body) known->second = index;
    module_.functions.push_back(std::move(function));
  }

  // The assembler takes prototypes of functions without a semicolon.
  bool ends_prototype(const Function& function) const {
    return !function.entry && (token_.kind == TokenKind::End || at_item());
  }

  void body(std::vector<Statement>& statements) {
    int depth = 0;
    while (true) {
      if (token_.kind == TokenKind::End) return end_of_text("the function's closing }");
      if (token_.is('}')) {
        advance();
        if (depth-- == 0) return;
        statements.push_back({StatementKind::BlockEnd});
      } else if (token_.is('{')) {
        advance();
        ++depth;
        statements.push_back({StatementKind::BlockBegin});
      } else {
        statement(statements);
      }
    }
  }

  void statement(std::vector<Statement>& statements) {
    if (token_.kind == TokenKind::Identifier || token_.is('@'))
      return instruction_or_label(statements);
    if (token_.kind == TokenKind::Dot) return declaration(statements);
    syntax("an instruction, a label or a declaration");
    recover();
  }

  void declaration(std::vector<Statement>& statements) {
    if (token_.text == ".loc") {
      if (const auto index = location()) statements.push_back({StatementKind::Location, *index});
      return;
    }
    if (token_.text == ".reg") {
      std::uint32_t first = static_cast<std::uint32_t>(module_.registers.size());
      registers();
      for (; first < module_.registers.size(); ++first)
        statements.push_back({StatementKind::Registers, first});
      return;
    }
    const Token word = token_;
    const std::string_view linkage = take_linkage();
    if (declared_space(token_.text) != StateSpace::none) {
      if (!linkage.empty())
        report("declaration"_rule, word.offset, word.text.size(),
               fmt::format("{} inside a function: expected a declaration in front of it", linkage));
      std::uint32_t first = static_cast<std::uint32_t>(module_.variables.size());
      variables(linkage);
      for (; first < module_.variables.size(); ++first)
        statements.push_back({StatementKind::Variable, first});
      return;
    }
    if (!linkage.empty() || token_.kind != TokenKind::Dot)
      return syntax("a declaration"), recover();
    const bool labelled = !statements.empty() && statements.back().kind == StatementKind::Label;
    statements.push_back({StatementKind::Directive, statement_directive(labelled)});
  }

  void instruction_or_label(std::vector<Statement>& statements) {
    Instruction instruction;
    if (token_.is('@')) {
      advance();
      if (token_.is('!')) instruction.guard_negated = true, advance();
      if (token_.kind != TokenKind::Identifier) return syntax("a predicate register"), recover();
      instruction.guard = token_.text;
      advance();
      if (token_.kind != TokenKind::Identifier)
        return syntax("an instruction after its guard"), recover();
    }
    const Token first = token_;
    instruction.offset = first.offset;
    instruction.opcode = lexer_.extend_opcode(first);
    advance();
    if (token_.kind == TokenKind::Dot) instruction.opcode = join(instruction.opcode);
    if (token_.is(':') && instruction.guard.empty() &&
        instruction.opcode.size() == first.text.size()) {
      advance();
      statements.push_back(
          {StatementKind::Label, static_cast<std::uint32_t>(module_.labels.size())});
      module_.labels.push_back({first.text, first.offset});
      return;
    }
    instruction.spelling = spelling(instruction.opcode);
    if (!operands(instruction)) return recover();
    statements.push_back(
        {StatementKind::Instruction, static_cast<std::uint32_t>(module_.instructions.size())});
    module_.instructions.push_back(instruction);
  }

  // Each distinct spelling of a module is parsed once.
  std::uint32_t spelling(std::string_view opcode) {
    const auto [at, fresh] =
        spellings_.try_emplace(opcode, static_cast<std::uint32_t>(module_.spellings.size()));
    if (fresh) module_.spellings.push_back(isa::read_spelling(opcode));
    return at->second;
  }

  bool operands(Instruction& instruction) {
    const Scratch scratch(*this);
    lists_ = module_.spelling(instruction).opcode == isa::Opcode::call;
    if (!token_.is(';')) {
      do {
        Operand operand;
        if (!parse_operand(operand)) return false;
        scratch.push(operand);
        // call accepts its lists with or without commas between them.
      } while (token_.is(',') && (advance(), true));
    }
    instruction.first = scratch.store(instruction.count);
    instruction.end = token_.end();
    return expect(';', "',' or ';'");
  }

  void finish() {
    if (!whole_) return;
    if (module_.version == Version{} || module_.targets.empty())
      diags_.report("missing-version"_rule, source_.place(0),
                    fmt::format("the module has no {}",
                                module_.version == Version{} ? ".version" : ".target"));
  }

  Header header_ = Header::Begin;     // the last directive of the header
  NameMap<std::uint32_t> spellings_;  // index into Module::spellings
};

Module parse(std::shared_ptr<const Source> source, Diags& diags, int most_errors) {
  Module module;
  module.source = source;
  const std::size_t size = source->text().size();
  module.instructions.reserve(size / 40);
  module.operands.reserve(size / 12);
  Parser(*source, readable_text(*source, diags), module, diags).module(most_errors);
  return module;
}

}  // namespace

Module parse(std::shared_ptr<const Source> source, Diags& diags) {
  return parse(std::move(source), diags, detail::most_errors);
}

Module parse_all(std::shared_ptr<const Source> source, Diags& diags) {
  return parse(std::move(source), diags, 0);
}

}  // namespace tartan::inline TARTAN_ABI::ptx
