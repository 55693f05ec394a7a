// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <optional>

#include "compiler/isa/target_hint.h"
#include "compiler/isa/target_name.h"
#include "runtime/emulator/decode/spelled_out.h"
#include "runtime/emulator/machine/multiprocessor.h"
#include "runtime/emulator/module.h"
#include "runtime/emulator/schedules/schedule.h"
#include "tartan/ptx/parser.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Work is done when a launch returns: streams have nothing to wait for, but they report what
// failed, as does whatever waits for work on a GPU.
class Stream : public detail::EngineStream {
 public:
  explicit Stream(std::shared_ptr<Machine> machine) : machine_(std::move(machine)) {}
  Status synchronize() override { return machine_->take_failures(); }
  Status wait(detail::EngineEvent&) override { return Done{}; }  // what it is of has been done

 private:
  std::shared_ptr<Machine> machine_;
};

class Event : public detail::EngineEvent {
 public:
  Status record(detail::EngineStream*) override {
    time_ = std::chrono::steady_clock::now();
    return Done{};
  }
  Result<double> milliseconds_since(const detail::EngineEvent& start) const override {
    const auto* from = dynamic_cast<const Event*>(&start);
    if (!from) return {"foreign-device"_rule, "the start event does not belong to the emulator"};
    if (!from->time_ || !time_)
      return {"driver"_rule, fmt::format("the {} event was not recorded: call record() first",
                                         from->time_ ? "end" : "start")};
    return std::chrono::duration<double, std::milli>(*time_ - *from->time_).count();
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> time_;  // none: not recorded
};

// A version and a target that are unknown are so to the driver, too.
void judge_header(const ptx::Module& module, Diags& diags) {
  const Source& source = *module.source;
  if (const std::string wrong = version_problem(module.version); !wrong.empty())
    diags.report("unknown-version"_rule, source.place(module.version_offset), wrong);
  if (const std::string wrong = target_problem(module.targets[0]); !wrong.empty())
    diags.report("unknown-target"_rule, source.place(module.target_offset), wrong);
}

class Engine : public detail::Engine {
 public:
  explicit Engine(std::shared_ptr<Machine> machine) : machine_(std::move(machine)) {}

  bool emulated() const override { return true; }
  std::string name() const override {
    return machine_->hardware ? fmt::format("emulator ({})", machine_->hardware->text())
                              : "emulator";
  }
  Arch arch() const override { return machine_->hardware.value_or(Arch{90, 'a'}); }
  int multiprocessors() const override {
    return static_cast<int>(multiprocessor_of(arch().sm).count);
  }
  Version newest_ptx() const override { return newest_version; }
  std::string assembler() const override { return {}; }

  Result<std::shared_ptr<detail::EngineModule>> load(const std::string& ptx,
                                                     const std::string& name) override {
    Diags diags;
    ptx::Module tree = ptx::parse(std::make_shared<Source>(name, ptx), diags);
    if (diags.ok()) judge_header(tree, diags);
    if (!diags.ok()) return diags;
    spell_out(tree);
    const Arch target = named_target(tree.targets)->arch;
    auto module = std::make_shared<Module>(machine_, std::move(tree), target);
    if (Status status = module->place_variables(); !status) return status.diags();
    return std::shared_ptr<detail::EngineModule>(std::move(module));
  }

  Result<std::shared_ptr<detail::EngineModule>> load(std::span<const std::byte>,
                                                     const std::string& name,
                                                     const std::vector<KernelInterface>&) override {
    return {
        "module-load"_rule,
        fmt::format("{} is machine code of a GPU, which the emulator does not run: load the PTX "
                    "text that it was assembled from",
                    name)};
  }

  Result<Assembled> assemble(const std::string&, const std::string& name) override {
    return {
        "module-load"_rule,
        fmt::format("{} cannot be assembled: the assembler is the CUDA driver's, and this device "
                    "is the emulator, which loads PTX text",
                    name)};
  }

  Result<std::uint64_t> allocate(std::size_t bytes) override {
    if (const auto address = machine_->allocate_buffer(bytes)) return *address;
    return {"out-of-memory"_rule,
            fmt::format("out of host memory: cannot allocate a buffer of {} bytes", bytes)};
  }
  void free(std::uint64_t address) override { machine_->free(address); }
  void set_name(std::uint64_t address, detail::BufferName name) override {
    machine_->set_name(address, std::move(name));
  }

  Status check_memory(std::uint64_t address, std::size_t bytes) override {
    if (machine_->access(
            address, bytes, [](const std::byte*) {}, false))
      return Done{};
    return not_memory(address, bytes);
  }

