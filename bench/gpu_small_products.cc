// SPDX-License-Identifier: Apache-2.0
// Writes PTX of batches of small products and launches.json, which describes problems and launches,
// for small_products_peer.py to measure beside cuBLAS. See --help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/gpu/launch_json.h"
#include "bench/gpu/named_options.h"
#include "tartan/kernels/small_products.h"

using namespace tartan;

namespace {

using Json = nlohmann::ordered_json;

struct Words {
  std::vector<std::string> sizes{"16x16x16", "32x32x32", "48x48x48", "64x64x64"}, configs{"tuned"},
      types{"f16", "f64"}, majors{"row,row", "row,col"};
  std::string c, target = "sm_90a", folder;
  int batch = 0, megabytes = 1024;
};

// A new option of the kernel needs a new row.
constexpr gpu::NamedOption<kernels::SmallProducts> options[] = {
    {"m", [](kernels::SmallProducts& a, int value) { a.warps_m = value; }, "warps along m"},
    {"n", [](kernels::SmallProducts& a, int value) { a.warps_n = value; }, "warps along n"},
    {"products", [](kernels::SmallProducts& a, int value) { a.products = value; },
     "products of these warps"},
    {"ahead", [](kernels::SmallProducts& a, int value) { a.ahead = value; },
     "steps along k that are loaded ahead"},
    {"staged", [](kernels::SmallProducts& a, int value) { a.staged = value != 0; },
     "1: A and B pass through shared memory"},
};

Type type_of(const char* option, const std::string& word) {
  const auto out = parse_type(word);
  if (!out) gpu::refuse(option, word, "f16, bf16, f32 (of C) or f64");
  return *out;
}

Major major_of(const std::string& word, const std::string& all) {
  if (word != "row" && word != "col") gpu::refuse("--majors", all, "row,row, row,col and the like");
  return word == "col" ? Major::col : Major::row;
}

kernels::SmallProducts problem_of(const Words& words, const std::string& size,
                                  const std::string& type, const std::string& majors) {
  kernels::SmallProducts out{.type = type_of("--type", type)};
  const auto parts = gpu::split(size, 'x');
  if (parts.size() != 3 || !gpu::read_number(parts[0], out.m) ||
      !gpu::read_number(parts[1], out.n) || !gpu::read_number(parts[2], out.k))
    gpu::refuse("--size", size, "MxNxK");
  const auto orders = gpu::split(majors, ',');
  if (orders.size() != 2) gpu::refuse("--majors", majors, "row,row, row,col and the like");
  out.a_major = major_of(std::string(orders[0]), majors);
  out.b_major = major_of(std::string(orders[1]), majors);
  out.c = words.c.empty() ? out.type : type_of("--c", words.c);
  return out;
}

std::int64_t bytes_of(const kernels::SmallProducts& with) {
  const std::int64_t operands = std::int64_t{with.m} * with.k + std::int64_t{with.k} * with.n;
  return (operands * bits(with.type) + std::int64_t{with.m} * with.n * bits(with.c)) / 8;
}

class Emitter {
 public:
  Emitter(const Words& words, const Target& target) : words_(words), target_(target) {}

  // Configurations that do not compile are reported and skipped.
  bool add(const kernels::SmallProducts& problem, int batch, const std::string& config,
           Json& launches) {
    const kernels::SmallProducts with = gpu::configured(problem, config, options, target_);
    const auto compiled = compile(kernels::small_products(with), target_);
    const auto refuse = [&](const Diags& diags) {
      std::cerr << config << ":\n" << diags.text();
      return true;
    };
    if (!compiled) return refuse(compiled.diags());
    if (compiled->warnings.size()) std::cerr << compiled->warnings.text();
    const auto arguments = gpu::arguments_json(*compiled, {batch}, {}, {"A", "B", "C"});
    if (!arguments) return refuse(arguments.diags());
    const std::string file = gpu::file_of(config, fmt::format("{}", files_++));
    launches.push_back({{"name", config},
                        {"ptx", file},
                        {"kernel", compiled->name},
                        {"grid", {with.blocks(batch), 1, 1}},
                        {"block", compiled->block},
                        {"dynamic_shared", compiled->dynamic_shared},
                        {"arguments", *arguments}});
    return gpu::write_file(words_.folder, file, compiled->ptx);
  }

 private:
  const Words& words_;
  Target target_;
  int files_ = 0;
};

bool emit(const Words& words, const Target& target) {
  std::error_code error;
  std::filesystem::create_directories(words.folder, error);
  Emitter emitter(words, target);
  Json all{{"target", target.text()}, {"cases", Json::array()}};
  for (const std::string& type : words.types)
    for (const std::string& size : words.sizes)
      for (const std::string& majors : words.majors) {
        const kernels::SmallProducts problem = problem_of(words, size, type, majors);
        const int batch =
            words.batch
                ? words.batch
                : static_cast<int>((std::int64_t{words.megabytes} << 20) / bytes_of(problem));
        Json each{{"title", fmt::format("{} products of {}, {} to {}, {} major", batch, size, type,
                                        name(problem.c), majors)},
                  {"type", type},
                  {"c", name(problem.c)},
                  {"batch", batch},
                  {"size", {problem.m, problem.n, problem.k}},
                  {"majors", {name(problem.a_major), name(problem.b_major)}},
                  {"bytes", bytes_of(problem) * batch},
                  {"launches", Json::array()}};
        for (const std::string& config : words.configs)
          if (!emitter.add(problem, batch, config, each["launches"])) return false;
        all["cases"].push_back(std::move(each));
      }
  return gpu::write_file(words.folder, "launches.json", all.dump(1) + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"PTX of batches of small products, to be measured by small_products_peer.py"};
  Words words;
  app.add_option("--emit", words.folder, "Write PTX and launches.json into this folder")
      ->required();
  app.add_option("--size", words.sizes, "MxNxK")->capture_default_str();
  app.add_option("--type", words.types, "Of A and B: f16, bf16 or f64")->capture_default_str();
  app.add_option("--c", words.c, "Type of C; default: that of A and B");
  app.add_option("--majors", words.majors, "Of A and B: row,row and the like")
      ->capture_default_str();
  app.add_option("--batch", words.batch, "Products; 0: as many as --megabytes hold")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app.add_option("--megabytes", words.megabytes, "Of A, B and C together, beyond the L2 cache")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--target", words.target, "What to compile for")->capture_default_str();
  app.add_option("--config", words.configs,
                 "Parts joined by colons:\n" + gpu::config_help(options));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return emit(words, gpu::target_of(words.target)) ? 0 : 1;
}
