// SPDX-License-Identifier: Apache-2.0
#include "runtime/manifest_buffers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>

#include "compiler/support/host_memory.h"
#include "runtime/element.h"
#include "runtime/random_elements.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

constexpr std::string_view element_types = "an element type such as f32, f16, bf16, f64 or s32";

// The ways in which a buffer without a file starts.
constexpr const char* starts[] = {"fill", "uninitialized", "random", "value"};

}  // namespace

ManifestBuffer ManifestBuffers::read_buffer(const Json& param, const std::string& path) {
  known_fields(param, path,
               {"buffer", "file", "part", "bytes", "type", "shape", "fill", "uninitialized",
                "random", "value", "expect", "compare", "save", "print"});
  ManifestBuffer buffer;
  buffer.name = text(param, "buffer", path + ".buffer").value_or("");
  read_elements(param, path, buffer);
  read_contents(param, path, buffer);
  read_expectation(param, path, buffer);
  read_results(param, path, buffer);
  return buffer;
}

// ---- Type and size.

void ManifestBuffers::read_elements(const Json& param, const std::string& path,
                                    ManifestBuffer& buffer) {
  if (const Json* field = find(param, "type")) {
    const auto name = text(param, "type", path + ".type");
    const auto type = name ? parse_type(*name) : std::nullopt;
    if (type && Comparison::takes(*type)) buffer.type = *type;
    else if (name) fail(path + ".type", element_types, field);
  }
  const Json* field = find(param, "shape");
  if (!field) return;
  if (!find(param, "type") && !find(param, "file"))
    report(path + ".shape", fmt::format("requires type, {}", element_types));
  if (auto shape = list<std::uint64_t>(*field, path + ".shape", 1, most_bytes))
    buffer.shape = std::move(*shape);
  if (field->is_array() && field->empty())
    return fail(path + ".shape", "at least one extent", field);
  std::uint64_t left = most_bytes / std::max<std::size_t>(element_size(buffer.type), 1);
  for (const std::uint64_t extent : buffer.shape) left /= extent;
  if (left > 0) return;
  report(path + ".shape", fmt::format("{} elements are more than the {} bytes that a buffer has",
                                      fmt::join(buffer.shape, "x"), most_bytes));
  buffer.shape.clear();
}

void ManifestBuffers::read_contents(const Json& param, const std::string& path,
                                    ManifestBuffer& buffer) {
  const bool file = find(param, "file"), bytes = find(param, "bytes");
  const bool shape = find(param, "shape");
  if (file == bytes && (file || !shape))
    return fail(path, "either file or bytes, or a shape", &param);
  if (!file && find(param, "part")) report(path + ".part", "requires a file, found bytes");
  if (bytes && shape) report(path + ".shape", "requires a file or no bytes, found bytes");
  read_start(param, path, buffer);
  if (file) return read_file(param, path, buffer);
  if (bytes) buffer.size = whole(param["bytes"], path + ".bytes", 1, most_bytes).value_or(0);
  else if (!buffer.shape.empty()) {
    buffer.size = element_size(buffer.type);
    for (const std::uint64_t extent : buffer.shape) buffer.size *= extent;
  }
  const std::size_t element = element_size(buffer.type);
  if (element && buffer.size % element)
    report(path + ".bytes", fmt::format("{} is not a multiple of the {}-byte elements of {}",
                                        buffer.size, element, name(buffer.type)));
  else fill_elements(param, path, buffer);
}

void ManifestBuffers::read_start(const Json& param, const std::string& path,
                                 ManifestBuffer& buffer) {
  const bool file = find(param, "file");
  if (const Json* fill = find(param, "fill")) {
    if (file) report(path + ".fill", "requires bytes, found a file");
    buffer.fill = static_cast<std::uint8_t>(whole(*fill, path + ".fill", 0, 255).value_or(0));
    buffer.filled = true;
  }
  if (find(param, "uninitialized")) {
    if (file || find(param, "fill"))
      report(path + ".uninitialized",
             fmt::format("requires bytes alone, found {}", file ? "a file" : "fill"));
    buffer.uninitialized = flag(param, "uninitialized", path + ".");
  }
  const char* first = nullptr;
  for (const char* each : starts) {
    if (!find(param, each)) continue;
    const bool drawn = std::string_view(each) == "random" || std::string_view(each) == "value";
    if (drawn && (file || first))
      report(path + "." + each,
             fmt::format("requires a shape alone, found {}", file ? "a file" : first));
    if (drawn && !file && buffer.type == Type::none && !find(param, "type"))
      report(path + "." + each, fmt::format("requires type, {}", element_types));
    if (!first) first = each;
  }
}

