// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/bad_address.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "compiler/support/counted.h"
#include "compiler/support/demangle.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/memory.h"
#include "runtime/emulator/machine/places.h"
#include "runtime/emulator/machine/warp.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// How far from a variable or from null an address may be to be meant for it.
constexpr std::uint64_t reach = 64 * 1024;

// How text names a state space.
struct SpaceText {
  Window window;
  std::string_view name, qualifier;
};
constexpr SpaceText space_texts[] = {
    {Window::shared, "shared memory", "shared"},
    {Window::local, "local memory", "local"},
    {Window::constant, "constant memory", "const"},
    {Window::param, "the kernel's parameters", "param"},
};

// An address in a state space as text: "tile+64", or nothing.
struct Meant {
  std::string name;
  bool inside = false;  // of the variable, and not only near it
};

// The variable whose address was taken, at or in front of the offset in its space.
std::optional<Meant> meant_variable(const Program& program, Window window, std::uint64_t offset) {
  std::optional<Meant> out;
  std::uint64_t nearest = reach;
  for (const auto& [space, place] : program.taken_addresses) {
    if (space != window) continue;
    // What is on the stack has its place at run time.
    if (window == Window::local && place.dynamic) {
      if (!out && offset < program.local_bytes) out = {place.name, true};
      continue;
    }
    const std::uint64_t first = place.first + (place.dynamic ? program.dynamic_shared_base : 0);
    const std::uint64_t behind = offset - first;
    if (offset < first || behind >= nearest) continue;
    nearest = behind + 1;
    out = {with_offset(place.name, behind), place.dynamic || behind < place.bytes};
  }
  return out;
}

// Parameters that are null pointers, as far as one can tell.
std::vector<std::string> null_parameters(const LaunchContext& context) {
  std::vector<std::string> out;
  const Program& program = context.program;
  for (std::size_t i = 0; i < program.params.size(); ++i) {
    std::uint64_t value = 1;
    if (program.params[i].bytes == sizeof value)
      std::memcpy(&value, context.params.data() + program.param_offsets[i], sizeof value);
    if (value == 0) out.push_back(program.params[i].name);
  }
  return out;
}

// Of a number that is no generic address: which variables' offset it may be.
std::vector<std::string> offset_texts(Warp& warp, std::uint64_t address) {
  std::vector<std::string> inside, near;
  for (const auto& [window, space, qualifier] : space_texts) {
    std::uint64_t offset = address;
    if (window == Window::shared && (address & ~shared_offset_mask) == warp.block->own_place())
      offset &= shared_offset_mask;
    const auto found = meant_variable(*warp.program, window, offset);
    if (!found) continue;
    const std::string fix = window == Window::param
                                ? "ld.param reads it"
                                : fmt::format("use .{0} or cvta.{0}", qualifier);
    (found->inside ? inside : near)
        .push_back(fmt::format("it is the offset of {} in {}: {}", found->name, space, fix));
  }
  return inside.empty() ? near : inside;
}

// A number around zero.
std::string small_text(Warp& warp, std::uint64_t address) {
  std::vector<std::string> all = offset_texts(warp, address);
  const auto nulls = null_parameters(warp.block->context());
  if (address < reach && !nulls.empty())
    all.push_back(fmt::format("parameter {} is a null pointer", fmt::join(nulls, ", ")));
  if (!all.empty()) return fmt::format("{}", fmt::join(all, "; or "));
  if (address == 0) return "it is a null pointer";
  if (address < reach) return fmt::format("it is 0x{:x} bytes behind a null pointer", address);
  if (0 - address < reach)
    return fmt::format("it is 0x{:x} bytes in front of a null pointer", 0 - address);
  return {};
}

// A generic address in a window: what it is the address of.
std::string generic_text(Warp& warp, std::uint64_t address) {
  const Window window = is_constant(address) ? Window::constant : window_of(address);
  for (const auto& [each, space, qualifier] : space_texts) {
    if (each != window) continue;
    const auto found = meant_variable(*warp.program, window, address - window_base(window));
    return fmt::format("it is the generic address of {}{}: use a generic access{}",
                       found ? found->name + " in " : std::string(), space,
                       window == Window::param
                           ? std::string()
                           : fmt::format(", or .{0} with cvta.to.{0}", qualifier));
  }
  return {};
}

