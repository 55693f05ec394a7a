// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/kernel.h - a kernel as a C++ function, and the result of compiling it for a target.
//
//   Kernel copy_tile() {
//     return kernel("copy_tile", {.block = 32}, [](Builder& k) { ... });
//   }
//   Result<Compiled> compiled = compile(copy_tile(), *Target::parse("sm_80"));
//   if (!compiled) std::cerr << compiled.diags().text();     // every misuse, at its C++ line
//
// The function runs once for each compile, against a Builder that knows its target: C++ `if` and
// `for` choose and unroll.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "tartan/cache.h"
#include "tartan/isa/feature.h"
#include "tartan/isa/target.h"
#include "tartan/isa/type.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI {

class Builder;

/// Warps of a CTA that do one part of the work in Builder::roles().
struct Role {
  std::string name;  // "compute": consumers; "load": producers, which fill pipelines
  int warps = 0;
};

/// The shape of a kernel's blocks, and limits that its code is generated for. It is no literal
/// type, since a list of roles is none before GCC 12: write `const KernelOptions`, not `constexpr`.
struct KernelOptions {
  int block = 32;         // threads of a block: a whole number of warps, at most 1024
  int producers = 0;      // producer warps, which fill pipelines in Builder::roles()
  int min_blocks = 0;     // minimum blocks per SM (occupancy); 0: any
  int max_registers = 0;  // per thread; 0: as many as the block allows
  int cluster = 1;        // CTAs that share copies and memory: CopyOptions, Shared::of_cta()
  /// Of the tiles that the CTAs of a cluster compute, as block_tile() and each_tile() distribute
  /// them: so many are side by side, and cluster / cluster_columns one above the other. The ranks
  /// count down the first column, then the next.
  int cluster_columns = 1;
  /// The kernel writes timestamps: tartan/runtime/trace.h makes a timeline of them. Without, the
  /// code is as if there were no such option.
  bool trace = false;
  /// The roles of the CTA's warps, in the order of their warps. With a list, `block` and
  /// `producers` keep their defaults: `.block = 256, .producers = 4` is the first of these two, and
  /// there are no others yet.
  ///   {.roles = {{"compute", 8}, {"load", 4}}}
  ///   {.roles = {{"compute", 8}}}                 // all warps do everything
  std::vector<Role> roles = {};
};

/// A kernel's name, options and description; kernel() makes one, compile() runs the description for
/// a target.
class Kernel {
 public:
  Kernel(std::string name, std::function<KernelOptions(const Target&)> options,
         std::function<void(Builder&)> body, Place place)
      : name_(std::move(name)),
        options_(std::move(options)),
        body_(std::move(body)),
        place_(std::move(place)) {}
  const std::string& name() const { return name_; }
  /// As they were given: with `roles`, `block` and `producers` do not say them, too.
  KernelOptions options(const Target& target) const {
    return options_ ? options_(target) : KernelOptions{};
  }
  const std::function<void(Builder&)>& body() const { return body_; }
  const Place& place() const { return place_; }
  /// The same kernel with a key: a text that tells all that options and body depend on, the target
  /// apart. compile() with a cache then finds the kernel without describing it. Built-in kernels
  /// have one. A key that leaves something out gives another kernel than the one described.
  ///   scaled(rows).keyed("scaled rows=" + std::to_string(rows) + " revision=3")
  Kernel keyed(std::string key) const {
    Kernel out = *this;
    out.key_ = std::move(key);
    return out;
  }
  const std::string& key() const { return key_; }  // empty: none

 private:
  std::string name_;
  std::function<KernelOptions(const Target&)> options_;
  std::function<void(Builder&)> body_;
  Place place_;
  std::string key_;
};

Kernel kernel(std::string name, KernelOptions options, std::function<void(Builder&)> body,
              const std::source_location& at = std::source_location::current());
/// Same with options that depend on the target, as the tile does that the body chooses:
///   const auto tile = [](const Target& t) { return t.has(Feature::wgmma) ? large : small; };
///   return kernel("product", [=](const Target& t) { return KernelOptions{tile(t).threads()}; },
///                 [=](Builder& k) { auto mma = k.tiled_mma(kind, tile(k.target())); ... });
template <std::invocable<const Target&> Options>
Kernel kernel(std::string name, Options options, std::function<void(Builder&)> body,
              const std::source_location& at = std::source_location::current()) {
  return Kernel(std::move(name), std::move(options), std::move(body), at);
}

/// One decision of Tartan, with its reason.
struct Choice {
  Place place;        // the C++ line
  std::string what;   // "load A of m16n8k16 (f16) from sa"
  std::string taken;  // "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
  std::string reason;
  std::vector<std::string>
      refused;  // "ldmatrix.trans: rows are contiguous, no transposition needed"
};

