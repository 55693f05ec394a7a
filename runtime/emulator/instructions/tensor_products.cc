// SPDX-License-Identifier: Apache-2.0
// The tensor core of tcgen05 (PTX ISA 9.0, 9.7.16.10): products of a CTA or a pair.
//
// A product is done when it is issued. Observers know that D, and what it reads, is the tensor
// core's up to the phase of the mbarrier of a commit (tensor_commits.cc).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "runtime/emulator/instructions/bulk.h"
#include "runtime/emulator/instructions/mbarriers.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/instructions/tensor_agreement.h"
#include "runtime/emulator/instructions/tensor_commits.h"
#include "runtime/emulator/instructions/tensor_issue.h"
#include "runtime/emulator/instructions/tensor_operands.h"
#include "runtime/emulator/instructions/tensor_product_words.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"
#include "runtime/emulator/matrix/tensor_product.h"
#include "runtime/emulator/matrix/tensor_scales.h"
#include "runtime/emulator/matrix/tensor_shift.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using enum TensorProductWords::Word;

// In op.flags. `is_stationary`: .ws; `has_mask`: of B's columns; `of_pair`: .cta_group::2.
constexpr std::uint8_t a_in_tensor = 1, has_disabled = 2, is_sparse = 4, is_stationary = 8,
                       has_mask = 16, of_pair = 32, shifts_a = 64;
// op.count: the kind

// One lane's product, as it is put together.
class Multiplication {
 public:
  Multiplication(Warp& warp, const Op& op, int lane) : warp_(warp), op_(op), lane_(lane) {}

  void run() {
    for (Block* each : ctas_of(warp_, op_.flags & of_pair, lane_)) parts_.push_back({.cta = each});
    if (parts_.empty() || !read_descriptor() || !read_mask() || !place_d() || !place_a() ||
        !place_tiles())
      return;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      operands_.of_pair[i] = {parts_[i].cta->shared(), parts_[i].cta->shared_bytes()};
    for (Part& each : parts_)
      if (!agrees(each) || !place_scales(each) || !place_metadata(each)) return;
    if (!tell_observers()) return;
    for (const Part& each : parts_) {
      product_->run(operands_of(each), warp_.block->cluster().scratch);
      warp_.multiply_adds += product_->multiply_adds();
    }
  }

 private:
  // What a CTA has of it.
  struct Part {
    Block* cta;
    std::vector<TileChunk> a = {}, b = {};
    std::vector<TensorArea> scales = {}, others = {};  // and metadata; others: of what counts alone
  };
  TensorMemory& memory(const Part& part) { return part.cta->tensor(); }
  TensorOperands operands_of(const Part& part) {
    TensorOperands out = operands_;
    out.shared = {part.cta->shared(), part.cta->shared_bytes()};
    out.cells = memory(part).cells();
    if (operands_.disabled && &part != parts_.data()) out.disabled += 4;
    return out;
  }
  std::uint32_t word(std::uint32_t which) const { return warp_.program->slots[op_.list + which]; }
  std::uint32_t value(std::uint32_t slot) { return lanes<std::uint32_t>(warp_, word(slot))[lane_]; }
  bool fail(const Rule& rule, std::string message) {
    warp_.fail(rule, std::move(message), lane_);
    return false;
  }

