// SPDX-License-Identifier: Apache-2.0
#include "runtime/equal_launch.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "runtime/engine.h"
#include "runtime/manifest_arguments.h"
#include "runtime/outcome.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

constexpr std::uint64_t own_buffers = 0x6f776e;  // of keys

void silent(std::string_view) {}  // what kernels print is not compared

// One run, step by step; each step says whether the next may follow.
class Run {
 public:
  Run(const Manifest& manifest, EqualRun& out) : manifest_(manifest), out_(out) {}

  void operator()(const std::vector<EqualBuffer>& buffers, const std::vector<std::string>& names,
                  const EqualOptions& options) {
    auto engine = emulator::make_engine({.hardware = manifest_.hardware,
                                         .max_steps = options.max_steps,
                                         .timeout = options.timeout,
                                         .threads = 1,
                                         .print = silent},
                                        out_.algebra.get());
    if (!accept(engine)) return;
    engine_ = *engine;
    auto module = engine_->load(std::string(manifest_.ptx.text()), manifest_.ptx.name());
    if (!accept(module)) return;
    if (!place(buffers, names) ||
        !launch(**module, manifest_.kernel, manifest_.launch, manifest_.params))
      return;
    for (const ManifestLaunch& each : manifest_.then)
      if (!launch(**module, each.kernel, each.launch, each.params)) return;
    const Status finished = engine_->synchronize();
    out_.steps = engine_->report().warp_instructions;
    for (const Finding& finding : engine_->findings())
      if (finding.level == Level::Error) out_.findings.push_back(finding);
    if (out_.findings.empty() && !accept(finished)) return;
    collect(buffers.size());
  }

 private:
  struct Placed {
    std::uint64_t address = 0;
    std::size_t bytes = 0;
  };

  bool place(const std::vector<EqualBuffer>& buffers, const std::vector<std::string>& names) {
    const auto own = manifest_.all_buffers();
    for (std::size_t i = 0; i < buffers.size(); ++i)
      if (!place(names[i], buffers[i].contents, buffers[i].bytes, buffers[i].key, buffers[i].exact))
        return false;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const ManifestBuffer& each = *own[i];
      if (addresses_.contains(each.name)) continue;
      std::vector<std::byte> contents = each.contents;
      contents.resize(each.size, std::byte{each.fill});
      if (!place(each.name, contents, each.size, emulator::mix(own_buffers, i), false))
        return false;
    }
    return true;
  }

  bool place(const std::string& name, const std::vector<std::byte>& contents, std::size_t bytes,
             std::uint64_t key, bool exact) {
    const auto address = engine_->allocate(std::max<std::size_t>(bytes, 1));
    if (!accept(address)) return false;
    if (bytes && !accept(engine_->write(*address, contents))) return false;
    placed_.push_back({*address, bytes});
    addresses_.emplace(name, *address);
    out_.algebra->add_input(key, *address, bytes, exact);
    return true;
  }

  std::uint64_t address_of(const std::string& name) const {
    const auto found = addresses_.find(name);
    return found == addresses_.end() ? 0 : found->second;
  }

  bool launch(EngineModule& module, const std::string& name, const Launch& launch,
              const std::vector<ManifestParam>& params) {
    auto kernel = module.kernel(name);
    if (!accept(kernel)) return false;
    const auto arguments =
        manifest_arguments(params, [&](const std::string& buffer) { return address_of(buffer); });
    return accept(arguments) && accept((*kernel)->launch(launch, *arguments, nullptr));
  }

  void collect(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::byte> bits(placed_[i].bytes);
      std::vector<emulator::Tag> tags(placed_[i].bytes);
      if (!bits.empty() && !accept(engine_->read(placed_[i].address, bits))) return;
      const auto& input = out_.algebra->inputs()[i];
      if (input.host) out_.algebra->memory.load(input.host, tags.data(), tags.size());
      out_.bits.push_back(std::move(bits));
      out_.tags.push_back(std::move(tags));
    }
  }

  template <typename T>
  bool accept(const Result<T>& result) {
    if (result) return true;
    for (Diag diag : result.diags()) {
      if (!diag.place.known()) diag.place.file = manifest_.name;
      out_.refused.add(std::move(diag));
    }
    return false;
  }

  const Manifest& manifest_;
  EqualRun& out_;
  std::shared_ptr<Engine> engine_;
  std::vector<Placed> placed_;
  std::unordered_map<std::string, std::uint64_t> addresses_;  // by the buffers' names
};

}  // namespace

EqualRun run_under_algebra(const Manifest& manifest, const std::vector<EqualBuffer>& buffers,
                           const std::vector<std::string>& names, const EqualOptions& options,
                           const Replaced& replaced) {
  EqualRun out{.algebra = std::make_unique<emulator::Algebra>()};
  out.algebra->replaced = replaced;
  Run(manifest, out)(buffers, names, options);
  return out;
}

RunErrors errors_of_run(const Manifest& manifest, const std::vector<EqualBuffer>& buffers,
                        const std::vector<std::string>& names, const EqualOptions& options) {
  Manifest filled = manifest;
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < names.size(); ++i) places.emplace(names[i], i);
  const auto give = [&](ManifestBuffer& each) {
    const auto at = places.find(each.name);
    if (at != places.end() && !each.uninitialized) each.contents = buffers[at->second].contents;
  };
  const auto give_all = [&](std::vector<ManifestParam>& params) {
    for (ManifestParam& each : params)
      if (each.buffer) give(*each.buffer);
  };
  give_all(filled.params);
  for (ManifestLaunch& each : filled.then) give_all(each.params);
  std::ranges::for_each(filled.buffers, give);
  const Outcome outcome = tartan::run(filled, "emulator",
                                      {.max_steps = options.max_steps,
                                       .timeout = options.timeout,
                                       .checks = Checks::all,
                                       .print = silent});
  RunErrors out{.refused = outcome.refused};
  std::ranges::copy_if(outcome.findings, std::back_inserter(out.findings),
                       [&](const Finding& each) { return outcome.level(each) == Level::Error; });
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