// A pointer to global memory.
std::string global_pointer_text(Warp& warp, std::uint64_t address) {
  const LaunchContext& context = warp.block->context();
  const auto pointer = context.memory.pointer(address);
  if (!pointer || is_constant(*pointer)) return {};
  const std::string name = global_name(context, *pointer);
  return fmt::format("it is {}{}: a global address; use .global",
                     *pointer == address
                         ? std::string()
                         : fmt::format("what cvta.to.shared made of 0x{:x}, ", *pointer),
                     name.empty() ? std::string("in global memory") : "in buffer " + name);
}

std::string cluster_place(Warp& warp, std::uint64_t address) {
  Cluster& cluster = warp.block->cluster();
  const std::uint32_t rank = rank_at(address, warp.block->rank());
  if (rank >= cluster.size()) return "the cluster has " + detail::counted(cluster.size(), "CTA");
  Block& block = cluster.block(rank);
  if (block.done())
    return fmt::format(
        "the CTA of rank {} has exited and freed its shared memory; synchronize by barrier.cluster "
        "before a CTA exits",
        block.rank());
  return fmt::format("the CTA of rank {} has {} bytes of shared memory", block.rank(),
                     block.shared_bytes());
}

// "the CTA has 0 bytes of shared memory", and where the launch left out the dynamic part, that.
std::string shared_size(const Warp& warp) {
  const std::uint64_t bytes = warp.block->shared_bytes();
  std::string text = fmt::format("the CTA has {} bytes of shared memory", bytes);
  const auto& variables = warp.program->shared_variables;
  const auto dynamic = std::ranges::find(variables, true, &NamedRange::dynamic);
  if (dynamic != variables.end() && bytes == warp.program->shared_bytes)
    text += fmt::format(", none of it dynamic, as {} is: the launch has to state its bytes",
                        detail::demangled_name(dynamic->name));
  return text;
}

std::string shared_place(Warp& warp, Window window, std::uint64_t address) {
  const std::uint64_t place = static_cast<std::uint32_t>(address);
  if (window == Window::cluster) return cluster_place(warp, place);
  const std::uint32_t own = warp.block->rank(), rank = rank_at(place, own);
  if (rank < warp.block->cluster().size() && rank != own)
    return "it is a cluster address (mapa), which only .shared::cluster and generic accesses "
           "accept";
  return shared_size(warp);
}

std::string global_place(Warp& warp, std::uint64_t address) {
  const Allocation* near = warp.block->memory().nearest(address);
  if (!near) return "it is outside every buffer";
  if (address - near->address >= near->bytes + window_bytes) return "no buffer is near";
  if (const detail::BufferName* name = warp.block->memory().name(*near))
    return fmt::format("it is {}, and {} has {}", name->element(address - near->address),
                       name->name, name->extent());
  return fmt::format("the nearest buffer is 0x{:x} with {} bytes", near->address, near->bytes);
}

// Why there is nothing.
std::string reason(Warp& warp, Window window, std::uint64_t address) {
  const bool is_global = window == Window::global || window == Window::generic;
  std::string text;
  if (is_global && (address < window_bytes || 0 - address < reach))
    text = small_text(warp, address);
  else if (!is_global) text = global_pointer_text(warp, address);
  if (text.empty() && address >= window_bytes && !(is_global && is_constant(address)))
    text = generic_text(warp, address);
  if (!text.empty()) return text;
  switch (window) {
    case Window::shared:
    case Window::cluster: return shared_place(warp, window, address);
    case Window::local:
      return fmt::format("a lane has {} bytes of local memory", warp.program->local_bytes);
    case Window::param:
      return fmt::format("the parameters take {} bytes", warp.program->param_bytes);
    case Window::constant: return "no constant is there";
    default: return global_place(warp, address);
  }
}

}  // namespace

void report_bad_address(Warp& warp, Window window, int lane, std::uint64_t address,
                        std::uint32_t bytes) {
  warp.fail("memory-fault"_rule,
            fmt::format("access of {} bytes at 0x{:x} is out of bounds: {}", bytes, address,
                        reason(warp, window, address)),
            lane, address);
}

}  // namespace tartan::TARTAN_ABI::emulator
