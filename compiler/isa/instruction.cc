// SPDX-License-Identifier: Apache-2.0
#include "tartan/isa/instruction.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/isa/acceptance.h"
#include "compiler/isa/hints.h"
#include "compiler/isa/tables.h"
#include "tartan/isa/fragment.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr Version cta_since{7, 8};  // the ::cta suffix of .shared

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
  return {.role = role,
          .kind = OperandKind::Vector,
          .type = register_type(frag.type),
          .count = frag.registers};
}

// A and B in f32-sized registers are tf32: .b32 registers.
OperandSpec input_vector(Role role, const Form& form, Operand operand) {
  OperandSpec spec = vector(role, form, operand);
  if (spec.type == f32) spec.type = b32;
  return spec;
}

OperandSpec register_operand(Role role, Type type) {
  return {.role = role, .kind = OperandKind::Register, .type = type};
}

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
  if (f.opcode == Opcode::movmatrix)
    return {register_operand(Role::d, b32), register_operand(Role::a, b32)};
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
  std::vector<OperandSpec> out{vector(Role::d, f, Operand::d), input_vector(Role::a, f, Operand::a),
                               input_vector(Role::b, f, Operand::b),
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
  out.push_back(f.a_in_registers ? input_vector(Role::a, f, Operand::a)
                                 : register_operand(Role::a_descriptor, b64));
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
  if (f.space == StateSpace::shared_cta) since.ptx = std::max(since.ptx, cta_since);
  return since;
}

// ---- Enumerating forms.

constexpr Major both_majors[] = {Major::row, Major::col};
constexpr Rounding all_roundings[] = {Rounding::none, Rounding::rn, Rounding::rz, Rounding::rm,
                                      Rounding::rp};

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
          for (const StateSpace space :
               {StateSpace::none, StateSpace::shared, StateSpace::shared_cta}) {
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
        for (const StateSpace space :
             {StateSpace::none, StateSpace::global, StateSpace::shared, StateSpace::shared_cta})
          for (const bool with_stride : {false, true}) {
            Form f{.opcode = opcode,
                   .operand = operand,
                   .shape = row.shape,
                   .a_major = major,
                   .d = type};
            f.space = space, f.stride = with_stride;
            // Several products share a C fragment: only the first row that has it adds it.
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
                Form f{.opcode = Opcode::wmma_mma,
                       .shape = row.shape,
                       .a_major = a,
                       .b_major = b,
                       .d = d,
                       .a = ab,
                       .b = ab,
                       .c = c};
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
          f.sparsity = sparsity, f.scale_vec = static_cast<std::uint8_t>(vec),
          f.satfinite = saturate, f.rounding = rounding;
          if (accepts(row, f)) use(f);
        }
}

void write_mmas(std::vector<Form>& out) {
  for (const Mma& row : mmas)
    each_major_pair(row.options & any_major, [&](Major a_major, Major b_major) {
      each_type(row.a, [&](Type a) {
        each_type(row.b, [&](Type b) {
          Form f{.opcode = Opcode::mma,
                 .shape = row.shape,
                 .a_major = a_major,
                 .b_major = b_major,
                 .d = row.d,
                 .a = a,
                 .b = b,
                 .c = row.c};
          f.kind = row.kind, f.bit_op = row.bit_op, f.block_scale = row.scale_vec != 0,
          f.scale_type = row.scale_type;
          each_option(row, f, [&](const Form& form) { out.push_back(form); });
        });
      });
    });
}

// ---- Nearest forms.

int distance(const Form& x, const Form& y) {
  int out = 0;
  const auto differ = [&](bool different, int weight) { out += different ? weight : 0; };
  differ(x.operand != y.operand, 4);
  differ(x.shape.m != y.shape.m, 1);
  differ(x.shape.n != y.shape.n, 1);
  differ(x.shape.k != y.shape.k, 1);
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
  differ(x.sparsity != y.sparsity,
         x.sparsity == Sparsity::dense || y.sparsity == Sparsity::dense ? 4 : 1);
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

std::span<const MatrixMove> matrix_move_rows() { return matrix_moves; }
std::span<const Wmma> wmma_rows() { return wmmas; }
std::span<const Mma> mma_rows() { return mmas; }
std::span<const Wgmma> wgmma_rows() { return wgmmas; }

const MatrixMove* matrix_move(const Form& form) {
  return first_row(matrix_moves, [&](const MatrixMove& row) { return accepts(row, form); });
}

const Wmma* wmma(const Form& form) {
  switch (form.opcode) {
    case Opcode::wmma_mma:
      return first_row(wmmas, [&](const Wmma& row) { return accepts_product(row, form); });
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
  if (const MatrixMove* row = matrix_move(form))
    return Instruction{form, shared_cta(row->since, form), move_operands(*row, form)};
  if (const Wmma* row = wmma(form)) {
    if (form.opcode == Opcode::wmma_mma)
      return Instruction{form, row->since, product_operands(form)};
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

std::optional<Instruction> find_legacy(const Form& form) {
  Form modern = form;
  modern.aligned = true;
  modern.satfinite = false;
  const Wmma* row = wmma(modern);
  if (!row || row->unaligned == Version{} || (form.aligned && !form.satfinite)) return std::nullopt;
  if (form.satfinite && form.opcode != Opcode::wmma_mma) return std::nullopt;
  auto found = find(modern);
  found->form = form;
  if (form.aligned) found->since.last = {6, 4};
  else found->since.ptx = row->unaligned, found->since.last = {6, 2};
  // .shared::cta came much later.
  if (!found->since.has(found->since.ptx) || form.space == StateSpace::shared_cta)
    return std::nullopt;
  return found;
}

std::vector<Form> forms() {
  std::vector<Form> out;
  write_moves(out);
  for (const Operand operand : {Operand::a, Operand::b, Operand::c})
    write_wmma_moves(out, Opcode::wmma_load, operand);
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
                f.shape = {
                    64, static_cast<std::int16_t>(n),
                    static_cast<std::int16_t>(sparsity == Sparsity::dense ? row.k : 2 * row.k)};
                f.sparsity = sparsity, f.satfinite = saturate, f.bit_op = row.bit_op,
                f.a_in_registers = in_registers;
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
  struct Candidate {
    Form form;
    Since since;
  };
  const auto listed = [](const std::vector<Form>& forms) {
    std::vector<Candidate> out;
    out.reserve(forms.size());
    for (const Form& each : forms) out.push_back({each, find(each)->since});
    return out;
  };
  static const std::vector<Candidate> warp = listed(forms()), warpgroup = listed(wgmma_forms());
  std::optional<Form> best;
  int best_distance = 12;  // forms further away do not help
  for (const Candidate& candidate : form.opcode == Opcode::wgmma ? warpgroup : warp) {
    if (candidate.form.opcode != form.opcode || !candidate.since.has(target)) continue;
    const int away = distance(form, candidate.form);
    if (away >= best_distance) continue;
    best = candidate.form;
    best_distance = away;
  }
  return best;
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
