// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/context.h"
#include "compiler/support/counted.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

namespace tartan::inline TARTAN_ABI::cuda {
namespace {

std::string visible_devices() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible ? fmt::format(" (CUDA_VISIBLE_DEVICES is \"{}\")", visible) : "";
}

}  // namespace

Result<std::shared_ptr<Context>> Context::open(int ordinal) {
  const auto loaded = installed_driver();
  if (!loaded) return loaded.diags();
  const Driver& driver = **loaded;

  int count = 0;
  if (auto status = driver.call(driver.device_count, &count); !status) return status.diags();
  if (ordinal >= count)
    return {"no-device"_rule, fmt::format("no device cuda:{}: the driver finds {}{}", ordinal,
                                          detail::counted(count, "GPU"), visible_devices())};
  DeviceOrdinal device = 0;
  if (auto status = driver.call(driver.device, &device, ordinal); !status) return status.diags();
  ContextHandle handle = nullptr;
  if (auto status = driver.call(driver.context_retain, &handle, device); !status)
    return status.diags();
  return std::shared_ptr<Context>(new Context(driver, device, handle));
}

Context::~Context() { driver_.context_release.address(device_); }

std::string Context::device_name() const {
  std::array<char, 256> text{};
  const Code code = driver_.device_name.address(text.data(), int{text.size()}, device_);
  return code == Code::Success ? std::string(text.data()) : "GPU";
}

int Context::attribute(DeviceAttribute attribute) const {
  int value = 0;
  driver_.device_attribute.address(&value, attribute, device_);
  return value;
}

int Context::capability() const {
  return 10 * attribute(DeviceAttribute::CapabilityMajor) +
         attribute(DeviceAttribute::CapabilityMinor);
}

void Context::clear_findings() {
  const std::lock_guard lock(mutex_);
  findings_.clear();
}

Diags Context::failure(const char* call, Code code) {
  Diags diags = driver_.failure(call, code);
  const std::lock_guard lock(mutex_);
  if (kernel_failed(code) && !lost_) {
    lost_ = true;  // later calls fail with the same code: one finding is enough
    for (const Diag& diag : diags)
      findings_.push_back({.id = std::string(diag.id), .message = diag.message});
  }
  return diags;
}

}  // namespace tartan::inline TARTAN_ABI::cuda
