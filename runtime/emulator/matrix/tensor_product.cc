// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/matrix/tensor_product.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/emulator/matrix/arithmetic.h"
#include "runtime/emulator/matrix/scratch_store.h"
#include "runtime/emulator/matrix/tensor_scales.h"
#include "runtime/emulator/matrix/tensor_shift.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr int lanes_of_memory = 128, columns_of_memory = 512, rows_at_once = 64;
constexpr int chunk_bytes = 16, chunk_elements = 16;  // the latter of six and four bits in bytes

// A product of 64 rows, as wgmma has them.
isa::Form form_of(const InstructionDescriptor& what) {
  isa::Form form{.opcode = isa::Opcode::wgmma};
  form.shape = {rows_at_once, static_cast<std::int16_t>(what.n), static_cast<std::int16_t>(what.k)};
  form.a = what.a;
  form.b = what.b;
  form.c = form.d = what.d;
  form.satfinite = what.saturates;
  if (what.kind == TensorKind::f8f6f4) form.kind = isa::Kind::f8f6f4;
  if (what.sparse) form.sparsity = isa::Sparsity::sp;
  return form;
}

const NumericRule& rule_for(const InstructionDescriptor& what) {
  isa::Form form = form_of(what);
  form.opcode = isa::Opcode::tcgen05_mma;
  if (is_scaled(what.kind)) {
    form.block_scale = true;
    form.kind = what.kind == TensorKind::mxf8f6f4 ? isa::Kind::mxf8f6f4 : isa::Kind::mxf4;
  }
  return rule_of(form, Hardware::sm_100);
}

// A float of so many fraction bits divided by a power of two, cut where it becomes subnormal. No
// source says how the hardware rounds there.
std::uint32_t divided(std::uint32_t bits, int fraction_bits, int exponent_bits, int power) {
  const std::uint32_t sign = bits & 1u << (fraction_bits + exponent_bits), magnitude = bits ^ sign;
  const std::uint32_t most = (1u << exponent_bits) - 1, field = magnitude >> fraction_bits;
  if (field == most || !power) return bits;
  if (field > static_cast<std::uint32_t>(power))
    return bits - (static_cast<std::uint32_t>(power) << fraction_bits);
  std::uint32_t fraction = magnitude & ((1u << fraction_bits) - 1);
  int shift = power;
  if (field) {
    fraction |= 1u << fraction_bits;
    shift = power - static_cast<int>(field) + 1;
  }
  return sign | (shift < 32 ? fraction >> shift : 0);
}

}  // namespace

struct TensorProduct::Plan {
  // Where elements of a factor are.
  struct Factor {
    Type type;
    int container, outer, k;
    bool mn_major;

    bool packed() const { return bits(type) < container; }
    int per_chunk() const { return packed() ? chunk_elements : chunk_bytes * 8 / container; }

    // The container of an element.
    std::uint32_t load(std::span<const std::byte> shared, const TileDescriptor& tile, int x,
                       int at_k) const {
      const int along = mn_major ? x : at_k, inside = packed() ? along % chunk_elements : 0;
      const std::uint64_t address = tile.address(mn_major, container, mn_major ? x - inside : x,
                                                 mn_major ? at_k : at_k - inside);
      std::uint32_t word = 0;
      if (!packed()) {
        std::memcpy(&word, shared.data() + address, static_cast<std::size_t>(container) / 8);
        return word;
      }
      const int bit = inside * bits(type);
      std::memcpy(&word, shared.data() + address + bit / 8, bit / 8 + 2 <= chunk_bytes ? 2 : 1);
      word = word >> bit % 8 & ((1u << bits(type)) - 1);
      return type == Type::e2m1 ? word << 2 : word;
    }
    // Cells of an image (lane_map.h): (k / E) * of + x, where x begins at `to`. Rows of A begin
    // anew behind the last; columns of B that are not taken are zeros.
    void read(std::span<const std::byte> shared, const TileDescriptor& tile,
              std::vector<std::uint32_t>& image, int first, int count, int to, int of,
              const ColumnMask* mask = nullptr) const {
      const int per_cell = 32 / container;
      if (to == 0) image.assign(static_cast<std::size_t>(of * k / per_cell), 0);
      for (int cell = 0; cell < k / per_cell; ++cell)
        for (int x = 0; x < count; ++x) {
          if (mask && !mask->takes(x)) continue;
          const int at = mask ? first + x : (first + x) % outer;
          std::uint32_t& word = image[static_cast<std::size_t>(cell * of + to + x)];
          if (!mn_major && !packed()) {
            std::memcpy(&word, shared.data() + tile.address(false, container, at, cell * per_cell),
                        4);
            continue;
          }
          for (int i = 0; i < per_cell; ++i)
            word |= load(shared, tile, at, cell * per_cell + i) << i * container;
        }
    }
    // Of rows or columns from `shift` on, which count from 0.
    std::vector<TileBytes> bytes(const TileDescriptor& tile, const ColumnMask& mask) const {
      std::vector<TileBytes> out;
      const int step = per_chunk(), across = mn_major ? step : 1;
      for (int x = mask.shift / across * across; x < outer + mask.shift; x += across) {
        const int first = std::max(x - mask.shift, 0),
                  last = std::min(x - mask.shift + across, outer);
        bool taken = false;
        for (int i = first; i < last; ++i) taken |= mask.takes(i);
        for (int at = 0; taken && at < k; at += mn_major ? 1 : step)
          out.push_back({tile.address(mn_major, container, x, at), first, last - first});
      }
      return out;
    }
  };

