// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>

#include "compiler/support/counted.h"
#include "compiler/support/host_memory.h"
#include "runtime/emulator/machine/bad_address.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/engine.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint64_t granule = 256;
constexpr std::uint64_t gap =
    4096;  // between allocations: a small overrun is no neighbour's memory
static_assert(end_of_shared > place_of_rank(detail::most_blocks));

void misaligned(Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes) {
  warp.fail("misaligned-access"_rule,
            fmt::format("misaligned access of {} bytes at 0x{:x}, which is not a multiple of {}",
                        bytes, address, bytes),
            lane, address);
}

bool aligned(Warp& warp, const std::uint64_t* addresses, std::uint32_t bytes) {
  std::uint64_t low = 0;
  each_lane(warp.mask, [&](int i) { low |= addresses[i]; });
  if (!(low & (bytes - 1))) [[likely]]
    return true;
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (addresses[lane] & (bytes - 1)) {
      misaligned(warp, lane, addresses[lane], bytes);
      break;
    }
  }
  return false;
}

// A window that is one piece of `size` bytes at `host`, plus `step` for each lane. `given`: the
// addresses as they are reported.
bool resolve_flat(Warp& warp, Window window, const std::uint64_t* addresses,
                  const std::uint64_t* given, std::uint32_t bytes, std::byte* host,
                  std::uint64_t size, std::uint64_t step, Access& access) {
  bool bad = bytes > size;
  const std::uint64_t last = bad ? 0 : size - bytes;
  each_lane(warp.mask, [&](int i) { bad |= addresses[i] > last; });
  if (bad) [[unlikely]] {
    for (std::uint32_t m = warp.mask; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      if (bytes > size || addresses[lane] > last) {
        report_bad_address(warp, window, lane, given[lane], bytes);
        break;
      }
    }
    return false;
  }
  each_lane(warp.mask, [&](int i) {
    access.at[i] = host + addresses[i] + step * static_cast<std::uint64_t>(i);
  });
  return true;
}

const Allocation* find(Warp& warp, std::uint64_t address, std::uint64_t bytes) {
  const Allocation*& recent = warp.recent[warp.pc % std::size(warp.recent)];
  if (!recent || !recent->holds(address, bytes)) recent = warp.block->memory().find(address, bytes);
  return recent;
}

bool resolve_global(Warp& warp, Window window, const std::uint64_t* addresses, std::uint32_t bytes,
                    Access& access) {
  std::uint64_t low = ~std::uint64_t{0}, high = 0;
  each_lane(warp.mask, [&](int i) {
    low = std::min(low, addresses[i]);
    high = std::max(high, addresses[i]);
  });
  const std::uint64_t span = high - low + bytes;
  if (span >= bytes)  // no wrap
    if (const Allocation* allocation = find(warp, low, span)) [[likely]] {
      each_lane(warp.mask, [&](int i) {
        access.at[i] = allocation->host + (addresses[i] - allocation->address);
      });
      return true;
    }
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const Allocation* allocation = find(warp, addresses[lane], bytes);
    if (!allocation) {
      report_bad_address(warp, window, lane,
                         addresses[lane] - (window == Window::constant ? constant_window : 0),
                         bytes);
      return false;
    }
    access.at[lane] = allocation->host + (addresses[lane] - allocation->address);
  }
  return true;
}

// Constants: their addresses count from the window's start.
bool resolve_constant(Warp& warp, const std::uint64_t* addresses, std::uint32_t bytes,
                      Access& access) {
  std::uint64_t generic[32] = {};
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    generic[lane] = addresses[lane] + constant_window;
    if (addresses[lane] < global_window - constant_window) continue;
    report_bad_address(warp, Window::constant, lane, addresses[lane], bytes);
    return false;
  }
  return resolve_global(warp, Window::constant, generic, bytes, access);
}

// Of a 64-bit register with an address of shared memory the lower half counts.
constexpr std::uint64_t shared_address_mask = 0xFFFFFFFF;

