// SPDX-License-Identifier: Apache-2.0
#include "tools/opcode_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "tartan/isa/instruction.h"
#include "tartan/isa/spelling.h"
#include "tools/isa_document.h"

namespace tartan::tools {
namespace {

using isa::Accepts, isa::Opcode, isa::OperandRow, isa::Signature;

// The names of a value in JSON and in a sentence.
struct Names {
  std::string_view id, text;
};

Names words(isa::Control control) {
  switch (control) {
    case isa::Control::FallsThrough: return {"falls_through", ""};
    case isa::Control::Branches: return {"branches", "branches to a label"};
    case isa::Control::Returns: return {"returns", "returns from the function"};
    case isa::Control::Exits: return {"exits", "ends the thread"};
    case isa::Control::Traps: return {"traps", "ends the grid"};
    case isa::Control::Calls: return {"calls", "calls a function"};
  }
  return {};
}

Names words(isa::Convergence convergence) {
  switch (convergence) {
    case isa::Convergence::None: return {"none", ""};
    case isa::Convergence::Mask: return {"mask", "executed together by the lanes of a member mask"};
    case isa::Convergence::Warp: return {"warp", "executed together by all lanes of the warp"};
    case isa::Convergence::Warpgroup:
      return {"warpgroup", "executed together by all lanes of four warps"};
    case isa::Convergence::Cta: return {"cta", "a barrier of the CTA"};
    case isa::Convergence::Cluster: return {"cluster", "a barrier of the cluster"};
  }
  return {};
}

Names words(isa::Access access) {
  switch (access) {
    case isa::Access::None: return {"none", ""};
    case isa::Access::Read: return {"read", "reads"};
    case isa::Access::Write: return {"write", "writes"};
    case isa::Access::Atomic: return {"atomic", "updates atomically"};
  }
  return {};
}

Names words(isa::Proxy proxy) {
  switch (proxy) {
    case isa::Proxy::Generic: return {"generic", ""};
    case isa::Proxy::Async: return {"async", "through the async proxy"};
    case isa::Proxy::Tensormap: return {"tensormap", "through the tensormap proxy"};
    case isa::Proxy::Constant: return {"constant", "through the constant proxy"};
    case isa::Proxy::Texture: return {"texture", "through the texture proxy"};
    case isa::Proxy::Surface: return {"surface", "through the surface proxy"};
  }
  return {};
}

Names words(isa::Completion completion) {
  switch (completion) {
    case isa::Completion::Immediate: return {"immediate", ""};
    case isa::Completion::CpAsyncGroup:
      return {"cp_async_group",
              "complete after cp.async.wait_group, cp.async.wait_all or cp.async.mbarrier.arrive"};
    case isa::Completion::BulkGroup:
      return {"bulk_group", "complete after cp.async.bulk.wait_group"};
    case isa::Completion::Mbarrier:
      return {"mbarrier", "complete with a phase of the mbarrier, by complete_tx"};
    case isa::Completion::WgmmaGroup: return {"wgmma_group", "complete after wgmma.wait_group"};
    case isa::Completion::Tcgen05Wait:
      return {"tcgen05_wait", "complete after tcgen05.wait::ld or tcgen05.wait::st"};
    case isa::Completion::Tcgen05Commit:
      return {"tcgen05_commit", "complete when tcgen05.commit arrives on an mbarrier"};
  }
  return {};
}

std::vector<std::string> words_of(const isa::QualifierSet& set) {
  std::vector<std::string> out;
  for (isa::QualifierSet rest = set; !rest.empty(); rest = rest.without(rest.first()))
    out.push_back("." + std::string(rest.first().word()));
  return out;
}

std::vector<std::string> words_of(const TypeSet& types) {
  std::vector<std::string> out;
  for (const TypeInfo& each : type_table)
    if (each.type != Type::none && types.has(each.type))
      out.push_back("." + std::string(each.name));
  return out;
}

// ---- Operands.

std::vector<std::string> kinds_of(const OperandRow& row) {
  constexpr std::pair<Accepts, std::string_view> all[] = {
      {isa::a_register, "register"},
      {isa::an_integer, "integer"},
      {isa::a_float, "float"},
      {isa::a_special, "special register"},
      {isa::a_variable, "variable"},
      {isa::a_function, "function"},
      {isa::a_sink, "_"},
      {isa::a_negation, "!predicate"},
      {isa::an_address, "address"},
      {isa::a_label, "label"},
      {isa::a_string, "string"},
      {isa::a_pair, "d|p"},
      {isa::a_vector, "vector"},
      {isa::a_list, "list"},
      {isa::a_minus, "-register"},
      {isa::a_special_vector, "special vector"},
  };
  std::vector<std::string> out;
  for (const auto& [bit, name] : all)
    if (row.accepts & bit) out.emplace_back(name);
  return out;
}

std::vector<std::string> spaces_of(const OperandRow& row) {
  constexpr std::pair<isa::Spaces, std::string_view> others[] = {
      {isa::in_tensor, "tensor memory"},
      {isa::as_texture, "texture"},
      {isa::as_sampler, "sampler"},
      {isa::as_surface, "surface"},
      {isa::as_sampling, "texture or sampler"},
      {isa::in_register, "a register"}};
  std::vector<std::string> out;
  for (const StateSpace each : memory_spaces)
    if (row.spaces & isa::space_bit(each)) out.push_back(fmt::format(".{}", name(each)));
  for (const auto& [bit, name] : others)
    if (row.spaces & bit) out.emplace_back(name);
  return out;
}

// ".u32"; "type" is the instruction's one type, "type 2" its second.
std::string type_of(const Signature& signature, const OperandRow& row) {
  if (row.type.written < 0)
    return row.type.fixed == Type::none ? "" : fmt::format(".{}", name(row.type.fixed));
  if (signature.types.size == 0) return "";
  std::string out =
      signature.types.size == 1 ? "type" : fmt::format("type {}", row.type.written + 1);
  if (row.type.scale > 0) out += ", twice as wide";
  if (row.type.scale < 0) out += ", half as wide";
  return out;
}

std::string elements_of(const OperandRow& row) {
  switch (row.elements) {
    case 0: return "";
    case isa::as_written: return "as many elements as .v2, .v4 or .v8 says";
    case isa::image_offsets: return "an offset per dimension of the image";
    case isa::as_repeated: return "as many elements as shape and .x1 to .x128 say";
    case isa::texel_offsets: return "an offset per dimension of the texture";
    case isa::gradients: return "a gradient per dimension of the texture";
    case isa::lane_masks: return "4 elements, 8 with .cta_group::2";
    case isa::sparse_metadata:
    case isa::sparse_values:
    case isa::dense_values: return "as many elements as ratio, types and .x1 to .x128 say";
    default: return fmt::format("{} elements", row.elements);
  }
}

std::string operand_text(const Signature& signature, const OperandRow& row) {
  std::vector<std::string> parts{fmt::format("{}", fmt::join(kinds_of(row), " or "))};
  if (const std::string type = type_of(signature, row); !type.empty()) parts.push_back(type);
  if (row.accepts & isa::an_address && row.spaces && row.spaces != isa::anywhere)
    parts.push_back(fmt::format("{}{}", row.spaces & isa::as_image ? "" : "in ",
                                fmt::join(spaces_of(row), ", ")));
  if (const std::string elements = elements_of(row); !elements.empty()) parts.push_back(elements);
  if (row.remote) parts.emplace_back("an endpoint and an address");
  if (row.coordinates) parts.emplace_back("with coordinates");
  if (row.ranged && row.accepts & isa::an_integer) {
    parts.push_back(fmt::format("{} to {}", row.low, row.high));
    if (row.step == 0) parts.emplace_back("a power of two");
    if (row.step > 1) parts.push_back(fmt::format("a multiple of {}", row.step));
  }
  if (row.selector != isa::Selector::None) parts.emplace_back("an optional selector");
  if (row.fit == isa::Fit::Wider) parts.emplace_back("wider registers are allowed");
  if (row.fit == isa::Fit::Signed) parts.emplace_back("no untyped registers (.b)");
  if (row.fit == isa::Fit::Untyped) parts.emplace_back("only untyped registers (.b)");
  if (row.written) parts.emplace_back("written");
  if (!row.with.empty())
    parts.push_back(fmt::format("with {}", fmt::join(words_of(row.with), " or ")));
  if (row.optional) parts.emplace_back("optional");
  return fmt::format("{}", fmt::join(parts, "; "));
}

// ---- Memory.

std::string effect_text(const Signature& signature, const isa::MemoryEffect& effect) {
  std::string out(words(effect.access).text);
  const auto called = [&](std::int8_t operand) {
    return isa::operand_name(signature, static_cast<std::size_t>(operand));
  };
  if (effect.operand >= 0) out += fmt::format(" [{}]", called(effect.operand));
  if (effect.bytes_operand >= 0) out += fmt::format(", {} bytes", called(effect.bytes_operand));
  for (const std::string_view more : {words(effect.proxy).text, words(effect.completion).text})
    if (!more.empty()) out += fmt::format(", {}", more);
  return out;
}

std::string since_text(const Since& since) {
  const std::string until =
      since.last == newest_version ? "" : fmt::format(" to {}", since.last.text());
  return fmt::format("PTX {}{}, {}", since.ptx.text(), until, targets_text(since));
}

std::string need_text(const isa::Need& need) {
  std::vector<std::string> what = words_of(need.words), types = words_of(need.types);
  if (need.together) what.emplace_back("with");
  what.insert(what.end(), types.begin(), types.end());
  return fmt::format("{}: {}", fmt::join(what, " "), since_text(need.since));
}

std::string signature_text(const Signature& signature) {
  std::string out = fmt::format("\n{}\n", isa::syntax(signature));
  const auto line = [&](std::string_view what, const std::string& text) {
    out += fmt::format("  {:<10} {}\n", what, text);
  };
  line("since", since_text(signature.since));
  for (const isa::Need& need : signature.needs) line("", need_text(need));
  for (std::size_t i = 0; i < signature.operands.size; ++i)
    line(isa::operand_name(signature, i), operand_text(signature, signature.operands[i]));
  std::string_view what = "memory";
  for (const isa::MemoryEffect& effect : signature.memory)
    line(std::exchange(what, ""), effect_text(signature, effect));
  if (signature.results_later) line("", "its results are visible when that completes");
  if (signature.refuses)
    line("words", "some orders or combinations are illegal: `tartan check` reports which");
  return out;
}

nlohmann::ordered_json since_json(const Since& since) {
  return {{"min_version", since.ptx.text()}, {"targets", target_names(since)}};
}

nlohmann::ordered_json operand_json(const Signature& signature, std::size_t i) {
  const OperandRow& row = signature.operands[i];
  nlohmann::ordered_json out{{"name", isa::operand_name(signature, i)},
                             {"accepts", kinds_of(row)},
                             {"type", type_of(signature, row)},
                             {"written", row.written},
                             {"optional", row.optional}};
  if (!row.with.empty()) out["with"] = words_of(row.with);
  if (row.spaces) out["spaces"] = spaces_of(row);
  if (row.elements) out["elements"] = elements_of(row);
  if (row.ranged) out["low"] = row.low, out["high"] = row.high, out["multiple_of"] = row.step;
  return out;
}

nlohmann::ordered_json signature_json(const Signature& signature) {
  using nlohmann::ordered_json;
  const auto lists = [](const auto& sets) {
    ordered_json out = ordered_json::array();
    for (const auto& each : sets) out.push_back(words_of(each));
    return out;
  };
  ordered_json operands = ordered_json::array(), needs = ordered_json::array(),
               memory = ordered_json::array();
  for (std::size_t i = 0; i < signature.operands.size; ++i)
    operands.push_back(operand_json(signature, i));
  for (const isa::Need& need : signature.needs) {
    ordered_json each{{"words", words_of(need.words)},
                      {"types", words_of(need.types)},
                      {"together", need.together}};
    each.update(since_json(need.since));
    needs.push_back(each);
  }
  for (const isa::MemoryEffect& effect : signature.memory) {
    const auto operand = [&](std::int8_t at) -> ordered_json {
      if (at < 0) return nullptr;
      return isa::operand_name(signature, static_cast<std::size_t>(at));
    };
    memory.push_back({{"access", words(effect.access).id},
                      {"operand", operand(effect.operand)},
                      {"bytes", operand(effect.bytes_operand)},
                      {"proxy", words(effect.proxy).id},
                      {"completion", words(effect.completion).id}});
  }
  ordered_json out{
      {"syntax", isa::syntax(signature)},    {"types", lists(signature.types)},
      {"one_of_each", lists(signature.one)}, {"at_most_one_of_each", lists(signature.any)},
      {"flags", words_of(signature.flags)},  {"operands", operands}};
  out.update(since_json(signature.since));
  out["needs"] = needs;
  out["memory"] = memory;
  out["results_later"] = signature.results_later;
  return out;
}

// ---- The list of all instructions.

struct Summary {
  std::string_view name;
  std::size_t forms = 0;
  Since oldest;
  std::string control, memory;  // memory: without what every access of a thread does
};

// The memory effects of the signatures, each once: "reads", "writes through the async proxy, ...".
std::string memory_summary(std::span<const Signature> signatures) {
  std::vector<std::string> out;
  for (const Signature& signature : signatures)
    for (const isa::MemoryEffect& effect : signature.memory) {
      std::string text(words(effect.access).text);
      if (!words(effect.proxy).text.empty()) text += fmt::format(" {}", words(effect.proxy).text);
      if (!words(effect.completion).text.empty())
        text += fmt::format(", {}", words(effect.completion).text);
      if (std::ranges::find(out, text) == out.end()) out.push_back(text);
    }
  return fmt::format("{}", fmt::join(out, "; "));
}

// The signatures of matrix instructions have no effects: an address is read into D, or written.
std::string memory_summary(const isa::Form& form) {
  if (isa::uses_async_proxy(form.opcode))
    return fmt::format("{} {}, {}", words(isa::Access::Read).text, words(isa::Proxy::Async).text,
                       words(isa::Completion::WgmmaGroup).text);
  const auto instruction = isa::find(form);
  if (!instruction->operand(isa::Role::address)) return {};
  return std::string(
      words(instruction->operand(isa::Role::d) ? isa::Access::Read : isa::Access::Write).text);
}

// Nothing if the target has no form of it.
std::optional<Summary> summary(Opcode opcode, const std::optional<Arch>& target,
                               const std::vector<isa::Form>& matrix_forms) {
  const isa::OpcodeRow& row = isa::row(opcode);
  Summary out{.name = row.name};
  const auto add = [&](const Since& since) {
    if (target && !since.has(*target)) return;
    const auto age = [](const Since& each) {  // removed forms come last
      return std::tuple(each.last != newest_version || each.last_sm != 0, each.ptx, each.sm);
    };
    if (out.forms++ == 0 || age(since) < age(out.oldest)) out.oldest = since;
  };
  // Of matrix instructions the forms are counted.
  if (!isa::is_matrix(opcode))
    for (const Signature& each : isa::signatures(opcode)) add(each.since);
  out.memory = memory_summary(isa::signatures(opcode));
  for (const isa::Form& form : matrix_forms)
    if (form.opcode == opcode) add(isa::find(form)->since), out.memory = memory_summary(form);
  if (out.forms == 0) return std::nullopt;
  std::vector<std::string_view> parts;
  for (const std::string_view part : {words(row.control).text, words(row.convergence).text})
    if (!part.empty()) parts.push_back(part);
  out.control = fmt::format("{}", fmt::join(parts, "; "));
  return out;
}

std::vector<Summary> summaries(const std::optional<Arch>& target) {
  std::vector<isa::Form> matrix = isa::forms();
  const std::vector<isa::Form> wgmma = isa::wgmma_forms();
  matrix.insert(matrix.end(), wgmma.begin(), wgmma.end());
  std::vector<Summary> out;
  for (int i = 1; i < static_cast<int>(Opcode::count); ++i)
    if (const auto one = summary(static_cast<Opcode>(i), target, matrix)) out.push_back(*one);
  return out;
}

}  // namespace

std::string opcode_text(const OpcodeForms& forms) {
  const isa::OpcodeRow& row = isa::row(forms.opcode);
  std::string out = fmt::format("{}: {} form{}", row.name, forms.signatures.size(),
                                forms.signatures.size() == 1 ? "" : "s");
  for (const std::string_view part : {words(row.control).text, words(row.convergence).text})
    if (!part.empty()) out += fmt::format("; {}", part);
  out += '\n';
  for (const Signature* each : forms.signatures) out += signature_text(*each);
  return out;
}

nlohmann::ordered_json opcode_json(const OpcodeForms& forms) {
  const isa::OpcodeRow& row = isa::row(forms.opcode);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Signature* each : forms.signatures) list.push_back(signature_json(*each));
  return {{"opcode", row.name},
          {"control", words(row.control).id},
          {"convergence", words(row.convergence).id},
          {"forms", list}};
}

