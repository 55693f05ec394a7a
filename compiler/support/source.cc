// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>

namespace tartan::TARTAN_ABI {

Source::Source(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)) {
  line_starts_.push_back(0);
  for (std::size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') line_starts_.push_back(static_cast<std::uint32_t>(i + 1));
}

int Source::line(std::uint32_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<int>(after - line_starts_.begin());
}

Place Source::place(std::uint32_t offset) const {
  const int number = line(offset);
  return {name_, number,
          static_cast<int>(offset - line_starts_[static_cast<std::size_t>(number - 1)]) + 1};
}

std::string_view Source::line_text(int number) const {
  if (number < 1 || number > static_cast<int>(line_starts_.size())) return {};
  const auto at = static_cast<std::size_t>(number);
  const std::size_t from = line_starts_[at - 1];
  const std::size_t end = at < line_starts_.size() ? line_starts_[at] - 1 : text_.size();
  std::string_view line = text().substr(from, end - from);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void Source::quote(Diag& diag, std::size_t width) const {
  constexpr std::size_t longest = 200, before = 60;
  constexpr std::string_view cut = "...";
  const std::string_view line = line_text(diag.place.line);
  diag.width = static_cast<int>(std::min(width, longest));
  diag.source = line.substr(0, longest);
  if (line.size() <= longest) return;
  const auto column = static_cast<std::size_t>(diag.place.column - 1);
  const std::size_t from = column > before ? column - before : 0;
  diag.source = from > 0 ? cut : "";
  diag.source += line.substr(from, longest);
  if (from + longest < line.size()) diag.source += cut;
  diag.caret = static_cast<int>(column - from + (from > 0 ? cut.size() : 0)) + 1;
}

namespace {

constexpr std::size_t most = std::size_t{1} << 30;  // bytes of a text; offsets have 32 bits

Diags unreadable(const std::string& path, std::string_view why) {
  return Diags::one("file"_rule, {path, 0, 0}, fmt::format("cannot read the file: {}", why));
}

Result<Source> read_all(const std::string& name, std::FILE* file) {
  std::string text;
  struct ::stat status = {};
  if (::fstat(::fileno(file), &status) == 0 && S_ISREG(status.st_mode) &&
      static_cast<std::uintmax_t>(status.st_size) > most)
    return unreadable(name, "the file is larger than 1 GiB");
  constexpr std::size_t piece = std::size_t{1} << 20;
  for (std::size_t taken = piece; taken == piece;) {
    const std::size_t size = text.size();
    if (size > most) return unreadable(name, "the file is larger than 1 GiB");
    text.resize(size + piece);
    taken = std::fread(text.data() + size, 1, piece, file);
    text.resize(size + taken);
  }
  if (std::ferror(file)) return unreadable(name, std::strerror(errno));
  return Source(name, std::move(text));
}

Result<Source> read_named(const std::string& path, bool regular) {
  if (path == "-" && !regular) return read_all("<stdin>", stdin);
  // Folders open like files, and devices have no end.
  std::error_code none;
  const auto status = std::filesystem::status(path, none);
  if (std::filesystem::is_directory(status)) return unreadable(path, std::strerror(EISDIR));
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      (regular || !std::filesystem::is_fifo(status)))
    return unreadable(path, "not a regular file");
  errno = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) return unreadable(path, std::strerror(errno));
  return read_all(path, file.get());
}

}  // namespace

Result<Source> read_source(const std::string& path) {
  try {
    return read_named(path, false);
  } catch (const std::bad_alloc&) {
    return unreadable(path, "the file does not fit in memory");
  }
}

Result<Source> detail::read_regular_file(const std::string& path) {
  try {
    return read_named(path, true);
  } catch (const std::bad_alloc&) {
    return unreadable(path, "the file does not fit in memory");
  }
}

namespace {

namespace fs = std::filesystem;

Status not_written(std::string_view what, const std::string& path) {
  const int error = errno;
  return {"file"_rule, fmt::format("cannot {} {}: {}", what, path,
                                   error ? std::strerror(error) : "write error")};
}

Status write_to(const std::string& path, std::string_view text) {
  errno = 0;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return not_written("write", path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) return not_written("write", path);
  return Done{};
}

// Writes everything, or returns false with errno.
bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Creates a file in `folder`, open for writing, and returns its name. O_EXCL: an existing file of
// that name, such as a planted link, is not opened.
int make_file(const fs::path& folder, ::mode_t mode, std::string& name) {
  static std::atomic<unsigned> made = 0;
  int file = -1;
  do {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    name = (folder / fmt::format(".tartan-{}-{}-{:x}", ::getpid(), made++, now)).string();
    file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  } while (file < 0 && errno == EEXIST);
  return file;
}

// Writes `text` to a temporary file in the folder of `target`, with the owner and permissions of
// `target` if it exists. Returns its name; empty, with errno, if writing failed.
std::string write_beside(const fs::path& target, std::string_view text) {
  struct ::stat old = {};
  const bool replaces = ::stat(target.c_str(), &old) == 0;
  std::string name;
  const int file = make_file(target.parent_path(), replaces ? 0600 : 0666, name);
  if (file < 0) return {};
  bool good = true;
  if (replaces) {
    if (old.st_uid != ::geteuid() || old.st_gid != ::getegid()) [[maybe_unused]]
      const int tried = ::fchown(file, old.st_uid, old.st_gid);
    good = ::fchmod(file, old.st_mode & 0777) == 0;
  }
  good = good && write_all(file, text);
  int error = good ? 0 : errno;
  if (::close(file) != 0 && good) error = errno;
  if (error == 0) return name;
  std::remove(name.c_str());
  errno = error;
  return {};
}

// Devices and FIFOs are written directly, and so are links whose target does not exist yet.
bool in_place(const std::string& path) {
  std::error_code none;
  const auto status = fs::status(path, none);
  return fs::exists(status) ? !fs::is_regular_file(status)
                            : fs::is_symlink(fs::symlink_status(path, none));
}

}  // namespace

Status write_file(const std::string& path, std::string_view text) {
  if (in_place(path)) return write_to(path, text);
  std::error_code none;
  const fs::path linked = fs::canonical(path, none);
  const fs::path target = none ? fs::path(path) : linked;
  const std::string temporary = write_beside(target, text);
  if (temporary.empty()) return not_written("write", path);
  if (std::rename(temporary.c_str(), target.c_str()) == 0) return Done{};
  const Status failed = not_written("replace", path);
  std::remove(temporary.c_str());
  return failed;
}

}  // namespace tartan::TARTAN_ABI
