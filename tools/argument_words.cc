// SPDX-License-Identifier: Apache-2.0
#include "tools/argument_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <filesystem>

#include "compiler/support/counted.h"
#include "compiler/support/nearest.h"
#include "runtime/comparison.h"
#include "runtime/element.h"
#include "tartan/runtime/tensor_map.h"
#include "tools/tensor_map_words.h"

namespace tartan::tools {
namespace {

namespace fs = std::filesystem;
using Kind = KernelParameter::Kind;

constexpr std::string_view array_words[] = {"zeros", "empty", "random", "full"};
constexpr std::string_view element_types =
    "f64, f32, tf32, f16, bf16, e4m3, e5m2, s8 to s64, u8 to u64, b8 to b64";

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(by, begin), text.size());
    out.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

template <typename T>
std::optional<T> number_of(std::string_view text) {
  T out{};
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return out;
}

// A whole number as JSON has it, or a real one; hexadecimal is whole.
std::optional<Json> json_number(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    std::uint64_t out = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), out, 16);
    if (error == std::errc() && end == text.data() + text.size() && text.size() > 2)
      return Json(out);
    return std::nullopt;
  }
  if (const auto whole = number_of<std::uint64_t>(text)) return Json(*whole);
  if (const auto whole = number_of<std::int64_t>(text)) return Json(*whole);
  const auto real = number_of<double>(text);
  if (real && std::isfinite(*real)) return Json(*real);
  return std::nullopt;
}

std::optional<Type> element_type(std::string_view text) {
  const auto type = parse_type(text);
  return type && Comparison::takes(*type) ? type : std::nullopt;
}

// One value of --arg.
class Value {
 public:
  Value(const KernelParameter& parameter, const std::string& name, const std::string& text,
        const std::string& words, const ArgumentContext& context)
      : parameter_(parameter), name_(name), text_(text), words_(words), context_(context) {}

  Result<Json> operator()() {
    const std::vector<std::string> parts = split(text_, ':');
    const std::string& first = parts[0];
    if (first == "tensormap") return tensor_map();
    if (first == "address") return address();
    if (first == "bytes" && parts.size() == 2) return raw(parts[1]);
    if (std::ranges::find(array_words, first) != std::end(array_words)) return array(parts);
    if (const auto number = json_number(text_)) return scalar(Type::none, *number);
    const auto type = parts.size() == 2 ? element_type(first) : std::nullopt;
    const auto number = type ? json_number(parts[1]) : std::nullopt;
    if (type && number) return scalar(*type, *number);
    return file();
  }

 private:
  Diags wrong(const std::string& why) const {
    return Diags::one("usage"_rule, {}, fmt::format("{}: {}", words_, why));
  }
  Diags mismatch(const std::string& found) const {
    return wrong(fmt::format("parameter {}: expected {}, found {}", parameter_.text(),
                             parameter_.expected(), found));
  }
  bool takes_address() const {
    return parameter_.kind == Kind::pointer || parameter_.kind == Kind::word;
  }

  // What C++ has as `source`: other kinds of 8 and 16 bits are often passed as words, and the b
  // types have no kind.
  static bool fits(Type source, Type given) {
    if (source == Type::none) return true;
    if (element_size(source) != element_size(given)) return false;
    return bits(source) <= 16 || is_bits(given) || info(source).floating == info(given).floating;
  }
  bool fits_elements(Type given) const {
    return parameter_.source_type.empty() || fits(parameter_.element, given);
  }
  Diags wrong_elements(Type given) const {
    return wrong(fmt::format("parameter {}: expected an array of {}, found one of {}{}",
                             parameter_.text(), tartan::name(parameter_.element),
                             tartan::name(given), bits_hint(parameter_.element, given)));
  }
  static std::string bits_hint(Type source, Type given) {
    return element_size(source) == element_size(given)
               ? fmt::format("; b{} takes bits as they are", bits(source))
               : std::string();
  }

  // ---- Arrays.

  Result<Json> array(const std::vector<std::string>& parts) {
    const std::string& word = parts[0];
    const bool valued = word == "full", seeded = word == "random";
    const std::string form = fmt::format("{}:TYPE:SHAPE{}", word,
                                         valued   ? ":NUMBER"
                                         : seeded ? "[:SEED]"
                                                  : "");
    if (!takes_address()) return mismatch(fmt::format("the array {}", text_));
    if (parts.size() < (valued ? 4u : 3u) || parts.size() > (valued || seeded ? 4u : 3u))
      return wrong(
          fmt::format("expected {}, such as {}:f32:256x128{}", form, word, valued ? ":0.5" : ""));
    const auto type = element_type(parts[1]);
    if (!type) return wrong(fmt::format("unknown type {}: expected {}", parts[1], element_types));
    if (!fits_elements(*type)) return wrong_elements(*type);
    const auto shape = extents_of(parts[2]);
    if (!shape) return wrong(fmt::format("expected a shape such as 256x128, found {}", parts[2]));
    Json out{{"buffer", name_}, {"type", tartan::name(*type)}, {"shape", *shape}};
    if (word == "zeros") out["fill"] = 0;
    if (word == "empty") out["uninitialized"] = true;
    if (!valued && !seeded) return out;
    const std::string last = parts.size() == 4 ? parts[3] : "1";
    const auto number = json_number(last);
    if (!number || (seeded && !number->is_number_unsigned()))
      return wrong(
          fmt::format("expected {}, found {}", seeded ? "a seed from 0 on" : "a number", last));
    out[seeded ? "random" : "value"] = *number;
    return out;
  }

