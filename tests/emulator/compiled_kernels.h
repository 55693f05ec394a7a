// SPDX-License-Identifier: Apache-2.0
// tests/emulator/compiled_kernels.h - runs the kernels of tests/data/kernels on a device.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/manifest.h"

namespace tartan::test {

/// The folders of `data` that contain a manifest, in order.
inline std::vector<std::string> compiled_kernels(const std::filesystem::path& data) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(data))
    if (std::filesystem::exists(entry.path() / "manifest.json"))
      out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

/// Why the results recorded on sm_90 cannot be compared with this machine's GPU; empty: they can.
inline std::string no_hopper() {
  const auto device = Device::open("cuda");
  if (!device) return device.diags().text();
  return device->arch().sm == 90 ? "" : "recorded on sm_90, found " + device->name();
}

/// A buffer after the launch, named after the file of its expectation.
struct WrittenBuffer {
  std::string file;
  std::vector<std::byte> bytes;
};

/// Launches a manifest, ignoring its expectations (they need not exist yet), and reads every buffer
/// that has one.
inline Result<std::vector<WrittenBuffer>> written_buffers(
    const std::filesystem::path& manifest_path, const std::string& device_name) {
  const auto text = read_source(manifest_path.string());
  if (!text) return text.diags();
  auto json = nlohmann::json::parse(text->text());
  std::vector<std::string> files;
  for (auto& param : json["params"]) {
    if (param.contains("buffer")) files.push_back(param.value("expect", ""));
    param.erase("expect");
    param.erase("compare");
  }
  const auto manifest = parse_manifest(Source(manifest_path.string(), json.dump()));
  if (!manifest) return manifest.diags();
  auto device = Device::open(device_name);
  if (!device) return device.diags();
  if (device->emulated()) device = Device::open(device_name, {.hardware = manifest->hardware});
  auto module = device->load(std::string(manifest->ptx.text()), manifest->ptx.name());
  if (!module) return module.diags();
  auto kernel = module->kernel(manifest->kernel);
  if (!kernel) return kernel.diags();
  Arguments arguments;
  std::vector<Buffer> buffers;
  for (const ManifestParam& param : manifest->params) {
    if (!param.buffer) {
      arguments.add_bytes(param.scalar);
      continue;
    }
    auto buffer = device->allocate(param.buffer->size);
    if (!buffer) return buffer.diags();
    const Status filled = param.buffer->contents.empty() ? buffer->fill(param.buffer->fill)
                                                         : buffer->write(param.buffer->contents);
    if (!filled) return filled.diags();
    arguments.add(*buffer);
    buffers.push_back(*buffer);
  }
  if (Status launched = kernel->launch(manifest->launch, arguments); !launched)
    return launched.diags();
  if (Status done = device->synchronize(); !done) return done.diags();
  std::vector<WrittenBuffer> out;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (files[i].empty()) continue;
    auto bytes = buffers[i].read_all<std::byte>();
    if (!bytes) return bytes.diags();
    out.push_back({files[i], std::move(*bytes)});
  }
  return out;
}

}  // namespace tartan::test
