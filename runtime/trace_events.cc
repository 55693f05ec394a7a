// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/ptx/line_table.h"
#include "compiler/ptx/trace_sites.h"
#include "compiler/support/shared_layout.h"
#include "runtime/timeline_roles.h"
#include "runtime/trace_thread.h"
#include "tartan/ptx/parser.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

using isa::GroupKind;
using isa::Timed;
using Kind = TimelineEvent::Kind;
namespace word = ptx::trace_record;

constexpr std::uint32_t lanes_of_warp = 32;

using NamedPlace = std::pair<std::string, std::uint64_t>;

// The first variable of the module in shared memory, and what a comment says is where in it.
std::vector<NamedPlace> shared_places(const ptx::Module& module) {
  std::vector<NamedPlace> places{{"shared memory", 0}};
  for (const ptx::Item& item : module.items) {
    if (item.kind != ptx::ItemKind::Variable) continue;
    const ptx::Variable& variable = module.variables[item.index];
    if (variable.space != StateSpace::shared) continue;
    places[0].first = variable.name;
    for (auto& each : read_shared_layout(module.source->text(), variable.name))
      places.push_back(std::move(each));
    break;
  }
  return places;
}

class Builder {
 public:
  Builder(const TraceLaunch& launch, std::span<const TraceRecord> records,
          const ptx::Module& module, const ptx::Traced& text)
      : launch_(launch),
        module_(module),
        text_(text),
        lines_(text.text),
        sites_(ptx::trace_sites(module)),
        places_(shared_places(module)),
        threads_of_cta_(static_cast<std::uint32_t>(launch.shape.block.count())) {
    const std::size_t of_thread = launch.records_of_thread;
    for (std::size_t i = 0; (i + 1) * of_thread <= records.size(); ++i)
      threads_.push_back(read_trace_thread(records.subspan(i * of_thread, of_thread)));
  }

  void operator()(Timeline& timeline) {
    measure_rate();
    for (std::uint32_t cta = 0; cta < launch_.ctas; ++cta) add_cta(cta);
    keep_first(timeline.limits().events);
    TimelineLaunch out{.kernel = launch_.kernel,
                       .shape = launch_.shape,
                       .ctas = launch_.shape.grid.count(),
                       .kept_ctas = launch_.ctas,
                       .left_out = left_out_,
                       .measured_on = launch_.device};
    out.shape.cluster = {launch_.cluster, 1, 1};
    timeline.add(std::move(out), std::move(ctas_), std::move(barriers_), std::move(events_));
  }

 private:
  struct Entry {  // of a warp
    std::uint64_t time;
    std::uint32_t lane;
    const TraceRecord* record;
  };
  struct Flight {
    std::size_t event;
    GroupKind group;
    std::uint32_t lane, number;
  };

  TraceThread& thread(std::uint32_t cta, std::uint32_t index) {
    return threads_[std::size_t{cta} * threads_of_cta_ + index];
  }

  // Cycles of a nanosecond, by the thread that lived longest; the timer advances in steps.
  void measure_rate() {
    std::uint64_t longest = 0;
    for (const TraceThread& each : threads_) {
      if (each.first) start_ = std::min(start_, timer(*each.first));
      if (!each.exit || each.exit->time <= longest) continue;
      const std::uint32_t ns = each.exit->record->lanes - each.first->word;
      if (ns < 1000) continue;
      longest = each.exit->time;
      cycles_of_ns_ = static_cast<double>(longest) / ns;
    }
  }

