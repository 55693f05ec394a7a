// SPDX-License-Identifier: Apache-2.0
#include "compiler/ptx/encoding.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::TARTAN_ABI::ptx {
namespace {

using namespace std::string_view_literals;

// What a file is that is no PTX text, by its first bytes, and how PTX comes from it.
struct Signature {
  std::string_view bytes;
  std::string_view what, cure;
};
constexpr std::string_view of_utf16 = "iconv -f UTF-16 -t ASCII converts it";
constexpr std::string_view of_fatbin = "cuobjdump -ptx extracts it, where there is some inside";
constexpr Signature signatures[] = {
    {"\xFF\xFE"sv, "UTF-16 text", of_utf16},
    {"\xFE\xFF"sv, "UTF-16 text", of_utf16},
    {"\x50\xED\x55\xBA"sv, "a fatbin", of_fatbin},
    {"\x7F"
     "ELF"sv,
     "an ELF file, an object or a program", of_fatbin},
    {"\x93NUMPY"sv, "an .npy file of numpy", "tartan run takes it as --arg x=FILE"},
    {"BC\xC0\xDE"sv, "LLVM bitcode", "llc -march=nvptx64 compiles it"},
    {"!<arch>\n"sv, "an archive of objects", of_fatbin},
    {"\x1F\x8B"sv, "a file compressed by gzip", "gunzip unpacks it"},
    {"PK\x03\x04"sv, "a zip file", "unzip unpacks it"},
};
constexpr Signature cubin{"", "a cubin, machine code of a GPU", "nvcc -ptx writes it"};
constexpr Signature bare_utf16{"", "UTF-16 text", of_utf16};
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view blanks[] = {
    byte_order_mark, "\xC2\xA0",     "\xE2\x80\x80", "\xE2\x80\x81", "\xE2\x80\x82",
    "\xE2\x80\x83",  "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86", "\xE2\x80\x87",
    "\xE2\x80\x88",  "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\x8B", "\xE2\x80\xA8",
    "\xE2\x80\xA9",  "\xE2\x80\xAF", "\xE3\x80\x80"};

// A character of UTF-8 and its number, or one byte where no character begins.
struct Character {
  std::string_view bytes;
  std::optional<char32_t> number;
};

Character character_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  const Character byte{text.substr(at, 1), {}};
  if (lead < 0xC2 || lead > 0xF4 || at + size > text.size()) return byte;
  char32_t number = lead & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[at + i]);
    if ((next & 0xC0u) != 0x80u) return byte;
    number = number << 6 | (next & 0x3Fu);
  }
  return {text.substr(at, size), number};
}

std::string described(const Character& character) {
  std::string out = character.bytes.size() > 1 ? "bytes" : "byte";
  for (const char c : character.bytes)
    out += fmt::format(" 0x{:02X}", static_cast<unsigned char>(c));
  if (character.bytes == byte_order_mark) return out + " (a byte-order mark)";
  if (character.number)
    out += fmt::format(" (U+{:04X})", static_cast<std::uint32_t>(*character.number));
  return out;
}

void report(const Source& source, std::size_t at, std::size_t width, std::string message,
            Diags& diags) {
  const auto offset = static_cast<std::uint32_t>(at);
  source.quote(diags.report("encoding"_rule, source.place(offset), std::move(message)), width);
}

void report_foreign(const Source& source, std::string_view text, Diags& diags) {
  auto at = std::ranges::find_if_not(text, is_ascii);
  while (at != text.end()) {
    const auto offset = static_cast<std::size_t>(at - text.begin());
    const Character found = character_at(text, offset);
    report(source, offset, found.bytes.size(),
           fmt::format("not ASCII: expected ASCII alone, in comments and strings too, found {}",
                       described(found)),
           diags);
    at = std::find_if_not(std::find(at, text.end(), '\n'), text.end(), is_ascii);
  }
}

// UTF-16 without a byte-order mark has a zero in every second byte of ASCII.
bool alternates_with_zeros(std::string_view text) {
  constexpr std::size_t enough = 8;
  if (text.size() < enough) return false;
  const bool first = text[0] == 0;
  for (std::size_t i = 0; i < enough; ++i)
    if ((text[i] == 0) != ((i % 2 == 0) == first)) return false;
  return true;
}

// An ELF file for NVIDIA's GPUs: e_machine is EM_CUDA.
bool is_cubin(std::string_view text) {
  constexpr std::size_t machine = 18;
  return text.starts_with(
             "\x7F"
             "ELF") &&
         text.substr(std::min(machine, text.size())).starts_with("\xBE\0"sv);
}

const Signature* other_file(std::string_view text) {
  if (is_cubin(text)) return &cubin;
  for (const Signature& each : signatures)
    if (text.starts_with(each.bytes)) return &each;
  return alternates_with_zeros(text) ? &bare_utf16 : nullptr;
}

}  // namespace

ReadableText readable_text(const Source& source, Diags& diags) {
  const std::string_view text = source.text();
  if (const Signature* other = other_file(text)) {
    diags.report("encoding"_rule, source.place(0),
                 fmt::format("this is {}: expected PTX text; {}", other->what, other->cure));
    return {{}, false};
  }
  const std::size_t zero = text.find('\0');
  const std::string_view read = text.substr(0, zero);
  report_foreign(source, read, diags);
  if (zero == std::string_view::npos) return {text};
  report(source, zero, 1,
         zero + 1 == text.size()
             ? "the text contains a zero byte: expected its end, without a terminator"
             : fmt::format("the text contains a zero byte, and {} bytes behind it are not read",
                           text.size() - zero - 1),
         diags);
  return {read, false};
}

std::size_t foreign_blank(std::string_view text, std::size_t at) {
  for (const std::string_view blank : blanks)
    if (text.substr(at, blank.size()) == blank) return blank.size();
  return 0;
}

}  // namespace tartan::TARTAN_ABI::ptx
