// SPDX-License-Identifier: Apache-2.0
#include "runtime/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "compiler/support/messages.h"
#include "compiler/verify/first_errors.h"
#include "runtime/device_access.h"
#include "runtime/emulator/schedules/exploration.h"
#include "runtime/emulator/trial.h"
#include "runtime/launch_findings.h"
#include "runtime/levels.h"
#include "runtime/manifest_arguments.h"
#include "runtime/profile_report.h"
#include "tartan/ptx/parser.h"
#include "tartan/runtime/trace.h"

namespace tartan::TARTAN_ABI {
namespace {

using Json = nlohmann::ordered_json;

Finding to_finding(const Diag& diag) {
  return {.id = std::string(diag.id),
          .message = diag.message,
          .line = diag.place.line,
          .level = diag.level};
}

// Whether a diagnostic is about the kernel. The others say that it could not be run here, or not in
// this way.
bool is_defect(const Diag& diag) {
  constexpr std::string_view circumstances[] = {
      "no-driver",        "no-device",    "driver-version", "driver",
      "unknown-kernel",   "buffer-range", "foreign-device", "unsupported-instruction",
      "launch-arguments", "file",         "manifest",       "usage",
      "out-of-memory",
  };
  return std::ranges::find(circumstances, diag.id) == std::end(circumstances);
}

// One run, step by step; each step returns whether to continue.
class Run {
 public:
  Run(const Manifest& manifest, Outcome& outcome) : manifest_(manifest), outcome_(outcome) {}

  void operator()(const std::string& device_name, const DeviceOptions& options) {
    if (!(options.exploration && options.exploration->checked) && !check()) return;
    auto device = Device::open(device_name, options);
    if (!accept(device)) return;
    outcome_.device = device->name();
    outcome_.remark = device->remark();
    outcome_.emulated = device->emulated();
    if (!device->emulated()) timeline_ = options.timeline;
    const bool launched = load(*device) && fill(*device, options.trial.get()) && launch(*device);
    const Status finished = launched ? device->synchronize() : Status(Done{});
    // What the emulator's checks find does not end a launch, and all of it is among the findings.
    const bool ended = launched && (outcome_.emulated || accept(finished));
    for (const Finding& finding : device->findings()) add(finding);
    outcome_.report = device->report();
    outcome_.ended =
        ended && std::ranges::none_of(outcome_.findings, &Finding::stopped) && read_results();
  }

 private:
  struct PreparedLaunch {
    LoadedKernel kernel;
    Launch launch;
    const std::vector<ManifestParam>* params = nullptr;
    Arguments arguments;
  };

  bool check() {
    ptx::Module tree;
    Diags found = verify::first_errors(
        std::make_shared<Source>(manifest_.ptx.name(), std::string(manifest_.ptx.text())), tree);
    if (!found.ok()) {
      outcome_.refused.append(std::move(found));
      return false;
    }
    if (outcome_.hardware.empty() && !tree.targets.empty()) outcome_.hardware = tree.targets[0];
    for (const Diag& diag : found) {
      if (diag.level == Level::Note || detail::is_of_newer_text(diag.id)) continue;
      Finding finding = to_finding(diag);
      if (!detail::is_shown_by_launch(diag.id)) finding.level = Level::Error;
      add(finding);
    }
    return true;
  }

  bool load(Device& device) {
    text_.text = manifest_.ptx.text();
    if (timeline_ && !add_timestamps()) return false;
    auto module = device.load(text_.text, manifest_.ptx.name());
    if (!accept(module)) return false;
    module_ = *module;
    if (!add_launch(*module, manifest_.kernel, manifest_.launch, manifest_.params)) return false;
    for (const ManifestLaunch& each : manifest_.then)
      if (!add_launch(*module, each.kernel, each.launch, each.params)) return false;
    outcome_.warnings = module->warnings();
    return true;
  }

