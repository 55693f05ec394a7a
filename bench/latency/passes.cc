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
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Result<Pass> wrong_result(const Subject& subject) {
  return {"driver"_rule, fmt::format("{}: the result is wrong", subject.title())};
}

// `ready`: compiles and loads, and fills in the times of that.
template <typename MakeReady>
Result<Pass> tartan_pass(const Subject& subject, Device& device, const MakeReady& ready) {
  const auto problem = subject.problem(device);
  if (!problem) return problem.diags();
  Pass pass;
  const auto kernel = ready(pass);
  if (!kernel) return kernel.diags();
  const auto start = Clock::now();
  Status done = (*kernel)->launch(subject.grid, problem->arguments);
  if (done) done = device.synchronize();
  if (!done) return done.diags();
  pass.result = since(start);
  return problem->is_right() ? Result<Pass>(pass) : wrong_result(subject);
}

using Ready = Result<std::shared_ptr<const ReadyKernel>>;

// What Loader::load() of a kernel does, with a look at the clock in between.
Ready in_steps(const Subject& subject, const Cache& cache, const Loader& loader, Pass& pass) {
  const auto start = Clock::now();
  const auto compiled = compile(subject.kernel(), subject.arch, cache);
  if (!compiled) return compiled.diags();
  pass.code = since(start);
  auto ready = loader.load(*compiled);
  pass.load = since(start) - pass.code;
  return ready;
}

Ready at_once(const Subject& subject, const Loader& loader, Pass& pass) {
  const auto start = Clock::now();
  auto ready = loader.load(subject.kernel(), subject.arch);
  pass.load = since(start);
  return ready;
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
  pass.code = since(start);
  const auto bytes = std::as_bytes(std::span(*code));
  const auto module = target.starts_with("sm_") ? device.load(bytes, subject.cuda.name)
                                                : device.load(*code, subject.cuda.name);
  if (!module) return module.diags();
  auto kernel = module->kernel(subject.cuda.name);
  if (!kernel) return kernel.diags();
  pass.load = since(start) - pass.code;
  Status done = kernel->launch(subject.cuda.launch, problem->arguments);
  if (done) done = device.synchronize();
  if (!done) return done.diags();
  pass.result = since(start) - pass.code - pass.load;
  return problem->is_right() ? Result<Pass>(pass) : wrong_result(subject);
}

}  // namespace

Result<std::vector<Pass>> tartan_passes(const Subject& subject, Device& device,
                                        const Cache& cache) {
  const Loader loader(device, cache);
  const auto first = tartan_pass(
      subject, device, [&](Pass& pass) { return in_steps(subject, cache, loader, pass); });
  if (!first) return first.diags();
  // The Loader has it by its PTX; from here on it has it by its key, too.
  if (const Ready kept = loader.load(subject.kernel(), subject.arch); !kept) return kept.diags();
  const auto again =
      tartan_pass(subject, device, [&](Pass& pass) { return at_once(subject, loader, pass); });
  if (!again) return again.diags();
  return std::vector<Pass>{*first, *again};
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
