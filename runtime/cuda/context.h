// SPDX-License-Identifier: Apache-2.0
// runtime/cuda/context.h - one GPU's primary context, which every object of the CUDA engine holds.
//
// The GPU's other users in the process (the CUDA runtime, PyTorch) share its primary context, so
// that addresses can be passed between them. It is made current for one call at a time, on any
// thread, and the previous one is restored.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/engine.h"
#include "tartan/isa/target.h"

namespace tartan::inline TARTAN_ABI::cuda {

class Context {
 public:
  static Result<std::shared_ptr<Context>> open(int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return driver_; }

  /// Calls a driver function in this context, and returns its code. For destructors, which cannot
  /// report a failure (at exit the driver may be gone already), and for callers that write their
  /// own message.
  template <typename... Params, typename... Arguments>
  Code invoke(const Entry<Params...>& entry, Arguments... arguments) {
    if (const Code code = driver_.context_push.address(handle_); code != Code::Success) return code;
    const Code code = entry.address(arguments...);
    ContextHandle previous = nullptr;
    driver_.context_pop.address(&previous);
    return code;
  }

  /// The same, with a failure as diagnostics. The error of a kernel that failed earlier surfaces
  /// here, and becomes a finding.
  template <typename... Params, typename... Arguments>
  Status call(const Entry<Params...>& entry, Arguments... arguments) {
    const Code code = invoke(entry, arguments...);
    if (code == Code::Success) return Done{};
    return failure(entry.symbol, code);
  }

  Diags failure(const char* call, Code code);

  std::string device_name() const;
  /// Compute capability times ten: 90.
  int capability() const;
  /// Shared memory per block with opt-in, in bytes.
  int shared_per_block() const { return attribute(DeviceAttribute::SharedPerBlockOptIn); }

  std::vector<Finding> findings() const {
    const std::scoped_lock lock(mutex_);
    return findings_;
  }
  void clear_findings();

 private:
  Context(const Driver& driver, DeviceOrdinal device, ContextHandle handle)
      : driver_(driver), device_(device), handle_(handle) {}
  int attribute(DeviceAttribute attribute) const;

  const Driver& driver_;
  const DeviceOrdinal device_;
  const ContextHandle handle_;
  mutable std::mutex mutex_;  // of findings_ and lost_
  std::vector<Finding> findings_;
  bool lost_ = false;
};

}  // namespace tartan::inline TARTAN_ABI::cuda
