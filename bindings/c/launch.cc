// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "bindings/c/kernel.h"
#include "bindings/c/load.h"
#include "bindings/c/times.h"
#include "runtime/check_arguments.h"
#include "tartan/ptx/parser.h"
#ifdef TARTAN_LLVM
#include "tartan/launch.h"
#endif

using namespace tartan;

struct tartan_function {
  Device device;
  LoadedKernel kernel;
  std::string info;
#ifdef TARTAN_LLVM
  std::shared_ptr<const tartan_kernel::State> compiled;  // null: PTX text
  std::vector<c::LoadedVariant> variants;                // of it
#endif
};

namespace {

using Json = nlohmann::ordered_json;

// The types that PTX text states, in the order of the parameters: "u32"; "" of an array.
std::vector<std::string> stated_types(const std::string& ptx, const std::string& kernel) {
  Diags ignored;
  const ptx::Module module = ptx::parse(std::make_shared<Source>(kernel, ptx), ignored);
  std::vector<std::string> out;
  const ptx::Function* function = module.function(kernel);
  if (!function) return out;
  for (const std::uint32_t index : function->params) {
    const ptx::Variable& each = module.variables[index];
    out.emplace_back(each.array ? "" : name(each.type));
  }
  return out;
}

std::string info_of(const std::string& name, const std::vector<KernelParam>& params,
                    const StepTimes& times, const std::vector<std::string>& types = {}) {
  Json list = Json::array();
  for (std::size_t i = 0; i < params.size(); ++i) {
    list.push_back({{"name", params[i].name}, {"bytes", params[i].bytes}});
    if (i < types.size() && !types[i].empty()) list.back()["type"] = types[i];
  }
  const Json info{
      {"name", name}, {"parameters", std::move(list)}, {"microseconds", c::to_json(times)}};
  return info.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The caller's options, which may be those of an older or a newer header.
Result<tartan_launch_options> read(const tartan_launch_options* given) {
  tartan_launch_options out{};
  if (!given) return out;
  constexpr std::size_t first_size = offsetof(tartan_launch_options, programmatic);
  if (given->size < first_size)
    return {"usage"_rule, fmt::format("tartan_launch: options->size: expected {} "
                                      "(sizeof(tartan_launch_options)), found {}",
                                      sizeof out, given->size)};
  constexpr std::uint32_t most_size = 4096;  // no release will have that many options
  if (given->size > most_size)
    return {"usage"_rule, fmt::format("tartan_launch: options->size: expected at most {}, found {}",
                                      most_size, given->size)};
  const std::size_t known = std::min(given->size, sizeof out);
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + known, bytes + given->size, [](unsigned char x) { return x != 0; }))
    return {
        "usage"_rule,
        fmt::format("tartan_launch: options->size is {}, and an option beyond the {} bytes that "
                    "this library knows is set: a newer library is needed",
                    given->size, sizeof out)};
  std::memcpy(&out, given, known);
  return out;
}

constexpr std::size_t most_argument = 32764;  // bytes

Result<Arguments> read(const tartan_argument* given, size_t count) {
  Arguments out;
  Diags diags;
  for (size_t i = 0; i < count; ++i) {
    const tartan_argument& each = given[i];
    std::uint64_t address = 0;
    if (!each.value) {
      diags.report("usage"_rule, {}, fmt::format("tartan_launch: arguments[{}].value is null", i));
    } else if (each.size > most_argument) {
      diags.report("usage"_rule, {},
                   fmt::format("tartan_launch: arguments[{}].size: expected at most {}, the "
                               "parameter space of a kernel, found {}",
                               i, most_argument, each.size));
    } else if (each.extent && each.size == sizeof address) {
      std::memcpy(&address, each.value, sizeof address);
      out.add_memory(address, each.extent);
    } else {
      out.add_bytes({static_cast<const std::byte*>(each.value), each.size});
    }
  }
  if (!diags.ok()) return diags;
  return out;
}

