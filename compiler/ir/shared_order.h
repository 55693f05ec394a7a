// SPDX-License-Identifier: Apache-2.0
// compiler/ir/shared_order.h - accesses to shared memory that no barrier orders, and barriers
// for which not all threads come. Not installed.
//
// The pass walks over a description as the threads of a block execute it: loops a few times, so
// that the end of a body meets its beginning. It keeps the accesses since the last barrier, with
// the bytes of each thread (thread_values.h), and compares each further one with them. Two are in
// order where a chain of barriers leads from the thread of the first to that of the second:
//
//   bar.sync             all threads, or those that execute it
//   bar.warp.sync        the lanes of a warp
//   turns                an mbarrier's waiters, behind all others
//   wgmma, TMA stores    read until they are waited for, whatever barriers are in between
//
// What a warp or a warpgroup reads together needs one behind its own threads' writes, too. Of a
// loop whose number of iterations is known 8 are walked over, else 3, of one inside another 2.
// Accesses of the same bytes by the same threads count once, so that time grows with what differs.
//
// Stages that producers fill are not looked at: their mbarriers order them. Where the description
// does not tell an address or a condition, the accesses may meet, and are reported; a barrier under
// such a condition counts. Nothing is said of memory that the user's own PTX accesses.
#pragma once

#include <functional>
#include <source_location>
#include <string_view>
#include <vector>

#include "compiler/ir/function.h"

namespace tartan::TARTAN_ABI::ir {

struct OrderOptions {
  int threads = 0;    // of a block
  int consumers = 0;  // the first of them, if the others are producers
  int consumers_barrier = -1;
  struct Memory {
    int base;            // the id of its address
    std::int64_t stage;  // bytes of a stage; of all of it, if it is no ring
  };
  std::vector<Memory> memories;  // that are looked at
  std::vector<int> turns;        // ids of the addresses of mbarriers by which warps take turns
  std::function<bool(std::string_view)> waits;  // whether threads wait for others in a text
};

/// Two accesses to the same bytes, one of them a write, that nothing orders.
struct Disorder {
  int memory = -1;  // the id of its address
  std::source_location before = {}, behind = {};
  bool writes_before = false, writes_behind = false;
  bool carried = false;      // by a loop: `behind` is in a later iteration
  bool within_warp = false;  // both are by lanes of a warp
  bool in_flight = false;    // `before` reads until it is waited for
};

/// A barrier that some of its threads do not reach, or more than it has.
struct Missed {
  std::source_location barrier = {}, condition = {};  // no line: there is no condition
  int expected = 0, found = 0;                        // threads
};

struct OrderFindings {
  std::vector<Disorder> disorders;
  std::vector<Missed> missed;
};

OrderFindings check_order(const Function& function, const OrderOptions& options);

}  // namespace tartan::TARTAN_ABI::ir
