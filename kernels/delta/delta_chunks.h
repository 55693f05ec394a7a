// SPDX-License-Identifier: Apache-2.0
// kernels/delta/delta_chunks.h - what the first kernel of the delta rule does whatever its gates: a
// CTA's chunk of keys and queries in shared memory, and what it writes.
#pragma once

#include <optional>

#include "kernels/delta/delta_inverse.h"
#include "kernels/delta/delta_shape.h"

namespace tartan::TARTAN_ABI::kernels {

/// The base of a description.
class ChunkKernel {
 public:
  static constexpr int c = DeltaRule::chunk, threads = 128;

  ChunkKernel(const ChunkKernel&) = delete;
  ChunkKernel& operator=(const ChunkKernel&) = delete;
  void describe();

 protected:
  ChunkKernel(Builder& k, const DeltaRule& with)
      : k_(k), with_(with), d_(with.key_dim), channels_(with.channel_gates) {}
  ~ChunkKernel() = default;

  /// A CTA's chunk.
  struct Place {
    const DeltaPlace& at;
    Scalar first, count;  // tokens
    Scalar matrix;        // of what is written
  };
  /// Declares what the gates need beside what all do.
  virtual void declare(const Scalar& tokens, const Scalar& heads) = 0;
  /// Reads gates while keys and queries are copied; a barrier follows.
  virtual void gates(const Place& place) = 0;
  /// Writes -N and weights, and what else the second kernel needs.
  virtual void chunk(const Place& place, const DeltaInverse& inverse) = 0;

  Scalar index(const Scalar& x) { return k_.convert(x, s32); }

  Builder& k_;
  const DeltaRule with_;
  const int d_;
  const bool channels_;
  Global Q_, g_, weights_, decays_;
  TiledMma mma_;
  Ring sK_;
  std::optional<Ring> sQ_;  // queries, if gates are those of heads
  Shared sBeta_;

 private:
  void load(const Place& place, const Scalar& chunk);
  void read_beta(const Place& place);
  void store_transform(const DeltaInverse& inverse, const Scalar& matrix);

  Global K_, beta_, transforms_;
};

/// The bodies for gates of heads, and of elements of keys.
void describe_chunks(Builder& k, const DeltaRule& with);
void describe_channel_chunks(Builder& k, const DeltaRule& with);

}  // namespace tartan::TARTAN_ABI::kernels