Status launch_text(tartan_function& function, const tartan_launch_options& options,
                   const Arguments& arguments, const Stream* stream) {
  if (options.block[0] == 0)
    return {"usage"_rule, "tartan_launch: options->block[0] is 0: PTX text needs a block"};
  const auto dim = [](const uint32_t(&of)[3]) {
    return Dim3{std::max(of[0], 1u), std::max(of[1], 1u), std::max(of[2], 1u)};
  };
  return function.kernel.launch({.grid = dim(options.grid),
                                 .block = dim(options.block),
                                 .dynamic_shared = options.dynamic_shared,
                                 .cooperative = options.cooperative != 0,
                                 .programmatic = options.programmatic != 0},
                                arguments, stream);
}

#ifdef TARTAN_LLVM

Diags refuse_shape(const tartan_launch_options& options) {
  Diags out;
  const auto refuse = [&](const char* member) {
    out.report("usage"_rule, {},
               fmt::format("tartan_launch: options->{}: expected 0 for a compiled kernel, which "
                           "knows it",
                           member));
  };
  if (options.block[0] || options.block[1] || options.block[2]) refuse("block");
  if (options.dynamic_shared) refuse("dynamic_shared");
  if (options.cooperative) refuse("cooperative");
  return out;
}

std::vector<KernelParam> params_of(const Compiled& compiled) {
  std::vector<KernelParam> out;
  for (const CompiledParam& each : compiled.params)
    out.push_back({each.name, each.pointer ? 8 : static_cast<size_t>(bits(each.type)) / 8});
  return out;
}

// A grid that is known, or an error for each extent that is not.
Result<Dim3> whole(const builtins::LaunchGrid& grid, const std::string& kernel) {
  Diags diags;
  const auto dim = [&](const char* name, std::optional<std::uint32_t> found) {
    if (!found)
      diags.report("launch-arguments"_rule, {},
                   fmt::format("the grid's {} is 0: expected a number of blocks, which neither the "
                               "options nor the arguments of kernel {} tell",
                               name, kernel));
    return found.value_or(0);
  };
  const Dim3 out{dim("x", grid.x), dim("y", grid.y), dim("z", grid.z)};
  if (!diags.ok()) return diags;
  return out;
}

// The grid of a launch: what the caller gives, else what options and sizes tell.
Result<Dim3> grid_of(const tartan_kernel::State& kernel, const builtins::LaunchSizes& sizes) {
  auto grid = kernel.described.launch_grid(sizes);
  if (sizes.given.x) grid.x = sizes.given.x;
  if (sizes.given.y) grid.y = sizes.given.y;
  if (sizes.given.z) grid.z = sizes.given.z;
  return whole(grid, kernel.compiled.name);
}

// The scalar arguments of a launch, by name. What is no size is reported.
class ArgumentSizes {
 public:
  ArgumentSizes(const Compiled& compiled, const Arguments& arguments)
      : compiled_(compiled), arguments_(arguments) {}

  std::int64_t operator()(std::string_view param) {
    const std::int64_t value = number(param);
    if (value >= 0) return value;
    diags.report("launch-arguments"_rule, {},
                 fmt::format("{} of kernel {}: expected a size of at least 0, found {}", param,
                             compiled_.name, value));
    return 0;
  }
  // Of what may be negative.
  std::int64_t number(std::string_view param) const {
    const auto at = std::ranges::find(compiled_.params, param, &CompiledParam::name);
    assert(at != compiled_.params.end());
    const auto& bytes = arguments_[static_cast<size_t>(at - compiled_.params.begin())];
    std::int32_t value = 0;
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
    if (at->type == u32) return static_cast<std::uint32_t>(value);
    return value;
  }

  Diags diags;

 private:
  const Compiled& compiled_;
  const Arguments& arguments_;
};

