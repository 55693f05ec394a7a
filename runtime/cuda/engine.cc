// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "runtime/cuda/context.h"
#include "runtime/cuda/module.h"
#include "runtime/cuda/stream.h"
#include "runtime/engine.h"

namespace tartan::inline TARTAN_ABI::cuda {
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

  Result<std::shared_ptr<detail::EngineModule>> load(const std::string& ptx,
                                                     const std::string& name) override {
    return load_module(context_, ptx, name);
  }

  Result<std::uint64_t> allocate(std::size_t bytes) override {
    DeviceAddress address = 0;
    const Code code = context_->invoke(driver().memory_allocate, &address, bytes);
    if (code == Code::Success) return address;
    const char* call = driver().memory_allocate.symbol;
    if (code != Code::OutOfMemory) return context_->failure(call, code);
    return {"driver"_rule, fmt::format("the GPU cannot allocate {} bytes: {}", bytes,
                                       driver().describe(call, code))};
  }

  void free(std::uint64_t address) override { context_->invoke(driver().memory_free, address); }

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

  Result<std::shared_ptr<detail::EngineStream>> stream() override { return make_stream(context_); }
  Result<std::shared_ptr<detail::EngineEvent>> event() override { return make_event(context_); }

  Status synchronize() override { return context_->call(driver().context_synchronize); }

  std::vector<Finding> findings() const override { return context_->findings(); }
  void clear_findings() override { context_->clear_findings(); }
  Report report() const override { return {}; }

 private:
  const Driver& driver() const { return context_->driver(); }
  std::shared_ptr<Context> context_;
};

}  // namespace

Result<std::shared_ptr<detail::Engine>> make_engine(int ordinal) {
  auto context = Context::open(ordinal);
  if (!context) return context.diags();
  return std::shared_ptr<detail::Engine>(std::make_shared<Engine>(std::move(*context)));
}

}  // namespace tartan::inline TARTAN_ABI::cuda
