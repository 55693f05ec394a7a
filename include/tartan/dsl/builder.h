// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/builder.h - the calls that describe a kernel.
//
// Every call records its C++ line for diagnostics, choices and the PTX (.loc). An invalid call
// reports a diagnostic and continues, so that one compilation shows all errors. Fragments belong to
// a warp: all 32 lanes must reach the calls that load, multiply or store them.
#pragma once

#include <functional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/dsl/atomic.h"
#include "tartan/dsl/fragment.h"
#include "tartan/dsl/kernel.h"
#include "tartan/dsl/old_forms.h"
#include "tartan/dsl/pipeline.h"
#include "tartan/dsl/scalar.h"
#include "tartan/dsl/schedule.h"
#include "tartan/dsl/tensor.h"
#include "tartan/dsl/tiled_mma.h"

namespace tartan::TARTAN_ABI {

/// Describes a kernel: each call appends code to it.
class Builder : public detail::OldForms<Builder> {
 public:
  using Here = std::source_location;
  using OldForms::copy_box, OldForms::copy_pixels, OldForms::copy_rows, OldForms::pipeline,
      OldForms::read_if, OldForms::write_if;  // until 0.3

  explicit Builder(std::shared_ptr<detail::KernelState> state) : state_(std::move(state)) {}

  /// The target of this compilation: `if (k.target().has(Feature::tma)) ...`
  const Target& target() const;
  /// Whether the target has an instruction (its PTX spelling, with all of its words). Where it
  /// does, compile() for an Arch takes a PTX version that has it, too.
  bool has(std::string_view spelling, Here at = Here::current()) const;
  /// Checks a requirement on the kernel's own options: reports `otherwise` unless `condition`
  /// holds. Returns `condition`.
  bool require(bool condition, std::string_view otherwise, Here at = Here::current());

  // ---- Parameters and memory.

  /// A pointer parameter: a matrix in global memory. The address that the launch passes must be a
  /// multiple of 16 bytes.
  Global global(std::string name, Type type, Layout layout, Here at = Here::current());
  /// Same for a tensor of two to five dimensions, the last one contiguous.
  ///   GlobalTensor x = k.tensor("X", f16, {batch, height, width, channels});
  GlobalTensor tensor(std::string name, Type type, std::vector<Scalar> extents,
                      Here at = Here::current());
  /// A scalar parameter: u32, s32, u64, s64, f32 or f64.
  /// `multiple_of`: divisor that the launch guarantees; enables vectorized copies.
  Scalar param(std::string name, Type type, int multiple_of = 1, Here at = Here::current());
  /// Shared memory of the CTA, with a constant layout. In total at most what a CTA of the target
  /// can have (227 KB on sm_90); above 48 KB it becomes dynamic shared memory: see
  /// Compiled::dynamic_shared.
  Shared shared(std::string name, Type type, Layout layout, Here at = Here::current());
  Ring shared(std::string name, Type type, const RingLayout& layout, Here at = Here::current());
  /// A compile-time constant of a given type: 0.125 in f32.
  Scalar constant(Type type, double value, Here at = Here::current());
  /// A scalar that changes in run-time loops and conditions.
  ScalarVariable variable(const Scalar& initial, Here at = Here::current());

  // ---- Thread and block indices, u32.

  Scalar thread(Here at = Here::current());  // 0 .. block-1
  Scalar lane(Here at = Here::current());    // thread % 32
  Scalar warp(Here at = Here::current());    // thread / 32
  Scalar block_x(Here at = Here::current());
  Scalar block_y(Here at = Here::current());
  Scalar block_z(Here at = Here::current());
  Scalar blocks_x(Here at = Here::current());  // of the launch
  Scalar blocks_y(Here at = Here::current());

  // ---- Clusters of KernelOptions::cluster CTAs, from sm_90 and PTX 8.0 on; of one on all targets.

  int cluster_size() const;
  /// The number of this CTA in its cluster, u32: blockIdx.x % cluster.
  Scalar cluster_rank(Here at = Here::current());
  /// Waits for all threads of the cluster (inside roles(): all consumers) and makes their shared
  /// memory writes visible to the cluster. See Shared::of_cta().
  void cluster_barrier(Here at = Here::current());

