// SPDX-License-Identifier: Apache-2.0
// Any bytes as PTX that runs with all checks: each kernel of the module is launched with buffers,
// tensor maps and small numbers for arguments, in the usual order or in that of a seed. Whatever it
// does ends with results, findings or diagnostics, and within the limits on steps and time.
#include <array>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "tartan/runtime/device.h"
#include "tartan/runtime/tensor_map.h"

namespace {

using namespace tartan;

constexpr std::size_t buffer_bytes = 8192;

Device open(const std::string& schedule) {
  auto device = Device::open(
      "emulator",
      {.max_steps = 3000, .timeout = 3, .threads = 1, .schedule = schedule, .checks = Checks::all});
  if (!device) std::abort();
  return *device;
}

/// A matrix of 64 x 64 numbers of 16 bits at the beginning of a buffer, by boxes of 64 x 8.
std::vector<std::byte> map_of(const Buffer& buffer) {
  TensorMap map;
  map.type = f16;
  map.address = buffer.address();
  map.extents = {64, 64};
  map.strides = {128};
  map.box = {64, 8};
  const auto bytes = map.encode();
  if (!bytes) std::abort();
  const auto all = std::as_bytes(std::span(&*bytes, 1));
  return {all.begin(), all.end()};
}

/// Buffers, every other one written by the host.
Arguments arguments_for(Device& device, const std::vector<KernelParam>& params,
                        std::vector<Buffer>& buffers) {
  Arguments arguments;
  for (const KernelParam& param : params) {
    const bool pointer = param.bytes == 8, map = param.bytes == 128;
    if (!pointer && !map) {
      std::vector<std::byte> number(param.bytes);
      if (!number.empty()) number[0] = std::byte{16};
      arguments.add_bytes(number);
      continue;
    }
    auto buffer = device.allocate(buffer_bytes);
    if (!buffer) std::abort();
    if (buffers.size() % 2 == 0 && !buffer->fill(1)) std::abort();
    if (map) arguments.add_bytes(map_of(*buffer));
    else arguments.add(*buffer);
    buffers.push_back(*buffer);
  }
  return arguments;
}

void launch(Device& device, LoadedKernel& kernel, std::uint32_t threads) {
  std::vector<Buffer> buffers;
  for (const KernelParam& param : kernel.params())
    if (param.bytes > 4096) return;
  const Arguments arguments = arguments_for(device, kernel.params(), buffers);
  const Launch shape{.grid = {2}, .block = {threads}, .dynamic_shared = 4096};
  if (const Status launched = kernel.launch(shape, arguments); !launched)
    (void)launched.diags().text();
  if (const Status finished = device.synchronize(); !finished) (void)finished.diags().text();
  for (const Finding& each : device.findings())
    if (each.id.empty() || each.message.empty()) std::abort();
  device.clear_findings();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::array devices{open(""), open("1")};
  constexpr std::array<std::uint32_t, 5> blocks{64, 128, 32, 256, 160};
  Device& device = devices[size / blocks.size() % devices.size()];
  const auto module =
      device.load(std::string(reinterpret_cast<const char*>(data), size), "fuzz.ptx");
  if (!module) return 0;
  for (const std::string& name : module->kernels())
    if (auto kernel = module->kernel(name); kernel)
      launch(device, *kernel, blocks[size % blocks.size()]);
  return 0;
}
