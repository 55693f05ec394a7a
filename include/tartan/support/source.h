// SPDX-License-Identifier: Apache-2.0
// tartan/support/source.h - a named text: the input of a parser, to which diagnostics refer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI {

/// A named text: gives the line and column of an offset, and lines to quote.
class Source {
 public:
  /// `name` names the text in diagnostics: a path, "<stdin>", a kernel's name.
  Source(std::string name, std::string text);

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }

  /// The place of byte `offset` (at most the text's size). Columns count bytes.
  Place place(std::uint32_t offset) const;
  int line(std::uint32_t offset) const;
  /// Line `number` (from 1) without its line break.
  std::string_view line_text(int number) const;
  /// Sets the diagnostic's source line and `width`; its place is in this text. Of a long line only
  /// the part around the place.
  void quote(Diag& diag, std::size_t width) const;

 private:
  std::string name_;
  std::string text_;
  std::vector<std::uint32_t> line_starts_;
};

/// Reads a whole file or FIFO, or standard input for "-": at most 1 GiB.
Result<Source> read_source(const std::string& path);

/// Writes `text` to `path` through a temporary file beside it and an atomic rename: the file
/// appears whole or not at all, and keeps its owner and permissions. Links are followed; devices
/// and FIFOs are written directly. Any number of threads and processes may write one path.
Status write_file(const std::string& path, std::string_view text);

}  // namespace tartan::TARTAN_ABI
