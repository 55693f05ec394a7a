// SPDX-License-Identifier: Apache-2.0
// A launch: blocks over host threads.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "compiler/support/demangle.h"
#include "compiler/support/host_memory.h"
#include "runtime/emulator/interruption.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/matrix/rule.h"
#include "runtime/emulator/matrix/tensor_product.h"
#include "runtime/emulator/module.h"
#include "runtime/emulator/observers.h"
#include "runtime/emulator/schedules/exploration.h"
#include "runtime/emulator/schedules/grid.h"
#include "runtime/emulator/schedules/schedule.h"
#include "runtime/emulator/trial.h"
#include "tartan/isa/feature.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Slices per warp of a round, in which a host thread looks after each of its running clusters.
constexpr int round_turns = 256;
// Clusters of a host thread that run side by side for no other reason than that they take long, and
// how many turns each of them has had without an end when more are let in: they may wait for those.
constexpr std::size_t usual_in_flight = 32;
constexpr int patience = 32;
constexpr std::uint64_t most_host_bytes = std::uint64_t{1} << 30;  // for what runs side by side

constexpr Dim3 unstated{0, 0, 0};

// How many blocks of so many threads and bytes of shared memory one of them holds.
std::uint64_t blocks_of_multiprocessor(const Multiprocessor& each, const ArchRow* row,
                                       std::uint64_t threads, std::uint64_t shared) {
  const std::uint64_t blocks =
      std::min<std::uint64_t>(each.blocks, each.warps / ((threads + 31) / 32));
  if (!row || !shared) return blocks;
  return std::min(blocks, (static_cast<std::uint64_t>(row->shared_bytes) + each.shared_reserved) /
                              (shared + each.shared_reserved));
}

// About how many clusters the multiprocessors hold at the same time.
std::uint64_t residents_of_gpu(const LaunchContext& context, const ArchRow* row) {
  const std::uint64_t held =
      blocks_of_multiprocessor(context.multiprocessor, row, context.launch.block.count(),
                               Block::shared_bytes(context)) *
      context.multiprocessor.count / context.cluster.count();
  return std::max<std::uint64_t>(held, 1);
}

// Those that the host has memory for, too.
std::uint64_t most_residents(const LaunchContext& context, const ArchRow* row) {
  const std::uint64_t room =
      most_host_bytes / (context.cluster.count() * Block::host_bytes(context) + 1);
  return std::max<std::uint64_t>(std::min(residents_of_gpu(context, row), room), 1);
}

