// SPDX-License-Identifier: Apache-2.0
// Line information and debug sections (PTX ISA 9.0, 11.5): .loc, .section, the target option debug.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "compiler/ptx/constant.h"
#include "compiler/ptx/lexer.h"
#include "compiler/support/names.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using ptx::Lexer;
using ptx::Token;
using ptx::TokenKind;

// What a later PTX version added; reported once in a module.
struct Feature {
  std::string_view what;
  Version since;
  bool reported = false;
};

struct Width {
  std::string_view directive;
  int bits;
};
constexpr Width widths[] = {{".b8", 8}, {".b16", 16}, {".b32", 32}, {".b64", 64}};

class DebugChecker {
 public:
  explicit DebugChecker(Context& context) : context_(context), module_(context.module) {}

  void run() {
    for (const ptx::Directive& each : module_.directives)
      if (each.name == ".section") section(each);
    debug_option();
    for (const ptx::Item& item : module_.items) {
      if (item.kind != ptx::ItemKind::Function) continue;
      for (const ptx::Statement& each : module_.functions[item.index].statements)
        if (each.kind == ptx::StatementKind::Location) location(module_.locations[each.index]);
    }
  }

 private:
  // ---- .section .debug_loc { L: .b8 1, -2 .b64 L+4 .b32 L1-L2 }

  void section(const ptx::Directive& directive) {
    Lexer lexer(directive.text);
    begin_ = directive.offset;
    bits_ = 0;
    lexer.next();
    names_.insert(lexer.next().text);
    lexer.next();  // {
    Token now = lexer.next();
    while (now.kind != TokenKind::End && !now.is('}')) now = datum(lexer, now);
  }

  // Judges what starts with `now`, and returns the token behind it.
  Token datum(Lexer& lexer, const Token& now) {
    const Token next = lexer.next();
    const bool name = now.kind == TokenKind::Identifier || now.kind == TokenKind::Dot;
    if (const auto* width = std::ranges::find(widths, now.text, &Width::directive);
        width != std::end(widths)) {
      bits_ = width->bits;
    } else if (now.kind == TokenKind::Identifier && next.is(':')) {
      label(now);
      return lexer.next();
    } else if (now.is('-') && next.kind == TokenKind::Number) {
      require(negatives_, now);
      in_range(next, true);
      return lexer.next();
    } else if (now.kind == TokenKind::Number) {
      in_range(now, false);
    } else if (name) {
      address(now);
      if (next.is('-')) require(differences_, now);
      if (next.is('-') || next.is('+')) return lexer.next(), lexer.next();
    }
    return next;
  }

  void label(const Token& name) {
    require(labels_, name);
    if (!names_.insert(name.text).second)
      context_.report("redefined-name"_rule, begin_ + name.offset, name.text.size(),
                      fmt::format("label {} of a .section is already defined", name.text));
  }

  void address(const Token& name) {
    if (bits_ >= 32) return;
    context_.report(
        "debug-section"_rule, begin_ + name.offset, name.text.size(),
        fmt::format("{} is an address: expected .b32 or .b64 in front of it, found .b{}", name.text,
                    bits_));
  }

  void in_range(const Token& number, bool negative) {
    const auto literal = ptx::parse_literal(number.text);
    if (!literal || bits_ == 64) return;
    const std::uint64_t half = std::uint64_t{1} << (bits_ - 1);
    if (negative ? literal->value <= half : bits_ == 32 || literal->value < 2 * half) return;
    context_.report("immediate-range"_rule, begin_ + number.offset, number.text.size(),
                    fmt::format("number out of range: expected -{} to {} in .b{}, found {}{}", half,
                                2 * half - 1, bits_, negative ? "-" : "", number.text));
  }

  void require(Feature& feature, const Token& at) {
    require(feature, begin_ + at.offset, at.text.size());
  }

  void require(Feature& feature, std::uint32_t offset, std::size_t width) {
    const Version found = context_.target.ptx;
    if (found == Version{} || feature.since <= found || feature.reported) return;
    feature.reported = true;
    context_.report("version-support"_rule, offset, width,
                    fmt::format("{} requires PTX {}, the module states {}", feature.what,
                                feature.since.text(), found.text()));
  }

  // ---- .target sm_80, debug

  void debug_option() {
    const auto option = std::ranges::find(module_.targets, "debug");
    if (option == module_.targets.end() || !names_.empty()) return;
    context_.report("debug-section"_rule, *option,
                    "the module has no debug sections: expected a .section, or .target without "
                    "debug");
  }

  // ---- .loc 1 5 0, function_name L+4, inlined_at 1 3 0

  using Place = std::array<std::uint32_t, 3>;

  void location(const ptx::Location& at) {
    if (at.text.find("inlined_at") != std::string_view::npos) inlined(at);
    places_.insert({at.file, at.line, at.column});
  }

  void inlined(const ptx::Location& at) {
    require(inlining_, at.offset, at.text.size());
    Lexer lexer(at.text);
    skip_to(lexer, "function_name");
    const Token name = lexer.next();
    if (!names_.contains(name.text))
      context_.report("debug-section"_rule, at.offset + name.offset, name.text.size(),
                      fmt::format("undefined function_name {}: expected a label of a .section, or "
                                  "a .section",
                                  name.text));
    skip_to(lexer, "inlined_at");
    Token first;
    Place place{};
    for (std::uint32_t& field : place) {
      const Token number = lexer.next();
      if (first.text.empty()) first = number;
      const auto literal = ptx::parse_literal(number.text);
      field = literal ? static_cast<std::uint32_t>(literal->value) : 0;
    }
    if (places_.contains(place)) return;
    context_.report("debug-section"_rule, at.offset + first.offset, at.text.size() - first.offset,
                    fmt::format("inlined_at {} {} {}: expected the place of a .loc before this one",
                                place[0], place[1], place[2]));
  }

  static void skip_to(Lexer& lexer, std::string_view word) {
    for (Token now = lexer.next(); now.kind != TokenKind::End && now.text != word;)
      now = lexer.next();
  }

  Context& context_;
  const ptx::Module& module_;
  NameSet names_;  // of sections and of their labels
  std::set<Place> places_;
  std::uint32_t begin_ = 0;  // of the section
  int bits_ = 0;             // of its data
  Feature labels_{"a label in a .section", {7, 0}};
  Feature differences_{"a difference of labels in a .section", {7, 5}};
  Feature negatives_{"a negative number in a .section", {7, 5}};
  Feature inlining_{"inlined_at", {7, 0}};
};

}  // namespace

void check_debug_information(Context& context) { DebugChecker(context).run(); }

}  // namespace tartan::TARTAN_ABI::verify
