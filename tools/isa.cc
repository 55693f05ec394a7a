// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "compiler/isa/instruction.h"
#include "compiler/isa/nearest_arch.h"
#include "tools/commands.h"
#include "tools/isa_document.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

struct IsaWords {
  std::string family, target;
  bool csv = false, json = false, markdown = false;
};

std::string targets_of(const Since& since) {
  std::string out;
  for (const ArchRow& row : archs)
    if (row.current && since.has(row.arch)) out += (out.empty() ? "" : " ") + row.arch.text();
  return out;
}

// Operands hold commas where there is a {byte-id, thread-id}: quoted then.
std::string csv_field(const std::string& text) {
  return text.find(',') == std::string::npos ? text : '"' + text + '"';
}

void print_csv(const std::vector<isa::Instruction>& table) {
  fmt::print("family,mnemonic,operands,min_version,targets\n");
  for (const isa::Instruction& row : table)
    fmt::print("{},{},{},{},{}\n", isa::family(row.form), isa::spell(row.form),
               csv_field(isa::operands_text(row)), row.since.ptx.text(), targets_of(row.since));
}

void print_json(const std::vector<isa::Instruction>& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const isa::Instruction& row : table)
    rows.push_back({{"family", isa::family(row.form)},
                    {"mnemonic", isa::spell(row.form)},
                    {"operands", isa::operands_text(row)},
                    {"min_version", row.since.ptx.text()},
                    {"targets", targets_of(row.since)}});
  fmt::print(
      "{}\n",
      nlohmann::ordered_json{{"schema_version", json_schema_version}, {"instructions", rows}}.dump(
          1));
}

void print_table(const std::vector<isa::Instruction>& table) {
  for (const isa::Instruction& row : table)
    fmt::print("{:<86} PTX {}  {:<7} {}\n", isa::spell(row.form), row.since.ptx.text(),
               isa::oldest(row.since).text(), isa::operands_text(row));
  fmt::print("{} forms\n", table.size());
}

std::vector<std::string_view> families() {
  std::vector<std::string_view> out;
  for (const auto& forms : {isa::forms(), isa::wgmma_forms()})
    for (const isa::Form& form : forms)
      if (std::ranges::find(out, isa::family(form)) == out.end()) out.push_back(isa::family(form));
  return out;
}

int isa_command(const IsaWords& words) {
  if (words.markdown) {
    if (words.csv || words.json || !words.family.empty() || !words.target.empty())
      return usage_error("isa: --markdown writes the whole table: it takes no other argument",
                         words.json);
    fmt::print("{}", isa_document());
    return exit_ok;
  }
  const auto arch = Arch::parse(words.target);
  if (!words.target.empty() && !arch)
    return usage_error(fmt::format("--target {}: there is no such target; the nearest is {}",
                                   words.target, nearest_arch(words.target).text()),
                       words.json);
  const auto known = families();
  if (!words.family.empty() && std::ranges::find(known, words.family) == known.end())
    return usage_error(
        fmt::format("there is no family {}; there are {}", words.family, fmt::join(known, ", ")),
        words.json);
  std::vector<isa::Instruction> table;
  for (const isa::Form& form : words.family == "wgmma" ? isa::wgmma_forms() : isa::forms()) {
    const auto row = isa::find(form);
    if (!words.family.empty() && isa::family(form) != words.family) continue;
    if (arch && !row->since.has(*arch)) continue;
    table.push_back(*row);
  }
  if (words.csv) print_csv(table);
  else if (words.json) print_json(table);
  else print_table(table);
  return exit_ok;
}

}  // namespace

void add_isa(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<IsaWords>();
  CLI::App* command =
      app.add_subcommand("isa", "The instruction table: every documented matrix instruction form");
  command->add_option("FAMILY", words->family,
                      "Only this family: ldmatrix, stmatrix, movmatrix, wmma.load, wmma.store, "
                      "wmma.mma, mma, mma.sp, "
                      "mma.block_scale, mma.sp.block_scale; wgmma (listed only when named)");
  command->add_option("--target", words->target, "Only what this target has (sm_90)");
  auto* csv = command->add_flag("--csv", words->csv,
                                "Comma-separated: family,mnemonic,operands,min_version,targets");
  command->add_flag("--json", words->json, "One JSON object")->excludes(csv);
  command->add_flag("--markdown", words->markdown, "The whole table as a page: docs/isa.md");
  command->callback([words, &exit_code] { exit_code = isa_command(*words); });
}

}  // namespace tartan::tools
