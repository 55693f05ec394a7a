// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/kernel.h"

#include <fmt/format.h>

#include "runtime/cuda/stream.h"

namespace tartan::TARTAN_ABI::cuda {
namespace {

// Shared memory of a block without opt-in, static and dynamic together.
constexpr std::uint32_t shared_without_opt_in = 48 * 1024;

class Kernel final : public detail::EngineKernel {
 public:
  Kernel(std::shared_ptr<LoadedModule> module, FunctionHandle handle, std::string name,
         std::vector<KernelParam> params, Dim3 grid_unit)
      : module_(std::move(module)),
        handle_(handle),
        name_(std::move(name)),
        params_(std::move(params)),
        grid_unit_(grid_unit) {}

  /// Asks the driver for the kernel's limits.
  Status prepare() {
    Context& context = *module_->context;
    const Driver& driver = context.driver();
    if (auto status = context.call(driver.function_attribute, &static_shared_,
                                   FunctionAttribute::StaticShared, handle_);
        !status)
      return status;
    return context.call(driver.function_attribute, &max_threads_,
                        FunctionAttribute::MaxThreadsPerBlock, handle_);
  }

  const std::string& name() const override { return name_; }
  const std::vector<KernelParam>& params() const override { return params_; }

  Result<KernelResources> resources() const override {
    Context& context = *module_->context;
    int registers = 0, local_bytes = 0;
    for (const auto& [attribute, value] : {std::pair{FunctionAttribute::Registers, &registers},
                                           std::pair{FunctionAttribute::LocalBytes, &local_bytes}})
      if (auto status =
              context.call(context.driver().function_attribute, value, attribute, handle_);
          !status)
        return status.diags();
    return KernelResources{.registers = registers,
                           .local_bytes = static_cast<std::size_t>(local_bytes),
                           .static_shared = static_cast<std::size_t>(static_shared_),
                           .max_threads = max_threads_};
  }

  Result<int> blocks_per_sm(std::uint32_t threads, std::uint32_t dynamic_shared) const override {
    const Launch launch{.block = {threads}, .dynamic_shared = dynamic_shared};
    if (auto status = check_limits(launch); !status) return status.diags();
    if (auto status = opt_in(dynamic_shared); !status) return status.diags();
    Context& context = *module_->context;
    int blocks = 0;
    if (auto status =
            context.call(context.driver().occupancy, &blocks, handle_, static_cast<int>(threads),
                         static_cast<std::size_t>(dynamic_shared));
        !status)
      return status.diags();
    return blocks;
  }

  Status launch(const Launch& launch, const Arguments& arguments,
                detail::EngineStream* stream) override {
    Launch in_blocks = launch;
    in_blocks.grid = {launch.grid.x * grid_unit_.x, launch.grid.y * grid_unit_.y,
                      launch.grid.z * grid_unit_.z};
    if (auto status = detail::check_launch(*this, in_blocks, arguments); !status) return status;
    if (auto status = check_limits(launch); !status) return status;
    const auto queue = stream_handle(stream);
    if (!queue) return queue.diags();
    if (auto status = opt_in(launch.dynamic_shared); !status) return status;

    std::vector<void*> values;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      values.push_back(const_cast<std::byte*>(arguments[i].data()));
    Context& context = *module_->context;
    if (launch.cooperative || launch.programmatic || launch.cluster != Dim3{0, 0, 0})
      return launch_extended(launch, *queue, values.data());
    return context.call(context.driver().launch, handle_, launch.grid.x, launch.grid.y,
                        launch.grid.z, launch.block.x, launch.block.y, launch.block.z,
                        launch.dynamic_shared, *queue, values.data(), static_cast<void**>(nullptr));
  }

