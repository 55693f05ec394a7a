// SPDX-License-Identifier: Apache-2.0
#include "runtime/manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/engine.h"

namespace tartan {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 36;  // of a buffer

constexpr std::uint32_t most_dynamic_shared() {
  int most = 0;
  for (const ArchRow& row : archs) most = std::max(most, row.shared_bytes);
  return static_cast<std::uint32_t>(most);
}

// A value as a message shows it: long ones cut, and nested ones named (they may be nested without
// end).
std::string shown(const Json& value) {
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_object()) {
    std::vector<std::string> keys;
    for (const auto& item : value.items()) keys.push_back(item.key());
    return fmt::format("an object with {}",
                       keys.empty() ? "no fields" : fmt::format("{}", fmt::join(keys, ", ")));
  }
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t most = 60;
  if (text.size() > most) text = text.substr(0, most) + "...";
  return text;
}

// What nlohmann_json says after its own prefix: "[json.exception.parse_error.101] parse error at
// line 3, column 2: ", or "[json.exception.out_of_range.406] ".
std::string parse_complaint(std::string_view text) {
  const std::size_t column = text.find("column ");
  const std::size_t end =
      column == std::string_view::npos ? text.find("] ") : text.find(": ", column);
  return std::string(end == std::string_view::npos ? text : text.substr(end + 2));
}

template <typename T>
std::vector<std::byte> bytes_of(T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  return {bytes, bytes + sizeof value};
}

class Reader {
 public:
  explicit Reader(const Source& source)
      : source_(source), folder_(std::filesystem::path(source.name()).parent_path()) {}

  Result<Manifest> read() {
    Json root;
    try {
      root = Json::parse(source_.text());
    } catch (const Json::parse_error& error) {
      const auto offset =
          std::min<std::size_t>(error.byte ? error.byte - 1 : 0, source_.text().size());
      diags_.report("manifest"_rule, source_.place(static_cast<std::uint32_t>(offset)),
                    parse_complaint(error.what()));
      return diags_;
    } catch (const Json::out_of_range& error) {  // of a number like 1e999; it names it in quotes
      const std::string_view what = error.what();
      const std::size_t quote = what.find('\'') + 1;
      const std::size_t at = source_.text().find(what.substr(quote, what.rfind('\'') - quote));
      diags_.report("manifest"_rule,
                    source_.place(at < source_.text().size() ? static_cast<std::uint32_t>(at) : 0),
                    parse_complaint(error.what()));
      return diags_;
    }
    Manifest manifest;
    if (!root.is_object()) fail("the manifest", "an object", &root);
    else read_fields(root, manifest);
    if (!diags_.ok()) return diags_;
    return manifest;
  }

 private:
  void read_fields(const Json& root, Manifest& manifest) {
    known_fields(
        root, "",
        {"ptx", "kernel", "grid", "block", "dynamic_shared", "cluster", "hardware", "params"});
    if (const auto file = text(root, "ptx", "ptx")) {
      auto source = read_source((folder_ / *file).string());
      if (source) manifest.ptx = std::move(*source);
      else diags_.append(source.diags());
    }
    if (const auto kernel = text(root, "kernel", "kernel")) manifest.kernel = *kernel;
    manifest.launch.grid = extents(root, "grid", detail::largest_grid);
    manifest.launch.block = extents(root, "block", detail::largest_block);
    if (manifest.launch.block.count() > detail::most_threads)
      fail("block", fmt::format("at most {} threads", detail::most_threads), &root["block"]);
    if (const Json* field = find(root, "dynamic_shared"))
      manifest.launch.dynamic_shared = static_cast<std::uint32_t>(
          whole(*field, "dynamic_shared", 0, most_dynamic_shared()).value_or(0));
    if (find(root, "cluster"))
      manifest.launch.cluster =
          extents(root, "cluster", {detail::most_blocks, detail::most_blocks, detail::most_blocks});
    read_hardware(root, manifest);
    read_params(root, manifest);
  }

  void read_hardware(const Json& root, Manifest& manifest) {
    const Json* field = find(root, "hardware");
    if (!field) return;
    if (!field->is_string() || !Arch::parse(field->get<std::string>()))
      return fail("hardware", "an architecture such as \"sm_90\"", field);
    manifest.hardware = field->get<std::string>();
  }

