// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/gemm_contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace gpu {

using namespace tartan;

namespace {

constexpr int usual_graph = 40;            // products
constexpr double short_operations = 4e10;  // products with fewer are measured in graphs

int graph_of(const ContestOptions& options, const Product& product) {
  if (options.graph >= 0) return options.graph;
  return product.operations() < short_operations ? usual_graph : 0;
}

Type multiplied(Type element) { return element == f32 ? tf32 : element; }

}  // namespace

Peers::Peers(Session& session)
    : cublas(session.device, session.stream), lt(session.device, session.stream) {
  if (cublas.found()) session.run.libraries.emplace_back("cuBLAS", cublas.version());
  if (lt.found()) session.run.libraries.emplace_back("cuBLASLt", lt.version());
}

GemmContest::GemmContest(Session& session, const Peers& peers, const Product& product,
                         const ContestOptions& options)
    : session_(session),
      peers_(peers),
      product_(product),
      options_(options),
      graph_(graph_of(options, product)),
      alpha_(bits(product.c) == 8 ? 1.0f / 256 : 1),
      matrices_(session.device, product, std::max(graph_, 1)) {}

void GemmContest::run(const std::vector<Config>& configs) {
  fmt::print("\n{}\n", product_.text());
  add_peers();
  const auto gpu = kernels::Gpu::of(session_.device, target_of(session_.device));
  for (const Config& config : configs) add(completed(config, product_, gpu));
  auto ceiling = options_.ceiling ? Ceiling::make(session_, ceiling_instruction()) : std::nullopt;
  if (ceiling) contestants_.push_back(ceiling->contestant(session_, "mma.sync"));
  measure(session_, contestants_, options_.rounds);
  const std::string how =
      graph_ ? fmt::format("{} launches in a graph, {} sets of matrices", graph_, matrices_.sets())
             : "a launch";
  report(session_, product_.text(), how, contestants_);
}

std::string GemmContest::ceiling_instruction() const {
  return fmt::format("mma.sync.aligned.m16n8k{0}.row.col.{1}.{2}.{3}.{1}", 256 / bits(product_.a),
                     info(product_.a).floating ? "f32" : "s32", name(multiplied(product_.a)),
                     name(multiplied(product_.b)));
}

// The launches of a graph, which use the sets of matrices in turn.
std::function<void()> GemmContest::in_turn(const Launch& launch) {
  return [this, launch] {
    for (int i = 0; i < graph_; ++i) launch(static_cast<std::size_t>(i) % matrices_.sets());
  };
}

std::function<void()> GemmContest::in_graph(const Launch& launch) {
  return session_.driver.graph(session_.stream, in_turn(launch));
}

// Adds a contestant, by single launches or by a graph of them.
void GemmContest::enter(std::string name, bool peer, const Launch& launch, std::string note) {
  Contestant entry;
  entry.figure.name = std::move(name), entry.figure.note = std::move(note);
  entry.figure.peer = peer, entry.figure.operations = product_.operations();
  entry.launch = [launch] { launch(0); };
  if (graph_) {
    entry.products = graph_;
    entry.launch = in_graph(launch);
  }
  if (!entry.launch) {
    entry.figure.note += entry.figure.note.empty() ? "no graph" : "; no graph";
    entry.launch = in_turn(launch);
  }
  contestants_.push_back(std::move(entry));
}

// Compares the last launch's results with the first contestant's.
std::string GemmContest::compared(const std::string& name) {
  must(session_.device.synchronize());
  auto result = must(matrices_.c(0).read_all<std::uint8_t>());
  if (!reference_.empty()) return compare(product_.c, result, reference_).text(reference_name_);
  reference_ = std::move(result), reference_name_ = name;
  return "";
}

void GemmContest::add_peers() {
  const kernels::Gemm plain = options_of({}, product_);
  if (const Multiply multiply = peers_.cublas.multiply(plain, alpha_)) add_peer("cuBLAS", multiply);
  const auto proposals = peers_.lt.proposals(plain, alpha_, options_.proposals);
  const Multiply* best = nullptr;
  double least = 0;
  for (const Multiply& each : proposals) {
    if (!each(matrices_.operands(0))) continue;
    const double time = seconds_of(each);
    if (!best || time < least) best = &each, least = time;
  }
  if (!best) return;
  fmt::print("cuBLASLt: the fastest of {} proposals is number {}\n", proposals.size(),
             best - proposals.data() + 1);
  add_peer("cuBLASLt", *best);
}

// Skips products that the library does not have.
void GemmContest::add_peer(const std::string& name, const Multiply& multiply) {
  must(matrices_.c(0).fill(0xFF));
  if (!multiply(matrices_.operands(0))) return;
  std::string note = compared(name);
  enter(name, true, launch_of(multiply), std::move(note));
}

GemmContest::Launch GemmContest::launch_of(const Multiply& multiply) {
  return [this, multiply](std::size_t set) { (void)multiply(matrices_.operands(set)); };
}

// The time of some launches under race conditions.
double GemmContest::seconds_of(const Multiply& multiply) {
  const Launch launch = launch_of(multiply);
  if (const auto graph = graph_ ? in_graph(launch) : nullptr) {
    graph();
    return seconds(session_, graph, 5);
  }
  return seconds(
      session_, [&] { launch(0); }, 10);
}

// Skips configurations that do not compile or start.
void GemmContest::add(const Config& config) {
  const auto refuse = [&](const Diags& diags) {
    std::cout.flush();
    std::cerr << config.text << ":\n" << diags.text();
  };
  auto made = GemmRunner::make(session_, config, product_, alpha_, matrices_);
  if (!made) return refuse(made.diags());
  must(matrices_.c(0).fill(0xFF));
  if (const auto status = made->launch(session_.stream, 0); !status) return refuse(status.diags());
  GemmRunner& gemm = runners_.emplace_back(std::move(*made));
  fmt::print("{}: {:.1f} ms from description to PTX, {} KB shared\n", config.text,
             gemm.compile_ms(), gemm.shared_bytes() / 1024);
  std::cout.flush();
  std::string note = compared(config.text);
  enter(
      config.text, false,
      [this, &gemm](std::size_t set) { must(gemm.launch(session_.stream, set)); }, std::move(note));
}

}  // namespace gpu
