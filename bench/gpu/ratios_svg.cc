// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/ratios_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/support/svg.h"

namespace gpu {
namespace {

using tartan::svg::escaped;

// Lengths in pixels.
constexpr int margin = 16, line = 18, axis = 40, plot_width = 640, plot_height = 200, gap = 30;
constexpr double least = 0.5, most = 1.5, most_rows = 13;  // ratios, log2 of rows
struct Named {
  const char *key, *words;
};
constexpr Named classes[] = {
    {"128", "multiples of 128"}, {"8", "multiples of 8"}, {"any", "any sizes"}};
constexpr Named ways[] = {{"tuned", "tuned()"},
                          {"workspace", "tuned() with bytes for partial sums"},
                          {"searched", "searched"}};

class Picture {
 public:
  explicit Picture(const nlohmann::json& run) : run_(run) {}

  std::string text() {
    label("title", margin, y_ += line, run_.at("device").get<std::string>());
    label("muted", margin, y_ += line, run_.at("command").get<std::string>());
    label("muted", margin, y_ += line,
          run_.at("date").get<std::string>() +
              ": speed over the better of cuBLAS and cuBLASLt, over the rows of C");
    legend();
    for (const auto& [way, words] : ways)
      if (measured(way)) panel(way, words);
    return frame();
  }

 private:
  bool measured(const char* way) const {
    return std::ranges::any_of(run_.at("problems"), [&](const nlohmann::json& each) {
      return each.contains("library_us") && each.at("us").contains(way);
    });
  }

  void legend() {
    y_ += line;
    double x = margin;
    for (const auto& [name, words] : classes) {
      circle(name, x + 5, y_ - 4, {});
      label("muted", x + 16, y_, words);
      x += 170;
    }
  }

  void panel(const char* way, const char* words) {
    label("heading", margin, y_ += gap, words);
    y_ += 8;
    for (const double ratio : {0.5, 0.75, 1.0, 1.25, 1.5}) {
      rule(ratio == 1 ? "one" : "grid", axis, height(ratio), axis + plot_width, height(ratio));
      label("end", axis - 6, height(ratio) + 4, fmt::format("{:.2f}", ratio));
    }
    for (int rows = 0; rows <= most_rows; ++rows) {
      rule("grid", across(1 << rows), height(most), across(1 << rows), height(least));
      label("middle", across(1 << rows), height(least) + line, std::to_string(1 << rows));
    }
    for (const nlohmann::json& each : run_.at("problems"))
      if (each.contains("library_us") && each.at("us").contains(way)) point(each, way);
    y_ += plot_height + line;
  }

  void point(const nlohmann::json& each, const char* way) {
    const double ratio = each.at("library_us").get<double>() / each.at("us").at(way).get<double>();
    const int m = each.at("m");
    circle(each.at("group").get<std::string>(), across(m), height(std::clamp(ratio, least, most)),
           fmt::format("{} x {} x {}, {} to {}: {:.2f}, {}", m, each.at("n").get<int>(),
                       each.at("k").get<int>(), each.at("a").get<std::string>(),
                       each.at("c").get<std::string>(), ratio,
                       each.at("choice").at(way).get<std::string>()));
  }

  static double across(int rows) {
    return axis + std::min(std::log2(std::max(rows, 1)), most_rows) / most_rows * plot_width;
  }
  double height(double ratio) const { return y_ + (most - ratio) / (most - least) * plot_height; }

  void label(std::string_view kind, double x, double y, std::string_view text) {
    body_ += fmt::format("<text class=\"{}\" x=\"{:.6g}\" y=\"{:.6g}\">{}</text>\n", kind, x, y,
                         escaped(text));
  }

  void rule(std::string_view kind, double x1, double y1, double x2, double y2) {
    body_ += fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind, x1,
        y1, x2, y2);
  }

  void circle(std::string_view group, double x, double y, const std::string& title) {
    body_ += fmt::format(
        "<circle class=\"of_{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}</title></circle>\n",
        group, x, y, escaped(title));
  }

  std::string frame() const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{0}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0} {1:.0f}\">\n<title>gpu_tuned</title>\n<style>\n"
        "text{{font:12px ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;"
        "fill:#1f2328}}\n.page{{fill:#fff}}\nline{{stroke:#d1d9e0}}\n"
        "line.one{{stroke:#59636e;stroke-width:2}}\n"
        "circle{{fill-opacity:0.75}}\n.of_128{{fill:#1f6feb}}\n.of_8{{fill:#bf8700}}\n"
        ".of_any{{fill:#cf222e}}\ntext.title{{font-size:15px;font-weight:bold}}\n"
        "text.heading{{font-weight:bold}}\ntext.muted{{fill:#59636e}}\n"
        "text.end{{text-anchor:end}}\ntext.middle{{text-anchor:middle}}\n"
        "@media (prefers-color-scheme:dark){{\n.page{{fill:#0d1117}}\ntext{{fill:#e6edf3}}\n"
        "text.muted{{fill:#9198a1}}\nline{{stroke:#3d444d}}\nline.one{{stroke:#9198a1}}\n}}\n"
        "</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n{2}</svg>\n",
        axis + plot_width + 2 * margin, y_ + margin, body_);
  }

  const nlohmann::json& run_;
  double y_ = 0;
  std::string body_;
};

}  // namespace

std::string ratios_svg(const nlohmann::json& run) { return Picture(run).text(); }

}  // namespace gpu
