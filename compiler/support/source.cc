// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

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

Result<Source> read_source(const std::string& path) {
  if (path == "-")
    return Source("<stdin>", std::string(std::istreambuf_iterator<char>(std::cin), {}));
  // Streams open folders, and throw when they read one.
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    return {"file"_rule, fmt::format("cannot read {}: {}", path, std::strerror(EISDIR))};
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text;
  if (in) text.assign(std::istreambuf_iterator<char>(in), {});
  if (!in || in.bad())
    return {"file"_rule, fmt::format("cannot read {}: {}", path,
                                     errno ? std::strerror(errno) : "not a readable file")};
  // Offsets into a source are 32-bit.
  if (text.size() >= UINT32_MAX)
    return {"file"_rule, fmt::format("cannot read {}: larger than 4 GB", path)};
  return Source(path, std::move(text));
}

Status write_file(const std::string& path, std::string_view text) {
  const std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
  const auto failed = [&](std::string_view what) -> Status {
    const int error = errno;
    std::remove(temporary.c_str());
    return {"file"_rule, fmt::format("cannot {} {}: {}", what, path,
                                     error ? std::strerror(error) : "write error")};
  };
  errno = 0;
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (!file) return failed("write");
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) return failed("write");
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return failed("replace");
  return Done{};
}

}  // namespace tartan
