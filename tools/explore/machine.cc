// SPDX-License-Identifier: Apache-2.0
// Machine code as NVIDIA's tools show it: ptxas assembles, nvdisasm disassembles with the lines.
#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "tools/cuda_tools.h"
#include "tools/explore/page.h"

namespace tartan::tools::explore {
namespace {

namespace fs = std::filesystem;

constexpr double patience = 300;  // seconds, for a tool

// The first complaint, without the names of our temporary files: "Unexpected instruction types".
std::string complaint(const Printed& printed) {
  if (printed.late) return ": it was not done within the time limit";
  const std::string& log = printed.text;
  std::smatch found;
  static const std::regex line(R"((?:line \d+; )?(?:error|fatal)\s*: *([^\n]+))");
  return std::regex_search(log, found, line) ? fmt::format(": {}", found.str(0)) : std::string();
}

std::optional<int> number_before(const std::string& text, const char* what) {
  std::smatch found;
  if (!std::regex_search(text, found, std::regex(std::string("(\\d+) ") + what)))
    return std::nullopt;
  return std::stoi(found[1]);
}

// "ptxas info    : Used 40 registers, used 1 barriers, 768 bytes smem", one for each kernel.
Json resources(const std::string& log) {
  Json out = Json::array();
  std::string kernel;
  std::istringstream lines(log);
  static const std::regex entry("entry function '([^']+)'");
  int stores = 0, loads = 0;
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_search(line, found, entry)) kernel = found[1];
    if (const auto bytes = number_before(line, "bytes spill stores")) stores = *bytes;
    if (const auto bytes = number_before(line, "bytes spill loads")) loads = *bytes;
    const auto registers = number_before(line, "registers");
    if (!registers) continue;
    out.push_back({{"kernel", kernel},
                   {"registers", *registers},
                   {"barriers", number_before(line, "barriers").value_or(0)},
                   {"shared", number_before(line, "bytes smem").value_or(0)},
                   {"spill_stores", stores},
                   {"spill_loads", loads}});
    stores = loads = 0;
  }
  return out;
}

int source_index(const Json& sources, const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i]["path"] == path || sources[i]["name"] == name) return static_cast<int>(i);
  return -1;
}

// The instructions and labels of `nvdisasm -g`, each with its C++ line.
Json instructions(const std::string& listing, const Json& sources) {
  static const std::regex line_mark(R"re(^\s*//## File "([^"]+)", line (\d+).*)re");
  static const std::regex instruction(R"(^\s*/\*([0-9a-f]+)\*/\s+(.*;).*)");
  static const std::regex label(R"(^\s*(\.L_x_\d+|[A-Za-z_$][\w$]*):\s*)");
  Json text = Json::array(), at = Json::array();
  Json now = 0;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, line_mark)) {
      const int source = source_index(sources, found[1]);
      now = source < 0 ? Json(0) : Json{source, std::stoi(found[2])};
    } else if (std::regex_match(line, found, instruction)) {
      text.push_back(fmt::format("/*{}*/ {}", found[1].str(), found[2].str()));
      at.push_back(now);
    } else if (std::regex_match(line, found, label)) {
      text.push_back(found[1].str() + ":");
      at.push_back(0);
    }
  }
  return {{"lines", std::move(text)}, {"at", std::move(at)}};
}

}  // namespace

Json machine_part(const Subject& subject, const Json& sources, double seconds) {
  if (seconds <= 0) seconds = patience;
  Json out{{"missing", nullptr},
           {"resources", Json::array()},
           {"lines", Json::array()},
           {"at", Json::array()}};
  const auto assembler = find_tool("ptxas"), disassembler = find_tool("nvdisasm");
  const auto without = [&](const std::string& why) {
    out["missing"] = why;
    return out;
  };
  if (!assembler)
    return without(
        "ptxas of NVIDIA's CUDA toolkit was not found: set CUDA_HOME, or add it to PATH");
  std::smatch target;
  const std::string text(subject.ptx->text());
  static const std::regex of_target(R"(\n\s*\.target\s+(sm_\w+))");
  if (!std::regex_search(text, target, of_target)) return without("the text has no .target");
  const TemporaryFolder folder;
  if (!folder.made()) return without("the folder of temporary files cannot be written");
  const fs::path ptx = folder / "kernel.ptx", cubin = folder / "kernel.cubin";
  if (!write_file(ptx.string(), text)) return without("the folder of temporary files is full");
  const Printed log = output_of({assembler->string(), "-v", "-lineinfo", "-arch=" + target[1].str(),
                                 "-o", cubin.string(), ptx.string()},
                                folder / "log", seconds);
  if (!log.ok) return without("ptxas did not assemble the text" + complaint(log));
  out["resources"] = resources(log.text);
  if (!disassembler)
    return without(
        "nvdisasm of NVIDIA's CUDA toolkit was not found: set CUDA_HOME, or add it to PATH");
  const Printed listing =
      output_of({disassembler->string(), "-g", cubin.string()}, folder / "listing", seconds);
  if (!listing.ok) return without("nvdisasm did not read what ptxas made" + complaint(listing));
  out.update(instructions(listing.text, sources));
  return out;
}

}  // namespace tartan::tools::explore
