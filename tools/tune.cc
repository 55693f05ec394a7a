// SPDX-License-Identifier: Apache-2.0
// tools/tune.cc - tartan tune: measures which configuration of a kernel is the fastest, and keeps
// it in a file.
#include "tartan/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "kernels/common/options.h"
#include "kernels/registry/given.h"
#include "library/tune_search.h"
#include "tools/built_in.h"
#include "tools/commands.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

using kernels::Gemm;
using kernels::Trial;
using kernels::TuneResult;

struct TuneWords {
  std::string kernel, budget = "2s", file, device = "cuda";
  int candidates = kernels::TuneBudget{}.candidates;
  bool json = false;
  builtins::KernelRegistry registry;
  std::vector<std::string> given;  // of its options
};

// What describes a product of constant sizes, and the workspace; not the configuration.
std::vector<std::string_view> product_options() {
  std::vector<std::string_view> out{"workspace"};
  Gemm product;
  kernels::detail::each_member<true>(
      [&](const auto& row, const auto&) {
        if (row.chosen == kernels::detail::Chosen::never && !row.word.starts_with("multiple") &&
            row.word != "bit-op" && row.word != "batched")
          out.push_back(row.word);
      },
      product);
  return out;
}

// "2s", "500ms" or "2": seconds.
std::optional<double> read_seconds(const std::string& word) {
  double value = 0;
  const char* const end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data(), end, value);
  const std::string_view unit(at, static_cast<std::size_t>(end - at));
  if (error != std::errc() || !(value > 0) || (unit != "s" && unit != "ms" && !unit.empty()))
    return std::nullopt;
  return unit == "ms" ? value / 1000 : value;
}

std::string text_of(const Gemm& product) {
  return fmt::format("{} x {} x {}, {} to {}", product.m, product.n, product.k, name(product.a),
                     name(product.c));
}

void print_text(const TuneWords& words, const TuneResult& found) {
  const Gemm& best = found.best.choice;
  fmt::print("{} on {}: {} candidates, {:.1f} s\n", text_of(best), found.best.on.gpu,
             found.trials.size(), found.seconds);
  std::vector<const Trial*> order;
  for (const Trial& each : found.trials) order.push_back(&each);
  std::stable_sort(order.begin(), order.end(), [](const Trial* a, const Trial* b) {
    return (a->us > 0 ? a->us : 1e30) < (b->us > 0 ? b->us : 1e30);
  });
  fmt::print("{:>10} {:>8}  {}\n", "us", "samples", "configuration");
  for (const Trial* each : order) {
    const std::string options = detail::text_of(each->options);
    if (each->us > 0) fmt::print("{:>10.2f} {:>8}  {}\n", each->us, each->samples, options);
    else
      fmt::print(
          "{:>10} {:>8}  {}: {}\n", "-", 0, options,
          each->refused.empty() ? "no time was left to measure it" : each->refused[0].message);
  }
  if (const double chosen = found.trials[0].us; chosen > 0)
    fmt::print("the fastest takes {:.3f} of the time of tuned()'s choice\n",
               found.best.us / chosen);
  if (!words.file.empty()) fmt::print("{}: kept\n", words.file);
}

void print_json(const TuneResult& found) {
  nlohmann::ordered_json trials = nlohmann::ordered_json::array();
  for (const Trial& each : found.trials) {
    nlohmann::ordered_json trial = {
        {"options", detail::text_of(each.options)}, {"us", each.us}, {"samples", each.samples}};
    if (!each.refused.empty()) trial["refused"] = each.refused[0].message;
    trials.push_back(std::move(trial));
  }
  const nlohmann::ordered_json out = {{"schema_version", json_schema_version},
                                      {"gpu", found.best.on.gpu},
                                      {"driver", found.best.on.driver},
                                      {"library", found.best.on.library},
                                      {"target", found.best.target},
                                      {"options", detail::text_of(found.best.choice)},
                                      {"us", found.best.us},
                                      {"seconds", found.seconds},
                                      {"trials", std::move(trials)}};
  fmt::print("{}\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

int tune(const TuneWords& words) {
  const auto seconds = read_seconds(words.budget);
  if (!seconds)
    return usage_error(
        fmt::format("--budget {}: expected a time above 0, such as 2s or 500ms", words.budget),
        words.json);
  const int workspace = words.registry.value<int>("workspace");
  if (words.candidates < 1 || workspace < 0)
    return usage_error(fmt::format("--candidates {} --workspace {}: expected at least 1 candidate, "
                                   "and at least 0 bytes",
                                   words.candidates, workspace),
                       words.json);
  const auto product =
      builtins::read_gemm(words.registry, {kernels::Gpu(Target::of({80, 0})), words.given});
  if (!product) return fail(exit_usage, product.diags(), words.json);
  const auto device = Device::open(words.device);
  if (!device) return fail(exit_usage, device.diags(), words.json);
  // A file that is damaged or cannot be written is told before the search, not behind it.
  const bool keeps = !words.file.empty() && !device->emulated();
  if (const auto kept = keeps ? kernels::Tuning().merge_into(words.file) : Status(Done{}); !kept)
    return fail(exit_usage, kept.diags(), words.json);
  kernels::TuneBudget budget{.seconds = *seconds, .candidates = words.candidates};
  budget.workspace = workspace;
  const auto found = kernels::tune(*device, *product, budget);
  if (!found) return fail(device->emulated() ? exit_usage : exit_failed, found.diags(), words.json);
  if (!words.file.empty()) {
    kernels::Tuning tuning;
    tuning.add(found->best);
    if (const Status kept = tuning.merge_into(words.file); !kept)
      return fail(exit_usage, kept.diags(), words.json);
  }
  if (words.json) print_json(*found);
  else print_text(words, *found);
  return exit_ok;
}

}  // namespace

void add_tune(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<TuneWords>();
  CLI::App* command =
      app.add_subcommand("tune", "Measure which configuration of a kernel is the fastest");
  command->add_option("KERNEL", words->kernel, "Name of the kernel: gemm")
      ->required()
      ->check([](const std::string& name) {
        return name == "gemm"
                   ? std::string()
                   : fmt::format("only configurations of gemm are searched, found {}", name);
      });
  command->add_option("--budget", words->budget, "Time of the search: 2s, 500ms")
      ->capture_default_str();
  command
      ->add_option("--candidates", words->candidates,
                   "How many configurations: the cost model's best")
      ->capture_default_str();
  command->add_option(
      "--file", words->file,
      "Keep the fastest in this file of JSON, beside what it has; `tartan emit gemm "
      "--tuning` and kernels::Tuning read it");
  command->add_option("--device", words->device, "cuda or cuda:N")->capture_default_str();
  command->add_flag("--json", words->json, "Print one JSON object");
  const auto options = product_options();
  for (const builtins::Option& each : words->registry.options())
    if (std::ranges::find(options, each.name) != options.end()) add_option(*command, each);
  for (const char* size : {"--m", "--n", "--k"}) {
    CLI::Option* const option = command->get_option(size);
    option->required();
    option->default_str("");
  }
  command->footer(
      "Exit codes: 0 found, 1 results differ or no configuration runs, 2 usage, I/O or no GPU");
  command->callback([=, &exit_code] {
    for (const std::string_view option : options)
      if (command->count(fmt::format("--{}", option))) words->given.emplace_back(option);
    exit_code = tune(*words);
  });
}

}  // namespace tartan::tools
