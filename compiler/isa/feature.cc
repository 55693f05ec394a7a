// SPDX-License-Identifier: Apache-2.0
#include "tartan/isa/feature.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

#include "compiler/isa/matching.h"
#include "tartan/isa/instruction.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI {
namespace {

// What one signature of a feature's instruction requires: all of these.
using Needs = std::vector<Since>;

std::vector<Needs> needs_of(std::string_view text) {
  std::vector<Needs> out;
  const isa::Spelling spelling = isa::read_spelling(text);
  for (const isa::Signature* const each : spelling.signatures)
    out.push_back(isa::requirements(*each, spelling));
  return out;
}

// Asked of the table once.
const std::vector<Needs>& needs_of(Feature feature) {
  static const auto all = [] {
    std::array<std::vector<Needs>, std::size(features)> out;
    for (const FeatureRow& row : features)
      out[static_cast<std::size_t>(row.feature)] = needs_of(row.spelling);
    return out;
  }();
  const auto& out = all[static_cast<std::size_t>(feature)];
  assert(!out.empty());  // tests/isa/feature_test.cc looks at each
  return out;
}

template <typename Where>
bool has_feature(Feature feature, const Where& where) {
  return std::ranges::any_of(needs_of(feature), [&](const Needs& needs) {
    return std::ranges::all_of(needs, [&](const Since& since) { return since.has(where); });
  });
}

}  // namespace

bool Arch::has(Feature feature) const { return has_feature(feature, *this); }
bool Target::has(Feature feature) const { return has_feature(feature, *this); }

}  // namespace tartan::TARTAN_ABI
