// SPDX-License-Identifier: Apache-2.0
// dsl/state/memory.h - the memories of a kernel's matrices, and their writers. Not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/function_builder.h"
#include "compiler/ir/shared_layout.h"
#include "tartan/dsl/tensor.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::detail {

/// The memory of a matrix: its address, and whether it is shared.
struct Memory {
  ir::Pointer base;
  bool in_shared = false;
  std::int64_t bytes = 0;
  int stages = 1;                     // of a ring
  Operand operand = Operand::none;    // of a product, that it was declared for
  std::optional<Place> read = {};     // the first time
  std::string name = {};              // once it was read or filled
  bool ever_written = false;          // or, of shared memory, its address was taken
  bool ever_read = false;             // of global memory
  std::optional<Place> written = {};  // by threads, with no barrier since
  // Since the last cluster barrier: written by this CTA; by another one.
  std::optional<Place> written_here = {}, written_by_others = {};
  int owner = -1;  // of another CTA's memory: the number of the same memory here
  // With warp specialization: written by consumers; filled by one of their pipelines.
  std::optional<Place> written_by_consumers = {}, read_by_consumers = {}, filled = {},
                       read_by_producers = {};
  // Filled in each step of a pipeline that has more stages: where, and how many it has.
  std::optional<Place> overfilled = {};
  int pipeline_stages = 0;
  std::size_t filled_by = 0;
  int param = -1;                // of global memory: which of the kernel's
  bool rounded_to_tf32 = false;  // what is copied here from memory of f32
  int aligned = 0;               // bytes, of shared() matrices
  std::string shown = {};        // of shared() matrices: name, type and layout, for the text's head
};

/// Shared memory in which warps or warpgroups stage boxes for stores, so many boxes for each.
struct TmaStaging {
  int memory = -1;            // its number
  int box_bytes = 0;          // of a box
  int threads = 0;            // that stage boxes together
  int batch = 0;              // boxes that are stored together
  int slots = 0;              // batches that fit
  bool used = false;          // something was stored through it
  int ring = -1;              // whose memory they are staged in: no pipeline needs it any more
  bool ring_in_use = false;   // after all
  bool beside_rings = false;  // where that is known from a description before
};

/// The memories of a kernel. A Tensor refers to its memory by number.
class Memories {
 public:
  /// Returns its number.
  int add(Memory memory) {
    all_.push_back(std::move(memory));
    return static_cast<int>(all_.size()) - 1;
  }
  Memory& of(const Tensor& tensor) { return all_[static_cast<std::size_t>(tensor.memory)]; }
  const Memory& of(const Tensor& tensor) const {
    return all_[static_cast<std::size_t>(tensor.memory)];
  }
  const std::vector<Memory>& all() const { return all_; }
  /// This CTA's memory, for a tensor in the same memory of another CTA.
  Memory& owner_of(const Tensor& tensor) {
    return all_[static_cast<std::size_t>(of(tensor).owner)];
  }

  /// Allocates shared memory and counts it. By default it is aligned to 128 bytes, which
  /// suffices for every access by threads; TMA and wgmma swizzle by address and need 1024.
  ir::Pointer share(ir::FunctionBuilder& f, const std::string& name, std::int64_t bytes,
                    int align = 128) {
    shared_.place(bytes, align);
    return f.shared(name, bytes, align);
  }
  std::int64_t shared_bytes() const { return shared_.bytes(); }
  const ir::SharedLayout& shared() const { return shared_; }

  /// Whether threads wrote any since the last barrier.
  bool is_any_written() const {
    return std::any_of(all_.begin(), all_.end(),
                       [](const Memory& each) { return each.written.has_value(); });
  }
  /// The kernel's own fence makes what was written so far visible to products.
  void note_fence() { fenced_ = true; }
  void note_written(Memory& memory, const Place& at) { memory.written = at, fenced_ = false; }
  bool is_any_unfenced() const { return is_any_written() && !fenced_; }
  void forget_writes() {
    for (Memory& each : all_) each.written.reset();
  }
  void forget_writes_in_cluster() {
    for (Memory& each : all_) {
      each.written.reset();
      each.written_here.reset(), each.written_by_others.reset();
    }
  }

 private:
  std::vector<Memory> all_;
  bool fenced_ = false;
  ir::SharedLayout shared_;
};

}  // namespace tartan::TARTAN_ABI::detail