// Whether one of the addresses is a pointer to global memory, whose lower half is no place in
// shared memory: on a GPU it is beyond that.
bool report_pointer(Warp& warp, Window window, const std::uint64_t* addresses,
                    std::uint32_t bytes) {
  std::uint64_t any = 0;
  each_lane(warp.mask, [&](int i) { any |= addresses[i]; });
  for (std::uint32_t m = any < function_window ? 0 : warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (addresses[lane] < function_window || !warp.block->memory().pointer(addresses[lane]))
      continue;
    report_bad_address(warp, window, lane, addresses[lane], bytes);
    return true;
  }
  return false;
}

// The block's own shared memory.
bool resolve_shared(Warp& warp, const std::uint64_t* addresses, std::uint32_t bytes,
                    Access& access) {
  if (report_pointer(warp, Window::shared, addresses, bytes)) return false;
  std::uint64_t inside[32];
  const std::uint64_t own = warp.block->own_place();
  for (int i = 0; i < 32; ++i) {
    inside[i] = addresses[i] & shared_address_mask;
    if ((inside[i] & ~shared_offset_mask) == own) inside[i] -= own;
  }
  return resolve_flat(warp, Window::shared, inside, addresses, bytes, warp.block->shared(),
                      warp.block->shared_bytes(), 0, access);
}

// Shared memory of any block of the cluster.
bool resolve_cluster(Warp& warp, const std::uint64_t* addresses, std::uint32_t bytes,
                     Access& access) {
  if (report_pointer(warp, Window::cluster, addresses, bytes)) return false;
  Cluster& cluster = warp.block->cluster();
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint64_t offset = addresses[lane] & shared_offset_mask;
    const std::uint32_t rank = rank_at(addresses[lane] & shared_address_mask, warp.block->rank());
    Block* block = rank < cluster.size() ? &cluster.block(rank) : nullptr;
    if (!block || offset + bytes > block->shared_bytes() || block->done()) {
      report_bad_address(warp, Window::cluster, lane, addresses[lane], bytes);
      return false;
    }
    access.at[lane] = block->shared() + offset;
  }
  return true;
}

bool resolve_generic(Warp& warp, const std::uint64_t* addresses, std::uint32_t bytes,
                     Access& access) {
  std::uint64_t low = ~std::uint64_t{0};
  each_lane(warp.mask, [&](int i) { low = std::min(low, addresses[i]); });
  if (low >= global_window) return resolve(warp, Window::global, addresses, bytes, access);
  const std::uint32_t whole = warp.mask;
  bool good = true;
  for (Window window : {Window::shared, Window::local, Window::param, Window::global}) {
    warp.mask = lanes_where(whole, [&](int i) { return window_of(addresses[i]) == window; });
    if (!warp.mask) continue;
    std::uint64_t inside[32] = {};
    each_lane(warp.mask, [&](int i) { inside[i] = addresses[i] - window_base(window); });
    good = good && resolve(warp, window == Window::shared ? Window::cluster : window, inside, bytes,
                           access);
  }
  warp.mask = whole;
  return good;
}

// A kernel's parameters are read only.
bool may_write(Warp& warp, Window window, const std::uint64_t* addresses, std::uint32_t bytes) {
  if (window != Window::generic && window != Window::param) return true;
  const std::uint32_t params = lanes_where(warp.mask, [&](int i) {
    return window == Window::param || window_of(addresses[i]) == Window::param;
  });
  if (!params) return true;
  const int lane = std::countr_zero(params);
  warp.fail("memory-fault"_rule,
            fmt::format("store of {} bytes at 0x{:x} to a kernel parameter, which is read-only",
                        bytes, addresses[lane]),
            lane, addresses[lane]);
  return false;
}

// A stretch of host memory that device addresses from `base` on lead to, `step` bytes further for
// each lane.
struct Stretch {
  std::byte* host = nullptr;
  std::uint64_t base = 0, bytes = 0, step = 0;
};