  // ---- Tiles: executed by all threads of the CTA.

  /// Copies a tile cooperatively, with the widest access that layouts and alignment allow. A
  /// barrier must precede reads by other threads.
  void copy(const Global& from, const Shared& to, Here at = Here::current());
  void copy(const Shared& from, const Global& to, Here at = Here::current());
  /// Same for a tile that other CTAs of the cluster need, too, or that L2 should keep, or not.
  ///   k.copy(B.tile({step, col}, {tile.k, tile.n}), sB[stage], {.multicast = Among::cluster});
  void copy(const Global& from, const Shared& to, const CopyOptions& options,
            Here at = Here::current());
  /// Gathers rows: row i of `to` is row row_of(i) of `from`, whose columns are a constant number,
  /// as many as `to` has. Where row_of(i) is below zero or beyond the matrix or window, the row is
  /// zeros. In a fill callback, too (cp.async).
  ///   const auto row_of = [&](Scalar i) { return k.read(index, 0, i); };
  ///   k.copy_rows(A.window({0, t * 32}, {m, 32}), s, row_of);
  void copy_rows(const Global& from, const Shared& to, const std::function<Scalar(Scalar)>& row_of,
                 Here at = Here::current());
  /// Scatters rows: row i of `from` becomes row row_of(i) of `to`, if there is such a row.
  void copy_rows(const Shared& from, const Global& to, const std::function<Scalar(Scalar)>& row_of,
                 Here at = Here::current());
  /// Copies the box of `size` elements from `origin` on, whose columns are those of the last
  /// dimension: `to` has a row for each element of the others, in their order. What is outside the
  /// tensor, in any dimension, is zeros: an origin may be negative. In a fill callback TMA loads
  /// the box, as it does tiles of matrices, if its last dimension begins at a multiple of 16 bytes
  /// for certain, see multiple_of(); else it is copy_rows().
  ///   k.copy_box(x, s[stage], {n, y - 1, x0 - 1, c * 64}, {1, 4, 16, 64});        // 64 x 64
  void copy_box(const GlobalTensor& from, const Shared& to, const std::vector<Scalar>& origin,
                const std::vector<int>& size, Here at = Here::current());
  /// Copies pixels under one tap of a filter, as an implicit GEMM multiplies them: row i of `to` is
  /// the pixel of position `first` + i, its columns are channels from `channel` on. Positions count
  /// through the last dimension of an image, then the others, then the images; of each it is the
  /// pixel under tap `tap` (one number for each dimension). Pixels outside of their image are
  /// zeros, and so is what lies beyond the last image. In a fill callback TMA loads them (PTX ISA
  /// "im2col mode") where it would load a box; else it is copy_rows().
  ///   auto x = k.tensor("X", f16, {images, height, width, channels});
  ///   const Filter filter{.size = {3, 3}, .padding = {1, 1}};
  ///   k.copy_pixels(x, sX[stage], filter, row * tile.m, {r, s}, c * tile.k);
  void copy_pixels(const GlobalTensor& from, const Shared& to, const Filter& filter,
                   const Scalar& first, const std::vector<Scalar>& tap, const Scalar& channel,
                   Here at = Here::current());
  /// Copies the elements where `where(row, column)` of the tile holds; others are zero in `to` in
  /// shared memory, and stay as they are in global memory. The condition is computed for the first
  /// of `together` neighbours in a row and holds for all of them: accesses are that wide at most.
  ///   k.copy_if(A.tile({i, j}, {64, 64}), s, [&](Scalar r, Scalar c) { return r >= c; });
  void copy_if(const Global& from, const Shared& to,
               const std::function<Scalar(Scalar, Scalar)>& where, int together = 1,
               Here at = Here::current());
  void copy_if(const Shared& from, const Global& to,
               const std::function<Scalar(Scalar, Scalar)>& where, int together = 1,
               Here at = Here::current());
  /// CTA barrier: waits for all threads and makes their shared memory writes visible.
  void barrier(Here at = Here::current());

