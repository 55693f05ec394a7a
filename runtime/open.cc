// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "runtime/engine.h"

namespace tartan::TARTAN_ABI {
namespace {

using EngineResult = Result<std::shared_ptr<detail::Engine>>;

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
  if (name == "emulator") return emulator::make_engine(options);
  if (const auto ordinal = gpu_ordinal(name)) return cuda::make_engine(*ordinal);
  return {"no-device"_rule,
          fmt::format("unknown device {}: expected auto, emulator, cuda or cuda:N", name)};
}

// A GPU computes only as itself: another architecture's arithmetic needs the emulator.
std::string why_not(const detail::Engine& gpu, const std::string& hardware) {
  const auto wanted = Arch::parse(hardware);
  if (!wanted || wanted->sm == gpu.arch().sm) return {};
  return fmt::format("running on the emulator with the arithmetic of {}: the GPU is {}",
                     wanted->text(), gpu.name());
}

}  // namespace

Result<Device> Device::best(const DeviceOptions& options) {
  auto emulator = emulator::make_engine(options);
  if (!emulator) return emulator.diags();  // the options are wrong for every device
  auto gpu = cuda::make_engine(0);
  if (!gpu) return Device(std::move(*emulator));
  if (std::string remark = why_not(**gpu, options.hardware); !remark.empty())
    return Device(std::move(*emulator), std::move(remark));
  return Device(std::move(*gpu));
}

Result<Device> Device::open(const std::string& name, const DeviceOptions& options) {
  if (name == "auto") return best(options);
  auto engine = named_engine(name, options);
  if (!engine) return engine.diags();
  return Device(std::move(*engine));
}

Result<Device> Device::adopt(void* context) {
  auto engine = cuda::adopt_context(context);
  if (!engine) return engine.diags();
  return Device(std::move(*engine));
}

int Device::count() { return cuda::device_count(); }

}  // namespace tartan::TARTAN_ABI
