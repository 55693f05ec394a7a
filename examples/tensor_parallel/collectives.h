// SPDX-License-Identifier: Apache-2.0
// Collectives of bf16 matrices over the ranks of one process, each a device.
#pragma once

#include <tartan/tartan.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

enum class Collective {
  all_reduce,      // to = the sum of all ranks' from
  reduce_scatter,  // to = part r of that sum, on rank r
  all_gather       // to = all ranks' from, one after the other
};

/// What one rank has in a collective. The work is queued in `stream`.
struct Part {
  tartan::Buffer from, to;
  const tartan::Stream* stream = nullptr;
};

class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual std::string name() const = 0;
  /// Starts the collective; parts[r] is rank r's. Parts may be the same memory in all_reduce.
  virtual tartan::Status operator()(Collective collective, std::span<const Part> parts) = 0;
};

/// NVIDIA's NCCL, for GPUs cuda:0 to cuda:(ranks - 1), if libnccl.so.2 is found.
tartan::Result<std::unique_ptr<Collectives>> nccl_collectives(int ranks);
/// Through the host's memory, on any devices: waits for them, adds and writes the results.
std::unique_ptr<Collectives> host_collectives();
