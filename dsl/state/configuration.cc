// SPDX-License-Identifier: Apache-2.0
#include "dsl/state/configuration.h"

#include <algorithm>
#include <string_view>

#include "tartan/dsl/model.h"
#include "tartan/isa/advice.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

constexpr int most_registers = 255;  // of any thread

}  // namespace

bool has_known_roles(const KernelOptions& options) {
  const auto& roles = options.roles;
  constexpr std::string_view known[] = {"compute", "load"};
  for (std::size_t i = 0; i < roles.size(); ++i)
    if (i == std::size(known) || roles[i].name != known[i] || roles[i].warps < 1 ||
        roles[i].warps > 32)
      return false;
  return true;
}

KernelOptions with_roles(KernelOptions options) {
  if (options.roles.empty() || !has_known_roles(options)) return options;
  options.block = 32 * options.roles[0].warps;
  options.producers = options.roles.size() > 1 ? options.roles[1].warps : 0;
  return options;
}

Configuration::Configuration(const KernelOptions& options, const Target& target)
    : target(target), options(with_roles(options)) {
  // Before sm_80 there is no asynchronous copy that other threads could wait for.
  if (!has_async_copy()) this->options.producers = 0;
  // setmaxnreg requires a bound on registers. Where products accumulate in tensor memory, which has
  // room for few CTAs, the assembler would spill registers to make room for more of them.
  const bool accumulates_elsewhere =
      target.has(Feature::tensor_memory) && options.producers > 0 && options.max_registers == 0;
  if ((moves_registers() || accumulates_elsewhere) && options.min_blocks == 0)
    this->options.min_blocks = 1;
}

ir::LaunchBounds Configuration::bounds() const {
  ir::LaunchBounds out;
  out.block[0] = all_threads();
  out.min_blocks = options.min_blocks;
  out.max_registers = options.max_registers;
  if (has_tma()) out.cluster = options.cluster;
  return out;
}

bool Configuration::moves_registers() const {
  return target.has(Feature::register_moves) &&
         isa::advised(isa::Advice::register_moves, target.arch) && options.producers > 0 &&
         options.producers % 4 == 0 && options.block % 128 == 0 && options.min_blocks <= 1 &&
         options.max_registers == 0;
}

int Configuration::registers() const {
  return moves_registers() ? consumer_registers() : starting_registers();
}

int Configuration::starting_registers() const {
  if (options.max_registers) return options.max_registers;
  return std::min(first_registers(), most_registers);
}

// Registers are allocated in multiples of 8. A multiprocessor has four partitions of 512 registers
// per lane, over which it distributes its warps.
int Configuration::first_registers() const {
  constexpr int of_part = 512, parts = 4;
  const int warps = std::max(options.min_blocks, 1) * std::max((all_threads() + 31) / 32, 1);
  return of_part / ((warps + parts - 1) / parts) / 8 * 8;
}

// Consumers that request more than producers release would wait forever.
int Configuration::consumer_registers() const {
  constexpr int most = 240;
  const int warps = std::max(options.block / 32, 1);
  const int given = options.producers * (first_registers() - producer_registers);
  return std::min(first_registers() + given / warps / 8 * 8, most);
}

}  // namespace detail

model::ThreadBudget model::ThreadBudget::of(const KernelOptions& options, const Target& target) {
  const detail::Configuration config(options, target);
  return {.threads = config.all_threads(),
          .at_start = config.starting_registers(),
          .consumers = config.registers(),
          .moves = config.moves_registers()};
}

}  // namespace tartan::TARTAN_ABI