  // ---- Tiled MMA.

  /// The largest MMA shape for these types on this target. Products of b1 need options.bit_op.
  MmaKind best_mma(Type a, Type b, Type c, const MmaOptions& options = {},
                   Here at = Here::current());
  TiledMma tiled_mma(const MmaKind& kind, const Tile& tile, const MmaOptions& options = {},
                     Here at = Here::current());

  /// The mainloop: `use(t, stage)` for t = 0 .. count-1, with up to options.stages - 1 later
  /// `fill(t, stage)` in flight. Copies to shared memory in fill use cp.async or TMA where
  /// possible. Data are visible when use runs; the stage is released when use returns.
  ///
  /// `stage`, 0 .. stages - 1, indexes rings. It is not always t % stages: in a warp-specialized
  /// kernel a ring continues where the pipeline's last run ended. Inside roles() a ring belongs to
  /// one call of pipeline(); another call needs its own ring.
  ///   k.pipeline({.stages = 4}, steps,
  ///              [&](Scalar t, Scalar s) { k.copy(A.tile({row, t}, {m, 32}), sA[s]); },
  ///              [&](Scalar, Scalar s) { mma.add(sum, sA[s], sB); });
  void pipeline(const PipelineOptions& options, const Scalar& count,
                const std::function<void(Scalar, Scalar)>& fill,
                const std::function<void(Scalar, Scalar)>& use, Here at = Here::current());
  /// Same with register prefetch across stages: `ahead(stage)` runs as soon as a stage has arrived.
  /// `use` calls `next()` once it has read all of its stage, which releases the stage and runs
  /// ahead() of the next one, if there is one. Without `ahead`, next() releases the stage only.
  ///   FirstStep first = mma.first_step(sA[0], sB[0]);
  ///   k.pipeline({.stages = 4}, steps, fill, [&](Scalar s) { mma.load(first, sA[s], sB[s]); },
  ///              [&](Scalar, Scalar s, auto next) { mma.add(sum, sA[s], sB[s], first, next); });
  void pipeline(const PipelineOptions& options, const Scalar& count,
                const std::function<void(Scalar, Scalar)>& fill,
                const std::function<void(Scalar)>& ahead,
                const std::function<void(Scalar, Scalar, const std::function<void()>&)>& use,
                Here at = Here::current());

  /// Warp specialization: divides the CTA into consumers (KernelOptions::block threads) and
  /// producers (KernelOptions::producers warps). One `body` describes both: producers run the fill
  /// callbacks of pipelines and what these need, consumers everything else. thread(), copy() and
  /// barrier() refer to the consumers, and a fill callback calls thread() itself. Declare memory
  /// and parameters outside; what fill callbacks read() in shared memory is written before roles(),
  /// with a barrier() after it. Both roles compute the counts of pipelines, of memory that the body
  /// does not write. Without producers, and before sm_80, all threads run the body. If
  /// both are whole warpgroups, on sm_90a, setmaxnreg moves registers to the consumers.
  ///   return kernel("product", {.block = tile.threads(), .producers = 4}, [=](Builder& k) {
  ///     ...                                                       // declarations
  ///     k.roles([&] { k.pipeline({.stages = 4}, steps, fill, use); k.store(...); });
  ///   });
  void roles(const std::function<void()>& body, Here at = Here::current());

