// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/kernels/gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "dsl/kernels/gpus.h"

namespace tartan::inline TARTAN_ABI {
namespace {

using Words = std::vector<std::string>;

// "NVIDIA H100-PCIe" is nvidia, h100, pcie.
Words words_of(std::string_view name) {
  Words out{""};
  for (const char each : name) {
    const bool upper = each >= 'A' && each <= 'Z';
    if (each == ' ' || each == '-' || each == '_') out.emplace_back();
    else out.back() += upper ? static_cast<char>(each - 'A' + 'a') : each;
  }
  return out;
}

bool has_all(const Words& given, const Words& words) {
  return std::ranges::all_of(words, [&](const std::string& word) {
    return std::ranges::find(given, word) != given.end();
  });
}

using Rows = std::vector<const detail::GpuRow*>;

// The rows all of whose words are in a name, without those that others name more closely: of "H100
// PCIe" only that one. sm 0: any.
Rows named(std::string_view name, int sm) {
  const Words given = words_of(name);
  Rows all, out;
  for (const detail::GpuRow& row : detail::gpus())
    if ((sm == 0 || row.sm == sm) && has_all(given, words_of(row.name))) all.push_back(&row);
  for (const detail::GpuRow* row : all) {
    const Words words = words_of(row->name);
    const auto closer = [&](const detail::GpuRow* other) {
      const Words more = words_of(other->name);
      return more.size() > words.size() && has_all(more, words);
    };
    if (std::ranges::none_of(all, closer)) out.push_back(row);
  }
  return out;
}

// Its own, with suffix a if it has one.
Target target_of(const detail::GpuRow& row) {
  const Arch own{row.sm, 'a'};
  return Target::of(find_arch(own) ? own : Arch{row.sm, 0});
}

bool runs(const detail::GpuRow& row, Arch code) {
  if (code.suffix == 'a') return row.sm == code.sm;
  return row.sm >= code.sm && (code.suffix == 0 || row.sm / 10 == code.sm / 10);
}

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
  const Rows rows = named(name, 0);
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

const GpuRow* gpu_named(std::string_view name, int sm) {
  const Rows rows = named(name, sm);
  return rows.size() == 1 ? rows[0] : nullptr;
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
}  // namespace tartan::inline TARTAN_ABI
