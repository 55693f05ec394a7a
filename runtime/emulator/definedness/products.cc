// SPDX-License-Identifier: Apache-2.0
// Undefined bits in matrix products: an element of A makes its row of D undefined, one of B its
// column, one of C itself.
#include <algorithm>
#include <bit>
#include <vector>

#include "runtime/emulator/definedness/flow_rules.h"
#include "runtime/emulator/definedness/sparse_metadata.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "tartan/isa/fragment.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using Place = UndefinedOrigin::Place;

// Calls body(lane, register, first bit, where) for every element of a fragment.
template <typename Body>
void each_element(const isa::Form& form, Operand operand, int lanes, Body&& body) {
  const isa::Fragment fragment = isa::fragment(form, operand);
  for (int lane = 0; lane < lanes; ++lane)
    for (int i = 0; i < fragment.elements(); ++i)
      body(lane, static_cast<std::size_t>(i / fragment.per_register),
           i % fragment.per_register * fragment.container_bits, isa::coord(form, operand, lane, i));
}

std::uint64_t element_mask(const isa::Fragment& fragment) {
  return fragment.container_bits >= 64 ? ~std::uint64_t{0}
                                       : (std::uint64_t{1} << fragment.container_bits) - 1;
}

// The origins of what is undefined in D: 0 where it is not.
struct ProductShadow {
  explicit ProductShadow(const isa::Form& form) {
    const isa::Fragment d = isa::fragment(form, Operand::d);
    rows = static_cast<std::size_t>(d.rows);
    cols = static_cast<std::size_t>(d.cols);
    const auto matrices = static_cast<std::size_t>(d.matrices);
    of_row.resize(matrices * rows);
    of_col.resize(matrices * cols);
    of_element.resize(matrices * rows * cols);
  }
  std::uint32_t& row(const isa::Coord& at) {
    return of_row[static_cast<std::size_t>(at.matrix) * rows + static_cast<std::size_t>(at.row)];
  }
  std::uint32_t& col(const isa::Coord& at) {
    return of_col[static_cast<std::size_t>(at.matrix) * cols + static_cast<std::size_t>(at.col)];
  }
  std::uint32_t& element(const isa::Coord& at) {
    return of_element[(static_cast<std::size_t>(at.matrix) * rows +
                       static_cast<std::size_t>(at.row)) *
                          cols +
                      static_cast<std::size_t>(at.col)];
  }

  std::size_t rows = 0, cols = 0;
  std::vector<std::uint32_t> of_row, of_col, of_element;
  std::uint32_t all = 0;
};

bool holds_any(const RegisterShadow& shadow, const std::vector<std::uint32_t>& slots) {
  return std::ranges::any_of(slots, [&](std::uint32_t slot) { return shadow.holds(slot); });
}

}  // namespace

