// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "runtime/engine.h"

namespace tartan {
namespace {

using EngineResult = Result<std::shared_ptr<detail::Engine>>;

EngineResult best_engine(const DeviceOptions& options) {
  if (auto gpu = cuda::make_engine(0)) return gpu;
  return emulator::make_engine(options);
}

// N of "cuda:N"; 0 for "cuda" alone.
std::optional<int> gpu_ordinal(std::string_view name) {
  if (name == "cuda") return 0;
  constexpr std::string_view prefix = "cuda:";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int ordinal = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), ordinal);
  if (error != std::errc() || end != name.data() + name.size() || ordinal < 0) return std::nullopt;
  return ordinal;
}

EngineResult named_engine(const std::string& name, const DeviceOptions& options) {
  if (name == "auto") return best_engine(options);
  if (name == "emulator") return emulator::make_engine(options);
  if (const auto ordinal = gpu_ordinal(name)) return cuda::make_engine(*ordinal);
  return {"no-device"_rule,
          fmt::format("no device is called {}: take auto, emulator, cuda or cuda:N", name)};
}

}  // namespace

Device Device::best(const DeviceOptions& options) {
  auto engine = best_engine(options);
  return Device(std::move(engine.value()));
}

Result<Device> Device::open(const std::string& name, const DeviceOptions& options) {
  auto engine = named_engine(name, options);
  if (!engine) return engine.diags();
  return Device(std::move(*engine));
}

}  // namespace tartan
