// SPDX-License-Identifier: Apache-2.0
#include "tartan/isa/instruction.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/isa/form_instruction.h"
#include "compiler/isa/fragment_operand.h"
#include "compiler/isa/hints.h"
#include "compiler/isa/matching.h"
#include "compiler/isa/signatures/matrix.h"
#include "compiler/isa/tables.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

// Whether the signature is what a form means: documented ones, of today or of former versions of
// PTX, or those beyond the manual.
enum class Kept { Today, Legacy, Undocumented };
Kept kept(const Signature& signature) {
  if (signature.undocumented) return Kept::Undocumented;
  return signature.since.last == newest_version ? Kept::Today : Kept::Legacy;
}

bool a_in_registers(const Signature& signature) {
  return signature.opcode == Opcode::wgmma && signature.operands[1].fragment == Operand::a;
}

bool takes_stride(const Signature& signature) {
  return signature.operands.size > 2 && signature.operands[2].role == Role::stride;
}

OperandSpec spec_of(const OperandRow& row, const Form& form) {
  if (row.fragment != Operand::none) {
    const FragmentOperand fragment = fragment_operand(row, form);
    return {.role = row.role,
            .kind = OperandKind::Vector,
            .type = fragment.type,
            .count = fragment.registers};
  }
  OperandSpec out{.role = row.role, .kind = OperandKind::Register, .type = row.type.fixed};
  out.low = static_cast<int>(row.low), out.high = static_cast<int>(row.high);
  if (row.accepts & an_address) out.kind = OperandKind::Address;
  if (row.accepts == an_integer) out.kind = OperandKind::Immediate;
  if (out.kind != OperandKind::Register) out.type = Type::none;
  if (row.type.fixed == Type::pred) out.low = out.high = 0;
  if (row.threads == 0) return out;
  out.kind = OperandKind::Pair;
  out.step = static_cast<int>(row.step), out.threads = static_cast<int>(row.threads);
  return out;
}

std::optional<Instruction> find(const Form& form, Kept wanted) {
  const std::string text = spell(form);
  const Spelling spelling = read_spelling(text);
  Form read = form_of(spelling);  // what has no words: neither stride nor where A is
  read.stride = form.stride, read.a_in_registers = form.a_in_registers;
  if (read != form) return std::nullopt;
  for (const Signature* each : spelling.signatures)
    if (kept(*each) == wanted && a_in_registers(*each) == form.a_in_registers &&
        (!form.stride || takes_stride(*each)))
      return instruction(spelling, *each, form.stride);
  return std::nullopt;
}

// The first row whose signatures the form matches.
template <typename Row>
const Row* first_row(std::span<const Row> rows, const Form& form) {
  if (!find(form, Kept::Today)) return nullptr;
  const std::string text = spell(form);
  const Spelling spelling = read_spelling(text);
  for (const Row& row : rows)
    for (const Signature& each : signatures_of(row))
      if (matches(each, spelling)) return &row;
  return nullptr;
}

// ---- Enumerating forms.

// Every spelling of a signature, without text.
std::vector<Spelling> spellings(const Signature& row) {
  std::vector<Spelling> out{{.opcode = row.opcode, .shape = row.shape}};
  const auto each = [&](const auto& choices, auto choose) {
    std::vector<Spelling> more;
    for (const Spelling& one : out)
      for (const auto& choice : choices) choose(more.emplace_back(one), choice);
    out = std::move(more);
  };
  const auto add_words = [](Spelling& to, const QualifierSet& words) {
    to.words = to.words | words;
  };
  const auto words_of = [](QualifierSet rest, bool or_none) {
    std::vector<QualifierSet> all;
    if (or_none) all.emplace_back();
    for (; !rest.empty(); rest = rest.without(rest.first())) all.emplace_back(rest.first());
    return all;
  };
  for (const Majors& majors : row.majors) {
    std::vector<Major> all;
    for (const Major major : {Major::row, Major::col})
      if (majors.has(major)) all.push_back(major);
    each(all, [](Spelling& to, Major major) { to.majors.items[to.majors.size++] = major; });
  }
  for (const TypeSet& types : row.types) {
    std::vector<Type> all;
    for (const TypeInfo& type : type_table)
      if (types.has(type.type)) all.push_back(type.type);
    each(all, [](Spelling& to, Type type) { to.types.items[to.types.size++] = type; });
  }
  for (const QualifierSet& set : row.one) each(words_of(set, false), add_words);
  for (QualifierSet rest = row.flags; !rest.empty(); rest = rest.without(rest.first()))
    each(words_of(rest.first(), true), add_words);
  for (const QualifierSet& set : row.any) each(words_of(set, true), add_words);
  if (row.shape.n) return out;
  std::vector<std::int16_t> columns;
  for (std::int16_t n = 8; n <= 256; n = static_cast<std::int16_t>(n + 8)) columns.push_back(n);
  each(columns, [](Spelling& to, std::int16_t n) { to.shape.n = n; });
  std::erase_if(out, [&](const Spelling& one) { return !row.refuses(one).empty(); });
  return out;
}

