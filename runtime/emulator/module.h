// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/module.h - the emulator as an engine: loaded modules, their kernels, and what
// launches left behind.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/ptx/tree.h"
#include "runtime/emulator/decoder.h"
#include "runtime/emulator/memory.h"
#include "runtime/engine.h"

namespace tartan::emulator {

/// What modules, kernels and streams of one device share.
struct Machine {
  DeviceOptions options;
  std::optional<Arch> hardware;  // of the options; else the module's target counts
  GlobalMemory memory;
  std::vector<Finding> findings;
  Diags failures;  // of launches that nobody has synchronised with yet
  Report report;

  /// What failed since the last call; launches are complete when they return.
  Status take_failures();
};

class Module : public detail::EngineModule, public std::enable_shared_from_this<Module> {
 public:
  Module(std::shared_ptr<Machine> machine, ptx::Module tree, Arch target);
  ~Module() override;

  /// Places and initialises the module's global and constant variables.
  Status place_variables();
  Result<std::shared_ptr<detail::EngineKernel>> kernel(const std::string& name) override;
  std::vector<std::string> kernels() const override;

  const ptx::Module& tree() const { return tree_; }
  Machine& machine() { return *machine_; }
  Arch target() const { return target_; }

 private:
  Status initialise(const ptx::Variable& variable, const Symbol& symbol);

  std::shared_ptr<Machine> machine_;
  ptx::Module tree_;
  Arch target_;
  Symbols symbols_;
  std::map<std::string, std::shared_ptr<const Program>> programs_;
};

class Kernel : public detail::EngineKernel {
 public:
  Kernel(std::shared_ptr<Module> module, std::shared_ptr<const Program> program)
      : module_(std::move(module)), program_(std::move(program)) {}
  const std::string& name() const override { return program_->name; }
  const std::vector<KernelParam>& params() const override { return program_->params; }
  Status launch(const Launch& launch, const Arguments& arguments,
                detail::EngineStream* stream) override;

 private:
  Status check(const Launch& launch, const Arguments& arguments) const;

  std::shared_ptr<Module> module_;
  std::shared_ptr<const Program> program_;
};

}  // namespace tartan::emulator
