// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/instructions/tensor_issue.h - what a tcgen05.mma says of its kind, its
// descriptors, its collector and the lanes that it leaves out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/isa/tensor_descriptors.h"
#include "runtime/emulator/machine/observers.h"
#include "runtime/emulator/matrix/tensor_descriptor.h"

namespace tartan::TARTAN_ABI::emulator {

/// What the fields of an instruction descriptor mean, and of a tile's.
inline std::string meaning(TensorKind kind, std::uint32_t bits) {
  const isa::TensorMma mma{.kind = static_cast<isa::TensorMmaKind>(kind)};
  return isa::instruction_descriptor_text(mma, {~std::uint64_t{0}, bits});
}
inline std::string tile_meaning(std::uint64_t bits) {
  return isa::tile_descriptor_text({~std::uint64_t{0}, bits});
}

/// Of sm_107's kinds none.
inline std::optional<TensorKind> kind_of(const isa::Spelling& spelling) {
  using isa::operator""_q;
  constexpr std::pair<isa::Qualifier, TensorKind> kinds[] = {
      {"kind::f16"_q, TensorKind::f16},           {"kind::tf32"_q, TensorKind::tf32},
      {"kind::f8f6f4"_q, TensorKind::f8f6f4},     {"kind::i8"_q, TensorKind::i8},
      {"kind::mxf8f6f4"_q, TensorKind::mxf8f6f4}, {"kind::mxf4"_q, TensorKind::mxf4},
      {"kind::mxf4nvf4"_q, TensorKind::mxf4nvf4}};
  for (const auto& [word, kind] : kinds)
    if (spelling.has(word)) return kind;
  return std::nullopt;
}

/// Scales of a row along k.
inline std::uint32_t blocks_of(const isa::Spelling& spelling, TensorKind kind) {
  using isa::operator""_q;
  if (spelling.has("scale_vec::4X"_q) || spelling.has("block16"_q)) return 4;
  return kind == TensorKind::mxf8f6f4 ? 1 : is_scaled(kind) ? 2 : 0;
}

inline CollectorUse collector_of(const isa::Spelling& spelling) {
  using isa::operator""_q;
  constexpr std::pair<isa::Qualifier, CollectorUse> uses[] = {
      {"collector::a::fill"_q, CollectorUse::fill},
      {"collector::a::use"_q, CollectorUse::use},
      {"collector::a::lastuse"_q, CollectorUse::lastuse},
      {"collector::a::discard"_q, CollectorUse::discard}};
  for (const auto& [word, use] : uses)
    if (spelling.has(word)) return use;
  return CollectorUse::none;
}

/// FNV-1a: a number that other contents change.
struct Digest {
  std::uint64_t value = 14695981039346656037u;

  void add(const void* from, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      value = (value ^ static_cast<const std::uint8_t*>(from)[i]) * 1099511628211u;
  }
  void add(TensorMemory& memory, const TensorArea& area) {
    for (int i = 0; i < area.lanes; ++i)
      add(&memory.cell(area.lane + i, area.column),
          sizeof(std::uint32_t) * static_cast<std::size_t>(area.columns));
  }
};

/// Stretches of an area without the lanes that are disabled: four words, or null for none.
inline std::vector<TensorArea> without(const std::uint32_t* disabled, const TensorArea& area) {
  if (!disabled) return {area};
  std::vector<TensorArea> out;
  for (int lane = area.lane; lane < area.lane + area.lanes; ++lane) {
    if (disabled[lane / 32] >> lane % 32 & 1) continue;
    const bool follows = !out.empty() && out.back().lane + out.back().lanes == lane;
    if (follows) ++out.back().lanes;
    else out.push_back({lane, 1, area.column, area.columns});
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::emulator
