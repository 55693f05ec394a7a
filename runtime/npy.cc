// SPDX-License-Identifier: Apache-2.0
#include "runtime/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "compiler/support/counted.h"
#include "runtime/comparison.h"
#include "runtime/element.h"

namespace tartan::TARTAN_ABI {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view magic = "\x93NUMPY"sv;
constexpr std::size_t before_length = 8;  // magic, and two bytes of the version

struct NpyType {
  std::string_view descr;  // without the byte order
  Type type;
};
constexpr NpyType types[] = {
    {"f2", Type::f16}, {"f4", Type::f32}, {"f8", Type::f64}, {"i1", Type::s8},
    {"i2", Type::s16}, {"i4", Type::s32}, {"i8", Type::s64}, {"u1", Type::u8},
    {"u2", Type::u16}, {"u4", Type::u32}, {"u8", Type::u64}, {"b1", Type::u8},
    {"V1", Type::b8},  {"V2", Type::b16}, {"V4", Type::b32}, {"V8", Type::b64},
};

Diags wrong(std::string message) { return Diags::one("file"_rule, {}, std::move(message)); }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  return text;
}

// What follows "'key':" in the header, a Python dictionary of three entries.
std::string_view value_of(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(fmt::format("'{}'", key));
  if (at == std::string_view::npos) return {};
  std::string_view rest = trimmed(header.substr(at + key.size() + 2));
  if (!rest.starts_with(':')) return {};
  return trimmed(rest.substr(1));
}

Result<Type> type_of(std::string_view header) {
  const std::string_view value = value_of(header, "descr");
  if (!value.starts_with('\''))
    return wrong("an .npy file of records: expected one type of elements");
  const std::string_view text = value.substr(1, value.find('\'', 1) - 1);
  if (text.starts_with('>'))
    return wrong(
        fmt::format("an .npy file of big-endian elements ({}): expected little-endian "
                    "ones; x.astype(x.dtype.newbyteorder('<')) makes them",
                    text));
  const std::string_view known = text.find_first_of("<|=") == 0 ? text.substr(1) : text;
  for (const NpyType& each : types)
    if (each.descr == known) return each.type;
  return wrong(fmt::format(
      "an .npy file of type {}: expected f2, f4, f8, i1 to i8, u1 to u8, b1, or V1 to V8", text));
}

std::optional<std::vector<std::uint64_t>> shape_of(std::string_view header) {
  std::string_view value = value_of(header, "shape");
  if (!value.starts_with('(')) return std::nullopt;
  value.remove_prefix(1);
  std::vector<std::uint64_t> out;
  for (;;) {
    value = trimmed(value);
    if (value.starts_with(')')) return out;
    std::uint64_t extent = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), extent);
    if (error != std::errc()) return std::nullopt;
    out.push_back(extent);
    value = trimmed(value.substr(static_cast<std::size_t>(end - value.data())));
    if (value.starts_with(',')) value.remove_prefix(1);
  }
}

// Elements of an array whose first dimension is contiguous, in the usual order.
std::vector<std::byte> transposed(std::string_view data, const std::vector<std::uint64_t>& shape,
                                  std::size_t size) {
  std::vector<std::byte> out(data.size());
  std::vector<std::uint64_t> strides(shape.size()), index(shape.size());
  std::uint64_t stride = size;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    strides[i] = stride;
    stride *= shape[i];
  }
  std::uint64_t from = 0;
  for (std::size_t to = 0; to < data.size(); to += size) {
    std::memcpy(out.data() + to, data.data() + from, size);
    for (std::size_t i = shape.size(); i-- > 0;) {
      from += strides[i];
      if (++index[i] < shape[i]) break;
      from -= strides[i] * shape[i];
      index[i] = 0;
    }
  }
  return out;
}

// The length of the header and where it begins, by the file's version.
std::optional<std::pair<std::size_t, std::size_t>> header_of(std::string_view text) {
  const bool narrow = text.size() > before_length && text[6] == 1;
  const std::size_t bytes = narrow ? 2 : 4, begin = before_length + bytes;
  if (text.size() < begin) return std::nullopt;
  std::uint32_t length = 0;
  std::memcpy(&length, text.data() + before_length, bytes);
  if (length > text.size() - begin) return std::nullopt;
  return std::pair{begin, static_cast<std::size_t>(length)};
}

