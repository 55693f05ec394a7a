// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/context.h"
#include "compiler/support/counted.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace tartan::TARTAN_ABI::cuda {
namespace {

std::string visible_devices() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible ? fmt::format(" (CUDA_VISIBLE_DEVICES is \"{}\")", visible) : "";
}

// The contexts that this process has opened or adopted: those of a failed kernel let go of the GPU
// when it is opened again.
struct Opened {
  std::mutex mutex;
  std::vector<std::weak_ptr<Context>> contexts;

  /// `context` or another one of its handle, if it is known that a kernel has destroyed it.
  std::shared_ptr<Context> dead(const std::shared_ptr<Context>& context) const {
    for (const auto& each : contexts)
      if (const auto other = each.lock();
          other && other->lost() && other->held() && other->handle() == context->handle())
        return other;
    return context->alive() ? nullptr : context;
  }

  void add(const std::shared_ptr<Context>& context) {
    std::erase_if(contexts, [](const auto& each) { return each.expired(); });
    contexts.push_back(context);
  }
};
Opened& opened() {
  static auto* all = new Opened;  // contexts of static lifetime may go later than this
  return *all;
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
  Opened& all = opened();
  const std::lock_guard lock(all.mutex);
  auto context = retain(driver, device);
  if (!context) return context;
  if (const auto dead = all.dead(*context)) {
    for (const auto& each : all.contexts)
      if (const auto other = each.lock(); other && other->handle_ == dead->handle_)
        dead->share_loss(*other);
    dead->share_loss(**context);
    context = retain(driver, device);
    if (context && !(*context)->alive())
      return {
          "driver"_rule,
          fmt::format("cuda:{} cannot be used: a kernel has destroyed its primary context ({}), "
                      "which other code of this process still holds (the CUDA runtime, PyTorch): "
                      "restart the process",
                      ordinal, dead->loss_)};
  }
  if (context) all.add(*context);
  return context;
}

Result<std::shared_ptr<Context>> Context::retain(const Driver& driver, DeviceOrdinal device) {
  ContextHandle handle = nullptr;
  const Code code = driver.context_retain.address(&handle, device);
  // As driver 580 does, although nobody holds the context any more.
  if (kernel_failed(code))
    return {"driver"_rule,
            fmt::format("{}; a kernel has failed, and the driver gives this process no new "
                        "context: restart the process",
                        driver.describe(driver.context_retain.symbol, code))};
  if (code != Code::Success) return driver.failure(driver.context_retain.symbol, code);
  return std::shared_ptr<Context>(new Context(driver, device, handle, true));
}

Result<std::shared_ptr<Context>> Context::adopt(ContextHandle handle) {
  const auto loaded = installed_driver();
  if (!loaded) return loaded.diags();
  const Driver& driver = **loaded;
  if (!handle)
    if (auto status = driver.call(driver.context_current, &handle); !status) return status.diags();
  if (!handle)
    return {"no-device"_rule,
            "no context is current on this thread: pass a CUcontext, or use Device::open()"};
  std::shared_ptr<Context> probe(new Context(driver, 0, handle, false));
  DeviceOrdinal device = 0;
  if (auto status = probe->call(driver.context_device, &device); !status) return status.diags();
  std::shared_ptr<Context> context(new Context(driver, device, handle, false));
  if (!context->alive()) return context->failure("Device::adopt()", Code::ContextIsDestroyed);
  const std::lock_guard lock(opened().mutex);
  opened().add(context);
  return context;
}

int Context::device_count() {
  const auto loaded = installed_driver();
  int count = 0;
  if (!loaded || !(*loaded)->call((*loaded)->device_count, &count)) return 0;
  return count;
}

Context::~Context() { let_go(); }

// The driver answers what it would answer to any call.
bool Context::alive() {
  std::size_t free = 0, all = 0;
  invoke(driver_.memory_info, &free, &all);
  return !lost_;
}

void Context::lose(const char* call, Code code) {
  const std::lock_guard lock(mutex_);
  if (lost_) return;
  loss_ = driver_.describe(call, code);
  loss_code_ = code;
  for (const Diag& diag : driver_.failure(call, code))
    findings_.push_back({.id = std::string(diag.id), .message = diag.message});
  lost_ = true;  // from now on loss_ stays as it is
}

bool Context::held() {
  const std::shared_lock holding(held_mutex_);
  return held_;
}

void Context::share_loss(Context& other) {
  if (&other != this) other.lose(driver_.memory_info.symbol, loss_code_);
  other.let_go();
}

void Context::let_go() {
  const std::unique_lock alone(held_mutex_);
  if (std::exchange(held_, false)) driver_.context_release.address(device_);
}

void Context::reach(const Context& peer) {
  {
    const std::lock_guard lock(mutex_);
    if (!peers_.insert(peer.handle_).second) return;
  }
  int can = 0;
  const Code code = driver_.can_access_peer.address(&can, device_, peer.device_);
  constexpr unsigned no_flags = 0;
  if (code == Code::Success && can) invoke(driver_.enable_peer_access, peer.handle_, no_flags);
}

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
  if (code != Code::ContextIsDestroyed || !lost_) return driver_.failure(call, code);
  const std::lock_guard lock(mutex_);
  return Diags::one(rule_of(loss_code_), {},
                    fmt::format("{} failed: an earlier error has destroyed the GPU context ({}): "
                                "open a new Device",
                                call, loss_));
}

}  // namespace tartan::TARTAN_ABI::cuda
