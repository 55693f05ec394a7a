// SPDX-License-Identifier: Apache-2.0
#include "dsl/state/register_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ptx/line_table.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

// Addresses, counters and the operands of one instruction, as measured on GEMMs: no kernel whose
// accumulators leave less was assembled without spills.
constexpr int beside_copies = 16, beside_waits = 20;  // threads that copy; consumers of producers

// As measured: with so many more values than registers, the assembler finds no order without
// spills. Beside wgmma it recomputes more.
constexpr int fitted_in = 0, fitted_in_beside_wgmma = 10;

// ptxas 13.0 refuses a wgmma (C7602) exactly where a thread does not start with so many registers
// beside its accumulators and A.
constexpr int beside_wgmma = 26;

}  // namespace

void RegisterBudget::hold(int registers, const Tile& tile, const Place& at) {
  one_ = one_ && (most_ == 0 || (tile.m == tile_.m && tile.n == tile_.n));
  if (registers <= most_) return;
  most_ = registers, tile_ = tile, at_ = at;
}

// The largest tile, in whole steps of the warps' shares, for which `share` is enough where this one
// takes `most`: accumulators and most fragments shrink with the tile, addresses do not.
std::string RegisterBudget::smaller(int most, int share) const {
  constexpr int addresses = 40;
  const std::int64_t whole = std::int64_t{tile_.m} * tile_.n * (share - addresses);
  const int step_m = 16 * tile_.warps_m, step_n = std::max(16 * tile_.warps_n, 32);
  int best_m = 0, best_n = 0;
  const auto consider = [&](int m, int n) {
    if (std::int64_t{m} * n * (most - addresses) > whole || m * n <= best_m * best_n) return;
    best_m = m, best_n = n;
  };
  for (int n = (tile_.n - 1) / step_n * step_n; n > 0; n -= step_n) consider(tile_.m, n);
  for (int m = (tile_.m - 1) / step_m * step_m; m > 0; m -= step_m) consider(m, tile_.n);
  if (!one_ || most_ == 0 || best_m == 0) return "use a smaller tile or more warps";
  return fmt::format("try a tile of {} x {}, or more warps", best_m, best_n);
}

std::string RegisterBudget::refused(const verify::LiveRegisters& need, int share) const {
  std::string out = fmt::format(
      "the assembler refuses a wgmma of {} registers: with addresses it needs {}, and a thread of "
      "this CTA starts with {}; ",
      need.product, need.product + beside_wgmma, share);
  const int n = need.product == 0 || !one_
                    ? 0
                    : tile_.n * std::max(share - beside_wgmma, 0) / need.product / 16 * 16;
  return out + (n > 0 ? fmt::format("a tile of {} x {} fits, or use fewer warps", tile_.m, n)
                      : "use a smaller n or fewer warps");
}

Diags RegisterBudget::check(const Configuration& config, const verify::LiveRegisters& need,
                            const std::string& ptx) const {
  Diags out;
  const auto report = [&](Level level, int line, std::string message) {
    std::optional<Place> place = line ? LineTable(ptx).place(line) : std::nullopt;
    out.add(
        {level, "register-pressure"_rule.id, place ? *std::move(place) : at_, std::move(message)});
  };
  const int starts = config.starting_registers();
  const int share = std::max(starts, config.registers());  // setmaxnreg only ever adds
  if (need.product > 0 && need.product + beside_wgmma > starts) {
    report(Level::Error, need.product_line, refused(need, starts));
    return out;
  }
  const int beside = config.options.producers ? beside_waits : beside_copies;
  const int spare = need.product > 0 ? fitted_in_beside_wgmma : fitted_in;
  if (need.most <= share + spare && most_ + beside <= share) return out;
  const int most = std::max(need.most, most_ + beside);
  report(
      Level::Warning, most_ ? 0 : need.line,
      fmt::format("about {} registers of each thread are in use at once, {} of them the tile's "
                  "accumulators: a thread of this CTA has {}, the assembler spills the others; {}",
                  most, most_, share, smaller(most, share)));
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