  /// A body for each warpgroup: divides the CTA (inside roles(): the consumers) into groups of 128
  /// threads. `body(w)` is described for w = 0, 1, ... and runs on warpgroup w alone, where
  /// thread(), warp(), copy() and barrier() refer to those 128 threads. A pipeline() in the body is
  /// that warpgroup's and needs its own ring. Declare memory outside. A tiled MMA has as many
  /// Tile::products as there are warpgroups, one for each body.
  ///   const Tile tile{.m = 64, .n = 256, .k = 64, .warps_m = 4, .warps_n = 1, .products = 2};
  ///   ...
  ///   k.roles([&] {
  ///     k.warpgroups([&](int w) {
  ///       auto sum = mma.accumulator();
  ///       k.pipeline({.stages = 4, .turns = true}, steps, fill(w), use(sum));
  ///       k.store(C.tile({2 * k.block_y() + w, k.block_x()}, {64, 256}), sum);
  ///     });                          // during the other's products
  ///   });
  void warpgroups(const std::function<void(int)>& body, Here at = Here::current());
  /// In the body of warpgroups(), inside roles(): the warpgroups run `body` one after the other, in
  /// the order of their numbers and then from the first one again, so that each warpgroup must come
  /// here as often as the next. What one wrote to memory is visible to the next. From sm_80 on.
  void in_turn(const std::function<void()>& body, Here at = Here::current());
  /// The tile (row, column) of an m x n result that this CTA computes, from blockIdx.x: groups of
  /// `group` tile rows are visited column by column, so that concurrent CTAs share operands in L2.
  /// The CTAs of a cluster compute adjacent tiles, r = cluster / c below each other and c =
  /// KernelOptions::cluster_columns beside each other: the numbers of tile rows and columns are
  /// rounded up to whole clusters, and those beyond m and n are empty. The grid's x is
  ///   ceil(m / (r * tile.m)) * r * ceil(n / (c * tile.n)) * c
  /// and a smaller grid leaves tiles unwritten. On sm_90 clusters of one row or column of a wave
  /// are numbered so that those of a GPC compute neighbours: what they read comes from L2 once.
  std::pair<Scalar, Scalar> block_tile(const Scalar& m, const Scalar& n, const Tile& tile,
                                       int group = 8, Here at = Here::current());
  /// The tile that the CTAs of a cluster compute together, in the same order: split-K, with the
  /// k-tiles divided among them and reduce_scatter() of their sums. The grid's x is
  ///   cluster * tile.blocks(m, n)
  ///   const auto [row, col] = k.cluster_tile(m, n, tile);
  ///   const StreamShare own = StreamShare::of(steps, k.cluster_size(), k.cluster_rank());
  ///   k.pipeline({.stages = 4}, own.end - own.begin, fill_from(own.begin), use);
  ///   const int ctas = k.cluster_size();
  ///   const Scalar part = col * ctas + k.cluster_rank();
  ///   k.store(C.tile({row, part}, {tile.m, tile.n / ctas}), reduce_scatter(sum));
  std::pair<Scalar, Scalar> cluster_tile(const Scalar& m, const Scalar& n, const Tile& tile,
                                         int group = 8, Here at = Here::current());
  using TileBody = std::function<void(Scalar row, Scalar col)>;
  /// Persistent loop over all tiles, for any gridDim.x: each CTA computes every blocks_x()th tile.
  /// Clusters order their tiles as in block_tile().
  void each_tile(const Scalar& m, const Scalar& n, const Tile& tile, const TileBody& body,
                 int group = 8, Here at = Here::current());
  /// A CTA for each tile, of which those that run take over the tiles of those that have not
  /// started (clusterlaunchcontrol, from sm_100 on, in roles()). On other targets, block_tile().
  void each_launched_tile(const Scalar& m, const Scalar& n, const Tile& tile, const TileBody& body,
                          int group = 8, Here at = Here::current());
  /// Stream-K (Osama et al. 2023): the k-tiles (`steps`) of a tile may be divided among CTAs, so
  /// that none idles in the tail wave. A CTA stores its part of a shared tile to its `slot` of a
  /// workspace, two slots per CTA, for a later reduction. Not in clusters.
  void stream_tiles(const Scalar& m, const Scalar& n, const Tile& tile, const Scalar& steps,
                    const std::function<void(const TileWork&)>& body, int group = 8,
                    Here at = Here::current());

