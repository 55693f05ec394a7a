// SPDX-License-Identifier: Apache-2.0
// How long a program waits for a kernel's first result: from its description to PTX, to a loaded
// kernel, to the end of its first launch; beside NVRTC with CUDA C++ for the same instructions.
//
// Each figure is of a process of its own, the median over --runs of them:
//   cold     the cache is empty, and the driver's own cache is off
//   disk     the cache is warm, the process new
//   memory   the second time in the process, from a Loader
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "bench/latency/nvrtc.h"
#include "bench/latency/passes.h"

namespace {

using namespace tartan;
using latency::Pass;
using latency::Subject;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Words {
  int runs = 5;
  std::string device = "auto", nvrtc, json;
  bool limits = false;
  // Of the processes that measure.
  int subject = -1;
  std::string target, folder;
};

constexpr std::string_view no_nvrtc = "none";

// Generous: they find a cache that is not used, and compile times that have multiplied.
constexpr double cold_limit = 1000, warm_limit = 50;  // ms to the code

// What is measured of a pass, in microseconds.
struct Figure {
  const char* name;
  double& (*of)(Pass&);
};
constexpr Figure figures[] = {
    {"describe", [](Pass& pass) -> double& { return pass.steps.describe; }},
    {"generate", [](Pass& pass) -> double& { return pass.steps.generate; }},
    {"verify", [](Pass& pass) -> double& { return pass.steps.verify; }},
    {"cache", [](Pass& pass) -> double& { return pass.steps.cache; }},
    {"assemble", [](Pass& pass) -> double& { return pass.steps.assemble; }},
    {"load", [](Pass& pass) -> double& { return pass.steps.load; }},
    {"result", [](Pass& pass) -> double& { return pass.result; }},
    {"all", [](Pass& pass) -> double& { return pass.all; }},
};

Json values_of(Pass pass) {
  Json out;
  for (const Figure& each : figures) out[each.name] = each.of(pass);
  return out;
}

// ---- A process that measures.

Result<std::vector<Pass>> measured(const Words& words, Device& device) {
  const Subject& subject = latency::subjects()[static_cast<std::size_t>(words.subject)];
  if (!words.target.empty())
    return latency::nvrtc_passes(subject, device, words.nvrtc, words.target);
  const auto cache = Cache::open({.folder = words.folder});
  if (!cache) return cache.diags();
  return latency::tartan_passes(subject, device, *cache);
}

int measure(const Words& words) {
  auto device = Device::open(words.device);
  const auto passes = device ? measured(words, *device) : device.diags();
  Json out;
  if (!passes) out["error"] = passes.diags().text();
  else
    for (const Pass& each : *passes) out["passes"].push_back(values_of(each));
  fmt::print("{}\n", out.dump());
  return passes ? 0 : 1;
}

// ---- The process that starts them.

std::string in_quotes(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The passes of a new process.
Result<std::vector<Pass>> passes_of(const std::string& arguments) {
  const std::string command = fmt::format("CUDA_CACHE_DISABLE=1 {} {}",
                                          in_quotes(fs::read_symlink("/proc/self/exe")), arguments);
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (!pipe) return {"file"_rule, "cannot start a process: " + command};
  std::string text;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe))
    text.append(buffer, got);
  ::pclose(pipe);
  const Json out = Json::parse(text, nullptr, false);
  if (out.is_discarded()) return {"file"_rule, "a process ended without a result: " + command};
  if (out.contains("error")) return {"driver"_rule, out["error"].get<std::string>()};
  std::vector<Pass> passes;
  for (const Json& each : out["passes"]) {
    Pass& pass = passes.emplace_back();
    for (const Figure& figure : figures) figure.of(pass) = each[figure.name];
  }
  return passes;
}

// All runs of one way to a result.
struct Row {
  std::string kernel, way;
  std::vector<Pass> runs;
};

double median(const Row& row, const std::function<double(const Pass&)>& of) {
  std::vector<double> values;
  for (const Pass& each : row.runs) values.push_back(of(each));
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double median(const Row& row, const Figure& figure) {
  return median(row, [&](Pass pass) { return figure.of(pass); });
}

class Contest {
 public:
  Contest(const Words& words, const Device& device, bool with_nvrtc)
      : words_(words), gpu_(!device.emulated()), arch_(device.arch()), with_nvrtc_(with_nvrtc) {}

  Status run() {
    const auto& all = latency::subjects();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!runs_here(all[i])) {
        fmt::print(stderr, "{}: this GPU does not run it\n", all[i].title());
        continue;
      }
      if (Status status = measure_subject(i); !status) return status;
    }
    return Done{};
  }

  const std::vector<Row>& rows() const { return rows_; }

 private:
  bool runs_here(const Subject& subject) const {
    if (!gpu_) return true;
    return subject.arch.suffix ? subject.arch.sm == arch_.sm : subject.arch.sm <= arch_.sm;
  }

  Row& row(const Subject& subject, const std::string& way) {
    const auto same = [&](const Row& each) {
      return each.kernel == subject.title() && each.way == way;
    };
    const auto found = std::ranges::find_if(rows_, same);
    return found != rows_.end() ? *found : rows_.emplace_back(Row{subject.title(), way, {}});
  }

  // A process: its first pass is of way `first`, its second of way `again`.
  Status measure(std::size_t i, const std::string& arguments, const std::string& first,
                 const std::string& again) {
    const auto passes = passes_of(
        fmt::format("--subject {} --device {} {}", i, in_quotes(words_.device), arguments));
    if (!passes) return passes.diags();
    const Subject& subject = latency::subjects()[i];
    row(subject, first).runs.push_back((*passes)[0]);
    row(subject, again).runs.push_back((*passes)[1]);
    return Done{};
  }

  Status measure_subject(std::size_t i) {
    for (int run = 0; run < words_.runs; ++run) {
      std::string folder = (fs::temp_directory_path() / "tartan-latency-XXXXXX").string();
      if (!::mkdtemp(folder.data()))
        return {"file"_rule, fmt::format("cannot make a folder {}", folder)};
      Status status = Done{};
      for (const char* way : {"cold", "disk"})
        if (status) status = measure(i, "--folder " + in_quotes(folder), way, "memory");
      std::error_code none;
      fs::remove_all(folder, none);
      if (status) status = measure_nvrtc(i);
      if (!status) return status;
    }
    return Done{};
  }

  Status measure_nvrtc(std::size_t i) {
    const Subject& subject = latency::subjects()[i];
    if (!with_nvrtc_ || !subject.cuda.source) return Done{};
    const auto with = [&](const std::string& target) {
      const std::string library =
          words_.nvrtc.empty() ? std::string() : " --nvrtc " + in_quotes(words_.nvrtc);
      return fmt::format("--target {}{}", target, library);
    };
    const Status text = measure(i, with("compute_80"), "NVRTC, PTX", "NVRTC, PTX again");
    if (!text || !gpu_) return text;
    return measure(i, with(fmt::format("sm_{}", arch_.sm)), "NVRTC, cubin", "NVRTC, cubin again");
  }

  const Words& words_;
  const bool gpu_;
  const Arch arch_;
  const bool with_nvrtc_;
  std::vector<Row> rows_;
};

