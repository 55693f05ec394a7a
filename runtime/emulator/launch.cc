// SPDX-License-Identifier: Apache-2.0
// A launch: blocks over host threads.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <thread>

#include "runtime/emulator/cluster.h"
#include "runtime/emulator/module.h"

namespace tartan::emulator {
namespace {

constexpr int turns_in_a_row = 256;  // slices per warp before a thread looks after another cluster
constexpr std::size_t clusters_in_flight =
    32;  // per host thread, for kernels whose blocks wait for each other

constexpr Dim3 unstated{0, 0, 0};

// Clusters of a launch, handed out in order. After a finding only earlier ones go on, so the
// finding of the earliest is reported whatever the number of threads.
class Work {
 public:
  Work(LaunchContext& context, const DeviceOptions& options)
      : context_(context),
        options_(options),
        blocks_(context.launch.grid.count()),
        clusters_(blocks_ / context.cluster.count()) {}

  void run() {
    std::vector<std::unique_ptr<Cluster>> idle;
    struct Running {
      std::unique_ptr<Cluster> cluster;
      std::uint64_t index;
    };
    std::vector<Running> running;
    std::size_t turn = 0;
    Report report;
    for (;;) {
      if (running.size() < clusters_in_flight && (running.empty() || turn == 0))
        if (const std::uint64_t index = next_.fetch_add(1);
            index < clusters_ && index < failed_.load()) {
          if (idle.empty()) idle.push_back(std::make_unique<Cluster>(context_));
          running.push_back({std::move(idle.back()), index});
          idle.pop_back();
          running.back().cluster->start(index);
          turn = running.size() - 1;
        }
      if (running.empty()) break;
      Running& now = running[turn];
      const bool done = now.index > failed_.load() || now.cluster->run(turns_in_a_row);
      if (done) {
        now.cluster->count(report);
        if (options_.progress) options_.progress(done_ += context_.cluster.count(), blocks_);
        if (now.cluster->finding()) record(now.index, *now.cluster->finding());
        idle.push_back(std::move(now.cluster));
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(turn));
      } else {
        ++turn;
      }
      if (turn >= running.size()) turn = 0;
    }
    const std::scoped_lock lock(mutex_);
    report_.warp_instructions += report.warp_instructions;
    report_.lane_instructions += report.lane_instructions;
    report_.multiply_adds += report.multiply_adds;
  }

  const Report& report() const { return report_; }
  const std::optional<Finding>& finding() const { return finding_; }

 private:
  void record(std::uint64_t index, const Finding& finding) {
    const std::scoped_lock lock(mutex_);
    if (index >= failed_.load()) return;
    failed_ = index;
    finding_ = finding;
  }

  LaunchContext& context_;
  const DeviceOptions& options_;
  const std::uint64_t blocks_, clusters_;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<std::uint64_t> failed_ = std::numeric_limits<std::uint64_t>::max();
  std::mutex mutex_;
  Report report_;
  std::optional<Finding> finding_;
};

}  // namespace

Dim3 Kernel::cluster_of(const Launch& launch) const {
  if (launch.cluster != unstated) return launch.cluster;
  return program_->required_cluster != unstated ? program_->required_cluster : Dim3{};
}

Status Kernel::check_cluster(const Launch& launch) const {
  const Dim3 stated = launch.cluster, required = program_->required_cluster,
             cluster = cluster_of(launch);
  const auto text = [](Dim3 size) { return fmt::format("{} x {} x {}", size.x, size.y, size.z); };
  const auto refuse = [&](std::string why) {
    return Status("launch-arguments"_rule, fmt::format("kernel {} {}", name(), why));
  };
  if (stated != unstated && required != unstated && stated != required)
    return refuse(fmt::format("is compiled for clusters of {} blocks (.reqnctapercluster), not {}",
                              text(required), text(stated)));
  if (program_->explicit_cluster && stated == unstated && required == unstated)
    return refuse("is compiled for launches that state a cluster (.explicitcluster)");
  if (program_->max_cluster != 0 && cluster.count() > program_->max_cluster)
    return refuse(
        fmt::format("is compiled for clusters of at most {} blocks (.maxclusterrank), "
                    "not {}",
                    program_->max_cluster, cluster.count()));
  if (auto status = detail::check_cluster(launch.grid, cluster); !status) return status;
  const Arch arch = module_->machine().hardware.value_or(module_->target());
  if (cluster.count() > 1 && arch.sm < 90)
    return refuse(fmt::format("cannot run in clusters of several blocks: {} has none, sm_90 has",
                              arch.text()));
  return Done{};
}