  bool read_descriptor() {
    const auto kind = static_cast<TensorKind>(op_.count);
    const std::uint32_t bits = value(idesc_slot);
    const std::string why = decode(kind,
                                   {.sparse = (op_.flags & is_sparse) != 0,
                                    .pair = (op_.flags & of_pair) != 0,
                                    .stationary = (op_.flags & is_stationary) != 0},
                                   bits, what_);
    if (!why.empty())
      return fail("instruction-descriptor"_rule,
                  fmt::format("instruction descriptor {}; it says {}", why, meaning(kind, bits)));
    const bool of_96 = what_.k == 96;
    // K = 96 has half as many again, at any id (three) or an even one (six).
    const int named = static_cast<int>(word(block_count)), step = of_96 ? named / 2 : named;
    for (const auto& [name, id] : {std::pair('A', what_.scale_a_id), {'B', what_.scale_b_id}})
      if (is_scaled(kind) && id % step)
        return fail("instruction-descriptor"_rule,
                    fmt::format("instruction descriptor 0x{:08x}: the id of {}'s scales is {}: "
                                "expected a multiple of {} with {} scales a row",
                                bits, name, id, step, of_96 ? 3 * step : named));
    if (of_96 && !has_96(kind, warp_.block->context().module.targets.front()))
      return fail("instruction-descriptor"_rule,
                  fmt::format("instruction descriptor 0x{:08x}: the K = 96 bit (bit 31) is 1: only "
                              "sm_103a has K = 96",
                              bits));
    if (kind == TensorKind::mxf4nvf4 && named == 2 && what_.scale_type != Type::ue8m0)
      return fail("instruction-descriptor"_rule,
                  fmt::format("instruction descriptor 0x{:08x}: the type of scales (bit 23) is 0: "
                              "expected 1 (ue8m0) with two scales a row",
                              bits));
    product_ = &TensorProduct::of(what_, bits, warp_.block->cluster().scratch);
    operands_.blocks = of_96 ? 3 * step : named;
    return true;
  }

  bool read_mask() {
    if (!(op_.flags & has_mask)) return true;
    const std::uint64_t bits = lanes<std::uint64_t>(warp_, word(mask_slot))[lane_];
    const std::string why = decode(bits, what_, operands_.mask);
    return why.empty() || fail("instruction-descriptor"_rule, "zero-column mask " + why);
  }

  // Cells that the rows are in: all lanes, or 16 of each 32.
  std::array<TensorArea, 4> areas(int column, int columns) const {
    const int each = what_.in_halves() ? 16 : 32;
    std::array<TensorArea, 4> out;
    for (int i = 0; i < 4; ++i)
      out[static_cast<std::size_t>(i)] = {32 * i + operands_.half, each, column, columns};
    return out;
  }
  bool allocated(std::string_view name, std::uint32_t address, const TensorArea& area) {
    for (const Part& each : parts_)
      if (const std::string why = memory(each).fault(area); !why.empty())
        return fail("tensor-memory"_rule,
                    fmt::format("{} at address 0x{:x}: {}", name, address, why));
    return true;
  }

  bool place_d() {
    const std::uint32_t address = tensor_address(warp_, op_, lane_), at = address >> 16;
    if (at != 0 && !(what_.in_halves() && at == 16))
      return fail("tensor-memory"_rule,
                  fmt::format("D at address 0x{:x} begins in lane {}: expected {} with M {}{}",
                              address, at, what_.in_halves() ? "0 or 16" : "0", what_.m,
                              what_.stationary ? " and .ws" : ""));
    operands_.half = static_cast<int>(at);
    operands_.d_column = static_cast<int>(address & 0xFFFF);
    operands_.accumulates = predicate(warp_, word(accumulates_slot)) >> lane_ & 1;
    operands_.scale_d = static_cast<int>(word(scale_d_value));
    if (op_.flags & has_disabled) {
      for (std::uint32_t i = 0; i < 4 * parts_.size(); ++i)
        disabled_[i] = value(disabled_slots + i);
      operands_.disabled = disabled_.data();
    }
    return allocated("D", address, areas(operands_.d_column, what_.columns_of_part())[0]);
  }

  bool copies_agree(const Part& part, std::string_view name, const TensorArea& first, int below,
                    std::uint32_t mask = ~0u, int end = TensorMemory::lanes) {
    const std::string why = differing_copy(memory(part), first, below, mask, end);
    return why.empty() || fail("tensor-memory"_rule, fmt::format("{}: {}", name, why));
  }
  // A pair whose D is in two parts has the same A for both; with .ws they may be two products.
  bool agrees(const Part& part) {
    return !operands_.a_in_tensor || !what_.pair || what_.parts() == 1 ||
           copies_agree(part, "A", {0, what_.rows(), operands_.a_column, a_columns()},
                        what_.rows());
  }

