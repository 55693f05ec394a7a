// SPDX-License-Identifier: Apache-2.0
// tartan/cache.h - a folder of what Tartan has compiled, shared by all processes of a user, so that
// the second start of a program compiles nothing.
//
//   Result<Cache> cache = Cache::open();                  // ~/.cache/tartan
//   Result<Compiled> product = compile(gemm, device.arch(), *cache);
//
// An entry is found by a key of all that its contents depend on: the description, the target and
// the library's own build. So nothing is ever out of date, and a new Tartan makes new entries.
// Entries are files that appear whole or not at all; one that is damaged is deleted and made again.
// When all of them together exceed CacheOptions::max_bytes, those that were used longest ago are
// deleted.
//
// A cache that cannot be written (a full disk, a folder that is read-only) costs time, not results:
// what it could not do is in problems().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI {

/// Where a cache is, and how large it may become.
struct CacheOptions {
  /// Empty: TARTAN_CACHE_DIR, else XDG_CACHE_HOME/tartan, else HOME/.cache/tartan. It is made if it
  /// does not exist. Because code of it runs, it must belong to the user, and nobody else may
  /// write to it.
  std::string folder = {};
  std::uint64_t max_bytes = std::uint64_t{1} << 30;  // of all files together
  std::size_t max_memory = std::size_t{64} << 20;    // of entries that stay in this process
};

/// What an entry depends on: parts, each with its name.
///   CacheKey("table").add("rows", "128").add("type", "f16")
class CacheKey {
 public:
  /// `kind` is also the suffix of the entry's file.
  explicit CacheKey(std::string_view kind);
  CacheKey& add(std::string_view name, std::string_view value);
  const std::string& kind() const { return kind_; }
  /// 128 bits of a hash of all parts, as 32 hexadecimal digits.
  std::string digest() const;

 private:
  std::string kind_;
  std::string parts_;
};

/// A cache's contents, and what this process has had from it.
struct CacheStats {
  std::uint64_t entries = 0, bytes = 0;                     // in the folder, now
  std::uint64_t hits = 0, misses = 0;                       // of find(), in this process
  std::uint64_t damaged = 0, evicted = 0, not_written = 0;  // in this process
};

/// A handle of a cache: copies share it, on any threads. Processes share the folder.
class Cache {
 public:
  /// Fails if no folder is named and there is no home, or if it cannot be made or is not the
  /// user's alone. A folder that is read-only is used for reading.
  static Result<Cache> open(const CacheOptions& options = {});

  const std::string& folder() const;
  /// The entry's contents; none if it is not there or was damaged.
  std::optional<std::string> find(const CacheKey& key) const;
  /// Adds or replaces the entry. A failure is also in problems().
  Status store(const CacheKey& key, std::string_view contents) const;
  /// Deletes the entry, in the folder and in this process.
  void remove(const CacheKey& key) const;
  /// Deletes all entries; other files of the folder stay.
  Status clear() const;
  CacheStats stats() const;
  /// What could not be written or read so far, each as a warning; the first 20 of them.
  Diags problems() const;

 private:
  class State;
  explicit Cache(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace tartan::TARTAN_ABI
