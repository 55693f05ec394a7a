// SPDX-License-Identifier: Apache-2.0
#include "tartan/runtime/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "compiler/support/counted.h"

namespace tartan::TARTAN_ABI {
namespace {

using Json = nlohmann::ordered_json;
using Kind = TimelineEvent::Kind;

constexpr std::uint32_t first_warp = 1, first_barrier = 100'000, rows = 8;  // tids

std::string text(Dim3 place) { return fmt::format("{},{},{}", place.x, place.y, place.z); }
Json array(Dim3 place) { return {place.x, place.y, place.z}; }

// Where the slices of a CTA are drawn: each warp and each barrier has rows, and on a row slices
// nest. What does not nest (lanes of a warp that wait apart) goes to the next row.
class Rows {
 public:
  std::uint32_t place(const TimelineEvent& event, std::uint32_t base) {
    for (std::uint32_t row = 0; row + 1 < rows; ++row)
      if (fits(open_[base + row], event)) return base + row;
    open_[base + rows - 1].push_back(event.end);
    return base + rows - 1;
  }
  const std::map<std::uint32_t, std::vector<std::uint64_t>>& used() const { return open_; }

 private:
  static bool fits(std::vector<std::uint64_t>& ends, const TimelineEvent& event) {
    while (!ends.empty() && ends.back() <= event.begin) ends.pop_back();
    if (!ends.empty() && ends.back() < event.end) return false;
    ends.push_back(event.end);
    return true;
  }
  std::map<std::uint32_t, std::vector<std::uint64_t>> open_;  // ends of slices, by tid
};

class TraceEventFile {
 public:
  explicit TraceEventFile(const Timeline& timeline) : timeline_(timeline) {}

  std::string text() {
    lines_.clear();
    const auto& events = timeline_.events();
    // Where slices begin together, the longer one goes first, around the others.
    std::vector<std::size_t> order(events.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const auto key = [&](const TimelineEvent& event) {
        return std::tuple(event.cta, event.begin, ~event.end);
      };
      return key(events[a]) < key(events[b]);
    });
    tids_.resize(events.size());
    rows_.resize(timeline_.ctas().size());
    for (const std::size_t i : order) tids_[i] = tid(events[i]);
    for (std::uint32_t cta = 0; cta < timeline_.ctas().size(); ++cta) add_names(cta);
    for (const std::size_t i : order) {
      if (events[i].kind == Kind::flight) add_flight(events[i], i);
      else add_slice(events[i], i);
    }
    for (const std::size_t i : order)
      if (events[i].cause >= 0 && events[i].kind != Kind::phase) add_flow(i);
    std::string out = fmt::format(
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{},\n\"traceEvents\":[", dump(other_data()));
    for (std::size_t i = 0; i < lines_.size(); ++i) out += (i > 0 ? ",\n" : "\n") + lines_[i];
    return out + "\n]}\n";
  }