void FlowRules::multiply() {
  if (!any_source_holds()) return set_results(warp_.mask, 0);
  const MatrixOperation& m = warp_.program->matrices[op_.list];
  ProductShadow product(m.form);
  const auto gather = [&](Operand operand, const std::vector<std::uint32_t>& slots, auto&& mark) {
    if (!holds_any(shadow_, slots)) return;
    const isa::Fragment fragment = isa::fragment(m.form, operand);
    each_element(m.form, operand, 32, [&](int lane, std::size_t r, int shift, isa::Coord at) {
      if (r >= slots.size()) return;  // copies that the product does not read
      const auto l = static_cast<std::uint32_t>(lane);
      const std::uint64_t found = shadow_.get(slots[r], fragment.register_bits, l) >> shift;
      if (!(found & element_mask(fragment))) return;
      const Type type = fragment.register_bits == 64 ? Type::b64 : Type::b32;
      mark(at, owner_.origin(warp_, {.slot = slots[r], .type = type}, l));
    });
  };
  gather(Operand::a, m.a, [&](isa::Coord at, std::uint32_t from) { product.row(at) = from; });
  gather(Operand::b, m.b, [&](isa::Coord at, std::uint32_t from) { product.col(at) = from; });
  gather(Operand::c, m.c, [&](isa::Coord at, std::uint32_t from) { product.element(at) = from; });
  for (const RegisterUse* use : sources_) {  // metadata and scales
    if (use->constant || std::ranges::count(m.a, use->slot) || std::ranges::count(m.b, use->slot) ||
        std::ranges::count(m.c, use->slot))
      continue;
    if (const std::uint32_t found =
            shadow_.lanes(use->slot, register_bits(use->type), warp_.mask, 64))
      product.all = owner_.origin(warp_, *use, static_cast<std::uint32_t>(std::countr_zero(found)));
  }
  const isa::Fragment fragment = isa::fragment(m.form, Operand::d);
  std::vector<std::uint64_t> out(32 * m.d.size());
  std::vector<std::uint32_t> origins(out.size());
  each_element(m.form, Operand::d, 32, [&](int lane, std::size_t r, int shift, isa::Coord at) {
    if (r >= m.d.size()) return;
    const std::uint32_t from = product.all       ? product.all
                               : product.row(at) ? product.row(at)
                               : product.col(at) ? product.col(at)
                                                 : product.element(at);
    if (!from) return;
    out[32 * r + static_cast<std::size_t>(lane)] |= element_mask(fragment) << shift;
    origins[32 * r + static_cast<std::size_t>(lane)] = from;
  });
  for (std::size_t r = 0; r < m.d.size(); ++r) {
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      shadow_.set(m.d[r], fragment.register_bits, lane, out[32 * r + lane]);
      if (out[32 * r + lane])
        shadow_.origin(m.d[r], fragment.register_bits, lane) = origins[32 * r + lane];
    }
    shadow_.settle(m.d[r], fragment.register_bits);
  }
}

// ---- wgmma.

namespace {

// The 16-byte chunks of shared memory that element (x, k) and its neighbours are in: calls
// body(x of the first, how many along x, address).
template <typename Body>
void each_chunk(const MatrixDescriptor& descriptor, bool mn_major, int bits, int outer, int k,
                Body&& body) {
  const int per_chunk = 128 / bits;
  if (!mn_major) {
    for (int x = 0; x < outer; ++x)
      for (int at = 0; at < k; at += per_chunk) body(x, 1, descriptor.address(false, bits, x, at));
    return;
  }
  for (int at = 0; at < k; ++at)
    for (int x = 0; x < outer; x += per_chunk)
      body(x, std::min(per_chunk, outer - x), descriptor.address(true, bits, x, at));
}

}  // namespace

bool ClusterDefinedness::multiply(Warp& warp, const MatrixOperation& m, const ScalePlaces&) {
  if (!m.metadata) return true;
  const auto found = find_illegal_code(m.form, lanes<std::uint32_t>(warp, *m.metadata), m.selector);
  if (found) warp.fail("sparse-metadata"_rule, found->message, found->lane);
  return !found;
}

bool ClusterDefinedness::issue_product(Warp& warp, std::span<Warp> warps,
                                       const WarpgroupOperation& w) {
  if (!w.metadata) return true;
  constexpr std::size_t lanes_of_warp = 32;
  std::vector<std::uint32_t> words;
  for (Warp& each : warps) {
    const auto* const first = lanes<std::uint32_t>(each, *w.metadata);
    words.insert(words.end(), first, first + lanes_of_warp);
  }
  const auto found = find_illegal_code(w.product->form(), words.data(), w.immediates.selector);
  if (!found) return true;
  const auto lane = static_cast<std::size_t>(found->lane);
  warp.block->fail(warps[lane / lanes_of_warp], warp.pc - 1, "sparse-metadata"_rule, found->message,
                   static_cast<int>(lane % lanes_of_warp), 0);
  return false;
}

