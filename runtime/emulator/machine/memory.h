// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/machine/memory.h - the address space: where a device address leads, and whether
// it may.
//
// Generic addresses are cut into windows of 4 GiB; addresses inside a state space count from its
// window's start:
//
//   0x0'........  nothing: null pointers and small numbers fault
//   0x1'........  shared memory of the block, and of the others of its cluster (cluster.h)
//   0x2'........  local memory of the lane
//   0x3'........  kernel parameters
//   0x4'........  functions: what their names mean, nothing that can be read
//   0x5'...       constants: as global memory, but isspacep tells them apart, and what their
//                 names mean counts from here
//   0x10'...      global memory: allocations with gaps between them, never the host's own
//                 addresses
//
// Of a 64-bit address of shared memory the lower half counts. A pointer to global memory is not
// an address of shared memory: it faults there, as on a GPU, where its lower half is beyond all
// shared memory. Pointers to the other windows have such lower halves here.
//
// An address is never reused after free, so a stale pointer faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/buffer_name.h"
#include "runtime/emulator/machine/program.h"

namespace tartan::TARTAN_ABI::emulator {

inline constexpr std::uint64_t window_bytes = std::uint64_t{1} << 32;
/// Lower halves of addresses from here on are in no shared memory of a cluster.
inline constexpr std::uint64_t end_of_shared = 0x20000000;
inline constexpr std::uint64_t shared_window = 1 * window_bytes;
inline constexpr std::uint64_t local_window = 2 * window_bytes + end_of_shared;
inline constexpr std::uint64_t param_window = 3 * window_bytes + end_of_shared;
inline constexpr std::uint64_t function_window = 4 * window_bytes + end_of_shared;
inline constexpr std::uint64_t constant_window = 5 * window_bytes + end_of_shared;
inline constexpr std::uint64_t global_window = 16 * window_bytes;

constexpr bool is_constant(std::uint64_t address) {
  return address >= constant_window && address < global_window;
}

/// Where a state space starts among generic addresses; global addresses are generic ones.
constexpr std::uint64_t window_base(Window window) {
  switch (window) {
    case Window::shared:
    case Window::cluster: return shared_window;
    case Window::local: return local_window;
    case Window::param: return param_window;
    case Window::constant: return constant_window;
    default: return 0;
  }
}

/// The state space of a generic address.
constexpr Window window_of(std::uint64_t address) {
  if (address >= global_window) return Window::global;
  switch (address >> 32) {
    case 1: return Window::shared;
    case 2: return Window::local;
    case 3: return Window::param;
    default: return Window::global;
  }
}

struct Allocation {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::byte* host = nullptr;
  std::byte* undefined = nullptr;  // as many bytes: the bits that nobody wrote; null: none

  bool holds(std::uint64_t first, std::uint64_t size) const {
    return first >= address && size <= bytes && first - address <= bytes - size;
  }
};

class GlobalMemory {
 public:
  GlobalMemory() = default;
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;
  ~GlobalMemory();

  /// Zeroed memory at a multiple of 256, or nothing if the host has no more; `constant`: where
  /// constants are.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, bool constant = false);
  void free(std::uint64_t address);
  /// From now on nobody has written the allocation that starts there: accesses keep account of it.
  /// False if the host has no memory for that.
  bool set_undefined(std::uint64_t address);
  /// The host has written there.
  void define(std::uint64_t address, std::uint64_t bytes);
  /// The allocation that has that host address, or null.
  const Allocation* find_host(const std::byte* at) const;
  /// The allocation that holds [address, address + bytes), or null.
  const Allocation* find(std::uint64_t address, std::uint64_t bytes) const;
  /// The last allocation that starts at or below `address`: what a bad address was probably meant
  /// to be in.
  const Allocation* nearest(std::uint64_t address) const;
  /// What findings call the allocation that starts there; null: it has no name.
  void set_name(std::uint64_t address, detail::BufferName name);
  const detail::BufferName* name(const Allocation& allocation) const;
  /// The pointer into an allocation that `address` is, or was before cvta.to.shared; or nothing.
  std::optional<std::uint64_t> pointer(std::uint64_t address) const;

 private:
  static void release(const Allocation& allocation);

  std::vector<Allocation> allocations_;  // by address
  std::map<std::uint64_t, detail::BufferName> names_;
  std::uint64_t next_ = global_window, next_constant_ = constant_window;
};

/// Host addresses of a warp's access, one a lane; inactive lanes are undefined.
struct Access {
  std::byte* at[32];
};

/// Resolves `bytes` bytes at each active lane's address; addresses count from the window's start.
/// On a bad address the warp is stopped with a finding, and the result is false. Every load and
/// store of an emulated kernel passes here.
bool resolve(Warp& warp, Window window, const std::uint64_t* addresses, std::uint32_t bytes,
             Access& access);

/// The addresses of a memory op: register (32 or 64 bits, op.wide) op.a plus op.value.
void addresses(Warp& warp, const Op& op, std::uint64_t* out);

/// addresses() and resolve() in op.window.
bool resolve(Warp& warp, const Op& op, std::uint32_t bytes, Access& access);

/// Where 32 active lanes read or write if they do so evenly: lane l at first + l * step, where step
/// is the size of the access or 0.
struct EvenAccess {
  std::byte* first = nullptr;  // null: not so, or there is something to report: ask resolve()
  std::uint32_t step = 0;
};
EvenAccess resolve_evenly(Warp& warp, const Op& op, std::uint32_t bytes);

/// One lane's generic address, for what a single lane does (printf); null with a finding if it is
/// bad.
std::byte* resolve_one(Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes);

}  // namespace tartan::TARTAN_ABI::emulator
