// SPDX-License-Identifier: Apache-2.0
#include "library/offline/launch_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "library/offline/launch_header_text.h"
#include "library/offline/module_text.h"

namespace tartan::TARTAN_ABI::offline {
namespace {

// Keywords of C++20, and the names of the function's own.
bool reserved(std::string_view name) {
  static const std::set<std::string_view> words = {
      "alignas",       "alignof",     "and",
      "and_eq",        "asm",         "auto",
      "bitand",        "bitor",       "bool",
      "break",         "case",        "catch",
      "char",          "char8_t",     "char16_t",
      "char32_t",      "class",       "compl",
      "concept",       "const",       "consteval",
      "constexpr",     "constinit",   "const_cast",
      "continue",      "co_await",    "co_return",
      "co_yield",      "decltype",    "default",
      "delete",        "do",          "double",
      "dynamic_cast",  "else",        "enum",
      "explicit",      "export",      "extern",
      "false",         "float",       "for",
      "friend",        "goto",        "if",
      "inline",        "int",         "long",
      "mutable",       "namespace",   "new",
      "noexcept",      "not",         "not_eq",
      "nullptr",       "operator",    "or",
      "or_eq",         "private",     "protected",
      "public",        "register",    "reinterpret_cast",
      "requires",      "return",      "short",
      "signed",        "sizeof",      "static",
      "static_assert", "static_cast", "struct",
      "switch",        "template",    "this",
      "thread_local",  "throw",       "true",
      "try",           "typedef",     "typeid",
      "typename",      "union",       "unsigned",
      "using",         "virtual",     "void",
      "volatile",      "wchar_t",     "while",
      "xor",           "xor_eq",      "image",
      "grid",          "out",         "detail",
      "std",           "images"};
  return words.contains(name);
}

// A PTX identifier as a C++ one.
std::string identifier(std::string name) {
  std::ranges::replace(name, '$', '_');
  return reserved(name) ? name + '_' : name;
}

std::string_view cpp_type(Type type) {
  switch (type) {
    case Type::f32: return "float";
    case Type::f64: return "double";
    case Type::s8: return "std::int8_t";
    case Type::s16: return "std::int16_t";
    case Type::s32: return "std::int32_t";
    case Type::s64: return "std::int64_t";
    default: break;
  }
  switch (bits(type)) {
    case 64: return "std::uint64_t";
    case 32: return "std::uint32_t";
    case 16: return "std::uint16_t";
    default: return "std::uint8_t";
  }
}

// CUtensorMapDataType of cuda.h.
int map_type(Type type) {
  constexpr Type types[] = {Type::u8,  Type::u16, Type::u32, Type::s32, Type::u64,
                            Type::s64, Type::f16, Type::f32, Type::f64, Type::bf16};
  return type == Type::tf32 ? 11 : static_cast<int>(std::ranges::find(types, type) - types);
}

// One kernel's function.
class Writer {
 public:
  Writer(const std::vector<TargetModule>& modules, std::size_t kernel, std::string_view root)
      : modules_(modules), kernel_(kernel), first_(modules.front().kernels[kernel]), root_(root) {
    for (const CompiledParam& each : first_.params) {
      std::string name = identifier(each.name);
      while (std::ranges::find(names_, name) != names_.end()) name += '_';
      names_.push_back(std::move(name));
    }
  }

  // Reports parameters that depend on the target.
  void check(Diags& diags) const {
    for (const TargetModule& module : modules_) {
      const Compiled& other = module.kernels[kernel_];
      if (signature(other) != signature(first_))
        diags.report(
            "launch-arguments"_rule, {},
            fmt::format("kernel {}: expected the same parameters on all targets, found ({}) "
                        "on {} and ({}) on {}; without --header it may differ",
                        first_.name, signature(first_), first_.target.arch.text(), signature(other),
                        other.target.arch.text()));
      for (const CompiledMap& map : other.maps)
        if (map.pixels)
          diags.report("kernel-option"_rule, {},
                       fmt::format("kernel {}: the header's functions encode no tensor map in "
                                   "im2col mode, {} on {} needs one; without --header launch() "
                                   "does, or copy_box() copies",
                                   first_.name, map.name, other.target.arch.text()));
    }
  }