// Elements that a number or a seed tells.
void ManifestBuffers::fill_elements(const Json& param, const std::string& path,
                                    ManifestBuffer& buffer) {
  const Json *value = find(param, "value"), *random = find(param, "random");
  if ((!value && !random) || buffer.type == Type::none || buffer.size == 0) return;
  if (!fits_in_memory(buffer.size)) throw std::bad_alloc();
  if (random) {
    const auto seed =
        whole(*random, path + ".random", 0, std::numeric_limits<std::uint64_t>::max());
    if (seed) buffer.contents = random_elements(buffer.type, buffer.size, *seed);
    return;
  }
  const auto word =
      value->is_number() ? element_bits(buffer.type, value->get<double>()) : std::nullopt;
  if (!word) return fail(path + ".value", fmt::format("a number of {}", name(buffer.type)), value);
  buffer.contents.resize(buffer.size);
  const std::size_t size = element_size(buffer.type);
  for (std::size_t i = 0; i < buffer.size / size; ++i)
    store_element(buffer.contents, i, size, *word);
}

// ---- Files.

void ManifestBuffers::read_file(const Json& param, const std::string& path,
                                ManifestBuffer& buffer) {
  auto contents = data(param, "file", path + ".file", find(param, "part"));
  if (!contents) return;
  const std::string file = param["file"].get<std::string>();
  if (!find(param, "part")) {
    const std::size_t before = diags_.size();
    if (auto array = array_of(*contents, file, path + ".file")) {
      if (!buffer.shape.empty() && buffer.shape != array->shape)
        report(path + ".shape",
               fmt::format("expected that of {}, {}, found {}", file, fmt::join(array->shape, "x"),
                           fmt::join(buffer.shape, "x")));
      buffer.shape = array->shape;
      if (buffer.type == Type::none) buffer.type = array->type;
      contents = elements_of(std::move(*array), buffer.type, file, path + ".file");
    }
    if (diags_.size() != before || !contents) return;
  }
  buffer.size = contents->size();
  buffer.contents = std::move(*contents);
  const std::size_t element = element_size(buffer.type);
  if (element && buffer.size % element)
    report(path + ".type", fmt::format("the {} bytes of {} are not a multiple of the {}-byte "
                                       "elements of {}",
                                       buffer.size, file, element, name(buffer.type)));
  std::uint64_t wanted = element;
  for (const std::uint64_t extent : buffer.shape) wanted *= extent;
  if (!buffer.shape.empty() && element && wanted != buffer.size)
    report(path + ".shape",
           fmt::format("{} of {} takes {} bytes, {} has {}", fmt::join(buffer.shape, "x"),
                       name(buffer.type), wanted, file, buffer.size));
  if (!buffer.shape.empty() && !element)
    report(path + ".shape", fmt::format("requires type, {}", element_types));
}

std::optional<NpyArray> ManifestBuffers::array_of(const std::vector<std::byte>& bytes,
                                                  const std::string& file,
                                                  const std::string& path) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!is_npy(text)) return std::nullopt;
  auto array = read_npy(text);
  if (array) return std::move(*array);
  diags_.report("file"_rule, {source_.name(), 0, 0},
                fmt::format("{}: {}: {}", path, file, array.diags()[0].message));
  return std::nullopt;
}

std::optional<std::vector<std::byte>> ManifestBuffers::elements_of(NpyArray array, Type type,
                                                                   const std::string& file,
                                                                   const std::string& path) {
  auto out = converted(std::move(array), type);
  if (out) return std::move(*out);
  diags_.report("file"_rule, {source_.name(), 0, 0},
                fmt::format("{}: {}: {}", path, file, out.diags()[0].message));
  return std::nullopt;
}

// [offset, bytes] of a file of `size` bytes.
std::optional<ManifestBuffers::Part> ManifestBuffers::read_part(const Json& part,
                                                                const std::string& path,
                                                                std::uint64_t size) {
  const auto numbers = list<std::uint64_t>(part, path, 0, std::numeric_limits<std::int64_t>::max());
  if (!numbers) return std::nullopt;
  if (numbers->size() != 2) {
    fail(path, "expected an offset and a number of bytes", &part);
    return std::nullopt;
  }
  const std::uint64_t offset = (*numbers)[0], bytes = (*numbers)[1];
  if (bytes != 0 && offset <= size && bytes <= size - offset) return Part{offset, bytes};
  report(path,
         fmt::format("{} bytes at offset {} are outside a file of {} bytes", bytes, offset, size));
  return std::nullopt;
}

std::optional<std::vector<std::byte>> ManifestBuffers::data(const Json& object, const char* key,
                                                            const std::string& path,
                                                            const Json* part) {
  const auto name = text(object, key, path);
  if (!name) return std::nullopt;
  const std::filesystem::path file = folder_ / *name;
  const auto refuse = [&](std::string_view why) {
    diags_.report("file"_rule, {source_.name(), 0, 0},
                  fmt::format("{}: cannot read {}: {}", path, file.string(), why));
    return std::nullopt;
  };
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) return refuse("no such file");
  if (!std::filesystem::is_regular_file(status)) return refuse("not a file");
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error) return refuse(error.message());
  if (size == 0) return refuse("the file is empty");
  Part wanted{0, size};
  if (part) {
    const auto read = read_part(*part, path.substr(0, path.rfind('.')) + ".part", size);
    if (!read) return std::nullopt;
    wanted = *read;
  }
  if (wanted.bytes > most_bytes) return refuse(fmt::format("more than {} bytes of it", most_bytes));
  std::vector<std::byte> bytes;
  try {
    if (!fits_in_memory(wanted.bytes)) throw std::bad_alloc();
    bytes.resize(wanted.bytes);
  } catch (const std::bad_alloc&) {
    return refuse(fmt::format("its {} bytes do not fit in memory", wanted.bytes));
  }
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(wanted.offset));
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(wanted.bytes));
  if (!in) return refuse(errno ? std::strerror(errno) : "the file is truncated");
  return bytes;
}

