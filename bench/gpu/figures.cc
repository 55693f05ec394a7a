// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>

namespace gpu {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

double microseconds(const Figure& figure, const std::vector<double>& rates) {
  const double rate = median(rates);
  return rate > 0 ? figure.operations / rate / 1e6 : 0;
}

double ratio(const std::vector<double>& mine, const std::vector<double>& theirs) {
  const double rate = median(theirs);
  return rate > 0 ? median(mine) / rate : 0;
}

void Run::add(Run other) {
  for (auto& each : other.libraries)
    if (std::find(libraries.begin(), libraries.end(), each) == libraries.end())
      libraries.push_back(std::move(each));
  for (Race& race : other.races) races.push_back(std::move(race));
}

std::string table(const Race& race) {
  std::size_t width = 24;
  for (const Figure& figure : race.figures) width = std::max(width, figure.name.size() + 2);
  std::string out = fmt::format("\n{} ({})\n{:<{}}{:>8}{:>8}{:>10}", race.title, race.how,
                                "TFLOP/s", width, "cool", "hot", "us, hot");
  for (const Figure& peer : race.figures)
    if (peer.peer) out += fmt::format("  {:>13}", "of " + peer.name);
  out += '\n';
  for (const Figure& figure : race.figures) {
    out += fmt::format("{:<{}}{:>8.1f}{:>8.1f}{:>10.1f}", figure.name, width, median(figure.cool),
                       median(figure.hot), microseconds(figure, figure.hot));
    for (const Figure& peer : race.figures) {
      if (!peer.peer) continue;
      out += fmt::format(
          "  {:>{}}",
          fmt::format("{:.3f} {:.3f}", ratio(figure.cool, peer.cool), ratio(figure.hot, peer.hot)),
          std::max<std::size_t>(13, peer.name.size() + 3));
    }
    out += figure.note.empty() ? "\n" : fmt::format("  {}\n", figure.note);
  }
  return out;
}

namespace {

nlohmann::ordered_json figure_json(const Race& race, const Figure& figure) {
  nlohmann::ordered_json out{{"name", figure.name},
                             {"peer", figure.peer},
                             {"operations", figure.operations},
                             {"cool", figure.cool},
                             {"hot", figure.hot},
                             {"note", figure.note},
                             {"cool_median", median(figure.cool)},
                             {"hot_median", median(figure.hot)},
                             {"cool_us", microseconds(figure, figure.cool)},
                             {"hot_us", microseconds(figure, figure.hot)}};
  auto& ratios = out["ratios"] = nlohmann::ordered_json::object();
  for (const Figure& peer : race.figures)
    if (peer.peer && &peer != &figure)
      ratios[peer.name] = {{"cool", ratio(figure.cool, peer.cool)},
                           {"hot", ratio(figure.hot, peer.hot)}};
  return out;
}

bool write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) std::cerr << path << ": cannot be written\n";
  return bool(file);
}

}  // namespace

nlohmann::ordered_json to_json(const Run& run) {
  nlohmann::ordered_json out{{"program", run.program}, {"command", run.command},
                             {"date", run.date},       {"device", run.device},
                             {"driver", run.driver},   {"unit", "TFLOP/s"}};
  auto& libraries = out["libraries"] = nlohmann::ordered_json::object();
  for (const auto& [name, version] : run.libraries) libraries[name] = version;
  auto& races = out["races"] = nlohmann::ordered_json::array();
  for (const Race& race : run.races) {
    auto& each = races.emplace_back(
        nlohmann::ordered_json{{"title", race.title}, {"how", race.how}, {"figures", nullptr}});
    each["figures"] = nlohmann::ordered_json::array();
    for (const Figure& figure : race.figures) each["figures"].push_back(figure_json(race, figure));
  }
  return out;
}

Run from_json(const nlohmann::json& json) {
  Run out{.program = json.at("program"),
          .command = json.at("command"),
          .date = json.at("date"),
          .device = json.at("device"),
          .driver = json.at("driver")};
  for (const auto& [name, version] : json.at("libraries").items())
    out.libraries.emplace_back(name, version);
  for (const auto& each : json.at("races")) {
    Race& race = out.races.emplace_back(Race{each.at("title"), each.at("how"), {}});
    for (const auto& figure : each.at("figures"))
      race.figures.push_back({.name = figure.at("name"),
                              .peer = figure.at("peer"),
                              .operations = figure.at("operations"),
                              .cool = figure.at("cool"),
                              .hot = figure.at("hot"),
                              .note = figure.at("note")});
  }
  return out;
}

bool write(const Run& run, const std::string& json_path, const std::string& svg_path) {
  const bool json = json_path.empty() || write_text(json_path, to_json(run).dump(1) + "\n");
  const bool svg = svg_path.empty() || write_text(svg_path, to_svg(run));
  return json && svg;
}

}  // namespace gpu
