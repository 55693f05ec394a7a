// SPDX-License-Identifier: Apache-2.0
#include "tartan/ptx/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ptx/declarations.h"
#include "compiler/ptx/foreign_text.h"
#include "compiler/ptx/parse_all.h"
#include "compiler/support/messages.h"
#include "compiler/support/names.h"

namespace tartan::TARTAN_ABI::ptx {
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
      if (is_c_word(token_.text))
        report("syntax"_rule, token_.offset, token_.text.size(),
               fmt::format("expected a directive, found '{}' of CUDA C; compile it with nvcc -ptx",
                           token_.text));
      else syntax("a directive");
      return header_ == Header::Begin ? recover_text() : recover_item();
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

  // To the header of a module; a text without one is not PTX, and all has been said.
  void recover_text() {
    const std::size_t header = source_.text().find(".version", token_.offset);
    has_version_ = has_target_ = header == std::string_view::npos;
    lexer_.rewind(static_cast<std::uint32_t>(std::min(header, source_.text().size())));
    advance();
  }

  // Skips a statement, and its block if it has one. A directive that begins a line is the next one.
  void recover_item() {
    int depth = 0;
    bool first = true;
    for (; token_.kind != TokenKind::End; first = false) {
      if (depth == 0 && !first && token_.kind == TokenKind::Dot && begins_line() &&
          begins_item(token_.text))
        return;
      const Token skipped = token_;
      advance();
      if (skipped.is('{')) ++depth;
      if (skipped.is('}') && --depth <= 0) return;
      if (skipped.is(';') && depth == 0) return;
    }
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
    has_version_ = true;
    advance();
    const auto version =
        token_.kind == TokenKind::Number ? Version::parse(token_.text) : std::nullopt;
    if (!version) return syntax("a version such as 8.0"), recover_line();
    module_.version = *version;
    advance();
  }