// Clusters of a launch, handed out in order. After a finding only earlier ones go on, so the
// finding of the earliest is reported whatever the number of threads.
class Work {
 public:
  Work(LaunchContext& context, const DeviceOptions& options, const ArchRow* row)
      : context_(context),
        options_(options),
        residents_(residents_of_gpu(context, row)),
        blocks_(context.launch.grid.count()),
        clusters_(blocks_ / context.cluster.count()) {
    const std::uint64_t of_cluster = context.cluster.count() * Block::host_bytes(context);
    const std::uint64_t room = std::max<std::uint64_t>(most_host_bytes / (of_cluster + 1), 1);
    // Which cluster takes which would depend on the host's threads.
    const int wanted = !std::ranges::all_of(context.observers, &LaunchObserver::concurrent) ||
                               context.program.takes_clusters
                           ? 1
                       : options.threads > 0
                           ? options.threads
                           : static_cast<int>(std::thread::hardware_concurrency());
    threads_ = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::max(wanted, 1)), 1,
                                         std::min(clusters_, room));
    room_ = std::max<std::uint64_t>(
        std::min(room / threads_, (residents_ + threads_ - 1) / threads_), 1);
    context_.cancel = [this] { return cancel(); };
  }

  void run() {
    std::vector<std::jthread> others;
    try {
      for (std::uint64_t i = 1; i < threads_; ++i) others.emplace_back([&] { run_share(); });
    } catch (const std::system_error&) {
      // The host has no more threads: those that there are do all of it.
    }
    run_share();
    others.clear();
    if (finding_) interruption_.explain(*finding_, done_, context_);
  }

  const Report& report() const { return report_; }
  const std::optional<Finding>& finding() const { return finding_; }
  bool out_of_memory() const { return out_of_memory_; }

 private:
  struct Running {
    std::unique_ptr<Cluster> cluster;
    std::uint64_t index = 0;
  };
  // Of a host thread.
  struct Share {
    std::vector<std::unique_ptr<Cluster>> idle;
    std::vector<Running> running;
    std::size_t wanted = 1;  // clusters side by side
    int turns_in_vain = 0;   // since one of them was done
    std::size_t room = 0;
    Report report;
    const NumericRule* least = nullptr;  // of products whose types their descriptors say
  };

  void run_share() {
    Share share;
    share.room = room_;
    try {
      do admit(share);
      while (run_round(share));
    } catch (const std::bad_alloc&) {
      out_of_memory_ = true;
    }
    const std::scoped_lock lock(mutex_);
    report_.warp_instructions += share.report.warp_instructions;
    report_.lane_instructions += share.report.lane_instructions;
    report_.multiply_adds += share.report.multiply_adds;
    if (!share.least || (least_ && least_->trust >= share.least->trust)) return;
    least_ = share.least;
    report_.trust = {std::string(name(least_->trust)), "tcgen05.mma", std::string(least_->source)};
  }

  bool given_up(std::uint64_t index) const { return index > failed_.load() || out_of_memory_; }

  // The next cluster, which then never starts: another one does its work.
  std::optional<Dim3> cancel() {
    if (next_.load() >= clusters_) return std::nullopt;
    const std::uint64_t index = next_.fetch_add(1);
    if (index >= clusters_) return std::nullopt;
    done_ += context_.cluster.count();
    return Cluster::first_block(context_, index);
  }

  void admit(Share& share) {
    while (share.running.size() < share.wanted && next_.load() < clusters_) {
      if (share.idle.empty() && !make_cluster(share)) return;
      const std::uint64_t index = next_.fetch_add(1);
      if (index >= clusters_ || given_up(index)) return;
      share.running.push_back({std::move(share.idle.back()), index});
      share.idle.pop_back();
      share.running.back().cluster->start(index);
    }
  }

  // False: those that run have all that there is.
  bool make_cluster(Share& share) {
    try {
      share.idle.push_back(std::make_unique<Cluster>(context_));
      return true;
    } catch (const std::bad_alloc&) {
      if (share.running.empty()) throw;
      share.room = share.wanted = share.running.size();
      return false;
    }
  }

  // False: there was none to run.
  bool run_round(Share& share) {
    const std::size_t before = share.running.size();
    if (before == 0) return false;
    const int turns = std::max(round_turns / static_cast<int>(before), 1);
    for (std::size_t i = 0; i < share.running.size();) {
      Running& now = share.running[i];
      if (!given_up(now.index) && !now.cluster->run(turns)) {
        ++i;
        continue;
      }
      finish(share, now);
      share.idle.push_back(std::move(now.cluster));
      share.running.erase(share.running.begin() + static_cast<std::ptrdiff_t>(i));
    }
    share.turns_in_vain = share.running.size() < before ? 0 : share.turns_in_vain + turns;
    if (share.turns_in_vain > 0) want_more(share);
    return true;
  }

  void want_more(Share& share) {
    const std::size_t now = share.running.size();
    if (now >= usual_in_flight) {
      if (share.turns_in_vain < patience) return;
      share.turns_in_vain = 0;
    }
    const std::size_t twice = now < usual_in_flight ? std::min(2 * now, usual_in_flight) : 2 * now;
    share.wanted = std::max(share.wanted, std::min(twice, share.room));
  }

  void finish(Share& share, const Running& now) {
    now.cluster->count(share.report);
    const NumericRule* const rule = least_known_product(now.cluster->scratch);
    if (rule && (!share.least || share.least->trust < rule->trust)) share.least = rule;
    const std::uint64_t done = done_ += context_.cluster.count();
    if (options_.progress) options_.progress(done, blocks_);
    if (context_.watch && context_.watch->stopped()) interruption_.add(now.index, *now.cluster);
    if (!now.cluster->finding()) return;
    Finding finding = *now.cluster->finding();
    const bool endless = finding.id == "step-limit"_rule.id || finding.id == "time-limit"_rule.id;
    if (endless && share.running.size() >= share.room) explain_full(share, finding);
    record(now.index, finding);
  }

  // Those that run go on without end, and there was no room for more: they may wait for these. At a
  // time limit they may be slow, too.
  void explain_full(const Share& share, Finding& finding) const {
    const std::uint64_t started = std::min(next_.load(), clusters_);
    if (started == clusters_) return;
    const std::uint64_t size = context_.cluster.count();
    const bool slow = finding.id == "time-limit"_rule.id;
    if (!slow) finding.id = "deadlock"_rule.id;
    const std::uint64_t running = share.running.size() * threads_;
    const std::string why =
        running >= residents_
            ? fmt::format("the GPU holds {} at a time", residents_ * size)
            : fmt::format("the emulator has no memory left for them (a block needs {} bytes)",
                          Block::host_bytes(context_));
    finding.message +=
        fmt::format(": {} blocks {}, and {} cannot start because {}", running * size,
                    slow ? "have not finished" : "never finish", (clusters_ - started) * size, why);
    if (slow) finding.message += "; a block that waits for one of those never finishes";
  }

  void record(std::uint64_t index, const Finding& finding) {
    const std::scoped_lock lock(mutex_);
    if (index >= failed_.load()) return;
    failed_ = index;
    finding_ = finding;
  }

  LaunchContext& context_;
  const DeviceOptions& options_;
  const std::uint64_t residents_;  // clusters that the multiprocessors hold at the same time
  const std::uint64_t blocks_, clusters_;
  std::uint64_t threads_ = 1, room_ = 1;  // host threads; clusters that each of them has room for
  std::atomic<bool> out_of_memory_ = false;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<std::uint64_t> failed_ = std::numeric_limits<std::uint64_t>::max();
  std::mutex mutex_;
  const NumericRule* least_ = nullptr;  // as Share::least
  Report report_;
  std::optional<Finding> finding_;
  Interruption interruption_;
};

