// SPDX-License-Identifier: Apache-2.0
// Forms that NVIDIA's assembler accepts beyond the manual, as rows of the same tables (measured
// with the assembler of CUDA 13.0).
#include <algorithm>

#include "compiler/isa/acceptance.h"
#include "compiler/isa/tables.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

// clang-format off
// stmatrix with a type of memory.
constexpr MatrixMove moves[] = {
    {Opcode::stmatrix, {16, 8}, Type::b8,    Type::b6x16_p32, 1 + 2 + 4, Trans::Always, 1, {{8, 6}, 100, Reach::Family}},
    {Opcode::stmatrix, {16, 8}, Type::b8x16, Type::b8,        1 + 2 + 4, Trans::Always, 1, {{8, 6}, 100, Reach::Family}},
};

constexpr TypeSet four_bits{Type::s4, Type::u4};

// Products without loads or stores; four-bit ones until sm_89.
constexpr Wmma products[] = {
    {{16, 16, 16}, f64, f64, true, false, true, BitOp::none, {{7, 0}, 80}},
    {{16, 16, 8},  f64, f64, true, false, true, BitOp::none, {{7, 0}, 80}},
    {{16, 16, 16}, four_bits, s32, true, true, false, BitOp::none, {.ptx = {6, 3}, .sm = 75, .last_sm = 89}},
    {{32, 8, 16},  four_bits, s32, true, true, false, BitOp::none, {.ptx = {6, 3}, .sm = 75, .last_sm = 89}},
    {{8, 32, 16},  four_bits, s32, true, true, false, BitOp::none, {.ptx = {6, 3}, .sm = 75, .last_sm = 89}},
    {{16, 16, 8},  four_bits, s32, true, true, false, BitOp::none, {.ptx = {7, 0}, .sm = 80, .last_sm = 89}},
    {{8, 8, 4},    four_bits, s32, true, true, false, BitOp::none, {.ptx = {7, 0}, .sm = 80, .last_sm = 89}},
};

// Accumulators of the integer shapes as f32.
constexpr Wmma accumulators[] = {
    {{8, 8, 32},  {}, f32, false, false, false, BitOp::none, {{6, 3}, 75}},
    {{8, 8, 128}, {}, f32, false, false, false, BitOp::none, {{6, 3}, 75}},
};

// bf16 and tf32 in the quad-pair shape; f8f6f4 in half its shape; the block-scaled kinds without .block_scale, which then mean f8f6f4.
constexpr Mma mma_rows[] = {
    {.shape = {8, 8, 4},   .d = f32, .a = bf16, .b = bf16, .c = f32, .options = any_major, .since = {{7, 0}, 80}},
    {.shape = {8, 8, 4},   .d = f32, .a = tf32, .b = tf32, .c = f32, .options = any_major, .since = {{7, 0}, 80}},
    {.shape = {16, 8, 16}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::f8f6f4,   .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::f8f6f4,   .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf8f6f4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf8f6f4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf4,     .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf4,     .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf4nvf4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 16}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf4nvf4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf8f6f4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf8f6f4, .since = {{8, 6}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf4,     .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf4,     .since = {{8, 6}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf4nvf4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 32}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf4nvf4, .since = {{8, 7}, 100, Reach::Family}},
    {.shape = {16, 8, 64}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf8f6f4, .since = {{8, 7}, 120, Reach::Family},   .sparse = true},
    {.shape = {16, 8, 64}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf8f6f4, .since = {{8, 6}, 100, Reach::Family},   .sparse = true},
    {.shape = {16, 8, 64}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf4,     .since = {{8, 7}, 120, Reach::ArchOnly}, .sparse = true},
    {.shape = {16, 8, 64}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf4,     .since = {{8, 6}, 100, Reach::ArchOnly}, .sparse = true},
    {.shape = {16, 8, 64}, .d = f16, .a = fp8, .b = fp8, .c = f16, .options = plain, .kind = Kind::mxf4nvf4, .since = {{8, 7}, 120, Reach::ArchOnly}, .sparse = true},
    {.shape = {16, 8, 64}, .d = f32, .a = fp8, .b = fp8, .c = f32, .options = plain, .kind = Kind::mxf4nvf4, .since = {{8, 7}, 100, Reach::ArchOnly}, .sparse = true},
};
// clang-format on

