// SPDX-License-Identifier: Apache-2.0
// Lane maps against independent formulas, copied by hand and not simplified: the PTX manual's
// (9.7.14.5), CuTe's where the manual has only figures, and an H100's registers for wmma and sparse
// metadata. At least one witness for each family of forms.
#include <gtest/gtest.h>

#include <set>

#include "tartan/isa/fragment.h"
#include "tartan/isa/instruction.h"

namespace tartan::isa {
namespace {

// Lane L = 4g + t; element e of register r (E to a register); i counts the elements of a lane.
struct At {
  int g, t, r, e, i;
};
using Formula = Coord (*)(At);

struct Witness {
  const char* spelling;
  Operand operand;
  int registers, elements;  // per register
  Formula where;
};

// clang-format off
const Witness witnesses[] = {
    // mma, short k and long k.
    {"mma.m16n8k4.row.col.f32.tf32.tf32.f32", Operand::a, 2, 1, [](At x) { return Coord{0, x.g + 8 * x.i, x.t}; }},
    {"mma.m16n8k4.row.col.f32.tf32.tf32.f32", Operand::b, 1, 1, [](At x) { return Coord{0, x.t, x.g}; }},
    {"mma.m16n8k8.row.col.f32.bf16.bf16.f32", Operand::a, 2, 2, [](At x) { return Coord{0, x.i < 2 ? x.g : x.g + 8, x.t * 2 + (x.i & 1)}; }},
    {"mma.m16n8k8.row.col.f32.bf16.bf16.f32", Operand::b, 1, 2, [](At x) { return Coord{0, x.t * 2 + x.i, x.g}; }},
    {"mma.m16n8k16.row.col.s32.u8.s8.s32", Operand::a, 2, 4, [](At x) { return Coord{0, x.i < 4 ? x.g : x.g + 8, x.t * 4 + (x.i & 3)}; }},
    {"mma.m16n8k32.row.col.f16.e5m2.e4m3.f16", Operand::c, 2, 2, [](At x) { return Coord{0, x.i < 2 ? x.g : x.g + 8, x.t * 2 + (x.i & 1)}; }},
    {"mma.m16n8k64.row.col.s32.s4.u4.s32", Operand::a, 4, 8, [](At x) { return Coord{0, x.i < 8 || (16 <= x.i && x.i < 24) ? x.g : x.g + 8, x.i < 16 ? x.t * 8 + (x.i & 7) : x.t * 8 + (x.i & 7) + 32}; }},
    {"mma.m16n8k64.row.col.s32.s4.u4.s32", Operand::b, 2, 8, [](At x) { return Coord{0, x.i < 8 ? x.t * 8 + (x.i & 7) : x.t * 8 + (x.i & 7) + 32, x.g}; }},
    {"mma.m16n8k128.row.col.s32.b1.b1.s32.and.popc", Operand::a, 2, 32, [](At x) { return Coord{0, x.i < 32 ? x.g : x.g + 8, x.t * 32 + (x.i & 0x1F)}; }},
    {"mma.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", Operand::b, 2, 32, [](At x) { return Coord{0, x.i < 32 ? x.t * 32 + x.i : x.t * 32 + x.i - 32 + 128, x.g}; }},
    {"mma.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", Operand::a, 4, 4, [](At x) { return Coord{0, x.g + 8 * (x.r & 1), 4 * x.t + x.e + 16 * (x.r >> 1)}; }},
    // f64
    {"mma.m16n8k4.row.col.f64.f64.f64.f64", Operand::a, 2, 1, [](At x) { return Coord{0, x.g + 8 * x.i, x.t}; }},
    {"mma.m16n8k8.row.col.f64.f64.f64.f64", Operand::a, 4, 1, [](At x) { return Coord{0, x.g + 8 * (x.i & 1), x.t + 4 * (x.i >> 1)}; }},
    {"mma.m16n8k16.row.col.f64.f64.f64.f64", Operand::a, 8, 1, [](At x) { return Coord{0, x.i % 2 == 0 ? x.g : x.g + 8, x.i % 2 == 0 ? x.i * 2 + x.t : x.i * 2 - 2 + x.t}; }},
    {"mma.m16n8k16.row.col.f64.f64.f64.f64", Operand::b, 4, 1, [](At x) { return Coord{0, x.t + x.i * 4, x.g}; }},
    {"mma.m8n8k4.row.col.f64.f64.f64.f64", Operand::c, 2, 1, [](At x) { return Coord{0, x.g, x.t * 2 + (x.i & 1)}; }},
    // m8n8
    {"mma.m8n8k16.row.col.s32.s8.s8.s32", Operand::a, 1, 4, [](At x) { return Coord{0, x.g, x.t * 4 + x.i}; }},
    {"mma.m8n8k32.row.col.s32.s4.s4.s32", Operand::b, 1, 8, [](At x) { return Coord{0, x.t * 8 + x.i, x.g}; }},
    {"mma.m8n8k128.row.col.s32.b1.b1.s32.xor.popc", Operand::a, 1, 32, [](At x) { return Coord{0, x.g, x.t * 32 + x.i}; }},
    // Sparse: A is the dense A of half the k; B has all of k.
    {"mma.sp.m16n8k32.row.col.f32.f16.f16.f32", Operand::a, 4, 2, [](At x) { return Coord{0, x.g + 8 * (x.r & 1), 2 * x.t + x.e + 8 * (x.r >> 1)}; }},
    {"mma.sp.m16n8k64.row.col.s32.s8.s8.s32", Operand::b, 4, 4, [](At x) { return Coord{0, 4 * x.t + x.e + 16 * x.r, x.g}; }},
    {"mma.sp::ordered_metadata.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", Operand::b, 4, 8, [](At x) { return Coord{0, 8 * x.t + x.e + 32 * x.r, x.g}; }},
    {"mma.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", Operand::a, 4, 8, [](At x) { return Coord{0, x.g + 8 * (x.r & 1), 8 * x.t + x.e + 32 * (x.r >> 1)}; }},
    // Moves, in memory: rows with a given address, of 16 bytes.
    {"ldmatrix.m8n8.x4.shared.b16", Operand::d, 4, 2, [](At x) { return Coord{x.r, x.g, 2 * x.t + x.e}; }},
    {"ldmatrix.m8n8.x2.trans.shared.b16", Operand::d, 2, 2, [](At x) { return Coord{x.r, 2 * x.t + x.e, x.g}; }},
    {"ldmatrix.m16n16.x2.trans.shared.b8", Operand::d, 4, 4, [](At x) { return Coord{x.r / 2, 4 * x.t + x.e, x.g + 8 * (x.r % 2)}; }},
    {"ldmatrix.m8n16.x4.shared.b8x16.b4x16_p64", Operand::d, 4, 4, [](At x) { return Coord{x.r, x.g, 4 * x.t + x.e}; }},
    {"stmatrix.m8n8.x4.shared.b16", Operand::c, 4, 2, [](At x) { return Coord{x.r, x.g, 2 * x.t + x.e}; }},
    {"stmatrix.m16n8.x2.trans.shared.b8", Operand::c, 2, 4, [](At x) { return Coord{x.r, 2 * x.t + (x.e & 1), x.g + 8 * (x.e >> 1)}; }},
    {"movmatrix.m8n8.trans.b16", Operand::d, 1, 2, [](At x) { return Coord{0, 2 * x.t + x.e, x.g}; }},
    // wmma, as recorded on sm_90.
    {"wmma.load.a.row.m16n16k16.f16", Operand::a, 8, 2, [](At x) { return Coord{0, x.g + 8 * (x.r % 4 & 1), 2 * x.t + x.e + 8 * (x.r % 4 >> 1 & 1)}; }},
    {"wmma.load.a.col.m32n8k16.bf16", Operand::a, 8, 2, [](At x) { return Coord{0, x.g + 8 * (x.r & 1) + 16 * (x.r >> 2), 2 * x.t + x.e + 8 * (x.r >> 1 & 1)}; }},
    {"wmma.load.a.row.m8n32k16.f16", Operand::a, 8, 2, [](At x) { return Coord{0, x.g, 2 * x.t + x.e + 8 * (x.r % 2 & 1)}; }},
    {"wmma.load.a.row.m16n16k8.tf32", Operand::a, 4, 1, [](At x) { return Coord{0, x.g + 8 * (x.r & 1), x.t + 4 * (x.r >> 1)}; }},
    {"wmma.load.a.row.m32n8k16.s8", Operand::a, 4, 4, [](At x) { return Coord{0, x.g + 8 * x.r, 4 * x.t + x.e}; }},
    {"wmma.load.a.row.m8n8k32.s4", Operand::a, 1, 8, [](At x) { return Coord{0, x.g, 8 * x.t + x.e}; }},
    {"wmma.load.b.col.m16n16k16.bf16", Operand::b, 4, 2, [](At x) { return Coord{0, 2 * x.t + x.e + 8 * (x.r & 1), x.g + 8 * (x.r >> 1 & 1)}; }},
    {"wmma.load.b.row.m32n8k16.f16", Operand::b, 8, 2, [](At x) { return Coord{0, 2 * x.t + x.e + 8 * (x.r % 2 & 1), x.g}; }},
    {"wmma.load.b.col.m8n32k16.f16", Operand::b, 8, 2, [](At x) { return Coord{0, 2 * x.t + x.e + 8 * (x.r >> 1 & 1), x.g + 8 * (x.r & 1) + 16 * (x.r >> 2)}; }},
    {"wmma.load.b.col.m16n16k8.tf32", Operand::b, 4, 1, [](At x) { return Coord{0, x.t + 4 * (x.r & 1), x.g + 8 * (x.r >> 1)}; }},
    {"wmma.load.b.col.m8n32k16.u8", Operand::b, 4, 4, [](At x) { return Coord{0, 4 * x.t + x.e, x.g + 8 * x.r}; }},
    {"wmma.load.b.col.m8n8k128.b1", Operand::b, 1, 32, [](At x) { return Coord{0, 32 * x.t + x.e, x.g}; }},
    {"wmma.load.c.row.m16n16k16.f16", Operand::c, 4, 2, [](At x) { return Coord{0, x.g + 8 * (x.i >> 1 & 1), 2 * x.t + (x.i & 1) + 8 * (x.i >> 2)}; }},
    {"wmma.mma.row.col.m32n8k16.f32.f32", Operand::d, 8, 1, [](At x) { return Coord{0, x.g + 8 * (x.i >> 1), 2 * x.t + (x.i & 1)}; }},
    {"wmma.store.d.row.m8n32k16.s32", Operand::d, 8, 1, [](At x) { return Coord{0, 2 * x.t + (x.i & 1), x.g + 8 * (x.i >> 1)}; }},
    {"wmma.store.d.row.m8n8k4.f64", Operand::d, 2, 1, [](At x) { return Coord{0, x.g, 2 * x.t + x.i}; }},
};
// clang-format on

TEST(FragmentWitness, LaneMaps) {
  std::set<std::string_view> families;
  for (const Witness& witness : witnesses) {
    const Form form = [&] {
      Form out = parse_form(witness.spelling).form;
      out.aligned = true;
      return out;
    }();
    ASSERT_TRUE(find(form)) << witness.spelling;
    families.insert(family(form));
    const Fragment shape = fragment(form, witness.operand);
    EXPECT_EQ(shape.registers, witness.registers) << witness.spelling;
    EXPECT_EQ(shape.per_register, witness.elements) << witness.spelling;
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < witness.registers * witness.elements; ++i) {
        const At at{lane / 4, lane % 4, i / witness.elements, i % witness.elements, i};
        EXPECT_EQ(coord(form, witness.operand, lane, i), witness.where(at))
            << witness.spelling << " " << name(witness.operand) << " lane " << lane << " element "
            << i;
      }
  }
  for (const Form& form : forms()) EXPECT_TRUE(families.contains(family(form))) << spell(form);
}

// m8n8k4 on f16: A and B in their two layouts, and the f16 accumulator.
TEST(FragmentWitness, QuadPairs) {
  const Form rows = parse_form("mma.sync.aligned.m8n8k4.row.row.f16.f16.f16.f16").form,
             columns = parse_form("mma.sync.aligned.m8n8k4.col.col.f16.f16.f16.f16").form;
  for (int lane = 0; lane < 32; ++lane) {
    const int pair = lane % 16 / 4, low = lane % 4, high = lane >= 16;
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(coord(rows, Operand::a, lane, i), (Coord{pair, low + 4 * high, i}));
      EXPECT_EQ(coord(rows, Operand::b, lane, i), (Coord{pair, low, i + 4 * high}));
      EXPECT_EQ(coord(columns, Operand::a, lane, i), (Coord{pair, i % 4 + 4 * high, low}));
      EXPECT_EQ(coord(columns, Operand::b, lane, i), (Coord{pair, i, low + 4 * high}));
    }
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(coord(rows, Operand::d, lane, i), (Coord{pair, low + 4 * high, i}));
  }
}