  /// Stores a warp's part of a block's tile. Warps of a warpgroup may do so together: all of them
  /// store, or none.
  void store(const Global& to, const WarpTile& tile, Here at = Here::current());
  /// Same for fragments that are finished as they are stored: the epilogue of a GEMM, with only
  /// the reads of a few fragments in registers at a time.
  void store(const Global& to, const WarpTile& tile, const Finish& finish,
             Here at = Here::current());
  void store(const Shared& to, const WarpTile& tile, Here at = Here::current());
  /// Stores f(x), or f(x, place), of each element x: store(to, map(tile, f)). f keeps the tile's
  /// type; for another one, store(to, convert(map(tile, f), f16)).
  ///   k.store(C.tile({row, col}, {tile.m, tile.n}), sum, [](Scalar x) { return x * 0.5; });
  template <bool shared>
  void store(const View<shared>& to, const WarpTile& tile, const std::function<Scalar(Scalar)>& f,
             Here at = Here::current()) {
    store(to, map(tile, f, at), at);
  }
  template <bool shared>
  void store(const View<shared>& to, const WarpTile& tile,
             const std::function<Scalar(Scalar, ElementPlace)>& f, Here at = Here::current()) {
    store(to, map(tile, f, at), at);
  }
  /// Adds a warp's part of a block's tile to what `to` has, each element atomically (relaxed, for
  /// the GPU): by TMA's reduction where store() stores by TMA, else lane by lane. In global memory
  /// subnormal numbers may count as zeros.
  ///   k.add(dW.tile({row, col}, {tile.m, tile.n}), sum);          // gradients of micro-batches
  void add(const Global& to, const WarpTile& tile, Here at = Here::current());
  /// Scatters rows: row i of the block's tile becomes row row_of(i) of `to`, if there is such a
  /// row. `to` has as many columns as the tile, and any number of rows.
  ///   const auto row_of = [&](Scalar i) { return k.read(to, 0, i); };
  ///   k.store_rows(C.window({0, col * 64}, {tokens, 64}), y, row_of);
  void store_rows(const Global& to, const WarpTile& tile,
                  const std::function<Scalar(Scalar)>& row_of, Here at = Here::current());
  /// Stores a value for each row (column) of `of`, a block's tile, to a matrix with as many rows
  /// and one column, or the reverse; leaves out those beyond its edge.
  ///   k.store(L.tile({row, 0}, {tile.m, 1}), row_sum(p), p);
  void store(const Global& to, const RowValues& values, const WarpTile& of,
             Here at = Here::current());
  void store(const Shared& to, const RowValues& values, const WarpTile& of,
             Here at = Here::current());
  void store(const Global& to, const ColumnValues& values, const WarpTile& of,
             Here at = Here::current());
  void store(const Shared& to, const ColumnValues& values, const WarpTile& of,
             Here at = Here::current());

  // ---- Fragments: executed by all lanes of the warp.

  /// Loads a fragment from a tile of exactly its shape: ldmatrix (.trans if the tile has the
  /// opposite major order), wmma.load, or plain loads.
  Fragment load(const FragmentKind& kind, const Shared& from, Here at = Here::current());
  Fragment load(const FragmentKind& kind, const Global& from, Here at = Here::current());
  /// sum += A * B, and sum = A * B: accumulators of variable(). Options: other rounding, sparse and
  /// block-scaled MMAs, ...
  ///   FragmentVariable sum = k.variable(operand_c(m16n8k16, f32));
  ///   k.loop(0, steps, 1, [&](Scalar t) { ...; k.add(sum, a, b); });
  void add(FragmentVariable& sum, const Fragment& a, const Fragment& b,
           const MmaOptions& options = {}, Here at = Here::current());
  void multiply(FragmentVariable& sum, const Fragment& a, const Fragment& b,
                const MmaOptions& options = {}, Here at = Here::current());
  /// D = A * B + C: the instruction, whose result may have another type than C.
  [[nodiscard]] Fragment mma(const Fragment& a, const Fragment& b, const Fragment& c,
                             const MmaOptions& options = {}, Here at = Here::current());
  [[nodiscard]] Fragment mma(const Fragment& a, const Fragment& b, const Zero& c,
                             const MmaOptions& options = {}, Here at = Here::current());
  /// Stores a fragment to a tile of its shape: stmatrix, wmma.store, vector or plain stores.
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
  /// The elements that this lane holds. f16, bf16, f32, f64 and s32 keep their type, tf32 becomes
  /// f32, s4 and s8 become s32; any other type gives its bits in a u32.
  std::vector<Scalar> elements(const Fragment& fragment, Here at = Here::current());
  /// The inverse of elements(): takes the same number of elements, of the same types. Of an s32 or
  /// u32 it takes the low bits (s8, u8), of e4m3 and the like their bits: see docs/kernels.md.
  Fragment pack(const FragmentKind& kind, std::span<const Scalar> elements,
                Here at = Here::current());
  /// Where element `i` of this lane sits in the operand's matrix.
  ///   for (int i = 0; i < n; ++i) {
  ///     const ElementPlace at = k.place(kind, i);
  ///     elements.push_back(k.read(tile, at.row, at.col));
  ///   }
  ///   const Fragment b = k.pack(kind, elements);
  ElementPlace place(const FragmentKind& kind, int i, Here at = Here::current());

