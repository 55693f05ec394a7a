// SPDX-License-Identifier: Apache-2.0
// mov, and exchanges between lanes of a warp: shfl, vote, match, redux, activemask, elect (PTX ISA
// 9.7.9.3 to 9.7.9.6 and 9.7.13).
#include "compiler/isa/signatures/families.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr TypeSet scalars{Type::b16, Type::b32, Type::b64, Type::u16, Type::u32, Type::u64,
                          Type::s16, Type::s32, Type::s64, f32,       f64};
constexpr TypeSet integers_32{Type::b16, Type::b32, Type::u16, Type::u32, Type::s16, Type::s32};
constexpr OperandRow anything = also(a_special | a_variable | a_function, src());
constexpr OperandRow mask = src(u32, "membermask");
constexpr OperandRow shuffled{.accepts = a_register | a_pair,
                              .type = OperandType(0),
                              .written = true,
                              .sinks = SinkInPair::Second};
constexpr OperandRow elected{
    .accepts = a_pair, .type = u32, .written = true, .sinks = SinkInPair::First};
constexpr OperandRow voter = also(a_negation, src(Type::pred));
constexpr Since with_masks{{6, 0}, 30};

constexpr OperandRow unpacked(int elements, OperandType type) {
  return written(also(a_register | a_sink, vec(elements, type)));
}
// The elements of mov.v2 and mov.v4.
constexpr OperandRow moved(int elements) {
  return also(a_register | a_special | an_integer | a_float, vec(elements, OperandType(0)));
}
constexpr OperandRow packed(int elements, OperandType type) {
  return also(a_register | an_integer | a_float, vec(elements, type));
}