// ---- What is expected, and results.

void ManifestBuffers::read_expectation(const Json& param, const std::string& path,
                                       ManifestBuffer& buffer) {
  const Json *expect = find(param, "expect"), *compare = find(param, "compare");
  buffer.compared = compare;
  if (compare && !expect && !referenced_)
    report(path + ".compare", "there is no expect to compare with");
  if (compare) buffer.comparison = read_comparison(*compare, path + ".compare", buffer.type);
  else if (buffer.type != Type::none) buffer.comparison.type = buffer.type;
  if (expect && !read_expected(*expect, param, path, buffer)) return;
  if (const std::size_t element = buffer.comparison.element_bytes();
      compare && (expect || referenced_) && buffer.size % element != 0)
    report(path + ".compare", fmt::format("{} bytes are not a multiple of the {}-byte elements",
                                          buffer.size, element));
}

// False: reported.
bool ManifestBuffers::read_expected(const Json& expect, const Json& param, const std::string& path,
                                    ManifestBuffer& buffer) {
  auto contents = data(param, "expect", path + ".expect");
  if (!contents || buffer.size == 0) return false;
  const std::size_t before = diags_.size();
  const std::string file = expect.get<std::string>();
  if (auto array = array_of(*contents, file, path + ".expect")) {
    if (buffer.shape.size() > 1 && buffer.shape != array->shape)
      report(path + ".expect",
             fmt::format("{} has shape {}, buffer {} has {}", file, fmt::join(array->shape, "x"),
                         buffer.name, fmt::join(buffer.shape, "x")));
    const Type type = buffer.type == Type::none ? array->type : buffer.type;
    if (!buffer.compared && buffer.type == Type::none) buffer.comparison.type = type;
    contents = elements_of(std::move(*array), type, file, path + ".expect");
  }
  if (diags_.size() != before || !contents) return false;
  if (contents->size() != buffer.size) {
    report(path + ".expect", fmt::format("{} has {} bytes, buffer {} has {}", shown(expect),
                                         contents->size(), buffer.name, buffer.size));
    return false;
  }
  buffer.expect = std::move(*contents);
  return true;
}

Comparison ManifestBuffers::read_comparison(const Json& compare, const std::string& path,
                                            Type type) {
  Comparison comparison;
  if (compare == "bits") return comparison;
  if (!compare.is_object()) {
    fail(path, "\"bits\" or an object with type, max_rel and max_abs", &compare);
    return comparison;
  }
  known_fields(compare, path, {"type", "max_rel", "max_abs"});
  if (type != Type::none && !find(compare, "type")) {
    comparison.type = type;
  } else if (const auto name = text(compare, "type", path + ".type")) {
    const auto parsed = parse_type(*name);
    if (parsed && Comparison::takes(*parsed)) comparison.type = *parsed;
    else fail(path + ".type", element_types, find(compare, "type"));
  }
  comparison.max_rel = tolerance(compare, "max_rel", path);
  comparison.max_abs = tolerance(compare, "max_abs", path);
  return comparison;
}

double ManifestBuffers::tolerance(const Json& compare, const char* key, const std::string& path) {
  const Json* field = find(compare, key);
  if (!field) return 0;
  if (field->is_number() && field->get<double>() >= 0) return field->get<double>();
  fail(fmt::format("{}.{}", path, key), "a number of at least 0", field);
  return 0;
}

void ManifestBuffers::read_results(const Json& param, const std::string& path,
                                   ManifestBuffer& buffer) {
  if (find(param, "save"))
    if (const auto file = text(param, "save", path + ".save"))
      buffer.save = (folder_ / *file).string();
  const Json* print = find(param, "print");
  if (!print) return;
  if (!print->is_array()) return read_print(*print, path + ".print", buffer);
  for (std::size_t i = 0; i < print->size(); ++i)
    read_print((*print)[i], fmt::format("{}.print[{}]", path, i), buffer);
}

void ManifestBuffers::read_print(const Json& print, const std::string& path,
                                 ManifestBuffer& buffer) {
  const auto slice =
      print.is_string() ? Slice::parse(print.get_ref<const std::string&>()) : std::nullopt;
  if (!slice) return fail(path, "a part such as \"0:4,0:8\" (\":\" is all of it)", &print);
  if (buffer.type == Type::none)
    return report(path, fmt::format("requires type, {}", element_types));
  if (buffer.size == 0) return;  // reported already
  const auto ranges = slice->of(buffer.extents());
  if (!ranges) return report(path, ranges.diags()[0].message);
  buffer.prints.push_back(*slice);
}

}  // namespace tartan::TARTAN_ABI::detail