// Buffers whose size is known and too small for the work space of the launch.
void check_work_space(const tartan_kernel::State& kernel, const builtins::LaunchSizes& sizes,
                      const Dim3& grid, const Arguments& arguments, Diags& diags) {
  const Compiled& compiled = kernel.compiled;
  for (const builtins::WorkBuffer& each : kernel.described.work(compiled, sizes, grid)) {
    const auto at = std::ranges::find(compiled.params, each.param, &CompiledParam::name);
    const auto found = arguments.buffer_size(static_cast<size_t>(at - compiled.params.begin()));
    const auto wanted = static_cast<std::uint64_t>(each.elements) * bits(at->type) / 8;
    if (found && *found < wanted)
      diags.report(
          "launch-arguments"_rule, {},
          fmt::format("{} of kernel {}: expected at least {} bytes, the work space of this "
                      "launch, found {}",
                      each.param, compiled.name, wanted, *found));
  }
}

Status launch_variant(c::LoadedVariant& variant, const builtins::LaunchGrid& of,
                      const Arguments& arguments, const Stream* stream, bool programmatic) {
  const auto grid = whole(of, variant.compiled.name);
  if (!grid) return grid.diags();
  if (grid->count() == 0) return Done{};  // no query
  return launch(variant.kernel, variant.compiled, *grid, arguments, stream, programmatic);
}

Status launch_compiled(tartan_function& function, const tartan_launch_options& options,
                       const Arguments& arguments, const Stream* stream) {
  const tartan_kernel::State& kernel = *function.compiled;
  Diags diags = refuse_shape(options);
  detail::check_arguments(kernel.compiled.name, params_of(kernel.compiled), arguments, "", diags);
  if (!diags.ok()) return diags;
  ArgumentSizes of(kernel.compiled, arguments);
  const builtins::LaunchSizes sizes{std::ref(of),
                                    function.device.multiprocessors(),
                                    {options.grid[0], options.grid[1], options.grid[2]},
                                    [&](std::string_view param) { return of.number(param); }};
  for (std::size_t i = 0; i < function.variants.size(); ++i)
    if (const auto grid = kernel.described.variants[i].grid_of(sizes); grid && of.diags.ok())
      return launch_variant(function.variants[i], *grid, arguments, stream, options.programmatic);
  of.diags = {};
  const auto grid = grid_of(kernel, sizes);
  if (!of.diags.ok()) return of.diags;
  if (!grid) return grid.diags();
  if (grid->count() == 0) return Done{};  // an empty product
  check_work_space(kernel, sizes, *grid, arguments, diags);
  diags.append(of.diags);
  if (!diags.ok()) return diags;
  return launch(function.kernel, kernel.compiled, *grid, arguments, stream,
                options.programmatic != 0);
}

// Of sizes by name, a JSON object. Names that are no parameters are reported, and sizes that are
// missing.
Result<Json> work_space(const tartan_function& function, const char* text,
                        const uint32_t (&given)[3]) {
  const Json named = Json::parse(text && *text ? text : "{}", nullptr, false);
  if (!named.is_object())
    return {"usage"_rule,
            "tartan_work_space: sizes: expected a JSON object such as "
            "{\"batch\": 4}"};
  const tartan_kernel::State& kernel = *function.compiled;
  Diags diags;
  for (const auto& [name, value] : named.items())
    if (std::ranges::find(kernel.compiled.params, name, &CompiledParam::name) ==
        kernel.compiled.params.end())
      diags.report("usage"_rule, {},
                   fmt::format("tartan_work_space: {}: kernel {} has no such parameter", name,
                               kernel.compiled.name));
  const auto of = [&](std::string_view param) -> std::int64_t {
    const auto at = named.find(std::string(param));
    constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
    if (at != named.end() && at->is_number_unsigned() && at->get<std::uint64_t>() <= most)
      return at->get<std::int64_t>();
    if (std::ranges::none_of(diags, [&](const Diag& each) {
          return each.message.find(fmt::format(" {}:", param)) != std::string::npos;
        }))
      diags.report(
          "usage"_rule, {},
          fmt::format("tartan_work_space: {}: expected a size of kernel {}, found {}", param,
                      kernel.compiled.name, at == named.end() ? "none" : at->dump()));
    return 0;
  };
  const builtins::LaunchSizes sizes{
      of, function.device.multiprocessors(), {given[0], given[1], given[2]}};
  const auto grid = grid_of(kernel, sizes);
  if (!diags.ok()) return diags;
  if (!grid) return grid.diags();
  Json out = Json::object();
  for (const auto& each : kernel.described.work(kernel.compiled, sizes, *grid))
    out[std::string(each.param)] = {{"elements", each.elements}, {"zeros", each.zeros}};
  if (!diags.ok()) return diags;
  return out;
}