// The stretch that an op's address is expected in; no bytes where that is not known yet.
Stretch expected(Warp& warp, const Op& op, std::uint64_t address) {
  Window window = op.window;
  std::uint64_t base = 0;
  if (window == Window::generic) {
    window = window_of(address);
    base = window_base(window);
  }
  switch (window) {
    case Window::shared:
    case Window::cluster: {
      const std::uint64_t own = warp.block->own_place();
      if (((address - base) & ~shared_offset_mask) == own) base += own;
      return {warp.block->shared(), base, warp.block->shared_bytes()};
    }
    case Window::param:
      if (op.writes) return {};
      return {warp.block->params(), base, warp.program->param_bytes};
    case Window::constant:
      if (const Allocation* recent = warp.recent[warp.pc % std::size(warp.recent)];
          recent && is_constant(recent->address))
        return {recent->host, recent->address - constant_window, recent->bytes};
      return {};
    case Window::local: return {warp.local, base, warp.program->local_bytes, warp.local_step};
    case Window::global:
      if (const Allocation* recent = warp.recent[warp.pc % std::size(warp.recent)])
        return {recent->host, recent->address, recent->bytes};
      return {};
    default: return {};
  }
}

// All of `mask` at once; false where one of them is out of the stretch or misaligned, or where that
// takes more bits than an address has. Places and sizes are below half of what an address can say,
// so that the top bit tells what is negative. Inactive lanes go where the first active one does.
template <typename Address>
inline bool resolve_in(const Stretch& stretch, std::uint32_t mask, const Address* base,
                       Address offset, std::uint32_t bytes, Access& access) {
  constexpr int top = 8 * sizeof(Address) - 1;
  if (stretch.bytes < bytes || (stretch.base | stretch.bytes) >> top) return false;
  Address filled[32];
  if (mask != all_lanes) {
    const Address first = base[std::countr_zero(mask)];
    for (std::uint32_t i = 0; i < 32; ++i) filled[i] = mask >> i & 1 ? base[i] : first;
    base = filled;
  }
  const auto last = static_cast<Address>(stretch.bytes - bytes),
             start = static_cast<Address>(stretch.base), distance = offset - start;
  // Numbers, until they are known to be places.
  const auto host = reinterpret_cast<std::uintptr_t>(stretch.host);
  Address any = 0, outside = 0;
  for (int i = 0; i < 32; ++i) {
    const Address at = base[i] + distance;
    any |= at;
    outside |= at | (last - at);
    access.at[i] = reinterpret_cast<std::byte*>(host + at);
  }
  if (stretch.step)
    for (std::uint32_t i = 0; i < 32; ++i)
      access.at[i] = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(access.at[i]) +
                                                  i * stretch.step);
  return !((any | start) & (bytes - 1)) && !(outside >> top);
}

// All active lanes where the first of them is expected to be.
template <typename Address>
inline bool resolve_expected(Warp& warp, const Op& op, std::uint32_t bytes, Access& access) {
  const auto* base = lanes<Address>(warp, op.a);
  const auto offset = static_cast<Address>(op.value);
  const Address first = base[std::countr_zero(warp.mask)] + offset;
  return resolve_in(expected(warp, op, first), warp.mask, base, offset, bytes, access);
}

// Whether lane l's address is lane 0's plus l * step.
template <typename Address>
inline bool evenly_spaced(const Address* base, Address step) {
  Address expected = base[0], uneven = 0;
  for (int i = 0; i < 32; ++i, expected += step) uneven |= base[i] ^ expected;
  return uneven == 0;
}

// These two, for the vectors that the machine has.
template <typename Address>
struct AddressLoops {
  bool (*resolve_expected)(Warp&, const Op&, std::uint32_t, Access&);
  bool (*evenly_spaced)(const Address*, Address);
};
#if defined(__x86_64__)
template <typename Address>
__attribute__((target("avx2"), flatten)) bool resolve_expected_avx2(Warp& warp, const Op& op,
                                                                    std::uint32_t bytes,
                                                                    Access& access) {
  return resolve_expected<Address>(warp, op, bytes, access);
}
template <typename Address>
__attribute__((target("avx2"), flatten)) bool evenly_spaced_avx2(const Address* base,
                                                                 Address step) {
  return evenly_spaced(base, step);
}
template <typename Address>
const AddressLoops<Address> loops = __builtin_cpu_supports("avx2")
                                        ? AddressLoops<Address>{resolve_expected_avx2<Address>,
                                                                evenly_spaced_avx2<Address>}
                                        : AddressLoops<Address>{resolve_expected<Address>,
                                                                evenly_spaced<Address>};
