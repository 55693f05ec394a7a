// SPDX-License-Identifier: Apache-2.0
// runtime/engine.h - the interface of an engine (the CUDA driver, the emulator). Users see
// tartan/runtime/device.h.
//
// Users' objects keep the engine alive longer than its modules, streams and events, and a module
// longer than its kernels.
#pragma once

#include <functional>

#include "runtime/buffer_name.h"
#include "tartan/runtime/device.h"

namespace tartan::TARTAN_ABI::detail {

class EngineEvent;

class EngineStream {
 public:
  virtual ~EngineStream() = default;
  virtual Status synchronize() = 0;
  virtual Status wait(EngineEvent& event) = 0;
  virtual void* handle() const { return nullptr; }
  /// What `work` puts into the stream, as a graph: each call of the result puts all of it there
  /// again, at a lower price for the host and with shorter gaps. An empty function if the engine
  /// has no graphs; `work` is not called then.
  virtual Result<std::function<Status()>> captured(const std::function<Status()>& work) {
    (void)work;
    return std::function<Status()>();
  }
};

class EngineEvent {
 public:
  virtual ~EngineEvent() = default;
  virtual Status record(EngineStream* stream) = 0;
  virtual Result<double> milliseconds_since(const EngineEvent& start) const = 0;
};

class EngineKernel {
 public:
  virtual ~EngineKernel() = default;
  virtual const std::string& name() const = 0;
  virtual const std::vector<KernelParam>& params() const = 0;
  virtual Result<KernelResources> resources() const = 0;
  virtual Result<int> blocks_per_sm(std::uint32_t threads, std::uint32_t dynamic_shared) const = 0;
  virtual Status launch(const Launch& launch, const Arguments& arguments, EngineStream* stream) = 0;
};

/// A variable of a module.
struct EngineVariable {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
};

class EngineModule {
 public:
  virtual ~EngineModule() = default;
  virtual Result<std::shared_ptr<EngineKernel>> kernel(const std::string& name) = 0;
  virtual std::vector<std::string> kernels() const = 0;
  virtual Result<EngineVariable> variable(const std::string& name) = 0;
  virtual Diags warnings() = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual bool emulated() const = 0;
  virtual std::string name() const = 0;
  virtual Arch arch() const = 0;
  virtual int multiprocessors() const = 0;
  virtual Version newest_ptx() const = 0;
  virtual std::string assembler() const = 0;

  virtual Result<std::shared_ptr<EngineModule>> load(const std::string& ptx,
                                                     const std::string& name) = 0;
  virtual Result<std::shared_ptr<EngineModule>> load(
      std::span<const std::byte> image, const std::string& name,
      const std::vector<KernelInterface>& kernels) = 0;
  virtual Result<Assembled> assemble(const std::string& ptx, const std::string& name) = 0;
  /// Allocates `bytes` bytes (at least 1) at an address that is a multiple of 256.
  virtual Result<std::uint64_t> allocate(std::size_t bytes) = 0;
  virtual void free(std::uint64_t address) = 0;
  /// What findings call the buffer that starts there, where the engine names memory in them.
  virtual void set_name(std::uint64_t address, BufferName name) { (void)address, (void)name; }
  /// Whether a range of addresses is memory that kernels of this device can access.
  virtual Status check_memory(std::uint64_t address, std::size_t bytes) = 0;
  virtual Result<std::byte*> allocate_host(std::size_t bytes) = 0;
  virtual void free_host(std::byte* memory) = 0;
  virtual Status write(std::uint64_t address, std::span<const std::byte> bytes) = 0;
  virtual Status read(std::uint64_t address, std::span<std::byte> bytes) = 0;
  virtual Status fill(std::uint64_t address, std::size_t bytes, std::uint8_t byte) = 0;
  // The same in a stream, without waiting.
  virtual Status write(std::uint64_t address, std::span<const std::byte> bytes,
                       EngineStream& stream) = 0;
  virtual Status read(std::uint64_t address, std::span<std::byte> bytes, EngineStream& stream) = 0;
  virtual Status fill(std::uint64_t address, std::size_t bytes, std::uint8_t byte,
                      EngineStream& stream) = 0;
  /// Copies from a device, this or another one; through the host unless the engine knows better.
  /// Without a stream it waits for both devices, and is done on return.
  virtual Status copy(std::uint64_t address, Engine& source, std::uint64_t from, std::size_t bytes,
                      EngineStream* stream);
  /// Of a buffer, if the engine keeps account of what is written.
  virtual std::optional<Unwritten> unwritten(std::uint64_t address, std::size_t bytes) const {
    (void)address, (void)bytes;
    return std::nullopt;
  }
  virtual Result<std::shared_ptr<EngineStream>> stream() = 0;
  virtual Result<std::shared_ptr<EngineStream>> adopt_stream(void* handle) = 0;
  virtual Result<std::shared_ptr<EngineEvent>> event() = 0;
  virtual Status synchronize() = 0;

  virtual std::vector<Finding> findings() const = 0;
  virtual void clear_findings() = 0;
  virtual Report report() const = 0;
};

// The largest launch on every GPU since sm_30 (CUDA programming guide, "Compute Capabilities").
inline constexpr Dim3 largest_grid{2147483647, 65535, 65535};
inline constexpr Dim3 largest_block{1024, 1024, 64};
inline constexpr std::uint64_t most_threads = 1024;  // of a block
inline constexpr std::uint64_t most_blocks = 16;     // of a cluster; 8 wherever there are clusters

/// Checks a launch against a kernel: number and size of arguments, limits of grid and block. Shared
/// by both engines.
Status check_launch(const EngineKernel& kernel, const Launch& launch, const Arguments& arguments);
/// Reports that `module` has no variable `name`, and lists those it has.
Diags unknown_variable(std::string_view module, std::string_view name,
                       const std::vector<std::string_view>& known);
/// Checks that the cluster divides the grid.
Status check_cluster(Dim3 grid, Dim3 cluster);

}  // namespace tartan::TARTAN_ABI::detail

namespace tartan::TARTAN_ABI::emulator {
class Algebra;
/// With `algebra`, which must live as long, launches are under it.
Result<std::shared_ptr<detail::Engine>> make_engine(const DeviceOptions& options,
                                                    Algebra* algebra = nullptr);
}  // namespace tartan::TARTAN_ABI::emulator

namespace tartan::TARTAN_ABI::cuda {
/// GPU `ordinal` of the installed driver.
Result<std::shared_ptr<detail::Engine>> make_engine(int ordinal);
/// In a context of the caller's (CUcontext); null: the current one.
Result<std::shared_ptr<detail::Engine>> adopt_context(void* context);
/// The number of GPUs; 0 without a driver.
int device_count();
}  // namespace tartan::TARTAN_ABI::cuda
