// SPDX-License-Identifier: Apache-2.0
// compiler/isa/asynchronous.h - since when there are the instructions around the copy engine:
// asynchronous copies, mbarriers, proxies, clusters (PTX ISA 9.7.9, 9.7.13), one row per
// requirement.
//
// A row holds for every opcode that starts with its words and, where it names one, has its
// qualifier; an opcode needs what all of its rows say. Operands are the assembler's business.
#pragma once

#include <string_view>

#include "compiler/isa/target.h"

namespace tartan::isa {

struct AsynchronousRow {
  std::string_view words;      // the opcode's first ones
  std::string_view qualifier;  // somewhere behind them, whole words; empty: always
  Since since;
};

// clang-format off
inline constexpr AsynchronousRow asynchronous_rows[] = {
    {"cp.async", "", {{7, 0}, 80}},
    {"cp.async.bulk", "", {{8, 0}, 90}},
    {"cp.async.bulk", "shared::cta.global", {{8, 6}, 90}},
    {"cp.async.bulk", "cp_mask", {{8, 6}, 100}},
    {"cp.async.bulk", "tile::gather4", {{8, 6}, 100}},
    {"cp.async.bulk", "tile::scatter4", {.ptx = {8, 6}, .sm = 100, .reach = Reach::Family, .last_sm = 110}},
    {"cp.async.bulk", "im2col::w", {.ptx = {8, 6}, .sm = 100, .reach = Reach::Family, .last_sm = 110}},
    {"cp.async.bulk", "cta_group::1", {.ptx = {8, 6}, .sm = 100, .reach = Reach::Family, .last_sm = 110}},
    {"cp.async.bulk", "cta_group::2", {.ptx = {8, 6}, .sm = 100, .reach = Reach::Family, .last_sm = 110}},
    {"cp.reduce.async.bulk", "", {{8, 0}, 90}},
    {"st.async", "", {{8, 1}, 90}},
    {"red.async", "", {{8, 1}, 90}},
    {"multimem", "", {{8, 1}, 90}},
    {"prefetch", "tensormap", {{8, 0}, 90}},
    {"tensormap.replace", "", {{8, 3}, 90, Reach::Family}},
    {"tensormap.cp_fenceproxy", "", {{8, 3}, 90}},
    {"createpolicy", "", {{7, 4}, 80}},
    {"discard", "", {{7, 4}, 80}},
    {"applypriority", "", {{7, 4}, 80}},

    {"mbarrier", "", {{7, 0}, 80}},
    {"mbarrier", "shared::cta", {{7, 8}, 80}},
    {"mbarrier", "shared::cluster", {{8, 0}, 90}},
    {"mbarrier", "cluster", {{8, 0}, 90}},
    {"mbarrier", "release", {{8, 0}, 80}},
    {"mbarrier", "acquire", {{8, 0}, 80}},
    {"mbarrier", "parity", {{7, 1}, 80}},
    {"mbarrier", "expect_tx", {{8, 0}, 90}},
    {"mbarrier.complete_tx", "", {{8, 0}, 90}},
    {"mbarrier.try_wait", "", {{7, 8}, 90}},
    {"mbarrier.try_wait", "relaxed", {{8, 6}, 90}},
    {"mbarrier.test_wait", "relaxed", {{8, 6}, 90}},
    {"mbarrier.arrive", "relaxed", {{8, 6}, 90}},
    {"mbarrier.arrive_drop", "relaxed", {{8, 6}, 90}},

    {"fence.proxy.alias", "", {{7, 5}, 70}},
    {"fence.proxy.async", "", {{8, 0}, 90}},
    {"fence.proxy.async::generic", "", {{8, 6}, 90}},
    {"fence.proxy.tensormap::generic", "", {{8, 3}, 90}},
    {"fence.mbarrier_init", "", {{8, 0}, 90}},
    {"fence", "cluster", {{7, 8}, 90}},
    {"fence", "sync_restrict::shared::cluster", {{8, 6}, 90}},

    {"barrier.cluster", "", {{7, 8}, 90}},
    {"barrier.cluster", "release", {{8, 0}, 90}},
    {"barrier.cluster", "relaxed", {{8, 0}, 90}},
    {"barrier.cluster", "acquire", {{8, 0}, 90}},
    {"mapa", "", {{7, 8}, 90}},
    {"getctarank", "", {{7, 8}, 90}},
    {"griddepcontrol", "", {{7, 8}, 90}},
};
// clang-format on

/// Whether `opcode` starts with the dotted words of `words`.
constexpr bool starts_with_words(std::string_view opcode, std::string_view words) {
  return opcode.starts_with(words) &&
         (opcode.size() == words.size() || opcode[words.size()] == '.');
}

/// Whether `words` stand in `opcode`, behind its first word.
constexpr bool has_words(std::string_view opcode, std::string_view words) {
  for (std::size_t at = opcode.find('.'); at != std::string_view::npos;
       at = opcode.find('.', at + 1))
    if (starts_with_words(opcode.substr(at + 1), words)) return true;
  return false;
}

constexpr bool holds(const AsynchronousRow& row, std::string_view opcode) {
  // Most instructions are others: look at two letters first.
  return opcode.size() > 1 && opcode[0] == row.words[0] && opcode[1] == row.words[1] &&
         starts_with_words(opcode, row.words) &&
         (row.qualifier.empty() || has_words(opcode, row.qualifier));
}

/// What an opcode still needs that `target` has not: the row that asks for most, or null.
constexpr const AsynchronousRow* missing(std::string_view opcode, const Target& target) {
  const auto asks_more = [&](const Since& x, const Since& y) {
    if (x.has(target.arch) != y.has(target.arch)) return !x.has(target.arch);
    return x.sm != y.sm ? x.sm > y.sm : x.ptx > y.ptx;
  };
  const AsynchronousRow* out = nullptr;
  for (const AsynchronousRow& row : asynchronous_rows) {
    if (!holds(row, opcode) || row.since.has(target)) continue;
    if (!out || asks_more(row.since, out->since)) out = &row;
  }
  return out;
}

}  // namespace tartan::isa
