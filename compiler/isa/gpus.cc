// SPDX-License-Identifier: Apache-2.0
#include "tartan/isa/gpus.h"

#include <algorithm>
#include <string>

namespace tartan::TARTAN_ABI::isa {
namespace {

// From NVIDIA's data sheets; multiply-adds and loads of an H100 as measured. Its latency was
// fitted, others are in proportion. Of the GPUs of an architecture the usual one is the first.
constexpr GpuRow h100 = {.name = "H100",
                         .sm = 90,
                         .multiprocessors = 132,
                         .shared_bytes = 228 << 10,
                         .cache_bytes = 50 << 20,
                         .clock = 1.755,
                         .mma = 1370,
                         .wgmma = 2048,
                         .cache = 3500,
                         .memory = 1909,
                         .latency = 782};

// Its multiprocessors, so many of them, beside other memory.
constexpr GpuRow like_h100(const char* name, double memory, int multiprocessors) {
  GpuRow out = h100;
  out.name = name, out.memory = memory, out.multiprocessors = multiprocessors;
  return out;
}

constexpr GpuRow rows[] = {{.name = "A100",
                            .sm = 80,
                            .multiprocessors = 108,
                            .shared_bytes = 164 << 10,
                            .cache_bytes = 40 << 20,
                            .clock = 1.41,
                            .mma = 1024,
                            .wgmma = 0,
                            .cache = 3500,
                            .memory = 1440,
                            .latency = 684},
                           {.name = "A40",
                            .sm = 86,
                            .multiprocessors = 84,
                            .shared_bytes = 100 << 10,
                            .cache_bytes = 6 << 20,
                            .clock = 1.74,
                            .mma = 512,
                            .wgmma = 0,
                            .cache = 2000,
                            .memory = 400,
                            .latency = 684},
                           {.name = "Jetson AGX Orin",
                            .sm = 87,
                            .multiprocessors = 16,
                            .shared_bytes = 164 << 10,
                            .cache_bytes = 4 << 20,
                            .clock = 1.3,
                            .mma = 1024,
                            .wgmma = 0,
                            .cache = 512,
                            .memory = 157,
                            .latency = 782},
                           {.name = "L40S",
                            .sm = 89,
                            .multiprocessors = 142,
                            .shared_bytes = 100 << 10,
                            .cache_bytes = 96 << 20,
                            .clock = 2.52,
                            .mma = 512,
                            .wgmma = 0,
                            .cache = 2500,
                            .memory = 343,
                            .latency = 782},
                           h100,
                           like_h100("H100 PCIe", 1140, 114),
                           like_h100("H100 NVL", 2222, 132),
                           like_h100("H200", 2735, 132),
                           like_h100("GH200", 2279, 132),
                           {.name = "H20",
                            .sm = 90,
                            .multiprocessors = 78,
                            .shared_bytes = 228 << 10,
                            .cache_bytes = 60 << 20,
                            .clock = 1.755,
                            .mma = 512,
                            .wgmma = 512,
                            .cache = 3500,
                            .memory = 2279,
                            .latency = 782},
                           {.name = "B200",
                            .sm = 100,
                            .multiprocessors = 148,
                            .shared_bytes = 228 << 10,
                            .cache_bytes = 126 << 20,
                            .clock = 1.85,
                            .mma = 1024,
                            .wgmma = 0,
                            .tcgen05 = 4096,
                            .cache = 5000,
                            .memory = 4300,
                            .latency = 874},
                           {.name = "Jetson Thor",
                            .sm = 110,
                            .multiprocessors = 20,
                            .shared_bytes = 228 << 10,
                            .cache_bytes = 32 << 20,
                            .clock = 1.57,
                            .mma = 1024,
                            .wgmma = 0,
                            .tcgen05 = 4096,
                            .cache = 700,
                            .memory = 174,
                            .latency = 874},
                           {.name = "RTX PRO 6000",
                            .sm = 120,
                            .multiprocessors = 188,
                            .shared_bytes = 100 << 10,
                            .cache_bytes = 128 << 20,
                            .clock = 2.6,
                            .mma = 512,
                            .wgmma = 0,
                            .cache = 4000,
                            .memory = 690,
                            .latency = 874},
                           {.name = "GB10",
                            .sm = 121,
                            .multiprocessors = 48,
                            .shared_bytes = 100 << 10,
                            .cache_bytes = 24 << 20,
                            .clock = 2.4,
                            .mma = 512,
                            .wgmma = 0,
                            .cache = 1000,
                            .memory = 114,
                            .latency = 874}};

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

}  // namespace

std::span<const GpuRow> gpus() { return rows; }

const GpuRow* find_gpu(Arch arch) {
  const GpuRow* out = nullptr;
  for (const GpuRow& row : rows)
    if (row.sm <= arch.sm && (!out || row.sm > out->sm)) out = &row;
  return out;
}

bool runs(const GpuRow& row, Arch code) {
  if (code.suffix == 'a') return row.sm == code.sm;
  return row.sm >= code.sm && (code.suffix == 0 || row.sm / 10 == code.sm / 10);
}

std::vector<const GpuRow*> gpus_named(std::string_view name, int sm) {
  const Words given = words_of(name);
  std::vector<const GpuRow*> all, out;
  for (const GpuRow& row : rows)
    if ((sm == 0 || row.sm == sm) && has_all(given, words_of(row.name))) all.push_back(&row);
  for (const GpuRow* row : all) {
    const Words words = words_of(row->name);
    const auto closer = [&](const GpuRow* other) {
      const Words more = words_of(other->name);
      return more.size() > words.size() && has_all(more, words);
    };
    if (std::ranges::none_of(all, closer)) out.push_back(row);
  }
  return out;
}

const GpuRow* gpu_named(std::string_view name, int sm) {
  const auto named = gpus_named(name, sm);
  return named.size() == 1 ? named[0] : nullptr;
}

Arch own_arch(const GpuRow& row) {
  const Arch own{row.sm, 'a'};
  return find_arch(own) ? own : Arch{row.sm, 0};
}

}  // namespace tartan::TARTAN_ABI::isa