void ClusterDefinedness::multiply_warpgroup(Warp& warp, std::span<Warp> warps,
                                            const WarpgroupOperation& operation,
                                            const WgmmaOperands& operands) {
  constexpr std::uint64_t chunk = 16;
  const isa::Form& form = operation.product->form();
  const bool sparse = form.sparsity != isa::Sparsity::dense;
  ProductShadow product(form);
  bool any = false;
  const auto look = [&](std::uint64_t descriptor, bool mn_major, Type type, int outer, int k,
                        std::vector<std::uint32_t>& marks) {
    each_chunk(MatrixDescriptor::of(descriptor), mn_major, bits(type), outer, k,
               [&](int x, int count, std::uint64_t address) {
                 if (address + chunk > warp.block->shared_bytes()) return;  // a fault
                 Piece at{shared_[warp.block->rank()].data() + address, Place::shared, address};
                 if (!any_undefined(at, chunk)) return;
                 any = true;
                 // Neighbours along x have equal parts of it.
                 const std::uint64_t bytes = chunk / static_cast<std::uint64_t>(count);
                 for (int i = 0; i < count; ++i, at.bits += bytes, at.address += bytes)
                   if (any_undefined(at, bytes))
                     marks[static_cast<std::size_t>(x + i)] = origin(warp, at, 0);
               });
  };
  if (operation.a.empty())
    look(operands.a_descriptor, operands.trans_a != 0, form.a, form.shape.m,
         sparse ? form.shape.k / 2 : form.shape.k, product.of_row);
  look(operands.b_descriptor, operands.trans_b != 0, form.b, form.shape.n, form.shape.k,
       product.of_col);
  const bool held = std::ranges::any_of(warps, &Warp::undefined);
  if (!any && !held) return;

  const auto word = [&](std::size_t thread, std::uint32_t slot) {
    return shadow(warps[thread / 32]).get(slot, 32, static_cast<std::uint32_t>(thread % 32));
  };
  const auto origin_at = [&](std::size_t thread, std::uint32_t slot) {
    Warp& of = warps[thread / 32];
    const std::uint32_t known =
        shadow(of).origin(slot, 32, static_cast<std::uint32_t>(thread % 32));
    return known ? known
                 : launch_.reports.origin(
                       {.place = Place::register_, .slot = slot, .pc = warp.pc - 1});
  };
  const auto gather = [&](Operand operand, const std::vector<std::uint32_t>& slots, auto&& mark) {
    const isa::Fragment fragment = isa::fragment(form, operand);
    each_element(form, operand, 128, [&](int lane, std::size_t r, int shift, isa::Coord at) {
      const auto thread = static_cast<std::size_t>(lane);
      if (word(thread, slots[r]) >> shift & element_mask(fragment))
        mark(at, origin_at(thread, slots[r]));
    });
  };
  if (held && !operation.a.empty())
    gather(Operand::a, operation.a,
           [&](isa::Coord at, std::uint32_t from) { product.row(at) = from; });
  if (held && operands.scale_d)
    gather(Operand::d, operation.d,
           [&](isa::Coord at, std::uint32_t from) { product.element(at) = from; });
  const isa::Fragment fragment = isa::fragment(form, Operand::d);
  std::vector<std::uint32_t> out(128 * operation.d.size()), origins(out.size());
  each_element(form, Operand::d, 128, [&](int lane, std::size_t r, int shift, isa::Coord at) {
    const std::uint32_t from = product.row(at)   ? product.row(at)
                               : product.col(at) ? product.col(at)
                                                 : product.element(at);
    if (!from) return;
    const std::size_t i = 128 * r + static_cast<std::size_t>(lane);
    out[i] |= static_cast<std::uint32_t>(element_mask(fragment) << shift);
    origins[i] = from;
  });
  for (std::size_t r = 0; r < operation.d.size(); ++r) {
    const std::uint32_t slot = operation.d[r];
    for (std::size_t thread = 0; thread < 128; ++thread) {
      RegisterShadow& of = shadow(warps[thread / 32]);
      const auto lane = static_cast<std::uint32_t>(thread % 32);
      of.set(slot, 32, lane, out[128 * r + thread]);
      if (out[128 * r + thread]) of.origin(slot, 32, lane) = origins[128 * r + thread];
    }
    for (Warp& each : warps) shadow(each).settle(slot, 32);
  }
  for (Warp& each : warps) settle(each);
}

}  // namespace tartan::TARTAN_ABI::emulator
