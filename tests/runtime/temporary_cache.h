// SPDX-License-Identifier: Apache-2.0
// tests/runtime/temporary_cache.h - a cache for one test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tartan/cache.h"

namespace tartan::test {

// A folder of its own for each test, deleted behind it.
class TemporaryCache {
 public:
  TemporaryCache() {
    std::string name = (std::filesystem::temp_directory_path() / "tartan-cache-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~TemporaryCache() { std::filesystem::remove_all(root_); }
  TemporaryCache(const TemporaryCache&) = delete;
  TemporaryCache& operator=(const TemporaryCache&) = delete;

  std::string path() const { return root_ + "/cache"; }
  /// As a new process opens it.
  Cache open() const { return *Cache::open({.folder = path()}); }

 private:
  std::string root_;
};

}  // namespace tartan::test
