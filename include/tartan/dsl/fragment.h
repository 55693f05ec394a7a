// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/fragment.h - a warp's share of a matrix in registers, in the layout of an MMA
// instruction (PTX ISA 9.0, 9.7.14, "Matrix fragments").
//
// The instruction determines which lane holds which element: `tartan layout
// mma.m16n8k16.row.col.f32.f16.f16.f32` shows it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tartan/dsl/scalar.h"
#include "tartan/isa/fragment.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI {

struct MmaKind;

/// The properties of an MMA instruction that determine its fragments, apart from element types: the
/// shape, and whether it is mma.sync or wmma with its opaque fragments.
///
///   m16n8k32                                    mma.m16n8k32
///   sparse(m16n8k32)                            mma.sp.m16n8k32: A has 16 columns, half of k
///   of_kind(m16n8k32, isa::Kind::f8f6f4)        mma.m16n8k32.kind::f8f6f4: six bits take a byte
///   wmma_m16n16k16                              wmma.mma.m16n16k16
struct MmaShape {
  Shape shape;
  bool wmma = false;
  bool sparse = false;
  isa::Kind kind = isa::Kind::none;
  bool operator==(const MmaShape&) const = default;
  std::string text() const;  // "m16n8k16", "wmma m16n16k16", "sparse m16n8k32 kind::mxf4"
  constexpr MmaKind operator()(Type a, Type b, Type c) const;
};

/// An MMA's shape and the types of A, B and of the accumulator: m16n8k16(f16, f16, f32).
struct MmaKind {
  MmaShape shape;
  Type a = Type::none, b = Type::none, c = Type::none;
  /// Set by Builder::best_mma(): a tiled MMA may then use another instruction with the same bits,
  /// such as wgmma, if the target has one.
  bool best = false;
  bool operator==(const MmaKind&) const = default;
};
constexpr MmaKind MmaShape::operator()(Type a, Type b, Type c) const { return {*this, a, b, c}; }

inline constexpr MmaShape m8n8k4{{8, 8, 4}}, m8n8k16{{8, 8, 16}}, m8n8k32{{8, 8, 32}},
    m8n8k128{{8, 8, 128}};
inline constexpr MmaShape m16n8k4{{16, 8, 4}}, m16n8k8{{16, 8, 8}}, m16n8k16{{16, 8, 16}},
    m16n8k32{{16, 8, 32}}, m16n8k64{{16, 8, 64}}, m16n8k128{{16, 8, 128}}, m16n8k256{{16, 8, 256}};
inline constexpr MmaShape wmma_m16n16k16{{16, 16, 16}, true}, wmma_m32n8k16{{32, 8, 16}, true},
    wmma_m8n32k16{{8, 32, 16}, true}, wmma_m16n16k8{{16, 16, 8}, true},
    wmma_m8n8k4{{8, 8, 4}, true}, wmma_m8n8k32{{8, 8, 32}, true}, wmma_m8n8k128{{8, 8, 128}, true};

constexpr MmaShape sparse(MmaShape shape) {
  shape.sparse = true;
  return shape;
}
constexpr MmaShape of_kind(MmaShape shape, isa::Kind kind) {
  shape.kind = kind;
  return shape;
}

/// Which operand of which instruction a fragment is. A kind that does not exist (an s8 accumulator,
/// a sparse A of m16n8k8 in f16) is reported at its first use.
struct FragmentKind {
  MmaShape shape;
  Operand operand = Operand::none;  // a, b, or c (which is also d)
  Type type = Type::none;
  /// A and B of m8n8k4 on f16, and of wmma: the .row or .col variant. none: .row for A, .col for B;
  /// wmma.load takes it from the tile.
  Major major = Major::none;

  bool operator==(const FragmentKind&) const = default;
  isa::Form form() const;          // enough of a form for isa::fragment and isa::coord
  isa::Fragment fragment() const;  // no registers where there is no such fragment
  isa::Coord coord(int lane, int i) const { return isa::coord(form(), operand, lane, i); }
  bool exists() const;       // some instruction has such a fragment
  std::string text() const;  // "A of m16n8k16 (f16)"
};