  // ---- To look into a kernel, on a GPU and on the emulator. Each line of output is one of a
  // ---- thread, and says which; GPUs print when the grid ends, in no particular order.

  /// Prints the value of each thread for which `when` holds.
  ///   k.print("most", most, k.thread() == 0);     // most (block 0,0,0, thread 0) = 1.5
  void print(std::string_view name, const Scalar& x, const Scalar& when = 1,
             Here at = Here::current());
  /// Prints the matrix that a fragment, or a warp's part of a tile, stands for, row by row; `when`
  /// is that of lane 0. All lanes of the warp must call it. It takes a shuffle for each element:
  /// for small kernels.
  ///   k.print("sum", sum);   // sum[row 0, columns 0 to 7] (block 0,0,0, warp 0) = 1 0 2 ...
  void print(std::string_view name, const Fragment& fragment, const Scalar& when = 1,
             Here at = Here::current());
  void print(std::string_view name, const WarpTile& tile, const Scalar& when = 1,
             Here at = Here::current());
  /// Stops the grid with the text and this line if the condition does not hold in some thread: a
  /// `trap` finding on the emulator, a failed launch on a GPU, whose driver prints both.
  ///   k.assert_that(col < n, "col is inside of the matrix");
  void assert_that(const Scalar& condition, std::string_view text, Here at = Here::current());

  // ---- Elements: executed per thread.

