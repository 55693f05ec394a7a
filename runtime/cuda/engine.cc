// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fstream>

#include "runtime/cuda/assemble.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/image.h"
#include "runtime/cuda/jit.h"
#include "runtime/cuda/module.h"
#include "runtime/cuda/stream.h"
#include "runtime/engine.h"

namespace tartan::TARTAN_ABI::cuda {
namespace {

// The architecture to compile for: the GPU's own, with suffix a if it has one. A GPU newer than the
// table runs code for the newest architecture before it.
Arch arch_of(int capability) {
  if (find_arch({capability, 'a'})) return {capability, 'a'};
  Arch newest;
  for (const ArchRow& row : archs)
    if (row.arch.suffix == 0 && row.arch.sm <= capability) newest = row.arch;
  return newest;
}

// The version of the kernel's driver, "580.65.06"; empty where it is not to be found.
std::string driver_release() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string release;
  file >> release;
  return release;
}

class Engine final : public detail::Engine {
 public:
  explicit Engine(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  bool emulated() const override { return false; }

  std::string name() const override {
    const int version = driver().version();
    return fmt::format("{} (sm_{}), driver {}.{}", context_->device_name(), context_->capability(),
                       version / 1000, version % 1000 / 10);
  }

  Arch arch() const override { return arch_of(context_->capability()); }
  int multiprocessors() const override { return context_->multiprocessors(); }
  Version newest_ptx() const override { return cuda::newest_ptx(driver().version()); }

  std::string assembler() const override {
    const int version = driver().version();
    std::string out = fmt::format("sm_{}, CUDA {}.{}", context_->capability(), version / 1000,
                                  version % 1000 / 10);
    if (const std::string release = driver_release(); !release.empty())
      out += fmt::format(", driver {}", release);
    return out;
  }

  Result<std::shared_ptr<detail::EngineModule>> load(const std::string& ptx,
                                                     const std::string& name) override {
    return load_module(context_, ptx, name);
  }

  Result<std::shared_ptr<detail::EngineModule>> load(
      std::span<const std::byte> image, const std::string& name,
      const std::vector<KernelInterface>& kernels) override {
    return load_image(context_, image, name, kernels);
  }

  Result<Assembled> assemble(const std::string& ptx, const std::string& name) override {
    return cuda::assemble(*context_, ptx, name);
  }

  Result<std::uint64_t> allocate(std::size_t bytes) override {
    DeviceAddress address = 0;
    const Code code = context_->invoke(driver().memory_allocate, &address, bytes);
    if (code == Code::Success) return address;
    const char* call = driver().memory_allocate.symbol;
    Diags diags = context_->failure(call, code);
    if (code != Code::OutOfMemory) return diags;
    std::size_t free = 0, all = 0;
    context_->invoke(driver().memory_info, &free, &all);
    return {"driver"_rule,
            fmt::format("the GPU cannot allocate {} bytes, {} of its {} are free: {}", bytes, free,
                        all, diags[0].message)};
  }

  void free(std::uint64_t address) override { context_->invoke(driver().memory_free, address); }

  // The first and the last byte: an allocation of PyTorch may consist of several of the driver's.
  Status check_memory(std::uint64_t address, std::size_t bytes) override {
    for (const std::uint64_t at : {address, address + (bytes - 1)})
      if (auto status = check_byte(at); !status) return status;
    return Done{};
  }

  Result<std::byte*> allocate_host(std::size_t bytes) override {
    void* memory = nullptr;
    if (auto status = context_->call(driver().host_allocate, &memory, bytes); !status)
      return status.diags();
    return static_cast<std::byte*>(memory);
  }

  void free_host(std::byte* memory) override {
    context_->invoke(driver().host_free, static_cast<void*>(memory));
  }

  Status write(std::uint64_t address, std::span<const std::byte> bytes) override {
    if (auto status = synchronize(); !status) return status;
    return context_->call(driver().copy_to_device, address, static_cast<const void*>(bytes.data()),
                          bytes.size());
  }

  Status read(std::uint64_t address, std::span<std::byte> bytes) override {
    if (auto status = synchronize(); !status) return status;
    return context_->call(driver().copy_to_host, static_cast<void*>(bytes.data()), address,
                          bytes.size());
  }

  Status fill(std::uint64_t address, std::size_t bytes, std::uint8_t byte) override {
    if (auto status = synchronize(); !status) return status;
    return context_->call(driver().memory_set, address, byte, bytes);
  }

  Status write(std::uint64_t address, std::span<const std::byte> bytes,
               detail::EngineStream& stream) override {
    const auto queue = stream_handle(&stream);
    if (!queue) return queue.diags();
    return context_->call(driver().copy_to_device_on, address,
                          static_cast<const void*>(bytes.data()), bytes.size(), *queue);
  }

  Status read(std::uint64_t address, std::span<std::byte> bytes,
              detail::EngineStream& stream) override {
    const auto queue = stream_handle(&stream);
    if (!queue) return queue.diags();
    return context_->call(driver().copy_to_host_on, static_cast<void*>(bytes.data()), address,
                          bytes.size(), *queue);
  }

  Status fill(std::uint64_t address, std::size_t bytes, std::uint8_t byte,
              detail::EngineStream& stream) override {
    const auto queue = stream_handle(&stream);
    if (!queue) return queue.diags();
    return context_->call(driver().memory_set_on, address, byte, bytes, *queue);
  }

  Status copy(std::uint64_t address, detail::Engine& source, std::uint64_t from, std::size_t bytes,
              detail::EngineStream* stream) override {
    auto* gpu = dynamic_cast<Engine*>(&source);
    if (!gpu) return detail::Engine::copy(address, source, from, bytes, stream);
    const auto queue = stream_handle(stream);
    if (!queue) return queue.diags();
    if (stream) return enqueue_copy(address, *gpu->context_, from, bytes, *queue);
    for (Engine* each : {gpu, this})
      if (auto status = each->synchronize(); !status) return status;
    if (auto status = enqueue_copy(address, *gpu->context_, from, bytes, *queue); !status)
      return status;
    return synchronize();
  }

  Result<std::shared_ptr<detail::EngineStream>> stream() override { return make_stream(context_); }
  Result<std::shared_ptr<detail::EngineStream>> adopt_stream(void* handle) override {
    return cuda::adopt_stream(context_, static_cast<StreamHandle>(handle));
  }
  Result<std::shared_ptr<detail::EngineEvent>> event() override { return make_event(context_); }

  Status synchronize() override { return context_->call(driver().context_synchronize); }

  std::vector<Finding> findings() const override { return context_->findings(); }
  void clear_findings() override { context_->clear_findings(); }
  Report report() const override { return {}; }

 private:
  const Driver& driver() const { return context_->driver(); }

  Status check_byte(std::uint64_t address) {
    unsigned kind = 0;
    const Code code = context_->invoke(driver().pointer_attribute, static_cast<void*>(&kind),
                                       PointerAttribute::MemoryType, address);
    if (code == Code::InvalidValue)
      return {"foreign-device"_rule,
              fmt::format("no memory at 0x{:x} that the CUDA driver knows: expected an address of "
                          "GPU memory",
                          address)};
    if (code != Code::Success) return context_->failure(driver().pointer_attribute.symbol, code);
    if (kind != device_memory) return Done{};  // the host's, mapped
    DeviceOrdinal owner = 0;
    if (auto status = context_->call(driver().pointer_attribute, static_cast<void*>(&owner),
                                     PointerAttribute::DeviceOrdinal, address);
        !status)
      return status;
    if (owner == context_->device()) return Done{};
    return {"foreign-device"_rule,
            fmt::format("0x{:x} is memory of GPU {}, and this device is GPU {}: open cuda:{}, or "
                        "copy it with Buffer::copy_from()",
                        address, owner, context_->device(), owner)};
  }

  Status enqueue_copy(std::uint64_t address, Context& source, std::uint64_t from, std::size_t bytes,
                      StreamHandle queue) {
    if (source.handle() == context_->handle())
      return context_->call(driver().copy_on, address, from, bytes, queue);
    context_->reach(source);
    return context_->call(driver().copy_peer_on, address, context_->handle(), from, source.handle(),
                          bytes, queue);
  }

  std::shared_ptr<Context> context_;
};

Result<std::shared_ptr<detail::Engine>> engine_of(Result<std::shared_ptr<Context>> context) {
  if (!context) return context.diags();
  return std::shared_ptr<detail::Engine>(std::make_shared<Engine>(std::move(*context)));
}

}  // namespace

Result<std::shared_ptr<detail::Engine>> make_engine(int ordinal) {
  return engine_of(Context::open(ordinal));
}

Result<std::shared_ptr<detail::Engine>> adopt_context(void* context) {
  return engine_of(Context::adopt(static_cast<ContextHandle>(context)));
}

int device_count() { return Context::device_count(); }

}  // namespace tartan::TARTAN_ABI::cuda
