// SPDX-License-Identifier: Apache-2.0
#include "tartan/dsl/kernel.h"

#include <algorithm>
#include <numeric>

#include "compiler/ir/function_text.h"
#include "compiler/ptx/line_table.h"
#include "compiler/support/ascii.h"
#include "compiler/support/counted.h"
#include "compiler/support/step_timer.h"
#include "dsl/cluster/cluster.h"
#include "dsl/compile/compile_cache.h"
#include "dsl/compile/dump.h"
#include "dsl/compile/operations.h"
#include "dsl/compile/order_checks.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/state/names.h"
#include "dsl/state/state.h"
#include "tartan/dsl/builder.h"
#include "tartan/ptx/parser.h"
#include "tartan/ptx/trace.h"
#include "tartan/verify/verify.h"

namespace tartan::TARTAN_ABI {
namespace {

constexpr std::int64_t max_static_shared =
    49152;  // bytes: what .shared variables may take; more needs dynamic shared memory

std::string text(const std::vector<Role>& roles) {
  std::string out;
  for (const Role& each : roles)
    out += fmt::format("{}{{\"{}\", {}}}", out.empty() ? "" : ", ", each.name, each.warps);
  return fmt::format("{{{}}}", out);
}

// The list of roles, which alone says the number of threads.
void check_roles(const Kernel& kernel, const KernelOptions& options, Diags& diags) {
  if (options.roles.empty()) return;
  const KernelOptions usual;
  if (!detail::has_known_roles(options))
    diags.report("kernel-option"_rule, kernel.place(),
                 fmt::format("kernel {}: roles: expected {{{{\"compute\", warps}}}} or "
                             "{{{{\"compute\", warps}}, {{\"load\", warps}}}} with 1 to 32 warps "
                             "each, found {}",
                             kernel.name(), text(options.roles)));
  if (options.block != usual.block || options.producers != usual.producers)
    diags.report(
        "kernel-option"_rule, kernel.place(),
        fmt::format("kernel {}: expected roles, or block and producers, found roles {} and "
                    "block = {}, producers = {}; leave the two out",
                    kernel.name(), text(options.roles), options.block, options.producers));
}

// Checks that do not need the description.
Diags check_options(const Kernel& kernel, const Target& target) {
  Diags diags;
  if (!detail::is_identifier(kernel.name()))
    diags.report("kernel-name"_rule, kernel.place(),
                 fmt::format("kernel '{}': {}", kernel.name(), detail::identifier_rule));
  check_roles(kernel, kernel.options(target), diags);
  const KernelOptions options = detail::with_roles(kernel.options(target));
  const int block = options.block, producers = options.producers;
  if (block < 32 || block > 1024 || block % 32)
    diags.report(
        "launch-bounds"_rule, kernel.place(),
        fmt::format("kernel {}: block size: expected 32 to 1024 threads in whole warps, found {}",
                    kernel.name(), block));
  else if (producers < 0 || producers > 31 || block + 32 * producers > 1024)
    diags.report(
        "launch-bounds"_rule, kernel.place(),
        fmt::format(
            "kernel {}: expected at most 1024 threads in total, found {} and {} producer warps",
            kernel.name(), block, producers));
  const int cluster = options.cluster;
  if (cluster != 1 && cluster != 2 && cluster != 4 && cluster != 8)
    diags.report(
        "launch-bounds"_rule, kernel.place(),
        fmt::format("kernel {}: cluster size: expected 1, 2, 4 or 8 thread blocks, found {}",
                    kernel.name(), cluster));
  else if (options.cluster_columns < 1 || cluster % options.cluster_columns)
    diags.report("launch-bounds"_rule, kernel.place(),
                 fmt::format("kernel {}: cluster_columns = {}: expected a divisor of the cluster's "
                             "{} thread blocks",
                             kernel.name(), options.cluster_columns, cluster));
  for (const auto& [name, number] : {std::pair{"min_blocks", options.min_blocks},
                                     std::pair{"max_registers", options.max_registers}})
    if (number < 0)
      diags.report("launch-bounds"_rule, kernel.place(),
                   fmt::format("kernel {}: {} = {}: expected 0 (no bound) or more", kernel.name(),
                               name, number));
  const ArchRow* row = find_arch(target.arch);
  if (!row)
    diags.report("unknown-target"_rule, kernel.place(),
                 fmt::format("unknown target {}", target.arch.text()));
  else if (target.ptx < row->first || target.ptx > newest_version)
    diags.report("target-version"_rule, kernel.place(),
                 fmt::format("target {} requires PTX {} to {}, found {}", target.arch.text(),
                             row->first.text(), newest_version.text(), target.ptx.text()));
  return diags;
}

// The text that LLVM printed, parsed back and verified. Errors there are Tartan's fault, and say
// so.
struct Verified {
  Diags errors, warnings;
  verify::LiveRegisters registers;
};

Verified verify_back(const std::string& name, const std::string& ptx) {
  const detail::StepTimer timer(&StepTimes::verify);
  Verified out;
  std::optional<detail::LineTable> lines;
  Diags found;
  const ptx::Module module = ptx::parse(std::make_shared<const Source>(name + ".ptx", ptx), found);
  found.append(verify::verify(module));
  found.sort();
  if (const ptx::Function* function = module.function(name))
    out.registers = verify::live_registers(module, *function);
  for (Diag diag : found) {
    if (diag.level == Level::Error)
      out.errors.report("codegen"_rule, diag.place,
                        fmt::format("generated illegal PTX: {} [{}]", diag.message, diag.id));
    if (diag.level != Level::Warning) continue;
    const int ptx_line = diag.place.line;
    if (!lines) lines.emplace(ptx);
    if (auto place = lines->place(ptx_line)) diag.place = *std::move(place);
    diag.message += fmt::format(" (line {} of the PTX)", ptx_line);
    diag.source.clear(), diag.width = diag.caret = 0;
    out.warnings.add(std::move(diag));
  }
  return out;
}

// The choices as comments before the text.
std::string comments(const std::vector<Choice>& choices) {
  std::string out;
  for (const Choice& choice : choices)
    out += fmt::format("// {}:{}: {}: {}\n",
                       ascii(choice.place.file.substr(choice.place.file.rfind('/') + 1)),
                       choice.place.line, ascii(choice.what), ascii(choice.taken));
  return out;
}

std::string text(const MapNumber& number, const std::vector<CompiledParam>& params) {
  std::string out =
      number.params.empty() || number.value != 1 ? fmt::format("{}", number.value) : "";
  std::string product;
  for (const int each : number.params)
    product += (product.empty() ? "" : " * ") + params[static_cast<std::size_t>(each)].name;
  if (number.divisor != 1) product = fmt::format("ceil({} / {})", product, number.divisor);
  return out + (out.empty() || product.empty() ? "" : " * ") + product;
}

// The parameters, and which of their memories are read and written.
std::vector<CompiledParam> params_of(const detail::KernelState& state) {
  std::vector<CompiledParam> out = state.launch.params();
  for (const detail::Memory& each : state.memories.all())
    if (each.param >= 0) {
      CompiledParam& param = out[static_cast<std::size_t>(each.param)];
      param.reads |= each.ever_read;
      param.writes |= each.ever_written;
    }
  return out;
}

// What a launch without Tartan needs to know.
std::string launch_comment(const detail::KernelState& state, std::int64_t dynamic_shared) {
  std::string params;
  for (const CompiledParam& each : state.launch.params())
    params += fmt::format("{}{} ({}{})", params.empty() ? "" : ", ", each.name,
                          each.pointer ? "pointer to " : "", name(each.type));
  std::string out = fmt::format("// launch: {} threads a block, {} bytes of dynamic shared memory",
                                state.config.all_threads(), dynamic_shared);
  if (state.config.options.cluster > 1)
    out += fmt::format(", clusters of {} blocks along x", state.config.options.cluster);
  out += fmt::format("\n// parameters: {}\n", params);
  for (const detail::Memory& each : state.memories.all())
    if (!each.shown.empty()) out += fmt::format("// shared matrix {}\n", ascii(each.shown));
  return out;
}

// The contents of its tensor maps.
std::string text(const CompiledMap::Pixels& pixels) {
  return fmt::format(", im2col: lower corner ({}), upper corner ({}), element strides ({})",
                     fmt::join(pixels.lower, ", "), fmt::join(pixels.upper, ", "),
                     fmt::join(pixels.steps, ", "));
}

std::string comments(const std::vector<CompiledMap>& maps,
                     const std::vector<CompiledParam>& params) {
  std::string out;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const CompiledMap& map = maps[i];
    const auto list = [&](const std::vector<MapNumber>& numbers) {
      std::string words;
      for (const MapNumber& each : numbers)
        words += (words.empty() ? "" : ", ") + text(each, params);
      return words;
    };
    out += fmt::format(
        "// parameter {}: tensor map of {}: elements of {} bits, extents ({}), strides of "
        "dimension "
        "1 and up ({}) elements, {} ({}), swizzle {} bytes{}\n",
        params.size() + i, params[static_cast<std::size_t>(map.of)].name, bits(map.type),
        list(map.extents), list(map.strides), map.pixels ? "channels and pixels" : "box",
        fmt::join(map.box, ", "), map.swizzle, map.pixels ? text(*map.pixels) : "");
  }
  return out;
}

// Reports more shared memory than a block can have; for rings also how many stages would fit.
void check_shared(const Kernel& kernel, detail::KernelState& state) {
  const std::int64_t most = find_arch(state.config.target.arch)->shared_bytes;
  if (state.memories.shared_bytes() <= most) return;
  std::string message = fmt::format(
      "kernel {} uses {} bytes of shared memory: a thread block of {} has at most {}",
      kernel.name(), state.memories.shared_bytes(), state.config.target.arch.text(), most);
  // A ring may have several parts for each stage.
  int stages = 0, most_stages = 0;
  for (const detail::Memory& each : state.memories.all())
    if (each.stages > 1)
      stages = std::gcd(stages, each.stages), most_stages = std::max(most_stages, each.stages);
  if (stages == 1) stages = most_stages;  // of rings with nothing in common
  const auto with = [&](int count) {
    std::int64_t bytes = 0;
    for (const detail::Memory& each : state.memories.all())
      bytes += each.stages > 1 ? each.bytes / stages * count + 128 : each.bytes;
    return bytes;
  };
  int fitting = stages;
  while (fitting > 0 && with(fitting) > most) --fitting;
  if (stages > 1 && fitting > 0)
    message += fmt::format("; {} instead of {} {}", detail::counted(fitting, "stage"), stages,
                           fitting == 1 ? "fits" : "fit");
  else if (stages > 1) message += "; not even one stage fits: use a smaller tile";
  state.log.diags().report("shared-size"_rule, kernel.place(), std::move(message));
}

void describe(const Kernel& kernel, const std::shared_ptr<detail::KernelState>& state) {
  const detail::Description description(*state);
  if (!state->has_body(kernel.body() != nullptr, "a kernel")) return;
  Builder builder(state);
  kernel.body()(builder);
  detail::check_last_access(*state);
  state->stages.report(state->log);
  state->log.report_empty();
  if (state->log.diags().ok()) check_order(*state);
  if (detail::with_roles(kernel.options(state->config.target)).producers > 0 &&
      !state->roles.divided && state->log.diags().ok())
    state->log.diags().report("kernel-option"_rule, kernel.place(),
                              fmt::format("kernel {} has producer warps but no roles(): put its "
                                          "pipelines and epilogue into k.roles([&] {{ ... }})",
                                          kernel.name()));
}

}  // namespace

