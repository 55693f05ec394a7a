// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "bindings/c/handles.h"
#include "bindings/c/read_json.h"

#ifdef TARTAN_LLVM
#include "tartan/kernels/gpu.h"
#endif

using namespace tartan;

namespace {

using Json = nlohmann::ordered_json;

/// A device's name, and its options.
struct Asked {
  std::string name;
  DeviceOptions options;
};

Result<Asked> asked_for(std::string name, const char* json) {
  DeviceOptions out;
  std::string checks = "none";
  const builtins::Option options[] = {{"hardware", &out.hardware},
                                      {"checks", &checks},
                                      {"threads", &out.threads},
                                      {"timeout", &out.timeout},
                                      {"schedule", &out.schedule}};
  const auto given = builtins::read_json(options, json ? json : "", "tartan_open");
  if (!given) return given.diags();
  if (!given->empty() && name.starts_with("cuda"))
    return {"usage"_rule,
            fmt::format("tartan_open: option {}: it is of the emulator, found device {}",
                        given->front(), name)};
  for (const auto& [option, value] :
       {std::pair("threads", double{1} * out.threads), std::pair("timeout", out.timeout)})
    if (value < 0)
      return {"usage"_rule, fmt::format("tartan_open: option {}: expected a number of at least 0, "
                                        "found {}",
                                        option, value)};
  const auto of_hardware = [](const std::string& each) { return each == "hardware"; };
  if (name == "auto" && !std::ranges::all_of(*given, of_hardware)) name = "emulator";
  if (checks == "memory") out.checks = Checks::memory;
  else if (checks == "all") out.checks = Checks::all;
  else if (checks != "none")
    return {
        "usage"_rule,
        fmt::format("tartan_open: option checks: expected none, memory or all, found {}", checks)};
  return Asked{std::move(name), std::move(out)};
}

// The name by which tartan_compile() finds it; none without code generation.
std::string gpu_of([[maybe_unused]] const Device& device) {
#ifdef TARTAN_LLVM
  const kernels::Gpu gpu = kernels::Gpu::of(device);
  return kernels::Gpu::find(gpu.name(), gpu.target()) ? std::string(gpu.name()) : std::string();
#else
  return {};
#endif
}

Status give(const Result<Device>& device, tartan_device*& out) {
  if (!device) return device.diags();
  out = new tartan_device{*device, device->name(), device->arch().text(), gpu_of(*device)};
  return Done{};
}

Json json_of(const Finding& finding) {
  Json out{{"id", finding.id},
           {"level", level_name(finding.level)},
           {"message", finding.message},
           {"line", finding.line}};
  if (!finding.source.empty()) out["source"] = finding.source;
  if (finding.block != no_block) out["block"] = {finding.block.x, finding.block.y, finding.block.z};
  if (finding.lane >= 0) out["lane"] = finding.lane;
  out["address"] = fmt::format("0x{:x}", finding.address);
  return out;
}

// Null is memory of no bytes.
Diags refuse_null(const char* function, const char* name, const void* memory, size_t bytes) {
  return bytes ? c::refuse_nulls(function, {{name, memory}}) : Diags();
}

}  // namespace

tartan_error* tartan_open(const char* name, const char* options, tartan_device** out) {
  if (out) *out = nullptr;
  return c::guarded("tartan_open", {{"name", name}, {"out", out}}, [&]() -> Status {
    const auto asked = asked_for(name, options);
    if (!asked) return asked.diags();
    return give(Device::open(asked->name, asked->options), *out);
  });
}

tartan_error* tartan_adopt(void* context, tartan_device** out) {
  tartan_device* adopted = nullptr;
  tartan_error* const error = c::guarded("tartan_adopt", {{"out", out}},
                                         [&] { return give(Device::adopt(context), adopted); });
  if (out) *out = adopted;
  return error;
}

const char* tartan_device_name(const tartan_device* device) {
  return device ? device->name.c_str() : "";
}
const char* tartan_device_arch(const tartan_device* device) {
  return device ? device->arch.c_str() : "";
}
const char* tartan_device_gpu(const tartan_device* device) {
  return device ? device->gpu.c_str() : "";
}
int tartan_device_multiprocessors(const tartan_device* device) {
  return device ? device->device.multiprocessors() : 0;
}
int tartan_device_emulated(const tartan_device* device) {
  return device && device->device.emulated();
}

tartan_error* tartan_synchronize(tartan_device* device) {
  return c::guarded("tartan_synchronize", {{"device", device}},
                    [&] { return device->device.synchronize(); });
}

tartan_error* tartan_findings(tartan_device* device, char** json) {
  char* text = nullptr;
  const auto take = [&]() -> Status {
    Json list = Json::array();
    for (const Finding& each : device->device.findings()) list.push_back(json_of(each));
    text = c::copy_of(list.dump(-1, ' ', false, Json::error_handler_t::replace));
    device->device.clear_findings();
    return Done{};
  };
  tartan_error* const error =
      c::guarded("tartan_findings", {{"device", device}, {"json", json}}, take);
  if (json) *json = text;
  return error;
}

void tartan_device_free(tartan_device* device) { delete device; }

tartan_error* tartan_allocate(tartan_device* device, size_t bytes, tartan_buffer** out) {
  if (out) *out = nullptr;
  return c::guarded("tartan_allocate", {{"device", device}, {"out", out}}, [&]() -> Status {
    auto buffer = device->device.allocate(bytes);
    if (!buffer) return buffer.diags();
    *out = new tartan_buffer{*buffer};
    return Done{};
  });
}

uint64_t tartan_buffer_address(const tartan_buffer* buffer) {
  return buffer ? buffer->buffer.address() : 0;
}
size_t tartan_buffer_size(const tartan_buffer* buffer) {
  return buffer ? buffer->buffer.size() : 0;
}

tartan_error* tartan_write(tartan_buffer* buffer, size_t offset, const void* from, size_t bytes) {
  return c::guarded("tartan_write", {{"buffer", buffer}}, [&]() -> Status {
    if (const Diags nulls = refuse_null("tartan_write", "from", from, bytes); !nulls.ok())
      return nulls;
    return buffer->buffer.write({static_cast<const std::byte*>(from), bytes}, offset);
  });
}

tartan_error* tartan_read(const tartan_buffer* buffer, size_t offset, void* to, size_t bytes) {
  return c::guarded("tartan_read", {{"buffer", buffer}}, [&]() -> Status {
    if (const Diags nulls = refuse_null("tartan_read", "to", to, bytes); !nulls.ok()) return nulls;
    return buffer->buffer.read({static_cast<std::byte*>(to), bytes}, offset);
  });
}

tartan_error* tartan_fill(tartan_buffer* buffer, uint8_t byte) {
  return c::guarded("tartan_fill", {{"buffer", buffer}}, [&] { return buffer->buffer.fill(byte); });
}

void tartan_buffer_free(tartan_buffer* buffer) { delete buffer; }