#else
template <typename Address>
const AddressLoops<Address> loops{resolve_expected<Address>, evenly_spaced<Address>};
#endif

template <typename Address>
EvenAccess resolve_evenly(Warp& warp, const Op& op, std::uint32_t bytes) {
  const auto* base = lanes<Address>(warp, op.a);
  const Address first = base[0], distance = base[31] - first;
  if (distance != 0 && distance != 31 * bytes) return {};
  const Address step = distance ? bytes : 0;
  if (!loops<Address>.evenly_spaced(base, step)) return {};
  const std::uint64_t address = static_cast<Address>(first + static_cast<Address>(op.value));
  const Stretch stretch = expected(warp, op, address);
  const std::uint64_t at = address - stretch.base, size = distance + bytes;
  if (stretch.step || at > stretch.bytes || size > stretch.bytes - at || (address & (bytes - 1)))
    return {};
  return {stretch.host + at, static_cast<std::uint32_t>(step)};
}

}  // namespace

EvenAccess resolve_evenly(Warp& warp, const Op& op, std::uint32_t bytes) {
  if (warp.mask != all_lanes) return {};
  return op.wide ? resolve_evenly<std::uint64_t>(warp, op, bytes)
                 : resolve_evenly<std::uint32_t>(warp, op, bytes);
}

GlobalMemory::~GlobalMemory() {
  for (const Allocation& allocation : allocations_) release(allocation);
}

void GlobalMemory::release(const Allocation& allocation) {
  ::operator delete (allocation.host, std::align_val_t{granule});
  std::free(allocation.undefined);
}

bool GlobalMemory::set_undefined(std::uint64_t address) {
  const auto at = std::ranges::lower_bound(allocations_, address, {}, &Allocation::address);
  if (at == allocations_.end() || at->address != address) return false;
  if (!at->undefined && detail::fits_in_memory(at->bytes))
    at->undefined = static_cast<std::byte*>(std::malloc(at->bytes));
  if (at->undefined) std::memset(at->undefined, 0xFF, at->bytes);
  return at->undefined;
}

void GlobalMemory::define(std::uint64_t address, std::uint64_t bytes) {
  const Allocation* const found = find(address, bytes);
  if (!found || !found->undefined) return;
  std::memset(found->undefined + (address - found->address), 0, bytes);
}

