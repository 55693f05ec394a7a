// SPDX-License-Identifier: Apache-2.0
// Sparse data in registers, with its metadata (PTX ISA 9.4): spcompress, spdecompress.
#include "compiler/isa/signatures/families.h"
#include "compiler/isa/sparse_counts.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr TypeSet elements{Type::b8, Type::b16}, indices{Type::b2, Type::b4};
constexpr QualifierSet repeats = "x1 x2 x4 x8 x16 x32 x64";
constexpr OperandRow metadata = vec(sparse_metadata, b32, "metadata");
constexpr OperandRow values = vec(sparse_values, b32, "values");
constexpr OperandRow dense = vec(dense_values, b32, "dense");

// clang-format off
constexpr Signature rows[] = {
    {.opcode = Opcode::spcompress, .types = {elements, indices}, .one = {"sp::2:4", repeats}, .operands = {written(metadata), written(values), dense, reg(b32, "desc")}, .since = rubin_a, .refuses = refuses_ratio},
    {.opcode = Opcode::spdecompress, .types = {elements, indices}, .one = {"sp::1:2 sp::1:4 sp::2:4 sp::1:8 sp::1:16 sp::2:8 sp::2:16 sp::4:8 sp::4:16", repeats}, .operands = {written(dense), metadata, values}, .since = rubin_a, .refuses = refuses_ratio},
};
// clang-format on

}  // namespace

std::span<const Signature> sparse_data_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