  // On a GPU kernels write their timeline themselves.
  bool add_timestamps() {
    Diags diags;
    const auto tree = ptx::parse(std::make_shared<Source>(manifest_.ptx.name(), text_.text), diags);
    if (ptx::is_traced(tree)) return true;
    auto traced = ptx::traced(text_.text, manifest_.ptx.name());
    if (!accept(traced)) return false;
    text_ = *std::move(traced);
    return true;
  }

  bool add_launch(const Module& module, const std::string& name, const Launch& launch,
                  const std::vector<ManifestParam>& params) {
    auto kernel = module.kernel(name);
    if (!kernel && outcome_.emulated && kernel.diags()[0].id != "time-limit"_rule.id) {
      outcome_.refused.append(kernel.diags());  // what the emulator cannot run: it ran nothing
      return false;
    }
    if (!accept(kernel)) return false;
    launches_.push_back({std::move(*kernel), launch, &params, {}});
    return true;
  }

  bool fill(Device& device, detail::Trial* trial) {
    for (const ManifestBuffer* each : manifest_.all_buffers())
      if (!allocate(device, *each, trial)) return false;
    for (PreparedLaunch& each : launches_) {
      auto arguments = manifest_arguments(
          *each.params, [&](const std::string& name) { return find(name)->address(); });
      if (!accept(arguments)) return false;
      each.arguments = std::move(*arguments);
    }
    return true;
  }

  bool allocate(Device& device, const ManifestBuffer& wanted, detail::Trial* trial) {
    auto buffer = device.allocate(wanted.size);
    if (!accept(buffer)) return false;
    detail::DeviceAccess::engine(device).set_name(
        buffer->address(), {wanted.name, wanted.type, wanted.shape, wanted.size});
    if (wanted.uninitialized && trial && trial->contents) {
      std::vector<std::byte>& bytes = outcome_.unwritten_contents[wanted.name];
      bytes.resize(wanted.size);
      trial->contents->fill(bytes);
      if (!accept(buffer->write(bytes))) return false;
      keep(wanted, std::move(*buffer));
      return true;
    }
    // The emulator's memory is zeros, and what nobody has written is known to its checks.
    const bool untouched = wanted.uninitialized && device.emulated() && !(trial && trial->poisons);
    if (!untouched && !accept(wanted.contents.empty() ? buffer->fill(wanted.fill)
                                                      : buffer->write(wanted.contents)))
      return false;
    keep(wanted, std::move(*buffer));
    return true;
  }

  // Names are unique, and the manifest's reader has checked those that maps name.
  const Buffer* find(const std::string& name) const {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : &buffers_[found->second].second;
  }

  void keep(const ManifestBuffer& of, Buffer buffer) {
    places_.emplace(of.name, buffers_.size());
    buffers_.emplace_back(&of, std::move(buffer));
  }

  bool launch(Device& device) {
    for (PreparedLaunch& each : launches_) {
      if (timeline_ ? !launch_traced(device, each)
                    : !accept(each.kernel.launch(each.launch, each.arguments)))
        return false;
    }
    return true;
  }

  bool launch_traced(Device& device, PreparedLaunch& each) {
    const auto trace =
        Trace::start(device, *module_, text_, each.kernel.name(), each.launch, timeline_->limits());
    return accept(trace) && accept(each.kernel.launch(each.launch, each.arguments)) &&
           accept(device.synchronize()) && accept(trace->add_to(*timeline_));
  }

  bool read_results() {
    for (const auto& [of, buffer] : buffers_) {
      if (!of->expect && of->save.empty() && of->prints.empty() && !outcome_.emulated) continue;
      auto got = buffer.read_all<std::byte>();
      if (!accept(got)) return false;
      outcome_.results.emplace_back(of->name, std::move(*got));
      find_unwritten(buffer, 0, buffer.size(), outcome_.unwritten[of->name]);
    }
    return true;
  }

  // By halves.
  static void find_unwritten(const Buffer& buffer, std::size_t offset, std::size_t bytes,
                             std::vector<std::pair<std::size_t, std::size_t>>& ranges) {
    const auto part = buffer.part(offset, bytes);
    const auto left = part ? part->unwritten() : std::nullopt;
    if (!left || !left->bytes) return;
    if (left->bytes == bytes) return void(ranges.emplace_back(offset, bytes));
    find_unwritten(buffer, offset, bytes / 2, ranges);
    find_unwritten(buffer, offset + bytes / 2, bytes - bytes / 2, ranges);
  }

