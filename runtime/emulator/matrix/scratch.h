// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/matrix/scratch.h - memory in which products work, kept from one to the next: for
// one host thread at a time.
#pragma once

#include <memory>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {

class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  struct Store;
  Store& store() { return *store_; }

 private:
  const std::unique_ptr<Store> store_;
};

}  // namespace tartan::TARTAN_ABI::emulator
