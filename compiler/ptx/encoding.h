// SPDX-License-Identifier: Apache-2.0
// compiler/ptx/encoding.h - which bytes a PTX text may have. The assembler and the driver refuse
// bytes that are not ASCII, in comments and strings too, and a zero byte before the text's end.
#pragma once

#include <cstddef>
#include <string_view>

#include "tartan/support/source.h"

namespace tartan::TARTAN_ABI::ptx {

/// Reports the bytes of `source` that no PTX text has, once a line. The part to read: up to a zero
/// byte, and nothing where the source is no text of bytes at all.
struct ReadableText {
  std::string_view text;
  bool whole = true;
};
ReadableText readable_text(const Source& source, Diags& diags);

constexpr bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

/// The length of the blank outside ASCII, such as a no-break space, that is at `at`; 0 if none is.
std::size_t foreign_blank(std::string_view text, std::size_t at);

}  // namespace tartan::TARTAN_ABI::ptx
