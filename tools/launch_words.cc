// SPDX-License-Identifier: Apache-2.0
#include "tools/launch_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

#include "compiler/support/counted.h"
#include "compiler/support/json_text.h"
#include "tartan/ptx/parser.h"
#include "tools/argument_words.h"
#include "tools/cuda_tools.h"
#include "tools/kernel_signature.h"

namespace tartan::tools {
namespace {

namespace fs = std::filesystem;

Diags usage(std::string message) { return Diags::one("usage"_rule, {}, std::move(message)); }

// What a manifest is, by its name or its first letter.
bool is_manifest(const Source& source) {
  if (source.name().ends_with(".json")) return true;
  std::string_view text = source.text();
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && (text[at] == '{' || text[at] == '[');
}

// "NAME=VALUE", where NAME is one; else the value alone.
struct NamedWord {
  std::string name, value;
};

bool is_name(std::string_view text) {
  constexpr std::string_view beside_letters = "_$%";
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           beside_letters.find(c) != std::string_view::npos;
  });
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

NamedWord named(const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string_view name = std::string_view(word).substr(0, std::min(equals, word.size()));
  const bool numbered = name.starts_with('#') && is_number(name.substr(1));
  if (equals == std::string::npos || !(numbered || is_name(name))) return {"", word};
  return {std::string(name), word.substr(equals + 1)};
}

// One field on a line, and one parameter.
std::string text_of(const Json& json) {
  const auto shown = [](const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::vector<std::string> fields;
  for (const auto& [key, value] : json.items()) {
    std::vector<std::string> items;
    if (value.is_array() && !value.empty() && value[0].is_object())
      for (const Json& each : value) items.push_back("    " + shown(each));
    fields.push_back(fmt::format(
        "  {}: {}", shown(key),
        items.empty() ? shown(value) : fmt::format("[\n{}\n  ]", fmt::join(items, ",\n"))));
  }
  return fmt::format("{{\n{}\n}}\n", fmt::join(fields, ",\n"));
}

// Builds the manifest of a kernel in PTX.
class Launch {
 public:
  Launch(const LaunchWords& words, const LaunchPlace& place, LaunchText& out)
      : words_(words), place_(place), out_(out), context_{place.folder} {}

  Result<Json> of_ptx() {
    auto shared = std::make_shared<const Source>(*out_.ptx);
    const ptx::Module module = ptx::parse(shared, diags_);
    if (!diags_.ok()) return diags_;
    const auto kernel = find_kernel(module, words_.kernel);
    if (!kernel) return kernel.diags();
    json_ = {{"ptx", place_.ptx.empty() ? words_.file : place_.ptx}, {"kernel", kernel->ptx_name}};
    add_shape(*kernel);
    if (!place_.hardware.empty()) json_["hardware"] = place_.hardware;
    add_arguments(*kernel);
    return finished();
  }

  // Of a manifest; without words the text stays as it is, and so do the places of its mistakes.
  Result<std::string> of_manifest(const Source& source) {
    refuse_launch();
    if (!diags_.ok()) return diags_;
    const bool readable = !nested_too_deep(source.text());
    if (has_results() && readable) json_ = Json::parse(source.text(), nullptr, false);
    if (!json_.is_object()) return std::string(source.text());
    const fs::path folder = fs::path(source.name()).parent_path();
    context_.folder = folder.empty() ? "." : folder.string();
    const auto json = finished();
    if (!json) return json.diags();
    return text_of(*json);
  }

 private:
  bool has_results() const {
    return !words_.saves.empty() || !words_.prints.empty() || !words_.expects.empty() ||
           !words_.references.empty() || words_.max_rel || words_.max_abs;
  }

  void refuse_launch() {
    const auto refuse = [&](bool given, const char* option) {
      if (given)
        diags_.append(
            usage(fmt::format("{}: {} is a manifest, which says it; expected PTX or CUDA "
                              "C++",
                              option, words_.file)));
    };
    refuse(!words_.kernel.empty(), "--kernel");
    refuse(!words_.grid.empty(), "--grid");
    refuse(!words_.block.empty(), "--block");
    refuse(!words_.cluster.empty(), "--cluster");
    refuse(words_.dynamic_shared > 0, "--dynamic-shared");
    refuse(words_.cooperative, "--cooperative");
    refuse(!words_.arguments.empty(), "--arg");
    refuse(!words_.nvcc.empty(), "--nvcc");
  }

  Result<Json> finished() {
    add_results();
    if (!diags_.ok()) return diags_;
    return std::move(json_);
  }

  void wrong(std::string message) { diags_.append(usage(std::move(message))); }
  void from(std::string path, std::string words) {
    out_.places.emplace_back(std::move(path), std::move(words));
  }

  // ---- The launch.

  void add_shape(const KernelSignature& kernel) {
    extents("grid", "--grid", words_.grid);
    if (words_.block.empty() && kernel.block.x > 0)
      json_["block"] = {kernel.block.x, kernel.block.y, kernel.block.z};
    else extents("block", "--block", words_.block);
    if (!words_.cluster.empty()) extents("cluster", "--cluster", words_.cluster);
    if (words_.dynamic_shared) {
      json_["dynamic_shared"] = words_.dynamic_shared;
      from("dynamic_shared", fmt::format("--dynamic-shared {}", words_.dynamic_shared));
    }
    if (words_.cooperative) json_["cooperative"] = true;
  }

  void extents(const char* field, const char* option, const std::string& text) {
    from(field, fmt::format("{} {}", option, text));
    const auto read = extents_of(text);
    if (read && read->size() <= 3) json_[field] = *read;
    else if (text.empty() && blank()) json_[field] = {1};
    else if (text.empty())
      wrong(fmt::format("{} is required: the number of {}, such as {} 64 or {} 8x8", option,
                        std::string_view(field) == "grid" ? "thread blocks" : "threads in a block",
                        option, option));
    else
      wrong(fmt::format("{} {}: expected one to three numbers from 1 on, such as 64 or 8x8", option,
                        text));
  }

  // ---- Arguments.

  bool blank() const { return place_.blanks && words_.arguments.empty(); }

  void add_arguments(const KernelSignature& kernel) {
    const std::size_t count = kernel.parameters.size();
    Json params = Json::array();
    if (blank()) {
      for (const KernelParameter& each : kernel.parameters) params.push_back(blank_parameter(each));
      json_["params"] = std::move(params);
      return;
    }
    std::vector<std::optional<std::size_t>> given(count);  // the number of its --arg
    if (!place_arguments(kernel, given)) return;
    for (std::size_t i = 0; i < count; ++i) params.push_back(parameter(kernel, i, *given[i]));
    json_["params"] = std::move(params);
  }

  // Named parameters first; the others in their order.
  bool place_arguments(const KernelSignature& kernel,
                       std::vector<std::optional<std::size_t>>& given) {
    std::vector<std::size_t> in_order;
    for (std::size_t i = 0; i < words_.arguments.size(); ++i) {
      const auto at = place_of(kernel, named(words_.arguments[i]).name);
      if (!at) {
        in_order.push_back(i);
      } else if (*at >= given.size()) {
        wrong(fmt::format("--arg {}: the kernel has {}, numbered from 0: {}", words_.arguments[i],
                          detail::counted(given.size(), "parameter"), kernel.text()));
      } else if (given[*at]) {
        wrong(fmt::format("--arg {}: parameter {} has an argument already, {}", words_.arguments[i],
                          kernel.parameters[*at].name, words_.arguments[*given[*at]]));
      } else {
        given[*at] = i;
      }
    }
    if (!diags_.ok()) return false;
    std::size_t next = 0;
    for (const std::size_t i : in_order) {
      while (next < given.size() && given[next]) ++next;
      if (next < given.size()) given[next] = i;
      else ++next;
    }
    const bool all = std::ranges::all_of(given, [](const auto& each) { return each.has_value(); });
    if (all && words_.arguments.size() == given.size()) return true;
    wrong(fmt::format("kernel {} takes {}, found {} --arg: {}", kernel.name,
                      detail::counted(given.size(), "argument"), words_.arguments.size(),
                      kernel.text()));
    return false;
  }

  static std::optional<std::size_t> place_of(const KernelSignature& kernel,
                                             const std::string& name) {
    if (name.starts_with('#')) {
      std::size_t out = std::numeric_limits<std::size_t>::max();
      std::from_chars(name.data() + 1, name.data() + name.size(), out);
      return out;
    }
    for (std::size_t i = 0; i < kernel.parameters.size() && !name.empty(); ++i)
      if (kernel.parameters[i].name == name || kernel.parameters[i].ptx_name == name) return i;
    return std::nullopt;
  }

  Json parameter(const KernelSignature& kernel, std::size_t at, std::size_t argument) {
    const std::string words = "--arg " + words_.arguments[argument];
    const NamedWord word = named(words_.arguments[argument]);
    const bool has_name = !word.name.empty() && !word.name.starts_with('#') &&
                          word.name != kernel.parameters[at].ptx_name;
    auto out =
        parameter_json(kernel.parameters[at], has_name ? word.name : kernel.parameters[at].name,
                       word.value, words, context_);
    from(fmt::format("params[{}]", at), words);
    if (out) return std::move(*out);
    diags_.append(out.diags());
    return {};
  }

  // ---- Results.

  void add_results() {
    for (const std::string& each : words_.saves) add_file("--save", "save", each);
    for (const std::string& each : words_.expects) {
      add_file("--expect", "expect", each);
      if (auto* buffer = find(named(each).name)) add_tolerance(*buffer);
    }
    for (const std::string& each : words_.prints) add_print(each);
    add_references();
    if ((words_.max_rel || words_.max_abs) && words_.expects.empty() && words_.references.empty())
      wrong("--max-rel and --max-abs require --expect or --reference");
  }

  // The arrays of the manifest, with the paths of their fields.
  std::vector<std::pair<std::string, Json*>> buffers() {
    std::vector<std::pair<std::string, Json*>> out;
    const auto add = [&](Json& object, const char* key, const std::string& within) {
      if (!object.is_object() || !object.contains(key) || !object[key].is_array()) return;
      for (std::size_t i = 0; i < object[key].size(); ++i)
        if (Json& each = object[key][i]; each.is_object() && each.contains("buffer"))
          out.emplace_back(fmt::format("{}{}[{}]", within, key, i), &each);
    };
    add(json_, "params", "");
    if (json_.contains("then") && json_["then"].is_array())
      for (std::size_t i = 0; i < json_["then"].size(); ++i)
        add(json_["then"][i], "params", fmt::format("then[{}].", i));
    add(json_, "buffers", "");
    return out;
  }

  Json* find(const std::string& name, std::string* path = nullptr) {
    for (const auto& [where, buffer] : buffers()) {
      if ((*buffer)["buffer"] != name) continue;
      if (path) *path = where;
      return buffer;
    }
    return nullptr;
  }

  std::string names() {
    std::vector<std::string> out;
    for (const auto& each : buffers())
      if ((*each.second)["buffer"].is_string()) out.push_back((*each.second)["buffer"]);
    return out.empty() ? "none" : fmt::format("{}", fmt::join(out, ", "));
  }

  void add_file(const char* option, const char* field, const std::string& word) {
    const NamedWord split = named(word);
    if (split.name.empty() || split.value.empty())
      return wrong(fmt::format("{} {}: expected NAME=FILE", option, word));
    std::string path;
    Json* const buffer = find(split.name, &path);
    if (!buffer) return no_buffer(fmt::format("{} {}", option, word), split.name);
    (*buffer)[field] = file_name(context_, split.value);
    from(fmt::format("{}.{}", path, field), fmt::format("{} {}", option, word));
  }

  void no_buffer(const std::string& words, const std::string& name) {
    if (diags_.ok())  // else arguments may be missing
      wrong(fmt::format("{}: no array is called {}: expected one of {}", words, name, names()));
  }

  void add_print(const std::string& word) {
    const std::size_t bracket = word.find('[');
    const std::string name = word.substr(0, bracket);
    if (bracket != std::string::npos && !word.ends_with(']'))
      return wrong(fmt::format("--print {}: expected NAME or NAME[0:4,0:8]", word));
    std::string part =
        bracket == std::string::npos ? ":" : word.substr(bracket + 1, word.size() - bracket - 2);
    std::string path;
    Json* const buffer = find(name, &path);
    if (!buffer) return no_buffer("--print " + word, name);
    Json& prints = (*buffer)["print"];
    if (prints.is_string()) prints = Json::array({prints});
    from(fmt::format("{}.print[{}]", path, prints.size()), "--print " + word);
    prints.push_back(part);
  }

  void add_references() {
    if (words_.references.empty()) return;
    Json& all = json_["reference"];
    if (all.is_string()) all = Json::array({all});
    for (const std::string& each : words_.references) {
      const std::string output = each.substr(0, each.find_first_of(" ="));
      from(fmt::format("reference[{}]", all.size()), fmt::format("--reference \"{}\"", each));
      all.push_back(each);
      if (Json* buffer = find(output)) add_tolerance(*buffer);
    }
    if (all.size() == 1) {
      all = all[0];
      out_.places.back().first = "reference";
    }
  }

  void add_tolerance(Json& buffer) {
    if (!words_.max_rel && !words_.max_abs) return;
    Json& compare = buffer["compare"];
    if (!compare.is_object()) compare = Json::object();
    if (words_.max_rel) compare["max_rel"] = *words_.max_rel;
    if (words_.max_abs) compare["max_abs"] = *words_.max_abs;
  }

  const LaunchWords& words_;
  const LaunchPlace& place_;
  LaunchText& out_;
  ArgumentContext context_;
  Diags diags_;
  Json json_;
};

// "params[2].u32: expected ..." -> "--arg n=-1: expected ...", by the longest path that is known.
std::string in_words(const std::string& message, const LaunchText& launch) {
  std::size_t longest = 0;
  const std::string* words = nullptr;
  for (const auto& [path, from] : launch.places) {
    const bool starts =
        message.starts_with(path) && message.size() > path.size() &&
        (message[path.size()] == '.' || message[path.size()] == ':' || message[path.size()] == '[');
    if (starts && path.size() >= longest) longest = path.size(), words = &from;
  }
  if (!words) return message;
  return *words + message.substr(std::min(message.find(": "), message.size()));
}

}  // namespace

void add_launch_options(CLI::App& command, LaunchWords& words, const std::string& file_text) {
  constexpr const char* launch = "Launch of PTX or CUDA C++";
  constexpr const char* results = "Results";
  const auto list = [&](const char* name, std::vector<std::string>& to, const std::string& text,
                        const char* type, const char* group) {
    command.add_option(name, to, text)->allow_extra_args(false)->type_name(type)->group(group);
  };
  command.add_option("FILE", words.file, file_text)->required();
  command
      .add_option("--kernel", words.kernel,
                  "The kernel, by its name in C++ or PTX; default: the only one")
      ->group(launch);
  command.add_option("--grid", words.grid, "Thread blocks: 4, 8x8 or 8x8x2")
      ->type_name("N[xN[xN]]")
      ->group(launch);
  command.add_option("--block", words.block, "Threads in a block; default: what .reqntid requires")
      ->type_name("N[xN[xN]]")
      ->group(launch);
  command.add_option("--cluster", words.cluster, "Thread blocks in a cluster")
      ->type_name("N[xN[xN]]")
      ->group(launch);
  command
      .add_option("--dynamic-shared", words.dynamic_shared,
                  "Bytes of dynamic shared memory in a block")
      ->group(launch);
  command
      .add_flag("--cooperative", words.cooperative, "Blocks run at the same time, for grid.sync()")
      ->group(launch);
  list("--arg", words.arguments,
       "An argument, in the kernel's order: a file (in.npy, in.npy:bf16, in.bin:f32:256x128), "
       "zeros:f32:256x128, empty:..., random:bf16:64x64:SEED, full:f32:256:0.5, a number (256, "
       "f32:3.5), address:NAME+BYTES, bytes:HEX, or tensormap:NAME:BOX. NAME names it for the "
       "other options; a parameter's own name, or #0, places it",
       "[NAME=]VALUE", launch);
  list("--nvcc", words.nvcc, "An option for nvcc, as in --nvcc=-O3; may be repeated", "OPTION",
       launch);
  list("--save", words.saves, "Write an array afterwards, as .npy", "NAME=FILE", results);
  list("--print", words.prints, "Print an array afterwards, or a part: y[0:4,0:8]", "NAME[PART]",
       results);
  list("--expect", words.expects, "Compare an array with a file", "NAME=FILE", results);
  list("--reference", words.references,
       "Compare an array with a formula of what arrays start with, such as \"y = x * w'\" "
       "(docs/equal.md)",
       "FORMULA", results);
  command
      .add_option("--max-rel", words.max_rel,
                  "What may differ, as a part of the expected element; default: nothing with "
                  "--expect, with --reference what sums in another order change")
      ->check(CLI::Range(0.0, 1e300))
      ->group(results);
  command.add_option("--max-abs", words.max_abs, "What may differ in any case")
      ->check(CLI::Range(0.0, 1e300))
      ->group(results);
}

Result<LaunchText> launch_text(const LaunchWords& words, const LaunchPlace& place) {
  LaunchText out{.name = words.file};
  const bool compiles = is_cuda_source(words.file);
  auto source =
      compiles ? compile_cuda(words.file, place.target, words.nvcc) : read_source(words.file);
  if (!source) return source.diags();
  out.name = source->name();
  out.compiled = compiles;
  Launch launch(words, place, out);
  if (is_manifest(*source)) {
    auto text = launch.of_manifest(*source);
    if (!text) return text.diags();
    out.manifest = std::move(*text);
    return out;
  }
  if (!compiles && !words.nvcc.empty())
    return usage(fmt::format("--nvcc: {} is PTX; expected CUDA C++ (.cu)", words.file));
  out.ptx = std::move(*source);
  const auto json = launch.of_ptx();
  if (!json) return json.diags();
  out.manifest = text_of(*json);
  return out;
}

Result<Manifest> read_launch(const LaunchWords& words, const LaunchPlace& place) {
  auto launch = launch_text(words, place);
  if (!launch) return launch.diags();
  const bool of_file = !launch->ptx;
  // Names of files are relative to the manifest's folder; those of PTX to where we are.
  auto manifest =
      parse_manifest(Source(of_file ? launch->name : "", launch->manifest), std::move(launch->ptx));
  if (!manifest) {
    Diags out;
    for (Diag each : manifest.diags()) {
      each.message = in_words(each.message, *launch);
      out.add(std::move(each));
    }
    return out;
  }
  if (!of_file) manifest->name = launch->name;
  return manifest;
}

}  // namespace tartan::tools
