// SPDX-License-Identifier: Apache-2.0
// runtime/cuda/context.h - one GPU's primary context, which every object of the CUDA engine holds.
//
// The GPU's other users in the process (the CUDA runtime, PyTorch) share its primary context, so
// that addresses can be passed between them. It is made current for one call at a time, on any
// thread, and the previous one is restored. An adopted context is the caller's, and never released.
//
// A kernel that fails destroys the context with all that is in it. The driver is then no longer
// called: the primary context may be made anew, and old addresses mean something else there. Who
// opens the GPU again makes the old users let go of it; when nobody holds it, it is a new one.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/engine.h"
#include "tartan/isa/target.h"

namespace tartan::TARTAN_ABI::cuda {

class Context {
 public:
  static Result<std::shared_ptr<Context>> open(int ordinal);
  /// A context of the caller's; null: the one that is current on this thread.
  static Result<std::shared_ptr<Context>> adopt(ContextHandle handle);
  /// The number of GPUs; 0 without a driver.
  static int device_count();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return driver_; }
  ContextHandle handle() const { return handle_; }
  DeviceOrdinal device() const { return device_; }

  /// Calls a driver function in this context, and returns its code. For destructors, which cannot
  /// report a failure (at exit the driver may be gone already), and for callers that write their
  /// own message.
  template <typename... Params, typename... Arguments>
  Code invoke(const Entry<Params...>& entry, Arguments... arguments) {
    Code code = Code::ContextIsDestroyed;
    {
      const std::shared_lock holding(held_mutex_);
      if (lost_) return code;
      code = driver_.context_push.address(handle_);
      if (code == Code::Success) {
        code = entry.address(arguments...);
        ContextHandle previous = nullptr;
        driver_.context_pop.address(&previous);
      }
    }
    if (kernel_failed(code) || code == Code::ContextIsDestroyed) lose(entry.symbol, code);
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
  /// Whether a kernel has destroyed the context.
  bool lost() const { return lost_; }
  /// The same, after asking the driver.
  bool alive();
  /// Whether the GPU's primary context is retained.
  bool held();
  /// Lets kernels and copies of this context access the memory of `peer` directly, where the GPUs
  /// are connected. Otherwise copies go through the host.
  void reach(const Context& peer);

  std::string device_name() const;
  /// Compute capability times ten: 90.
  int capability() const;
  int multiprocessors() const { return attribute(DeviceAttribute::Multiprocessors); }
  /// Shared memory per block with opt-in, in bytes.
  int shared_per_block() const { return attribute(DeviceAttribute::SharedPerBlockOptIn); }

  std::vector<Finding> findings() const {
    const std::scoped_lock lock(mutex_);
    return findings_;
  }
  void clear_findings();

 private:
  Context(const Driver& driver, DeviceOrdinal device, ContextHandle handle, bool held)
      : driver_(driver), device_(device), handle_(handle), held_(held) {}
  static Result<std::shared_ptr<Context>> retain(const Driver& driver, DeviceOrdinal device);
  int attribute(DeviceAttribute attribute) const;
  void lose(const char* call, Code code);
  void let_go();
  void share_loss(Context& other);

  const Driver& driver_;
  const DeviceOrdinal device_;
  const ContextHandle handle_;
  std::shared_mutex held_mutex_;  // of held_: shared by calls, which need the context
  bool held_;                     // retained, and to be released
  std::atomic<bool> lost_ = false;
  mutable std::mutex mutex_;  // of what follows
  std::vector<Finding> findings_;
  std::string loss_;  // the call that reported it
  Code loss_code_ = Code::Success;
  std::set<ContextHandle> peers_;
};

}  // namespace tartan::TARTAN_ABI::cuda