  /// One element of a matrix or tile, without bounds checks: clamp or predicate what may be
  /// outside. s8 and u8 are read as s32 and u32, as C promotes them; write() takes what a read
  /// gave, and results of it after convert().
  ///   k.when(col < n, [&] { k.write(C, row, col, k.read(bias, 0, col)); });
  Scalar read(const Global& from, const Scalar& row, const Scalar& col, Here at = Here::current());
  Scalar read(const Shared& from, const Scalar& row, const Scalar& col, Here at = Here::current());
  /// The element where `condition` holds; elsewhere 0, and memory is not read. One guarded ld, not
  /// a branch: loads of several elements are issued together.
  ///   const Scalar old = k.read_if(C, row, col, (row < m) & (col < n));
  Scalar read_if(const Global& from, const Scalar& row, const Scalar& col, const Scalar& condition,
                 Here at = Here::current());
  Scalar read_if(const Shared& from, const Scalar& row, const Scalar& col, const Scalar& condition,
                 Here at = Here::current());
  void write(const Global& to, const Scalar& row, const Scalar& col, const Scalar& value,
             Here at = Here::current());
  void write(const Shared& to, const Scalar& row, const Scalar& col, const Scalar& value,
             Here at = Here::current());
  /// Writes where `condition` holds.
  ///   k.write_if(C, row, col, x, (row < m) & (col < n));
  void write_if(const Global& to, const Scalar& row, const Scalar& col, const Scalar& value,
                const Scalar& condition, Here at = Here::current());
  void write_if(const Shared& to, const Scalar& row, const Scalar& col, const Scalar& value,
                const Scalar& condition, Here at = Here::current());
  /// Floats: to nearest even (e4m3 and e5m2 saturate). Floats to integers: towards zero; s32, u32,
  /// s64 and u64 saturate, fewer bits do not. Integers to fewer bits: the low ones.
  Scalar convert(const Scalar& value, Type to, Here at = Here::current());
  /// The same bits as another type of that size: a fragment register of b32 as f16x2.
  Scalar bitcast(const Scalar& value, Type to, Here at = Here::current());
  /// Two 16-bit halves of a fragment register, low half first, as `to` (f16, bf16, u16).
  std::pair<Scalar, Scalar> halves(const Scalar& word, Type to, Here at = Here::current());
  /// A fragment register of two 16-bit values.
  Scalar word(const Scalar& low, const Scalar& high, Here at = Here::current());
  /// `count` neighbours in a row, from (row, col) on, with accesses as wide as divisors of the
  /// address allow, up to 16 bytes: see multiple_of(). Of matrices with contiguous rows.
  ///   const std::vector<Scalar> x = k.read_vector(X, row, k.lane() * 8, 8);     // ld.v4.b32
  std::vector<Scalar> read_vector(const Global& from, const Scalar& row, const Scalar& col,
                                  int count, Here at = Here::current());
  std::vector<Scalar> read_vector(const Shared& from, const Scalar& row, const Scalar& col,
                                  int count, Here at = Here::current());
  void write_vector(const Global& to, const Scalar& row, const Scalar& col,
                    std::span<const Scalar> values, Here at = Here::current());
  void write_vector(const Shared& to, const Scalar& row, const Scalar& col,
                    std::span<const Scalar> values, Here at = Here::current());
  /// Changes an element atomically; returns its old value. Elements of f16, bf16 (sm_90), f32 and
  /// f64 can be added; of 32 and 64-bit integers all is possible.
  Scalar atomic(AtomicOp op, const Global& to, const Scalar& row, const Scalar& col,
                const Scalar& value, const AtomicOptions& options = {}, Here at = Here::current());
  Scalar atomic(AtomicOp op, const Shared& to, const Scalar& row, const Scalar& col,
                const Scalar& value, const AtomicOptions& options = {}, Here at = Here::current());
  /// Replaces an element by `desired` if it is `expected`; returns its old value.
  Scalar compare_exchange(const Global& to, const Scalar& row, const Scalar& col,
                          const Scalar& expected, const Scalar& desired,
                          const AtomicOptions& options = {}, Here at = Here::current());
  Scalar compare_exchange(const Shared& to, const Scalar& row, const Scalar& col,
                          const Scalar& expected, const Scalar& desired,
                          const AtomicOptions& options = {}, Here at = Here::current());
  /// Orders this thread's accesses before it and after it: acq_rel or sc.
  void fence(MemoryScope scope = MemoryScope::gpu, MemoryOrder order = MemoryOrder::acq_rel,
             Here at = Here::current());
  /// Waits for all lanes of the warp, and makes their writes visible to each other.
  void warp_sync(Here at = Here::current());
  /// True in one lane of the warp, which all must reach: elect.sync from sm_90 on, else lane 0.
  Scalar elect(Here at = Here::current());
  /// Programmatic dependent launch (PTX ISA 9.0, 9.7.13.13): waits for the grids before this one;
  /// lets the next start. Before sm_90 both do nothing. In front of roles(): for all threads, after
  /// their mbarriers' initialization. In fill(), where consumers wait too, see docs/kernels.md.
  void griddepcontrol_wait(Here at = Here::current());
  void griddepcontrol_launch_dependents(Here at = Here::current());
  /// Named barriers, of `threads` threads in whole warps that wait or arrive; arrive() does not
  /// wait. Numbers 1 to 15, with producers 2 to 15. Those of warpgroups, one for each: the last,
  /// with warpgroups(); the next that is free, where store() stores a tile of wgmma to a
  /// column-major matrix.
  ///   k.when(k.warp() < 4, [&] { k.arrive(2, 256); }, [&] { k.barrier(2, 256); });
  void barrier(int id, int threads, Here at = Here::current());
  void arrive(int id, int threads, Here at = Here::current());
  /// Same by a number of type u32 that the GPU computes, the kernel then having all 16 barriers.
  /// Nobody checks it, and products that are in flight go on: for warpgroups that take turns.
  void barrier(const Scalar& id, int threads, Here at = Here::current());
  void arrive(const Scalar& id, int threads, Here at = Here::current());

