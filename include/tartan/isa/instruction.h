// SPDX-License-Identifier: Apache-2.0
// tartan/isa/instruction.h - the tables' facts about a form: whether it exists, since which target,
// and its operands.
//
//   const auto found = isa::find(form);             // nothing: no such instruction
//   found->since.has(target)                        // legal there?
//   for (const isa::OperandSpec& operand : found->operands) ...
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tartan/isa/rows.h"

namespace tartan::TARTAN_ABI::isa {

/// The syntax of an operand of a matrix instruction.
enum class OperandKind : std::uint8_t {
  Vector,     // {r0, ..., rn}: `count` registers of `type`
  Register,   // one register, without braces
  Address,    // [base + offset], a 32 or 64-bit base
  Immediate,  // low..high
  Pair,       // {byte-id, thread-id}: immediates or 16-bit registers
};

/// One operand of a matrix form.
struct OperandSpec {
  Role role;
  OperandKind kind;
  Type type = Type::none;  // of each register: b32, f32, f64, b64, pred
  int count = 1;           // registers of a vector
  int low = 0, high = 0;   // immediates: the legal range. -1 and 1 alone where low is -1.
  /// Pairs: byte-id takes 0..high in steps of `step`; thread-id takes 0..threads-1.
  int step = 1, threads = 0;
};

/// A form that exists, and the tables' facts about it.
struct Instruction {
  Form form;
  Since since;
  std::vector<OperandSpec> operands;

  const OperandSpec* operand(Role role) const;
};

/// The instruction of `form`; nothing if no row has it. `form.stride` and `form.a_in_registers`
/// choose between signatures.
std::optional<Instruction> find(const Form& form);

/// Same for forms that early versions of PTX had and later ones removed: f16 wmma without .aligned
/// (until 6.2) and with .satfinite (until 6.4). Nothing if find() has the form.
std::optional<Instruction> find_legacy(const Form& form);

/// Same for forms that NVIDIA's assembler accepts although the manual has none. Their results are
/// undocumented: the verifier reports them as errors unless told otherwise, and nothing else in
/// Tartan uses them. A vector whose `count` is 0 takes 1, 2 or 4 registers.
std::optional<Instruction> find_undocumented(const Form& form);

/// The row of a form, for callers that need its own columns. Null if the form is of another family
/// or does not exist.
const MatrixMove* matrix_move(const Form& form);
const Wmma* wmma(const Form& form);  // for loads and stores: the first product that they belong to
const Mma* mma(const Form& form);
const Wgmma* wgmma(const Form& form);

/// Every documented warp-level form, and every form of wgmma, generated from the rows.
std::vector<Form> forms();
std::vector<Form> wgmma_forms();

/// The operands as in the `operands` column of `tartan isa --csv`: "d=4x.f32; a=4x.b32; b=2x.b32;
/// c=4x.f32".
std::string operands_text(const Instruction& instruction);

/// The legal form nearest to `form` on `target` (fewest qualifiers changed), or nothing. For
/// diagnostics.
std::optional<Form> nearest(const Form& form, const Target& target);

/// The oldest architecture that has the form.
Arch oldest(const Since& since);
/// The oldest architecture, with the first PTX version: "sm_89 with PTX 8.4".
std::string text(const Since& since);

}  // namespace tartan::TARTAN_ABI::isa