// What running all clusters came to.
struct Ran {
  Report report;
  std::optional<Finding> finding;
  bool out_of_memory = false;
};

Ran run_as_usual(LaunchContext& context, const DeviceOptions& options, const ArchRow* row) {
  Work work(context, options, row);
  work.run();
  return {work.report(), work.finding(), work.out_of_memory()};
}

Ran run_scheduled(LaunchContext& context, const DeviceOptions& options, const ArchRow* row) {
  const std::uint64_t of_cluster = context.cluster.count(), blocks = context.launch.grid.count();
  try {
    Grid grid(context, *context.schedule, most_residents(context, row));
    grid.run([&](std::uint64_t done) {
      if (options.progress) options.progress(done * of_cluster, blocks);
    });
    return {grid.report(), grid.finding()};
  } catch (const std::bad_alloc&) {
    return {.out_of_memory = true};
  }
}

std::string extents(Dim3 of) { return fmt::format("{} x {} x {}", of.x, of.y, of.z); }

std::string shown(const Kernel& kernel) { return detail::demangled_name(kernel.name()); }

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
    return Status("launch-arguments"_rule, fmt::format("kernel {} {}", shown(*this), why));
  };
  if (stated != unstated && required != unstated && stated != required)
    return refuse(fmt::format("requires clusters of {} blocks (.reqnctapercluster), found {}",
                              text(required), text(stated)));
  if (program_->explicit_cluster && stated == unstated && required == unstated)
    return refuse("requires a cluster size at launch (.explicitcluster)");
  if (program_->max_cluster != 0 && cluster.count() > program_->max_cluster)
    return refuse(fmt::format("requires clusters of at most {} blocks (.maxclusterrank), found {}",
                              program_->max_cluster, cluster.count()));
  if (auto status = detail::check_cluster(launch.grid, cluster); !status) return status;
  if (cluster.count() > 1 && !module_->hardware().has(Feature::clusters))
    return refuse(fmt::format("uses clusters of several blocks: unsupported on {}, requires sm_90",
                              module_->hardware().text()));
  return Done{};
}