Kernel kernel(std::string name, KernelOptions options, std::function<void(Builder&)> body,
              const std::source_location& at) {
  return Kernel(
      std::move(name), [=](const Target&) { return options; }, std::move(body), at);
}

std::string explain(const std::vector<Choice>& choices) {
  std::string out;
  for (const Choice& choice : choices) {
    const std::size_t slash = choice.place.file.rfind('/');
    out += fmt::format("{}:{}: {}: {}\n    because {}\n", choice.place.file.substr(slash + 1),
                       choice.place.line, choice.what, choice.taken, choice.reason);
    for (const std::string& refused : choice.refused) out += fmt::format("    not {}\n", refused);
  }
  return out;
}

std::string explain_json(const std::vector<Choice>& choices) {
  const auto text = [](std::string_view raw) {
    std::string out = "\"";
    for (const char c : raw) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + '"';
  };
  std::string out = "[";
  for (const Choice& choice : choices) {
    out += fmt::format(
        "{}\n  {{\"file\": {}, \"line\": {}, \"what\": {}, \"taken\": {}, \"reason\": {}, "
        "\"refused\": [",
        out.size() > 1 ? "," : "", text(choice.place.file), choice.place.line, text(choice.what),
        text(choice.taken), text(choice.reason));
    for (std::size_t i = 0; i < choice.refused.size(); ++i)
      out += (i ? ", " : "") + text(choice.refused[i]);
    out += "]}";
  }
  return out + "\n]\n";
}

