// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "bench/gpu/figures.h"
#include "compiler/support/svg.h"

namespace gpu {
namespace {

using tartan::svg::escaped;

// Lengths in pixels.
constexpr int text_size = 12, title_size = 15, margin = 16;
constexpr int line = 18, bar = 9, row = 24, gap = 14, bars_width = 420, figure_width = 150;

double width_of(std::string_view text) { return tartan::svg::width_of(text, text_size); }

class Picture {
 public:
  explicit Picture(const Run& run) : run_(run) {
    for (const Race& race : run.races) {
      width_ = std::max(width_, 2.0 * margin + width_of(caption(race)));
      for (const Figure& figure : race.figures)
        names_ = std::max(names_, width_of(figure.name) + 10);
    }
    width_ = std::max(width_, names_ + bars_width + figure_width + 2 * margin);
  }

  std::string text() {
    label("title", margin, y_ += title_size, run_.device);
    std::string libraries = run_.driver;
    for (const auto& [name, version] : run_.libraries)
      libraries += fmt::format("{}{} {}", libraries.empty() ? "" : ", ", name, version);
    label("muted", margin, y_ += line, libraries);
    label("muted", margin, y_ += line, run_.date);
    legend();
    for (const Race& race : run_.races) draw(race);
    return frame();
  }

 private:
  static std::string caption(const Race& race) {
    return fmt::format("{} ({})", race.title, race.how);
  }

  void legend() {
    y_ += line;
    double x = margin;
    for (const auto& [kind, words] :
         {std::pair{"own", "Tartan"}, {"peer", "others"}, {"own hot", "hot"}}) {
      rectangle(kind, x, y_ - bar, 18);
      label("muted", x + 24, y_, words);
      x += 40 + width_of(words);
    }
    label("muted", x, y_, "TFLOP/s, cool above hot");
    y_ += gap;
  }

  void draw(const Race& race) {
    label("heading", margin, y_ += line, caption(race));
    y_ += 6;
    double most = 0;
    for (const Figure& figure : race.figures)
      most = std::max({most, median(figure.cool), median(figure.hot)});
    for (const Figure& figure : race.figures) draw(figure, most > 0 ? bars_width / most : 0);
    y_ += gap;
  }

  void draw(const Figure& figure, double scale) {
    const double cool = median(figure.cool), hot = median(figure.hot), x = margin + names_;
    const std::string kind = figure.peer ? "peer" : "own";
    label("end", x - 6, y_ + bar + 4, figure.name);
    rectangle(kind, x, y_, cool * scale);
    rectangle(kind + " hot", x, y_ + bar, hot * scale);
    label("", x + std::max(cool, hot) * scale + 6, y_ + bar + 4,
          fmt::format("{:.{}f} / {:.{}f}", cool, cool < 100 ? 1 : 0, hot, hot < 100 ? 1 : 0));
    y_ += row;
  }

  void label(std::string_view kind, double x, double y, std::string_view text) {
    body_ += fmt::format("<text class=\"{}\" x=\"{:.6g}\" y=\"{:.6g}\">{}</text>\n", kind, x, y,
                         escaped(text));
  }

  void rectangle(std::string_view kind, double x, double y, double width) {
    body_ += fmt::format(
        "<rect class=\"{}\" x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.1f}\" height=\"{}\"/>\n", kind, x,
        y, width, bar - 1);
  }

  std::string frame() const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>{2}</title>\n<style>\n"
        "text{{font:{3}px ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;"
        "fill:#1f2328}}\n"
        ".page{{fill:#fff}}\n.own{{fill:#1f6feb}}\n.peer{{fill:#8c959f}}\n.hot{{opacity:0.55}}\n"
        "text.title{{font-size:{4}px;font-weight:bold}}\ntext.heading{{font-weight:bold}}\n"
        "text.muted{{fill:#59636e}}\ntext.end{{text-anchor:end}}\n"
        "@media (prefers-color-scheme:dark){{\n.page{{fill:#0d1117}}\ntext{{fill:#e6edf3}}\n"
        "text.muted{{fill:#9198a1}}\n}}\n</style>\n"
        "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n{5}</svg>\n",
        width_, y_ + margin, escaped(run_.program), text_size, title_size, body_);
  }

  const Run& run_;
  double names_ = 0, width_ = 0, y_ = margin;
  std::string body_;
};

}  // namespace

std::string to_svg(const Run& run) { return Picture(run).text(); }

}  // namespace gpu