 private:
  Status launch_extended(const Launch& launch, StreamHandle stream, void** values) {
    Context& context = *module_->context;
    const Driver& driver = context.driver();
    const Dim3 grid = launch.grid, block = launch.block, cluster = launch.cluster;
    const bool clusters = cluster != Dim3{0, 0, 0};
    if (!driver.launch_extended.address)
      return {"driver-version"_rule,
              fmt::format("the driver cannot launch {}: cuLaunchKernelEx requires CUDA 11.8",
                          clusters             ? "clusters"
                          : launch.cooperative ? "cooperative grids"
                                               : "dependent grids")};
    constexpr std::uint64_t everywhere = 8;  // blocks; more must be allowed
    if (cluster.count() > everywhere)
      if (auto status = context.call(driver.set_function_attribute, handle_,
                                     FunctionAttribute::LargeClustersAllowed, 1);
          !status)
        return status;
    std::vector<LaunchAttribute> attributes;
    if (clusters) attributes.push_back({.value = {cluster.x, cluster.y, cluster.z}});
    if (launch.cooperative)
      attributes.push_back({.id = LaunchAttribute::cooperative, .value = {1}});
    if (launch.programmatic)
      attributes.push_back({.id = LaunchAttribute::programmatic, .value = {1}});
    const LaunchConfiguration configuration{
        .grid = {grid.x, grid.y, grid.z},
        .block = {block.x, block.y, block.z},
        .dynamic_shared = launch.dynamic_shared,
        .stream = stream,
        .attributes = attributes.data(),
        .attribute_count = static_cast<unsigned>(attributes.size())};
    return context.call(driver.launch_extended, &configuration, handle_, values,
                        static_cast<void**>(nullptr));
  }

  int most_dynamic_shared() const { return module_->context->shared_per_block() - static_shared_; }

  Status check_limits(const Launch& launch) const {
    Diags diags;
    if (launch.block.count() > static_cast<std::uint64_t>(max_threads_))
      diags.report("launch-arguments"_rule, {},
                   fmt::format("kernel {} supports at most {} threads per block on this GPU "
                               "(registers, .maxntid), found {}",
                               name_, max_threads_, launch.block.count()));
    if (static_cast<std::int64_t>(launch.dynamic_shared) > most_dynamic_shared())
      diags.report("launch-arguments"_rule, {},
                   fmt::format("kernel {} has at most {} bytes of dynamic shared memory per block "
                               "on this GPU, found {}",
                               name_, most_dynamic_shared(), launch.dynamic_shared));
    if (!diags.ok()) return diags;
    return Done{};
  }

  // Always opts in to the maximum, so that two threads that opt the same function in cannot lower
  // each other's limit.
  Status opt_in(std::uint32_t dynamic_shared) const {
    if (dynamic_shared + static_cast<std::uint32_t>(static_shared_) <= shared_without_opt_in)
      return Done{};
    Context& context = *module_->context;
    return context.call(context.driver().set_function_attribute, handle_,
                        FunctionAttribute::MaxDynamicShared, most_dynamic_shared());
  }

  std::shared_ptr<LoadedModule> module_;
  FunctionHandle handle_;
  std::string name_;
  std::vector<KernelParam> params_;
  Dim3 grid_unit_;
  int static_shared_ = 0;  // bytes
  int max_threads_ = 0;
};

}  // namespace

Result<std::shared_ptr<detail::EngineKernel>> load_kernel(std::shared_ptr<LoadedModule> module,
                                                          const std::string& name,
                                                          std::vector<KernelParam> params,
                                                          Dim3 grid_unit) {
  Context& context = *module->context;
  FunctionHandle handle = nullptr;
  if (auto status =
          context.call(context.driver().module_function, &handle, module->handle, name.c_str());
      !status)
    return status.diags();
  auto kernel =
      std::make_shared<Kernel>(std::move(module), handle, name, std::move(params), grid_unit);
  if (auto status = kernel->prepare(); !status) return status.diags();
  return std::shared_ptr<detail::EngineKernel>(std::move(kernel));
}

}  // namespace tartan::TARTAN_ABI::cuda
