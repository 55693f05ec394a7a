// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/support/ascii.h"
#include "compiler/support/demangle.h"
#include "runtime/emulator/machine/cluster.h"

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

int line(const Program& program, const ptx::Module& module, std::uint32_t pc) {
  return pc < program.origins.size() ? module.source->line(program.origins[pc].offset) : 0;
}

std::string source(const Program& program, const ptx::Module& module, std::uint32_t pc) {
  std::uint32_t location = pc < program.origins.size() ? program.origins[pc].location : 0;
  // Line 0: code of no line in particular, so that of the one before.
  while (location && !module.locations[location - 1].line) --location;
  if (!location) return {};
  const ptx::Location& at = module.locations[location - 1];
  const std::string_view file = module.file_name(at.file);
  return file.empty() ? std::string() : fmt::format("{}:{}", from_ascii(file), at.line);
}

}  // namespace

std::string line_text(const Program& program, const ptx::Module& module, std::uint32_t pc) {
  const std::string from = source(program, module, pc);
  return fmt::format("line {}{}", line(program, module, pc),
                     from.empty() ? from : fmt::format(" ({})", from));
}

std::string_view opcode(const Program& program, const ptx::Module& module, std::uint32_t pc) {
  if (pc >= program.origins.size()) return "an access";
  const std::uint32_t offset = program.origins[pc].offset;
  const auto& all = module.instructions;
  const auto at = std::ranges::lower_bound(all, offset, {}, &ptx::Instruction::offset);
  return at == all.end() || at->offset != offset ? "an access" : at->opcode;
}

int line(const LaunchContext& context, std::uint32_t pc) {
  return line(context.program, context.module, pc);
}
std::string source(const LaunchContext& context, std::uint32_t pc) {
  return source(context.program, context.module, pc);
}
std::string line_text(const LaunchContext& context, std::uint32_t pc) {
  return line_text(context.program, context.module, pc);
}
std::string_view opcode(const LaunchContext& context, std::uint32_t pc) {
  return opcode(context.program, context.module, pc);
}

std::string shared_text(const LaunchContext& context, std::uint64_t address) {
  const NamedRange* found = nullptr;
  for (const NamedRange& each : context.program.shared_variables) {
    const std::uint64_t first =
        each.first + (each.dynamic ? context.program.dynamic_shared_base : 0);
    if (address < first || (!each.dynamic && address >= first + each.bytes)) continue;
    // Variables in dynamic shared memory end where the next one begins.
    if (!found || !each.dynamic || (found->dynamic && each.first >= found->first)) found = &each;
  }
  if (!found) return fmt::format("shared memory at 0x{:x}", address);
  const std::uint64_t first =
      found->first + (found->dynamic ? context.program.dynamic_shared_base : 0);
  return fmt::format("{} (shared memory at 0x{:x})", with_offset(found->name, address - first),
                     address);
}

std::string with_offset(std::string_view name, std::uint64_t offset) {
  const std::string text = detail::demangled_name(name);
  return offset ? fmt::format("{}+{}", text, offset) : text;
}

std::string global_name(const LaunchContext& context, std::uint64_t address) {
  const Program& program = context.program;
  const Allocation* const allocation = context.memory.find(address, 1);
  if (const detail::BufferName* name = allocation ? context.memory.name(*allocation) : nullptr)
    return name->element(address - allocation->address);
  for (std::size_t i = 0; allocation && i < program.params.size(); ++i) {
    if (program.params[i].bytes != 8) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, context.params.data() + program.param_offsets[i], 8);
    if (allocation->holds(value, 1) && address >= value)
      return with_offset(program.params[i].name, address - value);
  }
  for (const auto& [window, place] : program.taken_addresses)
    if (window == Window::global && address - place.first < place.bytes)
      return with_offset(place.name, address - place.first);
  return {};
}

std::string global_text(const LaunchContext& context, std::uint64_t address) {
  const std::string name = global_name(context, address);
  return name.empty() ? fmt::format("global memory at 0x{:x}", address)
                      : fmt::format("global memory at {} (0x{:x})", name, address);
}

}  // namespace tartan::inline TARTAN_ABI::emulator