std::string opcode_list(const std::optional<Arch>& target) {
  std::string out;
  const std::vector<Summary> all = summaries(target);
  for (const Summary& each : all) {
    std::string effects = each.control;
    if (!effects.empty() && !each.memory.empty()) effects += "; ";
    std::string line =
        fmt::format("{:<38} {:>4}  PTX {}  {:<22} {}{}", each.name, each.forms,
                    each.oldest.ptx.text(), targets_text(each.oldest), effects, each.memory);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out + fmt::format("{} instructions\n", all.size());
}

nlohmann::ordered_json opcode_list_json(const std::optional<Arch>& target) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Summary& each : summaries(target))
    list.push_back({{"opcode", each.name},
                    {"forms", each.forms},
                    {"min_version", each.oldest.ptx.text()},
                    {"targets", targets_text(each.oldest)},
                    {"control", each.control},
                    {"memory", each.memory}});
  return list;
}

std::string opcode_document() {
  const std::vector<Summary> all = summaries(std::nullopt);
  const auto later = std::ranges::count_if(
      all, [](const Summary& each) { return each.oldest.ptx > newest_version; });
  std::string out = fmt::format(
      "# Opcodes\n\n<!-- Written by `tartan isa --opcodes --markdown` from compiler/isa: change it "
      "there. -->\n\nAll {} instructions of PTX ISA {}: the first version and targets that have a "
      "form of it, its effect on control flow\nand the threads that must execute it together, and "
      "its memory effects. ({} of them are of a later version: `tartan\ncheck` knows them only to "
      "say which version they need.) `tartan isa NAME` shows the forms: qualifiers\n(`(.a|.b)`: "
      "one of them, `{{.a|.b}}`: at most one), operands with kinds, types and ranges, versions and "
      "targets, and\nthe effect on each address. An empty cell: falls through, per thread, no "
      "memory access. [isa.md](isa.md) lists the\nforms of matrix instructions.\n\n| Instruction "
      "| PTX | Targets | Control, threads | Memory |\n|---|---|---|---|---|\n",
      all.size(), newest_version.text(), later);
  for (const Summary& each : all)
    out += fmt::format("| `{}` | {} | {} | {} | {} |\n", each.name, each.oldest.ptx.text(),
                       targets_text(each.oldest), each.control, each.memory);
  return out;
}

}  // namespace tartan::tools
