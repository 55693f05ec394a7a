// SPDX-License-Identifier: Apache-2.0
// compiler/isa/signatures/memory.h - operands, types and requirements that the families of memory
// instructions share.
#pragma once

#include <string_view>

#include "compiler/isa/signatures/families.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::isa {

/// The types of ld and st, except b128.
inline constexpr TypeSet memory_types{Type::b8,  Type::u8,  Type::s8,  Type::b16, Type::u16,
                                      Type::s16, Type::b32, Type::u32, Type::s32, Type::f32,
                                      Type::b64, Type::u64, Type::s64, Type::f64};
inline constexpr TypeSet memory_types_128{Type::b8,  Type::u8,  Type::s8,  Type::b16, Type::u16,
                                          Type::s16, Type::b32, Type::u32, Type::s32, Type::f32,
                                          Type::b64, Type::u64, Type::s64, Type::f64, Type::b128};

/// With .L2::cache_hint: the policy of createpolicy.
constexpr OperandRow cache_policy() {
  return with("L2::cache_hint",
              {.name = "policy", .accepts = a_register | an_integer, .type = u64});
}
/// [a] that the instruction writes.
constexpr OperandRow target(std::string_view name = "a", std::uint16_t spaces = as_qualified) {
  return {
      .name = name, .accepts = an_address, .type = Type::none, .written = true, .spaces = spaces};
}
/// [bar]: an mbarrier in shared memory.
constexpr OperandRow mbarrier(std::string_view name = "mbar") {
  return {.name = name, .accepts = an_address, .type = Type::none, .spaces = in_shared};
}

/// A memory order requires a scope, and a scope requires an order.
inline std::string_view order_without_scope(const Spelling& spelling) {
  constexpr QualifierSet orders = "relaxed acquire release", scopes = "cta cluster gpu sys";
  const bool order = !(spelling.words & orders).empty(), scope = !(spelling.words & scopes).empty();
  if (order && !scope) return "requires a scope with its memory order";
  return scope && !order ? "requires a memory order with its scope" : "";
}

/// An mbarrier whose address is generic (64 bits) if no space is stated.
constexpr OperandRow mbarrier_object() {
  OperandRow out = mbarrier();
  out.type = u64;
  return out;
}

// The manual's requirements for words that many instructions share.
inline constexpr Need needs_memory_model{.words = "weak relaxed acquire release acq_rel",
                                         .since = {{6, 0}, 70}};
inline constexpr Need needs_shared_cta{.words = "shared::cta", .since = {{7, 8}, 10}};
inline constexpr Need needs_cluster{.words = "cluster shared::cluster", .since = {{7, 8}, 90}};
inline constexpr Need needs_param_kind{.words = "param::entry param::func", .since = {{8, 3}, 10}};
inline constexpr Need needs_cache_hint{.words = "L2::cache_hint", .since = {{7, 4}, 80}};

/// Targets with tensor memory: sm_100, sm_103 and sm_110 with suffix a or f.
inline constexpr Since with_tensor_memory{
    .ptx = {8, 6}, .sm = 100, .reach = Reach::Family, .last_sm = 110};

/// Several blocks of the cluster as destinations, by a mask of 16 or 32 bits.
inline constexpr QualifierSet by_16_bits = "multicast::cluster::16b";
inline constexpr QualifierSet multicasts =
    "multicast::cluster multicast::cluster::16b multicast::cluster::32b";
inline constexpr Need needs_16_bits{.words = "multicast::cluster::16b", .since = {{9, 4}, 90}};
inline constexpr Need needs_32_bits{.words = "multicast::cluster::32b", .since = rubin};

/// The mask of blocks, of 16 or 32 bits.
constexpr OperandRow blocks_16(QualifierSet words = "multicast::cluster") {
  const bool ranged = !words.has(*find_qualifier("multicast::cluster"));
  return with(words, {.name = "cta_mask",
                      .accepts = a_register | an_integer,
                      .type = u16,
                      .ranged = ranged,
                      .high = 0xFFFF});
}
constexpr OperandRow blocks_32() {
  return with("multicast::cluster::32b", {.name = "cta_mask",
                                          .accepts = a_register | an_integer,
                                          .type = u32,
                                          .ranged = true,
                                          .high = 0xFFFFFFFF});
}

/// What an mbarrier learns of a copy besides its bytes.
inline constexpr QualifierSet reports =
    "mbarrier::report::disabled mbarrier::report::validity::per_16bytes::8 "
    "mbarrier::report::validity::per_16bytes::80 mbarrier::report::validity::per_16bytes::8000 "
    "mbarrier::report::validity::per_16bytes::80000000 "
    "mbarrier::report::validity::per_element::ff";
inline constexpr Need needs_reports{.words = reports, .since = rubin};

/// The completion mechanism that names an mbarrier.
inline constexpr QualifierSet completing = "mbarrier::complete_tx::bytes";

/// Rejected bulk copies: the completion mechanism must match the direction.
inline std::string_view not_from_global(const Spelling& spelling) {
  return in_order(spelling, ".shared", ".global") ? ""
                                                  : "with an mbarrier copies to shared memory only";
}
inline std::string_view not_to_global(const Spelling& spelling) {
  return in_order(spelling, ".global", ".shared") ? ""
                                                  : "with .bulk_group copies to global memory only";
}

}  // namespace tartan::TARTAN_ABI::isa