Status load(Device& device, const tartan_kernel& kernel, tartan_function** out) {
  const Compiled& compiled = kernel.state->compiled;
  StepTimes times;
  auto function = c::loaded(device, compiled, times);
  if (!function) return function.diags();
  auto variants = c::loaded_variants(device, *kernel.state);
  if (!variants) return variants.diags();
  *out = new tartan_function{device, *function, info_of(compiled.name, params_of(compiled), times),
                             kernel.state, *std::move(variants)};
  return Done{};
}

#else

Status load(Device&, const tartan_kernel&, tartan_function**) {
  return {"usage"_rule, "tartan_load: this build of Tartan has no compiled kernels"};
}

#endif

Status launch_function(tartan_function& function, const tartan_launch_options* options,
                       const tartan_argument* arguments, size_t count) {
  const auto read_options = read(options);
  if (!read_options) return read_options.diags();
  const auto given = read(arguments, count);
  if (!given) return given.diags();
  std::optional<Stream> stream;
  if (read_options->stream) {
    const auto adopted = function.device.adopt_stream(read_options->stream);
    if (!adopted) return adopted.diags();
    stream = *adopted;
  }
  const Stream* const in = stream ? &*stream : nullptr;
#ifdef TARTAN_LLVM
  if (function.compiled) return launch_compiled(function, *read_options, *given, in);
#endif
  return launch_text(function, *read_options, *given, in);
}

}  // namespace

tartan_error* tartan_load(tartan_device* device, const tartan_kernel* kernel,
                          tartan_function** out) {
  if (out) *out = nullptr;
  return c::guarded("tartan_load", {{"device", device}, {"kernel", kernel}, {"out", out}},
                    [&] { return load(device->device, *kernel, out); });
}

tartan_error* tartan_load_ptx(tartan_device* device, const char* ptx, const char* name,
                              tartan_function** out) {
  if (out) *out = nullptr;
  return c::guarded("tartan_load_ptx",
                    {{"device", device}, {"ptx", ptx}, {"name", name}, {"out", out}},
                    [&]() -> Status {
                      StepTimes times;
                      auto function = c::loaded(device->device, ptx, name, times);
                      if (!function) return function.diags();
                      auto made = std::make_unique<tartan_function>(tartan_function{
                          .device = device->device,
                          .kernel = *function,
                          .info = info_of(function->name(), function->params(), times,
                                          stated_types(ptx, function->name()))});
                      *out = made.release();
                      return Done{};
                    });
}

tartan_error* tartan_work_space(const tartan_function* function, [[maybe_unused]] const char* sizes,
                                [[maybe_unused]] const uint32_t* grid, char** out) {
  if (out) *out = nullptr;
  return c::guarded("tartan_work_space", {{"function", function}, {"out", out}}, [&]() -> Status {
#ifdef TARTAN_LLVM
    if (function->compiled) {
      const uint32_t none[3] = {};
      const uint32_t* const from = grid ? grid : none;
      const auto found = work_space(*function, sizes, {from[0], from[1], from[2]});
      if (!found) return found.diags();
      *out = c::copy_of(found->dump());
      return Done{};
    }
#endif
    return {"usage"_rule, "tartan_work_space: only compiled kernels know it"};
  });
}

const char* tartan_function_info(const tartan_function* function) {
  return function ? function->info.c_str() : "";
}

void tartan_function_free(tartan_function* function) { delete function; }

tartan_error* tartan_launch(tartan_function* function, const tartan_launch_options* options,
                            const tartan_argument* arguments, size_t count) {
  const void* list = count ? static_cast<const void*>(arguments) : function;  // none may be null
  return c::guarded("tartan_launch", {{"function", function}, {"arguments", list}},
                    [&] { return launch_function(*function, options, arguments, count); });
}
