// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace tartan::inline TARTAN_ABI::cuda {
namespace {

const Rule& rule_of(Code code) {
  switch (code) {
    case Code::IllegalAddress:
    case Code::InvalidAddressSpace: return "memory-fault"_rule;
    case Code::MisalignedAddress: return "misaligned-access"_rule;
    case Code::Assert:
    case Code::HardwareStackError:
    case Code::IllegalInstruction:
    case Code::InvalidPc:
    case Code::LaunchFailed: return "trap"_rule;
    case Code::NoDevice: return "no-device"_rule;
    case Code::StubLibrary: return "no-driver"_rule;
    default: return "driver"_rule;
  }
}

}  // namespace

void* Library::find(const char* symbol) {
  void* address = dlsym(handle_, symbol);
  if (!address) missing_.emplace_back(symbol);
  return address;
}

void* Library::find_if_there(const char* symbol) const { return dlsym(handle_, symbol); }

bool kernel_failed(Code code) {
  switch (code) {
    case Code::IllegalAddress:
    case Code::LaunchTimeout:
    case Code::Assert:
    case Code::HardwareStackError:
    case Code::IllegalInstruction:
    case Code::MisalignedAddress:
    case Code::InvalidAddressSpace:
    case Code::InvalidPc:
    case Code::LaunchFailed: return true;
    default: return false;
  }
}

std::string Driver::describe(std::string_view call, Code code) const {
  const char *name = nullptr, *text = nullptr;
  if (error_name.address(code, &name) != Code::Success || !name) name = "unknown error";
  if (error_text.address(code, &text) != Code::Success || !text)
    return fmt::format("{}: {} ({})", call, name, static_cast<int>(code));
  return fmt::format("{}: {} ({}): {}", call, name, static_cast<int>(code), text);
}

Diags Driver::failure(std::string_view call, Code code) const {
  Diags diags;
  std::string message = describe(call, code);
  if (kernel_failed(code))
    message += "; the error has destroyed the GPU context: this process can no longer use the GPU";
  diags.report(rule_of(code), {}, std::move(message));
  return diags;
}

int Driver::version() const {
  int version = 0;
  return driver_version.address(&version) == Code::Success ? version : 0;
}

std::vector<std::string> Driver::candidates() {
  if (const char* path = std::getenv("TARTAN_CUDA_DRIVER"); path && *path) return {path};
  return {"libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"};
}

Result<const Driver*> Driver::load(const std::vector<std::string>& candidates) {
  std::vector<std::string> reasons;
  for (const std::string& path : candidates) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* reason = dlerror();
      reasons.push_back(reason ? reason : path + ": cannot be loaded");
      continue;
    }
    std::unique_ptr<Driver> driver(new Driver(handle));
    if (!driver->library_.missing().empty()) {
      reasons.push_back(
          fmt::format("{}: missing symbol {}", path, fmt::join(driver->library_.missing(), ", ")));
      continue;
    }
    if (auto status = driver->call(driver->initialize, 0u); !status) return status.diags();
    return driver.release();
  }
  return {"no-driver"_rule, fmt::format("no CUDA driver: {}", fmt::join(reasons, "; "))};
}

Result<const Driver*> installed_driver() {
  // The driver is never unloaded: buffers of static lifetime call it after main has returned.
  static std::mutex mutex;
  static const Driver* installed = nullptr;
  const std::lock_guard lock(mutex);
  if (!installed) {
    auto loaded = Driver::load(Driver::candidates());
    if (!loaded) return loaded.diags();
    installed = *loaded;
  }
  return installed;
}

}  // namespace tartan::inline TARTAN_ABI::cuda
