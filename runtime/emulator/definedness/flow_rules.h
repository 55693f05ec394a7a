// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/definedness/flow_rules.h - what one instruction does to the undefined bits of a
// warp, lane by lane, before it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/emulator/definedness/definedness.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::emulator {

class FlowRules {
 public:
  FlowRules(ClusterDefinedness& owner, Warp& warp, const InstructionOps& now);

  /// The guard, addresses and what else decides; then all but collectives.
  void before();
  /// Collectives, for warp.mask.
  void gathered();
  /// Whether a source of a collective is undefined in one of those lanes; where, if so.
  std::optional<std::uint32_t> undefined_source(std::uint32_t lanes);
  /// The results of those lanes are undefined, or with origin 0 defined.
  void set_results(std::uint32_t lanes, std::uint32_t origin);

 private:
  using Shadow = RegisterShadow;
  static constexpr std::size_t most_results = 16;
  struct Result {
    std::uint64_t low = 0, high = 0;
  };

  Shadow& shadow() { return shadow_; }
  bool is_source(const RegisterUse& use) const {
    return use.reads && !use.address && use.operand != RegisterUse::guard;
  }
  bool any_source_holds() const;
  std::uint64_t bits_of(const RegisterUse& use, std::uint32_t lane) const;  // undefined ones
  std::uint64_t value_of(const RegisterUse& use, std::uint32_t lane) const;
  /// The source that stands `index`-th among them.
  const RegisterUse& source(std::size_t index) const { return *sources_[index]; }
  std::uint32_t origin_of(std::uint32_t lane);

  void check_guard();
  void check_uses();
  std::uint32_t addressing_lanes() const;
  void check_use(const RegisterUse& use, std::uint32_t lanes, std::string_view what);
  void propagate();
  void evaluate(std::uint32_t lane, Result* results);
  void copy(std::uint32_t lane, Result* results) const;
  std::uint64_t spread(std::uint32_t lane, const RegisterUse& to) const;
  std::uint64_t convert(std::uint32_t lane, const RegisterUse& to) const;
  std::uint64_t shifted(std::uint32_t lane, int width) const;
  std::uint64_t funnelled(std::uint32_t lane) const;
  std::uint64_t extracted(std::uint32_t lane, int width) const;
  std::uint64_t inserted(std::uint32_t lane, int width) const;
  std::uint64_t permuted(std::uint32_t lane) const;
  std::uint64_t from_table(std::uint32_t lane) const;

  // accesses.cc
  void load();
  void store();
  void change_atomically();
  void load_rows();
  void store_rows();
  void transpose();
  bool resolve_rows(int rows, std::uint32_t row_bytes, Access& access);
  // products.cc
  void multiply();

  ClusterDefinedness& owner_;
  Warp& warp_;
  const InstructionOps& now_;
  const Op& op_;  // the last of the instruction's
  const isa::Spelling& spelling_;
  Flow flow_;
  RegisterShadow& shadow_;
  std::vector<const RegisterUse*> sources_, results_;
  std::uint32_t guarded_ = 0;  // lanes of which nobody knows whether they take part
  std::uint32_t guard_origin_ = 0;
};

}  // namespace tartan::TARTAN_ABI::emulator
