// SPDX-License-Identifier: Apache-2.0
// The attention kernel on a GPU beside the ceiling of mma.sync:
//
//   gpu_attention [--length N]... [--head-dim D] [--type f16|bf16] [--rounds R]
//
// 16384 queries in all: batch = 16384 / length, 2048 / head_dim heads. Operations count both
// products, half of them when causal. See gpu_measure.h for how it measures.
#include "bench/gpu_measure.h"

using namespace tartan;

namespace {

constexpr int all_queries = 16384, width = 2048;

struct Problem {
  int length = 4096, head_dim = 128;
  Type type = bf16;
  int heads() const { return width / head_dim; }
  int batch() const { return std::max(1, all_queries / length); }
  std::size_t elements() const {
    return static_cast<std::size_t>(batch()) * static_cast<std::size_t>(length) * width;
  }
  double operations(bool causal) const {
    return 4.0 * batch() * heads() * static_cast<double>(length) * length * head_dim /
           (causal ? 2 : 1);
  }
};

Buffer random_matrix(Device& device, const Problem& problem, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint16_t> values(problem.elements());
  for (std::uint16_t& each : values) {
    const std::uint32_t r = random();
    each = static_cast<std::uint16_t>(problem.type == f16 ? (r & 0x83FF) | 13 << 10
                                                          : (r & 0x807F) | 125 << 7);
  }
  Buffer out = gpu::must(device.allocate(values.size() * 2));
  (void)out.write(values);
  return out;
}

void race(Device& device, const Problem& problem, int rounds) {
  const Buffer q = random_matrix(device, problem, 1), k = random_matrix(device, problem, 2),
               v = random_matrix(device, problem, 3);
  Buffer o = gpu::must(device.allocate(problem.elements() * 2));
  Buffer lse = gpu::must(device.allocate(problem.elements() / problem.head_dim * 4));
  std::vector<gpu::Entry> entries;
  std::list<gpu::Runner> runners;
  const float scale = 1 / std::sqrt(static_cast<float>(problem.head_dim));
  for (const bool causal : {false, true}) {
    const kernels::Attention options{
        .head_dim = problem.head_dim, .type = problem.type, .causal = causal};
    Arguments arguments;
    arguments.add(problem.length).add(problem.length).add(problem.heads()).add(problem.heads());
    arguments.add(scale).add(q).add(k).add(v).add(o).add(lse);
    auto& run = runners.emplace_back(
        device, kernels::attention(options),
        Dim3{options.blocks(problem.length), static_cast<unsigned>(problem.heads()),
             static_cast<unsigned>(problem.batch())},
        arguments);
    fmt::print("{:.1f} ms from description to PTX, {} KB shared\n", run.compile_ms(),
               run.shared_bytes() / 1024);
    entries.push_back(
        {causal ? "causal" : "full", [&run] { run(); }, problem.operations(causal), {}, {}});
  }
  gpu::Ceiling ceiling(
      device, fmt::format("mma.sync.aligned.m16n8k16.row.col.f32.{0}.{0}.f32", name(problem.type)));
  entries.push_back({"ceiling of mma.sync", [&] { ceiling.run(); }, ceiling.operations, {}, {}});
  gpu::measure(device, entries, rounds);
  gpu::print(
      fmt::format("attention, {} queries and keys, {} heads of {}, batch {}, {}", problem.length,
                  problem.heads(), problem.head_dim, problem.batch(), name(problem.type)),
      entries, {"ceiling"});
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> lengths;
  Problem problem;
  int rounds = 5;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i], value = argv[i + 1];
    if (word == "--length") lengths.push_back(std::atoi(value.c_str()));
    else if (word == "--head-dim") problem.head_dim = std::atoi(value.c_str());
    else if (word == "--rounds") rounds = std::atoi(value.c_str());
    else if (word == "--type") problem.type = value == "f16" ? f16 : bf16;
  }
  if (lengths.empty()) lengths = {4096, 16384};
  Device device = gpu::must(Device::open("cuda"));
  std::cout << device.name() << '\n';
  for (const int length : lengths) {
    problem.length = length;
    race(device, problem, rounds);
  }
}
