// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/builder.h - what a kernel's function calls to describe the kernel.
//
// Every call notes its C++ line: diagnostics and choices carry it, and so does the PTX (.loc). A
// wrong call reports a diagnostic and goes on, so that one compile shows all mistakes. Fragments
// belong to a warp: calls that load, multiply or store them must be reached by all its 32 lanes.
#pragma once

#include <functional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/dsl/fragment.h"
#include "tartan/dsl/kernel.h"
#include "tartan/dsl/scalar.h"
#include "tartan/dsl/schedule.h"
#include "tartan/dsl/tensor.h"
#include "tartan/dsl/tiled_mma.h"

namespace tartan::inline TARTAN_ABI {

/// What a kernel's description is written with: it declares parameters and shared memory, copies,
/// loads, multiplies and stores. Each call adds code to the kernel, in the order of the calls.
class Builder {
 public:
  using Here = std::source_location;

  explicit Builder(std::shared_ptr<detail::KernelState> state) : state_(std::move(state)) {}

  /// What the kernel is being compiled for: `if (k.target().arch.sm >= 90) ...`
  const Target& target() const;
  /// Whether the target has an instruction, named by its PTX spelling.
  bool has(std::string_view spelling) const;
  /// For what a kernel's own options must fulfil: reports `otherwise` where `condition` does not
  /// hold, and gives it back.
  bool require(bool condition, std::string_view otherwise, Here at = Here::current());

  // ---- Parameters and memory.

  /// A pointer parameter: a matrix in global memory. The address that the launch passes must be a
  /// multiple of 16 bytes.
  Global global(std::string name, Type type, Layout layout, Here at = Here::current());
  /// A scalar parameter: u32, s32, u64, s64, f32 or f64.
  /// `multiple_of`: what the launch promises to pass a multiple of; wide copies live on it.
  Scalar param(std::string name, Type type, int multiple_of = 1, Here at = Here::current());
  /// Memory of the block, with a constant layout.
  /// All of it together may take what a block of the target has (227 KB on sm_90); over 48 KB it
  /// becomes dynamic: see Compiled::dynamic_shared.
  Shared shared(std::string name, Type type, Layout layout, Here at = Here::current());
  Ring shared(std::string name, Type type, const RingLayout& layout, Here at = Here::current());
  /// A number that is known now, in a type of its own: 0.125 in f32.
  Scalar constant(Type type, double value, Here at = Here::current());
  /// A scalar that changes in run-time loops and conditions.
  ScalarVariable variable(const Scalar& initial, Here at = Here::current());

  // ---- Where this thread is. All u32.

  Scalar thread(Here at = Here::current());  // 0 .. block-1
  Scalar lane(Here at = Here::current());    // thread % 32
  Scalar warp(Here at = Here::current());    // thread / 32
  Scalar block_x(Here at = Here::current());
  Scalar block_y(Here at = Here::current());
  Scalar block_z(Here at = Here::current());
  Scalar blocks_x(Here at = Here::current());  // of the launch

  // ---- Tiles: all threads of the block take part.

  /// Copies a tile, spread over the block's threads, as wide as layouts and alignment allow. A
  /// barrier must come before other threads read it.
  void copy(const Global& from, const Shared& to, Here at = Here::current());
  void copy(const Shared& from, const Global& to, Here at = Here::current());
  /// The same of a tile that every block of the cluster copies to the same place at the same time,
  /// in what a pipeline fills: each block has the copy engine bring its share to all of them, so
  /// that a cluster reads the tile once. The blocks of a cluster must fill as many stages, with the
  /// same tile each. Elsewhere, and before sm_90 with PTX 8.0, it is copy().
  ///   k.copy(A.tile(tile.m, tile.k, row, step), sA[stage]);        // a row for each block,
  ///   k.multicast(B.tile(tile.k, tile.n, step, col), sB[stage]);   // one column for all
  void multicast(const Global& from, const Shared& to, Here at = Here::current());
  /// Waits until all threads of the block are here and their shared memory writes are visible.
  void barrier(Here at = Here::current());

  // ---- Products of whole tiles.

  /// The instruction that does most at once for these types, on this target. Products of b1 need
  /// options.bit_op.
  MmaKind best_mma(Type a, Type b, Type c, const MmaOptions& options = {},
                   Here at = Here::current());
  TiledMma tiled_mma(const MmaKind& kind, const Tile& tile, const MmaOptions& options = {},
                     Here at = Here::current());

