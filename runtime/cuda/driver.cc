// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace tartan::TARTAN_ABI::cuda {
namespace {

// What a user can do about a failure, where that is known.
std::string_view advice(Code code) {
  switch (code) {
    case Code::OutOfMemory:
      return "free buffers, or end other processes that use the GPU (nvidia-smi lists them)";
    case Code::NotInitialized:
    case Code::Deinitialized:
      return "the driver has shut down, as it does when the process ends: use no GPU after main()";
    case Code::DeviceUnavailable:
      return "another process has the GPU to itself, or it is being reset: see nvidia-smi";
    case Code::InvalidContext:
      return "the context is not there any more: whoever made it has destroyed it";
    case Code::UncorrectableEcc:
      return "the GPU's memory is damaged: reset the GPU (nvidia-smi --gpu-reset)";
    case Code::SystemNotReady:
      return "the system is not ready for CUDA: on machines with NVSwitch, start "
             "nvidia-fabricmanager";
    case Code::DriverMismatch:
      return "libcuda.so.1 and the kernel's driver are of different versions: restart the machine "
             "after an update";
    case Code::CaptureUnsupported:
    case Code::CaptureImplicit:
      return "a stream is captured: until that ends, use only calls that take a Stream";
    case Code::Unknown: return "the kernel's log (dmesg, NVRM: Xid) may say why";
    default: return {};
  }
}

}  // namespace

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
    message += "; the error has destroyed the GPU context, and all memory in it: open a new Device";
  if (const std::string_view what = advice(code); !what.empty())
    message += fmt::format("; {}", what);
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
  return {"no-driver"_rule, fmt::format("no CUDA driver: install NVIDIA's, or use the emulator\n{}",
                                        fmt::join(reasons, "\n"))};
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

}  // namespace tartan::TARTAN_ABI::cuda