  bool place_a() {
    operands_.a_in_tensor = op_.flags & a_in_tensor;
    if (!operands_.a_in_tensor) return true;
    const std::uint32_t address = value(a_slot) + word(a_offset);
    if (what_.transposes_a)
      return fail("instruction-descriptor"_rule,
                  "instruction descriptor: A is MN-major (bit 15), but it is in tensor memory");
    if (static_cast<int>(address >> 16) != operands_.half)
      return fail(
          "tensor-memory"_rule,
          fmt::format("A at address 0x{:x} begins in lane {}, D in lane {}: expected both in "
                      "the same half of the lanes",
                      address, address >> 16, operands_.half));
    operands_.a_column = static_cast<int>(address & 0xFFFF);
    operands_.shifts_a = op_.flags & shifts_a;
    if (operands_.shifts_a && what_.m < 128)
      return fail("instruction-descriptor"_rule,
                  fmt::format("instruction descriptor: M is {} (bits 24 to 28), but .ashift is for "
                              "128 and 256",
                              what_.m));
    return allocated("A", address, areas(operands_.a_column, a_columns())[0]);
  }
  int a_columns() const { return what_.stored() * what_.container_bits(what_.a) / 32; }

  bool place_tile(char name, std::uint32_t slot, bool mn_major, Type type, TileDescriptor& to) {
    const std::uint64_t bits = lanes<std::uint64_t>(warp_, word(slot))[lane_];
    const std::string why = decode(bits, mn_major, what_.container_bits(type), to, what_.k == 96);
    if (!why.empty())
      return fail("matrix-descriptor"_rule, fmt::format("the descriptor of {}: {}; it says {}",
                                                        name, why, tile_meaning(bits)));
    for (const TileBytes& each :
         name == 'A' ? product_->bytes_of_a(to) : product_->bytes_of_b(to, operands_.mask)) {
      if (each.address + 16 > warp_.block->shared_bytes())
        return fail("memory-fault"_rule,
                    fmt::format("out of bounds: the descriptor of {} leads to 0x{:x} for {} {}, "
                                "beyond {} bytes of shared memory; {}",
                                name, each.address, name == 'A' ? "row" : "column", each.first,
                                warp_.block->shared_bytes(), to.text()));
      for (Part& part : parts_)
        (name == 'A' ? part.a : part.b)
            .push_back({each.address,
                        each.first + (name == 'B' && &part != parts_.data() ? what_.columns() : 0),
                        each.count, part.cta->rank()});
    }
    return true;
  }
  bool place_tiles() {
    return (operands_.a_in_tensor ||
            place_tile('A', a_slot, what_.transposes_a, what_.a, operands_.a)) &&
           place_tile('B', b_slot, what_.transposes_b, what_.b, operands_.b);
  }

  bool place_metadata(Part& part) {
    if (!what_.sparse) return true;
    const std::uint32_t address = value(metadata_slot) + word(metadata_offset);
    operands_.metadata_column = static_cast<int>(address & 0xFFFF);
    const TensorArea area{0, TensorMemory::lanes, operands_.metadata_column,
                          product_->metadata_columns()};
    if (static_cast<int>(address >> 16) != operands_.half)
      return fail("tensor-memory"_rule,
                  fmt::format("the metadata at address 0x{:x} begin in lane {}: expected {}",
                              address, address >> 16, operands_.half ? "16, as D does" : "0"));
    if (!allocated("the metadata", address, area)) return false;
    if (const auto found = product_->illegal_code(operands_of(part)))
      return fail(
          "sparse-metadata"_rule,
          fmt::format("the metadata of row {} of A have the illegal code 0x{:x} for group {} "
                      "along k",
                      found->row % what_.rows(), found->code, found->group));
    for (const TensorArea& each : areas(area.column, area.columns)) {
      part.scales.push_back(each);
      part.others.push_back(each);
    }
    return true;
  }