namespace {

using detail::CompiledText;

codegen::Code lowered(const ir::Function& function) {
  const detail::StepTimer timer(&StepTimes::describe);
  return codegen::Code(function);
}

Result<std::string> emit(codegen::Code& code) {
  const detail::StepTimer timer(&StepTimes::generate);
  return code.emit();
}

Result<CompiledText> generate(codegen::Code& code, const std::string& kernel,
                              const std::string& head) {
  auto ptx = emit(code);
  if (!ptx) return ptx.diags();
  CompiledText out{.ptx = head + *ptx};
  Verified verified = verify_back(kernel, out.ptx);
  if (!verified.errors.ok()) return verified.errors;
  out.warnings = std::move(verified.warnings);
  out.registers = verified.registers;
  return out;
}

// The same, found in the cache by the code as it is before LLVM's passes.
Result<CompiledText> generate(codegen::Code& code, const std::string& kernel,
                              const std::string& head, const Target& target, const Cache* cache) {
  if (!cache) return generate(code, kernel, head);
  const detail::StepTimer timer(&StepTimes::cache);
  const auto ir = code.ir();
  if (!ir) return ir.diags();
  const CacheKey key = detail::compile_key("text", target.text()).add("head", head).add("ir", *ir);
  if (auto held = detail::held_text(*cache, key)) return *std::move(held);
  auto made = generate(code, kernel, head);
  if (made) detail::hold(*cache, key, *made);
  return made;
}

Result<std::string> with_timestamps(const std::string& kernel, const std::string& ptx) {
  auto traced = ptx::traced(ptx, kernel);
  if (!traced) return traced.diags();
  if (Verified verified = verify_back(kernel, traced->text); !verified.errors.ok())
    return verified.errors;
  return std::move(traced->text);
}

// A kernel as its function described it for one target.
struct Described {
  Target target;
  std::shared_ptr<detail::KernelState> state;  // null if its options are refused
  std::shared_ptr<ir::FunctionBuilder> function;
  Diags mistakes;
  Version refused;  // the next version that may accept what is refused; 0.0: none
  Version asked;    // the next version that has what the description asks for; 0.0: none

