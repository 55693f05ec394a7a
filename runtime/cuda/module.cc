// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "runtime/cuda/kernel.h"
#include "tartan/ptx/parser.h"

namespace tartan::inline TARTAN_ABI::cuda {
namespace {

struct PtxOfDriver {
  int driver;  // CUDA version
  Version ptx;
};

// PTX ISA, "Release Notes": the first driver that supports each version.
constexpr PtxOfDriver ptx_of_driver[] = {
    {9000, {6, 0}},  {9010, {6, 1}},  {9020, {6, 2}},  {10000, {6, 3}}, {10010, {6, 4}},
    {10020, {6, 5}}, {11000, {7, 0}}, {11010, {7, 1}}, {11020, {7, 2}}, {11030, {7, 3}},
    {11040, {7, 4}}, {11050, {7, 5}}, {11060, {7, 6}}, {11070, {7, 7}}, {11080, {7, 8}},
    {12000, {8, 0}}, {12010, {8, 1}}, {12020, {8, 2}}, {12030, {8, 3}}, {12040, {8, 4}},
    {12050, {8, 5}}, {12070, {8, 6}}, {12080, {8, 7}}, {12090, {8, 8}}, {13000, {9, 0}},
};

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

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

// The logs that cuModuleLoadDataEx writes.
class JitLog {
 public:
  unsigned count() const { return static_cast<unsigned>(options_.size()); }
  JitOption* options() { return options_.data(); }
  void** values() { return values_.data(); }

  std::string text() const {
    std::string text = until_nul(error_), info = until_nul(info_);
    if (!text.empty() && !info.empty()) text += '\n';
    return text + info;
  }

 private:
  static constexpr std::size_t capacity = 16 * 1024;
  static std::string until_nul(const std::vector<char>& buffer) {
    std::string text(buffer.data());
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  }

  std::vector<char> info_ = std::vector<char>(capacity + 1);
  std::vector<char> error_ = std::vector<char>(capacity + 1);
  std::array<JitOption, 4> options_{JitOption::InfoLog, JitOption::InfoLogBytes,
                                    JitOption::ErrorLog, JitOption::ErrorLogBytes};
  // Numbers are passed in place of pointers.
  std::array<void*, 4> values_{info_.data(), reinterpret_cast<void*>(capacity), error_.data(),
                               reinterpret_cast<void*>(capacity)};
};

// Diagnostics of a rejected module, from the driver's code and log.
Diags refusal(const Driver& driver, Code code, const ptx::Module& module, const std::string& name,
              const std::string& log) {
  Diags diags;
  const Version newest = newest_ptx(driver.version());
  if (code == Code::UnsupportedPtxVersion ||
      (code == Code::InvalidPtx && module.version > newest)) {
    diags.report("driver-version"_rule, {},
                 fmt::format("{} is PTX {}, and the installed driver (CUDA {}) supports at most "
                             "PTX {}: emit with --ptx {}, or install a newer driver",
                             name, module.version.text(), cuda_version_text(driver.version()),
                             newest.text(), newest.text()));
    return diags;
  }
  std::string message = fmt::format("{} (.target {}) was rejected by the driver: {}", name,
                                    fmt::join(module.targets, ", "),
                                    driver.describe(driver.module_load.symbol, code));
  if (!log.empty()) message += "\n" + log;
  diags.report("module-load"_rule, {}, std::move(message));
  return diags;
}

class Module final : public detail::EngineModule {
 public:
  Module(std::shared_ptr<LoadedModule> loaded, ptx::Module tree, std::string name)
      : loaded_(std::move(loaded)), tree_(std::move(tree)), name_(std::move(name)) {}

  Result<std::shared_ptr<detail::EngineKernel>> kernel(const std::string& name) override {
    const std::vector<std::string> known = kernels();
    if (std::find(known.begin(), known.end(), name) == known.end())
      return {"unknown-kernel"_rule,
              fmt::format("{} has no kernel {}; it has {}", name_, name,
                          known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")))};
    return load_kernel(loaded_, name, params_of(tree_, *tree_.function(name)));
  }

  std::vector<std::string> kernels() const override {
    const std::vector<std::string_view> names = tree_.kernels();
    return {names.begin(), names.end()};
  }

  Result<detail::EngineVariable> variable(const std::string& name) override {
    if (!tree_.has_global_variable(name))
      return detail::unknown_variable(name_, name, tree_.global_variables());
    const Driver& driver = loaded_->context->driver();
    DeviceAddress address = 0;
    detail::EngineVariable found;
    if (auto status = loaded_->context->call(driver.module_variable, &address, &found.bytes,
                                             loaded_->handle, name.c_str());
        !status)
      return status.diags();
    found.address = address;
    return found;
  }

  Diags warnings() override { return {}; }

 private:
  std::shared_ptr<LoadedModule> loaded_;
  ptx::Module tree_;
  std::string name_;
};

}  // namespace

Version newest_ptx(int version) {
  Version newest = ptx_of_driver[0].ptx;
  for (const PtxOfDriver& row : ptx_of_driver)
    if (row.driver <= version) newest = row.ptx;
  return newest;
}

Result<std::shared_ptr<detail::EngineModule>> load_module(std::shared_ptr<Context> context,
                                                          const std::string& ptx,
                                                          const std::string& name) {
  Diags diags;
  ptx::Module tree = ptx::parse(std::make_shared<Source>(name, ptx), diags);
  if (!diags.ok()) return diags;

  const Driver& driver = context->driver();
  JitLog log;
  ModuleHandle handle = nullptr;
  const Code code =
      context->invoke(driver.module_load, &handle, static_cast<const void*>(ptx.c_str()),
                      log.count(), log.options(), log.values());
  if (kernel_failed(code)) return context->failure(driver.module_load.symbol, code);
  if (code != Code::Success) return refusal(driver, code, tree, name, log.text());
  return std::shared_ptr<detail::EngineModule>(std::make_shared<Module>(
      std::make_shared<LoadedModule>(std::move(context), handle), std::move(tree), name));
}

}  // namespace tartan::inline TARTAN_ABI::cuda