// All blocks of a cooperative grid are on the multiprocessors at the same time.
Status Kernel::check_cooperative(const Launch& launch) const {
  const Arch arch = module_->hardware();
  const Multiprocessor& each = multiprocessor_of(arch.sm);
  const std::uint64_t blocks =
      blocks_of_multiprocessor(each, find_arch(arch), launch.block.count(), shared_bytes(launch));
  if (launch.grid.count() <= blocks * each.count) return Done{};
  return {
      "launch-arguments"_rule,
      fmt::format("cooperative grid of {} blocks too large: {} with its {} multiprocessors "
                  "holds {} blocks of kernel {} at a time",
                  launch.grid.count(), arch.text(), each.count, blocks * each.count, shown(*this))};
}

Result<KernelResources> Kernel::resources() const {
  const std::uint64_t threads = program_->max_threads;
  return KernelResources{.static_shared = program_->shared_bytes,
                         .max_threads = static_cast<int>(threads ? threads : detail::most_threads)};
}

Result<int> Kernel::blocks_per_sm(std::uint32_t, std::uint32_t) const {
  return {"no-device"_rule,
          fmt::format("the occupancy of kernel {} depends on the registers that a GPU's assembler "
                      "gives it: the emulator has none",
                      shown(*this))};
}

std::uint64_t Kernel::shared_bytes(const Launch& launch) const {
  return launch.dynamic_shared
             ? std::uint64_t{program_->dynamic_shared_base} + launch.dynamic_shared
             : program_->shared_bytes;
}

Status Kernel::check(const Launch& launch, const Arguments& arguments) const {
  if (Status status = detail::check_launch(*this, launch, arguments); !status) return status;
  if (Status status = check_cluster(launch); !status) return status;
  if (launch.cooperative)
    if (Status status = check_cooperative(launch); !status) return status;
  const Arch arch = module_->hardware();
  if (launch.programmatic && !arch.has(Feature::dependent_launch))
    return {"launch-arguments"_rule,
            fmt::format("kernel {}: programmatic dependent launch is unsupported on {}, requires "
                        "sm_90",
                        shown(*this), arch.text())};
  const Dim3 wanted = program_->required_block;
  if (wanted.x != 0 && wanted != launch.block)
    return {"launch-arguments"_rule,
            fmt::format("kernel {} requires blocks of {} threads (.reqntid), found {}",
                        shown(*this), extents(wanted), extents(launch.block))};
  if (program_->max_threads != 0 && launch.block.count() > program_->max_threads)
    return {"launch-arguments"_rule,
            fmt::format("kernel {} supports at most {} threads per block (.maxntid), found {}",
                        shown(*this), program_->max_threads, launch.block.count())};
  const std::uint64_t bytes = shared_bytes(launch);
  if (const ArchRow* row = find_arch(arch);
      row && bytes > static_cast<std::uint64_t>(row->shared_bytes))
    return {"launch-arguments"_rule,
            fmt::format("kernel {} needs {} bytes of shared memory: a block of {} has at most {}",
                        shown(*this), bytes, arch.text(), row->shared_bytes)};
  return Done{};
}

