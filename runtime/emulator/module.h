// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/module.h - the emulator as an engine: loaded modules, their kernels, and what
// launches left behind.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/emulator/decode/decoder.h"
#include "runtime/emulator/machine/heap.h"
#include "runtime/emulator/machine/memory.h"
#include "runtime/engine.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::emulator {

class Algebra;
class Predecessor;
struct LaunchContext;

/// What modules, kernels and streams of one device share.
///
/// Launches from several host threads run side by side. Whatever the host does to memory waits for
/// them, as copies wait for a GPU.
class Machine {
 public:
  Machine(DeviceOptions options, std::optional<Arch> hardware)
      : options(std::move(options)), hardware(hardware) {}

  const DeviceOptions options;
  Algebra* algebra = nullptr;          // of launches under algebra
  const std::optional<Arch> hardware;  // of the options; else the module's target counts
  Heap heap;                           // of malloc in kernels

  /// Memory of zeros; `constant`: where constants are.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, bool constant = false);
  /// The same for a user's buffer, which launches with checks take as not written.
  std::optional<std::uint64_t> allocate_buffer(std::uint64_t bytes);
  /// What nobody has written of a range of a user's buffer; nothing without checks.
  std::optional<Unwritten> unwritten(std::uint64_t address, std::uint64_t bytes);
  void free(std::uint64_t address);
  /// What findings call a user's buffer.
  void set_name(std::uint64_t address, detail::BufferName name);
  /// Numbers of launches, from 1 on.
  std::uint64_t next_grid() { return ++grids_; }
  /// Gives the heap its room, once. False if the host has none.
  bool open_heap();
  /// Calls `use` with the host address of a range, which with `writes` counts as written; false if
  /// it is in no buffer.
  template <typename Use>
  bool access(std::uint64_t address, std::uint64_t bytes, Use&& use, bool writes = true) {
    const std::unique_lock alone(running_);
    const Allocation* allocation = memory_.find(address, bytes);
    if (allocation) use(allocation->host + (address - allocation->address));
    if (allocation && writes) memory_.define(address, bytes);
    return allocation;
  }

  /// Calls `launch` with the memory, which does not change until it returns.
  template <typename Launching>
  void run(Launching&& launch) {
    const std::shared_lock shared(running_);
    launch(memory_);
  }
  /// Adds what a launch did, and what went wrong in it.
  void add(const Report& report, const std::optional<NumericBasis>& basis);
  void add(const Finding& finding, Diag failure);

  /// The last launch, if it was one with checks and nobody has waited for it since.
  std::shared_ptr<Predecessor> take_predecessor();
  void set_predecessor(std::shared_ptr<Predecessor> launch);

  /// What failed since the last call; launches are complete when they return.
  Status take_failures();
  std::vector<Finding> findings() const;
  void clear_findings();
  Report report() const;

 private:
  std::shared_mutex running_;  // shared by launches
  std::atomic<std::uint64_t> grids_ = 0;
  GlobalMemory memory_;
  mutable std::mutex mutex_;  // of what follows
  std::vector<Finding> findings_;
  Diags failures_;  // of launches that nobody has synchronised with yet
  Report report_;
  std::shared_ptr<Predecessor> predecessor_;
};

class Module : public detail::EngineModule, public std::enable_shared_from_this<Module> {
 public:
  Module(std::shared_ptr<Machine> machine, ptx::Module tree, Arch target);
  ~Module() override;

  /// Places and initialises the module's global and constant variables.
  Status place_variables();
  Result<std::shared_ptr<detail::EngineKernel>> kernel(const std::string& name) override;
  std::vector<std::string> kernels() const override;
  Result<detail::EngineVariable> variable(const std::string& name) override;
  Diags warnings() override;

  const std::shared_ptr<const ptx::Module>& tree() const { return tree_; }
  Machine& machine() { return *machine_; }
  /// Whose arithmetic and multiprocessors.
  Arch hardware() const { return machine_->hardware.value_or(target_); }

 private:
  Decoder decoder(Diags& diags) const;
  /// Places `variable`, unless it is another module's.
  Result<std::optional<Symbol>> place(const ptx::Variable& variable);
  Status place_nested(const ptx::Function& function);
  /// What a name means in an initialiser, in those scopes and outside of functions.
  std::optional<Symbol> find(std::string_view name, std::span<const Symbols> scopes) const;
  Status initialise(const ptx::Variable& variable, const Symbol& symbol,
                    std::span<const Symbols> scopes);

  std::shared_ptr<Machine> machine_;
  std::shared_ptr<const ptx::Module> tree_;
  ptx::FunctionNames names_;
  Arch target_;
  Globals globals_;
  std::vector<std::uint64_t> addresses_;  // of all its variables
  std::mutex mutex_;                      // of programs_
  std::map<std::string, std::shared_ptr<const Program>> programs_;
};

class Kernel : public detail::EngineKernel {
 public:
  Kernel(std::shared_ptr<Module> module, std::shared_ptr<const Program> program)
      : module_(std::move(module)), program_(std::move(program)) {}
  const std::string& name() const override { return program_->name; }
  const std::vector<KernelParam>& params() const override { return program_->params; }
  Result<KernelResources> resources() const override;
  Result<int> blocks_per_sm(std::uint32_t threads, std::uint32_t dynamic_shared) const override;
  Status launch(const Launch& launch, const Arguments& arguments,
                detail::EngineStream* stream) override;

 private:
  Status check(const Launch& launch, const Arguments& arguments) const;
  Status check_cluster(const Launch& launch) const;
  Status count_blocks(Dim3& grid) const;
  Status check_cooperative(const Launch& launch) const;
  std::uint64_t shared_bytes(const Launch& launch) const;
  Dim3 cluster_of(const Launch& launch) const;
  Status run(const Launch& launch, const Arguments& arguments, GlobalMemory& memory,
             std::uint64_t workspace, const void* queue);
  Diag describe(const Finding& finding) const;
  Status out_of_memory(const LaunchContext& context) const;

  std::shared_ptr<Module> module_;
  std::shared_ptr<const Program> program_;
};

}  // namespace tartan::TARTAN_ABI::emulator
