// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "tartan/support/source.h"
#include "tools/commands.h"
#include "tools/layout_drawing.h"
#include "tools/shared_tile.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

constexpr std::string_view all_operands = "all";
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
constexpr std::size_t picture_width = 200;              // at most
constexpr int whole = std::numeric_limits<int>::max();  // panels as wide as their matrix

struct LayoutWords {
  std::string instruction, operand, svg, type = "f16", idesc, descriptor, target = "sm_100a";
  int selector = 0;
  bool json = false, picture = false;
};

Operand parse_operand(std::string_view text) {
  for (const Operand operand : {Operand::a, Operand::b, Operand::c, Operand::d})
    if (text == name(operand)) return operand;
  return Operand::none;
}

// Errors in the options, for an instruction that exists.
Diags option_errors(const LayoutWords& words, const LayoutTable& table, bool selects) {
  Diags out;
  const Operand operand = parse_operand(words.operand);
  if (operand != Operand::none &&
      std::ranges::find(table.operands, operand, &OperandTable::operand) == table.operands.end()) {
    std::string has;
    for (const OperandTable& one : table.operands)
      has += fmt::format("{}{}", has.empty() ? "" : ", ", name(one.operand));
    out.report("usage"_rule, {},
               fmt::format("--operand {}: {} has no such fragment: expected one of {}",
                           words.operand, table.instruction, has));
  }
  const int selectors = table.metadata ? table.metadata->selectors : 0;
  if (selects && words.selector >= selectors)
    out.report("usage"_rule, {},
               selectors ? fmt::format("--selector {}: {} takes 0 to {}", words.selector,
                                       table.instruction, selectors - 1)
                         : fmt::format("--selector {}: {} is not sparse", words.selector,
                                       table.instruction));
  return out;
}

// With metadata for the lowest selector if the one that is asked for does not exist.
Result<LayoutTable> table_of(const LayoutWords& words) {
  if (names_tensor_memory(words.instruction)) return tensor_layout(words.instruction);
  const Result<isa::Form> form = layout_form(words.instruction);
  if (!form) return form.diags();
  const bool sparse = form->sparsity != isa::Sparsity::dense;
  const bool exists = sparse && words.selector < isa::selectors(*form);
  return layout_table(*form, exists ? words.selector : 0);
}

// Options of instructions where a matrix in shared memory is asked for, and the reverse.
Diags misplaced_options(const LayoutWords& words, const CLI::App& command) {
  struct Only {
    const char *option, *of;
    bool tile;
  };
  static constexpr Only all[] = {{"--operand", "an instruction", false},
                                 {"--selector", "an instruction", false},
                                 {"--picture", "an instruction", false},
                                 {"--type", "a matrix in shared memory", true}};
  const bool tile = names_tile(words.instruction);
  Diags out;
  for (const Only& each : all)
    if (command.count(each.option) > 0 && each.tile != tile)
      out.report(
          "usage"_rule, {},
          fmt::format("{}: an option of {}; {} is {}", each.option, each.of, words.instruction,
                      tile ? "a matrix in shared memory" : "an instruction"));
  return out;
}

int shared_tile(const LayoutWords& words) {
  const auto type = parse_type(words.type);
  if (!type) return usage_error(fmt::format("--type {}: unknown type", words.type), words.json);
  const Result<SharedTile> tile = parse_tile(words.instruction, *type);
  if (!tile) return fail(exit_usage, tile.diags(), words.json);
  if (!words.svg.empty()) {
    const Status written = write_output(words.svg, tile_svg(*tile));
    return written ? exit_ok : fail(exit_usage, written.diags());
  }
  if (words.json) fmt::print("{}\n", tile_json(*tile));
  else fmt::print("{}", tile_text(*tile, colour(stdout), columns(stdout).value_or(unlimited)));
  return exit_ok;
}

// Tables as wide as there is room, or pictures.
std::string on_terminal(const LayoutTable& table, Operand only, bool as_pictures) {
  const std::size_t width = columns(stdout).value_or(unlimited);
  const bool coloured = colour(stdout);
  if (coloured && as_pictures)
    return layout_pictures(draw(table, only, whole), std::min(width, picture_width));
  Drawing drawing = draw(table, only);
  for (int panel = widest_panel / 2; panel > 0 && table_width(drawing) > width; panel /= 2)
    drawing = draw(table, only, panel);
  return layout_text(drawing, coloured);
}

