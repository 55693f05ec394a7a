// SPDX-License-Identifier: Apache-2.0
#include "tartan/runtime/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

#include "compiler/ptx/kernel_directives.h"
#include "runtime/trace_events.h"
#include "tartan/ptx/parser.h"

namespace tartan::TARTAN_ABI {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t most_records = 4096, fewest_records = 16;  // of a thread

// CTAs of a cluster: the launch's, else what the kernel requires.
std::uint32_t cluster_of(const ptx::Module& module, const ptx::Function& kernel,
                         const Launch& launch) {
  if (const auto asked = launch.cluster.count()) return static_cast<std::uint32_t>(asked);
  const auto [x, y, z] = ptx::extents_of(module, kernel, ".reqnctapercluster");
  return std::max<std::uint32_t>(x * y * z, 1);
}

// With a grid that counts CTAs.
Launch in_ctas(const ptx::Module& module, const ptx::Function& kernel, Launch launch) {
  const auto [x, y, z] = ptx::grid_unit(module, kernel);
  launch.grid = {launch.grid.x * x, launch.grid.y * y, launch.grid.z * z};
  return launch;
}

// What the variable holds: ptx::trace_variable.
std::vector<std::byte> bytes_of(std::uint64_t address, std::uint32_t ctas, std::uint32_t records) {
  std::vector<std::byte> out(16);
  std::memcpy(out.data(), &address, 8);
  std::memcpy(out.data() + 8, &ctas, 4);
  std::memcpy(out.data() + 12, &records, 4);
  return out;
}

}  // namespace

Result<Trace> Trace::start(Device& device, const Module& module, const ptx::Traced& text,
                           const std::string& kernel, const Launch& launch,
                           const TimelineLimits& limits) {
  Diags diags;
  const ptx::Module tree = ptx::parse(std::make_shared<Source>("<ptx>", text.text), diags);
  if (!diags.ok()) return diags;
  const ptx::Function* const function = tree.function(kernel);
  if (!function || !ptx::is_traced(tree))
    return {"usage"_rule,
            fmt::format("kernel {}: expected a kernel with timestamps, found {}; load "
                        "what ptx::traced() makes",
                        kernel, function ? "none in its module" : "no kernel of that name")};
  Trace trace;
  trace.text_ = text;
  trace.kernel_ = kernel;
  trace.device_ = device.name();
  trace.launch_ = in_ctas(tree, *function, launch);
  trace.cluster_ = cluster_of(tree, *function, launch);
  const std::uint64_t kept =
      std::max<std::uint64_t>(trace.cluster_, limits.ctas / trace.cluster_ * trace.cluster_);
  const std::uint64_t ctas = std::min(kept, trace.launch_.grid.count()),
                      threads = launch.block.count();
  const std::uint64_t space =
      most_bytes / (sizeof(detail::TraceRecord) * std::max<std::uint64_t>(ctas * threads, 1));
  const std::uint64_t records = std::clamp(space, fewest_records, most_records);
  trace.ctas_ = static_cast<std::uint32_t>(ctas);
  trace.records_of_thread_ = static_cast<std::uint32_t>(records);
  auto variable = module.variable(std::string(ptx::trace_variable));
  if (!variable) return variable.diags();
  trace.variable_ = *std::move(variable);
  auto memory = device.allocate(std::max<std::uint64_t>(
      ctas * threads * records * sizeof(detail::TraceRecord), sizeof(detail::TraceRecord)));
  if (!memory) return memory.diags();
  trace.records_ = *std::move(memory);
  if (Status status = trace.records_.fill(0); !status) return status.diags();
  const auto bytes = bytes_of(trace.records_.address(), trace.ctas_, trace.records_of_thread_);
  if (Status status = trace.variable_.write(std::span(bytes)); !status) return status.diags();
  trace.owner_ = true;
  return trace;
}

Trace::Trace(Trace&& other) noexcept
    : variable_(std::move(other.variable_)),
      records_(std::move(other.records_)),
      text_(std::move(other.text_)),
      kernel_(std::move(other.kernel_)),
      device_(std::move(other.device_)),
      launch_(other.launch_),
      ctas_(other.ctas_),
      cluster_(other.cluster_),
      records_of_thread_(other.records_of_thread_),
      owner_(std::exchange(other.owner_, false)) {}

// From now on launches write nothing. A lost context has lost the variable, too.
Trace::~Trace() {
  if (!owner_) return;
  const auto none = bytes_of(0, 0, 0);
  (void)variable_.write(std::span(none));
}

Status Trace::add_to(Timeline& timeline) const {
  const auto records = records_.read_all<detail::TraceRecord>();
  if (!records) return records.diags();
  return detail::add_trace({.kernel = kernel_,
                            .device = device_,
                            .shape = launch_,
                            .ctas = ctas_,
                            .cluster = cluster_,
                            .records_of_thread = records_of_thread_},
                           *records, text_, timeline);
}

}  // namespace tartan::TARTAN_ABI
