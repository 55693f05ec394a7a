// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/warp.h - values of other lanes, and words of bits.
//
//   Scalar sum = x;
//   for (int by = 1; by < 32; by *= 2)                       // an inclusive prefix sum
//     sum += select(k.lane() >= by, shuffle_up(sum, by), 0);
//   const Scalar any = ballot(x < 0) != 0;
//
// All 32 lanes of a warp must reach the calls of the first group, with each its own x of any type
// (PTX ISA 9.0, 9.7.9: shfl.sync, vote.sync).
#pragma once

#include <source_location>

#include "tartan/dsl/scalar.h"

namespace tartan::TARTAN_ABI {

using Here = std::source_location;

/// x of the lane whose number differs in the bits of `mask`, 0 to 31.
Scalar shuffle_xor(const Scalar& x, int mask, Here at = Here::current());
/// x of the lane `by` below (above) this one, 0 to 31; its own x where there is no such lane.
Scalar shuffle_up(const Scalar& x, const Scalar& by, Here at = Here::current());
Scalar shuffle_down(const Scalar& x, const Scalar& by, Here at = Here::current());
/// x of lane number `lane` % 32.
Scalar shuffle(const Scalar& x, const Scalar& lane, Here at = Here::current());
/// A bit for each lane in which the condition holds, u32.
Scalar ballot(const Scalar& condition, Here at = Here::current());
/// Whether the condition holds in all lanes, in any lane.
Scalar all_lanes(const Scalar& condition, Here at = Here::current());
Scalar any_lane(const Scalar& condition, Here at = Here::current());

// ---- Words of bits, 32 bits each.

/// Any function of three bits, for each bit of a, b and c: bit 4a + 2b + c of `table` is the
/// result. `table` is f(0xF0, 0xCC, 0xAA): (a & b) | c is 0xEA (PTX ISA 9.0, 9.7.8.6).
Scalar lop3(const Scalar& a, const Scalar& b, const Scalar& c, int table,
            Here at = Here::current());
/// Four bytes of the eight of a (0 to 3) and b (4 to 7): each hexadecimal digit of `selector`
/// chooses one, the lowest digit the lowest byte; 8 more copies its sign (PTX ISA 9.0, 9.7.8.7).
Scalar prmt(const Scalar& a, const Scalar& b, const Scalar& selector, Here at = Here::current());
/// c + the dot product of four bytes of a and of b; s32 bytes have a sign, u32 bytes have none. The
/// result has the type of c.
Scalar dp4a(const Scalar& a, const Scalar& b, const Scalar& c, Here at = Here::current());

}  // namespace tartan::TARTAN_ABI
