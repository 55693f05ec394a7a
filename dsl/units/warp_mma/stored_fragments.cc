// SPDX-License-Identifier: Apache-2.0
#include "dsl/units/warp_mma/stored_fragments.h"

#include <algorithm>
#include <optional>

#include "dsl/layout/fragments.h"
#include "dsl/state/scalars.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

constexpr std::size_t together = 4;  // read at a time

}  // namespace

Fragment StoredFragments::next() {
  const auto [i, j] = order_[stored_];
  if (!finish_) return ++stored_, tile_.fragment(i, j);
  const std::source_location here = state_.log.location();
  if (finish_->read && stored_ % together == 0) {
    if (stored_ && finish_->registers)
      state_.f().warp_sync();  // keeps reads of later ones below it
    read_ahead();
  }
  ++stored_;
  Fragment out = finish_->finished(i, j);
  state_.at(here);
  return checked(std::move(out));
}

// Reports fragments of another kind and replaces them by zeros.
Fragment StoredFragments::checked(Fragment fragment) {
  const FragmentKind& kind = finish_->kind;
  const bool bad = is_bad(fragment);  // reported where it was made
  if (!bad && fragment.kind() == kind) return fragment;
  if (!bad)
    state_.log.report("fragment-mismatch"_rule, fmt::format("finished(): expected {}, found {}",
                                                            kind.text(), fragment.kind().text()));
  const Type type = register_type(kind.type);
  return make_fragment(state_, kind,
                       std::vector(static_cast<std::size_t>(kind.fragment().registers),
                                   zero_value(state_.f(), type)));
}

void StoredFragments::read_ahead() {
  while (read_ < order_.size() && (read_ == stored_ || has_room())) {
    const std::size_t end = std::min(read_ + together, order_.size());
    for (; read_ < end; ++read_) finish_->read(order_[read_].first, order_[read_].second);
  }
}

bool StoredFragments::has_room() const {
  constexpr std::size_t others = 88;  // registers for addresses and temporaries
  const auto sums = static_cast<std::size_t>(tile_.fragment(0, 0).kind().fragment().registers),
             each = static_cast<std::size_t>(finish_->registers);
  return (order_.size() - stored_) * sums + (read_ + together - stored_) * each + others <=
         static_cast<std::size_t>(state_.config.registers());
}

}  // namespace tartan::TARTAN_ABI::detail
