// SPDX-License-Identifier: Apache-2.0
// tartan/isa/signature.h - what may follow an opcode: one row per signature of the PTX manual (PTX
// ISA 9.0, chapter 9). Those of matrix instructions are derived from compiler/isa/tables.h.
//
//   {.opcode = Opcode::fma,
//    .types = {f32},
//    .one = {"rn rz rm rp"},        // exactly one of these
//    .flags = "ftz sat",            // each of these or not
//    .operands = {dst(), src(), src(), src()},
//    .since = {{2, 0}, 20}}
//
// The assembler takes qualifiers in any order, types in the order written. Where the manual and the
// assembler of CUDA 13.0 differ, rows follow the assembler; docs/check.md lists the differences.
// Rows are in compiler/isa/signatures/, one file per family.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "tartan/isa/form.h"
#include "tartan/isa/opcode.h"
#include "tartan/isa/qualifier.h"
#include "tartan/isa/state_space.h"
#include "tartan/isa/target.h"
#include "tartan/isa/type.h"

namespace tartan::TARTAN_ABI::isa {

/// A list of at most N, for columns of constexpr rows.
template <typename T, std::size_t N>
struct List {
  std::array<T, N> items{};
  std::uint8_t size = 0;

  constexpr List() = default;
  constexpr List(std::initializer_list<T> from) {
    for (const T& each : from) items[size++] = each;  // too many: out of bounds, does not compile
  }
  constexpr const T* begin() const { return items.data(); }
  constexpr const T* end() const { return items.data() + size; }
  constexpr const T& operator[](std::size_t i) const { return items[i]; }
};

/// What an operand may be; a combination of bits.
enum Accepts : std::uint16_t {
  a_register = 1,
  an_integer = 2,    // a constant
  a_float = 4,       // a floating-point constant
  a_special = 8,     // %tid.x and such
  a_variable = 16,   // its name, for its address
  a_function = 32,   // its name, for its address
  a_sink = 64,       // _
  a_negation = 128,  // !p
  an_address = 256,  // [base + offset]
  a_label = 512,
  a_string = 1024,
  a_pair = 2048,             // d|p: `second` says what p is
  a_vector = 4096,           // {a, b}: `elements` of them
  a_list = 8192,             // (a, b) of call
  a_minus = 16384,           // -a of a register, of vmad
  a_special_vector = 32768,  // %tid as a whole
};

/// How the register of an operand must fit the operand's type.
enum class Fit : std::uint8_t {
  Exact,    // the same size, and a type that goes with it (PTX ISA 9.4)
  Wider,    // as large or larger (9.4.1: ld, st, cvt)
  AnySize,  // any integer register
  Signed,   // an integer of the same size with a sign (not .b): its type says how it is extended
  Untyped,  // .b of the same size
};

/// Whether a register of type `reg` fits an operand of type `operand`: the same size, and the same
/// type, a .b type on either side, or two integers.
constexpr bool register_fits(Type reg, Type operand, Fit fit) {
  const TypeInfo &r = info(reg), &o = info(operand);
  if (reg == operand) return true;
  if (reg == Type::pred || operand == Type::pred) return false;
  const bool untyped = r.name[0] == 'b' && r.name[1] != 'f';
  const bool any = o.name[0] == 'b' && o.name[1] != 'f';
  if (fit == Fit::AnySize) return !r.floating;
  if (fit == Fit::Signed && untyped) return false;
  if (fit == Fit::Untyped && !untyped) return false;
  const bool packed = operand >= Type::u2;  // no registers have such types
  if (!untyped && !any && (r.floating || o.floating || packed)) return false;
  if (fit != Fit::Wider) return r.bits == o.bits;
  return r.bits >= o.bits && (any || !r.floating || r.bits == o.bits);
}

/// The selector that may follow a register of a video instruction: the part or elements that are
/// used (PTX ISA 9.0, 9.7.18).
enum class Selector : std::uint8_t {
  None,
  Part,        // one of .b0 .b1 .b2 .b3 .h0 .h1
  Halves,      // two of the four halves of a and b: .h10, .h32
  Bytes,       // four of the eight bytes of a and b: .b3210, .b7777
  SomeHalves,  // those of the result that are written, the highest first: .h1, .h10
  SomeBytes,   // .b3, .b320
};

/// Whether `text` (".b0") is such a selector.
bool selector_fits(std::string_view text, Selector selector);

/// Which half of d|p may be _.
enum class SinkInPair : std::uint8_t { Either, First, Second };

/// The type of an operand: the instruction's n-th written type, or a fixed one.
struct OperandType {
  std::int8_t written = 0;  // which; -1: `fixed`
  Type fixed = Type::none;
  std::int8_t scale = 0;  // 1: twice as wide (mul.wide); -1: half as wide

