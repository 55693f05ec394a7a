// SPDX-License-Identifier: Apache-2.0
// tartan/isa/qualifier.h - the qualifiers of opcodes, and sets of them.
//
// Types (.f32, .e4m3x2) are not qualifiers: see tartan/isa/type.h. Rows of the tables write sets as
// text; a word that is not in the list does not compile:
//
//   constexpr QualifierSet roundings = "rn rz rm rp";
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::isa {

// clang-format off
inline constexpr std::string_view qualifier_words[] = {
    // arithmetic
    "rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi", "ftz", "sat", "satfinite", "relu", "approx", "full",
    "cc", "wide", "lo", "hi", "noftz", "NaN", "nan", "xorsign", "abs", "oob", "scaled", "shiftamt", "clamp", "wrap",
    "l", "r", "finite", "infinite", "number", "notanumber", "normal", "subnormal", "uni", "cta_mask",
    "scaled::n1::ue8m0", "scaled::n2::ue8m0", "pzo", "2pi",
    // comparison and Boolean operators
    "eq", "ne", "lt", "le", "gt", "ge", "ls", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num",
    "and", "or", "xor", "popc", "add", "sub", "inc", "dec", "min", "max", "exch", "cas", "mul", "none",
    // prmt
    "f4e", "b4e", "rc8", "ecl", "ecr", "rc16",
    // state spaces, scopes, memory order
    "reg", "global", "const", "local", "param", "shared", "generic", "sreg", "tex",
    "shared::cta", "shared::cluster", "param::entry", "param::func", "to", "nc",
    "cta", "cluster", "gpu", "sys", "gl", "weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc", "mmio", "unified",
    "sync_restrict::shared::cta", "sync_restrict::shared::cluster", "read",
    "sync_restrict::shared::cluster::read", "sync_restrict::read", "sync_restrict::reads", "sync_restrict::proxy::async",
    "sync_restrict::shared::read::mma::a", "proxy::readonly",
    // caches
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1", "L2",
    "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
    "L2::evict_normal", "L2::evict_unchanged", "L2::evict_first", "L2::evict_last", "L2::cache_hint",
    "L2::64B", "L2::128B", "L2::256B", "L1::32B", "valid_addr", "fractional", "range", "cvt", "level::eviction_priority",
    "tensormap", "tensormap::generic",
    // vectors
    "v2", "v4", "v8", "v16", "acc::f16", "acc::f32", "x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128",
    // asynchronous copies and mbarriers
    "bulk", "bulk_group", "mbarrier::complete_tx::bytes", "multicast::cluster", "cp_mask", "ignore_oob",
    "tile", "im2col", "im2col_no_offs", "im2col_no_offs::w", "im2col::w", "im2col::w::128", "tile::gather4", "tile::scatter4",
    "cta_group::1", "cta_group::2", "noinc", "noComplete", "parity", "expect_tx", "tx_count", "phase", "state", "multicast::cluster::all",
    "multicast::cluster::16b", "multicast::cluster::32b", "layout::v0", "layout::v1", "phase_type::primary", "phase_type::conditional",
    "mbarrier::report::disabled", "mbarrier::report::validity::per_16bytes::8", "mbarrier::report::validity::per_16bytes::80",
    "mbarrier::report::validity::per_16bytes::8000", "mbarrier::report::validity::per_16bytes::80000000", "mbarrier::report::validity::per_element::ff",
    "override::global_address", "override::global_dim", "override::global_dim_stride",
    "alloc_class_large", "alloc_large", "alloc_small", "alloc_same",
    // other nodes of a fabric
    "multimem", "mbarrier::complete_tx::16B", "mbarrier::report::fabric", "counted::bytes", "op_restrict::fetching",
    "fabric::generic", "generic::fabric", "fabric::fabric",
    "1d", "2d", "3d", "4d", "5d", "replace", "global_address", "rank", "box_dim", "global_dim", "global_stride",
    "b1024", "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "fill_mode", "swizzle_atomicity",
    // fences and barriers
    "alias", "async", "async::generic", "cluster_launch", "proxy", "from", "mbarrier_init",
    "async::global", "async::shared::cta", "async::shared::cluster",
    "arrive", "wait", "sync", "aligned", "red", "warp",
    // warps
    "up", "down", "bfly", "idx", "all", "any", "ballot", "launch_dependents", "wait_prior",
    "inc_x", "is_canceled", "get_first_ctaid", "get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z",
    // matrix instructions
    "row", "col", "trans", "a", "b", "c", "d", "sp", "sp::ordered_metadata", "block_scale", "scale_vec::1X", "scale_vec::2X", "scale_vec::4X",
    "kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4", "kind::f16", "kind::tf32", "kind::i8", "kind::ti16",
    // textures and surfaces
    "p", "base", "level", "grad", "a1d", "a2d", "cube", "acube", "2dms", "a2dms", "g", "trap", "zero",
    "width", "height", "depth", "channel_data_type", "channel_order", "normalized_coords", "force_unnormalized_coords",
    "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2", "array_size", "num_mipmap_levels", "num_samples", "memory_layout",
    "texref", "samplerref", "surfref",
    // tensor memory
    "alloc", "dealloc", "exclusive", "16x64b", "16x128b", "16x256b", "32x32b", "16x32bx2", "pack::16b", "unpack::16b",
    "128x256b", "4x256b", "128x128b", "64x128b", "32x128b", "warpx2::02_13", "warpx2::01_23", "warpx4",
    "collector::a::fill", "collector::a::use", "collector::a::lastuse", "collector::a::discard", "ashift",
    "collector::b0::fill", "collector::b0::use", "collector::b0::lastuse", "collector::b0::discard",
    "collector::b1::fill", "collector::b1::use", "collector::b1::lastuse", "collector::b1::discard",
    "collector::b2::fill", "collector::b2::use", "collector::b2::lastuse", "collector::b2::discard",
    "collector::b3::fill", "collector::b3::use", "collector::b3::lastuse", "collector::b3::discard",
    "collector::b::fill", "collector::b::use", "collector::b::lastuse", "collector::b::discard", "decompress::lut::b",
    // sparse data in registers
    "sp::1:2", "sp::1:4", "sp::2:4", "sp::1:8", "sp::1:16", "sp::2:8", "sp::2:16", "sp::4:8", "sp::4:16",
    "block16", "block32", "mbarrier::arrive::one", "down_shift", "is_async", "i8",
    // miscellaneous
    "mask", "shr7", "shr15", "po", "cond",
};
// clang-format on

inline constexpr std::size_t qualifier_count = std::size(qualifier_words);
static_assert(qualifier_count <= 512);

/// A qualifier: an index into qualifier_words.
struct Qualifier {
  std::uint16_t index = 0;
  constexpr bool operator==(const Qualifier&) const = default;
  constexpr std::string_view word() const { return qualifier_words[index]; }
};

/// The qualifier spelled `word`, or nothing.
constexpr std::optional<Qualifier> find_qualifier(std::string_view word) {
  for (std::size_t i = 0; i < qualifier_count; ++i)
    if (qualifier_words[i] == word) return Qualifier{static_cast<std::uint16_t>(i)};
  return std::nullopt;
}

/// "ftz"_q; a misspelled word does not compile.
consteval Qualifier operator""_q(const char* word, std::size_t length) {
  return find_qualifier({word, length}).value();
}

/// A set of qualifiers, written as their words with blanks between: "rn rz rm rp".
struct QualifierSet {
  std::array<std::uint64_t, 8> bits{};

  constexpr QualifierSet() = default;
  constexpr QualifierSet(Qualifier one) { add(one); }
  consteval QualifierSet(const char* words) {
    std::string_view rest = words;
    while (!rest.empty()) {
      const std::size_t end = rest.find(' ');
      add(find_qualifier(rest.substr(0, end)).value());  // throws: no such word
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }
  constexpr void add(Qualifier one) { bits[one.index / 64] |= std::uint64_t{1} << one.index % 64; }
  constexpr bool has(Qualifier one) const { return bits[one.index / 64] >> one.index % 64 & 1; }
  constexpr bool empty() const { return *this == QualifierSet(); }
  constexpr int count() const {
    int out = 0;
    for (const std::uint64_t each : bits) out += std::popcount(each);
    return out;
  }
  constexpr bool operator==(const QualifierSet&) const = default;
  constexpr QualifierSet operator|(const QualifierSet& other) const {
    QualifierSet out = *this;
    for (std::size_t i = 0; i < bits.size(); ++i) out.bits[i] |= other.bits[i];
    return out;
  }
  constexpr QualifierSet operator&(const QualifierSet& other) const {
    QualifierSet out = *this;
    for (std::size_t i = 0; i < bits.size(); ++i) out.bits[i] &= other.bits[i];
    return out;
  }
  /// The qualifiers in this set that are not in `other`.
  constexpr QualifierSet without(const QualifierSet& other) const {
    QualifierSet out = *this;
    for (std::size_t i = 0; i < bits.size(); ++i) out.bits[i] &= ~other.bits[i];
    return out;
  }
  /// The first of the set, in the order of the list; the set is not empty.
  constexpr Qualifier first() const {
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i])
        return {static_cast<std::uint16_t>(i * 64 +
                                           static_cast<std::size_t>(std::countr_zero(bits[i])))};
    return {};
  }
};

}  // namespace tartan::TARTAN_ABI::isa
