// SPDX-License-Identifier: Apache-2.0
#include "tests/dsl/mutator.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::test {

int Mutator::choose(const Here& at, const std::vector<std::string>& changes) {
  const int line = static_cast<int>(at.line()), column = static_cast<int>(at.column());
  sites_.try_emplace({line, column}, Site{line, column, changes});
  return mutant_.line == line && mutant_.column == column ? mutant_.change : -1;
}

std::vector<Mutator::Mutant> Mutator::mutants() const {
  std::vector<Mutant> out;
  for (const auto& [place, site] : sites_)
    for (std::size_t i = 0; i < site.changes.size(); ++i)
      if (!site.changes[i].empty())
        out.push_back({site.line, site.column, static_cast<int>(i), site.changes[i]});
  return out;
}

int Mutator::operator()(int right, Here at) {
  const int wrong[] = {0, 1, -1, right + 1, right - 1, 2 * right, right / 2, right + 8, 3, 1 << 20};
  std::vector<std::string> changes;
  for (const int each : wrong)
    changes.push_back(each == right ? "" : fmt::format("{} for {}", each, right));
  const int chosen = choose(at, changes);
  return chosen < 0 ? right : wrong[chosen];
}

Type Mutator::operator()(Type right, Here at) {
  const Type wrong[] = {f16,        bf16,       f32,        tf32,       s8,
                        u8,         s32,        u32,        f64,        Type::s4,
                        Type::e4m3, Type::pred, Type::none, Type::e2m3, Type::ue8m0};
  std::vector<std::string> changes;
  for (const Type each : wrong)
    changes.push_back(
        each == right
            ? ""
            : fmt::format("{} for {}", each == Type::none ? "none" : name(each), name(right)));
  const int chosen = choose(at, changes);
  return chosen < 0 ? right : wrong[chosen];
}

MmaShape Mutator::operator()(const MmaShape& right, Here at) {
  const MmaShape wrong[] = {m8n8k4,
                            m16n8k8,
                            m16n8k16,
                            m16n8k32,
                            m16n8k256,
                            m8n8k16,
                            wmma_m16n16k16,
                            sparse(m16n8k32),
                            MmaShape{},
                            {{7, 9, 3}},
                            of_kind(m16n8k32, isa::Kind::f8f6f4)};
  std::vector<std::string> changes;
  for (const MmaShape& each : wrong)
    changes.push_back(each == right ? "" : fmt::format("{} for {}", each.text(), right.text()));
  const int chosen = choose(at, changes);
  return chosen < 0 ? right : wrong[chosen];
}

Scalar Mutator::operator()(Builder& k, const Scalar& right, Here at) {
  switch (choose(at, {"x + 1", "x - 1", "2 * x", "x / 2", "0", "-1", "the thread", "the block",
                      "x in f32", "x < 1", "x in s64"})) {
    case 0: return right + 1;
    case 1: return right - 1;
    case 2: return right * 2;
    case 3: return right / 2;
    case 4: return 0;
    case 5: return -1;
    case 6: return k.thread(at);
    case 7: return k.block_x(at);
    case 8: return k.convert(right, f32, at);
    case 9: return right < 1;
    case 10: return k.convert(right, s64, at);
    default: return right;
  }
}

Layout Mutator::layout(const Layout& right, const Layout& other, Here at) {
  switch (choose(at, {"the other major order", "transposed", "swizzled", "padded"})) {
    case 0: return other;
    case 1: return right.transposed();
    case 2: return right.swizzled({3, 3, 3});
    case 3: {
      Layout out = right;
      (out.major() == Major::col ? out.col_stride : out.row_stride) += 4;
      return out;
    }
    default: return right;
  }
}

void Mutator::steps(Builder& k, const std::vector<Step>& all, Here at) {
  constexpr const char* kinds[] = {"dropped",          "repeated",         "after the next",
                                   "moved to the end", "moved to the top", "under lane < 16",
                                   "under warp == 0",  "under block == 0", "in a loop"};
  constexpr int count = std::size(kinds);
  std::vector<std::string> changes;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (int kind = 0; kind < count; ++kind) {
      const bool same = (i + 1 == all.size() && (kind == 2 || kind == 3)) || (i == 0 && kind == 4);
      changes.push_back(same ? "" : fmt::format("step {} {}", i + 1, kinds[kind]));
    }
  const int chosen = choose(at, changes);
  const int wrong = chosen < 0 ? -1 : chosen / count, kind = chosen % count;
  std::vector<Step> order = all;
  const auto place = order.begin() + std::max(wrong, 0);
  if (wrong >= 0) {
    const Step step = *place;
    if (kind == 0) order.erase(place);
    if (kind == 1) order.insert(place, step);
    if (kind == 2 && place + 1 != order.end()) std::iter_swap(place, place + 1);
    if (kind == 3) std::rotate(place, place + 1, order.end());
    if (kind == 4) std::rotate(order.begin(), place, place + 1);
    if (kind == 5) *place = [&k, step, at] { k.when(k.lane(at) < 16, step, at); };
    if (kind == 6) *place = [&k, step, at] { k.when(k.warp(at) == 0, step, at); };
    if (kind == 7) *place = [&k, step, at] { k.when(k.block_x(at) == 0, step, at); };
    if (kind == 8)
      *place = [&k, step, at] {
        k.loop(
            0, 2, 1, [&step](Scalar) { step(); }, at);
      };
  }
  for (const Step& each : order) each();
}

}  // namespace tartan::test
