// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/algebra/tags.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::emulator {

Tag* TagMemory::find(std::uintptr_t page) {
  Cached& cached = cache_[page % std::size(cache_)];
  if (cached.page == page) return cached.tags;
  const auto found = pages_.find(page);
  if (found == pages_.end()) return nullptr;
  cached = {page, found->second.get()};
  return cached.tags;
}

Tag* TagMemory::make(std::uintptr_t page) {
  if (Tag* const found = find(page)) return found;
  std::unique_ptr<Tag[]>& made = pages_[page];
  made = std::make_unique<Tag[]>(page_bytes);
  cache_[page % std::size(cache_)] = {page, made.get()};
  return made.get();
}

template <typename Body>
void TagMemory::each_page(const std::byte* at, std::size_t bytes, Body&& body) {
  auto address = reinterpret_cast<std::uintptr_t>(at);
  while (bytes) {
    const std::size_t first = address % page_bytes, some = std::min(bytes, page_bytes - first);
    body(address / page_bytes, first, some);
    address += some;
    bytes -= some;
  }
}

void TagMemory::load(const std::byte* at, Tag* to, std::size_t bytes) {
  each_page(at, bytes, [&](std::uintptr_t page, std::size_t first, std::size_t some) {
    if (const Tag* tags = find(page)) std::copy_n(tags + first, some, to);
    else std::fill_n(to, some, 0);
    to += some;
  });
}

void TagMemory::store(const std::byte* at, const Tag* from, std::size_t bytes) {
  each_page(at, bytes, [&](std::uintptr_t page, std::size_t first, std::size_t some) {
    Tag* tags = find(page);
    if (!tags && std::any_of(from, from + some, [](Tag tag) { return tag != 0; }))
      tags = make(page);
    if (tags) std::copy_n(from, some, tags + first);
    from += some;
  });
}

void TagMemory::clear(const std::byte* at, std::size_t bytes) {
  each_page(at, bytes, [&](std::uintptr_t page, std::size_t first, std::size_t some) {
    if (Tag* tags = find(page)) std::fill_n(tags + first, some, 0);
  });
}

void TagMemory::copy(const std::byte* to, const std::byte* from, std::size_t bytes) {
  between_.resize(bytes);
  load(from, between_.data(), bytes);
  store(to, between_.data(), bytes);
}

}  // namespace tartan::TARTAN_ABI::emulator
