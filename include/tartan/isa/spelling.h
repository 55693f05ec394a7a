// SPDX-License-Identifier: Apache-2.0
// tartan/isa/spelling.h - a parsed opcode with its qualifiers; the parser attaches one to each
// instruction.
//
//   const isa::Spelling add = isa::read_spelling("add.sat.s32");
//   add.opcode, add.has("sat"_q), add.type(), add.signatures
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tartan/isa/signature.h"

namespace tartan::TARTAN_ABI::isa {

/// An opcode with its qualifiers and types, and the signatures that it matches.
struct Spelling {
  std::string_view text;  // as written: "ld.global.v4.u32"
  Opcode opcode = Opcode::none;
  std::string_view first;  // the word after the opcode
  QualifierSet words;
  List<Type, 6> types;  // in the order written; more than six are counted in `excess_types`
  std::uint8_t excess_types = 0;
  // Of matrix instructions alone:
  Shape shape;
  List<Major, 2> majors;      // in the order written
  std::string_view unknown;   // the first word that is neither qualifier nor type; empty: none
  std::string_view repeated;  // the first qualifier that occurs twice
  std::uint8_t repetitions = 0;
  /// The signatures that match the words and types; the operands determine which of them applies.
  /// Undocumented ones only if there are no others.
  std::vector<const Signature*> signatures;

  constexpr bool has(Qualifier word) const { return words.has(word); }
  Type type(std::size_t i = 0) const { return i < types.size ? types[i] : Type::none; }
  const OpcodeRow& row() const { return isa::row(opcode); }
};

/// Parses an instruction up to its first blank.
Spelling read_spelling(std::string_view text);

/// The matrix form that the words mean, whether it exists or not.
Form form_of(const Spelling& spelling);

/// The qualifier that names the state space; `space` is not none.
Qualifier qualifier_of(StateSpace space);

/// The state spaces that the words name: none, one, or the source and destination of a copy.
List<StateSpace, 9> state_spaces(const Spelling& spelling);

/// Whether `first` precedes `second`. The order of words matters only for two state spaces,
/// destination and source.
inline bool in_order(const Spelling& spelling, std::string_view first, std::string_view second) {
  return spelling.text.find(first) < spelling.text.find(second);
}

/// Whether all lanes of a warp must execute the instruction together.
bool needs_all_lanes(const Spelling& spelling);

/// Whether the signature has these words and types. Targets are ignored.
bool matches(const Signature& signature, const Spelling& spelling);

/// Why no signature matches, and the nearest spelling that `target` has: "add.f32 takes no .sat
/// with .rn"; empty if one does.
std::string mismatch(const Spelling& spelling, const Target& target = {});

/// The operands of the signature with these words, in the order of the instruction's operands.
List<const OperandRow*, 12> operands(const Signature& signature, const Spelling& spelling);

/// What the spelling requires beyond `target`: the signature's strictest requirement, or null.
const Since* missing(const Signature& signature, const Spelling& spelling, const Target& target);

/// The vector length of .v2, .v4, .v8 or .v16; 1 without.
int written_elements(const Spelling& spelling);

/// The bits that one lane moves: the type's bits times the vector length.
int access_bits(const Spelling& spelling);

}  // namespace tartan::TARTAN_ABI::isa