int descriptor(const LayoutWords& words) {
  const auto target = Target::parse(words.target);
  if (!target) return usage_error(fmt::format("--target {}: unknown target", words.target));
  const Result<DescriptorText> found =
      words.idesc.empty() ? tile_descriptor_of(words.descriptor)
                          : instruction_descriptor_of(words.instruction, words.idesc, target->arch);
  if (!found) return fail(exit_usage, found.diags(), words.json);
  fmt::print("{}", words.json ? found->json() + "\n" : found->text());
  return found->fault.empty() ? exit_ok : exit_failed;
}

int layout(const LayoutWords& words, const CLI::App& command) {
  if (!words.idesc.empty() || !words.descriptor.empty()) return descriptor(words);
  if (words.instruction.empty())
    return usage_error("layout: expected INSTRUCTION, or --descriptor", words.json);
  if (const Diags wrong = misplaced_options(words, command); !wrong.ok())
    return fail(exit_usage, wrong, words.json);
  if (names_tile(words.instruction)) return shared_tile(words);
  const Result<LayoutTable> table = table_of(words);
  if (!table) return fail(exit_usage, table.diags(), words.json);
  if (words.picture && !colour(stdout))
    return usage_error("--picture: expected a terminal with colors, or --color always");
  if (const Diags wrong = option_errors(words, *table, command.count("--selector") > 0);
      !wrong.ok())
    return fail(exit_usage, wrong, words.json);
  const Operand only = parse_operand(words.operand);
  if (words.json) {
    fmt::print("{}\n", layout_json(*table, only));
    return exit_ok;
  }
  if (words.svg.empty()) {
    fmt::print("{}", on_terminal(*table, only, words.picture || words.operand == all_operands));
    return exit_ok;
  }
  const Status written = write_output(words.svg, layout_svg(draw(*table, only)));
  return written ? exit_ok : fail(exit_usage, written.diags());
}

}  // namespace

void add_layout(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<LayoutWords>();
  CLI::App* command = app.add_subcommand(
      "layout", "Show which lane and register holds which element of a matrix operand");
  command->add_option(
      "INSTRUCTION", words->instruction,
      "A PTX spelling, qualifiers in any order, .sync.aligned optional "
      "(mma.m16n8k16.row.col.f32.f16.f16.f32); or the layout of a matrix in shared memory, to "
      "show its banks (\"64x32:(32,1) swizzle<2,3,3>\", \"((8,8),(8,8)):((8,512),(1,64))\")");
  command
      ->add_option("--operand", words->operand,
                   "Show only this operand; all: pictures of all of them side by side, where there "
                   "are colours")
      ->check(CLI::IsMember({"a", "b", "c", "d", "all"}));
  command
      ->add_option("--selector", words->selector,
                   "Sparse forms: show the metadata for this selector (default 0)")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  command->add_option("--type", words->type, "Element type of a matrix in shared memory")
      ->capture_default_str();
  auto* idesc = command->add_option("--idesc", words->idesc,
                                    "Say what this instruction descriptor of a tcgen05.mma says, "
                                    "and whether it is legal");
  command->add_option("--target", words->target, "The target of --idesc")
      ->capture_default_str()
      ->needs(idesc);
  command
      ->add_option("--descriptor", words->descriptor,
                   "The same of a tile in shared memory, for tcgen05.mma and tcgen05.cp")
      ->excludes(idesc);
  auto* svg = command
                  ->add_option("--svg", words->svg,
                               "Write an SVG picture to this file; - is standard output")
                  ->type_name("FILE");
  auto* json = command->add_flag("--json", words->json, "Print one JSON object on standard output")
                   ->excludes(svg);
  command
      ->add_flag("--picture", words->picture,
                 "Where there are colors: a picture, half blocks in the colors of the lanes")
      ->excludes(svg)
      ->excludes(json);
  command->footer(
      "T4V2:R1 is element 2 of lane 4, in its register 1\nTables are as wide as COLUMNS or the "
      "terminal; elsewhere they have up to 16 boxes a row.\nExit codes: 0 shown, 1 an illegal "
      "descriptor, 2 unknown instruction, usage or I/O");
  command->callback([words, command, &exit_code] { exit_code = layout(*words, *command); });
}

}  // namespace tartan::tools
