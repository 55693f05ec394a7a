// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/measure.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <random>
#include <thread>

#include "bench/gpu/probe.h"
#include "tartan/launch.h"

namespace gpu {

using namespace tartan;

void give_up(const Diags& diags) {
  std::cout.flush();
  std::cerr << diags.text();
  std::exit(1);
}

Session::Session(int argc, char** argv, const std::string& device_name)
    : device(must(Device::open(device_name))), stream(must(device.stream())) {
  run.program = std::filesystem::path(argv[0]).filename().string();
  run.command = run.program;
  for (int i = 1; i < argc; ++i) run.command += fmt::format(" {}", argv[i]);
  run.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  run.device = device.name();
  run.driver = driver_version();
  fmt::print("{}\n", run.device);
}

double seconds(Session& session, const std::function<void()>& launch, int count) {
  Event begin = must(session.device.event()), end = must(session.device.event());
  must(begin.record(&session.stream));
  for (int i = 0; i < count; ++i) launch();
  must(end.record(&session.stream));
  return must(end.milliseconds_since(begin)) / 1000 / count;
}

void measure(Session& session, std::vector<Contestant>& contestants, int rounds) {
  std::mt19937 random(1);
  std::vector<Contestant*> order;
  for (Contestant& each : contestants) order.push_back(&each);
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (Contestant* each : order) {
      const double work = each->figure.operations * each->products / 1e12;
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      each->launch();
      each->figure.cool.push_back(work / seconds(session, each->launch, 1));
      const int count = each->products > 1 ? 5 : 20;
      each->figure.hot.push_back(work / seconds(session, each->launch, count));
    }
  }
}

void report(Session& session, std::string title, std::string how,
            const std::vector<Contestant>& contestants) {
  Race race{std::move(title), std::move(how), {}};
  for (const Contestant& each : contestants) race.figures.push_back(each.figure);
  std::cout << table(race) << std::flush;
  session.run.races.push_back(std::move(race));
}

Target target_of(const Device& device) {
  Arch arch = device.arch();
  if (arch.sm >= 90) arch.suffix = 'a';
  Target out = Target::of(arch);
  out.ptx = std::max(out.ptx, Version{8, 4});  // mma.sync of fp8
  return out;
}

Result<Runner> Runner::make(Device& device, const Kernel& kernel, Dim3 grid) {
  Runner out;
  const auto begin = std::chrono::steady_clock::now();
  auto compiled = compile(kernel, target_of(device));
  if (!compiled) return compiled.diags();
  out.compiled_ = std::move(*compiled);
  out.compile_ms_ =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  const auto module = device.load(out.compiled_.ptx, out.compiled_.name);
  if (!module) return module.diags();
  auto loaded = module->kernel(out.compiled_.name);
  if (!loaded) return loaded.diags();
  out.kernel_.emplace(std::move(*loaded));
  out.launch_ = {.grid = grid,
                 .block = {static_cast<unsigned>(out.compiled_.block)},
                 .dynamic_shared = static_cast<unsigned>(out.compiled_.dynamic_shared)};
  return out;
}

Status Runner::add(const Arguments& arguments) {
  auto all = arguments_of(compiled_, arguments);
  if (!all) return all.diags();
  arguments_.push_back(std::move(*all));
  return Done{};
}

Status Runner::launch(const Stream& stream, std::size_t set) {
  return kernel_->launch(launch_, arguments_[set], &stream);
}

namespace {

constexpr Probe probe{.block = 256, .accumulators = 16};
constexpr unsigned probe_blocks = 132 * 8;
constexpr int probe_rounds = 8000;

}  // namespace

std::optional<Ceiling> Ceiling::make(Session& session, std::string_view spelling) {
  if (session.device.emulated()) return {};
  Buffer sink = must(session.device.allocate(std::size_t{probe_blocks} * probe.block * 8));
  auto runner = Runner::make(session.device, mma_probe(spelling, probe), {probe_blocks});
  if (!runner || !runner->add(Arguments().add(probe_rounds).add(sink))) return {};
  return Ceiling(std::move(sink), std::move(*runner),
                 probe_operations(spelling, probe, probe_blocks, probe_rounds));
}

Contestant Ceiling::contestant(Session& session, std::string name) {
  return {{.name = std::move(name), .peer = true, .operations = operations_},
          [this, &session] { must(runner_.launch(session.stream)); }};
}

}  // namespace gpu