  // All quarters of lanes have the same scales. Those from `lower` on are 64 lanes above, in two
  // quarters, and so are the others below.
  bool place_scale(Part& part, char name, std::uint32_t slot, int count, int lower, int id,
                   int& column) {
    const std::uint32_t address = value(slot) + word(slot + 1);
    column = static_cast<int>(address & 0xFFFF);
    const std::string what = fmt::format("the scales of {}", name);
    if (address >> 16)
      return fail("tensor-memory"_rule,
                  fmt::format("{} at address 0x{:x} begin in lane {}: expected 0", what, address,
                              address >> 16));
    const int last = id + operands_.blocks - 1;  // bytes: four in a cell
    for (int group = 0; group <= last / 4; ++group) {
      const TensorArea area{0, TensorMemory::lanes, column + group * columns_of_scales(count),
                            (lower + 31) / 32};
      if (!allocated(what, address, area)) return false;
      std::uint32_t mask = 0;
      for (int byte = 4 * group; byte < 4 * group + 4; ++byte)
        if (byte >= id && byte <= last) mask |= 0xFFu << byte % 4 * 8;
      part.scales.push_back(area);
      for (int from = 0; from < count; from += lower)
        for (int i = 0; i < lower; i += 32) {
          const int lane = from ? TensorMemory::lanes / 2 : 0,
                    end = lower < count ? lane + TensorMemory::lanes / 2 : TensorMemory::lanes;
          const TensorArea rows{lane, std::min(32, lower - i), area.column + i / 32, 1};
          if (const std::string why = differing_copy(memory(part), rows, 32, mask, end);
              !why.empty())
            return fail("tensor-memory"_rule,
                        fmt::format("{}: {}; {} i is in lane i % 32, i / 32 columns behind 0x{:x}, "
                                    "from byte {} on",
                                    what, why, name == 'A' ? "row" : "column", address, id));
          for (int copy = lane; copy < end; copy += 32)
            part.others.push_back({copy, rows.lanes, rows.column, 1});
        }
    }
    return true;
  }
  bool place_scales(Part& part) {
    return !is_scaled(what_.kind) ||
           (place_scale(part, 'A', scale_a_slot, what_.rows(), what_.rows(), what_.scale_a_id,
                        operands_.scale_a_column) &&
            place_scale(part, 'B', scale_b_slot, what_.n, what_.columns_of_part(), what_.scale_b_id,
                        operands_.scale_b_column));
  }

  bool touch(const Part& part, std::span<const TensorArea> areas, bool writes) {
    return std::ranges::all_of(areas, [&](const TensorArea& area) {
      return ask(warp_, &Events::access_tensor, lane_,
                 TensorTouch{TensorAgent::core, writes, writes, area, part.cta->rank()});
    });
  }

  TensorIssue issue() {
    TensorIssue out{.lane = operands_.half,
                    .column = operands_.d_column,
                    .m = what_.m,
                    .n = what_.n,
                    .columns = what_.columns_of_part(),
                    .all_lanes = !what_.in_halves(),
                    .collector = static_cast<CollectorUse>(word(collector_use)),
                    .a_in_tensor = operands_.a_in_tensor};
    if (out.collector == CollectorUse::none || out.collector == CollectorUse::discard) return out;
    out.a = out.a_in_tensor ? std::uint64_t{value(a_slot)} + word(a_offset)
                            : lanes<std::uint64_t>(warp_, word(a_slot))[lane_];
    Digest digest;
    for (const Part& part : parts_) {
      for (const TileChunk& each : part.a) digest.add(part.cta->shared() + each.address, 16);
      if (!out.a_in_tensor) continue;
      for (const TensorArea& area : areas(operands_.a_column, a_columns()))
        digest.add(memory(part), area);
    }
    out.contents = digest.value;
    return out;
  }

  // Of a chunk of 16 bytes, those that elements of that type fill.
  int bytes_of_chunk(Type type) const {
    return what_.container_bits(type) == 8 ? 16 * tartan::bits(type) / 8 : 16;
  }

