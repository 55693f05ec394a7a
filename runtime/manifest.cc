// SPDX-License-Identifier: Apache-2.0
#include "runtime/manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "compiler/support/json_text.h"
#include "compiler/support/regular_file.h"
#include "runtime/element.h"
#include "runtime/engine.h"
#include "runtime/manifest_buffers.h"
#include "runtime/references.h"

namespace tartan::TARTAN_ABI {
namespace {

using detail::Json;
using detail::most_bytes;
using detail::shown;

constexpr std::uint64_t most_struct = 32764;  // bytes: the parameter space of a kernel

constexpr std::uint32_t most_dynamic_shared() {
  int most = 0;
  for (const ArchRow& row : archs) most = std::max(most, row.shared_bytes);
  return static_cast<std::uint32_t>(most);
}

// The message of nlohmann_json after its own prefix: "[json.exception.parse_error.101] parse error
// at line 3, column 2: ", or "[json.exception.out_of_range.406] ".
std::string parse_complaint(std::string_view text) {
  const std::size_t column = text.find("column ");
  const std::size_t end =
      column == std::string_view::npos ? text.find("] ") : text.find(": ", column);
  return std::string(end == std::string_view::npos ? text : text.substr(end + 2));
}

class Reader : private detail::ManifestBuffers {
 public:
  Reader(const Source& source, std::optional<Source> ptx)
      : ManifestBuffers(source), ptx_(std::move(ptx)) {}

  Result<Manifest> read() {
    if (const auto at = nested_too_deep(source_.text())) {
      diags_.report(
          "manifest"_rule, source_.place(static_cast<std::uint32_t>(*at)),
          fmt::format("nested too deep: expected at most {} brackets", most_json_nesting));
      return diags_;
    }
    Json root;
    try {
      root = Json::parse(source_.text());
    } catch (const Json::parse_error& error) {
      const auto offset =
          std::min<std::size_t>(error.byte ? error.byte - 1 : 0, source_.text().size());
      diags_.report("manifest"_rule, source_.place(static_cast<std::uint32_t>(offset)),
                    parse_complaint(error.what()));
      return diags_;
    } catch (const Json::out_of_range& error) {  // of a number like 1e999, which it quotes
      const std::string_view what = error.what();
      const std::size_t quote = what.find('\'') + 1;
      const std::size_t at = source_.text().find(what.substr(quote, what.rfind('\'') - quote));
      diags_.report("manifest"_rule,
                    source_.place(at < source_.text().size() ? static_cast<std::uint32_t>(at) : 0),
                    parse_complaint(error.what()));
      return diags_;
    }
    Manifest manifest{.name = source_.name()};
    if (!root.is_object()) fail("the manifest", "an object", &root);
    else read_fields(root, manifest);
    if (!diags_.ok()) return diags_;
    return manifest;
  }

 private:
  // A file has no terminator: load() takes one of texts in memory.
  void take_ptx(Source source, Manifest& manifest) {
    if (source.text().ends_with('\0'))
      diags_.report("encoding"_rule,
                    source.place(static_cast<std::uint32_t>(source.text().size() - 1)),
                    "the text contains a zero byte: expected its end, without a terminator");
    manifest.ptx = std::move(source);
  }

  void read_fields(const Json& root, Manifest& manifest) {
    std::vector<std::string_view> fields(std::begin(of_launch), std::end(of_launch));
    fields.insert(fields.end(), {"ptx", "hardware", "buffers", "then", "reference"});
    known_fields(root, "", fields);
    if (ptx_) {
      take_ptx(std::move(*ptx_), manifest);
    } else if (const auto file = text(root, "ptx", "ptx")) {
      auto source = detail::read_regular_file((folder_ / *file).string());
      if (source) take_ptx(std::move(*source), manifest);
      else diags_.append(source.diags());
    }
    if (const auto kernel = text(root, "kernel", "kernel")) manifest.kernel = *kernel;
    manifest.launch = read_launch(root, "");
    read_hardware(root, manifest);
    referenced_ = find(root, "reference");
    manifest.params = read_params(root, "");
    read_then(root, manifest);
    read_buffers(root, manifest);
    check_names(manifest);
    read_references(root, manifest);
    check_references(manifest.params, "");
    for (std::size_t i = 0; i < manifest.then.size(); ++i)
      check_references(manifest.then[i].params, fmt::format("then[{}].", i));
  }

