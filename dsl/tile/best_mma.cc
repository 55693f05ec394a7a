// SPDX-License-Identifier: Apache-2.0
// Which instruction multiplies elements of given types on a target.
#include <algorithm>

#include "dsl/state/operations.h"
#include "dsl/state/state.h"
#include "dsl/units/tcgen05/tensor_product.h"
#include "tartan/dsl/builder.h"
#include "tartan/dsl/tiled_mma.h"

namespace tartan::TARTAN_ABI {
namespace {

// The work of one instruction: the widest shape needs the fewest instructions.
std::int64_t work(const Shape& shape) {
  return static_cast<std::int64_t>(shape.m) * shape.n * shape.k;
}

const std::vector<isa::Form>& mma_forms() {
  static const std::vector<isa::Form> forms = [] {
    std::vector<isa::Form> all = isa::forms();
    std::erase_if(all, [](const isa::Form& each) { return each.opcode != isa::Opcode::mma; });
    return all;
  }();
  return forms;
}

}  // namespace

std::string detail::product_text(Type a, Type b) {
  return fmt::format("product of {} and {}", name(a), name(b));
}

MmaKind Builder::best_mma(Type a, Type b, Type c, const MmaOptions& options, Here at) {
  state_->at(at);
  std::optional<isa::Form> best, elsewhere;
  std::optional<Since> soonest;  // with a later PTX version
  for (const isa::Form& form : mma_forms()) {
    isa::Form wanted{.opcode = isa::Opcode::mma, .shape = form.shape};
    wanted.a_major = Major::row, wanted.b_major = Major::col;
    wanted.a = a, wanted.b = b, wanted.c = c;
    wanted.d = options.d == Type::none ? c : options.d;
    wanted.satfinite = options.satfinite, wanted.rounding = options.rounding;
    wanted.bit_op = options.bit_op;
    if (options.scale_type != Type::none) {
      wanted.kind = form.kind;
      wanted.block_scale = true, wanted.scale_type = options.scale_type;
      wanted.scale_vec =
          options.scale_vec ? static_cast<std::uint8_t>(options.scale_vec) : form.scale_vec;
    } else if (form.kind == isa::Kind::f8f6f4 && std::min(bits(a), bits(b)) < 8) {
      wanted.kind = form.kind;  // six- and four-bit elements have no other
    }
    if (options.sparsity != isa::Sparsity::dense && form.sparsity != isa::Sparsity::dense)
      wanted.sparsity = form.sparsity;
    const bool sparse = wanted.sparsity != isa::Sparsity::dense;
    if (sparse != (options.sparsity != isa::Sparsity::dense)) continue;
    if (!(form == wanted) || isa::fragment(form, Operand::a).matrices != 1) continue;
    const Since since = isa::find(form)->since;
    auto& found = since.has(state_->config.target) ? best : elsewhere;
    if (since.has(state_->config.target.arch) && (!soonest || since.ptx < soonest->ptx))
      soonest = since;
    if (!found || work(form.shape) > work(found->shape)) found = form;
  }
  // Some kinds only tcgen05 has there.
  if (!best && elsewhere) {
    const MmaShape shape{elsewhere->shape, false, elsewhere->sparsity != isa::Sparsity::dense,
                         elsewhere->kind};
    const MmaKind kind{shape, a, b, c, true};
    if (!shape.sparse && detail::has_tensor_kind(state_->config.target, kind, options.scale_type))
      return kind;
    if (const auto later =
            detail::later_tensor_kind(state_->config.target, kind, options.scale_type))
      state_->log.would_take(*later);
  }
  if (best) {
    std::vector<std::string> refused;
    if (elsewhere && work(elsewhere->shape) > work(best->shape))
      refused.push_back(fmt::format("{}: requires {}", isa::spell(*elsewhere),
                                    isa::text(isa::find(*elsewhere)->since)));
    state_->log.choose(detail::product_text(a, b), isa::spell(*best),
                       fmt::format("it is the largest MMA shape for these types on {}",
                                   state_->config.target.text()),
                       std::move(refused));
    return {
        {best->shape, false, best->sparsity != isa::Sparsity::dense, best->kind}, a, b, c, true};
  }
  if (soonest) state_->log.would_take(*soonest);
  // Of another type only where no PTX version has this one.
  const auto nearest =
      elsewhere && !soonest ? isa::nearest(*elsewhere, state_->config.target) : std::nullopt;
  state_->log.report(
      "no-instruction"_rule,
      fmt::format("{} has no mma.sync of {} and {} with {} accumulators{}{}",
                  state_->config.target.text(), name(a), name(b), name(c),
                  elsewhere ? fmt::format("; {} requires {}", isa::spell(*elsewhere),
                                          isa::text(isa::find(*elsewhere)->since))
                            : "",
                  nearest ? "; the nearest supported form is " + isa::spell(*nearest) : ""));
  return {};
}

}  // namespace tartan::TARTAN_ABI
