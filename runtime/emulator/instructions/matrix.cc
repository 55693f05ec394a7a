// SPDX-License-Identifier: Apache-2.0
// Matrix instructions: fragments between registers and memory by the lane maps of compiler/isa,
// products by runtime/emulator/matrix.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "compiler/isa/hints.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"
#include "tartan/isa/fragment.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Element `i` of a row in memory, of the types that ldmatrix reads: six and four bits are packed
// from the low end. s4 becomes s8.
std::uint32_t row_element(const std::byte* row, Type type, int i) {
  const int width = bits(type);
  if (width == 16) {
    std::uint16_t value;
    std::memcpy(&value, row + 2 * i, 2);
    return value;
  }
  const int bit = i * width;
  std::uint32_t word = 0;
  std::memcpy(&word, row + bit / 8, bit % 8 + width > 8 ? 2 : 1);
  const std::uint32_t value = word >> bit % 8 & ((1u << width) - 1);
  return type == Type::s4 ? ((value ^ 8) - 8) & 0xFF : value;
}

// The addresses of the rows, from the lanes that hold them; false with a finding if one is bad.
bool resolve_rows(Warp& warp, const Op& op, const MatrixOperation& m, Access& access) {
  const std::uint32_t whole = warp.mask;
  warp.mask = m.addresses >= 32 ? all_lanes : (1u << m.addresses) - 1;
  const bool good = resolve(warp, op, m.row_bytes(), access);
  warp.mask = whole;
  return good;
}

void load_matrix(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  const MatrixOperation& m = warp.program->matrices[op.list];
  const isa::Fragment fragment = isa::fragment(m.form, Operand::d);
  const Type stored = m.form.a == Type::none ? m.form.d : m.form.a;
  Access access;
  if (!resolve_rows(warp, op, m, access)) return;
  std::uint32_t out[8][32] = {};
  const RowElement* place = m.places.data();
  for (int i = 0; i < fragment.elements(); ++i) {
    std::uint32_t* words = out[i / fragment.per_register];
    const int shift = i % fragment.per_register * fragment.container_bits;
    for (int lane = 0; lane < 32; ++lane, ++place)
      words[lane] |= row_element(access.at[place->row], stored, place->col) << shift;
  }
  for (std::size_t r = 0; r < m.d.size(); ++r) {
    auto* d = lanes<std::uint32_t>(warp, m.d[r]);
    each_lane(warp.mask, [&](int i) { d[i] = out[r][i]; });
  }
}

void store_matrix(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  const MatrixOperation& m = warp.program->matrices[op.list];
  const isa::Fragment fragment = isa::fragment(m.form, Operand::d);
  const std::size_t bytes = static_cast<std::size_t>(fragment.container_bits) / 8;
  Access access;
  if (!resolve_rows(warp, op, m, access)) return;
  for (int i = 0; i < fragment.elements(); ++i) {
    const auto* source =
        lanes<std::uint32_t>(warp, m.c[static_cast<std::size_t>(i / fragment.per_register)]);
    const RowElement* places = m.places.data() + 32 * i;
    each_lane(warp.mask, [&](int lane) {
      const std::uint32_t value =
          source[lane] >> i % fragment.per_register * fragment.container_bits;
      std::memcpy(access.at[places[lane].row] + places[lane].col * bytes, &value, bytes);
    });
  }
}

// ldmatrix and stmatrix of 8x8 matrices of 16 bits: four neighbouring lanes have a row of 16 bytes
// (or a column of it with .trans). plain_move() says where the lane map is this one.
struct PlainMove {
  bool whole = false, transposed = false;
};

PlainMove plain_move(const MatrixOperation& m) {
  const isa::Fragment fragment = isa::fragment(m.form, Operand::d);
  if (fragment.container_bits != 16 || fragment.per_register != 2 || m.form.shape.m != 8) return {};
  if (m.form.a != Type::none && bits(m.form.a) != 16) return {};
  PlainMove move{true, m.form.trans};
  for (int i = 0; i < fragment.elements(); ++i)
    for (int lane = 0; lane < 32; ++lane) {
      const RowElement place = m.places[static_cast<std::size_t>(32 * i + lane)];
      const int along = 2 * (lane % 4) + i % 2, first = i / 2 * 8;
      const int row = first + (move.transposed ? along : lane / 4),
                col = move.transposed ? lane / 4 : along;
      move.whole &= place.row == row && place.col == col;
    }
  return move;
}

using Row = std::uint16_t __attribute__((vector_size(16)));