  // ---- Control flow. A body is described once.

  void loop(const Scalar& begin, const Scalar& end, const Scalar& step,
            const std::function<void(Scalar)>& body, Here at = Here::current());
  void when(const Scalar& condition, const std::function<void()>& body, Here at = Here::current());
  /// One of two bodies. What they give goes into a variable():
  ///   k.when(row < n, [&] { x = k.read(A, row, 0); }, [&] { x = 0; });
  void when(const Scalar& condition, const std::function<void()>& then,
            const std::function<void()>& otherwise, Here at = Here::current());
  /// Runs the body while the condition holds; it is computed anew before each iteration.
  ///   auto step = k.variable(k.constant(u32, 16));
  ///   k.loop_while([&] { return step > 0; }, [&] { ...; step /= 2; });
  void loop_while(const std::function<Scalar()>& condition, const std::function<void()>& body,
                  Here at = Here::current());

  // ---- Instructions by name.

  /// The shared-memory address of an element, u32, as ldmatrix and stmatrix take it.
  Scalar address(const Shared& tile, const Scalar& row, const Scalar& col,
                 Here at = Here::current());
  /// The generic address of an element in global memory, u64.
  Scalar address(const Global& tile, const Scalar& row, const Scalar& col,
                 Here at = Here::current());
  /// Any instruction, spelled as in PTX, with its operands in PTX order (results left out, vectors
  /// one register after the other, addresses as numbers). Gives the results: of matrix instructions
  /// .b32, .f32 or .f64 each, of others the types that the spelling names.
  ///   const Scalar line = k.address(s, k.lane() % 16, 0);
  ///   auto r = k.instruction("ldmatrix.sync.aligned.m8n8.x2.shared.b16", {line});
  ///   const Scalar set = k.instruction("popc.b32", {mask})[0];
  std::vector<Scalar> instruction(std::string_view spelling, std::span<const Scalar> operands,
                                  Here at = Here::current());
  std::vector<Scalar> instruction(std::string_view spelling, std::initializer_list<Scalar> operands,
                                  Here at = Here::current()) {
    return instruction(spelling, std::span(operands.begin(), operands.size()), at);
  }
  /// A matrix instruction that accesses memory, at element (row, col) of `memory`. `operands` leave
  /// the address out. Other instructions take address() as a number, above.
  ///   k.instruction("wmma.load.c.sync.aligned.row.m16n16k16.global.f32", tile, 0, 0, {64});
  std::vector<Scalar> instruction(std::string_view spelling, const Global& memory,
                                  const Scalar& row, const Scalar& col,
                                  const std::vector<Scalar>& operands, Here at = Here::current());
  std::vector<Scalar> instruction(std::string_view spelling, const Shared& memory,
                                  const Scalar& row, const Scalar& col,
                                  const std::vector<Scalar>& operands, Here at = Here::current());
  /// Statements of PTX for what no word covers. %0, %1, ... are the results, of the given types,
  /// and then the operands, as in CUDA's asm(). The text is parsed and verified for the target on
  /// this line; all lanes that reach it run it, and nothing moves across it.
  ///   const Scalar d = k.ptx("vmin4.s32.s32.s32 %0, %1, %2, 0;", {u32}, {x, y})[0];
  std::vector<Scalar> ptx(std::string_view text, std::span<const Type> results,
                          std::span<const Scalar> operands, Here at = Here::current());
  std::vector<Scalar> ptx(std::string_view text, std::initializer_list<Type> results,
                          std::initializer_list<Scalar> operands, Here at = Here::current()) {
    return ptx(text, std::span(results.begin(), results.size()),
               std::span(operands.begin(), operands.size()), at);
  }

 private:
  friend struct detail::HandleParts;
  std::shared_ptr<detail::KernelState> state_;
};

}  // namespace tartan::TARTAN_ABI
