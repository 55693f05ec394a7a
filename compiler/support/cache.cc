// SPDX-License-Identifier: Apache-2.0
#include "tartan/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "compiler/support/cache_folder.h"
#include "compiler/support/step_timer.h"
#include "tartan/support/source.h"

namespace tartan::TARTAN_ABI {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".tartan";
constexpr std::size_t digest_digits = 32;

// ---- Files.

// What an entry's file starts with; its contents follow.
struct Header {
  std::array<char, 8> magic = {'t', 'a', 'r', 't', 'a', 'n', '0', '1'};
  std::array<char, digest_digits> digest = {};
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;
};
static_assert(sizeof(Header) == 56);

Header header_of(const std::string& digest, std::string_view contents) {
  Header out;
  std::copy_n(digest.begin(), out.digest.size(), out.digest.begin());
  out.bytes = contents.size();
  out.hash = XXH3_64bits(contents.data(), contents.size());
  return out;
}

// Whether `bytes` bytes of the file were there, and are at `out` now.
bool read_all(int file, void* out, std::size_t bytes) {
  std::size_t size = 0;
  while (size < bytes) {
    const ::ssize_t got = ::read(file, static_cast<char*>(out) + size, bytes - size);
    if (got > 0) size += static_cast<std::size_t>(got);
    else if (got == 0 || errno != EINTR) return false;
  }
  return true;
}

// What follows the header of an open entry, if it is what the header says.
std::optional<std::string> contents_of(int file, const std::string& digest) {
  struct ::stat status = {};
  constexpr ::off_t most = ::off_t{1} << 30;  // bytes; no entry of ours has more
  Header found;
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > most ||
      status.st_size < static_cast<::off_t>(sizeof found) || !read_all(file, &found, sizeof found))
    return std::nullopt;
  std::string out(static_cast<std::size_t>(status.st_size) - sizeof found, 0);
  if (!read_all(file, out.data(), out.size())) return std::nullopt;
  const Header expected = header_of(digest, out);
  if (std::memcmp(&found, &expected, sizeof found) != 0) return std::nullopt;
  return out;
}

// Sets the contents of an entry that is there. A damaged one is deleted, and a failure.
Status read_entry(const std::string& name, const std::string& digest,
                  std::optional<std::string>& contents) {
  // A FIFO would wait for somebody who writes.
  const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0 && ::access(name.c_str(), F_OK) != 0) return Done{};
  if (file >= 0) {
    contents = contents_of(file, digest);
    if (contents) ::futimens(file, nullptr);  // used now; fails where it is read-only
    ::close(file);
  }
  if (contents) return Done{};
  ::unlink(name.c_str());
  return Diags::one("file"_rule, {name, 0, 0},
                    "a damaged entry of the cache was deleted; it is made again");
}

struct Entry {
  fs::path path;
  std::uint64_t bytes = 0;
  std::int64_t used = 0;  // ns since the epoch
};

// A temporary file of write_file() that nobody renamed: its process was killed.
bool abandoned(const fs::path& path, const struct ::stat& found) {
  constexpr std::time_t hour = 3600;
  return path.filename().native().starts_with(".tartan-") &&
         found.st_mtim.tv_sec < std::time(nullptr) - hour;
}

// The kind in an entry's name, DIGEST.KIND.tartan; empty: the file is no entry.
std::string kind_of(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::size_t digits = name.find_first_not_of("0123456789abcdef");
  if (digits != digest_digits || name[digits] != '.' || !name.ends_with(suffix)) return {};
  return name.substr(digits + 1, std::max(name.size() - suffix.size(), digits + 1) - digits - 1);
}

