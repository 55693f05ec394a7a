// SPDX-License-Identifier: Apache-2.0
// dsl/fragment.h - a warp's share of a matrix in registers, laid out as an MMA instruction wants it
// (PTX ISA 9.7.14, "Matrix fragments").
//
// Which lane holds which element follows from the instruction: `tartan layout
// mma.m16n8k16.row.col.f32.f16.f16.f32` shows it.
#pragma once

#include <vector>

#include "compiler/isa/fragment.h"
#include "compiler/support/diagnostic.h"
#include "dsl/scalar.h"

namespace tartan {

/// An MMA instruction's shape, and by which route it is reached: mma.sync, or wmma with its opaque
/// fragments.
struct MmaShape {
  Shape shape;
  bool wmma = false;
  bool operator==(const MmaShape&) const = default;
  std::string text() const;  // "m16n8k16", "wmma m16n16k16"
};

inline constexpr MmaShape m16n8k8{{16, 8, 8}}, m16n8k16{{16, 8, 16}};
inline constexpr MmaShape wmma_m16n16k16{{16, 16, 16}, true}, wmma_m32n8k16{{32, 8, 16}, true},
    wmma_m8n32k16{{8, 32, 16}, true};

/// Which operand of which instruction a fragment is.
struct FragmentKind {
  MmaShape shape;
  Operand operand = Operand::none;  // a, b, or c (which is also d)
  Type type = Type::none;

  bool operator==(const FragmentKind&) const = default;
  isa::Form form() const;  // enough of a form for isa::fragment and isa::coord
  isa::Fragment fragment() const { return isa::fragment(form(), operand); }
  isa::Coord coord(int lane, int i) const { return isa::coord(form(), operand, lane, i); }
  std::string text() const;  // "A of m16n8k16 (f16)"
};

constexpr FragmentKind operand_a(MmaShape shape, Type type) { return {shape, Operand::a, type}; }
constexpr FragmentKind operand_b(MmaShape shape, Type type) { return {shape, Operand::b, type}; }
constexpr FragmentKind operand_c(MmaShape shape, Type type) { return {shape, Operand::c, type}; }

class Fragment {
 public:
  const FragmentKind& kind() const { return kind_; }

 private:
  friend struct detail::KernelState;
  std::shared_ptr<detail::KernelState> state_;
  FragmentKind kind_;
  Major major_ = Major::none;              // wmma: how it was loaded
  std::vector<codegen::Value> registers_;  // empty: an error was reported where it was made
  Place made_;
};

/// The accumulator that an MMA starts from when there is none yet: all zeros, of that type.
struct Zero {
  Type type;
};
constexpr Zero zero(Type type) { return {type}; }

/// A fragment that changes in a run-time loop: an accumulator.
///
///   FragmentVariable acc = k.variable(operand_c(m16n8k16, f32));
///   k.loop(0, steps, 1, [&](Scalar t) { ...; acc = k.mma(a, b, acc); });
class FragmentVariable {
 public:
  FragmentVariable& operator=(const Fragment& fragment);
  FragmentVariable& operator=(const FragmentVariable& other) {
    return *this = static_cast<Fragment>(other);
  }
  FragmentVariable(const FragmentVariable&) = default;
  operator Fragment() const;

 private:
  friend struct detail::KernelState;
  FragmentVariable() = default;
  std::shared_ptr<detail::KernelState> state_;
  FragmentKind kind_;
  std::vector<codegen::Variable> registers_;
  Place made_;
};

}  // namespace tartan
