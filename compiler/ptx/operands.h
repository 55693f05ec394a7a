// SPDX-License-Identifier: Apache-2.0
// compiler/ptx/operands.h - the parser's lowest layer: tokens, diagnostics, literals and operands.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ptx/constant.h"
#include "compiler/ptx/encoding.h"
#include "compiler/ptx/lexer.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::ptx {

class OperandParser {
 public:
  OperandParser(const Source& source, const ReadableText& text, Module& module, Diags& diags)
      : source_(source), whole_(text.whole), module_(module), diags_(diags), lexer_(text.text) {
    advance();
  }

 protected:
  // The operands of a list while it is parsed; nested lists use the same stack above it.
  class Scratch {
   public:
    explicit Scratch(OperandParser& parser)
        : stack_(parser.scratch_), module_(parser.module_), mark_(stack_.size()) {}
    ~Scratch() { stack_.resize(mark_); }
    Scratch(const Scratch&) = delete;
    void push(const Operand& operand) const { stack_.push_back(operand); }
    /// Moves the list into the module; returns its index and sets its length.
    std::uint32_t store(std::uint32_t& count) const {
      const auto first = static_cast<std::uint32_t>(module_.operands.size());
      count = static_cast<std::uint32_t>(stack_.size() - mark_);
      module_.operands.insert(module_.operands.end(),
                              stack_.begin() + static_cast<std::ptrdiff_t>(mark_), stack_.end());
      return first;
    }

   private:
    std::vector<Operand>& stack_;
    Module& module_;
    std::size_t mark_;
  };

  void advance() {
    behind_ = token_.end();
    do {
      token_ = lexer_.next();
    } while (token_.kind == TokenKind::Unknown && skip_directive());
  }
  void report(const Rule& rule, std::uint32_t offset, std::size_t width, std::string message);
  /// Counts an error; at the last one that is wanted, nothing is read any more.
  void count_error();
  bool at_word(std::string_view word) const {
    return token_.kind == TokenKind::Dot && token_.text == word;
  }

  /// `add .u32`, `%tid .x`: the words that follow `name`, without blanks before them.
  std::string_view join(std::string_view name);
  /// Takes the punctuation `c`; otherwise reports that `expected` is missing.
  bool expect(char c, std::string_view expected = {});
  void syntax(std::string_view expected);
  void no_number(std::string_view found);
  void end_of_text(std::string_view expected);
  void refuse(std::uint32_t offset, std::string message);

  /// Skips past the next ';', or up to a brace that is not an operand's.
  void recover();
  /// The ';' of a statement that is complete. Without one: skips to the next statement, which a new
  /// line begins.
  void end_statement(std::string_view expected);
  /// Whether the token is the first of its line.
  bool begins_line() const { return source_.line(token_.offset) != source_.line(behind_); }

  /// Skips to the next line.
  void recover_line();
  void skip_line();

  bool parse_operand(Operand& operand);
  /// Whether the word was meant as a name, but starts with a digit.
  static bool is_misnamed(const Token& token);
  /// Takes a name, or what was meant as one: that is reported where it first occurs, and taken. Of
  /// any other token nothing, and no report.
  std::optional<Token> take_word();
  /// Behind the characters that are glued to a name; the name's own end if nothing is.
  std::uint32_t end_of_word(const Token& name) const;
  /// Reports a word that is no name, and remembers it.
  void refuse_name(const Token& word, std::uint32_t at, std::string_view why);
  /// The same of a word with dots, the first of them behind `word`.
  void refuse_dotted(Token word, std::uint32_t end);
  /// Whether the instruction names something that was refused: then it would be reported again.
  bool names_refused(const Instruction& instruction) const;

  /// An integer literal, as for dimensions and alignments.
  std::optional<std::uint64_t> take_integer(std::string_view what);

  const Source& source_;
  const bool whole_;  // else the text ends early, which has been reported
  Module& module_;
  Diags& diags_;
  Lexer lexer_;
  Token token_;
  bool lists_ = false;         // operands of call: (1) is a list, elsewhere a constant
  bool function_ = false;      // the name of a function comes next
  bool initialisers_ = false;  // 0xFF(name) and name = value are operands
  std::uint32_t behind_ = 0;   // where the last token ends
  int errors_left_ = 0;        // that are reported; 0: all
  bool stopped_ = false;       // none was left
  /// Words in place of names, and functions whose header is not legal. They were reported; what
  /// names them is not.
  std::set<std::string_view> refused_;

 private:
  struct Nesting {
    explicit Nesting(int& depth) : depth(depth) { ++depth; }
    ~Nesting() { --depth; }
    Nesting(const Nesting&) = delete;
    int& depth;
  };
  // The innermost brackets are braces or a list's.
  struct Listing {
    Listing(bool& listing, bool now) : listing(listing), before(listing) { listing = now; }
    ~Listing() { listing = before; }
    Listing(const Listing&) = delete;
    bool& listing;
    bool before;
  };

  bool skip_braces();
  bool skip_directive();
  bool parse_refused(Operand& operand);
  bool parse_misnamed(Operand& operand);
  bool parse_behind_name(Operand& operand);
  bool names_refused(const Operand& operand) const;
  bool too_deep(std::string_view what);
  bool parse_primary(Operand& operand);
  bool parse_list(Operand& operand, OperandKind kind, char close);
  bool parse_address(Operand& operand);
  bool parse_prefixed(Operand& operand, OperandKind kind);
  bool parse_name(Operand& operand);
  bool parse_masked(Operand& operand);
  bool parse_offset(Operand& operand);
  bool parse_element(Operand& operand);
  bool names_next();

  // Constant expressions (PTX ISA 9.0, 4.5.5): the tree keeps the value, and the text for the
  // printer.
  bool parse_number(Operand& operand);
  bool parse_constant(Operand& operand);
  bool at_operator() const;
  bool conditional(Constant& value);
  bool binary(Constant& left, int level);
  bool unary(Constant& value);
  bool parenthesised(Constant& value);
  static void set(Operand& operand, Constant constant, std::string_view text);

  std::vector<Operand> scratch_;
  int depth_ = 0;
  std::uint32_t directives_to_ = 0;  // where the last reported one of a preprocessor ends
  bool listing_ = false;
};

}  // namespace tartan::TARTAN_ABI::ptx
