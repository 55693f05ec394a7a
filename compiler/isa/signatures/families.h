// SPDX-License-Identifier: Apache-2.0
// compiler/isa/signatures/families.h - the families of signatures, each in a file of its name.
#pragma once

#include <span>

#include "tartan/isa/signature.h"

namespace tartan::TARTAN_ABI::isa {

std::span<const Signature> integer_signatures();
std::span<const Signature> arithmetic_signatures();
std::span<const Signature> control_signatures();
std::span<const Signature> move_signatures();
std::span<const Signature> conversion_signatures();
std::span<const Signature> comparison_signatures();
std::span<const Signature> logic_signatures();
std::span<const Signature> float_signatures();
std::span<const Signature> load_store_signatures();
std::span<const Signature> atomics_signatures();
std::span<const Signature> cp_async_signatures();
std::span<const Signature> bulk_copy_signatures();
std::span<const Signature> tensor_copy_signatures();
std::span<const Signature> mbarrier_signatures();
std::span<const Signature> barriers_signatures();
std::span<const Signature> addresses_signatures();
std::span<const Signature> multimem_signatures();
std::span<const Signature> fabric_signatures();
std::span<const Signature> sparse_data_signatures();
std::span<const Signature> tensor_memory_signatures();
std::span<const Signature> video_signatures();
std::span<const Signature> texture_signatures();
std::span<const Signature> surface_signatures();
std::span<const Signature> matrix_signatures();

// clang-format off
inline constexpr std::span<const Signature> (*signature_families[])() = {
    integer_signatures,
    arithmetic_signatures,
    float_signatures,
    comparison_signatures,
    logic_signatures,
    conversion_signatures,
    move_signatures,
    control_signatures,
    load_store_signatures,
    atomics_signatures,
    cp_async_signatures,
    bulk_copy_signatures,
    tensor_copy_signatures,
    mbarrier_signatures,
    barriers_signatures,
    addresses_signatures,
    multimem_signatures,
    fabric_signatures,
    sparse_data_signatures,
    tensor_memory_signatures,
    video_signatures,
    texture_signatures,
    surface_signatures,
    matrix_signatures,
};
// clang-format on

/// What PTX 9.4 has on sm_107a and sm_107f alone.
inline constexpr Since rubin{.ptx = {9, 4}, .sm = 107, .reach = Reach::Family, .last_sm = 107};
inline constexpr Since rubin_a{.ptx = {9, 4}, .sm = 107, .reach = Reach::ExactArch};

/// What PTX had from the start until that version.
constexpr Since until(std::uint8_t major, std::uint8_t minor) { return {.last = {major, minor}}; }

// Type sets that many rows share.
inline constexpr TypeSet ints_16{Type::u16, Type::s16};
inline constexpr TypeSet ints_32{Type::u32, Type::s32};
inline constexpr TypeSet ints_64{Type::u64, Type::s64};
inline constexpr TypeSet ints{Type::u16, Type::s16, Type::u32, Type::s32, Type::u64, Type::s64};
inline constexpr TypeSet ints_to_32{Type::u16, Type::s16, Type::u32, Type::s32};
inline constexpr TypeSet ints_32_64{Type::u32, Type::s32, Type::u64, Type::s64};
inline constexpr TypeSet bits_32_64{Type::b32, Type::b64};
/// A source that is no function, which the assembler takes for a number elsewhere.
constexpr OperandRow no_function(OperandRow row) {
  row.accepts = static_cast<std::uint16_t>(row.accepts & ~a_function);
  return row;
}
inline constexpr TypeSet bits_only{Type::b16, Type::b32, Type::b64};

}  // namespace tartan::TARTAN_ABI::isa
