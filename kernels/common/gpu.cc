// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "kernels/common/gpus.h"

namespace tartan::TARTAN_ABI {
namespace {

using Rows = std::vector<const detail::GpuRow*>;

Target target_of(const detail::GpuRow& row) { return Target::of(detail::own_arch(row)); }

std::vector<std::string_view> names_of(Arch code) {
  std::vector<std::string_view> out;
  for (const detail::GpuRow& row : detail::gpus())
    if (runs(row, code)) out.emplace_back(row.name);
  return out;
}

std::string expected(Arch code) {
  const auto names = names_of(code);
  return names.empty() ? "none, since no known GPU does"
                       : fmt::format("{}", fmt::join(names, ", "));
}

Result<const detail::GpuRow*> row_named(std::string_view name) {
  const Rows rows = detail::gpus_named(name);
  if (rows.size() == 1) return rows[0];
  std::vector<std::string_view> names;
  for (const detail::GpuRow* row : rows) names.emplace_back(row->name);
  return {
      "kernel-option"_rule,
      fmt::format("GPU {}: {}; expected one of {}", name,
                  rows.empty() ? "unknown" : fmt::format("it names {}", fmt::join(names, " and ")),
                  fmt::join(kernels::Gpu::names(), ", "))};
}

}  // namespace

namespace detail {

std::optional<GpuRow> row_of(const kernels::Gpu& gpu) {
  const GpuRow* row = GpuAccess::row(gpu);
  if (!row) return std::nullopt;
  GpuRow out = *row;
  out.multiprocessors = gpu.multiprocessors();
  const double share = std::min(double{1} * out.multiprocessors / row->multiprocessors, 1.0);
  out.cache_bytes = static_cast<int>(share * out.cache_bytes);
  out.cache *= share, out.memory *= share;
  return out;
}

kernels::Gpu GpuAccess::of(std::string_view name, Arch own, const Target& target,
                           int multiprocessors) {
  const GpuRow* row = gpu_named(name, own.sm);
  if (!row) row = find_gpu(own);
  kernels::Gpu out(target, row && runs(*row, target.arch) ? row : find_gpu(target.arch));
  if (multiprocessors > 0) out.multiprocessors_ = multiprocessors;
  return out;
}

}  // namespace detail

namespace kernels {

constexpr int v100_multiprocessors = 80;

Gpu::Gpu(const Target& target, const detail::GpuRow* row)
    : target_(target),
      row_(row),
      multiprocessors_(row ? row->multiprocessors : v100_multiprocessors) {}

Gpu::Gpu(const Target& target) : Gpu(target, detail::find_gpu(target.arch)) {}

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
  for (const detail::GpuRow& row : detail::gpus()) out.emplace_back(row.name);
  return out;
}

std::string_view Gpu::name() const { return row_ ? row_->name : std::string_view(); }

double Gpu::memory_bandwidth() const {
  const auto row = detail::row_of(*this);
  return row ? row->memory * row->clock : 0;
}

}  // namespace kernels
}  // namespace tartan::TARTAN_ABI