  void read_params(const Json& root, Manifest& manifest) {
    const Json* params = find(root, "params");
    if (!params || !params->is_array()) return fail("params", "an array", params);
    for (std::size_t i = 0; i < params->size(); ++i) {
      const std::string path = fmt::format("params[{}]", i);
      ManifestParam param = read_param((*params)[i], path);
      if (param.buffer) check_name(manifest, *param.buffer, path);
      manifest.params.push_back(std::move(param));
    }
  }

  void check_name(const Manifest& manifest, const ManifestBuffer& buffer, const std::string& path) {
    for (std::size_t i = 0; i < manifest.params.size(); ++i)
      if (const auto& other = manifest.params[i].buffer;
          other && !buffer.name.empty() && other->name == buffer.name)
        report(path + ".buffer", fmt::format("params[{}] is called {} too", i, buffer.name));
  }

  ManifestParam read_param(const Json& param, const std::string& path) {
    if (param.is_object() && param.contains("buffer")) return {.buffer = read_buffer(param, path)};
    if (!param.is_object() || param.size() != 1) {
      fail(path, "a buffer, or one of u32, s32, u64, s64, f32, f64", &param);
      return {};
    }
    return {.scalar = read_scalar(param.begin().key(), param.begin().value(), path)};
  }

  std::vector<std::byte> read_scalar(const std::string& key, const Json& value,
                                     const std::string& path) {
    const std::string field = path + "." + key;
    if (key == "u32") return integer<std::uint32_t>(value, field);
    if (key == "s32") return integer<std::int32_t>(value, field);
    if (key == "u64") return integer<std::uint64_t>(value, field);
    if (key == "s64") return integer<std::int64_t>(value, field);
    if (key == "f32") return real<float>(value, field);
    if (key == "f64") return real<double>(value, field);
    fail(field, "one of buffer, u32, s32, u64, s64, f32, f64 as the field's name", &value);
    return {};
  }

  template <typename T>
  std::vector<std::byte> integer(const Json& value, const std::string& path) {
    constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    const bool fits = value.is_number_unsigned()
                          ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                          : value.is_number_integer() &&
                                std::cmp_greater_equal(value.get<std::int64_t>(), least) &&
                                std::cmp_less_equal(value.get<std::int64_t>(), most);
    if (fits) return bytes_of(value.get<T>());
    fail(path, fmt::format("a whole number from {} to {}", least, most), &value);
    return {};
  }

  template <typename T>
  std::vector<std::byte> real(const Json& value, const std::string& path) {
    if (value.is_number() && std::fabs(value.get<double>()) <= std::numeric_limits<T>::max())
      return bytes_of(static_cast<T>(value.get<double>()));
    fail(path, fmt::format("a number of at most {}", std::numeric_limits<T>::max()), &value);
    return {};
  }

  ManifestBuffer read_buffer(const Json& param, const std::string& path) {
    known_fields(param, path, {"buffer", "file", "bytes", "fill", "expect", "compare"});
    ManifestBuffer buffer;
    buffer.name = text(param, "buffer", path + ".buffer").value_or("");
    read_contents(param, path, buffer);
    read_expectation(param, path, buffer);
    return buffer;
  }

  void read_contents(const Json& param, const std::string& path, ManifestBuffer& buffer) {
    const Json *file = find(param, "file"), *bytes = find(param, "bytes");
    if (!file == !bytes) return fail(path, "either a file or bytes", &param);
    if (const Json* fill = find(param, "fill")) {
      if (file) report(path + ".fill", "goes with bytes, not with a file");
      buffer.fill = static_cast<std::uint8_t>(whole(*fill, path + ".fill", 0, 255).value_or(0));
    }
    if (bytes) {
      buffer.size = whole(*bytes, path + ".bytes", 1, most_bytes).value_or(0);
    } else if (auto contents = data(param, "file", path + ".file")) {
      buffer.size = contents->size();
      buffer.contents = std::move(*contents);
    }
  }

  void read_expectation(const Json& param, const std::string& path, ManifestBuffer& buffer) {
    const Json *expect = find(param, "expect"), *compare = find(param, "compare");
    if (compare && !expect) report(path + ".compare", "there is no expect to compare with");
    if (compare) buffer.comparison = read_comparison(*compare, path + ".compare");
    if (!expect) return;
    buffer.expect = data(param, "expect", path + ".expect");
    if (!buffer.expect || buffer.size == 0) return;  // said already
    if (buffer.expect->size() != buffer.size)
      return report(path + ".expect",
                    fmt::format("{} has {} bytes, buffer {} has {}", shown(*expect),
                                buffer.expect->size(), buffer.name, buffer.size));
    if (const std::size_t element = buffer.comparison.element_bytes(); buffer.size % element != 0)
      report(path + ".compare", fmt::format("{} bytes are not a whole number of {}-byte elements",
                                            buffer.size, element));
  }