  constexpr OperandType() = default;
  constexpr OperandType(Type type) : written(-1), fixed(type) {}
  constexpr explicit OperandType(int nth, int times = 0)
      : written(static_cast<std::int8_t>(nth)), scale(static_cast<std::int8_t>(times)) {}
};

/// Vector lengths that follow from the instruction's words.
enum Elements : std::int16_t {
  as_written = -1,     // .v2, .v4, .v8; none makes it a scalar
  image_offsets = -2,  // of .im2col: two less than .3d, .4d, .5d; of .im2col::w: 2
  as_repeated = -3,    // of tcgen05.ld: .x1 ... .x128 times the registers of the shape
  lane_masks = -4,     // of tcgen05.mma: 4 with .cta_group::1, 8 with .cta_group::2
  texel_offsets = -5,  // of tex: one for each dimension of .1d ... .a2dms; 4 of .3d, more of others
  gradients = -6,      // of tex.grad: the same, 4 of .3d and cubes; no more
  // Of spcompress and the like, as ratio, types and .x1 ... .x128 say.
  sparse_metadata = -7,
  sparse_values = -8,
  dense_values = -9,
  any_matrices = -10,  // of ldmatrix with the undocumented .x8: 1, 2 or 4
};

/// Bits for the state spaces whose variables an address may name.
enum Spaces : std::uint16_t {
  in_global = 1,
  in_const = 2,
  in_shared = 4,
  in_local = 8,
  in_param = 16,
  in_tensor = 32,  // tensor memory: no variables, 32-bit addresses in registers
  // Images: opaque variables, or their handles in 64-bit registers.
  as_texture = 64,
  as_sampler = 128,
  as_surface = 256,
  as_sampling = 512,  // samplers: a texture, or with .texmode_independent a sampler
  as_image = as_texture | as_sampler | as_surface | as_sampling,
  in_register = 1024,  // no variables: the address is in a register
  as_qualified = 0,    // the spaces that the instruction's qualifiers name; none: all, generically
  anywhere = 31,
};

/// The bit of a state space, with or without its sub-qualifier; 0: no variables to address.
constexpr Spaces space_bit(StateSpace space) {
  switch (memory_of(space)) {
    case StateSpace::global: return in_global;
    case StateSpace::constant: return in_const;
    case StateSpace::shared: return in_shared;
    case StateSpace::local: return in_local;
    case StateSpace::param: return in_param;
    default: return as_qualified;
  }
}

/// Coordinates of an image: 1, 2 or 4. An array's index is the first; coordinates that the
/// dimensions do not need are ignored.
inline constexpr std::int8_t texels = -2;

/// A signature's columns for one operand.
struct OperandRow {
  std::string_view name =
      {};  // in diagnostics and syntax; empty: d for results, else a, b, c in order
  std::uint16_t accepts = 0;
  OperandType type = {};
  Fit fit = Fit::Exact;
  bool written = false;                 // the instruction writes it, or to its address
  bool optional = false;                // it and all that follow may be omitted
  QualifierSet with = {};               // present if one of these words is; empty: always
  std::int16_t elements = 0;            // a_vector: how many; as_written
  std::uint16_t spaces = as_qualified;  // an_address: whose variables
  std::int8_t coordinates = 0;  // an_address: [base, {c0, ..}] with that many; -1: as .1d ... .5d
                                // say, 5 with .tile::gather4 or scatter4; 0: no second part;
                                // texels: of the operand's type, as .1d ... .a2dms say
  bool remote = false;          // an_address: [endpoint, address], behind the base if that is the
                                // tensor map; with .counted::bytes a counter follows
  bool sampled = false;         // an_address: [texture, sampler, {c0, ..}] too
  SinkInPair sinks = SinkInPair::Either;  // a_pair
  Selector selector = Selector::None;     // a_register
  bool selects = false;                   // the selector is required
  bool unified = false;                   // an_address: .unified may follow
  bool indexed = false;     // an_address: an element of an array, t[4], may stand in its place
  bool registered = false;  // a_vector: not of constants alone
  bool plain = false;       // a_register: no constant may be added to it, as in %r1+4
  bool whole = false;       // an_address: not half of one in global memory; written ones never are
  bool at_most_next = false;  // an_integer of 32 bits: not above the next operand, if that is one
  bool ranged = false;        // an_integer: low to high; a_float: above low, to high
  std::int64_t low = 0, high = 0;
  std::int64_t step = 1;   // an_integer: `low` and a multiple of this; 0: a power of two
  Since part_since = {};   // what an optional part requires: p of d|p, a sampler beside a handle
  Role role = Role::none;  // of matrix instructions
  Operand fragment = Operand::none;  // a_vector: the matrix whose fragment it is. That says how
                                     // many registers it has, and of which types
  TypeSet registers = {};    // their types, if not those that fit `type`; of an address, too
  std::int64_t threads = 0;  // a_vector of {byte-id, thread-id}: below this is the second
};

// ---- Common operands, so that rows read like the manual.

/// A destination register of the first written type, or of `type`.
constexpr OperandRow dst(OperandType type = OperandType(0), std::string_view name = {}) {
  return {.name = name, .accepts = a_register, .type = type, .written = true};
}
/// A register or a constant.
constexpr OperandRow src(OperandType type = OperandType(0), std::string_view name = {}) {
  return {.name = name, .accepts = a_register | an_integer | a_float | a_function, .type = type};
}
/// A register, not a constant.
constexpr OperandRow reg(OperandType type = OperandType(0), std::string_view name = {}) {
  return {.name = name, .accepts = a_register, .type = type};
}
/// A constant integer from `low` to `high`.
constexpr OperandRow imm(std::int64_t low, std::int64_t high, std::string_view name = "imm") {
  return {.name = name,
          .accepts = an_integer,
          .type = Type::s32,
          .ranged = true,
          .low = low,
          .high = high};
}
/// A register or a constant from 0 to 255: the position or length of a bit field.
constexpr OperandRow position() {
  return {.accepts = a_register | an_integer, .type = Type::u32, .ranged = true, .high = 255};
}
/// A predicate: p, !p or a constant.
constexpr OperandRow condition(std::string_view name = {}) {
  return {.name = name, .accepts = a_register | a_negation | an_integer, .type = Type::pred};
}
/// [base + offset] in the spaces that the qualifiers name, or in `spaces`.
constexpr OperandRow addr(std::uint16_t spaces = as_qualified, std::string_view name = "addr") {
  return {.name = name, .accepts = an_address, .type = Type::none, .spaces = spaces};
}
/// {r0, ...} of `elements` registers, or as many as .v2, .v4 or .v8 says.
constexpr OperandRow vec(int elements, OperandType type, std::string_view name = {}) {
  return {.name = name,
          .accepts =
              static_cast<std::uint16_t>(elements == as_written ? a_vector | a_register : a_vector),
          .type = type,
          .elements = static_cast<std::int16_t>(elements)};
}
/// Present only if the instruction has one of the words: with("L2::cache_hint", ...).
constexpr OperandRow with(const QualifierSet& words, OperandRow row) {
  return row.with = words, row;
}
constexpr OperandRow optional(OperandRow row) { return row.optional = true, row; }
constexpr OperandRow written(OperandRow row) { return row.written = true, row; }
constexpr OperandRow named(std::string_view name, OperandRow row) { return row.name = name, row; }
constexpr OperandRow also(std::uint16_t accepts, OperandRow row) {
  return row.accepts = static_cast<std::uint16_t>(row.accepts | accepts), row;
}
constexpr OperandRow wider(OperandRow row) { return row.fit = Fit::Wider, row; }

// ---- The memory effects of an instruction.

/// How an instruction accesses memory.
enum class Access : std::uint8_t { None, Read, Write, Atomic };

/// The proxy through which memory is accessed (PTX ISA 9.0, 8.6).
enum class Proxy : std::uint8_t { Generic, Async, Tensormap, Constant, Texture, Surface };

/// The mechanism by which an asynchronous access completes.
enum class Completion : std::uint8_t {
  Immediate,      // it is complete when the instruction is
  CpAsyncGroup,   // cp.async.wait_group, cp.async.wait_all, cp.async.mbarrier.arrive
  BulkGroup,      // cp.async.bulk.wait_group
  Mbarrier,       // a phase of the mbarrier operand, by complete_tx
  WgmmaGroup,     // wgmma.wait_group
  Tcgen05Wait,    // tcgen05.wait::ld, tcgen05.wait::st
  Tcgen05Commit,  // tcgen05.commit to an mbarrier
};

/// One access to memory: its address operand, direction, size and completion.
struct MemoryEffect {
  std::int8_t operand = -1;  // the address: index into the signature's operands
  Access access = Access::None;
  Proxy proxy = Proxy::Generic;
  Completion completion = Completion::Immediate;
  std::int8_t bytes_operand = -1;  // the operand that says how many bytes; -1: the type's
};

// ---- The row.

struct Spelling;

/// The layouts that a matrix may have.
struct Majors {
  bool row = false, col = false;
  constexpr bool has(Major major) const { return major == Major::row ? row : col; }
};

/// Words or types of the row that need a later version or particular targets.
struct Need {
  QualifierSet words;
  TypeSet types;
  Since since;
  bool together = false;  // only if one of the words and one of the types are present
};

/// A row of the table: words, types and operands that are legal together after an opcode.
struct Signature {
  Opcode opcode = Opcode::none;
  List<TypeSet, 5> types;     // the types as written, in order
  List<QualifierSet, 9> one;  // exactly one of each set
  List<QualifierSet, 9> any;  // at most one of each set
  QualifierSet flags;         // any of these
  QualifierSet twice;         // words that may occur twice, with two meanings
  Shape shape;                // of matrix instructions; n of 0: any that `refuses` takes
  List<Majors, 2> majors;     // their layouts, in order
  List<OperandRow, 12> operands;
  Since since = {{1, 0}, 10};
  List<Need, 8> needs;
  List<MemoryEffect, 4> memory;
  bool results_later = false;  // destination registers are written at the completion, not before
  /// A rule that columns cannot express: null, or a function that says why the spelling is illegal,
  /// empty if it is legal.
  std::string_view (*refuses)(const Spelling&) = nullptr;
  bool undocumented = false;  // the assembler takes it, the manual does not have it
};

/// All signatures of an opcode.
std::span<const Signature> signatures(Opcode opcode);

/// Whether some form of the opcode accesses memory through the async proxy.
bool uses_async_proxy(Opcode opcode);

/// Every word that the signature takes.
QualifierSet words(const Signature& signature);

/// Every word that some signature of the opcode has.
QualifierSet known_words(Opcode opcode);

/// The operand's name in diagnostics and syntax(): its own, or d, a, b, c.
std::string operand_name(const Signature& signature, std::size_t operand);

/// The row in the manual's notation: "fma{.ftz}{.sat}.f32 d, a, b, c".
std::string syntax(const Signature& signature);

}  // namespace tartan::TARTAN_ABI::isa
