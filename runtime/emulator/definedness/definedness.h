// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/definedness/definedness.h - which bits nobody has written, in launches that are
// watched: those of registers, shared memory, local memory and buffers.
//
// Shadow bits say so: a 1 is a bit that nobody wrote, or that was computed from one. They move with
// the values. Where they come to decide something (a branch, an address, a store to global memory)
// there is a finding, and from there on the value counts as defined.
//
//   Flow                 how the bits go through an instruction: a column of its row
//   definite.cc          the registers that may be read before they are written: only those start
//                        undefined, so most programs have none
//   RegisterShadow       shadow bits of a warp's registers, and where they came from
//   ClusterDefinedness   what happens before an op runs, and what asynchronous copies do
//   UndefinedReports     the first use of each origin in full, the others counted
//
// While a warp has no undefined bit, an op that accesses memory costs a look at the shadow of that
// memory, and any other op a test.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/emulator/definedness/register_shadow.h"
#include "runtime/emulator/definedness/reports.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/memory.h"
#include "runtime/emulator/machine/observers.h"
#include "runtime/emulator/machine/program.h"
#include "runtime/emulator/machine/warp.h"
#include "tartan/isa/spelling.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::emulator {

/// The flow of an instruction's opcode.
Flow flow_of(const isa::Spelling& spelling);
/// Whether an instruction of that flow does something beside giving results: its guard decides
/// that.
bool has_side_effect(Flow flow);
/// Whether a source of an instruction that Uses, Collects or goes ByHandler is a value that moves
/// on, and decides nothing.
bool is_value(const isa::Spelling& spelling, const RegisterUse& use);
/// How undefined bits go through the instructions of Program::registers; fills Program::unwritten
/// and Op::examined.
class Flows final : public Observation {
 public:
  static constexpr Seat seat = 4;

  /// Not `examined`: Program::unwritten alone is asked for, by launches that begin with something
  /// else than zeros there.
  explicit Flows(bool examined) : examined_(examined) {}
  void finish(Program& program, const ptx::Module& module) override;
  Flow operator[](std::size_t instruction) const { return flows_[instruction]; }

 private:
  bool examined_;
  std::vector<Flow> flows_;
};

/// What a launch shares.
class LaunchDefinedness final : public LaunchObserver {
 public:
  explicit LaunchDefinedness(const LaunchContext& context);
  void attach(Cluster& cluster) override;

  UndefinedReports reports;
  detail::Trial* const poisoned;  // of a launch in which racing reads alone bring undefined values
  const std::uint64_t grid;
};

/// The undefined bits of a cluster's threads.
class ClusterDefinedness final : public ValueEvents {
 public:
  static constexpr Seat seat = Flows::seat;

  ClusterDefinedness(Cluster& cluster, LaunchDefinedness& launch);
  void start() override;
  void run(Warp& warp, const Op& op) override;
  void gathered(Warp& warp, std::uint32_t pc) override;
  void gathered_apart(Warp& warp, std::span<const GatheredPlace> places) override;
  void fill(Warp& warp, const std::byte* to, std::uint64_t bytes) override;
  void move(Warp& warp, std::byte* to, const std::byte* from, std::uint64_t bytes) override;
  /// Where it goes to global memory, that decides what is stored.
  void store(Warp& warp, int lane, const StoredBytes& stored) override;
  /// What comes from a lane that its member mask, op.e, does not name is undefined.
  void shuffle(Warp& warp, const Op& op, const std::uint32_t (&from)[32]) override;
  void load_element(Warp& warp, int lane, const std::byte* from,
                    const ElementPlace& place) override;
  void store_element(Warp& warp, int lane, std::byte* to, const ElementPlace& place) override;
  void store_register(Warp& warp, int, std::uint32_t, const StoredBytes& stored) override {
    fill(warp, stored.to, stored.bytes);
  }
  void copy_register(Warp& warp, std::uint32_t to, std::uint32_t from, int bits) override;
  bool multiply(Warp& warp, const MatrixOperation& m, const ScalePlaces& places) override;
  bool issue_product(Warp& warp, std::span<Warp> warps, const WarpgroupOperation& w) override;
  void multiply_warpgroup(Warp& warp, std::span<Warp> warps, const WarpgroupOperation& operation,
                          const WgmmaOperands& operands) override;
  void gave_columns(Warp& warp, const TensorMemory::Allocation& given) override;
  void load_tensor(Warp& warp, const TensorMove& move, isa::TensorCell first) override;
  void store_tensor(Warp& warp, const TensorMove& move, isa::TensorCell first) override;
  void multiply_tensor(Warp& warp, const TensorProductPlaces& places) override;
  void copy_to_tensor(Warp& warp, const std::byte* from, isa::TensorCell to, std::uint64_t bytes,
                      std::uint32_t rank) override;
  void shift_tensor(Warp& warp, const TensorArea& rows, std::uint32_t rank) override;

