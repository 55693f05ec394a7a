// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/ptx/kernel_directives.h"
#include "runtime/cuda/jit.h"

namespace tartan::TARTAN_ABI::cuda {
namespace {

std::size_t bytes_of(const ptx::Variable& variable) {
  const std::size_t element = (bits(variable.type) + 7) / 8;
  return variable.type == Type::none ? 8 : element * variable.vector * variable.elements;
}

std::vector<KernelParam> params_of(const ptx::Module& module, const ptx::Function& function) {
  std::vector<KernelParam> params;
  for (const std::uint32_t index : function.params) {
    const ptx::Variable& variable = module.variables[index];
    params.push_back({std::string(variable.name), bytes_of(variable)});
  }
  return params;
}

class Module final : public detail::EngineModule {
 public:
  Module(std::shared_ptr<LoadedModule> loaded, std::string name,
         std::vector<KernelInterface> kernels, std::optional<ptx::Module> tree, Diags warnings)
      : loaded_(std::move(loaded)),
        name_(std::move(name)),
        kernels_(std::move(kernels)),
        tree_(std::move(tree)),
        warnings_(std::move(warnings)) {}

  Result<std::shared_ptr<detail::EngineKernel>> kernel(const std::string& name) override {
    for (const KernelInterface& each : kernels_)
      if (each.name == name) return load_kernel(loaded_, name, each.params, grid_unit(name));
    return {"unknown-kernel"_rule,
            fmt::format("{} has no kernel {}; it has {}", name_, name,
                        kernels_.empty() ? "none" : fmt::format("{}", fmt::join(kernels(), ", ")))};
  }

  std::vector<std::string> kernels() const override {
    std::vector<std::string> names;
    for (const KernelInterface& each : kernels_) names.push_back(each.name);
    return names;
  }

  Result<detail::EngineVariable> variable(const std::string& name) override {
    if (tree_ && !tree_->has_global_variable(name))
      return detail::unknown_variable(name_, name, tree_->global_variables());
    Context& context = *loaded_->context;
    const Driver& driver = context.driver();
    DeviceAddress address = 0;
    detail::EngineVariable found;
    const Code code = context.invoke(driver.module_variable, &address, &found.bytes,
                                     loaded_->handle, name.c_str());
    if (code == Code::NotFound)
      return {"unknown-variable"_rule,
              fmt::format("{} has no variable {} in global or constant memory", name_, name)};
    if (code != Code::Success) return context.failure(driver.module_variable.symbol, code);
    found.address = address;
    return found;
  }

  Diags warnings() override { return warnings_; }

 private:
  // Nothing says it of machine code.
  Dim3 grid_unit(const std::string& kernel) const {
    if (!tree_) return {};
    const auto [x, y, z] = ptx::grid_unit(*tree_, *tree_->function(kernel));
    return {x, y, z};
  }

  std::shared_ptr<LoadedModule> loaded_;
  std::string name_;
  std::vector<KernelInterface> kernels_;
  std::optional<ptx::Module> tree_;
  Diags warnings_;
};

}  // namespace

std::vector<KernelInterface> interfaces_of(const ptx::Module& module) {
  std::vector<KernelInterface> out;
  for (const std::string_view name : module.kernels())
    out.push_back({std::string(name), params_of(module, *module.function(name))});
  return out;
}

Result<std::shared_ptr<detail::EngineModule>> make_module(std::shared_ptr<LoadedModule> loaded,
                                                          std::string name,
                                                          std::vector<KernelInterface> kernels,
                                                          std::optional<ptx::Module> tree,
                                                          Diags warnings) {
  return std::shared_ptr<detail::EngineModule>(
      std::make_shared<Module>(std::move(loaded), std::move(name), std::move(kernels),
                               std::move(tree), std::move(warnings)));
}

Result<std::shared_ptr<detail::EngineModule>> load_module(std::shared_ptr<Context> context,
                                                          const std::string& ptx,
                                                          const std::string& name) {
  const Driver& driver = context->driver();
  auto tree = parse_for(driver, ptx, name);
  if (!tree) return tree.diags();
  Jit jit;
  ModuleHandle handle = nullptr;
  const Code code =
      context->invoke(driver.module_load, &handle, static_cast<const void*>(ptx.c_str()),
                      jit.count(), jit.options(), jit.values());
  const char* call = driver.module_load.symbol;
  if (kernel_failed(code) || code == Code::ContextIsDestroyed) return context->failure(call, code);
  if (code != Code::Success) return rejection(driver, call, code, *tree, name, jit);
  std::string rest;
  Diags warnings = jit.remarks(ptx, name, rest);
  std::vector<KernelInterface> kernels = interfaces_of(*tree);
  return make_module(std::make_shared<LoadedModule>(std::move(context), handle), name,
                     std::move(kernels), std::move(*tree), std::move(warnings));
}

}  // namespace tartan::TARTAN_ABI::cuda