// A warpgroup: warp w owns rows 16w to 16w + 15.
TEST(FragmentWitness, Warpgroup) {
  Form form = parse_form("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16").form;
  form.a_in_registers = true;
  for (int lane = 0; lane < 128; ++lane) {
    const int w = lane / 32, g = lane % 32 / 4, t = lane % 4;
    for (int i = 0; i < 128; ++i)
      EXPECT_EQ(coord(form, Operand::d, lane, i),
                (Coord{0, 16 * w + g + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * t + (i & 1)}));
    for (int i = 0; i < 8; ++i) {
      const int r = i / 2, e = i % 2;
      EXPECT_EQ(coord(form, Operand::a, lane, i),
                (Coord{0, 16 * w + g + 8 * (r & 1), 2 * t + e + 8 * (r >> 1)}));
    }
  }
}

struct Codes {
  const char* spelling;
  int selectors, codes;
  MetadataBits (*where)(int row, int code, int selector);
};

// The place of a code's four bits. Four codes per row: one lane of a quad has both rows. Eight: two
// lanes. Sixteen: all four, odd ones for the lower row. 16-bit floats and tf32 differ from
// integers.
TEST(FragmentWitness, Metadata) {
  const Codes all[] = {
      {"mma.sp.m16n8k16.row.col.f32.f16.f16.f32", 4, 4,
       [](int row, int j, int s) {
         return MetadataBits{row % 8 * 4 + s, row / 8 * 16 + 4 * j};
       }},
      {"mma.sp.m16n8k32.row.col.f32.bf16.bf16.f32", 2, 8,
       [](int row, int j, int s) {
         return MetadataBits{row % 8 * 4 + 2 * s + j / 4, row / 8 * 16 + j % 4 * 4};
       }},
      {"mma.sp.m16n8k64.row.col.s32.s8.s8.s32", 1, 16,
       [](int row, int j, int) {
         return MetadataBits{row % 8 * 4 + row / 8 + j / 8 * 2, j % 8 * 4};
       }},
      {"mma.sp.m16n8k64.row.col.f32.e4m3.e4m3.f32", 1, 16,
       [](int row, int j, int) {
         return MetadataBits{row % 8 * 4 + row / 8 + j / 8 * 2, j % 8 * 4};
       }},
      {"mma.sp::ordered_metadata.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
       1, 16,
       [](int row, int j, int) {
         return MetadataBits{row % 8 * 4 + row / 8 + j / 8 * 2, j % 8 * 4};
       }},
  };
  for (const Codes& each : all) {
    Form form = parse_form(each.spelling).form;
    form.aligned = true;
    ASSERT_TRUE(find(form)) << each.spelling;
    EXPECT_EQ(selectors(form), each.selectors) << each.spelling;
    EXPECT_EQ(codes_per_row(form), each.codes) << each.spelling;
    for (int selector = 0; selector < each.selectors; ++selector)
      for (int row = 0; row < 16; ++row)
        for (int j = 0; j < each.codes; ++j) {
          const MetadataBits ours = metadata(form, row, j, selector);
          const MetadataBits theirs = each.where(row, j, selector);
          EXPECT_EQ(ours.lane, theirs.lane) << each.spelling << " row " << row << " code " << j;
          EXPECT_EQ(ours.lowest, theirs.lowest) << each.spelling << " row " << row << " code " << j;
        }
  }
}

}  // namespace
}  // namespace tartan::isa
