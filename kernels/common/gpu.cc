// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "kernels/common/gpus.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

using Rows = std::vector<const isa::GpuRow*>;

Target target_of(const isa::GpuRow& row) { return Target::of(isa::own_arch(row)); }

std::vector<std::string_view> names_of(Arch code) {
  std::vector<std::string_view> out;
  for (const isa::GpuRow& row : isa::gpus())
    if (runs(row, code)) out.emplace_back(row.name);
  return out;
}

std::string expected(Arch code) {
  const auto names = names_of(code);
  return names.empty() ? "none, since no known GPU does"
                       : fmt::format("{}", fmt::join(names, ", "));
}

Result<const isa::GpuRow*> row_named(std::string_view name) {
  const Rows rows = isa::gpus_named(name);
  if (rows.size() == 1) return rows[0];
  std::vector<std::string_view> names;
  for (const isa::GpuRow* row : rows) names.emplace_back(row->name);
  return {
      "kernel-option"_rule,
      fmt::format("GPU {}: {}; expected one of {}", name,
                  rows.empty() ? "unknown" : fmt::format("it names {}", fmt::join(names, " and ")),
                  fmt::join(Gpu::names(), ", "))};
}

}  // namespace

namespace detail {

std::optional<isa::GpuRow> row_of(const Gpu& gpu) {
  const isa::GpuRow* row = GpuAccess::row(gpu);
  if (!row) return std::nullopt;
  isa::GpuRow out = *row;
  out.multiprocessors = gpu.multiprocessors();
  const double share = std::min(double{1} * out.multiprocessors / row->multiprocessors, 1.0);
  out.cache_bytes = static_cast<int>(share * out.cache_bytes);
  out.cache *= share, out.memory *= share;
  return out;
}

Gpu GpuAccess::of(std::string_view name, Arch own, const Target& target, int multiprocessors) {
  const isa::GpuRow* row = isa::gpu_named(name, own.sm);
  if (!row) row = isa::find_gpu(own);
  Gpu out(target, row && runs(*row, target.arch) ? row : isa::find_gpu(target.arch));
  if (multiprocessors > 0) out.multiprocessors_ = multiprocessors;
  return out;
}

}  // namespace detail

constexpr int v100_multiprocessors = 80;

Gpu::Gpu(const Target& target, const isa::GpuRow* row)
    : target_(target),
      row_(row),
      multiprocessors_(row ? row->multiprocessors : v100_multiprocessors) {}

Gpu::Gpu(const Target& target) : Gpu(target, isa::find_gpu(target.arch)) {}

Result<Gpu> Gpu::find(std::string_view name, const Target& target) {
  const auto row = row_named(name);
  if (!row) return row.diags();
  if (!runs(**row, target.arch))
    return {"kernel-option"_rule,
            fmt::format("GPU {}: it has {}, and does not run code for {}; expected {}", name,
                        target_of(**row).arch.text(), target.arch.text(), expected(target.arch))};
  return Gpu(target, *row);
}

Result<Gpu> Gpu::find(std::string_view name) {
  const auto row = row_named(name);
  if (!row) return row.diags();
  return Gpu(target_of(**row), *row);
}

std::vector<std::string_view> Gpu::names() {
  std::vector<std::string_view> out;
  for (const isa::GpuRow& row : isa::gpus()) out.emplace_back(row.name);
  return out;
}

std::string_view Gpu::name() const { return row_ ? row_->name : std::string_view(); }

double Gpu::memory_bandwidth() const {
  const auto row = detail::row_of(*this);
  return row ? row->memory * row->clock : 0;
}

}  // namespace tartan::TARTAN_ABI::kernels