  // Lives of warps, and what began first of the rest.
  void keep_first(std::size_t most) {
    if (events_.size() <= most) return;
    std::vector<std::size_t> order(events_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) {
      return std::pair(events_[i].kind != Kind::warp, events_[i].begin);
    });
    left_out_ += order.size() - most;
    order.resize(most);
    std::ranges::sort(order);
    std::vector<TimelineEvent> kept;
    kept.reserve(most);
    for (const std::size_t i : order) kept.push_back(std::move(events_[i]));
    events_ = std::move(kept);
  }

  // Of the launch, in nanoseconds. Warps of a CTA share their SM's cycle counter.
  std::uint64_t time_of(const TraceThread& of, std::uint64_t cycles) const {
    const auto behind = static_cast<std::int32_t>(of.first->clock - base_->clock);
    const double since = static_cast<double>(behind) + static_cast<double>(cycles);
    const double ns = static_cast<double>(timer(*base_) - start_) + since / cycles_of_ns_;
    return static_cast<std::uint64_t>(std::max(ns, 0.0));
  }

  void add_cta(std::uint32_t cta) {
    const Dim3 grid = launch_.shape.grid;
    ctas_.push_back({.place = {cta % grid.x, cta / grid.x % grid.y, cta / grid.x / grid.y}});
    cta_ = cta;
    base_ = nullptr;
    for (std::uint32_t i = 0; i < threads_of_cta_ && !base_; ++i) base_ = thread(cta, i).first;
    const std::uint32_t warps = (threads_of_cta_ + lanes_of_warp - 1) / lanes_of_warp;
    work_.assign(warps, {});
    const std::size_t first = events_.size();
    for (std::uint32_t warp = 0; warp < warps && base_; ++warp) add_warp(warp);
    land(first);
    std::ranges::stable_sort(events_.begin() + static_cast<std::ptrdiff_t>(first), events_.end(),
                             {}, &TimelineEvent::begin);
    for (std::size_t i = first; i < events_.size(); ++i) {
      TimelineEvent& event = events_[i];
      const bool run = event.kind == Kind::copy || event.kind == Kind::product;
      if (run && event.count > 1) event.name += fmt::format(" x{}", event.count);
    }
    ctas_.back().roles = timeline_roles(work_);
  }

  void add_warp(std::uint32_t warp) {
    warp_ = warp;
    open_.clear();
    flights_.clear();
    closed_.clear();
    last_ = none;
    std::vector<Entry> entries;
    TimelineEvent life{.kind = Kind::warp,
                       .cta = cta_,
                       .warp = static_cast<std::int32_t>(warp),
                       .begin = ~std::uint64_t{0},
                       .name = "warp"};
    const std::uint32_t begin = warp * lanes_of_warp;
    const std::uint32_t lanes = std::min(lanes_of_warp, threads_of_cta_ - begin);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      const TraceThread& of = thread(cta_, begin + lane);
      if (!of.first) continue;
      life.lanes |= 1u << lane;
      life.begin = std::min(life.begin, time_of(of, 0));
      life.ended &= of.exit.has_value();
      for (const TraceThread::Entry& each : of.entries) {
        entries.push_back({time_of(of, each.time), lane, each.record});
        life.end = std::max(life.end, entries.back().time);
      }
      if (!of.exit) continue;
      life.end = std::max(life.end, time_of(of, of.exit->time));
      left_out_ += of.exit->record->barrier;
    }
    if (!life.lanes) return;
    const std::size_t at = events_.size();
    events_.push_back(std::move(life));
    std::ranges::stable_sort(entries, {}, &Entry::time);
    for (const Entry& each : entries) add(each);
    const std::uint64_t end = events_[at].end;
    for (const auto& [key, index] : open_) events_[index].end = std::max(end, events_[index].begin);
    for (const Flight& each : flights_) events_[each.event].end = end;
  }

  void add(const Entry& entry) {
    const std::uint32_t number = entry.record->word & word::site;
    if (number >= sites_.size()) return;
    const ptx::TraceSite& site = sites_[number];
    if (entry.record->word & word::end) return close(entry, number);
    switch (site.kind) {
      case Timed::CopyAsync:
      case Timed::Multiplies: return open_run(entry, number);
      case Timed::Bulk:
      case Timed::Wgmma: return add_start(entry, number);
      case Timed::Commits:
        push(entry, number, Kind::commit, opcode(site));
        ++closed_[{entry.lane, site.group}];
        return;
      case Timed::Arrives: return add_arrival(entry, number);
      case Timed::Waits: return open(entry, number, opcode(site));
      case Timed::WaitsAtMbarrier: return open_poll(entry, number);
      case Timed::WaitsForCluster: return open(entry, number, "wait for cluster barrier");
      case Timed::WaitsForRegisters: return open(entry, number, opcode(site));
      case Timed::No: return;
    }
  }

  std::string opcode(const ptx::TraceSite& site) const {
    return std::string(isa::row(module_.spelling(*site.instruction).opcode).name);
  }

  TimelineEvent& push(const Entry& entry, std::uint32_t number, Kind kind, std::string name) {
    const ptx::TraceSite& site = sites_[number];
    const int line = module_.source->line(site.instruction->offset);
    TimelineEvent event{.kind = kind,
                        .cta = cta_,
                        .warp = static_cast<std::int32_t>(warp_),
                        .barrier = barrier_at(entry, site),
                        .begin = entry.time,
                        .end = entry.time + 1,
                        .lanes = entry.record->lanes,
                        .count = 1,
                        .name = std::move(name),
                        .opcode = std::string(site.instruction->opcode),
                        .line = line};
    const auto at = static_cast<std::size_t>(line);
    if (at < text_.lines.size()) event.line = text_.lines[at];
    if (const auto place = lines_.place(line))
      event.source = fmt::format("{}:{}", place->file, place->line);
    last_ = events_.size();
    return events_.emplace_back(std::move(event));
  }

  // ---- Barriers.

  std::int32_t named(std::uint32_t cta, std::string name) {
    const auto [found, fresh] =
        barrier_index_.try_emplace({cta, name}, static_cast<std::int32_t>(barriers_.size()));
    if (fresh) barriers_.push_back({.cta = cta, .name = std::move(name)});
    return found->second;
  }

  std::int32_t barrier_at(const Entry& entry, const ptx::TraceSite& site) {
    const isa::Opcode code = module_.spelling(*site.instruction).opcode;
    const std::uint32_t leader = cta_ / launch_.cluster * launch_.cluster;
    if (code == isa::Opcode::barrier_cluster_arrive || code == isa::Opcode::barrier_cluster_wait)
      return named(leader, "cluster barrier");
    if (!ptx::barrier_of(module_, *site.instruction)) return -1;
    const std::uint32_t value = entry.record->barrier;
    if (code == isa::Opcode::bar || code == isa::Opcode::barrier)
      return named(cta_, fmt::format("barrier {}", value));
    // The address says in the bits from 24 on whose shared memory it is, in a cluster.
    const TraceRecord* const of_leader = thread(leader, 0).first;
    const std::uint32_t base = base_->barrier, lowest = of_leader ? of_leader->barrier : base;
    const std::uint32_t rank = launch_.cluster > 1 ? (value >> 24) - (lowest >> 24) : 0;
    const std::uint32_t low = (1u << 24) - 1, distance = (value & low) - (base & low);
    return named(rank < launch_.cluster ? leader + rank : cta_, "mbarrier " + place(distance));
  }

  // Shared memory so far from the first variable: "pipeline+8".
  std::string place(std::uint32_t distance) const {
    const NamedPlace* nearest = &places_[0];
    for (const NamedPlace& each : places_)
      if (each.second <= distance && each.second >= nearest->second) nearest = &each;
    const std::uint64_t rest = distance - nearest->second;
    return rest ? fmt::format("{}+{}", nearest->first, rest) : nearest->first;
  }

  const std::string& name_of(std::int32_t barrier) const {
    return barriers_[static_cast<std::size_t>(barrier)].name;
  }

  // ---- Slices.

  // Copies and products of a warp that nothing else interrupts are one.
  void open_run(const Entry& entry, std::uint32_t number) {
    const ptx::TraceSite& site = sites_[number];
    const bool joins = last_ != none && events_[last_].kind != Kind::wait &&
                       events_[last_].opcode == site.instruction->opcode &&
                       events_[last_].name == opcode(site);
    if (!joins) {
      const Kind kind = site.kind == Timed::CopyAsync ? Kind::copy : Kind::product;
      push(entry, number, kind, opcode(site)).count = 0;
    }
    open_[{entry.lane, number}] = last_;
    TimelineEvent& run = events_[last_];
    run.lanes |= entry.record->lanes;
    (site.kind == Timed::CopyAsync ? work_[warp_].loads : work_[warp_].products)++;
    if (site.kind == Timed::CopyAsync) in_flight(entry, number, GroupKind::copies);
  }

  void add_start(const Entry& entry, std::uint32_t number) {
    const ptx::TraceSite& site = sites_[number];
    const bool multiplies = site.kind == Timed::Wgmma;
    const std::int32_t barrier =
        push(entry, number, multiplies ? Kind::product : Kind::copy, opcode(site)).barrier;
    if (multiplies) ++work_[warp_].products;
    else if (barrier >= 0) ++work_[warp_].loads;
    if (barrier >= 0) to_barrier(entry, number, barrier);
    else in_flight(entry, number, multiplies ? GroupKind::products : GroupKind::bulk);
  }

  void add_arrival(const Entry& entry, std::uint32_t number) {
    const ptx::TraceSite& site = sites_[number];
    TimelineEvent& event = push(entry, number, Kind::arrive, opcode(site));
    const bool cluster =
        module_.spelling(*site.instruction).opcode == isa::Opcode::barrier_cluster_arrive;
    const bool begins = module_.spelling(*site.instruction).opcode == isa::Opcode::mbarrier_init;
    if (event.barrier >= 0)
      event.name = fmt::format("{} {}", begins ? "init" : "arrive at", name_of(event.barrier));
    if (cluster || !ptx::waits_there(module_, *site.instruction)) return;
    open(entry, number, fmt::format("wait for {}", name_of(event.barrier)));
  }

  void open(const Entry& entry, std::uint32_t number, std::string name) {
    TimelineEvent& wait = push(entry, number, Kind::wait, std::move(name));
    wait.ended = false;
    open_[{entry.lane, number}] = last_;
  }

  // A wait whose polls are at several places is one wait.
  void open_poll(const Entry& entry, std::uint32_t number) {
    const std::int32_t barrier = barrier_at(entry, sites_[number]);
    const bool odd = entry.record->word & word::odd;
    const std::string name =
        barrier < 0 ? opcode(sites_[number])
                    : fmt::format("wait for {}, phase parity {:d}", name_of(barrier), odd);
    for (const auto& [key, index] : open_)
      if (key.first == entry.lane && events_[index].name == name) {
        const std::size_t same = index;
        open_[{entry.lane, number}] = same;
        return;
      }
    open(entry, number, name);
  }

  void close(const Entry& entry, std::uint32_t number) {
    const ptx::TraceSite& site = sites_[number];
    const bool run = site.kind == Timed::CopyAsync || site.kind == Timed::Multiplies;
    std::uint32_t from = number;
    while (run && !sites_[from].first) --from;
    // Lanes that began apart may have met since.
    for (std::uint32_t lane = 0; lane < lanes_of_warp; ++lane)
      if (lane == entry.lane || entry.record->lanes >> lane & 1) close(entry, number, from, lane);
    if (site.kind == Timed::Waits) wait_for_groups(entry, site);
  }

  void close(const Entry& entry, std::uint32_t number, std::uint32_t from, std::uint32_t lane) {
    const auto found = open_.find({lane, from});
    if (found == open_.end()) return;
    const std::size_t index = found->second;
    std::erase_if(open_, [&](const auto& each) { return each.second == index; });
    TimelineEvent& event = events_[index];
    event.end = std::max(entry.time, event.begin + 1);
    event.ended = true;
    if (event.kind == Kind::wait) return;
    event.count += number - from + 1;
    if (event.kind != Kind::copy) return;
    for (const Flight& each : flights_)
      if (each.lane == lane && each.number == closed_[{lane, GroupKind::copies}])
        events_[each.event].count += number - from;
  }

  // ---- From the start of a copy or product until the program has waited for it.

  void in_flight(const Entry& entry, std::uint32_t number, GroupKind group) {
    static constexpr const char* names[] = {"cp.async group", "bulk group", "wgmma group"};
    const std::uint32_t now = closed_[{entry.lane, group}];
    for (const Flight& each : flights_)
      if (each.group == group && each.lane == entry.lane && each.number == now) {
        ++events_[each.event].count;
        return;
      }
    const std::size_t before = last_;
    TimelineEvent& flight = push(entry, number, Kind::flight,
                                 fmt::format("{} {}", names[static_cast<int>(group)], now));
    flight.ended = false;
    flights_.push_back({last_, group, entry.lane, now});
    last_ = before;
  }

  void wait_for_groups(const Entry& entry, const ptx::TraceSite& site) {
    const auto operands = module_.operands_of(*site.instruction);
    const bool all = operands.empty() || operands[0].kind != ptx::OperandKind::Integer;
    const std::uint64_t pending = all ? 0 : operands[0].value;
    const std::uint32_t now = closed_[{entry.lane, site.group}];
    std::erase_if(flights_, [&](const Flight& each) {
      if (each.group != site.group || each.lane != entry.lane) return false;
      if (each.number + pending >= now && !(all && each.number == now)) return false;
      events_[each.event].end = entry.time;
      events_[each.event].ended = true;
      return true;
    });
  }

  void to_barrier(const Entry& entry, std::uint32_t number, std::int32_t barrier) {
    const std::size_t before = last_;
    TimelineEvent& flight =
        push(entry, number, Kind::flight, fmt::format("to {}", name_of(barrier)));
    flight.ended = false;
    last_ = before;
  }

  // Copies to an mbarrier have landed when the next wait there ends: phases follow each other.
  // Those of one phase become one flight.
  void land(std::size_t first) {
    std::vector<std::size_t> flights;
    for (std::size_t i = first; i < events_.size(); ++i)
      if (events_[i].kind == Kind::flight && events_[i].barrier >= 0) flights.push_back(i);
    std::ranges::stable_sort(flights, {}, [&](std::size_t i) { return events_[i].begin; });
    std::vector<std::size_t> joined;
    std::map<std::pair<std::int32_t, std::uint64_t>, std::size_t> known;  // by barrier and end
    for (const std::size_t i : flights) {
      TimelineEvent& flight = events_[i];
      for (std::size_t k = first; k < events_.size(); ++k) {
        const TimelineEvent& wait = events_[k];
        if (wait.kind != Kind::wait || wait.barrier != flight.barrier || !wait.ended) continue;
        if (wait.end < flight.begin || (flight.ended && wait.end >= flight.end)) continue;
        flight.end = wait.end;
        flight.ended = true;
      }
      const auto [one, fresh] = known.try_emplace({flight.barrier, flight.end}, i);
      if (fresh) continue;
      ++events_[one->second].count;
      joined.push_back(i);
    }
    std::ranges::sort(joined, std::greater());
    for (const std::size_t i : joined)
      events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  static constexpr std::size_t none = ~std::size_t{0};

  const TraceLaunch& launch_;
  const ptx::Module& module_;
  const ptx::Traced& text_;
  const LineTable lines_;
  const std::vector<ptx::TraceSite> sites_;
  const std::vector<NamedPlace> places_;
  const std::uint32_t threads_of_cta_;
  std::vector<TraceThread> threads_;
  std::vector<TimelineCta> ctas_;
  std::vector<TimelineBarrier> barriers_;
  std::vector<TimelineEvent> events_;
  std::map<std::pair<std::uint32_t, std::string>, std::int32_t> barrier_index_;
  std::uint64_t start_ = ~std::uint64_t{0}, left_out_ = 0;
  double cycles_of_ns_ = 1;

  // Of the CTA, and of the warp, that is being read.
  std::uint32_t cta_ = 0, warp_ = 0;
  const TraceRecord* base_ = nullptr;  // of its first thread
  std::vector<WarpWork> work_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> open_;  // by lane and site
  std::vector<Flight> flights_;
  std::map<std::pair<std::uint32_t, GroupKind>, std::uint32_t> closed_;
  std::size_t last_ = none;
};

}  // namespace

Status add_trace(const TraceLaunch& launch, std::span<const TraceRecord> records,
                 const ptx::Traced& text, Timeline& timeline) {
  Diags diags;
  const ptx::Module module = ptx::parse(std::make_shared<Source>("<ptx>", text.text), diags);
  if (!diags.ok()) return diags;
  Builder(launch, records, module, text)(timeline);
  return Done{};
}

}  // namespace tartan::TARTAN_ABI::detail
