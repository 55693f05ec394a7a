// SPDX-License-Identifier: Apache-2.0
// library/rest.h - the rest before what is timed. Not installed.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

/// Idles for thirty times as long as a batch of products takes, 40 ms at most, before a few such
/// batches are timed. A GPU at its power limit lowers its clocks by 15 % at some time, and who is
/// measured behind that has lost; after 40 ms it does not for 20 ms and more.
inline void rest_before(double batch_us) {
  constexpr double times = 30, most_us = 40'000;
  std::this_thread::sleep_for(
      std::chrono::duration<double, std::micro>(std::min(times * batch_us, most_us)));
}

}  // namespace tartan::TARTAN_ABI::detail
