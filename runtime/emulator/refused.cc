// SPDX-License-Identifier: Apache-2.0
// What the emulator does not run, by name: rows for a message that says so.
#include <fmt/format.h>

#include "runtime/emulator/instructions.h"

namespace tartan::emulator {
namespace {

void refuse(Decoder& d, std::string_view what) {
  d.error("unsupported-instruction"_rule,
          fmt::format("{} are not emulated: {}", what, d.spelling.text()));
}

void refuse_textures(Decoder& d) { refuse(d, "textures and samplers"); }
void refuse_surfaces(Decoder& d) { refuse(d, "surfaces"); }
void refuse_multimem(Decoder& d) { refuse(d, "multimem addresses, memory of several GPUs,"); }
void refuse_tensor_memory(Decoder& d) { refuse(d, "tensor memory and the products of tcgen05"); }
void refuse_opaque(Decoder& d) { refuse(d, "textures, samplers and surfaces"); }

constexpr InstructionRow rows[] = {
    {"tex", refuse_textures},          {"tld4", refuse_textures},  {"txq", refuse_textures},
    {"suld", refuse_surfaces},         {"sust", refuse_surfaces},  {"sured", refuse_surfaces},
    {"suq", refuse_surfaces},          {"istypep", refuse_opaque}, {"multimem", refuse_multimem},
    {"tcgen05", refuse_tensor_memory},
};

}  // namespace

std::span<const InstructionRow> refused_instructions() { return rows; }

}  // namespace tartan::emulator