const Allocation* GlobalMemory::find_host(const std::byte* at) const {
  const auto holds = [&](const Allocation& each) {
    return !std::less<>()(at, each.host) && std::less<>()(at, each.host + each.bytes);
  };
  const auto found = std::ranges::find_if(allocations_, holds);
  return found == allocations_.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> GlobalMemory::allocate(std::uint64_t bytes, bool constant) {
  if (bytes == 0) bytes = 1;
  if (bytes > std::uint64_t{1} << 46) return std::nullopt;
  const std::uint64_t room = (bytes + granule - 1) / granule * granule;
  if (constant && room + gap > global_window - next_constant_) return std::nullopt;
  if (!detail::fits_in_memory(room)) return std::nullopt;
  auto* host =
      static_cast<std::byte*>(::operator new (room, std::align_val_t{granule}, std::nothrow));
  if (!host) return std::nullopt;
  std::memset(host, 0, room);
  std::uint64_t& next = constant ? next_constant_ : next_;
  const std::uint64_t address = next;
  next += room + gap;
  const auto behind = std::ranges::upper_bound(allocations_, address, {}, &Allocation::address);
  allocations_.insert(behind, {address, bytes, host});
  return address;
}

void GlobalMemory::free(std::uint64_t address) {
  const auto at = std::ranges::lower_bound(allocations_, address, {}, &Allocation::address);
  if (at == allocations_.end() || at->address != address) return;
  release(*at);
  allocations_.erase(at);
  names_.erase(address);
}

void GlobalMemory::set_name(std::uint64_t address, detail::BufferName name) {
  names_.insert_or_assign(address, std::move(name));
}

const detail::BufferName* GlobalMemory::name(const Allocation& allocation) const {
  const auto at = names_.find(allocation.address);
  return at == names_.end() ? nullptr : &at->second;
}

const Allocation* GlobalMemory::nearest(std::uint64_t address) const {
  auto at = std::ranges::upper_bound(allocations_, address, {}, &Allocation::address);
  return at == allocations_.begin() ? nullptr : &*--at;
}

std::optional<std::uint64_t> GlobalMemory::pointer(std::uint64_t address) const {
  for (const std::uint64_t each : {address, address + shared_window})
    if (find(each, 1)) return each;
  return std::nullopt;
}

const Allocation* GlobalMemory::find(std::uint64_t address, std::uint64_t bytes) const {
  const Allocation* near = nearest(address);
  return near && near->holds(address, bytes) ? near : nullptr;
}

bool resolve(Warp& warp, Window window, const std::uint64_t* addresses, std::uint32_t bytes,
             Access& access) {
  if (window == Window::generic) return resolve_generic(warp, addresses, bytes, access);
  if (!aligned(warp, addresses, bytes)) return false;
  switch (window) {
    case Window::shared: return resolve_shared(warp, addresses, bytes, access);
    case Window::cluster: return resolve_cluster(warp, addresses, bytes, access);
    case Window::local:
      return resolve_flat(warp, window, addresses, addresses, bytes, warp.local,
                          warp.program->local_bytes, warp.local_step, access);
    case Window::param:
      return resolve_flat(warp, window, addresses, addresses, bytes, warp.block->params(),
                          warp.program->param_bytes, 0, access);
    case Window::constant: return resolve_constant(warp, addresses, bytes, access);
    default: return resolve_global(warp, window, addresses, bytes, access);
  }
}

void addresses(Warp& warp, const Op& op, std::uint64_t* out) {
  if (op.wide) {
    const auto* base = lanes<std::uint64_t>(warp, op.a);
    for (int i = 0; i < 32; ++i) out[i] = base[i] + op.value;
  } else {
    const auto* base = lanes<std::uint32_t>(warp, op.a);
    const auto offset = static_cast<std::uint32_t>(op.value);
    for (int i = 0; i < 32; ++i) out[i] = base[i] + offset;  // 32-bit addresses wrap
  }
}

bool resolve(Warp& warp, const Op& op, std::uint32_t bytes, Access& access) {
  if (warp.mask && (op.wide ? loops<std::uint64_t>.resolve_expected(warp, op, bytes, access)
                            : loops<std::uint32_t>.resolve_expected(warp, op, bytes, access)))
      [[likely]]
    return true;
  std::uint64_t at[32];
  addresses(warp, op, at);
  if (op.writes && !may_write(warp, op.window, at, bytes)) return false;
  return resolve(warp, op.window, at, bytes, access);
}

std::byte* resolve_one(Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes) {
  const std::uint32_t whole = warp.mask;
  std::uint64_t at[32] = {};
  at[lane] = address;
  Access access;
  warp.mask = std::uint32_t{1} << lane;
  // Text has no alignment: a byte at a time would be right, and the first and the last say whether
  // all of it is there.
  bool good = resolve(warp, Window::generic, at, 1, access);
  std::byte* found = access.at[lane];
  at[lane] = address + bytes - 1;
  good = good && (bytes <= 1 || resolve(warp, Window::generic, at, 1, access));
  warp.mask = whole;
  return good ? found : nullptr;
}

}  // namespace tartan::TARTAN_ABI::emulator