// Eight rows of eight.
inline void transpose(Row (&x)[8]) {
  Row y[8];
  for (int i = 0; i < 4; ++i) {
    y[2 * i] = __builtin_shufflevector(x[i], x[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
    y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
  }
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = __builtin_shufflevector(y[i], y[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
    x[2 * i + 1] = __builtin_shufflevector(y[i], y[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
  }
  for (int i = 0; i < 4; ++i) {
    y[2 * i] = __builtin_shufflevector(x[i], x[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
    y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; ++i) x[i] = y[i];
}

template <bool Transposed>
void load_rows(Warp& warp, const Op& op) {
  if (warp.mask != all_lanes) return load_matrix(warp, op);
  warp.examine_gathered();
  const MatrixOperation& m = warp.program->matrices[op.list];
  const std::size_t matrices = m.d.size();
  Access access;
  if (!resolve_rows(warp, op, m, access)) return;
  Row rows[4][8];  // read before a register is written: it may be the address
  for (std::size_t r = 0; r < matrices; ++r) {
    for (std::size_t i = 0; i < 8; ++i) std::memcpy(&rows[r][i], access.at[8 * r + i], sizeof(Row));
    if constexpr (Transposed) transpose(rows[r]);
  }
  for (std::size_t r = 0; r < matrices; ++r)
    std::memcpy(lanes<std::uint32_t>(warp, m.d[r]), rows[r], sizeof rows[r]);
}

template <bool Transposed>
void store_rows(Warp& warp, const Op& op) {
  if (warp.mask != all_lanes) return store_matrix(warp, op);
  warp.examine_gathered();
  const MatrixOperation& m = warp.program->matrices[op.list];
  const std::size_t matrices = m.c.size();
  Access access;
  if (!resolve_rows(warp, op, m, access)) return;
  for (std::size_t r = 0; r < matrices; ++r) {
    Row rows[8];
    std::memcpy(rows, lanes<std::uint32_t>(warp, m.c[r]), sizeof rows);
    if constexpr (Transposed) transpose(rows);
    for (std::size_t i = 0; i < 8; ++i) std::memcpy(access.at[8 * r + i], &rows[i], sizeof(Row));
  }
}

// The handler of a load or store that is no plain one, or a faster one.
Handler faster_move(const MatrixOperation& m, Handler handler) {
  const PlainMove move = plain_move(m);
  if (!move.whole) return handler;
  if (handler == load_matrix) return move.transposed ? load_rows<true> : load_rows<false>;
  return move.transposed ? store_rows<true> : store_rows<false>;
}

void transpose_matrix(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  const isa::Form& form = warp.program->matrices[op.list].form;
  const auto* a = lanes<std::uint32_t>(warp, op.a);
  std::uint32_t out[32] = {};
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 2; ++i) {
      const isa::Coord at = isa::coord(form, Operand::d, lane, i);
      out[lane] |= (a[4 * at.row + at.col / 2] >> at.col % 2 * 16 & 0xFFFF) << 16 * i;
    }
  auto* d = lanes<std::uint32_t>(warp, op.d);
  each_lane(warp.mask, [&](int i) { d[i] = out[i]; });
}

// ---- wmma.load and wmma.store: element (row, col) of the matrix at row * stride + col (.row) or
// col * stride + row (.col).

std::uint64_t element_bits(const isa::Form& form, RowElement at, std::uint64_t stride) {
  const std::uint64_t row = at.row, col = at.col;
  const std::uint64_t index = form.a_major == Major::col ? col * stride + row : row * stride + col;
  return index * static_cast<std::uint64_t>(bits(form.d));
}

// Says which bits of a fragment's register an element takes.
void note_element(Warp& warp, const MatrixOperation& m, bool stores, int lane, int i,
                  std::byte* at) {
  if (!warp.block->cluster().values_are_followed()) return;
  const isa::Fragment fragment = isa::fragment(m.form, m.form.operand);
  const auto r = static_cast<std::size_t>(i / fragment.per_register);
  const ElementPlace place{.slot = stores ? m.c[r] : m.d[r],
                           .shift = i % fragment.per_register * fragment.container_bits,
                           .width = bits(m.form.d),
                           .register_bits = fragment.register_bits};
  if (stores) tell(warp, &ValueEvents::store_element, lane, at, place);
  else tell(warp, &ValueEvents::load_element, lane, at, place);
}

// Calls body(lane, element, host address of its byte, first bit in it) for every element of the
// fragment.
// With `stores`, they are written.
template <typename Body>
void each_element(Warp& warp, const Op& op, const MatrixOperation& m, bool stores, Body&& body) {
  const isa::Fragment fragment = isa::fragment(m.form, m.form.operand);
  std::uint64_t base[32], at[32] = {};
  addresses(warp, op, base);
  const auto* strides = lanes<std::uint32_t>(warp, op.b);
  const auto bytes = static_cast<std::uint32_t>(std::max(bits(m.form.d), 8) / 8);
  for (int i = 0; i < fragment.elements(); ++i) {
    std::uint64_t bit[32] = {};
    each_lane(warp.mask, [&](int lane) {
      bit[lane] =
          element_bits(m.form, m.places[static_cast<std::size_t>(32 * i + lane)], strides[lane]);
      at[lane] = base[lane] + bit[lane] / 8;
    });
    Access access;
    if (!resolve(warp, op.window, at, bytes, access)) return;
    const LaneAccess access_of_lanes{.window = op.window,
                                     .lanes = warp.mask,
                                     .bytes = bytes,
                                     .at = at,
                                     .writes = stores,
                                     .collective = !stores};
    tell(warp, &Events::access, access_of_lanes);
    each_lane(warp.mask, [&](int lane) {
      note_element(warp, m, stores, lane, i, access.at[lane]);
      body(lane, i, access.at[lane], static_cast<int>(bit[lane] % 8));
    });
  }
}

void load_fragment(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  const MatrixOperation& m = warp.program->matrices[op.list];
  const isa::Fragment fragment = isa::fragment(m.form, m.form.operand);
  const int width = bits(m.form.d);
  std::uint64_t out[8][32] = {};
  each_element(warp, op, m, false, [&](int lane, int i, const std::byte* from, int bit) {
    std::uint64_t value = 0;
    std::memcpy(&value, from, static_cast<std::size_t>(std::max(width, 8) / 8));
    value = value >> bit & (width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1);
    out[i / fragment.per_register][lane] |= value
                                            << i % fragment.per_register * fragment.container_bits;
  });
  if (warp.leave && warp.block->stopped()) return;
  for (std::size_t r = 0; r < m.d.size(); ++r) {
    if (fragment.register_bits == 64) {
      auto* d = lanes<std::uint64_t>(warp, m.d[r]);
      each_lane(warp.mask, [&](int i) { d[i] = out[r][i]; });
    } else {
      auto* d = lanes<std::uint32_t>(warp, m.d[r]);
      each_lane(warp.mask, [&](int i) { d[i] = static_cast<std::uint32_t>(out[r][i]); });
    }
  }
}

void store_fragment(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  const MatrixOperation& m = warp.program->matrices[op.list];
  const isa::Fragment fragment = isa::fragment(m.form, m.form.operand);
  const std::size_t bytes = static_cast<std::size_t>(bits(m.form.d)) / 8;
  each_element(warp, op, m, true, [&](int lane, int i, std::byte* to, int) {
    const std::size_t r = static_cast<std::size_t>(i / fragment.per_register);
    const std::uint64_t word = fragment.register_bits == 64
                                   ? lanes<std::uint64_t>(warp, m.c[r])[lane]
                                   : lanes<std::uint32_t>(warp, m.c[r])[lane];
    const std::uint64_t value = word >> i % fragment.per_register * fragment.container_bits;
    std::memcpy(to, &value, bytes);
  });
}

// ---- Products.

// What a pair of selector registers holds: one value for all lanes of the warp, in range. Anything
// else is undefined on the hardware: nothing, and a finding.
struct Selected {
  int byte = 0, thread = 0;
};

std::optional<Selected> read_selector(Warp& warp, const std::optional<ScaleSelector>& selector) {
  if (!selector) return Selected{};
  const auto *bytes = lanes<std::uint32_t>(warp, selector->byte),
             *threads = lanes<std::uint32_t>(warp, selector->thread);
  const int first = std::countr_zero(warp.mask);
  const std::uint32_t differing = lanes_where(warp.mask, [=](int lane) {
    return bytes[lane] != bytes[first] || threads[lane] != threads[first];
  });
  if (differing) {
    const int lane = std::countr_zero(differing);
    warp.fail(
        "scale-selector"_rule,
        fmt::format(
            "lanes {} and {} pass different {{byte-id, thread-id}}: {{{}, {}}} and {{{}, {}}}",
            first, lane, bytes[first], threads[first], bytes[lane], threads[lane]),
        lane);
    return std::nullopt;
  }
  if (bytes[first] > selector->highest || bytes[first] % selector->step ||
      threads[first] >= selector->threads) {
    warp.fail("scale-selector"_rule,
              fmt::format("illegal {{byte-id, thread-id}} {{{}, {}}}: byte-id is 0 to {} in steps "
                          "of {}, thread-id 0 to {}",
                          bytes[first], threads[first], selector->highest, selector->step,
                          selector->threads - 1),
              first);
    return std::nullopt;
  }
  return Selected{static_cast<int>(bytes[first]), static_cast<int>(threads[first])};
}

void product(Warp& warp, const Op& op) {
  if (!warp.gather_whole()) return;
  const MatrixOperation& m = warp.program->matrices[op.list];
  const auto select_a = read_selector(warp, m.select_a), select_b = read_selector(warp, m.select_b);
  if (!select_a || !select_b) return;
  const ScalePlaces places{select_a->byte, select_a->thread, select_b->byte, select_b->thread};
  if (!ask(warp, &ValueEvents::multiply, m, places)) return;
  void *d[8], *a[8], *b[8], *c[8];
  const auto point = [&](void** to, const std::vector<std::uint32_t>& slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) to[i] = warp.arena + slots[i];
  };
  point(d, m.d);
  point(a, m.a);
  point(b, m.b);
  point(c, m.c);
  const auto words = [&](const std::optional<std::uint32_t>& slot) {
    return slot ? lanes<std::uint32_t>(warp, *slot) : nullptr;
  };
  m.product->run({.d = d,
                  .a = a,
                  .b = b,
                  .c = c,
                  .metadata = words(m.metadata),
                  .selector = m.selector,
                  .scale_a = words(m.scale_a),
                  .scale_b = words(m.scale_b),
                  .byte_a = select_a->byte,
                  .thread_a = select_a->thread,
                  .byte_b = select_b->byte,
                  .thread_b = select_b->thread},
                 warp.block->cluster().scratch);
  warp.multiply_adds += m.product->multiply_adds();
}

// ---- Decoding.

// The leading dimension where no stride is written: the matrix lies densely.
std::uint32_t default_stride(const isa::Form& form) {
  const isa::Fragment fragment = isa::fragment(form, form.operand);
  return static_cast<std::uint32_t>(form.a_major == Major::col ? fragment.rows : fragment.cols);
}

bool read_operand(Decoder& d, const ptx::Operand& operand, const isa::OperandSpec& spec,
                  MatrixOperation& m, Op& op) {
  using isa::Role;
  switch (spec.role) {
    case Role::d: m.d = d.fragment(operand, spec, true); break;
    case Role::a: m.a = d.fragment(operand, spec, false); break;
    case Role::b: m.b = d.fragment(operand, spec, false); break;
    case Role::c: m.c = d.fragment(operand, spec, false); break;
    case Role::address: d.address(op, operand, window_of(m.form.space)); break;
    case Role::stride: op.b = d.source(operand, Type::u32); break;
    case Role::metadata: m.metadata = d.source(operand, Type::b32); break;
    case Role::selector: m.selector = d.immediate(operand, spec); break;
    case Role::scale_a: m.scale_a = d.source(operand, Type::b32); break;
    case Role::scale_b: m.scale_b = d.source(operand, Type::b32); break;
    case Role::select_a:
    case Role::select_b: {
      const auto pair = d.children(operand);
      if (operand.kind != ptx::OperandKind::Vector || pair.size() != 2)
        return d.unsupported("expected a {byte-id, thread-id} pair"), false;
      (spec.role == Role::select_a ? m.select_a : m.select_b) = ScaleSelector{
          d.source(pair[0], Type::u16), d.source(pair[1], Type::u16),
          static_cast<std::uint32_t>(spec.high), static_cast<std::uint32_t>(spec.step),
          static_cast<std::uint32_t>(spec.threads)};
      break;
    }
    default: d.unsupported(); break;
  }
  return !d.failed();
}

// The places of a load's or store's elements, worked out once.
std::vector<RowElement> places_of(const isa::Form& form, bool fragment_move) {
  std::vector<RowElement> out;
  const Operand operand = fragment_move ? form.operand : Operand::d;
  for (int i = 0; i < isa::fragment(form, operand).elements(); ++i)
    for (int lane = 0; lane < 32; ++lane) {
      const isa::Coord at = isa::coord(form, operand, lane, i);
      const int row = fragment_move ? at.row : isa::address_lane(form, at.matrix, at.row);
      out.push_back({static_cast<std::uint8_t>(row), static_cast<std::uint8_t>(at.col)});
    }
  return out;
}

// PTX ISA, "ldmatrix": on sm_75 all lanes have a valid address, later those that name a row.
int addresses_of(const isa::Form& form, Hardware hardware) {
  const int matrices = isa::fragment(form, Operand::d).matrices;
  if (form.opcode == isa::Opcode::stmatrix) return 8 * matrices;
  return hardware <= Hardware::sm_75 ? 32 : form.shape.m * matrices;
}

void decode_matrix(Decoder& d, Handler handler) {
  const isa::Spelling& spelling = d.spelling.as_read();
  d.spelling.ignore_all();
  if (spelling.signatures.empty())
    return d.error(isa::mismatch_rule(spelling), isa::mismatch(spelling));
  MatrixOperation m{.form = isa::form_of(spelling)};
  const bool fragment_move =
      m.form.opcode == isa::Opcode::wmma_load || m.form.opcode == isa::Opcode::wmma_store;
  if (fragment_move) m.form.stride = d.operand_count() == 3;
  const auto instruction = isa::find(m.form);
  if (!instruction)
    return d.error("unknown-form"_rule, fmt::format("unknown instruction {}", d.spelling.text()));
  if (!d.expect_operands(instruction->operands.size(), instruction->operands.size())) return;

  Op op{};
  if (fragment_move && !m.form.stride) op.b = d.constant(default_stride(m.form), 32);
  for (std::size_t i = 0; i < instruction->operands.size(); ++i)
    if (!read_operand(d, d.operand(i), instruction->operands[i], m, op)) return;
  if (handler == product) {
    auto made = MatrixProduct::make(m.form, d.hardware());
    if (!made) return d.unsupported(made.diags()[0].message);
    m.product = std::move(*made);
    d.rest_on(m.product->trust(), m.product->source());
  }
  const bool rows =
      m.form.opcode == isa::Opcode::ldmatrix || m.form.opcode == isa::Opcode::stmatrix;
  if (fragment_move || rows) m.places = places_of(m.form, fragment_move);
  if (rows) m.addresses = addresses_of(m.form, d.hardware());
  if (m.form.a == Type::s4 && rows) d.rest_on(Trust::Documented, manual_source);
  Op& emitted = d.emit(rows ? faster_move(m, handler) : handler);
  emitted.window = op.window;
  emitted.wide = op.wide;
  emitted.value = op.value;
  emitted.writes = m.form.opcode == isa::Opcode::stmatrix;
  emitted.a = m.form.opcode == isa::Opcode::movmatrix ? m.a.front() : op.a;
  emitted.b = op.b;
  emitted.d = m.d.empty() ? 0 : m.d.front();
  emitted.list = static_cast<std::uint32_t>(d.program().matrices.size());
  d.program().matrices.push_back(std::move(m));
}

template <Handler handler>
void decode(Decoder& d) {
  decode_matrix(d, handler);
}

}  // namespace

constexpr EmulatedRow matrix_rows[] = {
    {Opcode::ldmatrix, decode<load_matrix>, Flow::LoadsRows, ValueSources::None, Meaning::LoadsRows,
     AccessKind::LoadsRows, Idle::No, nothing},
    {Opcode::stmatrix, decode<store_matrix>, Flow::StoresRows, ValueSources::None,
     Meaning::StoresRows, AccessKind::StoresRows, Idle::No, nothing},
    {Opcode::movmatrix, decode<transpose_matrix>, Flow::Transposes, ValueSources::None,
     Meaning::Transposes, AccessKind::None, Idle::No, nothing},
    {Opcode::wmma_load, decode<load_fragment>, Flow::ByHandler, ValueSources::None,
     Meaning::ByHandler, AccessKind::None, Idle::No, nothing},
    {Opcode::wmma_store, decode<store_fragment>, Flow::ByHandler, ValueSources::Source,
     Meaning::ByHandler, AccessKind::None, Idle::No, nothing},
    {Opcode::wmma_mma, decode<product>, Flow::Multiplies, ValueSources::None, Meaning::ByHandler,
     AccessKind::None, Idle::No, nothing},
    {Opcode::mma, decode<product>, Flow::Multiplies, ValueSources::None, Meaning::ByHandler,
     AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(matrix_rows, topics::matrix));

}  // namespace tartan::TARTAN_ABI::emulator