  // FILE, FILE:TYPE or FILE:TYPE:SHAPE. Files may have colons in their names.
  Result<Json> file() {
    std::string path = text_;
    std::optional<Type> type;
    std::optional<std::vector<std::uint64_t>> shape;
    const auto cut = [&] {
      const std::size_t colon = path.rfind(':');
      std::string last = colon == std::string::npos ? std::string() : path.substr(colon + 1);
      return std::pair{colon, last};
    };
    const auto [colon, last] = cut();
    if (const auto extents = extents_of(last)) {
      const std::string rest = path.substr(0, colon);
      const std::size_t before = rest.rfind(':');
      if (before != std::string::npos && element_type(rest.substr(before + 1))) {
        shape = extents;
        path = rest;
      }
    }
    const auto [at, word] = cut();
    if ((type = element_type(word))) path = path.substr(0, at);
    std::error_code none;
    if (!fs::exists(path, none)) return no_file(path);
    if (parameter_.kind == Kind::bytes) {
      if (type) return mismatch(fmt::format("an array of {}", tartan::name(*type)));
      return Json{{"struct", parameter_.bytes}, {"file", file_name(context_, path)}};
    }
    if (!takes_address()) return mismatch(fmt::format("the file {}", path));
    if (type && !fits_elements(*type)) return wrong_elements(*type);
    Json out{{"buffer", name_}, {"file", file_name(context_, path)}};
    if (type) out["type"] = tartan::name(*type);
    if (shape) out["shape"] = *shape;
    return out;
  }

  // What is neither a word nor a file.
  Diags no_file(const std::string& path) const {
    const std::vector<std::string> parts = split(text_, ':');
    if (parameter_.kind == Kind::scalar) return mismatch(text_);
    if (parts.size() > 1 && element_type(parts[1]) && parts[0].find('.') == std::string::npos)
      return wrong(
          fmt::format("no file {}, and no word for an array: expected zeros, empty, "
                      "random or full{}",
                      parts[0], nearest_hint(parts[0], array_words)));
    return wrong(
        fmt::format("cannot read {}: no such file; expected a file, or an array such as "
                    "zeros:f32:256x128",
                    path));
  }

  // ---- Scalars.

  Result<Json> scalar(Type type, const Json& number) {
    const std::string found = fmt::format("the number {}", text_);
    if (parameter_.kind == Kind::pointer || parameter_.kind == Kind::bytes) return mismatch(found);
    const Type declared = parameter_.type;
    if (type != Type::none && element_size(type) != parameter_.bytes)
      return wrong(fmt::format("parameter {}: expected {}, found {} of {}", parameter_.text(),
                               detail::counted(parameter_.bytes, "byte"),
                               detail::counted(element_size(type), "byte"), tartan::name(type)));
    if (const Type source = type_of_source(parameter_.source_type);
        type != Type::none && !fits(source, type))
      return wrong(fmt::format("parameter {}: expected a number of {}, found one of {}{}",
                               parameter_.text(), tartan::name(source), tartan::name(type),
                               bits_hint(source, type)));
    const bool whole = number.is_number_integer();
    if (type == Type::none) type = type_for(declared, number, whole);
    if (type == Type::none || (!whole && !info(type).floating))
      return wrong(fmt::format(
          "parameter {}: expected a whole number, found {}{}", parameter_.text(), text_,
          is_bits(declared) ? fmt::format("; f{}:{} gives its bits", bits(declared), text_) : ""));
    if (!is_scalar(type)) return raw_number(type, number);
    Json out{{std::string(tartan::name(type)), number}};
    out["name"] = name_;
    return out;
  }

  // nvcc declares signed integers without a sign.
  static Type type_for(Type declared, const Json& number, bool whole) {
    const bool negative = whole && !number.is_number_unsigned();
    if (info(declared).floating) return declared;
    const bool keeps = info(declared).is_signed || (!negative && !is_bits(declared));
    if (keeps) return declared;
    switch (bits(declared)) {
      case 8: return negative ? Type::s8 : Type::u8;
      case 16: return negative ? Type::s16 : Type::u16;
      case 32: return negative ? Type::s32 : Type::u32;
      case 64: return negative ? Type::s64 : Type::u64;
      default: return Type::none;
    }
  }

