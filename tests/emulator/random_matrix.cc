// SPDX-License-Identifier: Apache-2.0
// Warp-level matrix statements: products of every form that sm_90 has, and fragment moves. Each
// warp has its own 2048 bytes of shared memory at %warp.
#include <algorithm>

#include "tartan/isa/fragment.h"
#include "tartan/isa/instruction.h"
#include "tests/emulator/random_writer.h"

namespace tartan::test {
namespace {

const std::vector<isa::Form>& forms_of(std::initializer_list<isa::Opcode> opcodes) {
  static std::vector<isa::Form> products, moves;
  auto& list = *opcodes.begin() == isa::Opcode::mma ? products : moves;
  if (!list.empty()) return list;
  for (const isa::Form& form : isa::forms()) {
    if (std::find(opcodes.begin(), opcodes.end(), form.opcode) == opcodes.end()) continue;
    const bool generic = form.space == StateSpace::none && (form.opcode == isa::Opcode::ldmatrix ||
                                                            form.opcode == isa::Opcode::stmatrix);
    const auto instruction = isa::find(form);
    if (!generic && instruction && instruction->since.has({Arch{90, 0}, {8, 6}}))
      list.push_back(form);
  }
  return list;
}
const std::vector<isa::Form>& products() {
  return forms_of({isa::Opcode::mma, isa::Opcode::wmma_mma});
}
const std::vector<isa::Form>& moves() {
  return forms_of({isa::Opcode::ldmatrix, isa::Opcode::stmatrix, isa::Opcode::movmatrix});
}

std::string joined(const std::vector<std::string>& registers) {
  return fmt::format("{{{}}}", fmt::join(registers, ", "));
}

char letter_of(Type register_type) {
  return register_type == Type::f32   ? 'f'
         : register_type == Type::f64 ? 'g'
         : bits(register_type) == 64  ? 'd'
                                      : 'r';
}

std::vector<std::string> registers_of(Writer& w, const isa::OperandSpec& operand) {
  std::vector<std::string> out;
  for (int i = 0; i < operand.count; ++i) out.push_back(w.fresh(letter_of(operand.type)));
  return out;
}

// Registers of a fragment with elements of `type`: from the input, occasionally from anywhere.
std::vector<std::string> fragment_of(Writer& w, const isa::OperandSpec& operand, Type type,
                                     bool calm) {
  const auto out = registers_of(w, operand);
  const int bits = letter_of(operand.type) == 'g' || letter_of(operand.type) == 'd' ? 64 : 32;
  const bool anywhere = w.chance(5);
  // NVIDIA's assembler makes products of 8-bit floats for sm_90 from others, and takes the upper
  // half of an operand that it knows to be 0 for 8.
  const bool unpacked = type == Type::e4m3 || type == Type::e5m2;
  for (const std::string& reg : out)
    if (anywhere && unpacked) w.copy(reg, w.source(32), 32);
    else if (anywhere) w.line("mov.b{} {}, {};", bits, reg, w.source(bits));
    else w.line("ld.global.b{} {}, {};", bits, reg, w.input(zone_of(type, calm), 8));
  return out;
}

void keep(Writer& w, const std::vector<std::string>& registers, Type register_type,
          std::string_view type, const std::string& text) {
  for (const std::string& reg : registers) {
    std::string kept = reg;
    const int bits = tartan::bits(register_type) == 64 ? 64 : 32;
    if (reg[1] == 'f' || reg[1] == 'g') {
      kept = w.fresh(Writer::letter(bits));
      w.line("mov.b{} {}, {};", bits, kept, reg);
    }
    w.result(kept, bits, type, text);
  }
}

std::string_view type_in_registers(Type type) {
  switch (type) {
    case Type::f16: return "f16x2";
    case Type::f32: return "f32";
    case Type::f64: return "f64";
    default: return "b32";
  }
}

Type element_of(const isa::Form& form, isa::Role role) {
  return role == isa::Role::a   ? form.a
         : role == isa::Role::b ? form.b
         : role == isa::Role::c ? form.c
                                : form.d;
}

void mma_statement(Writer& w, const isa::Form& form) {
  const auto instruction = isa::find(form);
  const bool calm = w.chance(80);
  std::string text = isa::spell(form);
  std::vector<std::string> d;
  Type d_type = Type::b32;
  const char* separator = " ";
  for (const isa::OperandSpec& operand : instruction->operands) {
    text += separator;
    separator = ", ";
    if (operand.role == isa::Role::d) {
      d = registers_of(w, operand);
      d_type = operand.type;
      text += joined(d);
    } else if (operand.kind == isa::OperandKind::Vector) {
      text += joined(fragment_of(w, operand, element_of(form, operand.role), calm));
    } else if (operand.role == isa::Role::metadata) {
      const std::string reg = w.fresh('r');
      w.line("ld.global.b32 {}, {};", reg,
             w.input(form.a == Type::tf32 ? Zone::codes_tf32 : Zone::codes, 8));
      text += reg;
    } else {
      text += std::to_string(w.below(static_cast<std::uint32_t>(isa::selectors(form))));
    }
  }
  text += ";";
  w.line(text);
  keep(w, d, d_type, type_in_registers(form.d), text);
}

// ---- wmma.

struct Memory {
  isa::Form form;
  int stride;  // elements
  isa::OperandSpec fragment;
};

// The load or store that goes with an operand of a product.
Memory memory_of(const isa::Form& product, isa::Opcode opcode, Operand operand, StateSpace space,
                 Major major) {
  isa::Form form{.opcode = opcode, .operand = operand, .shape = product.shape, .a_major = major};
  form.space = space;
  form.stride = true;
  const Type type = operand == Operand::a   ? product.a
                    : operand == Operand::b ? product.b
                    : operand == Operand::c ? product.c
                                            : product.d;
  form.d = type;
  const isa::Fragment whole = isa::fragment(form, operand);
  const int run = major == Major::row ? whole.cols : whole.rows;
  const int unit = 128 / bits(type);  // strides are multiples of 16 bytes
  const auto instruction = isa::find(form);
  Memory out{form, (run + unit - 1) / unit * unit, {}};
  for (const isa::OperandSpec& spec : instruction->operands)
    if (spec.kind == isa::OperandKind::Vector) out.fragment = spec;
  return out;
}

std::string load_fragment(Writer& w, const isa::Form& product, Operand operand, Major major,
                          bool calm) {
  const Memory memory =
      memory_of(product, isa::Opcode::wmma_load, operand, StateSpace::global, major);
  const auto registers = registers_of(w, memory.fragment);
  const int offset = static_cast<int>(zone_of(memory.form.d, calm)) * zone_bytes +
                     32 * static_cast<int>(w.below(64));
  w.line("{} {}, [%in+{}], {};", isa::spell(memory.form), joined(registers), offset, memory.stride);
  return joined(registers);
}

void store_fragment(Writer& w, const isa::Form& product, const std::vector<std::string>& d,
                    const std::string& made_by) {
  const Memory memory = memory_of(product, isa::Opcode::wmma_store, Operand::d, StateSpace::shared,
                                  w.chance(50) ? Major::row : Major::col);
  const int bytes = product.shape.m * product.shape.n * bits(product.d) / 8;
  w.line("bar.warp.sync 0xffffffff;");
  const std::string text =
      fmt::format("{} [%warp], {}, {};", isa::spell(memory.form), joined(d), memory.stride);
  w.line(text);
  w.line("bar.warp.sync 0xffffffff;");
  const std::string at = w.fresh('r'), reg = w.destination(32);
  w.line("mad.lo.u32 {}, %lane, 4, %warp;", at);
  w.line("ld.shared.b32 {}, [{}+{}];", reg, at,
         128 * static_cast<int>(w.below(static_cast<std::uint32_t>(bytes / 128))));
  w.result(reg, 32, "b32", made_by + " " + text);
}

void wmma_statement(Writer& w, const isa::Form& form) {
  const bool calm = w.chance(80);
  const std::string a = load_fragment(w, form, Operand::a, form.a_major, calm);
  const std::string b = load_fragment(w, form, Operand::b, form.b_major, calm);
  const std::string c =
      load_fragment(w, form, Operand::c, w.chance(50) ? Major::row : Major::col, calm);
  const auto instruction = isa::find(form);
  const isa::OperandSpec& spec = *instruction->operand(isa::Role::d);
  const auto d = registers_of(w, spec);
  const std::string text = fmt::format("{} {}, {}, {}, {};", isa::spell(form), joined(d), a, b, c);
  w.line(text);
  keep(w, d, spec.type, type_in_registers(form.d), text);
  if (w.chance(60)) store_fragment(w, form, d, text);
}

// ---- ldmatrix, stmatrix, movmatrix: rows of 16 bytes, lane i's at row i ^ `turn` of the warp's
// memory.

std::string row_address(Writer& w, std::uint32_t turn) {
  const std::string reg = w.fresh('r');
  w.line("xor.b32 {}, %lane, {};", reg, turn);
  w.line("mad.lo.u32 {}, {}, 16, %warp;", reg, reg);
  return reg;
}

void load_matrix(Writer& w, const isa::Form& form, const isa::OperandSpec& d) {
  const std::string own = row_address(w, 0);
  w.line("bar.warp.sync 0xffffffff;");
  w.line("st.shared.v4.b32 [{}], {};", own, joined(w.sources(32, 4)));
  w.line("bar.warp.sync 0xffffffff;");
  const std::string at = row_address(w, w.below(32));
  const auto registers = registers_of(w, d);
  const std::string text = fmt::format("{} {}, [{}];", isa::spell(form), joined(registers), at);
  w.line(text);
  keep(w, registers, Type::b32, "b32", text);
}

void store_matrix(Writer& w, const isa::Form& form, const isa::OperandSpec& vector) {
  const std::uint32_t turn = w.below(32);
  const std::string at = row_address(w, turn);
  const auto registers = w.sources(32, vector.count);
  w.line("bar.warp.sync 0xffffffff;");
  const std::string text = fmt::format("{} [{}], {};", isa::spell(form), at, joined(registers));
  w.line(text);
  w.line("bar.warp.sync 0xffffffff;");
  const std::string row = w.fresh('r'), column = w.fresh('r');
  for (int matrix = 0; matrix < vector.count; ++matrix) {  // four lanes to a row
    const std::string reg = w.destination(32);
    w.line("shr.u32 {}, %lane, 2;", row);
    w.line("add.u32 {}, {}, {};", row, row, 8 * matrix);
    w.line("xor.b32 {}, {}, {};", row, row, turn);
    w.line("and.b32 {}, %lane, 3;", column);
    w.line("mad.lo.u32 {}, {}, 4, %warp;", column, column);
    w.line("mad.lo.u32 {}, {}, 16, {};", row, row, column);
    w.line("ld.shared.b32 {}, [{}];", reg, row);
    w.result(reg, 32, "b32", text);
  }
}

}  // namespace

std::vector<std::string> random_matrix_instructions() {
  std::vector<std::string> out;
  for (const isa::Form& form : products()) out.push_back(isa::spell(form));
  return out;
}

void matrix_statement(Writer& w) {
  w.converge();
  const std::size_t index = w.row(w.program.matrix_rows.size(), 1, products().size());
  w.program.matrix_rows.push_back(index);
  const isa::Form& form = products()[index];
  if (form.opcode == isa::Opcode::mma) mma_statement(w, form);
  else wmma_statement(w, form);
}

void matrix_move_statement(Writer& w) {
  w.converge();
  const isa::Form& form = moves()[w.below(static_cast<std::uint32_t>(moves().size()))];
  const auto instruction = isa::find(form);
  if (form.opcode == isa::Opcode::movmatrix) {
    // If all lanes hold the same value, NVIDIA's assembler assumes that the transposed matrix is
    // the same in all lanes, too.
    const std::string d = w.destination(32), a = w.fresh('r');
    w.copy(a, w.source(32), 32);
    const std::string text = fmt::format("{} {}, {};", isa::spell(form), d, a);
    w.line(text);
    return w.result(d, 32, "b32", text);
  }
  for (const isa::OperandSpec& operand : instruction->operands) {
    if (operand.kind != isa::OperandKind::Vector) continue;
    if (form.opcode == isa::Opcode::ldmatrix) load_matrix(w, form, operand);
    else store_matrix(w, form, operand);
  }
}

}  // namespace tartan::test