  std::string text() const {
    std::size_t maps = 0;
    for (const TargetModule& each : modules_)
      maps = std::max(maps, each.kernels[kernel_].maps.size());
    const std::string type =
        fmt::format("Launch<{}, {}>", std::max<std::size_t>(first_.params.size(), 1), maps);
    std::string params;
    for (std::size_t i = 0; i < names_.size(); ++i)
      params += fmt::format(", {} {}", param_type(first_.params[i]), names_[i]);
    std::string out = comment() + fmt::format(
                                      "inline {} prepare_{}(const Image& image, Dim3 grid{}) {{\n"
                                      "  {} out;\n  out.grid = grid;\n",
                                      type, identifier(first_.name), params, type);
    for (std::size_t i = 0; i < names_.size(); ++i) out += argument(i);
    out += "  switch (image.number) {\n";
    for (std::size_t i = 0; i < modules_.size(); ++i) out += of_target(i);
    return out +
           "    default: out.error = \"the image is not one of this header\";\n  }\n"
           "  return out;\n}\n";
  }

 private:
  static std::string signature(const Compiled& kernel) {
    std::string out;
    for (const CompiledParam& each : kernel.params)
      out += fmt::format("{}{}{} {}", out.empty() ? "" : ", ", name(each.type),
                         each.pointer ? "*" : "", each.name);
    return out;
  }

  static std::string param_type(const CompiledParam& param) {
    return param.pointer ? fmt::format("Global<{}>", name(param.type))
                         : std::string(cpp_type(param.type));
  }

  std::string comment() const {
    std::string out = fmt::format("\n/// {}(", first_.name);
    std::string words;
    for (const CompiledParam& each : first_.params) {
      words +=
          (words.empty() ? "" : ", ") + each.name + ": " +
          (each.pointer
               ? fmt::format("{} in memory{}", name(each.type),
                             each.writes ? each.reads ? ", read and written" : ", written" : "")
               : std::string(name(each.type)));
    }
    out += words + ")\n";
    for (const TargetModule& module : modules_) {
      const Compiled& each = module.kernels[kernel_];
      out += fmt::format("/// {}: {} threads, {} bytes of shared memory ({} of them dynamic)",
                         module.arch.text(), each.block, each.shared_bytes + each.dynamic_shared,
                         each.dynamic_shared);
      if (each.cluster > 1) out += fmt::format(", clusters of {} blocks along x", each.cluster);
      if (!each.maps.empty()) {
        std::vector<std::string> of;
        for (const CompiledMap& map : each.maps)
          of.push_back(each.params[static_cast<std::size_t>(map.of)].name);
        out += fmt::format(", then tensor maps of {}", fmt::join(of, ", "));
      }
      out += '\n';
    }
    return out;
  }

  // A number of a launch, as an expression.
  std::string number(const MapNumber& of) const {
    if (of.params.empty() && of.divisor == 1) return fmt::format("std::int64_t({})", of.value);
    std::string product = "std::int64_t(1)";
    if (!of.params.empty()) product.clear();
    for (const int each : of.params)
      product += fmt::format("{}std::int64_t({})", product.empty() ? "" : " * ",
                             names_[static_cast<std::size_t>(each)]);
    if (of.divisor != 1) product = fmt::format("detail::ceil_div({}, {})", product, of.divisor);
    return of.value == 1 ? product : fmt::format("{} * {}", of.value, product);
  }

  std::string argument(std::size_t i) const {
    const CompiledParam& param = first_.params[i];
    return fmt::format("  detail::add(out, {}{});\n", names_[i], param.pointer ? ".address" : "");
  }