/// As text; as a JSON array of {"file", "line", "what", "taken", "reason", "refused"}. The PTX has
/// the same as comments.
std::string explain(const std::vector<Choice>& choices);
std::string explain_json(const std::vector<Choice>& choices);

/// A number that a launch computes: `value` times the product of these parameters' arguments, each
/// divided by `divisor` and rounded up.
struct MapNumber {
  std::int64_t value = 0;
  std::vector<int> params = {};
  std::int64_t divisor = 1;
  bool operator==(const MapNumber&) const = default;
};

/// The size of a matrix in global memory, and the elements between neighbours in a column and in a
/// row.
struct MatrixSpan {
  MapNumber rows, cols, row_stride, col_stride;
};

/// A parameter of a compiled kernel, in the order of its declaration.
struct CompiledParam {
  std::string name;
  Type type = Type::none;  // of a scalar, or of a pointer's elements
  bool pointer = false;
  std::int64_t elements =
      0;  // of a pointer: how many its layout spans; 0 where a value of the kernel decides
  /// Of a pointer whose layout depends on parameters, if a launch can compute it; of a batch, the
  /// span of one matrix.
  std::optional<MatrixSpan> span = {};
  std::int64_t multiple_of = 1;        // of a scalar: a divisor that launch() checks
  bool reads = false, writes = false;  // of a pointer: whether the kernel does so there
};

/// The TMA tensor map of a matrix: a kernel parameter of 128 bytes after all others. launch() and
/// arguments_of() in tartan/launch.h create it.
struct CompiledMap {
  std::string name;  // "A_map"
  int of = 0;        // the pointer parameter
  Type type = Type::none;
  std::vector<MapNumber> extents;  // elements, the innermost dimension first
  std::vector<MapNumber> strides;  // elements, of dimensions 1 and up
  std::vector<int> box;            // elements; with im2col channels and pixels
  int swizzle = 0;                 // bytes of the swizzle's span: 0, 32, 64 or 128
  /// Of Builder::copy_pixels(): the corners of TensorMap::Im2col and the steps between pixels, of
  /// width, height and depth.
  struct Pixels {
    std::vector<int> lower, upper, steps;
    bool operator==(const Pixels&) const = default;
  };
  std::optional<Pixels> pixels = {};
  /// Bytes that a read fetches into L2. With 256, rows that do not start at a multiple of 128 bytes
  /// fetch data that nobody reads: such a product took 1.17 times as long on an H100.
  static constexpr int promotion = 128;
};

/// What the description promises of a launch, and launch() checks: each block has a tile, and each
/// tile lies in its matrix.
struct LaunchBound {
  /// What a bound is of: the blocks of a launch, or a number that its arguments give.
  enum class Of : std::uint8_t { blocks_x, blocks_y, blocks_z, number };
  Of of = Of::number;            // what is bounded
  MapNumber number = {};         // of k-tiles; for blocks the launch's grid
  std::int64_t offset = 0;       // added to it
  std::vector<MapNumber> tiles;  // their product bounds it
  bool exact = false;            // it must be as many, not fewer
  std::string what;              // "tile rows of A"
  Place place;                   // the C++ line
  std::int64_t factor = 1;       // tiles from one block, or k-tile, to the next
};

/// A kernel compiled for a target: its verified PTX and what a launch needs to know.
struct Compiled {
  std::string name;
  Target target;
  std::string ptx;
  int block = 0;                      // threads, those of producers included
  int shared_bytes = 0;               // shared memory of the kernel's own, up to 48 KB
  int dynamic_shared = 0;             // or, where that is too little, what the launch must give it
  int cluster = 1;                    // blocks: the x of a launch's grid is a multiple of it
  std::vector<CompiledParam> params;  // in the order of the description
  std::vector<CompiledMap> maps;      // parameters after them
  std::vector<LaunchBound> bounds;    // of grid and arguments
  std::vector<Choice> choices;
  /// What the checker says of the text that is legal and probably wrong, such as an mma under a
  /// condition that differs between lanes: warnings, at the line of the C++ that made it.
  Diags warnings = {};
};

/// Builds, emits, parses back and verifies. An invalid description gives all its diagnostics, each
/// at its C++ line.
Result<Compiled> compile(const Kernel& kernel, const Target& target);
/// Same with the first PTX version, at least that of Target::of(), that supports everything in the
/// kernel.
///   compile(kernel, device.arch());
Result<Compiled> compile(const Kernel& kernel, Arch arch);
/// Same through a cache. A kernel without a key is described, and found by its code before LLVM;
/// one with a key (Kernel::keyed) is found by that.
Result<Compiled> compile(const Kernel& kernel, Arch arch, const Cache& cache);
Result<Compiled> compile(const Kernel& kernel, const Target& target, const Cache& cache);

}  // namespace tartan::TARTAN_ABI
