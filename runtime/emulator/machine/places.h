// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/places.h - how findings of a launch name instructions and memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tartan/abi.h"
#include "tartan/isa/spelling.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::emulator {

struct LaunchContext;
struct Program;

/// The line of the PTX text, or 0.
int line(const LaunchContext& context, std::uint32_t pc);
/// "gemm.cc:12" from .loc, or nothing.
std::string source(const LaunchContext& context, std::uint32_t pc);
/// "line 40 (gemm.cc:12)".
std::string line_text(const LaunchContext& context, std::uint32_t pc);
/// As written: "ld.global.v4.u32".
std::string_view opcode(const LaunchContext& context, std::uint32_t pc);
/// As it was read; null where the op has no instruction.
const isa::Spelling* spelling(const LaunchContext& context, std::uint32_t pc);
/// The same two for a kernel of any launch.
std::string line_text(const Program& program, const ptx::Module& module, std::uint32_t pc);
std::string_view opcode(const Program& program, const ptx::Module& module, std::uint32_t pc);
/// "bar.sync (__syncthreads())": an instruction for advice, and how one writes it in the language
/// of the source, where the module shows which one that is: Tartan's DSL or CUDA C++.
std::string spoken(const LaunchContext& context, std::string_view instruction);
/// "tile+16 (shared memory at 0x10)".
std::string shared_text(const LaunchContext& context, std::uint64_t address);
/// "out[4,0]" or "out+64": by the name of its buffer, the parameter that points into it, or the
/// variable; empty where it lies in no buffer.
std::string global_name(const LaunchContext& context, std::uint64_t address);
/// "tile+16", or "tile"; names of C++ as the source has them.
std::string with_offset(std::string_view name, std::uint64_t offset);
/// "global memory at out+64 (0x1000000040)": as global_name() says.
std::string global_text(const LaunchContext& context, std::uint64_t address);

}  // namespace tartan::TARTAN_ABI::emulator