void print_table(const std::vector<Row>& rows) {
  fmt::print("{:<24}{:<20}", "ms", "");
  for (const Figure& each : figures) fmt::print("{:>9}", each.name);
  std::string last;
  for (const Row& row : rows) {
    fmt::print("\n{:<24}{:<20}", row.kernel == last ? "" : row.kernel, row.way);
    for (const Figure& each : figures) fmt::print("{:>9.2f}", median(row, each) / 1000);
    last = row.kernel;
  }
  fmt::print("\n");
}

Json json_of(const std::vector<Row>& rows, const std::string& device, const std::string& nvrtc) {
  Json out{{"schema_version", 2}, {"device", device}, {"nvrtc", nvrtc}};
  for (const Row& each : rows) {
    Json runs = Json::array();
    for (const Pass& pass : each.runs) runs.push_back(values_of(pass));
    Json medians;
    for (const Figure& figure : figures) medians[figure.name] = median(each, figure);
    out["rows"].push_back({{"kernel", each.kernel},
                           {"way", each.way},
                           {"median_us", std::move(medians)},
                           {"runs_us", std::move(runs)}});
  }
  return out;
}

// Without the driver, and without the emulator's parser and decoder.
double code_ms(const Pass& pass) {
  const StepTimes& steps = pass.steps;
  return (steps.describe + steps.generate + steps.verify + steps.cache) / 1000;
}

bool within_limits(const std::vector<Row>& rows) {
  bool all = !rows.empty();
  for (const Row& each : rows) {
    if (each.way.starts_with("NVRTC")) continue;
    const double limit = each.way == "cold" ? cold_limit : warm_limit;
    const double found = median(each, code_ms);
    if (found <= limit) continue;
    fmt::print(stderr, "{}, {}: expected code within {} ms, found {:.2f}\n", each.kernel, each.way,
               limit, found);
    all = false;
  }
  return all;
}

int compare(const Words& words) {
  const auto device = Device::open(words.device);
  if (!device) return fmt::print(stderr, "{}", device.diags().text()), 2;
  std::string version;
  if (words.nvrtc != no_nvrtc) {
    const auto nvrtc = latency::Nvrtc::open(words.nvrtc);
    if (nvrtc) version = nvrtc->version();
    else fmt::print(stderr, "{}", nvrtc.diags().text());
  }
  fmt::print("device: {}; NVRTC: {}; medians of {} processes\n", device->name(),
             version.empty() ? "none" : version, words.runs);
  Contest contest(words, *device, !version.empty());
  const Status status = contest.run();
  print_table(contest.rows());
  if (!status) return fmt::print(stderr, "{}", status.diags().text()), 1;
  if (!words.json.empty()) {
    const Json json = json_of(contest.rows(), device->name(), version);
    if (const Status written = write_file(words.json, json.dump(1) + "\n"); !written)
      return fmt::print(stderr, "{}", written.diags().text()), 2;
  }
  return !words.limits || within_limits(contest.rows()) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"From a kernel's description to its first result, cold and warm, beside NVRTC"};
  Words words;
  app.add_option("--runs", words.runs, "Processes for each figure")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--device", words.device, "auto, emulator, cuda or cuda:N")->capture_default_str();
  app.add_option("--nvrtc", words.nvrtc,
                 "NVRTC's library, or none; default: where the system's loader, CUDA_HOME and "
                 "/usr/local/cuda have it");
  app.add_option("--json", words.json, "Also write every run to this file");
  app.add_flag("--limits", words.limits,
               fmt::format("Exit with 1 if code takes more than {} ms cold or {} ms warm",
                           cold_limit, warm_limit));
  app.add_option("--subject", words.subject)->group("");
  app.add_option("--target", words.target)->group("");
  app.add_option("--folder", words.folder)->group("");
  CLI11_PARSE(app, argc, argv);
  return words.subject < 0 ? compare(words) : measure(words);
}
