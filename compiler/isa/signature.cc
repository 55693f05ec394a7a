// SPDX-License-Identifier: Apache-2.0
#include "tartan/isa/signature.h"

#include <fmt/format.h>

#include <vector>

#include "compiler/isa/fragment_operand.h"
#include "compiler/isa/hints.h"
#include "compiler/isa/signatures/families.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

class OpcodeSignatures {
 public:
  void add(const Signature& signature) {
    if (rows_.empty()) rows_ = {&signature, 1};
    else if (gathered_.empty() && rows_.data() + rows_.size() == &signature)
      rows_ = {rows_.data(), rows_.size() + 1};
    else gather(signature);
    words = words | isa::words(signature);
    for (const MemoryEffect& effect : signature.memory) async_proxy |= effect.proxy == Proxy::Async;
  }
  std::span<const Signature> rows() const { return rows_; }

  QualifierSet words;
  bool async_proxy = false;

 private:
  void gather(const Signature& signature) {
    if (gathered_.empty()) gathered_.assign(rows_.begin(), rows_.end());
    gathered_.push_back(signature);
    rows_ = gathered_;
  }

  std::span<const Signature> rows_;
  std::vector<Signature> gathered_;  // those that do not follow one another in their family
};

// The rows of all families, by opcode.
const std::vector<OpcodeSignatures>& table() {
  static const std::vector<OpcodeSignatures> all = [] {
    std::vector<OpcodeSignatures> out(static_cast<std::size_t>(Opcode::count));
    for (const auto family : signature_families)
      for (const Signature& each : family()) out[static_cast<std::size_t>(each.opcode)].add(each);
    return out;
  }();
  return all;
}

std::string alternatives(const QualifierSet& set) {
  std::string out;
  for (QualifierSet rest = set; !rest.empty(); rest = rest.without(rest.first()))
    out += fmt::format("{}.{}", out.empty() ? "" : "|", rest.first().word());
  return out;
}

std::string text(const TypeSet& types) {
  std::string out;
  for (const TypeInfo& each : type_table)
    if (each.type != Type::none && types.has(each.type))
      out += fmt::format("{}.{}", out.empty() ? "" : "|", each.name);
  return out;
}

// `least` to `most` digits below `limit`; `falling`: in descending order.
bool are_digits(std::string_view text, std::size_t least, std::size_t most, int limit,
                bool falling) {
  if (text.size() < least || text.size() > most) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] - '0' >= limit) return false;
    if (falling && i > 0 && text[i] >= text[i - 1]) return false;
  }
  return true;
}

// The syntax of an operand: "[addr]", "{4 x d}", "{-}a{.asel}".
std::string syntax(const OperandRow& row, const std::string& called) {
  std::string out = called;
  if (row.threads) return out;  // its name has the braces
  if (row.accepts & an_address && !(row.accepts & a_register))
    out = fmt::format("[{}{}{}{}]", called, row.remote ? ", .." : "",
                      row.sampled ? "{, sampler}" : "", row.coordinates == texels ? ", c" : "");
  const bool with_braces =
      row.accepts & a_vector && !(row.accepts & a_register && row.elements == 1);
  if (with_braces && row.elements > 0) out = fmt::format("{{{} x {}}}", row.elements, called);
  if (row.accepts & a_pair && row.accepts & a_vector) out += "{|p}";
  if (row.selector != Selector::None)
    out += fmt::format(fmt::runtime(row.selects ? ".{}sel" : "{{.{}sel}}"), called);
  if (row.accepts & a_minus) out.insert(0, row.accepts & a_register ? "{-}" : "-");
  return out;
}

}  // namespace

bool selector_fits(std::string_view text, Selector selector) {
  if (text.size() < 3 || text[0] != '.') return false;
  const std::string_view digits = text.substr(2);
  switch (selector) {
    case Selector::None: return false;
    case Selector::Part:
      return text[1] == 'h' ? are_digits(digits, 1, 1, 2, false)
                            : text[1] == 'b' && are_digits(digits, 1, 1, 4, false);
    case Selector::Halves: return text[1] == 'h' && are_digits(digits, 2, 2, 4, false);
    case Selector::Bytes: return text[1] == 'b' && are_digits(digits, 4, 4, 8, false);
    case Selector::SomeHalves: return text[1] == 'h' && are_digits(digits, 1, 2, 2, true);
    case Selector::SomeBytes: return text[1] == 'b' && are_digits(digits, 1, 4, 4, true);
  }
  return false;
}

std::span<const Signature> signatures(Opcode opcode) {
  return table()[static_cast<std::size_t>(opcode)].rows();
}

bool uses_async_proxy(Opcode opcode) {
  // The only matrix instruction that does; their signatures have no effects on memory.
  return opcode == Opcode::wgmma || table()[static_cast<std::size_t>(opcode)].async_proxy;
}

QualifierSet words(const Signature& signature) {
  QualifierSet out = signature.flags;
  for (const QualifierSet& each : signature.one) out = out | each;
  for (const QualifierSet& each : signature.any) out = out | each;
  if (signature.majors.size) out = out | QualifierSet("row col");
  return out;
}

QualifierSet known_words(Opcode opcode) { return table()[static_cast<std::size_t>(opcode)].words; }

std::string operand_name(const Signature& signature, std::size_t operand) {
  const OperandRow& row = signature.operands[operand];
  if (!row.name.empty()) return std::string(row.name);
  if (row.written) return "d";
  char letter = 'a';
  for (std::size_t i = 0; i < operand; ++i) {
    const OperandRow& before = signature.operands[i];
    letter = static_cast<char>(letter + (before.name.empty() && !before.written));
  }
  return std::string(1, letter);
}

std::string syntax(const Signature& signature) {
  std::string out(name(signature.opcode));
  const auto group = [](const std::string& text, bool several) {
    return several ? fmt::format("({})", text) : text;
  };
  for (const QualifierSet& set : signature.one) out += group(alternatives(set), set.count() > 1);
  for (const QualifierSet& set : signature.any) out += fmt::format("{{{}}}", alternatives(set));
  for (QualifierSet rest = signature.flags; !rest.empty(); rest = rest.without(rest.first()))
    out += fmt::format("{{.{}}}", rest.first().word());
  for (const TypeSet& types : signature.types)
    out += group(text(types), std::popcount(types.mask) > 1);
  std::string_view between = " ";
  for (std::size_t i = 0; i < signature.operands.size; ++i) {
    const OperandRow& operand = signature.operands[i];
    const std::string each = syntax(operand, operand_name(signature, i));
    out += operand.optional || !operand.with.empty() ? fmt::format("{{{}{}}}", between, each)
                                                     : fmt::format("{}{}", between, each);
    between = ", ";
  }
  return out;
}

std::string form_text(const Spelling& spelling, const Signature& signature) {
  std::string out(spelling.text);
  std::string_view between = " ";
  for (std::size_t i = 0; i < signature.operands.size; ++i) {
    const OperandRow& operand = signature.operands[i];
    if (!operand.with.empty() && (operand.with & spelling.words).empty()) continue;
    OperandRow stated = operand;
    if (operand.fragment != Operand::none)
      stated.elements =
          static_cast<std::int16_t>(fragment_operand(operand, form_of(spelling)).registers);
    const std::string each = syntax(stated, operand_name(signature, i));
    out += operand.optional ? fmt::format("{{{}{}}}", between, each)
                            : fmt::format("{}{}", between, each);
    between = ", ";
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::isa
