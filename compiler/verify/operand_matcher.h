// SPDX-License-Identifier: Apache-2.0
// compiler/verify/operand_matcher.h - matches the operands of an instruction with a signature's.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/names.h"
#include "compiler/verify/pass.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::verify {

/// The meaning of the names in one instruction's operands, looked up once for all signatures.
class OperandNames {
 public:
  OperandNames(Context& context, const FunctionView& view);

  /// Looks up every name of the instruction and reports undeclared ones. Returns false if it
  /// reported any.
  bool resolve(const ptx::Instruction& instruction, isa::Opcode opcode);
  const NameInfo& of(const ptx::Operand& name) const {
    return infos_[static_cast<std::size_t>(&name - operands_) - first_];
  }

 private:
  bool operand(const ptx::Operand& operand, bool branch, bool call);
  bool label(const ptx::Operand& operand);
  bool name(const ptx::Operand& operand, bool call);
  void guard(const ptx::Instruction& instruction);
  void undeclared(std::string_view text, std::string_view base);
  std::string unwritable(std::string_view text) const;

  Context& context_;
  const FunctionView& view_;
  const ptx::Operand* operands_;               // of the module
  NameSet labels_;                             // of all blocks
  NameMap<const ptx::Registers*> unwritable_;  // rows a1<4>, by name
  std::vector<NameInfo> infos_;
  std::size_t first_ = 0;  // the module's operand that infos_ begins with
};

/// Why an instruction's operands do not match.
struct OperandMismatch {
  const Rule* rule = nullptr;
  std::string_view at;  // the operand's text; empty: the instruction as a whole
  std::string message;  // follows the opcode: "takes 3 operands, found 2"
  int matched = -1;     // number of operands that fit; -1: wrong number of operands
  int strange = 0;      // number of operands of a kind that the signature does not take there
};

class OperandMatcher {
 public:
  OperandMatcher(const ptx::Module& module, const OperandNames& names)
      : module_(module), names_(names) {}

  bool match(const ptx::Instruction& instruction, const isa::Spelling& spelling,
             const isa::Signature& signature) const;
  /// What the instruction requires beyond the target, or null: isa::missing(), and the requirements
  /// of optional parts of operands. For a signature that matches.
  const Since* missing(const ptx::Instruction& instruction, const isa::Spelling& spelling,
                       const isa::Signature& signature, const Target& target) const;
  /// For a signature that does not match: the first operand from number `from` on that does not
  /// fit. Without a rule if all fit.
  OperandMismatch mismatch(const ptx::Instruction& instruction, const isa::Spelling& spelling,
                           const isa::Signature& signature, std::size_t from = 0) const;
  /// "write {%r1, %r2} in braces": if some of the operands make the vector of a signature; else
  /// empty.
  std::string braces_hint(const ptx::Instruction& instruction, const isa::Spelling& spelling) const;