  Result<std::byte*> allocate_host(std::size_t bytes) override {
    if (auto* memory = new (std::nothrow) std::byte[bytes]()) return memory;
    return {"out-of-memory"_rule,
            fmt::format("out of host memory: cannot allocate {} bytes", bytes)};
  }
  void free_host(std::byte* memory) override { delete[] memory; }

  Status write(std::uint64_t address, std::span<const std::byte> bytes) override {
    if (Status status = synchronize(); !status) return status;
    return write_now(address, bytes);
  }
  Status read(std::uint64_t address, std::span<std::byte> bytes) override {
    if (Status status = synchronize(); !status) return status;
    return read_now(address, bytes);
  }
  Status fill(std::uint64_t address, std::size_t bytes, std::uint8_t byte) override {
    if (Status status = synchronize(); !status) return status;
    return fill_now(address, bytes, byte);
  }
  Status write(std::uint64_t address, std::span<const std::byte> bytes,
               detail::EngineStream&) override {
    return write_now(address, bytes);
  }
  Status read(std::uint64_t address, std::span<std::byte> bytes, detail::EngineStream&) override {
    return read_now(address, bytes);
  }
  Status fill(std::uint64_t address, std::size_t bytes, std::uint8_t byte,
              detail::EngineStream&) override {
    return fill_now(address, bytes, byte);
  }

  std::optional<Unwritten> unwritten(std::uint64_t address, std::size_t bytes) const override {
    return machine_->unwritten(address, bytes);
  }

  Result<std::shared_ptr<detail::EngineStream>> stream() override {
    return std::shared_ptr<detail::EngineStream>(std::make_shared<Stream>(machine_));
  }
  Result<std::shared_ptr<detail::EngineStream>> adopt_stream(void* handle) override {
    if (!handle) return stream();
    return {"foreign-device"_rule,
            "the emulator cannot use a stream of the CUDA driver: open a GPU, or Device::stream()"};
  }
  Result<std::shared_ptr<detail::EngineEvent>> event() override {
    return std::shared_ptr<detail::EngineEvent>(std::make_shared<Event>());
  }
  Status synchronize() override { return machine_->take_failures(); }

  std::vector<Finding> findings() const override { return machine_->findings(); }
  void clear_findings() override { machine_->clear_findings(); }
  Report report() const override { return machine_->report(); }

 private:
  Status write_now(std::uint64_t address, std::span<const std::byte> bytes) {
    return access(address, bytes.size(),
                  [=](std::byte* to) { std::memcpy(to, bytes.data(), bytes.size()); });
  }
  Status read_now(std::uint64_t address, std::span<std::byte> bytes) {
    return access(
        address, bytes.size(),
        [=](const std::byte* from) { std::memcpy(bytes.data(), from, bytes.size()); }, false);
  }
  Status fill_now(std::uint64_t address, std::size_t bytes, std::uint8_t byte) {
    return access(address, bytes, [=](std::byte* to) { std::memset(to, byte, bytes); });
  }

  template <typename Use>
  Status access(std::uint64_t address, std::size_t bytes, Use&& use, bool writes = true) {
    if (machine_->access(address, bytes, use, writes)) return Done{};
    return not_memory(address, bytes);
  }

  static Diags not_memory(std::uint64_t address, std::size_t bytes) {
    return Diags::one("memory-fault"_rule, {},
                      fmt::format("{} bytes at 0x{:x} are not inside a buffer", bytes, address));
  }

  std::shared_ptr<Machine> machine_;
};

}  // namespace

Result<std::shared_ptr<detail::Engine>> make_engine(const DeviceOptions& options,
                                                    Algebra* algebra) {
  std::optional<Arch> hardware;
  if (!options.hardware.empty()) {
    const auto parsed = Arch::parse(options.hardware);
    if (!parsed) return parsed.diags();
    hardware = *parsed;
    if (!hardware_of(*hardware))
      return {"unknown-target"_rule,
              fmt::format("the emulator does not support hardware {}: expected sm_70 or later",
                          options.hardware)};
  }
  if (!options.schedule.empty() && !make_schedule(options.schedule))
    return {"usage"_rule,
            fmt::format("no schedule {}: expected the number of a seed, or what --schedules names",
                        options.schedule)};
  auto machine = std::make_shared<Machine>(options, hardware);
  machine->algebra = algebra;
  return std::shared_ptr<detail::Engine>(std::make_shared<Engine>(std::move(machine)));
}

}  // namespace tartan::TARTAN_ABI::emulator
