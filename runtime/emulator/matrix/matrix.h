// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/matrix.h - wmma.mma and mma, bit for bit.
//
// A tensor core does not add as IEEE arithmetic does: the products of a step and the accumulator
// are aligned to the largest exponent among them, truncated, summed exactly and rounded once. The
// number of products per step, the bits that remain after truncation and the order of steps differ
// between generations; runtime/emulator/matrix/rule.h has one row for each.
//
//   auto product = MatrixProduct::make(form, Hardware::sm_90);   // once per instruction
//   product->run({.d = d, .a = a, .b = b, .c = c}, scratch);              // once per warp that
//   executes it
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "runtime/emulator/matrix/scratch.h"
#include "tartan/isa/form.h"
#include "tartan/isa/target.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::emulator {

/// Generations with different arithmetic.
enum class Hardware : std::uint8_t { sm_70, sm_75, sm_80, sm_89, sm_90, sm_100, sm_120 };

inline constexpr int hardware_count = 7;

constexpr std::string_view name(Hardware hardware) {
  constexpr std::string_view names[] = {"sm_70", "sm_75",  "sm_80", "sm_89",
                                        "sm_90", "sm_100", "sm_120"};
  return names[static_cast<int>(hardware)];
}

/// The generation of `arch`; nothing below sm_70, which has no matrix instructions.
std::optional<Hardware> hardware_of(Arch arch);

/// How well an emulated result matches the hardware.
enum class Trust : std::uint8_t {
  Recorded,        // reproduces bits recorded on that hardware, special values included
  PartlyRecorded,  // reproduces bits recorded on that hardware, of ordinary numbers; special values
                   // and subnormal results follow sm_90's
  Measured,        // public measurements agree for ordinary numbers; special values follow sm_90's
  Documented,      // the manual's semantics; order and rounding of the sum are those of the nearest
                   // known instruction
  Assumed,         // nothing is known: the nearest generation's rule
};

inline constexpr int trust_count = 5;

constexpr std::string_view name(Trust trust) {
  constexpr std::string_view names[] = {"recorded", "partly recorded", "measured", "documented",
                                        "assumed"};
  return names[static_cast<int>(trust)];
}

/// Implementations: the scalar code, or the vector code for an instruction set. All give the same
/// bits; `best` is for all callers but tests. A path that the machine does not support runs the
/// scalar code.
enum class Path : std::uint8_t { reference, portable, avx2, avx512, best };

/// For tests: replaces Path::best for products made later. Path::best restores the fastest.
void set_best_path(Path path);

/// The registers of a warp's operands. d[r], a[r], ... point to register r of 32 lanes: 32 x 32
/// bits, or 32 x 64 bits for f64.
struct MatrixOperands {
  void* const* d = nullptr;
  const void* const* a = nullptr;
  const void* const* b = nullptr;
  const void* const* c = nullptr;
  const std::uint32_t* metadata = nullptr;  // sparse forms: a word per lane
  int selector = 0;
  const std::uint32_t* scale_a = nullptr;  // block-scaled forms: a word per lane
  const std::uint32_t* scale_b = nullptr;
  int byte_a = 0, thread_a = 0, byte_b = 0, thread_b = 0;
};

/// One form of wmma.mma or mma, decoded for one generation. Immutable: threads may share it.
class MatrixProduct {
 public:
  /// Any form that isa::find knows, on any hardware: if the hardware lacks the instruction, the
  /// nearest rule applies (see trust()).
  static Result<MatrixProduct> make(const isa::Form& form, Hardware hardware,
                                    Path path = Path::best);

  /// Computes D = A * B + C. All inputs are read before d is written, so d may alias c, a and b.
  void run(const MatrixOperands& operands, Scratch& scratch) const;

  /// Products of one execution; of sparse forms only those of stored elements.
  std::uint64_t multiply_adds() const;
  Trust trust() const;
  /// The source of the rule, as text.
  std::string_view source() const;

 private:
  struct Plan;
  explicit MatrixProduct(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  std::shared_ptr<const Plan> plan_;
};

}  // namespace tartan::TARTAN_ABI::emulator
