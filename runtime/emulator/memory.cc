// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/emulator/block.h"
#include "runtime/emulator/lanes.h"

namespace tartan::emulator {
namespace {

constexpr std::uint64_t granule = 256;
constexpr std::uint64_t gap =
    4096;  // between allocations: a small overrun is no neighbour's memory

void bad_address(Warp& warp, Window window, int lane, std::uint64_t address, std::uint32_t bytes) {
  std::string place;
  switch (window) {
    case Window::shared:
      place = fmt::format("the block has {} bytes of shared memory", warp.block->shared_bytes());
      break;
    case Window::local:
      place = fmt::format("a lane has {} bytes of local memory", warp.program->local_bytes);
      break;
    case Window::param:
      place = fmt::format("the parameters take {} bytes", warp.program->param_bytes);
      break;
    default:
      if (const Allocation* near = warp.block->memory().nearest(address))
        place = address - near->address < near->bytes + (std::uint64_t{1} << 32)
                    ? fmt::format("the nearest buffer is 0x{:x} with {} bytes", near->address,
                                  near->bytes)
                    : "no buffer is near";
      else place = "it is in no buffer";
  }
  warp.fail("memory-fault"_rule,
            fmt::format("access of {} bytes at 0x{:x} is out of bounds: {}", bytes, address, place),
            lane, address);
}

void misaligned(Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes) {
  warp.fail("misaligned-access"_rule,
            fmt::format("access of {} bytes at 0x{:x}, which is no multiple of {}", bytes, address,
                        bytes),
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

// A window that is one piece of `size` bytes at `host`, plus `step` for each lane.
bool resolve_flat(Warp& warp, Window window, const std::uint64_t* addresses, std::uint32_t bytes,
                  std::byte* host, std::uint64_t size, std::uint64_t step, Access& access) {
  bool bad = bytes > size;
  const std::uint64_t last = bad ? 0 : size - bytes;
  each_lane(warp.mask, [&](int i) { bad |= addresses[i] > last; });
  if (bad) [[unlikely]] {
    for (std::uint32_t m = warp.mask; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      if (bytes > size || addresses[lane] > last) {
        bad_address(warp, window, lane, addresses[lane], bytes);
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

bool resolve_global(Warp& warp, const std::uint64_t* addresses, std::uint32_t bytes,
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
      bad_address(warp, Window::global, lane, addresses[lane], bytes);
      return false;
    }
    access.at[lane] = allocation->host + (addresses[lane] - allocation->address);
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
    good = good && resolve(warp, window, inside, bytes, access);
  }
  warp.mask = whole;
  return good;
}

}  // namespace

GlobalMemory::~GlobalMemory() {
  for (const Allocation& allocation : allocations_)
    ::operator delete (allocation.host, std::align_val_t{granule});
}

std::optional<std::uint64_t> GlobalMemory::allocate(std::uint64_t bytes) {
  if (bytes == 0) bytes = 1;
  if (bytes > std::uint64_t{1} << 46) return std::nullopt;
  const std::uint64_t room = (bytes + granule - 1) / granule * granule;
  auto* host =
      static_cast<std::byte*>(::operator new (room, std::align_val_t{granule}, std::nothrow));
  if (!host) return std::nullopt;
  std::memset(host, 0, room);
  const std::uint64_t address = next_;
  allocations_.push_back({address, bytes, host});
  next_ += room + gap;
  return address;
}

void GlobalMemory::free(std::uint64_t address) {
  const auto at = std::ranges::lower_bound(allocations_, address, {}, &Allocation::address);
  if (at == allocations_.end() || at->address != address) return;
  ::operator delete (at->host, std::align_val_t{granule});
  allocations_.erase(at);
}

const Allocation* GlobalMemory::nearest(std::uint64_t address) const {
  auto at = std::ranges::upper_bound(allocations_, address, {}, &Allocation::address);
  return at == allocations_.begin() ? nullptr : &*--at;
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
    case Window::shared:
      return resolve_flat(warp, window, addresses, bytes, warp.block->shared(),
                          warp.block->shared_bytes(), 0, access);
    case Window::local:
      return resolve_flat(warp, window, addresses, bytes, warp.local, warp.program->local_bytes,
                          warp.local_step, access);
    case Window::param:
      return resolve_flat(warp, window, addresses, bytes, warp.block->params(),
                          warp.program->param_bytes, 0, access);
    default: return resolve_global(warp, addresses, bytes, access);
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
  std::uint64_t at[32];
  addresses(warp, op, at);
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

}  // namespace tartan::emulator