constexpr OperandSpec address{.role = Role::address, .kind = OperandKind::Address};

// `elements` values of `type` over the 32 lanes; at least one register.
OperandSpec vector(Role role, Type type, int elements) {
  const Type registers =
      type == f64 || ((role == Role::c || role == Role::d) && type == f32) ? type : b32;
  return {.role = role,
          .kind = OperandKind::Vector,
          .type = registers,
          .count = std::max(1, elements * bits(type) / bits(registers) / 32)};
}

std::vector<OperandSpec> product(const Form& f) {
  const int copies =
      f.opcode == Opcode::mma && f.shape.k == 4 ? 4 : 1;  // the quad-pair shape holds four products
  const int m = f.shape.m * copies, n = f.shape.n, k = f.shape.k;
  const bool sparse = f.sparsity != Sparsity::dense;
  std::vector<OperandSpec> out{vector(Role::d, f.d, m * n),
                               vector(Role::a, f.a, sparse ? m * k / 2 : m * k),
                               vector(Role::b, f.b, n * copies * k), vector(Role::c, f.c, m * n)};
  if (sparse) {
    out.push_back({.role = Role::metadata, .kind = OperandKind::Register, .type = b32});
    out.push_back({.role = Role::selector, .kind = OperandKind::Immediate});
  }
  return out;
}

std::optional<Instruction> find_move(const Form& form) {
  Form documented = form;
  if (form.count == 8) documented.count = 1;
  const MatrixMove* row = matrix_move(documented);
  for (const MatrixMove& other : moves)
    if (accepts(other, documented)) row = &other;
  if (!row || form.opcode == Opcode::movmatrix) return std::nullopt;
  const int count = form.count == 8 ? 0 : form.count * row->registers;
  const OperandSpec data{.role = form.opcode == Opcode::ldmatrix ? Role::d : Role::c,
                         .kind = OperandKind::Vector,
                         .type = b32,
                         .count = count};
  if (form.opcode == Opcode::ldmatrix) return Instruction{form, row->since, {data, address}};
  return Instruction{form, row->since, {address, data}};
}

std::optional<Instruction> find_wmma(const Form& form) {
  if (form.opcode == Opcode::wmma_mma) {
    for (const Wmma& row : products)
      if (accepts_product(row, form)) return Instruction{form, row.since, product(form)};
    return std::nullopt;
  }
  const bool load = form.opcode == Opcode::wmma_load;
  if (form.operand != (load ? Operand::c : Operand::d)) return std::nullopt;
  for (const Wmma& row : accumulators) {
    if (!accepts_load(row, form)) continue;
    const OperandSpec data = vector(load ? Role::d : Role::c, form.d, row.shape.m * row.shape.n);
    std::vector<OperandSpec> operands =
        load ? std::vector{data, address} : std::vector{address, data};
    if (form.stride)
      operands.push_back({.role = Role::stride, .kind = OperandKind::Register, .type = b32});
    return Instruction{form, row.since, std::move(operands)};
  }
  return std::nullopt;
}

std::optional<Instruction> find_mma(const Form& form) {
  for (const Mma& row : mma_rows)
    if (accepts(row, form)) return Instruction{form, row.since, product(form)};
  // Integer products on four bits accept the bit operation of one-bit products.
  Form plain_form = form;
  plain_form.bit_op = BitOp::none;
  const Mma* row = mma(plain_form);
  if (!row || !row->a.has(Type::s4) || row->sparse || form.satfinite || form.bit_op == BitOp::none)
    return std::nullopt;
  auto found = find(plain_form);
  found->form = form;
  return found;
}

}  // namespace

std::optional<Instruction> find_undocumented(const Form& form) {
  if (!form.aligned) return std::nullopt;
  std::optional<Instruction> found;
  switch (form.opcode) {
    case Opcode::ldmatrix:
    case Opcode::stmatrix: found = find_move(form); break;
    case Opcode::wmma_load:
    case Opcode::wmma_store:
    case Opcode::wmma_mma: found = find_wmma(form); break;
    case Opcode::mma: found = find_mma(form); break;
    default: break;
  }
  if (found && form.space == StateSpace::shared_cta)
    found->since.ptx = std::max(found->since.ptx, Version{7, 8});
  return found;
}

}  // namespace tartan::TARTAN_ABI::isa
