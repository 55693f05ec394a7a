// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/jit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>

#include "compiler/ptx/line_table.h"
#include "tartan/ptx/parser.h"

namespace tartan::TARTAN_ABI::cuda {
namespace {

struct PtxOfDriver {
  int driver;  // CUDA version
  Version ptx;
};

// PTX ISA, "Release Notes": the first driver that supports each version.
constexpr PtxOfDriver ptx_of_driver[] = {
    {9000, {6, 0}},  {9010, {6, 1}},  {9020, {6, 2}},  {10000, {6, 3}}, {10010, {6, 4}},
    {10020, {6, 5}}, {11000, {7, 0}}, {11010, {7, 1}}, {11020, {7, 2}}, {11030, {7, 3}},
    {11040, {7, 4}}, {11050, {7, 5}}, {11060, {7, 6}}, {11070, {7, 7}}, {11080, {7, 8}},
    {12000, {8, 0}}, {12010, {8, 1}}, {12020, {8, 2}}, {12030, {8, 3}}, {12040, {8, 4}},
    {12050, {8, 5}}, {12070, {8, 6}}, {12080, {8, 7}}, {12090, {8, 8}}, {13000, {9, 0}},
    {13010, {9, 1}}, {13020, {9, 2}}, {13030, {9, 3}}, {13040, {9, 4}}, {13050, {9, 5}},
};

// A line of a log that is about a line of the text.
struct Remark {
  int line = 0;
  Level level = Level::Note;
  std::string_view text;
};

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Of "ptxas application ptx input, line 5; error   : Unknown thing".
std::optional<Remark> remark_of(std::string_view line) {
  constexpr std::string_view before = ", line ";
  const std::size_t at = line.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + before.size());
  Remark out;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), out.line);
  if (error != std::errc() || out.line < 1) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (line.empty() || line.front() != ';') return std::nullopt;
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view level = trimmed(line.substr(1, colon - 1));
  if (level == "error" || level == "fatal") out.level = Level::Error;
  else if (level == "warning") out.level = Level::Warning;
  else if (level != "info") return std::nullopt;
  out.text = trimmed(line.substr(colon + 1));
  return out;
}

Diags too_new(const Driver& driver, const ptx::Module& module, const std::string& name) {
  const Version newest = newest_ptx(driver.version());
  return Diags::one("driver-version"_rule, {},
                    fmt::format("{} is PTX {}, and the installed driver (CUDA {}) supports at most "
                                "PTX {}: emit with --ptx {}, or install a newer driver",
                                name, module.version.text(), cuda_version_text(driver.version()),
                                newest.text(), newest.text()));
}

}  // namespace

Version newest_ptx(int version) {
  Version newest = ptx_of_driver[0].ptx;
  for (const PtxOfDriver& row : ptx_of_driver)
    if (row.driver <= version) newest = row.ptx;
  return newest;
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Result<ptx::Module> parse_for(const Driver& driver, const std::string& ptx,
                              const std::string& name) {
  Diags diags;
  ptx::Module module = ptx::parse(std::make_shared<Source>(name, ptx), diags);
  if (!diags.ok()) return diags;
  // What a driver that is newer than the table takes, it knows itself.
  const bool newer = driver.version() > std::end(ptx_of_driver)[-1].driver;
  if (!newer && module.version > newest_ptx(driver.version())) return too_new(driver, module, name);
  return module;
}

void Jit::set_target(unsigned target) {
  values_[4] = reinterpret_cast<void*>(std::uintptr_t{target});
  count_ = 5;
}

Diags Jit::remarks(const std::string& ptx, const std::string& name, std::string& rest) const {
  Diags out;
  std::optional<detail::LineTable> lines;
  for (const std::vector<char>* log : {&error_, &info_}) {
    std::string_view text(log->data());
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = trimmed(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      const auto remark = remark_of(line);
      if (!remark) {
        if (!line.empty()) rest += fmt::format("\n{}", line);
        continue;
      }
      if (!lines) lines.emplace(ptx);
      Diag diag{.level = remark->level,
                .id = "module-load"_rule.id,
                .place = {name, remark->line, 0},
                .message = fmt::format("the driver's assembler: {}", remark->text)};
      if (auto place = lines->place(remark->line)) {
        diag.place = *std::move(place);
        diag.message += fmt::format(" (line {} of {})", remark->line, name);
      }
      out.add(std::move(diag));
    }
  }
  return out;
}

Diags rejection(const Driver& driver, const char* call, Code code, const ptx::Module& module,
                const std::string& name, const Jit& jit) {
  if (code == Code::UnsupportedPtxVersion) return too_new(driver, module, name);
  std::string rest;
  Diags remarks = jit.remarks(std::string(module.source->text()), name, rest);
  Diags diags =
      Diags::one("module-load"_rule, {},
                 fmt::format("{} (.target {}) was rejected by the driver: {}{}", name,
                             fmt::join(module.targets, ", "), driver.describe(call, code), rest));
  diags.append(std::move(remarks));
  return diags;
}

}  // namespace tartan::TARTAN_ABI::cuda
