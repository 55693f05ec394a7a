// SPDX-License-Identifier: Apache-2.0
// tartan/ptx/tree.h - PTX text as a tree (PTX ISA 9.0, 4, "Syntax"). Spelling, not meaning.
//
// The tree is flat: a Module owns arrays (instructions, operands, registers, ...), and indices
// refer into them; names and literals are views into the module's own text. Parsing is as fast as
// memory, and every node knows its offset in the text.
//
//   Module      -> items in order: Function | Variable | Directive
//   Function    -> statements in order: Instruction | Label | Registers | Variable | Location
//                  | Directive | BlockBegin | BlockEnd
//   Instruction -> operands[first .. first + count), vectors and addresses
//               -> their own operands[first .. first + count)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tartan/isa/spelling.h"
#include "tartan/isa/state_space.h"
#include "tartan/isa/target.h"
#include "tartan/isa/type.h"
#include "tartan/support/source.h"

namespace tartan::TARTAN_ABI::ptx {

/// How an operand is written.
enum class OperandKind : std::uint8_t {
  Name,     // %r1, label, variable, function, special register (%tid.x), _ (sink)
  Integer,  // 42, -1, 0x1F, 0b101, 017, 1U, 4*16: `value` holds the 64 bits
  Float,    // 0f3F800000 (type f32), 0d3FF0000000000000 (f64), 1.5 (f64): `value` holds the bits of
            // that type; (1.0+0.5)*2.0 too
  Vector,   // {a, b, c, d}
  Address,  // [base], [base+offset], [map, {x, y}]: first child the base, then any further parts;
            // `value` the offset, `text` ".unified" where that follows the bracket
  Pair,     // p|q: two children (setp, shfl: the second predicate)
  Not,      // !p: one child
  Negative,  // -r: one child (vmad)
  List,      // (a, b): the parameter lists of call
  String,    // "text", of directives
  Element,   // t[4], t[r], t[r+1]: one child, the index; `text` the array's name
};

/// An operand. Vectors, addresses, pairs and lists have children.
struct Operand {
  OperandKind kind;
  Type type =
      Type::none;     // literals: f32, f64; integers: s64, or u64 where the text says U or needs it
  bool adds = false;  // names and addresses: +0 is written, which `value` does not tell
  std::uint32_t offset = 0;  // where it starts in the text
  std::uint32_t first = 0;   // children: Module::operands[first, first + count)
  std::uint32_t count = 0;
  std::uint64_t value = 0;
  std::string_view text;  // as written: names (with a trailing ".x" element, if any) and literals
};

/// An instruction with its guard and operands.
struct Instruction {
  std::string_view opcode;     // with every qualifier: "ld.global.v4.u32"
  std::uint32_t spelling = 0;  // that, read: Module::spellings
  std::string_view guard;      // the predicate register of @p or @!p; empty if none
  bool guard_negated = false;
  std::uint32_t offset = 0;  // of the opcode
  std::uint32_t end = 0;     // one past the semicolon
  std::uint32_t first = 0;   // operands
  std::uint32_t count = 0;
};

/// %r12: number 12 of `%r<N>`. All digits at the end of a name are the number, as in the assembler:
/// a `%r2<N>` therefore declares names that cannot be written.
struct NumberedName {
  std::string_view row;
  std::uint32_t number = 0;
  bool plain = true;  // without leading zeros
};

/// None if no digit ends the name, or nothing precedes the digits.
std::optional<NumberedName> numbered_name(std::string_view name);

/// `.reg .b32 %r<5>;` declares %r0 to %r4; `.reg .b32 x;` (no count) declares x.
struct Registers {
  Type type = Type::none;
  std::uint8_t vector = 1;  // 2 or 4 for .v2 and .v4
  bool numbered = false;
  std::uint32_t count = 1;
  std::string_view name;
  std::uint32_t offset = 0;
};

/// A variable or parameter: `.shared .align 16 .b8 tile[4096]`, `.param .u64 .ptr .global .align 16
/// name`.
struct Variable {
  StateSpace space = StateSpace::none;
  std::string_view linkage;  // .extern, .visible, .weak, .common; empty
  Type type =
      Type::none;  // of an element; none for an opaque type (.texref and such, in `attributes`)
  std::uint8_t vector = 1;
  std::uint32_t align = 0;  // bytes; 0: natural
  std::string_view name;
  bool array = false;
  bool unsized = false;                   // name[]: extern shared, or sized by its initialiser
  std::uint64_t elements = 1;             // product of the dimensions
  std::optional<std::uint32_t> numbered;  // name<4> declares name0 to name3
  std::string_view dimensions;            // "[4][8]" or "<4>" as written
  std::string_view
      attributes;  // the rest of the declaration: ".ptr .global .align 16", ".attribute(.managed)"
  /// `= {1, 2, name+4, 0xFF(name)}` or `= 7`: a Vector or scalar operand; the index into
  /// Module::operands, or none. 0xFF(name) and .samplerref's field = value are a Name as a whole;
  /// the former has the name as a child.
  std::optional<std::uint32_t> initialiser;
  std::uint32_t offset = 0;
};

/// `.loc file line column[, function_name label+n, inlined_at file line column]`
struct Location {
  std::uint32_t file = 0, line = 0, column = 0;
  std::string_view text;  // the whole directive as written
  std::uint32_t offset = 0;
};

/// A directive that is kept as text: .pragma "nounroll", .branchtargets, .callprototype, .section
/// {...}, .file, .alias, .maxntid, ...
struct Directive {
  std::string_view name;   // ".pragma"
  std::string_view text;   // from the name to the end of its arguments, without the semicolon
  bool semicolon = false;  // ends in one
  std::uint32_t offset = 0;
  std::uint32_t first = 0;  // its arguments: Module::operands[first, first + count)
  std::uint32_t count = 0;
  std::optional<std::uint32_t> prototype;  // of .callprototype: Module::prototypes
};

/// `.callprototype (results) _ (params)`, parsed.
struct Prototype {
  std::vector<Variable> results, params;
  bool returns = true;  // without .noreturn
};

/// The kind of a statement of a body.
enum class StatementKind : std::uint8_t {
  Instruction,
  Label,
  Registers,
  Variable,
  Location,
  Directive,
  BlockBegin,
  BlockEnd
};

/// A statement of a body: its kind, and where it is in the module.
struct Statement {
  StatementKind kind;
  std::uint32_t index = 0;  // into the module's array of that kind; labels: Module::labels
};

/// A label, by its name.
struct Label {
  std::string_view name;
  std::uint32_t offset = 0;
};

/// A kernel (.entry) or function (.func), or the declaration of one.
struct Function {
  bool entry = false;
  bool body = false;  // false: a declaration
  std::string_view linkage;
  std::string_view name;
  std::vector<std::uint32_t> results;  // Module::variables
  std::vector<std::uint32_t> params;   // Module::variables
  std::vector<std::uint32_t>
      directives;  // .maxntid 128, 1, 1 and such, before the body: Module::directives
  std::vector<Statement> statements;  // without the outermost braces
  std::uint32_t offset = 0;           // of the name
};

/// The kind of an item of a module.
enum class ItemKind : std::uint8_t { Function, Variable, Directive };

/// An item of a module, in the order of the text.
struct Item {
  ItemKind kind;
  std::uint32_t index = 0;
};

/// A PTX module as a tree, in arrays that its items and statements index.
struct Module {
  std::shared_ptr<const Source> source;  // every view points into its text
  Version version;
  std::vector<std::string_view> targets;  // "sm_90a", then options such as "debug"
  int address_size = 0;                   // 32 or 64; 0 where it is not stated
  std::uint32_t version_offset = 0, target_offset = 0;
  std::vector<Item> items;

