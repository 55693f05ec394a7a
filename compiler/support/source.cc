// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace tartan {

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
  std::string_view rest = text();
  rest.remove_prefix(line_starts_[static_cast<std::size_t>(number - 1)]);
  rest = rest.substr(0, rest.find('\n'));
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  return rest;
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
  constexpr std::size_t piece = std::size_t{1} << 20;
  for (std::size_t taken = piece; taken == piece;) {
    const std::size_t size = text.size();
    if (size > most) return unreadable(name, "it is larger than 1 GiB");
    text.resize(size + piece);
    taken = std::fread(text.data() + size, 1, piece, file);
    text.resize(size + taken);
  }
  if (std::ferror(file)) return unreadable(name, std::strerror(errno));
  return Source(name, std::move(text));
}

}  // namespace

Result<Source> read_source(const std::string& path) {
  if (path == "-") return read_all("<stdin>", stdin);
  // Folders open like files, and devices never end.
  std::error_code none;
  const auto status = std::filesystem::status(path, none);
  if (std::filesystem::is_directory(status)) return unreadable(path, std::strerror(EISDIR));
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_fifo(status))
    return unreadable(path, "not a regular file");
  errno = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) return unreadable(path, std::strerror(errno));
  return read_all(path, file.get());
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

// Devices and FIFOs are written to where they are, and so is what a link names that leads nowhere
// yet.
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
  const std::string target = none ? path : linked.string();
  const std::string temporary = fmt::format("{}.tmp-{}", target, ::getpid());
  Status written = write_to(temporary, text);
  if (written && std::rename(temporary.c_str(), target.c_str()) != 0)
    written = not_written("replace", path);
  if (written) return written;
  std::remove(temporary.c_str());
  return written;
}

}  // namespace tartan