  void target() {
    module_.target_offset = token_.offset;
    has_target_ = true;
    do {
      advance();
      if (token_.kind != TokenKind::Identifier)
        return syntax("a target such as sm_90a"), recover_line();
      module_.targets.push_back(target_name());
    } while (token_.is(','));
    if (begins_line() || token_.kind == TokenKind::End || begins_item(token_.text)) return;
    module_.targets.clear();  // which of the words is the target, nobody knows
    syntax("',' or the end of the line");
    recover_line();
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
    bool legal = true;
    if (token_.is('(') && !function.entry)
      legal = parameters(function.results, false) || skip_parameters();
    function_ = true;
    const auto name = take_name("the function's name");
    function_ = false;
    if (!name) return recover_item();
    function.name = name->text;
    function.offset = name->offset;
    if (token_.is('(') && !parameters(function.params, function.entry)) legal = skip_parameters();
    while (token_.kind == TokenKind::Dot && (function.entry || !at_item()))
      function.directives.push_back(function_directive(function.entry));
    if (!token_.is('{') && !token_.is(';') && !ends_prototype(function)) {
      if (legal) syntax("a directive of the function, '{' or ';'");
      legal = false;
      skip_to_body();
    }
    if (token_.is('{')) {
      function.body = true;
      advance();
      body(function.statements);
    } else if (token_.is(';')) {
      advance();
    }
    if (!legal) forgive(function);
    drop_refused(function.statements);
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

  // Behind the parentheses of parameters that are not legal.
  bool skip_parameters() {
    while (token_.kind != TokenKind::End && !token_.is(')') && !token_.is('{') && !token_.is(';'))
      advance();
    if (token_.is(')')) advance();
    return false;
  }

  void skip_to_body() {
    while (token_.kind != TokenKind::End && !token_.is('{') && !token_.is(';') &&
           !(begins_line() && token_.kind == TokenKind::Dot && begins_item(token_.text)))
      advance();
  }

  // A function whose header was reported: what follows from it is not.
  void forgive(Function& function) {
    function.body = true;
    function.statements.clear();
    function.directives.clear();
    refused_.insert(function.name);
  }

  void drop_refused(std::vector<Statement>& statements) {
    if (refused_.empty()) return;
    std::erase_if(statements, [&](const Statement& each) {
      return each.kind == StatementKind::Instruction &&
             names_refused(module_.instructions[each.index]);
    });
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
    if (is_misnamed(token_)) return misnamed_label(statements);
    syntax("an instruction, a label or a declaration");
    recover();
  }

  // 2_done:
  void misnamed_label(std::vector<Statement>& statements) {
    const Token word = *take_word();
    if (!token_.is(':')) return recover();
    advance();
    label(statements, word.text, word.offset);
  }

  void label(std::vector<Statement>& statements, std::string_view name, std::uint32_t offset) {
    statements.push_back({StatementKind::Label, static_cast<std::uint32_t>(module_.labels.size())});
    module_.labels.push_back({name, offset});
  }

  // for (i = 0; i < n; ++i) {...}: with the statement or block that belongs to it.
  void c_statement(const Token& first, const std::string& message) {
    report("syntax"_rule, first.offset, first.text.size(), message);
    int depth = 0;
    while (token_.kind != TokenKind::End) {
      if (depth == 0 && token_.is('}')) return;  // of the function
      const Token skipped = token_;
      advance();
      if (skipped.is('(') || skipped.is('{')) ++depth;
      if (skipped.is(')') || skipped.is('}')) --depth;
      const bool ends = depth == 0 && (skipped.is(';') || skipped.is('}'));
      if (ends && token_.text != "else" && token_.text != "while") return;
    }
  }

  // r = a, r += a: whether an operator of assignment follows.
  bool at_assignment() {
    if (token_.is('=')) return true;
    if (token_.kind != TokenKind::Punctuation || lexer_.position() != token_.end()) return false;
    const std::uint32_t here = lexer_.position();
    const Token next = lexer_.next();
    lexer_.rewind(here);
    return next.is('=') && !next.blank_before && binary_operator(token_.text, 0);
  }

  void declaration(std::vector<Statement>& statements) {
    if (token_.text == ".loc_intermediate") {
      statements.push_back({StatementKind::Directive, intermediate_location()});
      return;
    }
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
    if (token_.is(':') && instruction.guard.empty()) {
      advance();
      if (instruction.opcode.size() != first.text.size())  // my.label:
        refuse_dotted(first, first.offset + static_cast<std::uint32_t>(instruction.opcode.size()));
      return label(statements, instruction.opcode, first.offset);
    }
    if (const std::string message = ptx::c_statement(first.text); !message.empty())
      return c_statement(first, message);
    if (at_assignment())
      return c_statement(first, fmt::format("PTX has no assignment with '=': expected an "
                                            "instruction, whose first operand is the result, as in "
                                            "mov.u32 {}, %tid.x;",
                                            first.text.substr(0, 60)));
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
    // At the next line a semicolon is missing, and nothing else.
    return expect(';', "',' or ';'") || begins_line();
  }

  void finish() {
    if (!whole_) return;
    if (!has_version_ || !has_target_)
      diags_.report("missing-version"_rule, source_.place(0),
                    fmt::format("the module has no {}", has_version_ ? ".target" : ".version"));
  }

  Header header_ = Header::Begin;                  // the last directive of the header
  bool has_version_ = false, has_target_ = false;  // perhaps illegal ones
  NameMap<std::uint32_t> spellings_;               // index into Module::spellings
};

// Reports a text that is no PTX as a whole.
bool foreign(const Source& source, Diags& diags) {
  const std::string what = foreign_text(source.text());
  if (what.empty()) return false;
  const Token first = Lexer(source.text()).next();
  source.quote(diags.report("syntax"_rule, source.place(first.offset), what), first.text.size());
  return true;
}

Module parse(std::shared_ptr<const Source> source, Diags& diags, int most_errors) {
  Module module;
  module.source = source;
  const std::size_t size = source->text().size();
  if (foreign(*source, diags)) return module;
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

}  // namespace tartan::TARTAN_ABI::ptx
