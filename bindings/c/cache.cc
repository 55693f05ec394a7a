// SPDX-License-Identifier: Apache-2.0
#include "bindings/c/cache.h"

#include <mutex>

#include "bindings/c/handles.h"

namespace tartan::TARTAN_ABI::c {
namespace {

// Of all threads.
struct Used {
  std::mutex mutex;
  std::optional<Cache> cache;
};
Used& used() {
  static Used of_process;
  return of_process;
}

Status use(const char* folder) {
  std::optional<Cache> next;
  if (!folder || *folder) {
    auto opened = Cache::open({.folder = folder ? folder : ""});
    if (!opened) return opened.diags();
    next = *std::move(opened);
  }
  const std::lock_guard lock(used().mutex);
  used().cache = std::move(next);
  return Done{};
}

}  // namespace

std::optional<Cache> used_cache() {
  const std::lock_guard lock(used().mutex);
  return used().cache;
}

}  // namespace tartan::TARTAN_ABI::c

using namespace tartan;

tartan_error* tartan_use_cache(const char* folder) {
  return c::guarded("tartan_use_cache", {}, [&] { return c::use(folder); });
}

tartan_error* tartan_cache_problems(char** json) {
  if (json) *json = nullptr;
  return c::guarded("tartan_cache_problems", {{"json", json}}, [&]() -> Status {
    const auto cache = c::used_cache();
    *json = c::copy_of((cache ? cache->problems() : Diags()).json());
    return Done{};
  });
}
