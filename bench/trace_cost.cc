// SPDX-License-Identifier: Apache-2.0
// trace_cost DEVICE MANIFEST...: what timestamps cost a kernel, as a table: microseconds of a
// launch as it is, with timestamps that nobody reads, and with those of 4 CTAs written; each the
// least of 50, in turn. The bytes that the launches wrote are compared.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>

#include "runtime/manifest.h"
#include "runtime/manifest_arguments.h"
#include "tartan/runtime/trace.h"

namespace tartan {
namespace {

using Bytes = std::vector<std::vector<std::byte>>;

// Halves between 1 and 2, of both signs: finite in every type of 16 bits.
std::vector<std::uint16_t> halves(std::size_t count, std::uint32_t seed) {
  std::vector<std::uint16_t> out(count);
  for (std::uint16_t& each : out) {
    seed = seed * 1664525u + 1013904223u;
    each = static_cast<std::uint16_t>(seed >> 31 << 15 | 0x3c00 | (seed >> 12 & 0x3ff));
  }
  return out;
}

/// A kernel of a manifest with memory of its own.
class Side {
 public:
  static Result<Side> make(Device& device, const Manifest& manifest, const ptx::Traced& text) {
    Side out(device, manifest);
    auto module = device.load(text.text, manifest.ptx.name());
    if (!module) return module.diags();
    auto kernel = module->kernel(manifest.kernel);
    if (!kernel) return kernel.diags();
    for (const ManifestBuffer* each : manifest.all_buffers()) {
      auto buffer = device.allocate(each->size);
      if (!buffer) return buffer.diags();
      const auto seed = static_cast<std::uint32_t>(each->name[0]);
      const Status written = each->size % 2           ? buffer->fill(0)
                             : each->contents.empty() ? buffer->write(halves(each->size / 2, seed))
                                                      : buffer->write(each->contents);
      if (!written) return written.diags();
      out.buffers_.emplace(each->name, *std::move(buffer));
    }
    auto arguments = manifest_arguments(
        manifest.params, [&](const std::string& name) { return out.buffers_.at(name).address(); });
    if (!arguments) return arguments.diags();
    out.arguments_ = *std::move(arguments);
    out.kernel_ = *std::move(kernel);
    out.module_ = *std::move(module);
    return out;
  }

  /// Until it is destroyed, launches write timestamps.
  Result<Trace> trace(const ptx::Traced& text, const TimelineLimits& limits) {
    return Trace::start(*device_, *module_, text, manifest_->kernel, manifest_->launch, limits);
  }

  /// One launch; `microseconds` becomes the least.
  Status launch() {
    auto begin = device_->event(), end = device_->event();
    if (!begin) return begin.diags();
    if (!end) return end.diags();
    if (Status status = begin->record(); !status) return status;
    if (Status status = kernel_->launch(manifest_->launch, arguments_); !status) return status;
    if (Status status = end->record(); !status) return status;
    const auto took = end->milliseconds_since(*begin);
    if (!took) return took.diags();
    microseconds = std::min(microseconds, 1e3 * *took);
    return device_->synchronize();
  }

  Result<Bytes> bytes() const {
    Bytes out;
    for (const auto& [name, buffer] : buffers_) {
      auto read = buffer.read_all<std::byte>();
      if (!read) return read.diags();
      out.push_back(*std::move(read));
    }
    return out;
  }

  double microseconds = INFINITY;

 private:
  Side(Device& device, const Manifest& manifest) : device_(&device), manifest_(&manifest) {}

  Device* device_;
  const Manifest* manifest_;
  std::optional<Module> module_;
  std::optional<LoadedKernel> kernel_;
  std::map<std::string, Buffer> buffers_;
  Arguments arguments_;
};

Status measure(Device& device, const Manifest& manifest, int launches) {
  const ptx::Traced plain{.text = std::string(manifest.ptx.text())};
  const auto text = ptx::traced(plain.text, manifest.ptx.name());
  if (!text) return text.diags();
  auto as_it_is = Side::make(device, manifest, plain), idle = Side::make(device, manifest, *text),
       written = Side::make(device, manifest, *text);
  for (const auto* each : {&as_it_is, &idle, &written})
    if (!*each) return each->diags();
  Timeline timeline;
  const auto trace = written->trace(*text, timeline.limits());
  if (!trace) return trace.diags();
  for (int i = 0; i < launches; ++i)
    for (auto* each : {&as_it_is, &idle, &written})
      if (Status status = (*each)->launch(); !status) return status;
  if (Status status = trace->add_to(timeline); !status) return status;
  const auto expected = as_it_is->bytes(), second = idle->bytes(), third = written->bytes();
  for (const auto* each : {&expected, &second, &third})
    if (!*each) return each->diags();
  const std::string events = timeline.summary();  // "gemm: 4 of 128 CTAs, 456 events"
  const bool same = *second == *expected && *third == *expected;
  fmt::print(
      "| {} ({}) | {:.1f} | {:.1f} | {:.1f} | {:.2f}, {:.2f} | {} | {} |\n", manifest.kernel,
      manifest.name, as_it_is->microseconds, idle->microseconds, written->microseconds,
      idle->microseconds / as_it_is->microseconds, written->microseconds / as_it_is->microseconds,
      same ? "same" : "DIFFER",
      events.substr(manifest.kernel.size() + 2, events.find('\n') - manifest.kernel.size() - 2));
  return same ? Status(Done{}) : Diags::one("usage"_rule, {}, "results differ");
}

int measure(const std::string& name, int count, char** manifests) {
  auto device = Device::open(name);
  if (!device) {
    std::cerr << device.diags().text();
    return 2;
  }
  const int launches = device->emulated() ? 1 : 50;
  fmt::print(
      "{}\n\n| Kernel | as it is, us | timestamps, not read | written | Ratios | Results | "
      "Timeline "
      "|\n|---|---|---|---|---|---|---|\n",
      device->name());
  for (int i = 0; i < count; ++i) {
    const auto manifest = read_manifest(manifests[i]);
    const Status status = manifest ? measure(*device, *manifest, launches) : manifest.diags();
    if (status) continue;
    std::cerr << manifests[i] << ": " << status.diags().text();
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace tartan

int main(int argc, char** argv) {
  if (argc > 2) return tartan::measure(argv[1], argc - 2, argv + 2);
  std::cerr << "trace_cost DEVICE MANIFEST...\n";
  return 2;
}