Status Kernel::check(const Launch& launch, const Arguments& arguments) const {
  if (Status status = detail::check_launch(*this, launch, arguments); !status) return status;
  if (Status status = check_cluster(launch); !status) return status;
  const Program& program = *program_;
  const Dim3 wanted = program.required_block;
  if (wanted.x != 0 && wanted != launch.block)
    return {
        "launch-arguments"_rule,
        fmt::format(
            "kernel {} is compiled for blocks of {} x {} x {} threads (.reqntid), not {} x {} x {}",
            name(), wanted.x, wanted.y, wanted.z, launch.block.x, launch.block.y, launch.block.z)};
  if (program.max_threads != 0 && launch.block.count() > program.max_threads)
    return {"launch-arguments"_rule,
            fmt::format("kernel {} is compiled for at most {} threads (.maxntid), not {}", name(),
                        program.max_threads, launch.block.count())};
  const Arch arch = module_->machine().hardware.value_or(module_->target());
  const ArchRow* row = find_arch(arch);
  const std::uint64_t bytes =
      launch.dynamic_shared ? std::uint64_t{program.dynamic_shared_base} + launch.dynamic_shared
                            : program.shared_bytes;
  if (row && bytes > static_cast<std::uint64_t>(row->shared_bytes))
    return {"launch-arguments"_rule,
            fmt::format("kernel {} needs {} bytes of shared memory, a block of {} has {}", name(),
                        bytes, arch.text(), row->shared_bytes)};
  return Done{};
}

Status Kernel::launch(const Launch& launch, const Arguments& arguments, detail::EngineStream*) {
  if (Status status = check(launch, arguments); !status) return status;
  module_->machine().run([&](GlobalMemory& memory) { run(launch, arguments, memory); });
  return Done{};
}

void Kernel::run(const Launch& launch, const Arguments& arguments, GlobalMemory& memory) {
  Machine& machine = module_->machine();
  LaunchContext context{*program_,
                        module_->tree(),
                        memory,
                        launch,
                        cluster_of(launch),
                        launch.cluster != unstated || program_->required_cluster != unstated,
                        std::vector<std::byte>(program_->param_bytes),
                        machine.options.max_steps,
                        &machine.heap};
  for (std::size_t i = 0; i < arguments.size(); ++i)
    std::memcpy(context.params.data() + program_->param_offsets[i], arguments[i].data(),
                arguments[i].size());

  const auto begin = std::chrono::steady_clock::now();
  if (machine.options.progress) machine.options.progress(0, launch.grid.count());
  Work work(context, machine.options);
  const int wanted = machine.options.threads > 0
                         ? machine.options.threads
                         : static_cast<int>(std::thread::hardware_concurrency());
  const auto threads = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::max(wanted, 1)), 1,
                                                 launch.grid.count());
  {
    std::vector<std::jthread> others;
    for (std::uint64_t i = 1; i < threads; ++i) others.emplace_back([&] { work.run(); });
    work.run();
  }
  Report report = work.report();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  machine.add(report, program_->basis);
  if (work.finding()) machine.add(*work.finding(), describe(*work.finding()));
}

Diag Kernel::describe(const Finding& finding) const {
  std::string text = finding.message;
  text += fmt::format(" (kernel {}, block {},{},{}", name(), finding.block.x, finding.block.y,
                      finding.block.z);
  if (finding.lane >= 0) text += fmt::format(", thread {}", finding.lane);
  text += finding.source.empty() ? ")" : fmt::format(", {})", finding.source);
  const Rule* rule = find_rule(finding.id);
  return {.level = Level::Error,  // it stopped the launch, whatever the rule is for a text
          .id = rule->id,
          .place = {module_->tree().source->name(), finding.line, 1},
          .message = std::move(text)};
}

}  // namespace tartan::emulator
