// SPDX-License-Identifier: Apache-2.0
#include "bench/latency/passes.h"

#include <fmt/format.h>

#include <chrono>
#include <span>

#include "bench/latency/nvrtc.h"
#include "tartan/load.h"

namespace latency {
namespace {

using namespace tartan;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

Result<Pass> wrong_result(const Subject& subject) {
  return {"driver"_rule, fmt::format("{}: the result is wrong", subject.title())};
}

Result<Pass> tartan_pass(const Subject& subject, Device& device, const Loader& loader) {
  const auto problem = subject.problem(device);
  if (!problem) return problem.diags();
  Pass pass;
  const auto start = Clock::now();
  const auto kernel = [&] {
    const StepClock clock(pass.steps);
    return loader.load(subject.kernel(), subject.arch);
  }();
  if (!kernel) return kernel.diags();
  const auto launch = Clock::now();
  Status done = (*kernel)->launch(subject.grid, problem->arguments);
  if (done) done = device.synchronize();
  if (!done) return done.diags();
  pass.result = since(launch);
  pass.all = since(start);
  return problem->is_right() ? Result<Pass>(pass) : wrong_result(subject);
}

Result<Pass> nvrtc_pass(const Subject& subject, Device& device, const std::string& path,
                        const std::string& target) {
  const auto problem = subject.problem(device);
  if (!problem) return problem.diags();
  Pass pass;
  const auto start = Clock::now();
  const auto nvrtc = Nvrtc::open(path);  // loading the library is part of a program's first compile
  if (!nvrtc) return nvrtc.diags();
  const auto code = nvrtc->compile(subject.cuda.source, target);
  if (!code) return code.diags();
  pass.steps.generate = since(start);
  const auto bytes = std::as_bytes(std::span(*code));
  auto kernel = [&]() -> Result<LoadedKernel> {
    const StepClock clock(pass.steps);
    const auto module = target.starts_with("sm_") ? device.load(bytes, subject.cuda.name)
                                                  : device.load(*code, subject.cuda.name);
    if (!module) return module.diags();
    return module->kernel(subject.cuda.name);
  }();
  if (!kernel) return kernel.diags();
  const auto launch = Clock::now();
  Status done = kernel->launch(subject.cuda.launch, problem->arguments);
  if (done) done = device.synchronize();
  if (!done) return done.diags();
  pass.result = since(launch);
  pass.all = since(start);
  return problem->is_right() ? Result<Pass>(pass) : wrong_result(subject);
}

}  // namespace

Result<std::vector<Pass>> tartan_passes(const Subject& subject, Device& device,
                                        const Cache& cache) {
  const Loader loader(device, cache);
  std::vector<Pass> out;
  for (int i = 0; i < 2; ++i) {
    const auto pass = tartan_pass(subject, device, loader);
    if (!pass) return pass.diags();
    out.push_back(*pass);
  }
  return out;
}

Result<std::vector<Pass>> nvrtc_passes(const Subject& subject, Device& device,
                                       const std::string& path, const std::string& target) {
  std::vector<Pass> out;
  for (int i = 0; i < 2; ++i) {
    const auto pass = nvrtc_pass(subject, device, path, target);
    if (!pass) return pass.diags();
    out.push_back(*pass);
  }
  return out;
}

}  // namespace latency
