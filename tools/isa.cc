// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "compiler/isa/target_hint.h"
#include "compiler/support/nearest.h"
#include "tartan/isa/instruction.h"
#include "tartan/isa/spelling.h"
#include "tools/commands.h"
#include "tools/isa_document.h"
#include "tools/opcode_text.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

struct IsaWords {
  std::string name, target;
  bool csv = false, json = false, markdown = false, opcodes = false;
};

// Quotes operands with commas, which a {byte-id, thread-id} has.
std::string csv_field(const std::string& text) {
  return text.find(',') == std::string::npos ? text : '"' + text + '"';
}

void print_csv(const std::vector<isa::Instruction>& table) {
  fmt::print("family,mnemonic,operands,min_version,targets\n");
  for (const isa::Instruction& row : table)
    fmt::print("{},{},{},{},{}\n", isa::family(row.form), isa::spell(row.form),
               csv_field(isa::operands_text(row)), row.since.ptx.text(), target_names(row.since));
}

void print_json(const std::vector<isa::Instruction>& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const isa::Instruction& row : table)
    rows.push_back({{"family", isa::family(row.form)},
                    {"mnemonic", isa::spell(row.form)},
                    {"operands", isa::operands_text(row)},
                    {"min_version", row.since.ptx.text()},
                    {"targets", target_names(row.since)}});
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

std::vector<std::string_view> family_names() {
  std::vector<std::string_view> out;
  for (const auto& forms : {isa::forms(), isa::wgmma_forms()})
    for (const isa::Form& form : forms)
      if (std::ranges::find(out, isa::family(form)) == out.end()) out.push_back(isa::family(form));
  return out;
}

// An instruction given by name, optionally with some of its words and types.
int opcode_command(const IsaWords& asked, const std::optional<Arch>& arch) {
  const isa::Spelling spelling = isa::read_spelling(asked.name);
  if (!spelling.unknown.empty()) return usage_error(isa::mismatch(spelling), asked.json);
  if (asked.csv) return usage_error("isa: --csv lists matrix forms only", asked.json);
  OpcodeForms forms{.opcode = spelling.opcode};
  bool exists = isa::signatures(spelling.opcode).empty();
  for (const isa::Signature& each : isa::signatures(spelling.opcode)) {
    const auto has = [&](Type type) {
      return std::ranges::any_of(each.types, [&](const TypeSet& set) { return set.has(type); });
    };
    if (!spelling.words.without(isa::words(each)).empty() ||
        !std::ranges::all_of(spelling.types, has))
      continue;
    exists = true;
    if (!arch || each.since.has(*arch)) forms.signatures.push_back(&each);
  }
  if (!exists) return usage_error(isa::mismatch(spelling), asked.json);
  if (!asked.json) return fmt::print("{}", opcode_text(forms)), exit_ok;
  nlohmann::ordered_json out{{"schema_version", json_schema_version}};
  out.update(opcode_json(forms));
  fmt::print("{}\n", out.dump(1));
  return exit_ok;
}

int unknown_name(const IsaWords& asked, std::vector<std::string_view> known) {
  for (int i = 1; i < static_cast<int>(isa::Opcode::count); ++i)
    known.push_back(isa::name(static_cast<isa::Opcode>(i)));
  return usage_error(
      fmt::format("unknown instruction {}{}", asked.name, nearest_hint(asked.name, known)),
      asked.json);
}

int isa_command(const IsaWords& words) {
  if (words.markdown) {
    if (words.csv || words.json || !words.name.empty() || !words.target.empty())
      return usage_error("isa: --markdown writes the whole table and takes no other argument",
                         words.json);
    fmt::print("{}", words.opcodes ? opcode_document() : isa_document());
    return exit_ok;
  }
  std::optional<Arch> arch;
  if (!words.target.empty()) {
    const auto parsed = Arch::parse(words.target);
    if (!parsed)
      return usage_error(
          fmt::format("--target {}: unknown target{}", words.target, target_hint(words.target)),
          words.json);
    arch = *parsed;
  }
  if (words.opcodes) {
    if (words.csv || !words.name.empty())
      return usage_error(fmt::format("isa: --opcodes lists all instructions, without {}",
                                     words.csv ? "--csv" : words.name),
                         words.json);
    if (words.json)
      return fmt::print("{}\n", nlohmann::ordered_json{{"schema_version", json_schema_version},
                                                       {"opcodes", opcode_list_json(arch)}}
                                    .dump(1)),
             exit_ok;
    return fmt::print("{}", opcode_list(arch)), exit_ok;
  }
  const auto known = family_names();
  if (!words.name.empty() && std::ranges::find(known, words.name) == known.end()) {
    const isa::Opcode opcode = isa::find_opcode(words.name);
    if (opcode == isa::Opcode::none || isa::is_matrix(opcode)) return unknown_name(words, known);
    return opcode_command(words, arch);
  }
  std::vector<isa::Instruction> table;
  for (const isa::Form& form : words.name == "wgmma" ? isa::wgmma_forms() : isa::forms()) {
    const auto row = isa::find(form);
    if (!words.name.empty() && isa::family(form) != words.name) continue;
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
  CLI::App* command = app.add_subcommand(
      "isa", "List every documented matrix instruction form, or show all forms of one instruction");
  command->add_option(
      "NAME", words->name,
      "Instruction, with or without qualifiers and types (cp.async.bulk, ld.global.nc, add.f32): "
      "its forms, operands, targets and effects; or a family of matrix forms: ldmatrix, stmatrix, "
      "movmatrix, wmma.load, wmma.store, wmma.mma, mma, mma.sp, mma.block_scale, "
      "mma.sp.block_scale, wgmma (listed only when named)");
  command->add_flag("--opcodes", words->opcodes, "List every PTX instruction, one per line");
  command->add_option("--target", words->target, "Only forms that this target supports (sm_90)");
  auto* csv = command->add_flag(
      "--csv", words->csv,
      "Print comma-separated values: family,mnemonic,operands,min_version,targets");
  command->add_flag("--json", words->json, "Print one JSON object")->excludes(csv);
  command->add_flag("--markdown", words->markdown,
                    "Print the whole table as a page: docs/isa.md; with --opcodes docs/opcodes.md");
  command->footer("Exit codes: 0 listed, 2 unknown instruction or target, or usage");
  command->callback([words, &exit_code] { exit_code = isa_command(*words); });
}

}  // namespace tartan::tools