  Comparison read_comparison(const Json& compare, const std::string& path) {
    Comparison comparison;
    if (compare == "bits") return comparison;
    if (!compare.is_object()) {
      fail(path, "\"bits\" or an object with type, max_rel and max_abs", &compare);
      return comparison;
    }
    known_fields(compare, path, {"type", "max_rel", "max_abs"});
    if (const auto name = text(compare, "type", path + ".type")) {
      const auto type = parse_type(*name);
      if (type && Comparison::takes(*type)) comparison.type = *type;
      else
        fail(path + ".type", "an element type such as f32, f16, bf16, f64 or s32",
             find(compare, "type"));
    }
    comparison.max_rel = tolerance(compare, "max_rel", path);
    comparison.max_abs = tolerance(compare, "max_abs", path);
    return comparison;
  }

  double tolerance(const Json& compare, const char* key, const std::string& path) {
    const Json* field = find(compare, key);
    if (!field) return 0;
    if (field->is_number() && field->get<double>() >= 0) return field->get<double>();
    fail(fmt::format("{}.{}", path, key), "a number of at least 0", field);
    return 0;
  }

  Dim3 extents(const Json& root, const char* key, const Dim3& largest) {
    const Json* field = find(root, key);
    Dim3 result;
    if (!field || !field->is_array() || field->empty() || field->size() > 3) {
      fail(key, "an array of one to three whole numbers", field);
      return result;
    }
    std::uint32_t* const to[] = {&result.x, &result.y, &result.z};
    const std::uint32_t most[] = {largest.x, largest.y, largest.z};
    for (std::size_t i = 0; i < field->size(); ++i)
      *to[i] = static_cast<std::uint32_t>(
          whole((*field)[i], fmt::format("{}[{}]", key, i), 1, most[i]).value_or(1));
    return result;
  }

  std::optional<std::uint64_t> whole(const Json& value, const std::string& path,
                                     std::uint64_t least, std::uint64_t most) {
    if (value.is_number_unsigned()) {
      const auto number = value.get<std::uint64_t>();
      if (number >= least && number <= most) return number;
    }
    fail(path, fmt::format("a whole number from {} to {}", least, most), &value);
    return std::nullopt;
  }

  std::optional<std::string> text(const Json& object, const char* key, const std::string& path) {
    const Json* field = find(object, key);
    if (field && field->is_string() && !field->get_ref<const std::string&>().empty())
      return field->get<std::string>();
    fail(path, "a text", field);
    return std::nullopt;
  }

  // The bytes of the file that a field names.
  std::optional<std::vector<std::byte>> data(const Json& object, const char* key,
                                             const std::string& path) {
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
    if (size == 0) return refuse("it is empty");
    if (size > most_bytes) return refuse(fmt::format("it is larger than {} bytes", most_bytes));
    std::vector<std::byte> bytes(size);
    errno = 0;
    std::ifstream in(file, std::ios::binary);
    in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
    if (!in) return refuse(errno ? std::strerror(errno) : "it ends early");
    return bytes;
  }

  static const Json* find(const Json& object, const char* key) {
    const auto it = object.find(key);
    return it == object.end() ? nullptr : &*it;
  }

  void known_fields(const Json& object, const std::string& path,
                    const std::vector<std::string_view>& known) {
    for (const auto& [key, value] : object.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        report(path.empty() ? key : path + "." + key,
               fmt::format("there is no such field: expected {}", fmt::join(known, ", ")));
  }

  void fail(const std::string& path, std::string_view expected, const Json* found) {
    report(path, fmt::format("expected {}, found {}", expected, found ? shown(*found) : "nothing"));
  }

  void report(const std::string& path, std::string_view message) {
    diags_.report("manifest"_rule, {source_.name(), 0, 0}, fmt::format("{}: {}", path, message));
  }

  const Source& source_;
  std::filesystem::path folder_;
  Diags diags_;
};

}  // namespace

Result<Manifest> read_manifest(const std::string& path) {
  const auto source = read_source(path);
  if (!source) return source.diags();
  return parse_manifest(*source);
}

Result<Manifest> parse_manifest(const Source& source) { return Reader(source).read(); }

}  // namespace tartan