  bool tell_observers() {
    if (!ask(warp_, &Events::issue_tensor, lane_, issue())) return false;
    std::vector<TileChunk> a, b;
    for (const Part& each : parts_) {
      a.insert(a.end(), each.a.begin(), each.a.end());
      b.insert(b.end(), each.b.begin(), each.b.end());
      if (!touch(each, each.scales, false)) return false;
      if (operands_.a_in_tensor && !touch(each, areas(operands_.a_column, a_columns()), false))
        return false;
    }
    const auto tile = [](char name, const TileDescriptor& of, std::span<const TileChunk> chunks) {
      return TensorTile{name, static_cast<std::uint32_t>(of.tile.width), chunks};
    };
    if (!ask(warp_, &Events::read_tile, lane_, tile('A', operands_.a, a)) ||
        !ask(warp_, &Events::read_tile, lane_, tile('B', operands_.b, b)))
      return false;
    for (const Part& each : parts_)
      for (const TensorArea& area : areas(operands_.d_column, what_.columns_of_part()))
        if (!touch(each, without(operands_of(each).disabled, area), true)) return false;
    std::vector<std::uint8_t> of_rows(product_->lanes().begin(), product_->lanes().end());
    for (std::uint8_t& each : of_rows) each = static_cast<std::uint8_t>(each + operands_.half);
    for (const Part& each : parts_) {
      TensorProductPlaces places{.a = each.a,
                                 .b = b,
                                 .a_bytes = bytes_of_chunk(what_.a),
                                 .b_bytes = bytes_of_chunk(what_.b),
                                 .a_cells = {},
                                 .shifts_a = operands_.shifts_a,
                                 .others = each.others,
                                 .d_lane = of_rows,
                                 .d_column = operands_.d_column,
                                 .columns = what_.n,
                                 .parts = what_.parts(),
                                 .accumulates = operands_.accumulates,
                                 .half = what_.d == Type::f16,
                                 .disabled = operands_of(each).disabled,
                                 .rank = each.cta->rank()};
      if (operands_.a_in_tensor) places.a_cells = areas(operands_.a_column, a_columns())[0];
      tell(warp_, &ValueEvents::multiply_tensor, places);
    }
    return true;
  }

  Warp& warp_;
  const Op& op_;
  int lane_;
  InstructionDescriptor what_;
  const TensorProduct* product_ = nullptr;
  TensorOperands operands_;
  std::array<std::uint32_t, 8> disabled_{};
  std::vector<Part> parts_;
};

void multiply(Warp& warp, const Op& op) {
  for (std::uint32_t m = warp.mask; m && !warp.leave; m &= m - 1)
    Multiplication(warp, op, std::countr_zero(m)).run();
}

// ---- Decoding.

