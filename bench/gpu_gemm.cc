// SPDX-License-Identifier: Apache-2.0
// The GEMM kernel on a GPU beside cuBLAS and cuBLASLt (where they are found) and beside the ceiling
// of mma.sync: see --help, and gpu/measure.h for how it measures. Also compares the results.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "bench/gpu/gemm_contest.h"
#include "bench/gpu/words.h"

using namespace tartan;

namespace {

struct Words {
  std::vector<std::string> sizes, configs;
  std::string type, out, majors = "rc", device = "cuda", json, svg;
  gpu::ContestOptions contest;
  bool no_ceiling = false, sparse = false;
};

// The requested products; by default those of the project's tables.
std::vector<gpu::Product> products(const Words& words) {
  const bool usual = words.sizes.empty() && words.type.empty() && words.majors == "rc";
  std::vector<gpu::Product> out;
  if (usual) out = gpu::usual_products();
  std::vector<std::string> sizes = words.sizes;
  if (sizes.empty() && !usual) sizes = {"4096", "8192"};
  for (const std::string& size : sizes) {
    gpu::Product& product = out.emplace_back();
    if (!gpu::read_size(size, product)) gpu::refuse("--size", size, "N or MxNxK");
    if (!words.type.empty() && !gpu::read_type(words.type, product))
      gpu::refuse("--type", words.type, "an element type such as bf16, or AxB such as e4m3xe5m2");
    if (!gpu::read_majors(words.majors, product))
      gpu::refuse("--major", words.majors, "rr, rc, cr or cc");
  }
  for (gpu::Product& product : out) {
    product.sparse = words.sparse;
    if (product.sparse && product.a_major != Major::row)
      gpu::refuse("--major", words.majors, "a row-major A (sparse products need it)");
    if (const auto c = parse_type(words.out)) product.c = *c;
    else if (!words.out.empty()) gpu::refuse("--out", words.out, "an element type such as f32");
  }
  return out;
}

std::vector<gpu::Config> read_configs(const Words& words) {
  return gpu::read_all("--tile", words.configs, gpu::read_config,
                       "MxNxK:WMxWN:STAGES[:PRODUCERS][:NAME[=NUMBER]]...");
}

void add_options(CLI::App& app, Words& words) {
  app.add_option("--size", words.sizes,
                 "N (a cube) or MxNxK; several; default: with no size and "
                 "no type the project's tables");
  app.add_option("--type", words.type, "f16, bf16, tf32, f32, s8, e4m3, e5m2, or of A and B: AxB");
  app.add_option("--out", words.out, "Elements of C; default: f16, bf16, f32, s32; of fp8 bf16");
  app.add_option("--major", words.majors,
                 "Major orders of A and B: r is row-major, c is column-major")
      ->capture_default_str();
  app.add_option("--tile", words.configs,
                 "tuned, or MxNxK:WMxWN:STAGES[:PRODUCERS] and then any of\n" + gpu::config_help());
  app.add_option("--rounds", words.contest.rounds, "Rounds of the race")->capture_default_str();
  app.add_option("--graph", words.contest.graph,
                 "Products in a graph; 0: none; default: 40 of products below 40 G operations");
  app.add_option("--proposals", words.contest.proposals,
                 "Algorithms of cuBLASLt of which the best runs")
      ->capture_default_str();
  app.add_flag("--sparse", words.sparse,
               "Zeros in half of A's places: for configurations with :sparse");
  app.add_flag("--no-ceiling", words.no_ceiling, "Leave out the ceiling of mma.sync");
  app.add_option("--device", words.device, "cuda or emulator")->capture_default_str();
  app.add_option("--json", words.json, "Write all figures into this file");
  app.add_option("--svg", words.svg, "Draw them into this one");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Products of matrices on a GPU beside cuBLAS and cuBLASLt"};
  Words words;
  add_options(app, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto configs = read_configs(words);
  const auto all = products(words);
  gpu::Session session(argc, argv, words.device);
  const gpu::Peers peers(session);
  words.contest.ceiling = !words.no_ceiling;
  bool written = true;
  for (const gpu::Product& product : all) {
    gpu::GemmContest(session, peers, product, words.contest)
        .run(configs.empty() ? gpu::usual_configs(product) : configs);
    written = gpu::write(session.run, words.json, words.svg);
  }
  return written ? 0 : 1;
}
