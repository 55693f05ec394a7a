// SPDX-License-Identifier: Apache-2.0
// bench/gpu/figures.h - results of a run: as a table, as JSON, as a picture. Needs no GPU.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace gpu {

/// One contestant of a race. Samples are TFLOP/s (integers: TOP/s), one per round.
struct Figure {
  std::string name;
  bool peer = false;  // the reference of ratios: a library, a ceiling
  double operations = 0;
  std::vector<double> cool, hot;
  std::string note;  // "the bits of cuBLAS"
};

struct Race {
  std::string title;  // "4096x4096x4096 f16 to f16, rc"
  std::string how;    // "a launch", "40 launches in a graph, 11 sets of matrices"
  std::vector<Figure> figures;
};

struct Run {
  std::string program, command, date, device, driver;
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version
  std::vector<Race> races;
  /// Appends the races of `other`, and its new libraries.
  void add(Run other);
};

double median(std::vector<double> values);
/// Microseconds of one product at the median of `rates`.
double microseconds(const Figure& figure, const std::vector<double>& rates);
/// `mine` over `theirs`, medians; 0 if either has no samples.
double ratio(const std::vector<double>& mine, const std::vector<double>& theirs);

/// One line per contestant, with its ratios to each peer, cool and hot.
std::string table(const Race& race);

/// Objects of the members above, with medians, microseconds and ratios for readers that do not use
/// the samples.
nlohmann::ordered_json to_json(const Run& run);
/// Throws nlohmann::json::exception if a member is missing.
Run from_json(const nlohmann::json& json);

/// Bars, one group per race: cool above hot.
std::string to_svg(const Run& run);

/// Writes to each path that is given; reports failures on standard error.
bool write(const Run& run, const std::string& json_path, const std::string& svg_path);

}  // namespace gpu