Status Kernel::launch(const Launch& asked, const Arguments& arguments,
                      detail::EngineStream* stream) {
  Launch launch = asked;
  if (Status status = count_blocks(launch.grid); !status) return status;
  if (Status status = check(launch, arguments); !status) return status;
  Machine& machine = module_->machine();
  // grid.sync() of cooperative groups: the size of this, and a barrier's counter.
  constexpr std::uint64_t workspace_bytes = 8;
  std::uint64_t workspace = 0;
  if (launch.cooperative) {
    const auto address = machine.allocate(workspace_bytes);
    if (!address) return {"memory-fault"_rule, "out of host memory for the grid's barrier"};
    workspace = *address;
  }
  Status status = Done{};
  machine.run(
      [&](GlobalMemory& memory) { status = run(launch, arguments, memory, workspace, stream); });
  if (workspace) machine.free(workspace);
  return status;
}

Status Kernel::run(const Launch& launch, const Arguments& arguments, GlobalMemory& memory,
                   std::uint64_t workspace, const void* queue) {
  Machine& machine = module_->machine();
  const auto begin = std::chrono::steady_clock::now();
  LaunchContext context{*program_,
                        *module_->tree(),
                        memory,
                        launch,
                        cluster_of(launch),
                        launch.cluster != unstated || program_->required_cluster != unstated,
                        std::vector<std::byte>(program_->param_bytes),
                        machine.options.max_steps,
                        &machine.heap,
                        multiprocessor_of(module_->hardware().sm),
                        machine.next_grid(),
                        workspace};
  if (const std::uint64_t bytes = context.cluster.count() * Block::host_bytes(context);
      !detail::fits_in_memory(2 * bytes))  // what the checks keep is about as much
    return out_of_memory(context);
  context.deadline = detail::deadline_of(machine.options, begin);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    std::memcpy(context.params.data() + program_->param_offsets[i], arguments[i].data(),
                arguments[i].size());
  context.trial = machine.options.trial.get();
  context.watch = machine.options.watch.get();
  const WatchedLaunch watched(context.watch);
  if (machine.options.print) context.print = &machine.options.print;
  const std::shared_ptr<Predecessor> before = machine.take_predecessor();
  const bool overlaps = launch.programmatic && before && before->queue() == queue;
  context.checked = machine.options.checks != Checks::none;
  Observers observers(context, machine.options, machine.algebra, overlaps ? before.get() : nullptr);
  if (machine.options.progress) machine.options.progress(0, launch.grid.count());
  const auto schedule = make_schedule(machine.options.schedule);
  const detail::Exploration* const exploration = machine.options.exploration.get();
  context.schedule = exploration && exploration->schedule ? exploration->schedule : schedule.get();
  const ArchRow* const arch = find_arch(module_->hardware());
  const Ran ran = context.schedule ? run_scheduled(context, machine.options, arch)
                                   : run_as_usual(context, machine.options, arch);
  Report report = ran.report;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  observers.finish(report);
  machine.add(report, program_->basis);
  for (const Finding& finding : observers.findings()) machine.add(finding, describe(finding));
  if (Shadow* const global = observers.global())
    machine.set_predecessor(
        std::make_shared<Predecessor>(program_, module_->tree(), queue, std::move(*global)));
  if (ran.finding) {
    Finding last = *ran.finding;
    last.stopped = true;
    machine.add(last, describe(last));
  }
  if (ran.out_of_memory) return out_of_memory(context);
  return Done{};
}

Status Kernel::out_of_memory(const LaunchContext& context) const {
  return {"out-of-memory"_rule,
          fmt::format("out of host memory: a block of kernel {} needs {} bytes", shown(*this),
                      Block::host_bytes(context))};
}

Diag Kernel::describe(const Finding& finding) const {
  std::string text = finding.message;
  text += fmt::format(" (kernel {}, block {},{},{}", shown(*this), finding.block.x, finding.block.y,
                      finding.block.z);
  if (finding.lane >= 0) text += fmt::format(", thread {}", finding.lane);
  text += finding.source.empty() ? ")" : fmt::format(", {})", finding.source);
  return {.level = finding.level,
          .id = find_rule(finding.id)->id,
          .place = {module_->tree()->source->name(), finding.line, 1},
          .message = std::move(text)};
}

}  // namespace tartan::TARTAN_ABI::emulator
