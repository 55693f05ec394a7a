// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/atomic.h - the operations, order and scope of Builder::atomic() and fence() (PTX ISA
// 8.5, 8.7 and 9.7.13.14).
//
//   k.atomic(AtomicOp::add, C, row, col, x);                          // red or atom, relaxed, gpu
//   const Scalar ticket = k.atomic(AtomicOp::inc, count, 0, 0, blocks - 1,
//                                  {.order = MemoryOrder::acq_rel});
#pragma once

#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI {

/// old + x, min, max, the bitwise three, x itself; inc: old >= x ? 0 : old + 1; dec: old == 0 or
/// old > x ? x : old - 1.
enum class AtomicOp : std::uint8_t { add, min, max, bit_and, bit_or, bit_xor, exchange, inc, dec };

/// What else the operation orders.
enum class MemoryOrder : std::uint8_t { relaxed, acquire, release, acq_rel, sc };
/// The threads that it is atomic and ordered for.
enum class MemoryScope : std::uint8_t { cta, cluster, gpu, sys };

/// The order and scope of an atomic operation.
struct AtomicOptions {
  MemoryOrder order = MemoryOrder::relaxed;  // not sc, which fence() has
  MemoryScope scope = MemoryScope::gpu;
};

}  // namespace tartan::TARTAN_ABI