  Plan(const InstructionDescriptor& what, Path path)
      : what(what),
        rule(rule_for(what)),
        a{what.a, what.container_bits(what.a), what.rows(), what.stored(), what.transposes_a},
        b{what.b, what.container_bits(what.b), what.columns(), what.k, what.transposes_b} {
    if (!is_scaled(what.kind)) arithmetic.emplace(form_of(what), rule, false, path);
    for (int m = 0; m < rows_of_d(); ++m)
      lanes.push_back(static_cast<std::uint8_t>(what.in_halves() ? m / 16 * 32 + m % 16 : m));
  }

  /// Rows of all parts.
  int rows_of_d() const { return what.rows() * what.parts(); }
  /// Codes of a row, and where they are: a code for each two (tf32), four or (four bits)
  /// eight elements of k. Where an
  /// element has 16 bits or more, those of 16 rows are in the lanes of 16, eight of them in the
  /// upper half of the cells.
  int codes() const { return what.k / (a.container == 32 ? 2 : a.container == 4 ? 8 : 4); }
  std::uint32_t code(const TensorOperands& operands, int m, int j) const {
    int lane = m, bit = 4 * j;
    if (a.container >= 16) {
      lane = m / 16 * 16 + j / 4 * 8 + m % 8;
      bit = j % 4 * 4 + m / 8 % 2 * 16;
    }
    // No source tells where those of 64 rows are: as A and D, which begin in the same lane.
    if (what.in_halves()) lane = lane / 16 * 32 + lane % 16 + operands.half;
    return operands.cells[lane * columns_of_memory + operands.metadata_column + bit / 32] >>
               bit % 32 &
           15;
  }

  InstructionDescriptor what;
  const NumericRule& rule;
  Factor a, b;
  std::optional<Arithmetic> arithmetic;
  std::vector<std::uint8_t> lanes;
};

TensorProduct::TensorProduct(const InstructionDescriptor& what, Path path)
    : plan_(std::make_shared<const Plan>(what, path)) {}

const TensorProduct& TensorProduct::of(const InstructionDescriptor& what, std::uint32_t bits,
                                       Scratch& scratch) {
  constexpr std::size_t most = 256;
  auto& made = scratch.store().tensor_products;
  if (made.size() >= most) made.clear();
  return made.try_emplace({what.kind, what.pair, what.stationary, bits}, what).first->second;
}

const NumericRule* least_known_product(Scratch& scratch) {
  const NumericRule* out = nullptr;
  for (const auto& [key, product] : scratch.store().tensor_products)
    if (!out || out->trust < product.rule().trust) out = &product.rule();
  return out;
}

const NumericRule& TensorProduct::rule() const { return plan_->rule; }
const InstructionDescriptor& TensorProduct::what() const { return plan_->what; }
std::span<const std::uint8_t> TensorProduct::lanes() const { return plan_->lanes; }

std::vector<TileBytes> TensorProduct::bytes_of_a(const TileDescriptor& tile) const {
  return plan_->a.bytes(tile, {});
}
std::vector<TileBytes> TensorProduct::bytes_of_b(const TileDescriptor& tile,
                                                 const ColumnMask& mask) const {
  return plan_->b.bytes(tile, mask);
}

