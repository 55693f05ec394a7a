// SPDX-License-Identifier: Apache-2.0
// dsl/state/tensor_sums.h - accumulators that products by tcgen05 keep in tensor memory. Not
// installed.
//
// While a body is described, nobody knows which accumulators products will add to, and where their
// values are needed. So what happens to an accumulator leaves a mark, and the registers of its
// fragments are variables. When the consumers' body is complete, tensor_movements() says where
// values have to be loaded from tensor memory, or stored there. Accumulators without products stay
// in registers.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <vector>

#include "compiler/ir/function_builder.h"
#include "dsl/state/in_flight.h"

namespace tartan::TARTAN_ABI::detail {

/// An accumulator of a tiled MMA that has the rows of a tcgen05.mma.
struct TensorSum {
  enum class What : std::uint8_t {
    declared,
    read,
    read_part,
    assigned,
    assigned_part,
    added,
    multiplied
  };
  /// Columns, of tensor memory or of fragments.
  struct Part {
    int first = 0, count = 0;
  };
  struct Event {
    What what;
    Part part;
    std::uint32_t region;  // the mark's
    int warpgroup;         // in whose body; -1: in that of all
    std::source_location at;
  };

  int ctas = 1;               // that multiply together
  int rows = 0, columns = 0;  // of a warpgroup's part
  Type type = Type::none;
  int warpgroup = -1;              // in whose body it is declared; -1: each has one
  std::optional<int> column = {};  // the first; none: no product adds to it
  Part operand = {};               // columns of A, where that is of registers; none: not yet
  // Its fragments', row by row.
  std::vector<std::shared_ptr<VariableRecord>> fragments = {};
  ir::Variable begun = {};  // u32, 0: it is zero, whatever tensor memory holds
  std::vector<Event> events = {};
};

/// Where the warps of both CTAs of a pair meet that have stored what a product reads, in each stage
/// of its ring: the thread that issues the product waits for them. The others go on: the ring keeps
/// them from arriving twice. Each warpgroup has its own.
struct StageMeetings {
  ir::Pointer barriers = {};
  int count = 0;
  ir::Variable parities = {};  // a bit for each stage
};

/// Those of a kernel, and what they share.
struct TensorSums {
  std::vector<std::shared_ptr<TensorSum>> all;
  int columns = 0;           // that products accumulate in
  bool pairs = false;        // of CTAs multiply: all products of the kernel
  std::set<int> votes = {};  // conditions that are the same in all lanes of a warp
  ir::Pointer address = {};  // where tcgen05.alloc writes that of the first one
  ir::Pointer done = {};     // an mbarrier for each warpgroup, at which it waits for products
  // Of the first CTA of a pair, for each of its warpgroups: where the warps of both meet.
  ir::Pointer met = {};
  std::vector<StageMeetings> meetings = {};
  // Of a warpgroup: the address of the first column in its lanes, the parities of its mbarriers.
  std::optional<ir::Variable> first = {}, parity = {}, met_parity = {};
};

}  // namespace tartan::TARTAN_ABI::detail