  // Checks of an argument.
  std::string checks(const Compiled& kernel, std::size_t i) const {
    const CompiledParam& param = kernel.params[i];
    if (!param.pointer) {
      if (param.multiple_of <= 1) return {};
      return fmt::format(
          "      detail::require(out, {0} % {1} == 0, \"{2}: expected a multiple of {1}\", "
          "std::int64_t({0}));\n",
          names_[i], param.multiple_of, param.name);
    }
    std::string needed = fmt::format("{}", (param.elements * bits(param.type) + 7) / 8);
    if (param.span)
      needed = fmt::format("detail::span({}, {}, {}, {}, {})", number(param.span->rows),
                           number(param.span->cols), number(param.span->row_stride),
                           number(param.span->col_stride), bits(param.type));
    return fmt::format(
        "      detail::require_memory(out, \"{0}\", {1}.address, {1}.bytes, {2}, {3});\n",
        param.name, names_[i], std::max(bits(param.type) / 8, 1), needed);
  }

  std::string bound(const LaunchBound& bound) const {
    using Of = LaunchBound::Of;
    std::string count = bound.of == Of::blocks_x   ? "std::int64_t(grid.x)"
                        : bound.of == Of::blocks_y ? "std::int64_t(grid.y)"
                        : bound.of == Of::blocks_z ? "std::int64_t(grid.z)"
                                                   : number(bound.number);
    std::string tiles;
    for (const MapNumber& each : bound.tiles)
      tiles += fmt::format("{}{}", tiles.empty() ? "" : " * ", number(each));
    if (tiles.empty()) tiles = "std::int64_t(1)";
    std::string most = bound.offset ? fmt::format("{} - {}", tiles, bound.offset) : tiles;
    if (bound.factor > 1)
      most = fmt::format("({} + {}) / {}", most, bound.factor - 1, bound.factor);
    std::string what = bound.what;
    if (bound.place.known())
      what = fmt::format("{}:{}: {}", source_name(bound.place.file, root_), bound.place.line, what);
    return fmt::format(
        "      detail::require(out, {}{} {} {}, (\"{}: expected {}\" + std::to_string({}) + \" "
        "{}\")"
        ".c_str(), {});\n",
        bound.exact              ? fmt::format("{} == 0 || ", tiles)
        : bound.of == Of::number ? fmt::format("{} < 1 || ", count)
                                 : "",
        count, bound.exact ? "==" : "<=", most, what, bound.exact ? "" : "at most ", most,
        bound.of == Of::blocks_x   ? "blocks along x"
        : bound.of == Of::blocks_y ? "blocks along y"
        : bound.of == Of::blocks_z ? "blocks along z"
                                   : "as the end of its loop or pipeline",
        count);
  }

  std::string map(const Compiled& kernel, std::size_t i) const {
    const CompiledMap& of = kernel.maps[i];
    const auto matrix = static_cast<std::size_t>(of.of);
    std::vector<std::string> extents, strides;
    for (const MapNumber& each : of.extents)
      extents.push_back(fmt::format("detail::at_least_one({})", number(each)));
    for (const MapNumber& each : of.strides)
      strides.push_back(fmt::format("std::uint64_t({} * {})", number(each), bits(of.type) / 8));
    const int swizzle = of.swizzle == 128 ? 3 : of.swizzle == 64 ? 2 : of.swizzle == 32 ? 1 : 0;
    static_assert(CompiledMap::promotion == 128);
    return fmt::format(
        "      detail::add(out,\n                  Map{{{}, {}, {}, {}.address,\n"
        "                      {{{}}},\n                      {{{}}},\n"
        "                      {{{}}}, {{1, 1, 1, 1, 1}}, 0, {}, 2, 0}},\n"
        "                  \"{}\");\n",
        kernel.params.size() + i, map_type(of.type), of.extents.size(), names_[matrix],
        fmt::join(extents, ", "), fmt::join(strides, ", "), fmt::join(of.box, ", "), swizzle,
        kernel.params[matrix].name);
  }