// Other files in the folder are not ours to count or delete. Files that vanish meanwhile were
// deleted by another process.
std::vector<Entry> entries_of(const std::string& folder) {
  std::vector<Entry> out;
  std::error_code none;
  for (fs::directory_iterator at(folder, none), end; !none && at != end; at.increment(none)) {
    struct ::stat found = {};
    if (::lstat(at->path().c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
    if (abandoned(at->path(), found)) ::unlink(at->path().c_str());
    if (kind_of(at->path()).empty()) continue;
    out.push_back({at->path(), static_cast<std::uint64_t>(found.st_size),
                   found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec});
  }
  return out;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Status refuse(std::string message) { return {"file"_rule, std::move(message)}; }

// Makes the folder, and checks that nobody else may plant an entry.
Status prepare(const std::string& folder) {
  std::error_code error;
  const fs::path parent = fs::path(folder).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return refuse(fmt::format("cannot make the cache folder {}: {}; TARTAN_CACHE_DIR names another",
                              folder, std::strerror(errno)));
  struct ::stat found = {};
  if (::stat(folder.c_str(), &found) != 0)
    return refuse(fmt::format("cannot use the cache folder {}: {}", folder, std::strerror(errno)));
  if (!S_ISDIR(found.st_mode))
    return refuse(fmt::format("cache {}: expected a folder, found a file", folder));
  if (found.st_uid != ::geteuid())
    return refuse(fmt::format("cache folder {}: it belongs to user {}, expected {}, who runs this",
                              folder, found.st_uid, ::geteuid()));
  if (found.st_mode & (S_IWGRP | S_IWOTH))
    return refuse(
        fmt::format("cache folder {}: others may write to it, and code of it "
                    "would run; run `chmod go-w {}`",
                    folder, folder));
  return Done{};
}

}  // namespace

// ---- Keys.

CacheKey::CacheKey(std::string_view kind) : kind_(kind) { add("kind", kind); }

static std::string digest_of(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

// Lengths keep parts apart: no value can pass for two parts. A long one stands there by its digest,
// not copied.
CacheKey& CacheKey::add(std::string_view name, std::string_view value) {
  constexpr std::size_t most = 1024;
  parts_ += fmt::format("{}:{}:", name.size(), value.size());
  parts_ += name;
  if (value.size() > most) parts_ += digest_of(value);
  else parts_ += value;
  return *this;
}

std::string CacheKey::digest() const { return digest_of(parts_); }

// ---- The cache.

class Cache::State {
 public:
  State(std::string folder, const CacheOptions& options)
      : folder_(std::move(folder)), options_(options) {}

  const std::string& folder() const { return folder_; }

  std::optional<std::string> find(const CacheKey& key) {
    const std::string digest = key.digest();
    if (auto held = find_in_memory(digest)) return held;
    std::optional<std::string> contents;
    const Status read = read_entry(path(key, digest), digest, contents);
    const std::lock_guard lock(mutex_);
    ++(contents ? stats_.hits : stats_.misses);
    if (contents) keep(digest, *contents);
    if (!read) {
      ++stats_.damaged;
      report(read.diags());
    }
    return contents;
  }

  Status store(const CacheKey& key, std::string_view contents) {
    const std::string digest = key.digest();
    const Header header = header_of(digest, contents);
    std::string file(reinterpret_cast<const char*>(&header), sizeof header);
    file += contents;
    const Status written = write_file(path(key, digest), file);
    const std::lock_guard lock(mutex_);
    keep(digest, contents);
    if (!written) {
      ++stats_.not_written;
      report(written.diags());
      return written;
    }
    make_room(file.size());
    return Done{};
  }

  void remove(const CacheKey& key) {
    const std::string digest = key.digest();
    const std::lock_guard lock(mutex_);
    forget(digest);
    ::unlink(path(key, digest).c_str());
  }

  Status clear() {
    const std::lock_guard lock(mutex_);
    memory_.clear(), order_.clear();
    held_ = 0, on_disk_.reset();
    Diags diags;
    for (const Entry& each : entries_of(folder_))
      if (::unlink(each.path.c_str()) != 0 && errno != ENOENT)
        diags.report("file"_rule, {},
                     fmt::format("cannot delete {}: {}", each.path.string(), std::strerror(errno)));
    if (!diags.ok()) return diags;
    return Done{};
  }

  CacheStats stats() {
    const std::lock_guard lock(mutex_);
    CacheStats out = stats_;
    for (const Entry& each : entries_of(folder_)) ++out.entries, out.bytes += each.bytes;
    return out;
  }

  Diags problems() {
    const std::lock_guard lock(mutex_);
    return problems_;
  }

 private:
  struct Held {
    std::string digest, contents;
  };

  std::string path(const CacheKey& key, const std::string& digest) const {
    return fmt::format("{}/{}.{}{}", folder_, digest, key.kind(), suffix);
  }

  std::optional<std::string> find_in_memory(const std::string& digest) {
    const std::lock_guard lock(mutex_);
    const auto held = memory_.find(digest);
    if (held == memory_.end()) return std::nullopt;
    order_.splice(order_.begin(), order_, held->second);
    ++stats_.hits;
    return held->second->contents;
  }

  // As warnings: the caller goes on without.
  void report(const Diags& diags) {
    constexpr std::size_t most = 20;
    for (Diag each : diags) {
      if (problems_.size() >= most) return;
      each.level = Level::Warning;
      problems_.add(std::move(each));
    }
  }

  void forget(const std::string& digest) {
    const auto held = memory_.find(digest);
    if (held == memory_.end()) return;
    held_ -= held->second->contents.size();
    order_.erase(held->second);
    memory_.erase(held);
  }

  void keep(const std::string& digest, std::string_view contents) {
    forget(digest);
    if (contents.size() > options_.max_memory) return;
    order_.push_front({digest, std::string(contents)});
    memory_[digest] = order_.begin();
    held_ += contents.size();
    while (held_ > options_.max_memory) forget(std::string(order_.back().digest));
  }

  // After `added` bytes more. The folder is read when this process may have filled it, and deleting
  // goes on to nine tenths, so that it is not read for each entry.
  void make_room(std::size_t added) {
    if (on_disk_ && (*on_disk_ += added) <= options_.max_bytes) return;
    std::vector<Entry> all = entries_of(folder_);
    std::uint64_t bytes = 0;
    for (const Entry& each : all) bytes += each.bytes;
    if (bytes > options_.max_bytes) {
      std::ranges::sort(all, {}, &Entry::used);
      for (const Entry& each : all) {
        if (bytes <= options_.max_bytes / 10 * 9) break;
        if (::unlink(each.path.c_str()) == 0) ++stats_.evicted;
        bytes -= each.bytes;
      }
    }
    on_disk_ = bytes;
  }

  const std::string folder_;
  const CacheOptions options_;
  std::mutex mutex_;
  std::list<Held> order_;  // used last first
  std::unordered_map<std::string, std::list<Held>::iterator> memory_;
  std::size_t held_ = 0;                  // bytes in memory_
  std::optional<std::uint64_t> on_disk_;  // bytes in the folder, as far as this process knows
  CacheStats stats_;
  Diags problems_;
};

// Paths of XDG_CACHE_HOME that are not absolute are to be ignored (XDG
// Base Directory Specification 0.8).
std::string detail::standard_cache_folder() {
  if (std::string folder = variable("TARTAN_CACHE_DIR"); !folder.empty()) return folder;
  if (const std::string caches = variable("XDG_CACHE_HOME"); caches.starts_with('/'))
    return caches + "/tartan";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/tartan";
}

std::vector<detail::CacheKind> detail::kinds_of(const std::string& folder) {
  std::map<std::string, CacheKind> kinds;
  for (const Entry& each : entries_of(folder)) {
    CacheKind& kind = kinds[kind_of(each.path)];
    ++kind.entries, kind.bytes += each.bytes;
  }
  std::vector<CacheKind> out;
  for (auto& [name, kind] : kinds) out.push_back({name, kind.entries, kind.bytes});
  return out;
}

Result<Cache> Cache::open(const CacheOptions& options) {
  std::string folder = options.folder.empty() ? detail::standard_cache_folder() : options.folder;
  if (folder.empty())
    return {"file"_rule, "no folder for the cache: HOME is not set; set TARTAN_CACHE_DIR"};
  if (const Status ready = prepare(folder); !ready) return ready.diags();
  return Cache(std::make_shared<State>(std::move(folder), options));
}

const std::string& Cache::folder() const { return state_->folder(); }
std::optional<std::string> Cache::find(const CacheKey& key) const {
  const detail::StepTimer timer(&StepTimes::cache);
  return state_->find(key);
}
Status Cache::store(const CacheKey& key, std::string_view contents) const {
  const detail::StepTimer timer(&StepTimes::cache);
  return state_->store(key, contents);
}
void Cache::remove(const CacheKey& key) const { state_->remove(key); }
Status Cache::clear() const { return state_->clear(); }
CacheStats Cache::stats() const { return state_->stats(); }
Diags Cache::problems() const { return state_->problems(); }

}  // namespace tartan::TARTAN_ABI