 private:
  static std::string dump(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  void add(const Json& json) { lines_.push_back(dump(json)); }

  Json other_data() const {
    Json launches = Json::array();
    for (const TimelineLaunch& each : timeline_.launches()) {
      Json launch = {{"kernel", each.kernel},
                     {"grid", array(each.shape.grid)},
                     {"block", array(each.shape.block)},
                     {"cluster", array(each.shape.cluster)},
                     {"ctas", each.ctas},
                     {"kept_ctas", each.kept_ctas},
                     {"events_left_out", each.left_out}};
      if (!each.stopped.empty()) launch["stopped"] = each.stopped;
      if (!each.measured_on.empty()) launch["measured_on"] = each.measured_on;
      launches.push_back(std::move(launch));
    }
    const bool measured = std::ranges::any_of(
        timeline_.launches(), [](const TimelineLaunch& each) { return !each.measured_on.empty(); });
    const char* const time =
        measured ? "timestamps that the kernel wrote on a GPU, in microseconds; writing them takes "
                   "time, too"
                 : "steps of the emulator (instructions that the warps of the CTA's cluster had "
                   "issued), shown as microseconds; not cycles";
    return {{"generator", "tartan"}, {"time", time}, {"launches", std::move(launches)}};
  }

  std::uint32_t tid(const TimelineEvent& event) {
    if (event.kind == Kind::flight) return first_warp + rows * static_cast<unsigned>(event.warp);
    return rows_[event.cta].place(
        event, event.warp >= 0 ? first_warp + rows * static_cast<unsigned>(event.warp)
                               : first_barrier + rows * static_cast<unsigned>(event.barrier));
  }

  void add_names(std::uint32_t cta) {
    const TimelineCta& of = timeline_.ctas()[cta];
    const auto name = [&](const char* what, std::uint32_t tid, Json arguments) {
      add({{"ph", "M"},
           {"name", what},
           {"pid", cta + 1},
           {"tid", tid},
           {"args", std::move(arguments)}});
    };
    const TimelineLaunch& launch = timeline_.launches()[of.launch];
    name("process_name", 0,
         {{"name", fmt::format("{}, CTA {} ({})", launch.kernel, tartan::text(of.place),
                               launch.measured_on.empty() ? "emulator steps, not cycles"
                                                          : "ns, timestamps of the kernel")},
          {"cta", array(of.place)},
          {"launch", of.launch}});
    name("process_sort_index", 0, {{"sort_index", cta}});
    for (const auto& [tid, ends] : rows_[cta].used()) {
      const bool more = (tid - (tid < first_barrier ? first_warp : first_barrier)) % rows != 0;
      name("thread_name", tid, row(of, tid, more));
      name("thread_sort_index", tid, {{"sort_index", tid}});
    }
  }

  Json row(const TimelineCta& of, std::uint32_t tid, bool more) const {
    const std::string suffix = more ? ", more" : "";
    if (tid >= first_barrier) {
      const std::uint32_t barrier = (tid - first_barrier) / rows;
      return {{"name", timeline_.barriers()[barrier].name + suffix},
              {"kind", "barrier"},
              {"barrier", barrier}};
    }
    const std::uint32_t warp = (tid - first_warp) / rows;
    const std::string& role = of.roles[warp];
    Json out = {{"name", fmt::format("warp {}{}{}", warp,
                                     role.empty() ? "" : fmt::format(" ({})", role), suffix)},
                {"kind", "warp"},
                {"warp", warp}};
    if (!role.empty()) out["role"] = role;
    return out;
  }

  Json arguments(const TimelineEvent& event) const {
    Json out = Json::object();
    if (event.line) out["line"] = event.line;
    if (!event.source.empty()) out["source"] = event.source;
    if (!event.opcode.empty()) out["opcode"] = event.opcode;
    if (event.lanes) out["lanes"] = fmt::format("0x{:08x}", event.lanes);
    if (event.count > 1) out["count"] = event.count;
    if (event.bytes) out["bytes"] = event.bytes;
    if (event.multiply_adds) out["multiply_adds"] = event.multiply_adds;
    if (event.arrivals) out["arrivals"] = event.arrivals;
    if (event.barrier >= 0)
      out["barrier"] = timeline_.barriers()[static_cast<std::size_t>(event.barrier)].name;
    if (event.done) out["done"] = event.done;
    if (!event.ended) out["ended"] = false;
    return out;
  }

  // The format's microseconds: of nanoseconds, or a step each.
  Json time(std::uint32_t cta, std::uint64_t value) const {
    const TimelineLaunch& launch = timeline_.launches()[timeline_.ctas()[cta].launch];
    if (launch.measured_on.empty()) return value;
    return static_cast<double>(value) / 1000;
  }

  Json slice(const TimelineEvent& event, std::size_t i, const char* phase, std::uint64_t at) const {
    return {{"ph", phase},          {"name", event.name}, {"cat", tartan::name(event.kind)},
            {"pid", event.cta + 1}, {"tid", tids_[i]},    {"ts", time(event.cta, at)}};
  }

  void add_slice(const TimelineEvent& event, std::size_t i) {
    Json out = slice(event, i, "X", event.begin);
    out["dur"] = time(event.cta, event.end - event.begin);
    out["args"] = arguments(event);
    add(out);
  }

  void add_flight(const TimelineEvent& event, std::size_t i) {
    for (const bool begins : {true, false}) {
      Json out = slice(event, i, begins ? "b" : "e", begins ? event.begin : event.end);
      out["id"] = fmt::format("0x{:x}", i);
      if (begins) out["args"] = arguments(event);
      add(out);
    }
  }

  // From the cause to the last step of what it ended.
  void add_flow(std::size_t i) {
    const TimelineEvent& to = timeline_.events()[i];
    const auto from_index = static_cast<std::size_t>(to.cause);
    const TimelineEvent& from = timeline_.events()[from_index];
    const std::uint64_t begin = from.end > from.begin ? from.end - 1 : from.begin;
    const std::uint64_t end = std::max(to.begin, to.end > 0 ? to.end - 1 : 0);
    for (const bool begins : {true, false}) {
      Json out = slice(begins ? from : to, begins ? from_index : i, begins ? "s" : "f",
                       begins ? std::min(begin, end) : end);
      out["name"] = to.kind == Kind::completion ? "completes" : "releases";
      out["cat"] = "flow";
      out["id"] = i;
      if (!begins) out["bp"] = "e";
      add(out);
    }
  }

  const Timeline& timeline_;
  std::vector<std::uint32_t> tids_;  // by event
  std::vector<Rows> rows_;           // by CTA
  std::vector<std::string> lines_;
};

}  // namespace

std::string_view name(TimelineEvent::Kind kind) {
  constexpr std::string_view names[] = {"warp", "copy",  "product",    "commit", "arrive",
                                        "wait", "phase", "completion", "flight"};
  return names[static_cast<std::size_t>(kind)];
}

void Timeline::add(TimelineLaunch launch, std::vector<TimelineCta> ctas,
                   std::vector<TimelineBarrier> barriers, std::vector<TimelineEvent> events) {
  const std::scoped_lock lock(mutex_);
  const auto first_cta = static_cast<std::uint32_t>(ctas_.size());
  const auto first_barrier = static_cast<std::int32_t>(barriers_.size());
  const auto first_event = static_cast<std::int64_t>(events_.size());
  for (TimelineCta& each : ctas) {
    each.launch = launches_.size();
    ctas_.push_back(std::move(each));
  }
  for (TimelineBarrier& each : barriers) {
    each.cta += first_cta;
    barriers_.push_back(std::move(each));
  }
  for (TimelineEvent& each : events) {
    each.cta += first_cta;
    if (each.barrier >= 0) each.barrier += first_barrier;
    if (each.cause >= 0) each.cause += first_event;
    events_.push_back(std::move(each));
  }
  launches_.push_back(std::move(launch));
}

std::string Timeline::json() const { return TraceEventFile(*this).text(); }

std::string Timeline::summary() const {
  std::string out;
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    const TimelineLaunch& launch = launches_[i];
    const auto events = std::ranges::count_if(
        events_, [&](const TimelineEvent& each) { return ctas_[each.cta].launch == i; });
    out += fmt::format("{}: {} of {}, {}", launch.kernel, launch.kept_ctas,
                       detail::counted(launch.ctas, "CTA"), detail::counted(events, "event"));
    if (launch.left_out) out += fmt::format("; {} more were left out", launch.left_out);
    out += '\n';
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI
