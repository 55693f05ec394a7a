// SPDX-License-Identifier: Apache-2.0
// bindings/c/kernel.h - a compiled kernel of the C interface.
#pragma once

#include "bindings/c/handles.h"
#ifdef TARTAN_LLVM
#include "kernels/registry/registry.h"

/// Shared by the functions that devices have loaded.
struct tartan_kernel {
  struct State {
    tartan::Compiled compiled;
    tartan::builtins::Described described;
    std::string info, explained;
  };
  std::shared_ptr<const State> state;
};
#endif