// D, A, B, the instruction descriptor, lanes that keep D or the scales of A and B, whether D is
// added, and by which power of two it is divided; of .ws the zero-column mask.
void decode_mma(Decoder& d) {
  const isa::Spelling& spelling = d.spelling.as_read();
  const auto pair = is_matched_of_pair(d);
  if (!pair) return;
  const auto kind = kind_of(spelling);
  if (!kind || spelling.has("decompress::lut::b"_q)) return d.unsupported("a kind of sm_107");
  std::array<std::uint32_t, word_count> words{};
  const auto address = [&](std::size_t i, std::uint32_t slot) {
    Op at;
    d.address(at, d.operand(i), Window::global);
    words[slot] = at.a;
    words[slot + 1] = static_cast<std::uint32_t>(at.value);
  };
  const std::size_t count = d.operand_count();
  if (count < 5) return void(d.expect_operands(5, 7));
  Op to;
  if (spelling.has("ashift"_q)) {
    to.flags |= shifts_a;
    d.rest_on(Trust::Assumed, shift_source);
  }
  d.address(to, d.operand(0), Window::global);
  if (d.operand(1).kind == ptx::OperandKind::Address) {
    to.flags |= a_in_tensor;
    address(1, a_slot);
  } else {
    words[a_slot] = d.source(1, Type::b64);
  }
  words[b_slot] = d.source(2, Type::b64);
  std::size_t next = 3;
  const Opcode opcode = d.spelling.opcode();
  if (opcode == Opcode::tcgen05_mma_ws || opcode == Opcode::tcgen05_mma_ws_sp)
    to.flags |= is_stationary;
  if (opcode == Opcode::tcgen05_mma_sp || opcode == Opcode::tcgen05_mma_ws_sp) {
    to.flags |= is_sparse;
    address(next++, metadata_slot);
  }
  words[idesc_slot] = d.source(next++, Type::b32);
  if (next < count && d.operand(next).kind == ptx::OperandKind::Vector) {
    to.flags |= has_disabled;
    std::uint32_t at = disabled_slots;
    const auto children = d.children(d.operand(next++));
    if (children.size() != (*pair ? 8 : 4))
      return d.unsupported(fmt::format("expected {} words of disabled lanes", *pair ? 8 : 4));
    for (const ptx::Operand& each : children) words[at++] = d.source(each, Type::b32);
  }
  if (is_scaled(*kind)) {
    if (count < next + 3) return void(d.expect_operands(7, 7));
    address(next++, scale_a_slot);
    address(next++, scale_b_slot);
  }
  words[block_count] = blocks_of(spelling, *kind);
  words[collector_use] = static_cast<std::uint32_t>(collector_of(spelling));
  if (next >= count) return void(d.expect_operands(next + 1, next + 2));
  const ptx::Operand& accumulates = d.operand(next++);
  if (const auto constant = d.integer(accumulates))
    words[accumulates_slot] = *constant ? always_slot : d.constant(0, 32);
  else words[accumulates_slot] = d.predicate_source(accumulates);
  if (to.flags & is_stationary) {
    if (next < count) {
      to.flags |= has_mask;
      words[mask_slot] = d.source(next++, Type::b64);
      d.rest_on(Trust::Assumed, "the zero-column mask is taken as the manual's examples have it");
    }
    d.rest_on(Trust::Assumed, ".ws is assumed to sum as tcgen05.mma does");
  } else if (next < count) {
    if (*kind != TensorKind::f16 && *kind != TensorKind::tf32)
      return d.unsupported("scale-input-d is for .kind::f16 and .kind::tf32");
    words[scale_d_value] = static_cast<std::uint32_t>(d.integer(d.operand(next++)).value_or(0));
    d.rest_on(Trust::Assumed, "scale-input-d: no source tells how it rounds");
  }
  if (d.failed() || next != count) return void(d.expect_operands(next, next));
  if (to.flags & is_sparse)
    d.rest_on(
        Trust::Assumed,
        "sparse sums are assumed to be those of dense products, and metadata of 64 rows to be "
        "in the lanes of D");
  if (has_96(*kind, d.target()))
    d.rest_on(Trust::Assumed, "K = 96, and sm_103, are assumed to sum as K = 64 of a B200");
  d.rest_on(tensor_trust(*kind), tensor_source(*kind));
  if (*pair) {
    to.flags |= of_pair;
    d.rest_on(Trust::Assumed, "products of CTA pairs are assumed to sum as those of one CTA");
  }
  const std::uint32_t list = d.append(words);
  Op& op = d.emit(multiply);
  op.a = to.a;
  op.value = to.value;
  op.flags = to.flags;
  op.count = static_cast<std::uint8_t>(*kind);
  op.list = list;
}

}  // namespace

constexpr EmulatedRow tensor_products_rows[] = {
    {Opcode::tcgen05_mma, decode_mma, Flow::ByHandler, ValueSources::None, Meaning::ByHandler,
     AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_mma_sp, decode_mma, Flow::ByHandler, ValueSources::None, Meaning::ByHandler,
     AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_mma_ws, decode_mma, Flow::ByHandler, ValueSources::None, Meaning::ByHandler,
     AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_mma_ws_sp, decode_mma, Flow::ByHandler, ValueSources::None, Meaning::ByHandler,
     AccessKind::None, Idle::No, nothing},
    {Opcode::tcgen05_commit, decode_commit, Flow::Uses, ValueSources::None, Meaning::Bits,
     AccessKind::None, Idle::No, nothing},
};
static_assert(are_rows_of(tensor_products_rows, topics::tensor_products));

}  // namespace tartan::TARTAN_ABI::emulator