  /// `use(t, stage)` for t = 0 .. count-1, while up to stages - 1 later `fill(t, stage)` are on
  /// their way: copies to shared memory that fill makes go by cp.async where they can. What fill
  /// wrote is there when use runs; the stage is free again when use has returned.
  ///
  /// `stage` is 0 .. stages - 1, and what rings are indexed by. It is not always t % stages:
  /// between roles a ring goes on where the last run of the pipeline left it. Inside roles() a ring
  /// belongs to one call of pipeline(); another call takes a ring of its own.
  ///   k.pipeline(stages, steps, [&](Scalar t, Scalar s) { k.copy(A.tile(m, 32, row, t), sA[s]); },
  ///              [&](Scalar, Scalar s) { sum = mma(sum, sA[s], sB); });
  void pipeline(int stages, const Scalar& count, const std::function<void(Scalar, Scalar)>& fill,
                const std::function<void(Scalar, Scalar)>& use, Here at = Here::current());
  /// The same where a stage's first data come to registers while the stage before it is still
  /// multiplied: `ahead(stage)` runs as soon as a stage is there. `use` calls `next()` when it has
  /// read all of its stage, which frees that and runs ahead() of the next one, if there is one.
  ///   FirstStep first = mma.first_step(sA[0], sB[0]);
  ///   k.pipeline(stages, steps, fill, [&](Scalar s) { mma.load(first, sA[s], sB[s]); },
  ///              [&](Scalar, Scalar s, auto next) { sum = mma(sum, sA[s], sB[s], first, next); });
  void pipeline(int stages, const Scalar& count, const std::function<void(Scalar, Scalar)>& fill,
                const std::function<void(Scalar)>& ahead,
                const std::function<void(Scalar, Scalar, const std::function<void()>&)>& use,
                Here at = Here::current());

  /// Divides the block into consumers (KernelOptions::block threads) and producers
  /// (KernelOptions::producers warps), and describes both with one `body`: producers run what
  /// pipelines fill, consumers everything else. thread(), copy() and barrier() then mean the
  /// consumers' part of the block. Memory and parameters are declared outside. Without producers,
  /// and before sm_80, the body is run by all threads, as it stands. Where both are whole
  /// warpgroups, on sm_90a, consumers get most of the producers' registers (setmaxnreg).
  ///   return kernel("product", {.block = tile.threads(), .producers = 4}, [=](Builder& k) {
  ///     ...                                                       // declarations
  ///     k.roles([&] { k.pipeline(stages, steps, fill, use); k.store(...); });
  ///   });
  void roles(const std::function<void()>& body, Here at = Here::current());

  /// Which tile of an m x n result this block computes (row, column), from block_x: groups of
  /// `group` tile rows are walked column by column, so that blocks that run together share operands
  /// in L2. The blocks of a cluster compute tiles one below the other: rows of tiles are as many as
  /// fill clusters, and those beyond m are empty. With c = KernelOptions::cluster the grid's x is
  ///   ceil(m / (c * tile.m)) * c * ceil(n / tile.n)
  /// and a smaller grid leaves tiles unwritten.
  std::pair<Scalar, Scalar> block_tile(const Scalar& m, const Scalar& n, const Tile& tile,
                                       int group = 8, Here at = Here::current());
  /// All tiles, spread over however many blocks (x) the launch has: a block computes every
  /// blocks_x()th of them. Clusters take their tiles as in block_tile().
  void each_tile(const Scalar& m, const Scalar& n, const Tile& tile,
                 const std::function<void(Scalar row, Scalar col)>& body, int group = 8,
                 Here at = Here::current());
  /// The same in equal shares: a tile's `steps` along k may be divided among blocks ("stream-K",
  /// Osama et al. 2023), so that none idles in the last round. What a block has of a tile that it
  /// shares goes to its `slot` of a workspace, two of them a block, for someone to add up. Not in
  /// clusters.
  void stream_tiles(const Scalar& m, const Scalar& n, const Tile& tile, const Scalar& steps,
                    const std::function<void(const TileWork&)>& body, int group = 8,
                    Here at = Here::current());

  /// Stores a warp's part of a block's tile.
  void store(const Global& to, const WarpTile& tile, Here at = Here::current());
  void store(const Shared& to, const WarpTile& tile, Here at = Here::current());

  // ---- Fragments: all lanes of the warp take part.

  /// Loads a fragment from a tile of exactly its shape: ldmatrix (.trans where the tile is stored
  /// the other way), wmma.load, or plain loads.
  Fragment load(const FragmentKind& kind, const Shared& from, Here at = Here::current());
  Fragment load(const FragmentKind& kind, const Global& from, Here at = Here::current());
  /// D = A * B + C.
  Fragment mma(const Fragment& a, const Fragment& b, const Fragment& c, Here at = Here::current());
  Fragment mma(const Fragment& a, const Fragment& b, const Zero& c, Here at = Here::current());
  /// The same for forms that take more than three fragments: other result types, rounding, sparse
  /// and block-scaled products.
  Fragment mma(const Fragment& a, const Fragment& b, const Fragment& c, const MmaOptions& options,
               Here at = Here::current());
  Fragment mma(const Fragment& a, const Fragment& b, const Zero& c, const MmaOptions& options,
               Here at = Here::current());
  /// Stores a fragment to a tile of exactly its shape: stmatrix, wmma.store, vector or plain
  /// stores.
  void store(const Global& to, const Fragment& fragment, Here at = Here::current());
  void store(const Shared& to, const Fragment& fragment, Here at = Here::current());
  /// Rounds an accumulator to another type (f32 -> f16, bf16).
  Fragment convert(const Fragment& fragment, Type to, Here at = Here::current());
  /// An accumulator that a run-time loop changes; starts as zeros.
  FragmentVariable variable(const FragmentKind& kind, Here at = Here::current());

