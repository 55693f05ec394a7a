// SPDX-License-Identifier: Apache-2.0
// tartan/load.h - compiles and loads kernels for a device, each once: a Loader keeps what it has
// loaded, and a cache keeps PTX and machine code for the program's next start.
//
//   Loader loader(device, *Cache::open());
//   const auto product = loader.load(kernels::gemm(options));
//   if (!product) return product.diags();
//   const Status launched = (*product)->launch({blocks}, arguments);
#pragma once

#include <memory>
#include <string>

#include "tartan/cache.h"
#include "tartan/dsl/kernel.h"
#include "tartan/launch.h"
#include "tartan/support/times.h"

namespace tartan::TARTAN_ABI {

/// A kernel that is compiled and loaded.
struct ReadyKernel {
  Compiled compiled;
  LoadedKernel kernel;
  StepTimes times = {};  // of the request that loaded it; a later one finds it and takes no step
  /// launch() of tartan/launch.h.
  Status launch(Dim3 grid, const Arguments& arguments, const Stream* stream = nullptr,
                bool programmatic = false) const {
    LoadedKernel handle = kernel;
    return tartan::launch(handle, compiled, grid, arguments, stream, programmatic);
  }
};

/// A handle: copies share what is loaded, on any threads. Kernels stay loaded as long as a copy of
/// the Loader lives, the last 256 that were used; they keep the device.
class Loader {
 public:
  Loader(Device device, Cache cache);

  /// The kernel, compiled for the device's architecture, or for `arch`, and loaded. A second
  /// request for a kernel with a key (Kernel::keyed(); built-in kernels have one) does nothing; one
  /// without is described each time, and found by its code.
  Result<std::shared_ptr<const ReadyKernel>> load(const Kernel& kernel) const;
  Result<std::shared_ptr<const ReadyKernel>> load(const Kernel& kernel, Arch arch) const;
  /// What was compiled before, loaded; a second request for the same PTX does nothing.
  ///
  /// On a GPU the driver's assembler runs only where the cache has no machine code of this PTX for
  /// this GPU and driver; a text with setmaxnreg is never kept there: see docs/cache.md. Machine
  /// code that the driver refuses is deleted and assembled again: problems() says so.
  Result<std::shared_ptr<const ReadyKernel>> load(const Compiled& compiled) const;

  /// Of this Loader and its Cache, as warnings.
  Diags problems() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace tartan::TARTAN_ABI
