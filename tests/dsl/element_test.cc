// SPDX-License-Identifier: Apache-2.0
// Typed fragments, element by element: every product of the tables, with its operands packed as
// place() says, on the emulator, against a naive loop over small integers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <set>
#include <tuple>

#include "tests/support/engine.h"

#include "tartan/isa/instruction.h"

namespace tartan {
namespace {

using isa::Form;

// A small integer as bits, for types below 16 bits; unchanged for all others.
int encoded(Type type, int value) {
  struct Code {
    Type type;
    int one, two, sign;
  };
  constexpr Code codes[] = {{Type::e2m1, 0x2, 0x4, 0x8},
                            {Type::e2m3, 0x8, 0x10, 0x20},
                            {Type::e3m2, 0xC, 0x10, 0x20},
                            {Type::e4m3, 0x38, 0x40, 0x80},
                            {Type::e5m2, 0x3C, 0x40, 0x80}};
  for (const Code& code : codes)
    if (code.type == type)
      return (value < 0 ? code.sign : 0) | (std::abs(value) == 2 ? code.two : value ? code.one : 0);
  return value;
}

int small_value(Type type, unsigned& state) {
  state = state * 1664525 + 1013904223;
  const int value = static_cast<int>(state >> 30);
  if (type == Type::b1) return value & 1;
  return value == 3 && info(type).is_signed  ? -1
         : value == 3 && info(type).floating ? -1
                                             : value % 3;
}

struct Matrix {
  Type type;
  int matrices, rows, cols;
  std::vector<int> values;
  int at(int matrix, int row, int col) const {
    return values[static_cast<std::size_t>((matrix * rows + row) * cols + col)];
  }
};

Matrix small_matrix(const FragmentKind& kind, unsigned seed) {
  const isa::Fragment fragment = kind.fragment();
  Matrix out{kind.type, fragment.matrices, fragment.rows, fragment.cols, {}};
  for (int i = 0; i < out.matrices * out.rows * out.cols; ++i)
    out.values.push_back(small_value(kind.type, seed));
  return out;
}

struct Product {
  Form form;
  FragmentKind a, b, c, d;
  MmaOptions options;
};

Product product_of(const Form& f) {
  const MmaShape shape{f.shape, f.opcode == isa::Opcode::wmma_mma,
                       f.sparsity != isa::Sparsity::dense, f.kind};
  MmaOptions options{.d = f.d,
                     .satfinite = f.satfinite,
                     .rounding = f.rounding,
                     .bit_op = f.bit_op,
                     .sparsity = f.sparsity};
  // Every code keeps the first two of its elements (the first one where it covers two).
  if (shape.sparse) options.metadata = 0x44444444;
  options.scale_type = f.scale_type, options.scale_vec = f.scale_vec;
  const BlockScale ones{f.scale_type == Type::ue8m0 ? 0x7F7F7F7F : 0x38383838};
  if (f.block_scale) options.a_scale = options.b_scale = ones;
  return {f,
          operand_a(shape, f.a, f.a_major),
          operand_b(shape, f.b, f.b_major),
          operand_c(shape, f.c),
          operand_c(shape, f.d),
          options};
}

// The dense column of element `col` of a sparse A with that metadata.
int dense_column(const Product& product, int col) {
  if (!product.a.shape.sparse) return col;
  const int kept = product.form.shape.k / isa::codes_per_row(product.form) / 2;
  return col / kept * 2 * kept + col % kept;
}

std::vector<int> naive(const Product& product, const Matrix& a, const Matrix& b, const Matrix& c) {
  std::vector<int> out = c.values;
  for (int matrix = 0; matrix < c.matrices; ++matrix)
    for (int row = 0; row < c.rows; ++row)
      for (int col = 0; col < c.cols; ++col)
        for (int k = 0; k < a.cols; ++k) {
          const int x = a.at(matrix, row, k), y = b.at(matrix, dense_column(product, k), col);
          out[static_cast<std::size_t>((matrix * c.rows + row) * c.cols + col)] +=
              product.form.bit_op == isa::BitOp::xor_popc ? x ^ y : x * y;
        }
  return out;
}

Fragment gather(Builder& k, const FragmentKind& kind, const Global& from) {
  const isa::Fragment fragment = kind.fragment();
  const TypeSet floats{f16, bf16, f32, f64, tf32};
  std::vector<Scalar> elements;
  for (int i = 0; i < fragment.elements() / fragment.copies; ++i) {
    const ElementPlace at = k.place(kind, i);
    const Scalar value = k.read(from, at.matrix * fragment.rows + at.row, at.col);
    elements.push_back(floats.has(kind.type) ? k.convert(value, kind.type == tf32 ? f32 : kind.type)
                                             : value);
  }
  return k.pack(kind, elements);
}

Kernel multiply(const Product& product) {
  return kernel("multiply", {.block = 32}, [product](Builder& k) {
    const auto buffer = [&](const char* name, const FragmentKind& kind) {
      const isa::Fragment f = kind.fragment();
      return k.global(name, s32, row_major(f.matrices * f.rows, f.cols));
    };
    const Global a = buffer("a", product.a), b = buffer("b", product.b), c = buffer("c", product.c),
                 d = buffer("d", product.d);
    const Fragment result = k.mma(gather(k, product.a, a), gather(k, product.b, b),
                                  gather(k, product.c, c), product.options);
    const auto elements = k.elements(result);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const ElementPlace at = k.place(product.d, static_cast<int>(i));
      k.write(d, at.matrix * product.d.fragment().rows + at.row, at.col,
              k.convert(elements[i], s32));
    }
  });
}

Buffer filled(Device& device, const Matrix& matrix) {
  std::vector<int> words;
  for (const int value : matrix.values) words.push_back(encoded(matrix.type, value));
  Buffer out = *device.allocate(words.size() * 4);
  EXPECT_TRUE(out.write(std::as_bytes(std::span(words))));
  return out;
}

std::vector<int> run(Device& device, const Compiled& compiled, const Matrix& a, const Matrix& b,
                     const Matrix& c) {
  std::vector<int> out(c.values.size());
  Buffer buffers[] = {filled(device, a), filled(device, b), filled(device, c),
                      *device.allocate(out.size() * 4)};
  Arguments arguments;
  for (Buffer& buffer : buffers) arguments.add(buffer);
  auto module = device.load(compiled.ptx, compiled.name);
  EXPECT_TRUE(module) << (module ? "" : module.diags().text());
  if (!module) return {};
  auto loaded = module->kernel(compiled.name);
  EXPECT_TRUE(loaded) << (loaded ? "" : loaded.diags().text());
  if (!loaded) return {};
  EXPECT_TRUE(loaded->launch({.grid = {1}, .block = {32}}, arguments));
  const auto status = device.synchronize();
  EXPECT_TRUE(status) << (status ? "" : status.diags().text());
  EXPECT_TRUE(buffers[3].read(std::as_writable_bytes(std::span(out))));
  return out;
}

Target newest_target(const Since& since) {
  for (auto row = std::rbegin(archs); row != std::rend(archs); ++row)
    if (since.has(row->arch)) return {row->arch, newest_version};
  return {};
}

TEST(DslElement, EveryProductFromPackedElements) {
  auto device = test::open_engine();
  int products = 0, scaled = 0;
  for (const Form& form : isa::forms()) {
    if (form.opcode != isa::Opcode::mma && form.opcode != isa::Opcode::wmma_mma) continue;
    SCOPED_TRACE(isa::spell(form));
    const Product product = product_of(form);
    const Matrix a = small_matrix(product.a, 1), b = small_matrix(product.b, 2),
                 c = small_matrix(product.c, 3);
    const Target target = newest_target(isa::find(form)->since);
    ++products;
    scaled += form.block_scale;
    if (!test::engine_runs(target)) continue;
    const auto compiled = compile(multiply(product), target);
    ASSERT_TRUE(compiled) << compiled.diags().text();
    EXPECT_EQ(run(device, *compiled, a, b, c), naive(product, a, b, c));
  }
  EXPECT_EQ(products, 550);
  EXPECT_EQ(scaled, 110);
}

// ---- Diagnostics for wrong fragments.

std::string complaints(std::function<void(Builder&)> body, const char* target = "sm_90") {
  const auto compiled =
      compile(kernel("wrong", {.block = 32}, std::move(body)), *Target::parse(target));
  std::string out;
  if (compiled) return "compiled";
  for (const Diag& diag : compiled.diags()) out += fmt::format("{} [{}]\n", diag.message, diag.id);
  return out;
}

TEST(DslElement, WrongFragments) {
  EXPECT_EQ(complaints([](Builder& k) {
              k.fragment(operand_a(m16n8k16, f16), std::vector<Scalar>(3));
              k.pack(operand_c(m16n8k32, s32), std::vector<Scalar>(5));
              k.variable(operand_c(m16n8k32, Type::s4));
              k.place(operand_a(m16n8k8, f16), 4);
              k.pack(operand_b(m8n8k128, Type::b1), std::vector<Scalar>(32, k.param("x", f64)));
            }),
            "wrong number of values: A of m16n8k16 (f16) has 4 registers in each lane, found 3 "
            "[operand-count]\nwrong number of values: C of m16n8k32 (s32) has 4 elements in each "
            "lane, found 5 [operand-count]\nno such fragment: C of m16n8k32 (s4) "
            "[fragment-mismatch]\nelement index 4 is out of bounds of A of m16n8k8 (f16) "
            "[fragment-mismatch]\nwrong register size: an element of the fragment has 32 bits "
            "(u32), found a value of type f64 [scalar-type]\n");
}

TEST(DslElement, WrongOptions) {
  const auto fill = [](Builder& k, const FragmentKind& kind) {
    return k.fragment(kind,
                      std::vector<Scalar>(static_cast<std::size_t>(kind.fragment().registers)));
  };
  const std::string form = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32";
  const std::string text = complaints([&](Builder& k) {
    const MmaShape shape = sparse(m16n8k32);
    const Fragment a = fill(k, operand_a(shape, f16)), b = fill(k, operand_b(shape, f16));
    std::ignore = k.mma(a, b, zero(f32));
    std::ignore = k.mma(a, b, zero(f32), {.metadata = 0x44444444, .selector = 2});
    std::ignore = k.mma(a, b, zero(f32), {.d = f16, .metadata = 0x44444444});
    std::ignore = k.mma(fill(k, operand_a(m16n8k16, f16)), fill(k, operand_b(m16n8k16, f16)),
                        zero(f32), {.metadata = 1});
  });
  EXPECT_NE(text.find("metadata is missing: " + form + " takes"), std::string::npos) << text;
  EXPECT_NE(text.find("operand selector of " + form +
                      ": expected a constant from 0 to 1, found the constant 2 [scalar-type]"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("unknown instruction mma.sp"), std::string::npos) << text;
  EXPECT_NE(text.find("metadata is unexpected: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
            std::string::npos)
      << text;

  const std::string scaled = complaints(
      [&](Builder& k) {
        const MmaShape shape = of_kind(m16n8k32, isa::Kind::mxf8f6f4);
        const Fragment a = fill(k, operand_a(shape, Type::e2m3)),
                       b = fill(k, operand_b(shape, Type::e2m1));
        std::ignore = k.mma(a, b, zero(f32),
                            {.scale_type = Type::ue8m0, .a_scale = BlockScale{k.lane(), 4, 0}});
        std::ignore = k.mma(a, b, zero(f32),
                            {.scale_type = Type::ue8m0,
                             .a_scale = BlockScale{k.lane(), 3, 2},
                             .b_scale = BlockScale{k.lane(), 3, 3}});
      },
      "sm_120a");
  EXPECT_NE(scaled.find("expected a byte-id from 0 to 3 in steps of 1, found the constant 4"),
            std::string::npos)
      << scaled;
  EXPECT_NE(scaled.find("b_scale is missing: mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4"),
            std::string::npos)
      << scaled;
  EXPECT_NE(scaled.find("expected a thread-id from 0 to 1, found the constant 2"),
            std::string::npos)
      << scaled;
}

TEST(DslElement, MemoryOfTheWrongSpace) {
  EXPECT_EQ(complaints([](Builder& k) {
              auto g = k.global("g", f32, row_major(16, 16));
              auto s = k.shared("s", f32, row_major(16, 16));
              k.instruction("wmma.load.c.sync.aligned.row.m16n16k16.shared.f32", g, 0, 0, {16});
              k.instruction("wmma.load.c.sync.aligned.row.m16n16k16.global.f32", s, 0, 0, {});
              k.instruction("movmatrix.sync.aligned.m8n8.trans.b16", s, 0, 0, {1});
            }),
            "wrong state space: wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 addresses shared "
            "memory, the pointer is to global memory [layout-mismatch]\nwrong state space: "
            "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 addresses global memory, the "
            "pointer is to shared memory [layout-mismatch]\nwrong number of operands: "
            "movmatrix.sync.aligned.m8n8.trans.b16 takes 1 (d=.b32; a=.b32), found 1 and an "
            "address [operand-count]\n");
}

// The shapes that have names are those of the tables.
TEST(DslElement, EveryShapeHasAName) {
  const MmaShape named[] = {m8n8k4,   m8n8k16,  m8n8k32,  m8n8k128,  m16n8k4,  m16n8k8,
                            m16n8k16, m16n8k32, m16n8k64, m16n8k128, m16n8k256};
  const MmaShape named_wmma[] = {wmma_m16n16k16, wmma_m32n8k16, wmma_m8n32k16, wmma_m16n16k8,
                                 wmma_m8n8k4,    wmma_m8n8k32,  wmma_m8n8k128};
  std::set<std::string> names, table;
  for (const MmaShape& shape : named) names.insert(shape.text());
  for (const MmaShape& shape : named_wmma) names.insert(shape.text());
  for (const isa::Mma& row : isa::mma_rows()) table.insert(row.shape.text());
  for (const isa::Wmma& row : isa::wmma_rows()) table.insert("wmma " + row.shape.text());
  EXPECT_EQ(names, table);
}

}  // namespace
}  // namespace tartan
