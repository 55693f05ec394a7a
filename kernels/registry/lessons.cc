// SPDX-License-Identifier: Apache-2.0
// One instruction each, as explained in the lessons of examples/.
#include "tartan/kernels/kernels.h"

#include "kernels/registry/families.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

using namespace kernels;

struct Lesson {
  const char* name;
  const char* summary;
  Kernel (*make)();
  bool one_block = true;
};

constexpr Lesson lessons[] = {
    {"one_mma", "one mma.m16n8k16, f16 -> f32", [] { return one_mma(); }},
    {"mma_nt", "the same, A column-major, B row-major",
     [] { return stored_mma(Major::col, Major::row); }},
    {"mma_tn", "the same, A row-major, B column-major",
     [] { return stored_mma(Major::row, Major::col); }},
    {"mma_nn", "the same, A and B column-major", [] { return stored_mma(Major::col, Major::col); }},
    {"mma_tt", "the same, A and B row-major", [] { return stored_mma(Major::row, Major::row); }},
    {"wmma_row_row", "one wmma.m16n16k16, f16 -> f32",
     [] { return one_wmma(Major::row, Major::row); }},
    {"wmma_row_col", "the same, B column-major", [] { return one_wmma(Major::row, Major::col); }},
    {"wmma_col_row", "the same, A column-major", [] { return one_wmma(Major::col, Major::row); }},
    {"wmma_col_col", "the same, A and B column-major",
     [] { return one_wmma(Major::col, Major::col); }},
    {"mma_probe", "peak throughput of mma.m16n8k16, operands in registers",
     [] { return mma_probe("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"); }, false},
    {"ldmatrix_x1", "registers of ldmatrix .x1", [] { return ldmatrix_registers(1, false); }},
    {"ldmatrix_x2", "registers of ldmatrix .x2", [] { return ldmatrix_registers(2, false); }},
    {"ldmatrix_x4", "registers of ldmatrix .x4", [] { return ldmatrix_registers(4, false); }},
    {"ldmatrix_x1_trans", "registers of ldmatrix .x1.trans",
     [] { return ldmatrix_registers(1, true); }},
    {"ldmatrix_x2_trans", "registers of ldmatrix .x2.trans",
     [] { return ldmatrix_registers(2, true); }},
    {"ldmatrix_x4_trans", "registers of ldmatrix .x4.trans",
     [] { return ldmatrix_registers(4, true); }},
    {"ldmatrix_matrix_x1", "an 8x8 matrix through ldmatrix",
     [] { return ldmatrix_matrix(1, false); }},
    {"ldmatrix_matrix_x2", "an 8x16 matrix through ldmatrix",
     [] { return ldmatrix_matrix(2, false); }},
    {"ldmatrix_matrix_x4", "a 16x16 matrix through ldmatrix",
     [] { return ldmatrix_matrix(4, false); }},
    {"ldmatrix_matrix_x1_trans", "the same with .trans", [] { return ldmatrix_matrix(1, true); }},
    {"ldmatrix_matrix_x2_trans", "the same with .trans", [] { return ldmatrix_matrix(2, true); }},
    {"ldmatrix_matrix_x4_trans", "the same with .trans", [] { return ldmatrix_matrix(4, true); }},
    {"ldmatrix_corner", "the corner of a 64x64 tile, by the instruction",
     [] { return ldmatrix_corner(false); }},
    {"ldmatrix_corner_tile", "the same, by loading a tile", [] { return ldmatrix_corner(true); }},
    {"stmatrix_x1", "registers through stmatrix .x1", [] { return stmatrix_registers(1, false); }},
    {"stmatrix_x2", "registers through stmatrix .x2", [] { return stmatrix_registers(2, false); }},
    {"stmatrix_x4", "registers through stmatrix .x4", [] { return stmatrix_registers(4, false); }},
    {"stmatrix_x1_trans", "the same with .trans", [] { return stmatrix_registers(1, true); }},
    {"stmatrix_x2_trans", "the same with .trans", [] { return stmatrix_registers(2, true); }},
    {"stmatrix_x4_trans", "the same with .trans", [] { return stmatrix_registers(4, true); }},
    {"movmatrix", "registers through movmatrix", [] { return movmatrix_registers(); }},
};

}  // namespace

void add_lessons(KernelRegistry& registry) {
  for (const Lesson& lesson : lessons)
    registry.add(
        {lesson.name, lesson.summary, {}, [&lesson](const Request&) -> Result<Described> {
           return Described{lesson.make(), lesson.one_block ? std::optional(Dim3{}) : std::nullopt};
         }});
}

}  // namespace tartan::TARTAN_ABI::builtins