  template <typename T>
  bool accept(const Result<T>& result) {
    if (result) return true;
    for (Diag diag : result.diags()) {
      if (!diag.place.known()) diag.place.file = manifest_.name;
      if (!is_defect(diag)) {
        outcome_.refused.add(std::move(diag));
        continue;
      }
      Finding finding = to_finding(diag);
      finding.stopped = !outcome_.emulated;
      add(finding);
    }
    return false;
  }

  // The error that stopped a launch is also among the device's findings, with its block and thread:
  // keep that one.
  void add(Finding finding) {
    finding.message = detail::shortened(std::move(finding.message));
    for (Finding& known : outcome_.findings) {
      if (known.id != finding.id || known.line != finding.line) continue;
      const bool placed = known.block == no_block && finding.block != no_block &&
                          known.message.starts_with(finding.message);
      if (!placed && known.message != finding.message) continue;
      if (placed) known = std::move(finding);
      return;
    }
    outcome_.findings.push_back(std::move(finding));
  }

  const Manifest& manifest_;
  Outcome& outcome_;
  std::shared_ptr<Timeline> timeline_;  // on a GPU, if one is wanted
  ptx::Traced text_;                    // what is loaded
  std::optional<Module> module_;
  std::vector<PreparedLaunch> launches_;
  std::vector<std::pair<const ManifestBuffer*, Buffer>> buffers_;
  std::unordered_map<std::string_view, std::size_t> places_;  // among them, by name
};

// For text output: the message is followed by block and thread, and preceded by the C++ line if
// known, else the line of the PTX text.
Diag to_diag(const Finding& finding, Level level, const std::string& ptx) {
  Diag diag{.level = level, .id = finding.id, .message = finding.message};
  if (finding.id == "step-limit") diag.message += ": an infinite loop, or raise --max-steps";
  if (finding.id == "time-limit")
    diag.message += ": an infinite loop or a large grid; otherwise raise --timeout";
  if (finding.block != no_block && finding.id != "interrupted")
    diag.message +=
        fmt::format(", in block ({}, {}, {})", finding.block.x, finding.block.y, finding.block.z);
  if (finding.lane >= 0) diag.message += fmt::format(", thread {}", finding.lane);
  diag.place = {ptx, finding.line, 0};
  if (finding.source.empty()) return diag;
  diag.place = {finding.source, 0, 0};
  if (finding.line)
    diag.message = fmt::format("line {} of {}: {}", finding.line, ptx, diag.message);
  return diag;
}

std::string text_of(const Expectation& expectation) {
  const Difference& difference = expectation.difference;
  const std::string how = expectation.comparison.text(), buffer = printable(expectation.buffer);
  const std::string_view unit = expectation.comparison.type == Type::b8 ? "bytes" : "elements";
  if (expectation.ok())
    return fmt::format("{}: {} {} as expected, {}\n", buffer, difference.elements, unit, how);
  const std::string first =
      expectation.shape.empty()
          ? fmt::format("index {}", difference.first)
          : fmt::format("{}[{}]", buffer, detail::index_text(expectation.shape, difference.first));
  return fmt::format("{}: {} of {} {} differ, {}; first at {}: expected {}, found {}\n", buffer,
                     difference.mismatched, difference.elements, unit, how, first,
                     difference.expected, difference.got);
}

// A JSON number if JSON can express it, else its text: "nan", "inf", "0x3f".
Json value_of(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_number() ? value : Json(text);
}

// Many readers parse JSON numbers as doubles, which do not hold all 64 bits.
std::string hex(std::uint64_t address) { return fmt::format("0x{:x}", address); }

Json json_of(const Finding& finding, Level level) {
  Json json = {
      {"id", finding.id},     {"level", level_name(level)}, {"message", finding.message},
      {"line", finding.line}, {"source", finding.source},   {"block", nullptr},
      {"lane", nullptr},      {"address", finding.address}, {"address_hex", hex(finding.address)}};
  if (finding.block != no_block)
    json["block"] = {finding.block.x, finding.block.y, finding.block.z};
  if (finding.lane >= 0) json["lane"] = finding.lane;
  return json;
}

Json json_of(const Expectation& expectation) {
  const Difference& difference = expectation.difference;
  Json json = {{"buffer", expectation.buffer},
               {"ok", expectation.ok()},
               {"elements", difference.elements},
               {"mismatched", difference.mismatched},
               {"first", nullptr}};
  if (!expectation.ok())
    json["first"] = {{"index", difference.first},
                     {"expected", value_of(difference.expected)},
                     {"got", value_of(difference.got)}};
  if (!expectation.ok() && !expectation.shape.empty())
    json["first"]["element"] = detail::index_text(expectation.shape, difference.first);
  return json;
}

}  // namespace

std::optional<Level> Outcome::level(const Finding& finding) const {
  const Rule* const rule = find_rule(finding.id);
  if (finding.stopped || !rule) return Level::Error;
  return levels.overridden(*rule).value_or(finding.level);
}

bool Outcome::has_errors() const {
  return std::ranges::any_of(findings,
                             [&](const Finding& each) { return level(each) == Level::Error; });
}

int Outcome::exit_code() const {
  if (has_errors()) return 3;
  if (!refused.ok()) return 2;
  if (unchecked || !std::ranges::all_of(expectations, &Expectation::ok)) return 1;
  return undecided ? 4 : 0;
}

std::string Outcome::text(bool with_report) const {
  std::string out = printed;
  for (const Expectation& expectation : expectations) out += text_of(expectation);
  if (!schedules.empty()) out += fmt::format("schedules: {}\n", schedules);
  if (!with_report) return out;
  if (device.empty()) return out;  // nothing ran
  out += fmt::format("device: {}\n", device);
  if (emulated)
    out += fmt::format(
        "warp instructions: {}\nlane instructions: {}\nmultiply-adds: {}\ntime in launches: {:.6f} "
        "s\n",
        report.warp_instructions, report.lane_instructions, report.multiply_adds, report.seconds);
  if (!report.instructions.empty()) out += profile_text(report.instructions);
  return out;
}

std::string Outcome::trust_note() const {
  const NumericTrust& trust = report.trust;
  if (!emulated || trust.level.empty() || trust.level == "recorded") return "";
  const bool assumed = trust.level == "assumed";
  return fmt::format("{}: the results depend on arithmetic that is only {}: {} ({})\n",
                     assumed ? "warning" : "note", trust.level, trust.instruction, trust.source);
}

std::string Outcome::complaints(bool colour) const {
  std::string out = remark.empty() ? "" : fmt::format("note: {}\n", remark);
  out += trust_note();
  out += warnings.text(colour);
  out += refused.text(colour);
  for (const Finding& finding : findings)
    if (const auto level = this->level(finding))
      out += to_text(to_diag(finding, *level, ptx), colour) + '\n';
  return out;
}

std::string Outcome::json() const {
  Json list = Json::array(), compared = Json::array();
  for (const Diag& diag : refused) list.push_back(json_of(to_finding(diag), diag.level));
  for (const Finding& finding : findings)
    if (const auto level = this->level(finding)) list.push_back(json_of(finding, *level));
  for (const Expectation& expectation : expectations) compared.push_back(json_of(expectation));
  Json json, unknown = Json::array();
  for (const Diag& diag : warnings)
    unknown.push_back({{"id", diag.id}, {"message", diag.message}, {"line", diag.place.line}});
  json["schema_version"] = json_schema_version;
  json["manifest"] = manifest;
  json["ptx"] = ptx;
  json["findings"] = std::move(list);
  if (!unknown.empty()) json["warnings"] = std::move(unknown);
  json["expectations"] = std::move(compared);
  json["report"] = {{"device", device},
                    {"warp_instructions", report.warp_instructions},
                    {"lane_instructions", report.lane_instructions},
                    {"multiply_adds", report.multiply_adds},
                    {"seconds", report.seconds},
                    {"trust",
                     {{"level", report.trust.level},
                      {"instruction", report.trust.instruction},
                      {"source", report.trust.source}}}};
  if (!report.instructions.empty())
    json["report"]["instructions"] = profile_json(report.instructions);
  if (!remark.empty()) json["report"]["remark"] = remark;
  if (!schedules.empty()) json["report"]["schedules"] = schedules;
  if (!printed.empty()) json["printed"] = printed;
  if (!output.empty()) json["output"] = output;
  if (output_left_out) json["output_left_out"] = output_left_out;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

// What is compared, is read.
void report_unwritten(const ManifestBuffer& buffer, Outcome& outcome) {
  const auto& ranges = outcome.unwritten[buffer.name];
  if (ranges.empty()) return;
  std::size_t bytes = 0;
  for (const auto& range : ranges) bytes += range.second;
  const std::size_t first = ranges.front().first;
  const std::string from =
      buffer.type == Type::none
          ? fmt::format("byte {}", first)
          : detail::BufferName{buffer.name, buffer.type, buffer.shape}.element(first);
  outcome.findings.push_back(
      {.id = std::string("uninitialized-read"_rule.id),
       .message = fmt::format("buffer {} is compared with what is expected, but {} of its {} "
                              "bytes were never written, from {} on",
                              buffer.name, bytes, buffer.size, from)});
}

void compare_results(const Manifest& manifest, Outcome& outcome) {
  std::unordered_map<std::string_view, const std::vector<std::byte>*> results;
  for (const auto& [name, bytes] : outcome.results) results.emplace(name, &bytes);
  for (const ManifestBuffer* each : manifest.all_buffers()) {
    if (!each->expect) continue;
    report_unwritten(*each, outcome);
    outcome.expectations.push_back(
        {each->name, each->comparison,
         compare(each->comparison, *each->expect, *results.at(each->name)),
         each->comparison.type == each->type ? each->shape : std::vector<std::uint64_t>()});
  }
}

}  // namespace

Outcome run(const Manifest& manifest, const std::string& device, DeviceOptions options,
            const RuleLevels& levels) {
  if (!options.exploration && options.timeout > 0) {  // of all launches of all runs
    options.exploration = std::make_shared<detail::Exploration>();
    options.exploration->deadline = detail::deadline_after(options.timeout, detail::Clock::now());
  }
  if (options.checks != Checks::none) {
    options.trial = std::make_shared<detail::Trial>();
    options.trial->notes = true;
  }
  Outcome outcome = launch_once(manifest, device, options);
  outcome.levels = levels;
  if (!outcome.ended) return outcome;
  if (outcome.emulated) settle_levels(manifest, options, outcome);
  // What the text alone shows does not make the results worthless.
  const bool wrong = std::ranges::any_of(outcome.findings, [&](const Finding& each) {
    return each.block != no_block && outcome.level(each) == Level::Error;
  });
  if (!wrong) compare_results(manifest, outcome);
  return outcome;
}

Outcome launch_once(const Manifest& manifest, const std::string& device, DeviceOptions options) {
  if (options.hardware.empty()) options.hardware = manifest.hardware;
  Outcome outcome{.manifest = manifest.name,
                  .ptx = manifest.ptx.name(),
                  .kernel = manifest.kernel,
                  .hardware = options.hardware,
                  .blocks = manifest.launch.grid.count()};
  for (const ManifestLaunch& each : manifest.then) outcome.blocks += each.launch.grid.count();
  outcome.trial = options.trial;
  try {
    Run(manifest, outcome)(device, options);
  } catch (const std::bad_alloc&) {
    outcome.refused.report("out-of-memory"_rule, {manifest.name, 0, 0}, "out of host memory");
  }
  return outcome;
}

Outcome refused(Diags diags) {
  Outcome outcome;
  outcome.refused = std::move(diags);
  return outcome;
}

}  // namespace tartan::TARTAN_ABI
