// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/algebra/algebra.h - a launch that carries, beside its bits, what each element is
// over the reals.
//
// Moves carry tags; arithmetic reads elements and writes new ones; whatever computes with bits
// takes inputs as their bits are, and makes computed values undecided. Bits steer branches,
// predicates and addresses as in any launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/algebra/tags.h"
#include "runtime/emulator/algebra/values.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::emulator {

class GlobalMemory;
struct Warp;

/// How the bytes of an input were used.
enum InputUse : std::uint8_t {
  by_value = 1,
  by_bits = 2,
  as_metadata = 4,
  loaded = 8,      // by an instruction that does not say what they are
  as_fields = 16,  // by bits, taken apart: packed integers
  as_signal = 32   // integers that threads wait for or count with
};

/// What an instruction chose by its operands' numbers, over all lanes and times: a comparison held
/// or did not, a minimum was its first operand or another one.
struct Decision {
  enum : std::uint8_t { first = 1, other = 2 };
  int line = 0;  // of the PTX text
  std::string instruction;
  std::uint8_t sides = 0;
};

/// The value of an element's bits.
double decode_element(Type type, std::uint64_t bits);

class Algebra {
 public:
  Values values;
  TagMemory memory;
  bool sparse_words = false;  // sparse products of 32-bit elements were met

  /// The bytes at that address of the device are inputs, and elements there are variables, the same
  /// in each launch that has the key; with `exact`, they are what their bits say.
  void add_input(std::uint64_t key, std::uint64_t address, std::size_t bytes, bool exact);
  /// A launch starts; the first one makes the inputs variables.
  void begin(const GlobalMemory& memory);
  /// What a reduction of a bulk copy does: `name` of elements of `type`.
  void reduce(std::byte* to, const std::byte* from, std::size_t bytes, std::string_view name,
              Type type);
  /// Elements whose variables are others, by the key that variable_key() gives.
  std::unordered_map<std::uint64_t, std::uint64_t> replaced;

  /// The element of `type` whose bits and tags these are. `warp` reads it.
  Ref read(Warp* warp, const Tag* tags, const void* bits, Type type);
  void write(Tag* tags, Ref value, Type type);
  /// The element was loaded by an instruction of `type`.
  void load(const Tag* tags, std::size_t bytes, Type type, bool signal);
  /// A comparison of `type` reads the bytes.
  void compare(const Tag* tags, std::size_t bytes, Type type);
  /// The instruction chose by numbers that rest on inputs.
  void decide(const Warp& warp, const isa::Spelling& spelling, std::uint8_t side);
  const std::unordered_map<const void*, Decision>& decisions() const { return decisions_; }
  /// Elements whose bits are infinite or NaN where their values are not.
  std::uint64_t overflows = 0;

  /// The bytes' bits are used: false if they are parts of values that were computed.
  bool take_bits(const Tag* tags, std::size_t bytes, InputUse use = by_bits);
  Ref undecided(Warp* warp, std::string text);
  /// That, in place of `bytes` bytes.
  void spoil(Warp* warp, Tag* tags, std::size_t bytes, std::string text);

  /// Nothing can be said of the launch's results.
  void give_up(Warp* warp, std::string text);
  const std::vector<Reason>& given_up() const { return given_up_; }

  struct Input {
    std::uint64_t key = 0, address = 0;
    std::size_t bytes = 0;
    bool exact = false;
    std::byte* host = nullptr;
    std::uint32_t first = 0;  // number of its first byte
  };
  const std::vector<Input>& inputs() const { return inputs_; }
  /// By the number of a byte.
  std::uint8_t use(std::uint32_t byte) const { return uses_[byte]; }
  Type type(std::uint32_t byte) const { return types_[byte]; }
  /// What loads and comparisons say of an element that starts there; of integers, the bytes of the
  /// smallest word that was read.
  Type hint(std::uint32_t byte) const { return hints_[byte]; }
  std::uint8_t width(std::uint32_t byte) const { return widths_[byte]; }
  static std::uint64_t variable_key(std::uint64_t input_key, std::uint64_t offset, Type type) {
    return mix(input_key, offset << 8 | static_cast<std::uint64_t>(type));
  }

 private:
  Ref read_input(std::uint32_t byte, std::uint64_t bits, Type type);
  void narrow(std::uint32_t byte, std::size_t bytes);

  std::vector<Input> inputs_;
  bool begun_ = false;
  std::vector<Reason> given_up_;
  std::vector<std::uint8_t> uses_;
  std::vector<Type> types_, hints_;
  std::vector<std::uint8_t> widths_;
  std::vector<Ref> elements_;
  std::unordered_map<const void*, Decision> decisions_;  // by the instruction's place
};

}  // namespace tartan::TARTAN_ABI::emulator