void TensorProduct::run(const TensorOperands& operands, Scratch& scratch) const {
  const InstructionDescriptor& what = plan_->what;
  auto& store = scratch.store().warpgroup;
  const bool half = what.d == Type::f16;
  const auto row_of = [&](int m) {
    return operands.cells +
           (plan_->lanes[static_cast<std::size_t>(m)] + operands.half) * columns_of_memory;
  };
  const auto a_row = [&](int m) {
    const int row = m % what.rows();
    return operands.shifts_a ? m - row + shifted_from(row) : m;
  };
  const int columns = what.columns_of_part(), all_rows = plan_->rows_of_d();
  for (int cta = 0; cta < (what.pair ? 2 : 1); ++cta)
    plan_->b.read(what.pair ? operands.of_pair[static_cast<std::size_t>(cta)] : operands.shared,
                  operands.b, store.b, operands.mask.shift, what.columns(), cta * what.columns(),
                  what.n, &operands.mask);
  // All of D is written behind all that is read.
  std::vector<std::uint32_t> results(static_cast<std::size_t>(all_rows * what.n));
  for (int first = 0; first < all_rows; first += rows_at_once) {
    if (operands.a_in_tensor) {
      const int cells = what.stored() * plan_->a.container / 32;
      store.a.resize(static_cast<std::size_t>(cells * rows_at_once));
      for (int cell = 0; cell < cells; ++cell)
        for (int m = 0; m < rows_at_once; ++m)
          store.a[static_cast<std::size_t>(cell * rows_at_once + m)] =
              row_of(a_row(first + m))[operands.a_column + cell];
    } else {
      plan_->a.read(operands.shared, operands.a, store.a, first, rows_at_once, 0, rows_at_once);
    }
    store.c.assign(static_cast<std::size_t>(rows_at_once * what.n), 0);
    store.d.resize(store.c.size());
    for (int column = 0; operands.accumulates && column < columns; ++column)
      for (int m = 0; m < rows_at_once; ++m) {
        const std::uint32_t cell = row_of(first + m)[operands.d_column + column];
        const int n = (first + m) / what.rows() * columns + column;
        store.c[static_cast<std::size_t>(n * rows_at_once + m)] =
            half                  ? divided(cell & 0xFFFF, 10, 5, operands.scale_d)
            : what.d == Type::f32 ? divided(cell, 23, 8, operands.scale_d)
                                  : cell;
      }
    if (plan_->arithmetic) {
      Images images;
      images.a = store.a.data();
      images.b = store.b.data();
      images.c = store.c.data();
      images.d = store.d.data();
      images.scratch = &scratch;
      std::array<std::uint32_t, lanes_of_memory> metadata{};
      if (what.sparse) {
        // As a warpgroup's registers have it.
        for (int m = 0; m < rows_at_once; ++m)
          for (int j = 0; j < plan_->codes(); ++j) {
            const isa::MetadataBits at = isa::metadata(form_of(what), m, j, 0);
            metadata[static_cast<std::size_t>(at.lane)] |= plan_->code(operands, first + m, j)
                                                           << at.lowest;
          }
        images.metadata = metadata.data();
      }
      images.negate_a = what.negates_a;
      images.negate_b = what.negates_b;
      plan_->arithmetic->run(images);
    } else {
      std::vector<std::uint8_t> codes;
      for (int m = 0; what.sparse && m < rows_at_once; ++m)
        for (int j = 0; j < plan_->codes(); ++j)
          codes.push_back(static_cast<std::uint8_t>(plan_->code(operands, first + m, j)));
      multiply_scaled({what, plan_->rule, operands.blocks, codes.data()}, operands, first,
                      rows_at_once, store.a.data(), store.b.data(), store.c.data(), store.d.data());
    }
    std::ranges::copy(store.d, results.begin() + static_cast<std::ptrdiff_t>(first) * what.n);
  }
  for (int m = 0; m < all_rows; ++m) {
    const int lane = plan_->lanes[static_cast<std::size_t>(m)] + operands.half;
    if (operands.disabled && operands.disabled[lane / 32] >> lane % 32 & 1) continue;
    const std::uint32_t* const from =
        results.data() + m / rows_at_once * rows_at_once * what.n + m % rows_at_once;
    for (int column = 0; column < columns; ++column)
      row_of(m)[operands.d_column + column] =
          from[(m / what.rows() * columns + column) * rows_at_once];
  }
}

int TensorProduct::metadata_columns() const { return plan_->a.container >= 16 ? 1 : 2; }

std::optional<TensorProduct::IllegalCode> TensorProduct::illegal_code(
    const TensorOperands& operands) const {
  for (int m = 0; m < plan_->rows_of_d(); ++m)
    for (int j = 0; j < plan_->codes(); ++j) {
      const std::uint32_t code = plan_->code(operands, m, j);
      const bool legal =
          plan_->a.container == 32 ? code == 4 || code == 14 : (code & 3) < code >> 2;
      if (!legal) return IllegalCode{m, j, code};
    }
  return std::nullopt;
}

std::uint64_t TensorProduct::multiply_adds() const {
  const InstructionDescriptor& what = plan_->what;
  return std::uint64_t{1} * static_cast<unsigned>(what.rows() * what.n) *
         static_cast<unsigned>(what.stored());
}

namespace {

const NumericRule& least_known(TensorKind kind) {
  InstructionDescriptor what{.kind = kind, .d = f32, .m = 128, .n = 8, .k = 32};
  switch (kind) {
    case TensorKind::f16: what.a = Type::f16; break;
    case TensorKind::tf32: what.a = Type::tf32; break;
    case TensorKind::f8f6f4:
    case TensorKind::mxf8f6f4: what.a = Type::e4m3; break;
    case TensorKind::i8: what.a = Type::s8; break;
    case TensorKind::mxf4:
    case TensorKind::mxf4nvf4: what.a = Type::e2m1; break;
  }
  what.b = what.a;
  if (kind == TensorKind::i8) what.d = Type::s32;
  return rule_for(what);
}

}  // namespace

Trust tensor_trust(TensorKind kind) { return least_known(kind).trust; }
std::string_view tensor_source(TensorKind kind) { return least_known(kind).source; }

}  // namespace tartan::TARTAN_ABI::emulator
