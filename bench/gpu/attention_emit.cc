// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/gpu/attention_problem.h"
#include "tartan/launch.h"

namespace gpu {

using namespace tartan;

namespace {

using Json = nlohmann::ordered_json;

std::string hexadecimal(const std::vector<std::byte>& bytes) {
  std::string out;
  for (const std::byte each : bytes) out += fmt::format("{:02x}", std::to_integer<int>(each));
  return out;
}

// The arguments of `compiled`, those of the description first. A tensor map is its 128 bytes, with
// address 0 in its first 8 instead of the buffer's.
Result<Json> arguments_json(const Compiled& compiled, const AttentionConfig& config,
                            const AttentionProblem& problem) {
  const std::vector<AttentionArgument> arguments = arguments_of(config, problem);
  Json out = Json::array();
  Arguments values;
  for (const AttentionArgument& each : arguments) {
    if (!each.buffer.empty()) {
      out.push_back({{"buffer", each.buffer}});
      values.add(std::uint64_t{0});
    } else if (each.integer) {
      out.push_back({{"s32", *each.integer}});
      values.add(*each.integer);
    } else {
      out.push_back({{"f32", each.real}});
      values.add(each.real);
    }
  }
  const auto all = tartan::arguments_of(compiled, values);
  if (!all) return all.diags();
  for (std::size_t i = 0; i < compiled.maps.size(); ++i)
    out.push_back({{"map", hexadecimal((*all)[arguments.size() + i])},
                   {"buffer", arguments[static_cast<std::size_t>(compiled.maps[i].of)].buffer}});
  return out;
}

class Emitter {
 public:
  Emitter(std::string folder, const Target& target, int multiprocessors)
      : folder_(std::move(folder)), target_(target), multiprocessors_(multiprocessors) {}

  bool write(const std::string& file, const std::string& text) const {
    std::ofstream out(std::filesystem::path(folder_) / file);
    out << text;
    out.close();
    if (!out) std::cerr << folder_ << '/' << file << ": cannot be written\n";
    return bool(out);
  }

  // Configurations that do not compile are reported and skipped.
  bool add(const AttentionConfig& config, const AttentionProblem& problem, Json& launches) {
    const auto refuse = [&](const Diags& diags) {
      std::cerr << config.text << ":\n" << diags.text();
      return true;
    };
    const kernels::Attention options = gpu::options_of(config, problem);
    if (options.window || options.softcap != kernels::Softcap::none || options.sinks) {
      std::cerr << config.text << ": attention_peer.py has no peer for window, softcap and sinks\n";
      return true;
    }
    const auto compiled = compile(kernels::attention(options), target_);
    if (!compiled) return refuse(compiled.diags());
    const auto arguments = arguments_json(*compiled, config, problem);
    if (!arguments) return refuse(arguments.diags());
    std::string file =
        fmt::format("{}_{}_{}_{}{}.ptx", config.text, name(problem.type), problem.head_dim,
                    problem.causal ? "causal" : "full", options.packed ? "_packed" : "");
    for (char& each : file)
      if (each == ':' || each == '=') each = '_';
    const Dim3 grid = grid_of(config, problem, multiprocessors_);
    launches.push_back({{"name", config.text},
                        {"ptx", file},
                        {"kernel", compiled->name},
                        {"grid", {grid.x, grid.y, grid.z}},
                        {"block", compiled->block},
                        {"dynamic_shared", compiled->dynamic_shared},
                        {"arguments", *arguments}});
    return write(file, compiled->ptx);
  }

 private:
  std::string folder_;
  Target target_;
  int multiprocessors_;
};

Json problem_json(const AttentionProblem& problem) {
  return {{"title", problem.text()},      {"type", name(problem.type)},
          {"batch", problem.batch},       {"heads", problem.heads},
          {"kv_heads", problem.kv_heads}, {"length", problem.length},
          {"head_dim", problem.head_dim}, {"causal", problem.causal},
          {"packed", problem.packed},     {"operations", problem.operations()},
          {"launches", Json::array()}};
}

}  // namespace

bool emit(const std::string& folder, const Target& target,
          const std::vector<AttentionProblem>& problems,
          const std::vector<AttentionConfig>& configs, int multiprocessors) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  Emitter emitter(folder, target, multiprocessors);
  Json all{{"target", target.text()}, {"cases", Json::array()}};
  for (const AttentionProblem& problem : problems) {
    Json each = problem_json(problem);
    for (const AttentionConfig& config : configs)
      if (!emitter.add(config, problem, each["launches"])) return false;
    all["cases"].push_back(std::move(each));
  }
  return emitter.write("launches.json", all.dump(1) + "\n");
}

}  // namespace gpu
