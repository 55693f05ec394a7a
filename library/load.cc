// SPDX-License-Identifier: Apache-2.0
#include "tartan/load.h"

#include <fmt/format.h>

#include <list>
#include <mutex>
#include <new>
#include <span>
#include <unordered_map>

#include "compiler/support/record.h"
#include "compiler/support/step_timer.h"

namespace tartan::TARTAN_ABI {

// Argument-dependent lookup finds them here.
static auto members_of(KernelParam& x) {
  auto& [name, bytes] = x;
  return std::tie(name, bytes);
}
static auto members_of(KernelInterface& x) {
  auto& [name, params] = x;
  return std::tie(name, params);
}

namespace {

using Ready = std::shared_ptr<const ReadyKernel>;

// A "cubin" entry: machine code, and the parameters that it does not tell every driver.
struct Entry {
  std::string_view cubin;
  std::vector<KernelInterface> kernels;
};
auto members_of(Entry& x) {
  auto& [cubin, kernels] = x;
  return std::tie(cubin, kernels);
}

std::string entry_of(const Assembled& assembled) {
  const detail::StepTimer timer(&StepTimes::cache);
  const auto* bytes = reinterpret_cast<const char*>(assembled.cubin.data());
  return detail::to_bytes(Entry{{bytes, assembled.cubin.size()}, assembled.kernels});
}

// Nothing if it is no such entry. The machine code lies in it.
std::optional<Entry> parsed(const std::string& entry) {
  const detail::StepTimer timer(&StepTimes::cache);
  Entry out;
  if (!detail::from_bytes(entry, out)) return std::nullopt;
  return out;
}

// Kernels by key: those that were used last.
class Kept {
 public:
  Ready find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return found->second->second;
  }

  void keep(const std::string& key, Ready ready) {
    Entries gone;  // unloaded after the lock is free
    const std::lock_guard lock(mutex_);
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      gone.splice(gone.begin(), order_, found->second);
      by_key_.erase(found);
    }
    order_.emplace_front(key, std::move(ready));
    by_key_[key] = order_.begin();
    if (order_.size() <= most) return;
    by_key_.erase(order_.back().first);
    gone.splice(gone.begin(), order_, std::prev(order_.end()));
  }

 private:
  static constexpr std::size_t most = 256;
  using Entries = std::list<std::pair<std::string, Ready>>;
  std::mutex mutex_;
  Entries order_;  // used last first
  std::unordered_map<std::string, Entries::iterator> by_key_;
};

// The driver has machine code to give away only from its linker, which ignores setmaxnreg:
// consumers would spill what they have no registers for. Such a text is loaded as it is, and the
// driver keeps its machine code in a cache of its own.
bool moves_registers(const std::string& ptx) {
  return ptx.find("setmaxnreg.inc.") != std::string::npos ||
         ptx.find("setmaxnreg.dec.") != std::string::npos;
}

template <typename Load>
Result<Ready> within_memory(const Load& load) {
  try {
    return load();
  } catch (const std::bad_alloc&) {
    return {"out-of-memory"_rule, "out of host memory: cannot load a kernel"};
  }
}

}  // namespace

class Loader::State {
 public:
  State(Device device, Cache cache) : device_(std::move(device)), cache_(std::move(cache)) {}

  Arch arch() const { return device_.arch(); }

  Result<Ready> load(const Kernel& kernel, Arch arch) {
    if (kernel.key().empty()) return compiled(kernel, arch);
    const std::string key = CacheKey("kernel")
                                .add("arch", arch.text())
                                .add("name", kernel.name())
                                .add("key", kernel.key())
                                .digest();
    if (Ready kept = find(key)) return kept;
    const auto ready = compiled(kernel, arch);
    if (ready) kept_.keep(key, *ready);
    return ready;
  }

  // `before`: what was taken to compile it.
  Result<Ready> load(Compiled compiled, StepTimes before) {
    const std::string key =
        CacheKey("ptx").add("name", compiled.name).add("ptx", compiled.ptx).digest();
    if (Ready kept = find(key)) return kept;
    auto kernel = load_kernel(compiled, key, before);
    if (!kernel) return kernel.diags();
    Ready ready = std::make_shared<const ReadyKernel>(
        ReadyKernel{std::move(compiled), std::move(*kernel), before});
    kept_.keep(key, ready);
    return ready;
  }

  Diags problems() {
    Diags out = cache_.problems();
    const std::lock_guard lock(mutex_);
    out.append(problems_);
    return out;
  }

 private:
  Ready find(const std::string& key) {
    const detail::StepTimer timer(&StepTimes::cache);
    return kept_.find(key);
  }

  Result<Ready> compiled(const Kernel& kernel, Arch arch) {
    StepTimes times;
    auto compiled = [&] {
      const StepClock clock(times);
      return compile(kernel, arch, cache_);
    }();
    if (!compiled) return compiled.diags();
    return load(*std::move(compiled), times);
  }

  Result<LoadedKernel> load_kernel(const Compiled& compiled, const std::string& ptx,
                                   StepTimes& times) {
    const StepClock clock(times);
    const auto module = load_module(compiled, ptx);
    if (!module) return module.diags();
    return module->kernel(compiled.name);
  }

  // `ptx`: the digest of name and PTX.
  Result<Module> load_module(const Compiled& compiled, const std::string& ptx) {
    if (device_.emulated() || moves_registers(compiled.ptx))
      return device_.load(compiled.ptx, compiled.name);
    const CacheKey key = CacheKey("cubin").add("assembler", device_.assembler()).add("ptx", ptx);
    if (const auto entry = cache_.find(key)) {
      const auto kept = parsed(*entry);
      auto module =
          kept ? device_.load(std::as_bytes(std::span(kept->cubin)), compiled.name, kept->kernels)
               : Result<Module>("module-load"_rule, "it has another form");
      if (module) return module;
      cache_.remove(key);
      report(compiled, module.diags());
    }
    const auto made = device_.assemble(compiled.ptx, compiled.name);
    if (!made) return made.diags();
    auto module = device_.load(made->cubin, compiled.name, made->kernels);
    if (module) (void)cache_.store(key, entry_of(*made));  // else among the cache's problems
    return module;
  }

  void report(const Compiled& compiled, const Diags& why) {
    constexpr std::size_t most = 20;
    const std::lock_guard lock(mutex_);
    if (problems_.size() >= most || why.empty()) return;
    problems_.add(
        {.level = Level::Warning,
         .id = "module-load"_rule.id,
         .place = {},
         .message = fmt::format("the cache's machine code of kernel {} was deleted and is "
                                "assembled again: {}",
                                compiled.name, why[0].message),
         .source = {}});
  }

  Device device_;
  const Cache cache_;
  Kept kept_;
  std::mutex mutex_;  // of problems_
  Diags problems_;
};

Loader::Loader(Device device, Cache cache)
    : state_(std::make_shared<State>(std::move(device), std::move(cache))) {}

Result<Ready> Loader::load(const Kernel& kernel) const { return load(kernel, state_->arch()); }

Result<Ready> Loader::load(const Kernel& kernel, Arch arch) const {
  return within_memory([&] { return state_->load(kernel, arch); });
}

Result<Ready> Loader::load(const Compiled& compiled) const {
  return within_memory([&] { return state_->load(compiled, {}); });
}

Diags Loader::problems() const { return state_->problems(); }

}  // namespace tartan::TARTAN_ABI