  /// Registers that got defined values by an op of its own.
  void define(Warp& warp, std::uint32_t slot, int bits, std::uint32_t lanes);
  /// In a poisoned launch: what those lanes load by the op at warp.pc - 1 is undefined, since the
  /// load at `pc` races. It is to be called before the op is done, or after a collective.
  void poison(Warp& warp, std::uint32_t lanes, std::uint32_t pc);

 private:
  friend class FlowRules;

  /// A piece of shadow memory; null where all is defined.
  struct Piece {
    std::byte* bits = nullptr;
    UndefinedOrigin::Place place = UndefinedOrigin::Place::shared;
    std::uint64_t address = 0;  // in it, in local memory, or of global memory
  };
  Piece piece(Warp& warp, const std::byte* host);
  /// Whether those lanes' bytes are all in the block's own shared memory, and defined.
  bool defined_in_shared(Warp& warp, std::uint32_t lanes, std::byte* const* at,
                         std::uint64_t bytes) const;
  bool any_undefined(const Piece& piece, std::uint64_t bytes) const;

  /// The undefined bits of the block's cells.
  std::vector<std::uint32_t>& tensor(const Warp& warp);
  std::uint32_t cell_origin(const Warp& warp, std::size_t cell);
  void note_shifted(std::uint32_t rank, std::size_t cell, bool shifted);
  /// What a shift of those rows leaves there: 0 if it is the same in every reading of the manual.
  std::uint8_t mark_of_shifted(Warp& warp, std::uint32_t rank, const TensorArea& rows,
                               isa::TensorCell at);
  bool is_shifted(std::uint32_t rank, std::size_t cell) const {
    return !shifted_.empty() && shifted_[rank][cell];
  }

  const isa::Spelling& spelling(const InstructionOps& now) const;
  Flow flow(const InstructionOps& now) const;
  /// Whether a register that the instruction names has undefined bits.
  bool touches_undefined(Warp& warp, const InstructionOps& now);
  /// A load or store of a warp without undefined registers, most of them: true where it is settled.
  bool access_defined(Warp& warp, const Op& op, Flow flow);

  RegisterShadow& shadow(Warp& warp);
  void settle(Warp& warp) { warp.undefined = shadow(warp).any(); }
  /// Where the undefined bits of that memory came from, as the op at warp.pc - 1 finds them.
  std::uint32_t origin(Warp& warp, const Piece& piece, std::uint32_t lane);
  std::uint32_t origin(Warp& warp, const RegisterUse& use, std::uint32_t lane);
  void remember(const std::byte* bits, std::uint64_t bytes, std::uint32_t origin);
  void report(Warp& warp, std::uint32_t lane, std::uint32_t origin, std::string_view what);

  Cluster& cluster_;
  LaunchDefinedness& launch_;
  std::vector<std::vector<std::byte>> shared_;      // of blocks
  std::vector<std::vector<std::byte>> locals_;      // of warps
  std::vector<RegisterShadow> registers_;           // of warps
  std::vector<std::vector<std::uint32_t>> tensor_;  // of blocks
  /// Of blocks: undefined cells that a shift made so. Empty before the first shift.
  std::vector<std::vector<bool>> shifted_;
  const Allocation* recent_ = nullptr;
  std::unordered_map<const std::byte*, std::uint32_t> origins_;  // of words that were stored so
};

}  // namespace tartan::TARTAN_ABI::emulator
