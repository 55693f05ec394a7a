// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/host_memory.h"

#include <fstream>
#include <optional>
#include <string>

namespace tartan::TARTAN_ABI::detail {
namespace {

// The first number of a file; nothing if it does not begin with a number ("max").
std::optional<std::uint64_t> number_in(const char* path) {
  std::uint64_t number = 0;
  std::ifstream file(path);
  return file >> number ? std::optional(number) : std::nullopt;
}

// What the host can give without swapping.
std::optional<std::uint64_t> available() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

}  // namespace

bool fits_in_memory(std::uint64_t bytes) {
  constexpr std::uint64_t small = std::uint64_t{1} << 28, reserve = std::uint64_t{1} << 26;
  if (bytes < small) return true;
  if (const auto free = available(); free && bytes + reserve > *free) return false;
  const auto most = number_in("/sys/fs/cgroup/memory.max"),
             used = number_in("/sys/fs/cgroup/memory.current");
  return !most || !used || (*used < *most && bytes <= *most - *used);
}

}  // namespace tartan::TARTAN_ABI::detail
