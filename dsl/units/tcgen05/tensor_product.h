// SPDX-License-Identifier: Apache-2.0
// dsl/units/tcgen05/tensor_product.h - a TiledMma by tcgen05.mma (sm_100a and its like), whose
// accumulators are in tensor memory (PTX ISA 9.0, 9.7.16). Not installed.
//
// A warpgroup has 128 rows of the tile, or 64, and all columns. Its first thread issues the
// products, which read both operands in shared memory. A warp finds its rows of the sums in its own
// 32 lanes of tensor memory: rows 32 w to 32 w + 31 of 128, or 16 w to 16 w + 15 of 64, in the
// fragments of m16n8 that mma.sync would have.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/isa/tensor_descriptors.h"
#include "dsl/state/state.h"
#include "tartan/dsl/tiled_mma.h"

namespace tartan::TARTAN_ABI::detail {

/// The tcgen05.mma that computes a warpgroup's rows.
struct TensorForm {
  isa::TensorMmaKind kind;
  std::string_view name;  // ".kind::" and what follows
  int scales = 0;         // of a row in one step, of block-scaled kinds
  bool sparse = false;
  int rows = 128;  // of a warpgroup
  int ctas = 1;    // that multiply together
  int step = 0;    // elements along k of one instruction
};
std::string spelling_of(const TensorForm& form);

/// The tcgen05.mma for a tile; or the reason why there is none. `alone`: why it is not by a pair of
/// CTAs, where the tile asks for one.
std::shared_ptr<const TensorForm> tensor_form(const KernelState& state, const MmaKind& kind,
                                              const Tile& tile, const MmaOptions& options,
                                              std::string& why_not, std::string& alone);

/// Whether a target multiplies such elements by tcgen05, whatever the tile.
bool has_tensor_kind(const Target& target, const MmaKind& kind, Type scale);
/// What it lacks for them that a later PTX version has.
std::optional<Since> later_tensor_kind(const Target& target, const MmaKind& kind, Type scale);

/// An accumulator that products may keep in tensor memory, and its fragments.
std::shared_ptr<TensorSum> declare_tensor_sum(const TiledParts& mma,
                                              std::span<const FragmentVariable> fragments);
/// It is read, or was assigned, here.
void note(KernelState& state, TensorSum& sum, TensorSum::What what);
void note(KernelState& state, TensorSum& sum, TensorSum::What what, TensorSum::Part part);
/// Whether it has the rows and columns of a tiled MMA.
bool accumulates(const TiledParts& mma, const TensorSum& sum);
/// sum += A * B, or without what it was. A of fragments goes through tensor memory.
/// What block-scaled and sparse kinds take, in shared memory.
struct TensorData {
  const Tensor *scales_a = nullptr, *scales_b = nullptr, *metadata = nullptr;
};
void tensor_multiply(const TiledParts& mma, TensorSum& sum, const Tensor& a, const Tensor& b,
                     bool fresh, const TensorData& data = {});
void tensor_multiply(const TiledParts& mma, TensorSum& sum, const WarpTile& a, const Tensor& b,
                     bool fresh);

}  // namespace tartan::TARTAN_ABI::detail