  static constexpr std::string_view of_launch[] = {"kernel",         "grid",    "block",
                                                   "dynamic_shared", "cluster", "cooperative",
                                                   "programmatic",   "params"};

  // `within`: what the paths of its fields begin with, "then[0]." or nothing.
  Launch read_launch(const Json& object, const std::string& within) {
    Launch out;
    out.grid = extents(object, "grid", within, detail::largest_grid);
    out.block = extents(object, "block", within, detail::largest_block);
    if (out.block.count() > detail::most_threads)
      fail(within + "block", fmt::format("at most {} threads", detail::most_threads),
           find(object, "block"));
    if (const Json* field = find(object, "dynamic_shared"))
      out.dynamic_shared = static_cast<std::uint32_t>(
          whole(*field, within + "dynamic_shared", 0, most_dynamic_shared()).value_or(0));
    if (find(object, "cluster"))
      out.cluster = extents(object, "cluster", within,
                            {detail::most_blocks, detail::most_blocks, detail::most_blocks});
    if (find(object, "cooperative")) out.cooperative = flag(object, "cooperative", within);
    if (find(object, "programmatic")) out.programmatic = flag(object, "programmatic", within);
    return out;
  }

  // A formula, or an array of them.
  void read_references(const Json& root, Manifest& manifest) {
    const Json* field = find(root, "reference");
    const auto add = [&](const Json& formula, const std::string& path) {
      if (formula.is_string()) manifest.references.push_back(formula.get<std::string>());
      else fail(path, "a formula such as \"C = A * B\"", &formula);
    };
    if (field && field->is_array())
      for (std::size_t i = 0; i < field->size(); ++i)
        add((*field)[i], fmt::format("reference[{}]", i));
    else if (field) add(*field, "reference");
    const std::vector<std::string> outputs =
        diags_.ok() ? reference_outputs(manifest, diags_) : std::vector<std::string>();
    if (!diags_.ok() || manifest.references.empty()) return;
    for (const ManifestBuffer* each : manifest.all_buffers()) {
      const bool referenced = std::ranges::find(outputs, each->name) != outputs.end();
      const std::string& path = paths_.at(each->name);
      if (each->compared && !each->expect && !referenced)
        report(path + ".compare", "there is neither expect nor reference to compare with");
      if (each->expect && referenced)
        report(path + ".expect", "a reference says what is expected, too");
    }
  }

  void read_then(const Json& root, Manifest& manifest) {
    const Json* then = find(root, "then");
    if (!then) return;
    if (!then->is_array()) return fail("then", "an array", then);
    for (std::size_t i = 0; i < then->size(); ++i) {
      const Json& one = (*then)[i];
      const std::string path = fmt::format("then[{}]", i), within = path + ".";
      if (!one.is_object()) {
        fail(path, "a launch", &one);
        continue;
      }
      known_fields(one, path, {std::begin(of_launch), std::end(of_launch)});
      ManifestLaunch& launch = manifest.then.emplace_back();
      launch.kernel = text(one, "kernel", within + "kernel").value_or("");
      launch.launch = read_launch(one, within);
      launch.params = read_params(one, within);
    }
  }

  void read_hardware(const Json& root, Manifest& manifest) {
    const Json* field = find(root, "hardware");
    if (!field) return;
    if (!field->is_string() || !Arch::parse(field->get<std::string>()))
      return fail("hardware", "an architecture such as \"sm_90\"", field);
    manifest.hardware = field->get<std::string>();
  }

  std::vector<ManifestParam> read_params(const Json& object, const std::string& within) {
    std::vector<ManifestParam> out;
    const Json* params = find(object, "params");
    if (!params || !params->is_array()) return fail(within + "params", "an array", params), out;
    for (std::size_t i = 0; i < params->size(); ++i)
      out.push_back(read_param((*params)[i], fmt::format("{}params[{}]", within, i)));
    return out;
  }

  void read_buffers(const Json& root, Manifest& manifest) {
    const Json* buffers = find(root, "buffers");
    if (!buffers) return;
    if (!buffers->is_array()) return fail("buffers", "an array", buffers);
    for (std::size_t i = 0; i < buffers->size(); ++i) {
      const std::string path = fmt::format("buffers[{}]", i);
      const Json& one = (*buffers)[i];
      if (!one.is_object()) {
        fail(path, "a buffer", &one);
        continue;
      }
      manifest.buffers.push_back(read_buffer(one, path));
    }
  }

