// SPDX-License-Identifier: Apache-2.0
#include "tools/explore/page.h"

#include <fmt/format.h>

#include "compiler/verify/first_errors.h"
#include "runtime/emulator/profile/requests.h"
#include "runtime/emulator/schedules/exploration.h"
#include "tartan/runtime/timeline.h"
#include "tartan/version.h"

namespace tartan::tools::explore {
namespace {

// Lanes and addresses of one request of each instruction, phase by phase.
Json accesses(const emulator::RequestRecorder& recorder) {
  Json out = Json::array();
  for (const auto& [line, request] : recorder.requests()) {
    Json addresses = Json::array();
    for (std::size_t lane = 0; lane < request.at.size(); ++lane)
      addresses.push_back(request.lanes >> lane & 1 ? Json(request.at[lane]) : Json());
    const emulator::Wavefronts cost = emulator::wavefronts(request);
    out.push_back({{"line", line},
                   {"bytes", request.bytes},
                   {"addresses", std::move(addresses)},
                   {"phases", emulator::phases(request)},
                   {"wavefronts", cost.all},
                   {"minimum", cost.minimum},
                   {"cures", emulator::cures(request)}});
  }
  return out;
}

// Text for a <script> element that a browser does not read as the element's end.
std::string in_script(const Json& json) {
  std::string out;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') out += "\\u003c";
    else out += c;
  }
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

// The scripts, in the order in which they are read.
constexpr std::string_view scripts[] = {"base.js",     "code.js",   "findings.js",
                                        "matrices.js", "tiles.js",  "shared.js",
                                        "timeline.js", "report.js", "page.js"};

void count_errors(Page& page) {
  for (const Json& each : page.model["findings"]) {
    if (each["level"] != "error") continue;
    if (page.errors++ == 0)
      page.first = fmt::format("{} [{}]", each["message"].get_ref<const std::string&>(),
                               each["id"].get_ref<const std::string&>());
  }
}

}  // namespace

Page page_of(const Subject& subject, DeviceOptions options) {
  Page page;
  const auto timeline = std::make_shared<Timeline>();
  options.timeline = timeline;
  options.print = [](std::string_view) {};
  ptx::Module module;
  const Diags checked = verify::first_errors(subject.ptx, module);
  std::optional<Outcome> outcome;
  emulator::RequestRecorder recorder;
  options.exploration = std::make_shared<detail::Exploration>();
  options.exploration->requests = &recorder;
  options.exploration->deadline = detail::deadline_after(options.timeout, detail::Clock::now());
  if (subject.manifest && checked.ok()) outcome = run(*subject.manifest, "emulator", options);
  const Outcome* ran = outcome ? &*outcome : nullptr;
  page.refused = !checked.ok() || (ran && ran->exit_code() == 2);

  Code code = code_part(subject, module);
  Json& model = page.model;
  model["schema_version"] = json_schema_version;
  model["generator"] = fmt::format("tartan {}", version());
  model["title"] = subject.title;
  model["findings"] = findings_part(subject, checked, ran);
  count_errors(page);
  model["machine"] = machine_part(subject, code.sources, options.timeout);
  model["ptx"] = std::move(code.ptx);
  model["sources"] = std::move(code.sources);
  model["choices"] = std::move(code.choices);
  model["matrices"] = matrices_part(module);
  model["accesses"] = accesses(recorder);
  model["tiles"] = tiles_part(subject.ptx->text(), recorder.variables());
  model["report"] = report_part(subject, module, ran);
  model["timeline"] = timeline->launches().empty() ? Json() : Json::parse(timeline->json());
  return page;
}

std::string html(const Page& page) {
  std::string code;
  for (const std::string_view name : scripts) code += embedded(name);
  std::string out(embedded("page.html"));
  const auto fill = [&](std::string_view mark, std::string_view text) {
    for (std::size_t at = out.find(mark); at != std::string::npos;
         at = out.find(mark, at + text.size()))
      out.replace(at, mark.size(), text);
  };
  fill("{{title}}", escaped(page.model.at("title").get<std::string>()));
  fill("{{style}}", embedded("page.css"));
  fill("{{script}}", code);
  fill("{{model}}", in_script(page.model));  // the last: it may contain any text
  return out;
}

}  // namespace tartan::tools::explore
