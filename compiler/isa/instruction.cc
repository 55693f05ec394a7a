// SPDX-License-Identifier: Apache-2.0
#include "compiler/isa/instruction.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/isa/fragment.h"

namespace tartan::isa {
namespace {

constexpr Version cta_since{7, 8};  // the ::cta suffix of .shared

bool shared_only(Space space) { return space != Space::global; }

// What `form` would be if only the columns of its family were set: anything else that is set makes the form illegal.
Form bare(const Form& form) {
  Form out;
  out.opcode = form.opcode;
  out.shape = form.shape;
  return out;
}

// ---- Does a row accept a form? Each function rebuilds the form from the columns that the row knows and compares.

bool accepts(const MatrixMove& row, const Form& f) {
  if (row.opcode != f.opcode || !(row.shape == f.shape) || row.format != f.d || !row.from.has(f.a)) return false;
  if (row.counts ? !(f.count == 1 || f.count == 2 || f.count == 4) || !(row.counts & f.count) : f.count) return false;
  if (row.trans != Trans::Optional && f.trans != (row.trans == Trans::Always)) return false;
  if (row.opcode == Opcode::movmatrix ? f.space != Space::none : !shared_only(f.space)) return false;
  Form same = bare(f);
  same.d = f.d, same.a = f.a, same.count = f.count, same.trans = f.trans, same.space = f.space;
  return same == f;
}

bool accepts_load(const Wmma& row, const Form& f) {
  if (!(row.shape == f.shape) || f.a_major == Major::none) return false;
  if (f.operand == Operand::a || f.operand == Operand::b) {
    if (!row.ab.has(f.d)) return false;
    if (!row.any_major && f.a_major != (f.operand == Operand::a ? Major::row : Major::col)) return false;
  } else if (!row.cd.has(f.d)) {
    return false;
  }
  Form same = bare(f);
  same.operand = f.operand, same.a_major = f.a_major, same.d = f.d, same.space = f.space, same.stride = f.stride;
  return same == f;
}

bool majors_fit(bool any, const Form& f) {
  if (any) return f.a_major != Major::none && f.b_major != Major::none;
  return f.a_major == Major::row && f.b_major == Major::col;
}

bool accepts_product(const Wmma& row, const Form& f) {
  if (!(row.shape == f.shape) || !majors_fit(row.any_major, f)) return false;
  if (!row.ab.has(f.a) || f.a != f.b || !row.cd.has(f.d) || !row.cd.has(f.c) || row.bit_op != f.bit_op) return false;
  if ((f.satfinite && !row.satfinite) || (f.rounding != Rounding::none && !row.roundings)) return false;
  Form same = bare(f);
  same.a_major = f.a_major, same.b_major = f.b_major, same.d = f.d, same.a = f.a, same.b = f.b, same.c = f.c;
  same.bit_op = f.bit_op, same.satfinite = f.satfinite, same.rounding = f.rounding;
  return same == f;
}

bool accepts(const Mma& row, const Form& f) {
  if (!(row.shape == f.shape) || !majors_fit(row.options & any_major, f)) return false;
  if (row.d != f.d || !row.a.has(f.a) || !row.b.has(f.b) || row.c != f.c) return false;
  if (row.kind != f.kind || row.bit_op != f.bit_op || row.scale_type != f.scale_type) return false;
  if (row.sparse ? f.sparsity == Sparsity::dense || (f.sparsity == Sparsity::sp && row.plain_sp == Version{}) : f.sparsity != Sparsity::dense)
    return false;
  if (f.block_scale != (row.scale_vec != 0)) return false;
  if (f.scale_vec ? f.scale_vec != row.scale_vec : (row.options & needs_vec) != 0) return false;
  if ((f.satfinite && !(row.options & satfinite)) || (f.rounding != Rounding::none && !(row.options & roundings))) return false;
  Form same = bare(f);
  same.a_major = f.a_major, same.b_major = f.b_major, same.d = f.d, same.a = f.a, same.b = f.b, same.c = f.c;
  same.kind = f.kind, same.bit_op = f.bit_op, same.scale_type = f.scale_type, same.sparsity = f.sparsity;
  same.block_scale = f.block_scale, same.scale_vec = f.scale_vec, same.satfinite = f.satfinite, same.rounding = f.rounding;
  return same == f;
}

bool accepts(const Wgmma& row, const Form& f) {
  if (f.shape.m != 64 || !legal_n(row, f.shape.n)) return false;
  if (f.sparsity == Sparsity::sp_ordered_metadata) return false;
  const bool sparse = f.sparsity == Sparsity::sp;
  if (f.shape.k != (sparse ? 2 * row.k : row.k) || (sparse && row.sparse == Version{})) return false;
  if (row.d != f.d || !row.a.has(f.a) || !row.b.has(f.b) || f.c != f.d || row.bit_op != f.bit_op) return false;
  if (f.satfinite && !row.satfinite) return false;
  Form same = bare(f);
  same.d = f.d, same.a = f.a, same.b = f.b, same.c = f.c, same.sparsity = f.sparsity, same.bit_op = f.bit_op;
  same.satfinite = f.satfinite, same.a_in_registers = f.a_in_registers;
  return same == f;
}

template <typename Row, std::size_t N, typename Accepts>
const Row* first_row(const Row (&rows)[N], Accepts accepts) {
  for (const Row& row : rows)
    if (accepts(row)) return &row;
  return nullptr;
}

// ---- Operands.

Type register_type(Type element) {
  if (element == f64 || element == f32) return element;
  return b32;
}

OperandSpec vector(Role role, const Form& form, Operand operand) {
  const Fragment frag = fragment(form, operand);
  return {.role = role, .kind = OperandKind::Vector, .type = register_type(frag.type), .count = frag.registers};
}

// A and B registers of f32 size hold tf32: bit registers.
OperandSpec input_vector(Role role, const Form& form, Operand operand) {
  OperandSpec spec = vector(role, form, operand);
  if (spec.type == f32) spec.type = b32;
  return spec;
}

OperandSpec register_operand(Role role, Type type) { return {.role = role, .kind = OperandKind::Register, .type = type}; }

OperandSpec immediate(Role role, int low, int high) {
  return {.role = role, .kind = OperandKind::Immediate, .low = low, .high = high};
}

OperandSpec select_pair(Role role, int scale_vec) {
  OperandSpec spec{.role = role, .kind = OperandKind::Pair, .type = b16};
  spec.high = scale_vec == 1 ? 3 : scale_vec == 2 ? 2 : 0;
  spec.step = scale_vec == 2 ? 2 : 1;
  spec.threads = role == Role::select_a ? 2 : 4;
  return spec;
}

const OperandSpec address{.role = Role::address, .kind = OperandKind::Address};
const OperandSpec stride{.role = Role::stride, .kind = OperandKind::Register, .type = b32};

std::vector<OperandSpec> move_operands(const MatrixMove& row, const Form& f) {
  if (f.opcode == Opcode::movmatrix) return {register_operand(Role::d, b32), register_operand(Role::a, b32)};
  const int count = f.count * row.registers;
  if (f.opcode == Opcode::ldmatrix)
    return {{.role = Role::d, .kind = OperandKind::Vector, .type = b32, .count = count}, address};
  return {address, {.role = Role::c, .kind = OperandKind::Vector, .type = b32, .count = count}};
}

std::vector<OperandSpec> wmma_move_operands(const Form& f) {
  std::vector<OperandSpec> out;
  if (f.opcode == Opcode::wmma_load) {
    const bool input = f.operand == Operand::a || f.operand == Operand::b;
    out = {input ? input_vector(Role::d, f, f.operand) : vector(Role::d, f, f.operand), address};
  } else {
    out = {address, vector(Role::c, f, Operand::d)};
  }
  if (f.stride) out.push_back(stride);
  return out;
}

std::vector<OperandSpec> product_operands(const Form& f) {
  std::vector<OperandSpec> out{vector(Role::d, f, Operand::d), input_vector(Role::a, f, Operand::a), input_vector(Role::b, f, Operand::b),
                               vector(Role::c, f, Operand::c)};
  if (f.sparsity != Sparsity::dense) {
    out.push_back(register_operand(Role::metadata, b32));
    out.push_back(immediate(Role::selector, 0, selectors(f) - 1));
  }
  return out;
}

std::vector<OperandSpec> mma_operands(const Mma& row, const Form& f) {
  std::vector<OperandSpec> out = product_operands(f);
  if (f.block_scale) {
    out.push_back(register_operand(Role::scale_a, b32));
    out.push_back(select_pair(Role::select_a, row.scale_vec));
    out.push_back(register_operand(Role::scale_b, b32));
    out.push_back(select_pair(Role::select_b, row.scale_vec));
  }
  return out;
}

std::vector<OperandSpec> wgmma_operands(const Wgmma& row, const Form& f) {
  std::vector<OperandSpec> out{vector(Role::d, f, Operand::d)};
  out.push_back(f.a_in_registers ? input_vector(Role::a, f, Operand::a) : register_operand(Role::a_descriptor, b64));
  out.push_back(register_operand(Role::b_descriptor, b64));
  if (f.sparsity != Sparsity::dense) {
    out.push_back(register_operand(Role::metadata, b32));
    out.push_back(immediate(Role::selector, 0, selectors(f) - 1));
  }
  out.push_back(register_operand(Role::scale_d, Type::pred));
  if (row.floating) {
    out.push_back(immediate(Role::imm_scale_a, -1, 1));
    out.push_back(immediate(Role::imm_scale_b, -1, 1));
  }
  if (row.majors) {
    out.push_back(immediate(Role::imm_trans_a, 0, 1));
    if (!f.a_in_registers) out.push_back(immediate(Role::imm_trans_b, 0, 1));
  }
  return out;
}

Since shared_cta(Since since, const Form& f) {
  if (f.space == Space::shared_cta) since.ptx = std::max(since.ptx, cta_since);
  return since;
}

// ---- Writing forms out.

constexpr Major both_majors[] = {Major::row, Major::col};
constexpr Rounding all_roundings[] = {Rounding::none, Rounding::rn, Rounding::rz, Rounding::rm, Rounding::rp};

template <typename F>
void each_type(TypeSet set, F use) {
  for (const TypeInfo& row : type_table)
    if (set.has(row.type)) use(row.type);
}

template <typename F>
void each_major_pair(bool any, F use) {
  for (const Major a : both_majors)
    for (const Major b : both_majors)
      if (any || (a == Major::row && b == Major::col)) use(a, b);
}

void write_moves(std::vector<Form>& out) {
  for (const MatrixMove& row : matrix_moves)
    each_type(row.from, [&](Type from) {
      for (const int count : {0, 1, 2, 4})
        for (const bool trans : {false, true})
          for (const Space space : {Space::none, Space::shared, Space::shared_cta}) {
            Form f{.opcode = row.opcode, .shape = row.shape, .d = row.format, .a = from};
            f.count = static_cast<std::uint8_t>(count), f.trans = trans, f.space = space;
            if (accepts(row, f)) out.push_back(f);
          }
    });
}

void write_wmma_moves(std::vector<Form>& out, Opcode opcode, Operand operand) {
  const bool input = operand == Operand::a || operand == Operand::b;
  for (const Wmma& row : wmmas)
    each_type(input ? row.ab : row.cd, [&](Type type) {
      for (const Major major : both_majors)
        for (const Space space : {Space::none, Space::global, Space::shared, Space::shared_cta})
          for (const bool with_stride : {false, true}) {
            Form f{.opcode = opcode, .operand = operand, .shape = row.shape, .a_major = major, .d = type};
            f.space = space, f.stride = with_stride;
            // Several products share a C fragment: the first row that has it writes it.
            if (accepts_load(row, f) && wmma(f) == &row) out.push_back(f);
          }
    });
}

void write_wmma_products(std::vector<Form>& out) {
  for (const Wmma& row : wmmas)
    each_major_pair(row.any_major, [&](Major a, Major b) {
      each_type(row.ab, [&](Type ab) {
        each_type(row.cd, [&](Type d) {
          each_type(row.cd, [&](Type c) {
            for (const bool saturate : {false, true})
              for (const Rounding rounding : all_roundings) {
                Form f{.opcode = Opcode::wmma_mma, .shape = row.shape, .a_major = a, .b_major = b, .d = d, .a = ab, .b = ab, .c = c};
                f.bit_op = row.bit_op, f.satfinite = saturate, f.rounding = rounding;
                if (accepts_product(row, f)) out.push_back(f);
              }
          });
        });
      });
    });
}

// Calls use(form) for each spelling that differs in sparsity, scale_vec, satfinite and rounding.
template <typename F>
void each_option(const Mma& row, Form f, F use) {
  for (const Sparsity sparsity : {Sparsity::dense, Sparsity::sp, Sparsity::sp_ordered_metadata})
    for (const int vec : {0, 1, 2, 4})
      for (const bool saturate : {false, true})
        for (const Rounding rounding : all_roundings) {
          f.sparsity = sparsity, f.scale_vec = static_cast<std::uint8_t>(vec), f.satfinite = saturate, f.rounding = rounding;
          if (accepts(row, f)) use(f);
        }
}

void write_mmas(std::vector<Form>& out) {
  for (const Mma& row : mmas)
    each_major_pair(row.options & any_major, [&](Major a_major, Major b_major) {
      each_type(row.a, [&](Type a) {
        each_type(row.b, [&](Type b) {
          Form f{.opcode = Opcode::mma, .shape = row.shape, .a_major = a_major, .b_major = b_major, .d = row.d, .a = a, .b = b, .c = row.c};
          f.kind = row.kind, f.bit_op = row.bit_op, f.block_scale = row.scale_vec != 0, f.scale_type = row.scale_type;
          each_option(row, f, [&](const Form& form) { out.push_back(form); });
        });
      });
    });
}

// ---- Nearness.

int distance(const Form& x, const Form& y) {
  int out = 0;
  const auto differ = [&](bool different, int weight) { out += different ? weight : 0; };
  differ(x.operand != y.operand, 4);
  differ(!(x.shape == y.shape), 2);
  differ(x.a_major != y.a_major, 1);
  differ(x.b_major != y.b_major, 1);
  differ(x.d != y.d, 2);
  differ(x.a != y.a, 3);
  differ(x.b != y.b, 3);
  differ(x.c != y.c, 2);
  differ(x.count != y.count, 1);
  differ(x.trans != y.trans, 1);
  differ(x.space != y.space, 1);
  differ(x.stride != y.stride, 1);
  differ(x.a_in_registers != y.a_in_registers, 1);
  differ(x.satfinite != y.satfinite, 1);
  differ(x.rounding != y.rounding, 1);
  differ(x.bit_op != y.bit_op, 1);
  differ(x.sparsity != y.sparsity, x.sparsity == Sparsity::dense || y.sparsity == Sparsity::dense ? 4 : 1);
  differ(x.kind != y.kind, 2);
  differ(x.block_scale != y.block_scale, 2);
  differ(x.scale_vec != y.scale_vec, 1);
  differ(x.scale_type != y.scale_type, 1);
  return out;
}

}  // namespace

const OperandSpec* Instruction::operand(Role role) const {
  for (const OperandSpec& spec : operands)
    if (spec.role == role) return &spec;
  return nullptr;
}

const MatrixMove* matrix_move(const Form& form) {
  return first_row(matrix_moves, [&](const MatrixMove& row) { return accepts(row, form); });
}

const Wmma* wmma(const Form& form) {
  switch (form.opcode) {
    case Opcode::wmma_mma: return first_row(wmmas, [&](const Wmma& row) { return accepts_product(row, form); });
    case Opcode::wmma_load:
      if (form.operand == Operand::none || form.operand == Operand::d) return nullptr;
      return first_row(wmmas, [&](const Wmma& row) { return accepts_load(row, form); });
    case Opcode::wmma_store:
      if (form.operand != Operand::d) return nullptr;
      return first_row(wmmas, [&](const Wmma& row) { return accepts_load(row, form); });
    default: return nullptr;
  }
}

const Mma* mma(const Form& form) {
  if (form.opcode != Opcode::mma) return nullptr;
  return first_row(mmas, [&](const Mma& row) { return accepts(row, form); });
}

const Wgmma* wgmma(const Form& form) {
  if (form.opcode != Opcode::wgmma) return nullptr;
  return first_row(wgmmas, [&](const Wgmma& row) { return accepts(row, form); });
}

std::optional<Instruction> find(const Form& form) {
  if (!form.aligned) return std::nullopt;
  if (const MatrixMove* row = matrix_move(form)) return Instruction{form, shared_cta(row->since, form), move_operands(*row, form)};
  if (const Wmma* row = wmma(form)) {
    if (form.opcode == Opcode::wmma_mma) return Instruction{form, row->since, product_operands(form)};
    return Instruction{form, shared_cta(row->since, form), wmma_move_operands(form)};
  }
  if (const Mma* row = mma(form)) {
    Since since = row->since;
    if (form.sparsity == Sparsity::sp) since.ptx = row->plain_sp;
    return Instruction{form, since, mma_operands(*row, form)};
  }
  if (const Wgmma* row = wgmma(form)) {
    Since since = row->since;
    if (form.sparsity == Sparsity::sp) since.ptx = std::max(since.ptx, row->sparse);
    return Instruction{form, since, wgmma_operands(*row, form)};
  }
  return std::nullopt;
}

std::vector<Form> forms() {
  std::vector<Form> out;
  write_moves(out);
  for (const Operand operand : {Operand::a, Operand::b, Operand::c}) write_wmma_moves(out, Opcode::wmma_load, operand);
  write_wmma_moves(out, Opcode::wmma_store, Operand::d);
  write_wmma_products(out);
  write_mmas(out);
  return out;
}

std::vector<Form> wgmma_forms() {
  std::vector<Form> out;
  for (const Wgmma& row : wgmmas)
    each_type(row.a, [&](Type a) {
      each_type(row.b, [&](Type b) {
        for (const Sparsity sparsity : {Sparsity::dense, Sparsity::sp})
          for (const bool saturate : {false, true})
            for (const bool in_registers : {false, true})
              for (int n = 8; n <= 256; n += 8) {
                Form f{.opcode = Opcode::wgmma, .d = row.d, .a = a, .b = b, .c = row.d};
                f.shape = {64, static_cast<std::int16_t>(n), static_cast<std::int16_t>(sparsity == Sparsity::dense ? row.k : 2 * row.k)};
                f.sparsity = sparsity, f.satfinite = saturate, f.bit_op = row.bit_op, f.a_in_registers = in_registers;
                if (accepts(row, f)) out.push_back(f);
              }
      });
    });
  return out;
}

std::string operands_text(const Instruction& instruction) {
  std::string out;
  for (const OperandSpec& spec : instruction.operands) {
    if (!out.empty()) out += "; ";
    switch (spec.kind) {
      case OperandKind::Vector: out += fmt::format("{}={}x.{}", name(spec.role), spec.count, name(spec.type)); break;
      case OperandKind::Register: out += fmt::format("{}=.{}", name(spec.role), name(spec.type)); break;
      case OperandKind::Address: out += fmt::format("{}=[.u32|.u64]", name(spec.role)); break;
      case OperandKind::Immediate: out += fmt::format("{}=imm", name(spec.role)); break;
      case OperandKind::Pair: out += fmt::format("{}={{.u16|imm,.u16|imm}}", name(spec.role)); break;
    }
  }
  return out;
}

std::optional<Form> nearest(const Form& form, const Target& target) {
  static const std::vector<Form> warp = forms(), warpgroup = wgmma_forms();
  const std::vector<Form>& all = form.opcode == Opcode::wgmma ? warpgroup : warp;
  std::optional<Form> best;
  int best_distance = 12;  // further away is no help
  for (const Form& candidate : all) {
    if (candidate.opcode != form.opcode) continue;
    const int away = distance(form, candidate);
    if (away >= best_distance || !find(candidate)->since.has(target)) continue;
    best = candidate;
    best_distance = away;
  }
  return best;
}

Arch oldest(const Since& since) {
  for (const ArchRow& row : archs)
    if (since.has(row.arch)) return row.arch;
  return {};
}

}  // namespace tartan::isa