 private:
  using Operands = isa::List<const isa::OperandRow*, 12>;
  static std::size_t required(const Operands& rows);
  // One operand of a signature, with the type and vector length that the spelling gives.
  struct Wanted {
    const isa::OperandRow& row;
    const isa::Spelling& spelling;
    Type type;
    int elements;
    bool in_vector = false;  // an element of a vector: its size counts, not its kind
    TypeSet registers = {};  // of a fragment
  };
  Wanted wanted(const isa::OperandRow& row, const isa::Spelling& spelling) const;
  bool fits(const ptx::Operand& operand, const Wanted& wanted) const;
  bool fits_in_braces(const ptx::Instruction& instruction, const isa::Spelling& spelling,
                      const Operands& rows, std::size_t at) const;
  static bool exceeds_next(std::span<const ptx::Operand> operands, std::size_t i,
                           const isa::OperandRow& row);
  static bool is_read_whole(std::span<const ptx::Operand> operands, std::size_t i,
                            const isa::OperandRow& row);
  static bool takes_kind(const ptx::Operand& operand, const isa::OperandRow& row);
  bool fits_among(std::span<const ptx::Operand> operands, std::size_t i,
                  const Wanted& wanted) const;
  static bool register_fits(Type type, const Wanted& wanted);
  bool name_fits(const ptx::Operand& operand, const Wanted& wanted) const;
  bool minus_fits(const ptx::Operand& operand, const Wanted& wanted) const;
  bool shape_fits(const ptx::Operand& operand, const Wanted& wanted) const;
  bool is_whole_vector(const ptx::Operand& operand) const;
  bool whole_vector_fits(const ptx::Operand& operand, const Wanted& wanted) const;
  static bool variable_fits(const NameInfo& info, const Wanted& wanted);
  static bool takes_sum(const isa::OperandRow& row);
  static bool sum_fits(Type type, const Wanted& wanted);
  bool element_fits(const ptx::Operand& operand, const Wanted& wanted) const;
  bool index_fits(const ptx::Operand& index) const;
  static bool takes_scalar(const Wanted& wanted);
  static bool function_fits(const Wanted& wanted);
  static bool special_fits(const ptx::Operand& operand, const Wanted& wanted);
  bool integer_fits(const ptx::Operand& operand, const Wanted& wanted) const;
  bool float_fits(const ptx::Operand& operand, const Wanted& wanted) const;
  bool pair_fits(const ptx::Operand& operand, const Wanted& wanted) const;
  bool vector_fits(const ptx::Operand& operand, const Wanted& wanted) const;
  bool fragment_fits(const ptx::Operand& operand, const Wanted& wanted) const;
  static bool fragment_count_fits(int count, const Wanted& wanted);
  bool fragment_element_fits(const ptx::Operand& element, const Wanted& wanted, TypeSet types,
                             const isa::Form& form) const;
  TypeSet fragment_types(std::span<const ptx::Operand> elements, const Wanted& wanted,
                         const isa::Form& form) const;
  bool fragment_has_type(std::span<const ptx::Operand> elements, const Wanted& wanted,
                         const isa::Form& form) const;
  static bool count_fits(const ptx::Operand& vector, const Wanted& wanted);
  static isa::OperandRow element_row(const Wanted& vector);
  static isa::OperandRow thread_id_row(const Wanted& vector);
  bool elements_fit(std::span<const ptx::Operand> elements, const Wanted& each) const;
  bool address_fits(const ptx::Operand& operand, const Wanted& wanted) const;
  bool image_fits(const ptx::Operand& operand, const Wanted& wanted) const;
  bool has_offset(const ptx::Operand& base) const;
  bool is_half(const ptx::Operand& operand, const NameInfo& info, Type type) const;
  bool handle_fits(const ptx::Operand& base, unsigned spaces) const;
  struct Texel;
  bool texel_fits(const ptx::Operand& coordinates, const Wanted& wanted) const;
  bool independent_samplers() const;
  unsigned images(unsigned spaces) const;
  bool is_register(const ptx::Operand& operand) const;
  /// What stands between the brackets, in this order.
  enum class AddressPart : std::uint8_t {
    Base,
    Endpoint,     // of a fabric
    Address,      // there, or in place of the tensor map's
    Counter,      // of bytes
    Sizes,        // in place of the tensor map's
    Strides,      // their low 32 bits
    HighStrides,  // and the rest, together
    Coordinates,
  };
  using AddressParts = isa::List<AddressPart, 8>;
  static AddressParts address_parts(const Wanted& wanted);
  static std::string form_of(const AddressParts& parts);
  bool part_fits(const ptx::Operand& part, AddressPart kind, const Wanted& wanted) const;
  static int tensor_coordinates(const Wanted& wanted);
  static unsigned wanted_spaces(const Wanted& wanted);
  bool takes_whole(const Wanted& wanted) const;
  bool base_fits(const ptx::Operand& base, const Wanted& wanted) const;
  struct Expectation {
    const Rule* rule;
    std::string text;           // what was expected
    const ptx::Operand* found;  // the operand or element that does not fit
  };
  Expectation expectation(const ptx::Operand& operand, const Wanted& want) const;
  Expectation address_expectation(const ptx::Operand& operand, const Wanted& want) const;
  Expectation indexed_expectation(const ptx::Operand& element, const Wanted& want) const;
  Expectation base_expectation(const ptx::Operand& base, const Wanted& want) const;
  Expectation element_expectation(const ptx::Operand& vector, const Wanted& want) const;
  Expectation fragment_expectation(const ptx::Operand& operand, const Wanted& want) const;
  static std::string types_text(TypeSet types);
  std::string found(const ptx::Operand& operand) const;
  std::string_view parameter_hint(const ptx::Operand& operand, bool result) const;
  OperandMismatch image_mismatch(const ptx::Operand& operand, const Wanted& wanted) const;
  OperandMismatch texel_mismatch(const ptx::Operand& coordinates, const Wanted& wanted) const;

  const ptx::Module& module_;
  const OperandNames& names_;
};

}  // namespace tartan::TARTAN_ABI::verify