  // Each buffer's name is its own, and a scalar's in its launch: formulas have both.
  void check_names(const Manifest& manifest) {
    const auto add = [&](const ManifestBuffer& buffer, const std::string& path) {
      const auto [other, fresh] = paths_.try_emplace(buffer.name, path);
      if (!fresh && !buffer.name.empty())
        report(path + ".buffer",
               fmt::format("duplicate name: {} is also called {}", other->second, buffer.name));
      named_.try_emplace(buffer.name, &buffer);
    };
    const auto add_params = [&](const std::vector<ManifestParam>& params,
                                const std::string& within) {
      std::unordered_map<std::string_view, std::size_t> names;
      for (std::size_t i = 0; i < params.size(); ++i) {
        const std::string path = fmt::format("{}params[{}]", within, i);
        if (params[i].buffer) add(*params[i].buffer, path);
        const std::string& name = params[i].buffer ? params[i].buffer->name : params[i].name;
        const auto [other, fresh] = names.try_emplace(name, i);
        if (fresh || name.empty() || (params[i].buffer && params[other->second].buffer)) continue;
        report(path + (params[i].buffer ? ".buffer" : ".name"),
               fmt::format("duplicate name: {}params[{}] is also called {}", within, other->second,
                           name));
      }
    };
    add_params(manifest.params, "");
    for (std::size_t i = 0; i < manifest.then.size(); ++i)
      add_params(manifest.then[i].params, fmt::format("then[{}].", i));
    for (std::size_t i = 0; i < manifest.buffers.size(); ++i)
      add(manifest.buffers[i], fmt::format("buffers[{}]", i));
  }

  ManifestParam read_param(const Json& param, const std::string& path) {
    if (param.is_object() && param.contains("buffer")) return {.buffer = read_buffer(param, path)};
    if (param.is_object() && param.contains("struct")) return read_struct(param, path);
    return read_value(param, path);
  }

  // {"struct": 384, "file": "params.bin", "fields": [{"at": 8, "u32": 5}, ...]}
  ManifestParam read_struct(const Json& param, const std::string& path) {
    known_fields(param, path, {"struct", "file", "fields"});
    ManifestParam out;
    const auto bytes = whole(param["struct"], path + ".struct", 1, most_struct);
    if (!bytes) return out;
    out.scalar.resize(*bytes);
    if (find(param, "file"))
      if (auto contents = data(param, "file", path + ".file")) {
        if (contents->size() != *bytes)
          report(path + ".file",
                 fmt::format("expected {} bytes, found {}", *bytes, contents->size()));
        else out.scalar = std::move(*contents);
      }
    if (const Json* fields = find(param, "fields")) read_members(*fields, path + ".fields", out);
    return out;
  }

  // Checks that buffers named by maps and addresses exist and are large enough.
  void check_references(std::vector<ManifestParam>& params, const std::string& within) {
    for (std::size_t i = 0; i < params.size(); ++i)
      check_references(params[i], fmt::format("{}params[{}]", within, i));
  }

  void check_references(ManifestParam& param, const std::string& path) {
    if (param.tensor_map) check_inside(*param.tensor_map, path);
    for (std::size_t i = 0; i < param.members.size(); ++i) {
      ManifestMember& member = param.members[i];
      const std::string place =
          param.is_struct ? fmt::format("{}.fields[{}]", path, member.field) : path;
      if (member.tensor_map) check_inside(*member.tensor_map, place);
      else check_address(member, place);
    }
  }

  const ManifestBuffer* named(const std::string& name, const std::string& path) {
    const auto found = named_.find(name);
    if (found != named_.end()) return found->second;
    report(path, fmt::format("unknown buffer {}: expected one of params or buffers", name));
    return nullptr;
  }

  void check_address(const ManifestMember& member, const std::string& path) {
    if (member.buffer.empty() || !diags_.ok()) return;  // reported already
    const ManifestBuffer* buffer = named(member.buffer, path + ".address");
    if (buffer && member.offset > buffer->size)
      report(path + ".offset", fmt::format("{} is beyond the end of buffer {}, which has {} bytes",
                                           member.offset, buffer->name, buffer->size));
  }