void append_forms(Opcode opcode, std::vector<Form>& out) {
  for (const Signature& row : signatures(opcode)) {
    if (kept(row) != Kept::Today) continue;
    for (const Spelling& spelling : spellings(row)) {
      Form form = form_of(spelling);
      form.a_in_registers = a_in_registers(row);
      out.push_back(form);
      if (takes_stride(row)) form.stride = true, out.push_back(form);
    }
  }
}

}  // namespace

const OperandSpec* Instruction::operand(Role role) const {
  for (const OperandSpec& spec : operands)
    if (spec.role == role) return &spec;
  return nullptr;
}

std::span<const MatrixMove> matrix_move_rows() { return matrix_moves; }
std::span<const Wmma> wmma_rows() { return wmmas; }
std::span<const Mma> mma_rows() { return mmas; }
std::span<const Wgmma> wgmma_rows() { return wgmmas; }

const MatrixMove* matrix_move(const Form& form) { return first_row(matrix_move_rows(), form); }
const Wmma* wmma(const Form& form) { return first_row(wmma_rows(), form); }
const Mma* mma(const Form& form) { return first_row(mma_rows(), form); }
const Wgmma* wgmma(const Form& form) { return first_row(wgmma_rows(), form); }

Instruction instruction(const Spelling& spelling, const Signature& signature, bool with_stride) {
  Instruction out{form_of(spelling), signature.since, {}};
  out.form.stride = with_stride;
  out.form.a_in_registers = a_in_registers(signature);
  for (const Since& each : requirements(signature, spelling))
    out.since.ptx = std::max(out.since.ptx, each.ptx);
  for (const OperandRow* each : operands(signature, spelling))
    if (!each->optional || with_stride) out.operands.push_back(spec_of(*each, out.form));
  return out;
}

std::optional<Instruction> find(const Form& form) { return find(form, Kept::Today); }
std::optional<Instruction> find_legacy(const Form& form) { return find(form, Kept::Legacy); }
std::optional<Instruction> find_undocumented(const Form& form) {
  return find(form, Kept::Undocumented);
}

std::vector<Form> forms() {
  std::vector<Form> out;
  for (const Opcode opcode : {Opcode::ldmatrix, Opcode::stmatrix, Opcode::movmatrix,
                              Opcode::wmma_load, Opcode::wmma_store, Opcode::wmma_mma, Opcode::mma})
    append_forms(opcode, out);
  std::ranges::stable_sort(out, [](const Form& x, const Form& y) {
    return std::pair(x.opcode, x.operand) < std::pair(y.opcode, y.operand);
  });
  return out;
}

std::vector<Form> wgmma_forms() {
  std::vector<Form> out;
  append_forms(Opcode::wgmma, out);
  return out;
}

std::string operands_text(const Instruction& instruction) {
  std::string out;
  for (const OperandSpec& spec : instruction.operands) {
    if (!out.empty()) out += "; ";
    switch (spec.kind) {
      case OperandKind::Vector:
        out += fmt::format("{}={}x.{}", name(spec.role), spec.count, name(spec.type));
        break;
      case OperandKind::Register:
        out += fmt::format("{}=.{}", name(spec.role), name(spec.type));
        break;
      case OperandKind::Address: out += fmt::format("{}=[.u32|.u64]", name(spec.role)); break;
      case OperandKind::Immediate: out += fmt::format("{}=imm", name(spec.role)); break;
      case OperandKind::Pair:
        out += fmt::format("{}={{.u16|imm,.u16|imm}}", name(spec.role));
        break;
    }
  }
  return out;
}

std::optional<Form> nearest(const Form& form, const Target& target) {
  const std::string text = spell(form), near = nearest_spelling(read_spelling(text), target);
  if (near.empty()) return std::nullopt;
  Form out = form_of(read_spelling(near));
  out.stride = form.stride, out.a_in_registers = form.a_in_registers;
  return out;
}

Arch oldest(const Since& since) {
  for (const ArchRow& row : archs)
    if (since.has(row.arch)) return row.arch;
  return {};
}

std::string targets_text(const Since& since) {
  const Arch first = oldest(since);
  constexpr std::string_view reaches[] = {"", " (targets with suffix a or f only)",
                                          " (targets with suffix a only)",
                                          " (and no other target)"};
  std::string more;
  for (const int each : since.only)
    if (each > since.only[0]) more += fmt::format(" and sm_{}", each);
  if (since.last_sm > first.sm) more = fmt::format(" to sm_{}", since.last_sm);
  return fmt::format("{}{}{}", first.text(), more, reaches[static_cast<int>(since.reach)]);
}

std::string lacking(const Since& since, const Target& target) {
  const bool older = target.ptx < since.ptx;
  return fmt::format("requires {}{}, the target is {}{}", targets_text(since),
                     older ? fmt::format(" and PTX {}", since.ptx.text()) : "", target.arch.text(),
                     older ? fmt::format(" and PTX {}", target.ptx.text()) : "");
}

std::string text(const Since& since) {
  return fmt::format("{} and PTX {}", oldest(since).text(), since.ptx.text());
}

}  // namespace tartan::TARTAN_ABI::isa