  std::string of_target(std::size_t module) const {
    const Compiled& kernel = modules_[module].kernels[kernel_];
    std::string out = fmt::format("    case {}:  // {}\n      out.block = {{{}, 1, 1}};\n", module,
                                  modules_[module].arch.text(), kernel.block);
    out += fmt::format("      out.cluster = {{{}, 1, 1}};\n      out.shared = {};\n",
                       kernel.cluster, kernel.dynamic_shared);
    out += "      detail::require_grid(out);\n";
    for (std::size_t i = 0; i < names_.size(); ++i) out += checks(kernel, i);
    for (const LaunchBound& each : kernel.bounds) out += bound(each);
    for (std::size_t i = 0; i < kernel.maps.size(); ++i) out += map(kernel, i);
    return out + "      break;\n";
  }

  const std::vector<TargetModule>& modules_;
  std::size_t kernel_;
  const Compiled& first_;
  std::string_view root_;
  std::vector<std::string> names_;  // of the parameters, in C++
};

// The types of elements in memory, as tags.
std::string element_types(const std::vector<Compiled>& kernels) {
  std::set<std::string_view> types;
  for (const Compiled& kernel : kernels)
    for (const CompiledParam& each : kernel.params)
      if (each.pointer) types.insert(name(each.type));
  std::string out = types.empty() ? "" : "\n// Types of elements in memory.\n";
  for (const std::string_view each : types) out += fmt::format("struct {};\n", each);
  return out;
}

std::string images(const std::vector<TargetModule>& modules) {
  std::string out =
      "\n#if defined(__clang__)\n#pragma clang diagnostic push\n"
      "#pragma clang diagnostic ignored \"-Woverlength-strings\"\n#endif\n";
  for (const TargetModule& each : modules)
    out += fmt::format("inline constexpr char ptx_{}[] = R\"ptx({})ptx\";\n", each.arch.text(),
                       each.ptx);
  out +=
      "#if defined(__clang__)\n#pragma clang diagnostic pop\n#endif\n\n"
      "inline constexpr Image images[] = {\n";
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const Arch arch = modules[i].arch;
    out +=
        fmt::format("    {{\"{0}\", {1}, {2}, {3}, ptx_{0}, sizeof ptx_{0} - 1}},\n", arch.text(),
                    arch.sm, arch.suffix ? fmt::format("'{}'", arch.suffix) : "0", i);
  }
  return out + "};\n";
}

}  // namespace

Result<std::string> launch_header(const std::string& name, const std::vector<TargetModule>& modules,
                                  std::string_view root) {
  const std::string space = identifier(name);
  Diags diags;
  std::vector<std::string> kernels, targets;
  for (const Compiled& each : modules.front().kernels) kernels.push_back(each.name);
  for (const TargetModule& each : modules) targets.push_back(each.arch.text());
  std::string functions;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Writer writer(modules, i, root);
    writer.check(diags);
    if (diags.ok()) functions += writer.text();
  }
  if (!diags.ok()) return diags;
  return fmt::format(
             "// Generated by Tartan {0}: kernels {1} for {2}.\n"
             "//\n"
             "// The PTX, and for each kernel a function that checks the arguments of a launch and "
             "prepares it\n"
             "// for the CUDA driver. It needs C++17, and neither Tartan nor cuda.h:\n"
             "//\n"
             "//   const {3}::Image* image = {3}::best(90);  // compute capability 9.0\n"
             "//   cuModuleLoadData(&module, image->ptx);\n"
             "//   auto launch = {3}::prepare_{4}(*image, {{blocks}}, ...);\n"
             "//   if (!launch.error.empty()) ...\n"
             "#pragma once\n\n"
             "#include <cstddef>\n#include <cstdint>\n#include <cstring>\n#include <string>\n\n"
             "namespace {3} {{\n",
             TARTAN_VERSION, fmt::join(kernels, ", "), fmt::join(targets, ", "), space,
             identifier(kernels.front())) +
         std::string(launch_types) + element_types(modules.front().kernels) + images(modules) +
         std::string(best_image) + functions + fmt::format("\n}}  // namespace {}\n", space);
}

}  // namespace tartan::TARTAN_ABI::offline