  std::vector<Function> functions;
  std::unordered_map<std::string_view, std::uint32_t> function_index;  // what function() finds
  std::vector<Instruction> instructions;
  std::vector<Operand> operands;
  std::vector<Registers> registers;
  std::vector<Variable> variables;
  std::vector<Location> locations;
  std::vector<Directive> directives;
  std::vector<Prototype> prototypes;
  std::vector<Label> labels;
  std::vector<isa::Spelling> spellings;  // each distinct opcode with its qualifiers, once
  /// Words with blanks before a dot, which are not views into the source's text.
  struct Joined {
    std::shared_ptr<const std::string> text;
    std::uint32_t offset;  // where they began
  };
  std::vector<Joined> joined;

  /// The offset in the source's text of a name or opcode of the tree.
  std::uint32_t offset_of(std::string_view text) const;

  const isa::Spelling& spelling(const Instruction& instruction) const {
    return spellings[instruction.spelling];
  }
  std::span<const Operand> operands_of(const Instruction& instruction) const {
    return {operands.data() + instruction.first, instruction.count};
  }
  std::span<const Operand> operands_of(const Directive& directive) const {
    return {operands.data() + directive.first, directive.count};
  }
  std::span<const Operand> children(const Operand& operand) const {
    return {operands.data() + operand.first, operand.count};
  }
  /// The kernel or function of that name (the definition, if there is one), or null.
  const Function* function(std::string_view name) const;
  /// Names of the kernels (.entry with a body), in order.
  std::vector<std::string_view> kernels() const;
  /// Names of the .global and .const variables outside functions, in order, except .extern ones.
  std::vector<std::string_view> global_variables() const;
  /// Whether global_variables() has the name, or declares it as name<N>.
  bool has_global_variable(std::string_view name) const;
  /// `.file` number -> name, from the module's .file directives; empty if unknown.
  std::string_view file_name(std::uint32_t number) const;
};

}  // namespace tartan::TARTAN_ABI::ptx