// clang-format off
constexpr Signature rows[] = {
    {.opcode = Opcode::mov, .types = {scalars}, .operands = {dst(), anything}},
    {.opcode = Opcode::mov, .types = {bits_only}, .operands = {dst(), vec(1, OperandType(0))}},
    {.opcode = Opcode::mov, .types = {bits_only}, .operands = {written(vec(1, OperandType(0))), anything}},
    {.opcode = Opcode::mov, .types = {Type::b128}, .operands = {dst(), anything}, .since = {{8, 3}, 70}},
    {.opcode = Opcode::mov, .types = {Type::pred}, .operands = {dst(), also(a_special, voter)}},
    {.opcode = Opcode::mov, .types = {integers_32}, .one = {"v4"}, .operands = {unpacked(4, OperandType(0)), also(a_special_vector, moved(4))}},
    {.opcode = Opcode::mov, .types = {f32}, .one = {"v4"}, .operands = {unpacked(4, OperandType(0)), moved(4)}},
    {.opcode = Opcode::mov, .types = {scalars}, .one = {"v2"}, .operands = {unpacked(2, OperandType(0)), moved(2)}},
    {.opcode = Opcode::mov, .types = {b16}, .operands = {dst(), packed(2, Type::b8)}},
    {.opcode = Opcode::mov, .types = {b16}, .operands = {unpacked(2, Type::b8), anything}},
    {.opcode = Opcode::mov, .types = {b32}, .operands = {dst(), packed(2, b16)}},
    {.opcode = Opcode::mov, .types = {b32}, .operands = {unpacked(2, b16), anything}},
    {.opcode = Opcode::mov, .types = {b32}, .operands = {dst(), packed(4, Type::b8)}},
    {.opcode = Opcode::mov, .types = {b32}, .operands = {unpacked(4, Type::b8), anything}},
    {.opcode = Opcode::mov, .types = {b64}, .operands = {dst(), packed(2, b32)}},
    {.opcode = Opcode::mov, .types = {b64}, .operands = {unpacked(2, b32), anything}},
    {.opcode = Opcode::mov, .types = {b64}, .operands = {dst(), packed(4, b16)}},
    {.opcode = Opcode::mov, .types = {b64}, .operands = {unpacked(4, b16), anything}},
    {.opcode = Opcode::mov, .types = {Type::b128}, .operands = {dst(), packed(2, b64)}, .since = {{8, 3}, 70}},
    {.opcode = Opcode::mov, .types = {Type::b128}, .operands = {unpacked(2, b64), anything}, .since = {{8, 3}, 70}},
    {.opcode = Opcode::mov, .types = {Type::b128}, .operands = {dst(), packed(4, b32)}, .since = {{8, 3}, 70}},
    {.opcode = Opcode::mov, .types = {Type::b128}, .operands = {unpacked(4, b32), anything}, .since = {{8, 3}, 70}},
    {.opcode = Opcode::shfl, .types = {b32}, .one = {"up down bfly idx", "sync"}, .operands = {shuffled, src(), src(), src(), mask}, .since = with_masks},
    {.opcode = Opcode::shfl, .types = {b32}, .one = {"up down bfly idx"}, .operands = {shuffled, src(), src(), src()}, .since = {.ptx = {3, 0}, .sm = 30, .last_sm = 62}},
    {.opcode = Opcode::shfl, .types = {b32}, .one = {"up down bfly idx"}, .operands = {shuffled, src(), src(), src()}, .since = {.ptx = {3, 0}, .sm = 70, .last = {6, 3}}},
    {.opcode = Opcode::vote, .types = {Type::pred}, .one = {"all any uni", "sync"}, .operands = {dst(), voter, mask}, .since = with_masks},
    {.opcode = Opcode::vote, .types = {b32}, .one = {"ballot", "sync"}, .operands = {dst(), voter, mask}, .since = with_masks},
    {.opcode = Opcode::vote, .types = {Type::pred}, .one = {"all any uni"}, .operands = {dst(), voter}, .since = {.ptx = {1, 2}, .sm = 12, .last_sm = 62}},
    {.opcode = Opcode::vote, .types = {Type::pred}, .one = {"all any uni"}, .operands = {dst(), voter}, .since = {.ptx = {1, 2}, .sm = 70, .last = {6, 3}}},
    {.opcode = Opcode::vote, .types = {b32}, .one = {"ballot"}, .operands = {dst(), voter}, .since = {.ptx = {2, 0}, .sm = 20, .last_sm = 62}},
    {.opcode = Opcode::vote, .types = {b32}, .one = {"ballot"}, .operands = {dst(), voter}, .since = {.ptx = {2, 0}, .sm = 70, .last = {6, 3}}},
    {.opcode = Opcode::match, .types = {bits_32_64}, .one = {"any", "sync"}, .operands = {dst(u32), src(), mask}, .since = {{6, 0}, 70}},
    {.opcode = Opcode::match, .types = {bits_32_64}, .one = {"all", "sync"}, .operands = {also(a_pair, dst(u32)), src(), mask}, .since = {{6, 0}, 70}},
    {.opcode = Opcode::activemask, .types = {b32}, .operands = {dst()}, .since = {{6, 2}, 30}},
    {.opcode = Opcode::redux, .types = {ints_32}, .one = {"add min max", "sync"}, .operands = {dst(u32), src(u32), mask}, .since = {{7, 0}, 80}},
    {.opcode = Opcode::redux, .types = {b32}, .one = {"and or xor", "sync"}, .operands = {dst(u32), src(u32), mask}, .since = {{7, 0}, 80}},
    {.opcode = Opcode::redux, .types = {f32}, .one = {"min max", "sync"}, .flags = "abs NaN", .operands = {dst(), src(), mask}, .since = {.ptx = {8, 6}, .sm = 100, .reach = Reach::Family, .last_sm = 107}},
    {.opcode = Opcode::elect, .one = {"sync"}, .operands = {elected, mask}, .since = {{8, 0}, 90}},
};
// clang-format on

}  // namespace

std::span<const Signature> move_signatures() { return rows; }

}  // namespace tartan::TARTAN_ABI::isa