  bool is_sound() const { return mistakes.ok(); }
};

Described describe_for(const Kernel& kernel, const Target& target) {
  if (Diags diags = check_options(kernel, target); !diags.ok())
    return {target, nullptr, nullptr, std::move(diags), {}, {}};
  const detail::StepTimer timer(&StepTimes::describe);
  auto state = std::make_shared<detail::KernelState>(kernel, target);
  describe(kernel, state);
  if (state->staging.ring_in_use) {  // which only the whole description tells
    state = std::make_shared<detail::KernelState>(kernel, target);
    state->staging.beside_rings = true;
    describe(kernel, state);
  }
  check_shared(kernel, *state);
  // Handles that outlive this call must not find the function, sound or not.
  return {target,
          state,
          std::move(state->function),
          state->log.diags(),
          state->log.next_version(),
          state->log.asked_version()};
}

// For the first PTX version that has all that the description asks for.
Described describe_for(const Kernel& kernel, Arch arch) {
  const Described first = describe_for(kernel, Target::of(arch));
  Described last = first;
  for (;;) {
    const Version next = last.is_sound() ? last.asked : last.refused;
    Target later = last.target;
    if (next <= later.ptx) break;
    later.ptx = next;
    Described tried = describe_for(kernel, later);
    if (last.is_sound() && !tried.is_sound()) break;  // it does without what it asked for
    last = std::move(tried);
  }
  // A later version has what the first lacks; where it refuses the kernel too, it says why.
  const bool has_all = last.is_sound() || std::ranges::none_of(last.mistakes, [](const Diag& diag) {
                         return diag.id == "no-instruction"_rule.id;
                       });
  return has_all ? last : first;
}

Result<Compiled> compile(const Kernel& kernel, const Described& by, const Cache* cache,
                         const detail::Dump& dump) {
  if (!by.is_sound()) return by.mistakes;
  const Target& target = by.target;
  detail::KernelState& state = *by.state;
  std::int64_t shared_bytes = state.memories.shared_bytes();
  const bool dynamic = shared_bytes > max_static_shared;
  if (dynamic) shared_bytes = by.function->make_shared_dynamic();
  const ir::Function function = by.function->finish();
  dump.operations(function);
  codegen::Code code = lowered(function);
  dump.ir(code);
  const std::string head = "// Generated by Tartan " TARTAN_VERSION "\n" +
                           comments(state.log.choices()) +
                           launch_comment(state, dynamic ? shared_bytes : 0) +
                           comments(state.launch.maps(), state.launch.params());
  auto text = generate(code, kernel.name(), head, target, cache);
  if (!text) return text.diags();
  text->warnings.append(Diags(state.log.warnings()));
  text->warnings.append(unwritten(state.memories));
  Diags registers = state.registers.check(state.config, text->registers, text->ptx);
  if (!registers.ok()) return registers;
  text->warnings.append(std::move(registers));
  if (state.config.options.trace) {
    auto traced = with_timestamps(kernel.name(), text->ptx);
    if (!traced) return traced.diags();
    text->ptx = *std::move(traced);
  }
  const int shared = static_cast<int>(shared_bytes);
  return Compiled{kernel.name(),
                  target,
                  std::move(text->ptx),
                  state.config.all_threads(),
                  dynamic ? 0 : shared,
                  dynamic ? shared : 0,
                  state.config.options.cluster,
                  params_of(state),
                  state.launch.maps(),
                  state.launch.bounds(),
                  state.log.choices(),
                  std::move(text->warnings)};
}

// `asked`: an Arch or a Target.
template <typename Asked>
Result<Compiled> compile_described(const Kernel& kernel, const Asked& asked, const Cache* cache) {
  const Described by = describe_for(kernel, asked);
  const detail::Dump dump(kernel.name(), by.target);
  auto out = compile(kernel, by, cache, dump);
  dump.result(out);
  return out;
}

template <typename Asked>
Result<Compiled> compile_keyed(const Kernel& kernel, const Asked& asked, const Cache& cache) {
  if (kernel.key().empty()) return compile_described(kernel, asked, &cache);
  const CacheKey key = detail::compile_key("kernel", asked.text())
                           .add("name", kernel.name())
                           .add("key", kernel.key());
  if (auto held = detail::held_compiled(cache, key)) return *std::move(held);
  auto made = compile_described(kernel, asked, nullptr);  // no second key: printing IR takes time
  if (made) detail::hold(cache, key, *made);
  return made;
}

}  // namespace

Result<Compiled> compile(const Kernel& kernel, const Target& target) {
  return compile_described(kernel, target, nullptr);
}
Result<Compiled> compile(const Kernel& kernel, Arch arch) {
  return compile_described(kernel, arch, nullptr);
}
Result<Compiled> compile(const Kernel& kernel, const Target& target, const Cache& cache) {
  return compile_keyed(kernel, target, cache);
}
Result<Compiled> compile(const Kernel& kernel, Arch arch, const Cache& cache) {
  return compile_keyed(kernel, arch, cache);
}

namespace detail {

template <typename Asked>
Result<std::string> operations(const Kernel& kernel, const Asked& asked) {
  const Described by = describe_for(kernel, asked);
  if (!by.is_sound()) return by.mistakes;
  return ir::text(by.function->finish());
}

template Result<std::string> operations(const Kernel& kernel, const Arch& asked);
template Result<std::string> operations(const Kernel& kernel, const Target& asked);

}  // namespace detail

}  // namespace tartan::TARTAN_ABI