constexpr FragmentKind operand_a(MmaShape shape, Type type, Major major = Major::none) {
  return {shape, Operand::a, type, major};
}
constexpr FragmentKind operand_b(MmaShape shape, Type type, Major major = Major::none) {
  return {shape, Operand::b, type, major};
}
constexpr FragmentKind operand_c(MmaShape shape, Type type) { return {shape, Operand::c, type}; }

/// One operand of an MMA in the registers of a warp. Builder loads, multiplies and stores it.
class Fragment {
 public:
  const FragmentKind& kind() const { return kind_; }

 private:
  friend struct detail::HandleParts;
  std::shared_ptr<detail::KernelState> state_;
  FragmentKind kind_;
  Major major_ = Major::none;               // wmma: how it was loaded
  std::vector<ir::Value> registers_;        // empty: an error was reported where it was made
  std::shared_ptr<detail::Flight> flight_;  // of a product that may still be computing them
  std::size_t first_ = 0;                   // of its registers
  std::shared_ptr<detail::VariableRecord> variable_;  // that it was read from
  Place made_;
};

/// A zero accumulator of the given type, for the first MMA.
struct Zero {
  Type type;
};
constexpr Zero zero(Type type) { return {type}; }

/// The scales of A or B (PTX ISA 9.0, 9.7.14.3). Each lane supplies 32 bits; the hardware reads
/// those of the lanes that `thread_id` selects, starting at byte `byte_id`.
struct BlockScale {
  Scalar scales;
  Scalar byte_id = 0, thread_id = 0;  // constants, or values of type u16
};

/// Operands and qualifiers of an MMA beside its fragments. All are optional unless the instruction
/// has no form without them; the diagnostic then names the nearest form that exists.
struct MmaOptions {
  Type d = Type::none;  // type of the result; none: that of c
  bool satfinite = false;
  isa::Rounding rounding = isa::Rounding::none;
  isa::BitOp bit_op = isa::BitOp::none;  // products of b1
  // -A, -B: for floating-point elements of at least 8 bits. wgmma negates in hardware; otherwise
  // sign bits are flipped.
  bool negate_a = false, negate_b = false;
  // Sparse shapes: two (or four) bits for each kept element of A. `tartan layout` shows which lanes
  // supply the metadata. `sparsity` dense: .sp::ordered_metadata if the target has it, else .sp.
  std::optional<Scalar> metadata = {};
  int selector = 0;
  isa::Sparsity sparsity = isa::Sparsity::dense;
  // Block-scaled products.
  Type scale_type = Type::none;  // ue8m0, ue4m3; none: not block-scaled
  int scale_vec = 0;             // .scale_vec::1X, 2X, 4X; 0: not written
  std::optional<BlockScale> a_scale = {}, b_scale = {};
  /// Of a tiled MMA. 2: the CTAs of a cluster of two have tiles one below the other, and tcgen05
  /// multiplies both at once: each has its rows of A and half of the columns of B, see
  /// TiledMma::own_b(). Where products are not by tcgen05, each CTA multiplies with all of B.
  int ctas = 1;
};

/// Where an element of a fragment sits. `matrix`: which of the four products of m8n8k4 on f16.
struct ElementPlace {
  Scalar matrix, row, col;
};

/// A fragment that changes in a run-time loop: an accumulator. Like a ScalarVariable, it cannot be
/// copied: `Fragment old = acc` is its value now.
///
///   FragmentVariable acc = k.variable(operand_c(m16n8k16, f32));
///   k.loop(0, steps, 1, [&](Scalar t) { ...; acc = k.mma(a, b, acc); });
class FragmentVariable {
 public:
  FragmentVariable& operator=(const Fragment& fragment);
  FragmentVariable& operator=(const FragmentVariable& other) {
    return *this = static_cast<Fragment>(other);
  }
  FragmentVariable(const FragmentVariable&) =
      delete;  // Fragment old = v: its value; auto& same = v
  FragmentVariable(FragmentVariable&&) = default;
  operator Fragment() const;

 private:
  friend struct detail::HandleParts;
  FragmentVariable() = default;
  std::shared_ptr<detail::KernelState> state_;
  FragmentKind kind_;
  std::shared_ptr<detail::VariableRecord> record_;
  Place made_;
};

}  // namespace tartan::TARTAN_ABI