// numpy lacks it, and has its words without a sign.
bool is_taken_as_words(Type to) {
  return is_bits(to) || to == Type::bf16 || to == Type::e4m3 || to == Type::e5m2;
}

std::string_view descr_of(Type type) {
  for (const NpyType& each : types)
    if (each.type == type && !is_bits(type)) return each.descr;
  switch (bits(type)) {
    case 8: return "u1";
    case 16: return "u2";
    case 32: return type == Type::tf32 ? "f4" : "u4";
    default: return "u8";
  }
}

}  // namespace

bool is_npy(std::string_view text) { return text.starts_with(magic); }

Result<NpyArray> read_npy(std::string_view text) {
  if (!is_npy(text)) return wrong("not an .npy file");
  const auto place = header_of(text);
  if (!place) return wrong("the .npy file is truncated: its header does not end");
  const std::string_view header = text.substr(place->first, place->second);
  const std::string_view data = text.substr(place->first + place->second);
  const auto type = type_of(header);
  if (!type) return type.diags();
  auto shape = shape_of(header);
  if (!shape) return wrong("the .npy file's header states no shape");
  NpyArray out{.type = *type, .shape = std::move(*shape)};
  if (out.shape.empty()) out.shape.push_back(1);
  const std::size_t size = element_size(out.type);
  std::uint64_t bytes = size;
  for (const std::uint64_t extent : out.shape) {
    if (extent == 0)
      return wrong(
          fmt::format("the .npy file's array of shape {} is empty", fmt::join(out.shape, "x")));
    if (extent > std::numeric_limits<std::uint64_t>::max() / bytes)
      return wrong("the .npy file's header states a shape that no file has");
    bytes *= extent;
  }
  if (data.size() != bytes)
    return wrong(fmt::format("the .npy file {}: its shape {} takes {} bytes, found {}",
                             data.size() < bytes ? "is truncated" : "has more than one array",
                             fmt::join(out.shape, "x"), bytes, data.size()));
  if (value_of(header, "fortran_order").starts_with("True")) {
    out.contents = transposed(data, out.shape, size);
  } else {
    out.contents.resize(bytes);
    std::memcpy(out.contents.data(), data.data(), bytes);
  }
  return out;
}

Result<std::vector<std::byte>> converted(NpyArray array, Type to) {
  const Type from = array.type;
  const bool words = is_bits(from) || (!info(from).floating && !info(from).is_signed);
  if (from == to || (bits(from) == bits(to) && ((words && is_taken_as_words(to)) || is_bits(to))))
    return std::move(array.contents);
  if (is_bits(from) || is_bits(to))
    return wrong(fmt::format("elements of {} are no {}: expected words of {}", name(from), name(to),
                             detail::counted(element_size(to), "byte")));
  const std::size_t size = element_size(from), wanted = element_size(to);
  const std::size_t count = array.contents.size() / size;
  std::vector<std::byte> out(count * wanted);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t word = load_element(array.contents, i, size);
    const auto bits = element_bits(to, element_value(from, word));
    if (!bits)
      return wrong(fmt::format("element {} is {}: {} has no such number", i,
                               element_text(from, word), name(to)));
    store_element(out, i, wanted, *bits);
  }
  return out;
}

std::string npy_text(Type type, const std::vector<std::uint64_t>& shape,
                     std::span<const std::byte> contents) {
  const std::size_t size = element_size(type);
  std::vector<std::uint64_t> extents = shape;
  if (extents.empty()) extents.push_back(contents.size() / size);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({},), }}",
                                   size == 1 ? '|' : '<', descr_of(type), fmt::join(extents, ", "));
  if (extents.size() > 1) header.replace(header.find(",), }"), 2, ")");
  constexpr std::size_t alignment = 64;  // of the elements in the file
  const std::size_t used = before_length + 2 + header.size() + 1;
  header.append((alignment - used % alignment) % alignment, ' ');
  header += '\n';
  std::string out(magic);
  out +=
      {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  out += header;
  out.append(reinterpret_cast<const char*>(contents.data()), contents.size());
  return out;
}

}  // namespace tartan::TARTAN_ABI