  // The map of all elements of a buffer. False: reported.
  bool take_elements(ManifestTensorMap& map, const ManifestBuffer& buffer,
                     const std::string& path) {
    if (buffer.type == Type::none) {
      report(path + ".extents", fmt::format("expected an array of whole numbers, or a type and "
                                            "shape of buffer {}",
                                            buffer.name));
      return false;
    }
    const std::vector<std::uint64_t> shape = buffer.extents();
    map.map.extents.assign(shape.rbegin(), shape.rend());
    std::uint64_t stride = element_size(buffer.type);
    for (std::size_t i = 0; i + 1 < map.map.extents.size(); ++i)
      map.map.strides.push_back(stride *= map.map.extents[i]);
    if (map.map.type == Type::none) map.map.type = detail::type_of_map(buffer.type);
    return check_map(map.map, path);
  }

  // Checks that the tensor is inside its buffer.
  void check_inside(ManifestTensorMap& map, const std::string& path) {
    if (map.buffer.empty() || !diags_.ok()) return;  // reported already
    const ManifestBuffer* buffer = named(map.buffer, path + ".tensor_map");
    if (!buffer || (map.whole && !take_elements(map, *buffer, path))) return;
    const auto element = static_cast<std::uint64_t>(bits(map.map.type) / 8);
    std::uint64_t left = buffer->size;
    const auto take = [&](std::uint64_t count, std::uint64_t bytes) {
      if (bytes != 0 && count > left / bytes) return false;
      left -= count * bytes;
      return true;
    };
    bool inside = take(map.offset, 1) && take(map.map.extents[0], element);
    for (std::size_t i = 0; i < map.map.strides.size() && inside; ++i)
      inside = take(map.map.extents[i + 1] - 1, map.map.strides[i]);
    if (!inside)
      report(path + ".extents",
             fmt::format("the tensor extends beyond the end of buffer {}, which has {} bytes",
                         buffer->name, buffer->size));
  }

  Dim3 extents(const Json& object, const char* key, const std::string& within,
               const Dim3& largest) {
    const Json* field = find(object, key);
    Dim3 result;
    if (!field || !field->is_array() || field->empty() || field->size() > 3) {
      fail(within + key, "an array of one to three whole numbers", field);
      return result;
    }
    std::uint32_t* const to[] = {&result.x, &result.y, &result.z};
    const std::uint32_t most[] = {largest.x, largest.y, largest.z};
    for (std::size_t i = 0; i < field->size(); ++i)
      *to[i] = static_cast<std::uint32_t>(
          whole((*field)[i], fmt::format("{}{}[{}]", within, key, i), 1, most[i]).value_or(1));
    return result;
  }

  std::optional<Source> ptx_;                                          // in place of the file
  std::unordered_map<std::string_view, const ManifestBuffer*> named_;  // all buffers
  std::unordered_map<std::string_view, std::string> paths_;            // where they are
};

}  // namespace

std::vector<std::uint64_t> ManifestBuffer::extents() const {
  if (!shape.empty()) return shape;
  return {size / std::max<std::size_t>(element_size(type), 1)};
}

std::vector<const ManifestBuffer*> Manifest::all_buffers() const {
  std::vector<const ManifestBuffer*> out;
  const auto add = [&](const std::vector<ManifestParam>& of) {
    for (const ManifestParam& param : of)
      if (param.buffer) out.push_back(&*param.buffer);
  };
  add(params);
  for (const ManifestLaunch& each : then) add(each.params);
  for (const ManifestBuffer& buffer : buffers) out.push_back(&buffer);
  return out;
}

Result<Manifest> read_manifest(const std::string& path) {
  const auto source = read_source(path);
  if (!source) return source.diags();
  return parse_manifest(*source);
}

Result<Manifest> parse_manifest(const Source& source, std::optional<Source> ptx) {
  try {
    return Reader(source, std::move(ptx)).read();
  } catch (const std::bad_alloc&) {
    return Diags::one("out-of-memory"_rule, {source.name(), 0, 0},
                      "the manifest and its files do not fit in memory");
  }
}

}  // namespace tartan::TARTAN_ABI