  // Those that a manifest has a word for.
  static bool is_scalar(Type type) {
    return !is_bits(type) && type != Type::e4m3 && type != Type::e5m2 && type != Type::tf32;
  }

  Result<Json> raw_number(Type type, const Json& number) {
    const auto word = element_bits(type, number.get<double>());
    if (!word) return wrong(fmt::format("{} has no {}", tartan::name(type), text_));
    Json bytes = Json::array();
    for (std::size_t i = 0; i < element_size(type); ++i) bytes.push_back(*word >> (8 * i) & 0xff);
    return Json{{"bytes", bytes}, {"name", name_}};
  }

  Result<Json> raw(const std::string& hex) {
    Json bytes = Json::array();
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
      std::uint8_t byte = 0;
      const auto [end, error] = std::from_chars(&hex[i], &hex[i] + 2, byte, 16);
      if (error != std::errc() || end != &hex[i] + 2) break;
      bytes.push_back(byte);
    }
    if (hex.size() != 2 * bytes.size() || bytes.empty())
      return wrong("expected two hexadecimal digits for each byte, as in bytes:0001ff");
    if (bytes.size() != parameter_.bytes)
      return wrong(fmt::format("parameter {}: expected {}, found {}", parameter_.text(),
                               detail::counted(parameter_.bytes, "byte"), bytes.size()));
    return Json{{"bytes", bytes}, {"name", name_}};
  }

  // ---- Addresses and maps.

  // address:NAME[+OFFSET]
  Result<Json> address() {
    const std::string rest = text_.substr(std::string_view("address:").size());
    const std::size_t plus = rest.rfind('+');
    const auto offset = plus == std::string::npos ? std::optional<std::uint64_t>(0)
                                                  : number_of<std::uint64_t>(rest.substr(plus + 1));
    if (!offset || rest.empty() || plus == 0)
      return wrong("expected address:NAME or address:NAME+BYTES, of another argument");
    if (!takes_address()) return mismatch(fmt::format("the address {}", text_));
    Json out{{"address", rest.substr(0, plus)}};
    if (*offset) out["offset"] = *offset;
    return out;
  }

  Result<Json> tensor_map() {
    constexpr std::size_t size = sizeof(TensorMapBytes);
    if (parameter_.kind != Kind::bytes || parameter_.bytes != size)
      return wrong(fmt::format("parameter {}: expected {}, found a tensor map, which has {} bytes",
                               parameter_.text(), parameter_.expected(), size));
    auto out = tensor_map_json(text_.substr(std::min(text_.size(), text_.find(':') + 1)));
    if (!out) return wrong(out.diags()[0].message);
    return out;
  }

  const KernelParameter& parameter_;
  const std::string& name_;
  const std::string& text_;
  const std::string& words_;
  const ArgumentContext& context_;
};

}  // namespace

std::optional<std::vector<std::uint64_t>> extents_of(std::string_view text) {
  std::vector<std::uint64_t> out;
  for (const std::string& each : split(text, text.find(',') == text.npos ? 'x' : ',')) {
    const auto extent = number_of<std::uint64_t>(each);
    if (!extent || *extent == 0) return std::nullopt;
    out.push_back(*extent);
  }
  return out;
}

std::string file_name(const ArgumentContext& context, const std::string& path) {
  if (context.folder.empty() || fs::path(path).is_absolute()) return path;
  std::error_code none;
  return fs::absolute(path, none).lexically_proximate(fs::absolute(context.folder, none)).string();
}

Result<Json> parameter_json(const KernelParameter& parameter, const std::string& name,
                            const std::string& value, const std::string& words,
                            const ArgumentContext& context) {
  return Value(parameter, name, value, words, context)();
}

Json blank_parameter(const KernelParameter& parameter) {
  constexpr std::uint64_t elements = 1024;
  if (parameter.kind == Kind::bytes) return Json{{"struct", parameter.bytes}};
  if (parameter.kind != Kind::pointer) {
    const std::string_view type = is_bits(parameter.type)
                                      ? tartan::name(bits(parameter.type) == 64   ? Type::u64
                                                     : bits(parameter.type) == 32 ? Type::u32
                                                     : bits(parameter.type) == 16 ? Type::u16
                                                                                  : Type::u8)
                                      : tartan::name(parameter.type);
    if (parameter.type == Type::e4m3 || parameter.type == Type::e5m2)
      return Json{{"bytes", Json::array({0})}, {"name", parameter.name}};
    return Json{{std::string(type), 0}, {"name", parameter.name}};
  }
  const Type element = parameter.element == Type::none ? Type::b8 : parameter.element;
  Json out{{"buffer", parameter.name}, {"type", tartan::name(element)}, {"shape", {elements}}};
  if (parameter.written && !parameter.read) out["uninitialized"] = true;
  else if (is_bits(element)) out["fill"] = 0;
  else out["random"] = 1;
  return out;
}

}  // namespace tartan::tools