  /// The fragment's registers as scalars (.b32, .f32 or .f64), in the instruction's order.
  std::vector<Scalar> registers(const Fragment& fragment, Here at = Here::current());

  // ---- Fragments from and to scalars, of every shape and type that an MMA has.

  /// A fragment of these registers (.b32, .f32 or .f64), in the instruction's order.
  Fragment fragment(const FragmentKind& kind, std::span<const Scalar> registers,
                    Here at = Here::current());
  /// The elements that this lane holds: f16, bf16, f32, f64 and s32 as they are, tf32 as f32, s4
  /// and s8 as s32, every other type as its bits in a u32.
  std::vector<Scalar> elements(const Fragment& fragment, Here at = Here::current());
  /// And back: as many elements as elements() gives, of the same types.
  Fragment pack(const FragmentKind& kind, std::span<const Scalar> elements,
                Here at = Here::current());
  /// Where element `i` of this lane sits in the operand's matrix.
  ///   for (int i = 0; i < n; ++i) {
  ///     const ElementPlace at = k.place(kind, i);
  ///     elements.push_back(k.read(tile, at.row, at.col));
  ///   }
  ///   const Fragment b = k.pack(kind, elements);
  ElementPlace place(const FragmentKind& kind, int i, Here at = Here::current());

  // ---- Elements: each thread for itself.

  /// One element of a matrix or tile. Edges are not looked at: where a tile hangs over its matrix,
  /// or a row or column may lie beyond it, clamp the index or ask first.
  ///   k.when(col < n, [&] { k.write(C, row, col, k.read(bias, 0, col)); });
  Scalar read(const Global& from, const Scalar& row, const Scalar& col, Here at = Here::current());
  Scalar read(const Shared& from, const Scalar& row, const Scalar& col, Here at = Here::current());
  void write(const Global& to, const Scalar& row, const Scalar& col, const Scalar& value,
             Here at = Here::current());
  void write(const Shared& to, const Scalar& row, const Scalar& col, const Scalar& value,
             Here at = Here::current());
  Scalar convert(const Scalar& value, Type to, Here at = Here::current());
  /// Two 16-bit halves of a fragment register, low half first, as `to` (f16, bf16, u16).
  std::pair<Scalar, Scalar> halves(const Scalar& word, Type to, Here at = Here::current());
  /// A fragment register of two 16-bit values.
  Scalar word(const Scalar& low, const Scalar& high, Here at = Here::current());

  // ---- Control. Bodies describe their part once.

  void loop(const Scalar& begin, const Scalar& end, const Scalar& step,
            const std::function<void(Scalar)>& body, Here at = Here::current());
  void when(const Scalar& condition, const std::function<void()>& body, Here at = Here::current());

  // ---- Instructions by name.

  /// The shared-memory address of an element, as ldmatrix and stmatrix take it.
  Scalar address(const Shared& tile, const Scalar& row, const Scalar& col,
                 Here at = Here::current());
  /// Any matrix instruction, spelled as in PTX, with its operands in PTX order (d left out, vectors
  /// one register after the other, addresses as shared-memory addresses). Gives d's registers:
  /// .b32, .f32 or .f64 each.
  ///   const Scalar line = k.address(s, k.lane() % 16, 0);
  ///   auto r = k.instruction("ldmatrix.sync.aligned.m8n8.x2.shared.b16", {line});
  std::vector<Scalar> instruction(std::string_view spelling, std::span<const Scalar> operands,
                                  Here at = Here::current());
  std::vector<Scalar> instruction(std::string_view spelling, std::initializer_list<Scalar> operands,
                                  Here at = Here::current()) {
    return instruction(spelling, std::span(operands.begin(), operands.size()), at);
  }

  /// The same with the address of an element, in whatever state space it is, as the instruction's
  /// address; `operands` are the others.
  ///   k.instruction("wmma.load.c.sync.aligned.row.m16n16k16.global.f32", tile, 0, 0, {64});
  std::vector<Scalar> instruction(std::string_view spelling, const detail::Tensor& memory,
                                  const Scalar& row, const Scalar& col,
                                  const std::vector<Scalar>& operands, Here at = Here::current());

 private:
  std::shared_ptr<detail::KernelState> state_;
};

}  // namespace tartan::inline TARTAN_ABI
