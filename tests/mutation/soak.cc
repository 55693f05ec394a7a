// SPDX-License-Identifier: Apache-2.0
#include "tests/mutation/soak.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "runtime/launch_findings.h"
#include "tartan/ptx/parser.h"
#include "tests/support/machine_code.h"

namespace tartan::mutation {
namespace {

// Of each topic, of a kernel.
const std::vector<int> most{24, 24, 16, 24, 12, 16, 10, 16, 14};

/// What became of a mutant.
enum class Fate : std::uint8_t { Illegal, Unreached, Found, Mismatch, Survived };

struct Trial {
  const Subject* subject;
  Mutant mutant;
  std::string key;  // in the list
  Fate fate = Fate::Survived;
  std::string id;  // of the finding
  double seconds = 0;
};

/// What a run without a mistake gives.
struct Baseline {
  std::vector<Bytes> after;
  std::vector<std::string> ids;
  std::vector<Warning> warnings;
  std::uint64_t max_steps = 0;
};

bool all_of_them() {
  const char* wish = std::getenv("TARTAN_MUTANTS");
  return wish && std::string_view(wish) == "all";
}

bool wanted(const Subject& subject) {
  const char* wish = std::getenv("TARTAN_MUTATE");
  return !wish || subject.name.starts_with(wish);
}

/// Without a mistake nothing is found.
Baseline baseline(const Subject& subject, const Run& run) {
  const Observation seen = observe(subject, subject.ptx, run, 1'000'000'000);
  // Two of Triton's kernels use registers of wgmma in flight, as tartan check says of them.
  const auto accepted = [](const std::string& id) {
    return detail::only_warns(id) || id == "wgmma-wait";
  };
  EXPECT_TRUE(std::ranges::all_of(seen.ids, accepted) && !seen.after.empty())
      << subject.name << ": " << seen.message;
  const std::uint64_t warps = (run.launch.block.count() + 31) / 32 * run.launch.grid.count();
  // A warp may take four times what an average one takes: consumers do more than producers.
  return {seen.after, seen.ids, seen.warnings,
          4 * seen.instructions / std::max<std::uint64_t>(warps, 1) + 5000};
}

using Baselines = std::vector<Baseline>;  // of each run

Baselines baselines(const Subject& subject) {
  Baselines out;
  for (const Run& run : subject.runs) out.push_back(baseline(subject, run));
  return out;
}

void judge(Trial& trial, const std::string& text, const Run& run, const Baseline& right) {
  const Observation seen = observe(*trial.subject, text, run, right.max_steps);
  for (const std::string& id : seen.ids)
    if (trial.id.empty() && std::ranges::find(right.ids, id) == right.ids.end()) trial.id = id;
  for (const Warning& each : seen.warnings)
    if (trial.id.empty() && std::ranges::find(right.warnings, each) == right.warnings.end())
      trial.id = each.id;
  trial.fate = seen.refused                ? Fate::Illegal
               : !trial.id.empty()         ? Fate::Found
               : seen.after != right.after ? Fate::Mismatch
                                           : Fate::Survived;
}

/// Whether no launch comes to the instruction: it does not stop at a trap before it.
bool is_unreached(const Trial& trial, const Baselines& right) {
  const Mutant trap{.edits = {{trial.mutant.begin, 0, "trap; "}}};
  const std::string text = mutated(trial.subject->ptx, trap);
  for (std::size_t i = 0; i < right.size(); ++i)
    if (!observe(*trial.subject, text, trial.subject->runs[i], right[i].max_steps).ids.empty())
      return false;
  return true;
}

void judge(Trial& trial, const Baselines& right) {
  const auto start = std::chrono::steady_clock::now();
  const std::string text = mutated(trial.subject->ptx, trial.mutant);
  for (std::size_t i = 0; i < right.size() && trial.fate == Fate::Survived; ++i)
    judge(trial, text, trial.subject->runs[i], right[i]);
  if (trial.fate == Fate::Survived && is_unreached(trial, right)) trial.fate = Fate::Unreached;
  trial.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<Trial> trials_of(const Subject& subject) {
  Diags diags;
  const ptx::Module module = ptx::parse(std::make_shared<Source>(subject.name, subject.ptx), diags);
  EXPECT_TRUE(diags.ok()) << diags.text();
  std::map<std::string, int> keys;
  std::vector<Trial> out;
  for (Mutant& each : sample(mutants_of(module, subject.kernel), most)) {
    std::string key =
        fmt::format("{} {}: {} | {}", subject.name, name(each.topic), each.change, each.opcode);
    if (const int again = keys[key]++) key += fmt::format(" #{}", again + 1);
    out.push_back({&subject, std::move(each), std::move(key)});
  }
  return out;
}

template <typename Work>
void in_parallel(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto worker = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  const char* wish = std::getenv("TARTAN_THREADS");
  const std::size_t cores = wish ? static_cast<std::size_t>(std::atoi(wish))
                                 : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < std::min(count, cores); ++i) threads.emplace_back(worker);
  worker();
  for (std::thread& each : threads) each.join();
}

// ---- The list of survivors.

using List = std::map<std::string, std::string>;  // key, and why

std::string shown(const Trial& trial) {
  return fmt::format("{} (line {}: {})", trial.key, trial.mutant.line, trial.mutant.instruction);
}

List read_list(const std::string& path) {
  List out;
  for (const std::string& line : test::split(test::read_file(path), "\n")) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t bar = line.rfind(" | ");
    out[line.substr(0, bar)] = line.substr(bar + 3);
  }
  return out;
}

using Code = std::map<std::string, std::string>;

Code code_of(const std::string& ptx) {
  const std::string at = fmt::format("{}mutant_{}_", testing::TempDir(), getpid());
  std::ofstream(at + ".ptx") << ptx;
  const std::size_t target = ptx.find(".target ") + 8;
  const std::string arch = ptx.substr(target, ptx.find_first_of(" ,\n", target) - target);
  Code out = test::assemble(at, arch);
  std::remove((at + ".ptx").c_str());
  return out;
}

bool same_code(const Trial& trial) {
  static std::map<std::string, Code> known;  // of the subjects
  if (!test::has_assembler()) return false;
  const auto [right, fresh] = known.try_emplace(trial.subject->name);
  if (fresh) right->second = code_of(trial.subject->ptx);
  return !right->second.empty() &&
         right->second == code_of(mutated(trial.subject->ptx, trial.mutant));
}

std::string reason(const List& list, const Trial& trial) {
  const auto known = list.find(trial.key);
  if (known != list.end() && known->second != "?") return known->second;
  if (trial.mutant.topic >= Topic::Guard) return "equal: the same results in every launch";
  return same_code(trial) ? "code" : "?";
}

void write_list(const std::string& path, const List& old, const std::vector<Trial>& trials) {
  std::ofstream out(path);
  out << "# Mutants that nothing shows: see tests/mutation/soak.h.\n";
  for (const Trial& trial : trials)
    if (trial.fate == Fate::Survived) out << trial.key << " | " << reason(old, trial) << "\n";
}

struct Counts {
  int illegal = 0, unreached = 0, found = 0, mismatched = 0, equal = 0, gaps = 0;
  std::map<std::string, int> ids, refusals;
};

void compare(const List& list, const Trial& trial, Counts& counts) {
  const auto known = list.find(trial.key);
  if (trial.fate == Fate::Illegal) ++counts.illegal, ++counts.refusals[trial.id];
  if (trial.fate == Fate::Unreached) ++counts.unreached;
  if (trial.fate == Fate::Found) ++counts.found, ++counts.ids[trial.id];
  if (trial.fate == Fate::Mismatch) ++counts.mismatched;
  if (trial.fate != Fate::Survived) {
    EXPECT_EQ(known, list.end()) << shown(trial) << ": listed, but now found (" << trial.id << ")";
    return;
  }
  const std::string why = known == list.end() ? "" : known->second;
  const bool gap = why.starts_with("gap: ");
  ++(gap ? counts.gaps : counts.equal);
  EXPECT_TRUE(gap || why.starts_with("code") || why.starts_with("equal: "))
      << shown(trial) << ": nothing shows, and the list does not say why";
}

void print(const Counts& counts, const std::vector<Trial>& trials) {
  double seconds = 0;
  for (const Trial& each : trials) seconds += each.seconds;
  const int legal = static_cast<int>(trials.size()) - counts.illegal - counts.unreached;
  fmt::print(
      "{} mutants in {:.0f} s: {} found, {} give other results, {} are equivalent, {} gaps; "
      "{} more are illegal, {} where no launch comes\n",
      legal, seconds, counts.found, counts.mismatched, counts.equal, counts.gaps, counts.illegal,
      counts.unreached);
  for (const auto& [id, count] : counts.ids) fmt::print("  found   {:5} {}\n", count, id);
  for (const auto& [id, count] : counts.refusals) fmt::print("  illegal {:5} {}\n", count, id);
  if (!std::getenv("TARTAN_MUTANTS_PRINT")) return;
  for (const Trial& each : trials)
    fmt::print("{:6.2f} {:9} {:22} {}\n", each.seconds,
               std::array{"illegal", "unreached", "found", "mismatch",
                          "survived"}[static_cast<int>(each.fate)],
               each.id, shown(each));
}

}  // namespace

void soak(const std::vector<Subject>& subjects, const std::string& list_name) {
  const bool all = all_of_them();
  constexpr std::size_t share = 101;  // a prime: every topic has its turn
  std::vector<Trial> trials;
  std::size_t number = 0;
  for (const Subject& subject : subjects) {
    if (!wanted(subject)) continue;
    for (Trial& each : trials_of(subject))
      if (number++ % share == 0 || all) trials.push_back(std::move(each));
  }
  std::map<const Subject*, Baselines> right;
  for (const Trial& each : trials) right[each.subject];
  std::vector<std::pair<const Subject* const, Baselines>*> todo;
  for (auto& each : right) todo.push_back(&each);
  in_parallel(todo.size(), [&](std::size_t i) { todo[i]->second = baselines(*todo[i]->first); });
  in_parallel(trials.size(), [&](std::size_t i) { judge(trials[i], right[trials[i].subject]); });

  const std::string path = std::string(TEST_DATA "/mutation/") + list_name;
  if (all && test::rebases() && !testing::Test::HasFailure())
    write_list(path, read_list(path), trials);
  const List list = read_list(path);
  Counts counts;
  for (const Trial& each : trials) compare(list, each, counts);
  print(counts, trials);
}

}  // namespace tartan::mutation
