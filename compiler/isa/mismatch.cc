// SPDX-License-Identifier: Apache-2.0
// What is wrong with a spelling that no signature has, and which legal one is near.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "compiler/isa/hints.h"
#include "compiler/isa/matching.h"
#include "compiler/isa/nearest_spelling.h"
#include "compiler/support/nearest.h"
#include "tartan/isa/form.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

// ---- Opcodes.

struct NearName {
  std::string_view name;
  std::size_t steps = 0;
};

// Of all opcodes, in order.
const std::vector<Words>& split_names() {
  static const std::vector<Words> all = [] {
    std::vector<Words> out;
    for (int i = 0; i < static_cast<int>(Opcode::count); ++i)
      out.push_back(split(name(static_cast<Opcode>(i))));
    return out;
  }();
  return all;
}

// The words of a name are compared with those at the same place of the text.
std::optional<std::size_t> steps_to_name(const Words& text, const Words& known) {
  if (text.size() < known.size()) return std::nullopt;
  std::size_t out = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto steps = steps_to(text[i], known[i]);
    if (!steps) return std::nullopt;
    out += *steps;
  }
  return out;
}

// Whether a name begins with the words and goes on.
bool continues(std::string_view name, std::string_view words) {
  return name.size() > words.size() && name.starts_with(words) && name[words.size()] == '.';
}

// Whether there are several instructions whose names begin with the word.
bool is_family(std::string_view word) {
  for (int i = 1; i < static_cast<int>(Opcode::count); ++i)
    if (continues(name(static_cast<Opcode>(i)), word)) return true;
  return false;
}

// The nearest name, of equally near ones the longest, among those that begin with the words `start`
// and go on; empty: among all.
std::optional<NearName> nearest_name(std::string_view text, std::string_view start = {}) {
  const Words words = split(text);
  if (start.empty() && !words.empty() && is_family(words[0])) start = words[0];
  std::optional<NearName> out;
  for (int i = 1; i < static_cast<int>(Opcode::count); ++i) {
    const std::string_view known = name(static_cast<Opcode>(i));
    if (!start.empty() && !continues(known, start)) continue;
    const auto steps = steps_to_name(words, split_names()[static_cast<std::size_t>(i)]);
    if (!steps) continue;
    if (!out || *steps < out->steps || (*steps == out->steps && known.size() > out->name.size()))
      out = {known, *steps};
  }
  return out;
}

// wgmma.start: what begins like it, if that is a short list.
std::string family_hint(std::string_view text) {
  const std::string start = split(text)[0];
  Words names;
  for (int i = 1; i < static_cast<int>(Opcode::count); ++i)
    if (const std::string_view known = name(static_cast<Opcode>(i)); continues(known, start))
      names.emplace_back(known);
  return nearest_text(names);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string unknown_instruction(std::string_view text) {
  const std::string small = lower(text.substr(0, 200));
  if (small != text && find_opcode(small) != Opcode::none)
    return fmt::format("unknown instruction {}: PTX is lower case; the nearest is {}", text, small);
  std::string dotted = small;  // elect_sync
  std::ranges::replace(dotted, '_', '.');
  std::string hint;
  if (const auto near = nearest_opcode(small); !near.empty())
    hint = fmt::format("; the nearest is {}", near);
  else if (is_legal(dotted)) hint = fmt::format("; the nearest is {}", dotted);
  else hint = family_hint(text);
  return fmt::format("unknown instruction {}{}", text, hint);
}

// ---- Unknown words.

TypeSet known_types(Opcode opcode) {
  TypeSet out;
  for (const Signature& row : signatures(opcode))
    for (const TypeSet& each : row.types) out.mask |= each.mask;
  return out;
}

// What a word such as .u128 is meant as: types of its kind, of the most similar sizes.
Words types_of_kind(std::string_view word, const TypeSet& types) {
  int size = 0;
  const auto [end, error] = std::from_chars(word.data() + 2, word.data() + word.size(), size);
  if (word.size() < 3 || error != std::errc() || end != word.data() + word.size()) return {};
  std::vector<TypeInfo> found;
  for (const TypeInfo& each : type_table)
    if (each.type != Type::none && types.has(each.type) && each.name[0] == word[1] &&
        !each.name.starts_with("ue") && !holds_bytes(each))
      found.push_back(each);
  std::ranges::stable_sort(found, {},
                           [&](const TypeInfo& each) { return std::abs(each.bits - size); });
  Words out;
  for (const TypeInfo& each : found)
    if (out.size() < 4) out.push_back(fmt::format(".{}", each.name));
  return out;
}

std::string unknown_word(const Spelling& spelling, const Target& target) {
  const std::string_view opcode = name(spelling.opcode);
  const std::string written = fmt::format(".{}", spelling.unknown);
  Words dotted;
  for (QualifierSet rest = known_words(spelling.opcode); !rest.empty();
       rest = rest.without(rest.first()))
    dotted.push_back(fmt::format(".{}", rest.first().word()));
  const TypeSet types = known_types(spelling.opcode);
  for (const TypeInfo& each : type_table)
    if (each.type != Type::none && types.has(each.type))
      dotted.push_back(fmt::format(".{}", each.name));
  const std::vector<std::string_view> known(dotted.begin(), dotted.end());
  const auto words = nearest_words(written, known);
  const auto longer = nearest_name(spelling.text, opcode);
  const bool other =
      longer && (words.empty() || longer->steps <= *steps_to(written, words.front()));
  const Words near =
      words.empty() ? types_of_kind(written, types) : Words(words.begin(), words.end());
  std::string hint = other ? fmt::format("; the nearest is {}", longer->name) : nearest_text(near);
  if (hint.empty() && is_matrix(spelling.opcode)) hint = nearest_hint(spelling, target);
  return fmt::format("{} does not accept {}{}", opcode, written, hint);
}

// ---- Types.

bool is_type(std::string_view word) { return parse_type(word.substr(1)).has_value(); }

// The types that make the spelling legal in place of one of those written, the most similar sizes
// first.
Words types_in_place(const Spelling& spelling, const Target& target) {
  const Words words = split(spelling.text);
  struct Candidate {
    std::string word;
    int away;
  };
  std::vector<Candidate> found;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!is_type(words[i])) continue;
    const TypeInfo& written = info(*parse_type(words[i].substr(1)));
    for (const TypeInfo& each : type_table) {
      if (each.type == Type::none || each.type == written.type || !alike(written, each)) continue;
      Words other = words;
      other[i] = fmt::format(".{}", each.name);
      if (is_legal(joined(other), target))
        found.push_back({other[i], std::abs(each.bits - written.bits)});
    }
  }
  std::ranges::stable_sort(found, {}, &Candidate::away);
  Words out;
  for (const Candidate& each : found)
    if (out.size() < 4 && std::ranges::find(out, each.word) == out.end()) out.push_back(each.word);
  return out;
}

// ---- What a row rejects.

// The words that no form of the instruction has.
QualifierSet foreign_words(const Spelling& spelling) {
  return spelling.words.without(known_words(spelling.opcode));
}

// The words, as a sentence; empty if it accepts all.
std::string words_refused(const Signature& signature, const Spelling& spelling) {
  const QualifierSet extra = spelling.words.without(words(signature));
  if (!extra.empty()) return fmt::format("does not accept .{}", extra.first().word());
  const auto pick = [](const QualifierSet& set, std::string_view between) {
    std::string out;
    for (QualifierSet rest = set; !rest.empty(); rest = rest.without(rest.first()))
      out += fmt::format("{}.{}", out.empty() ? "" : between, rest.first().word());
    return out;
  };
  for (const QualifierSet& set : signature.one) {
    const QualifierSet got = set & spelling.words;
    if (got.empty())
      return fmt::format("requires {}{}", set.count() > 1 ? "one of " : "", pick(set, " "));
    if (got.count() > 1) return fmt::format("accepts only one of {}", pick(got, " and "));
  }
  for (const QualifierSet& set : signature.any)
    if ((set & spelling.words).count() > 1)
      return fmt::format("accepts only one of {}", pick(set & spelling.words, " and "));
  return {};
}

// ".row.col", "two layouts, each .row or .col"
std::string majors_text(const Signature& row) {
  std::string out;
  for (const Majors& each : row.majors)
    out += each.row && each.col ? ".row|.col" : each.row ? ".row" : ".col";
  return row.majors.size ? out : "no layout";
}

bool some_takes_words(const Spelling& spelling) {
  return std::ranges::any_of(signatures(spelling.opcode), [&](const Signature& each) {
    return words_refused(each, spelling).empty();
  });
}

// "max.NaN has no form with .f64; the nearest are .f32 and .f16": empty if other types do not help.
std::string wrong_types(const Spelling& spelling, const Target& target) {
  const Words near = types_in_place(spelling, target);
  if (near.empty()) return {};
  Words qualifiers, types;
  for (const std::string& word : split(spelling.text.substr(name(spelling.opcode).size())))
    (is_type(word) ? types : qualifiers).push_back(word);
  return fmt::format("{}{} has no form with {}{}", name(spelling.opcode), joined(qualifiers),
                     joined(types), nearest_text(near));
}

}  // namespace

std::string_view nearest_opcode(std::string_view text) {
  const auto near = nearest_name(text);
  return near ? near->name : std::string_view();
}

const Rule& mismatch_rule(const Spelling& spelling) {
  if (spelling.opcode == Opcode::none) return "unknown-instruction"_rule;
  const bool word =
      !spelling.unknown.empty() || !spelling.repeated.empty() || !foreign_words(spelling).empty();
  return word ? "unknown-qualifier"_rule : "unknown-form"_rule;
}

std::string mismatch(const Spelling& spelling, const Target& target) {
  if (spelling.opcode == Opcode::none) return unknown_instruction(spelling.text);
  if (!spelling.unknown.empty()) return unknown_word(spelling, target);
  if (!spelling.signatures.empty()) return {};
  const std::string hint = nearest_hint(spelling, target);
  if (!spelling.repeated.empty())
    return fmt::format("qualifier .{} is repeated{}", spelling.repeated, hint);
  if (const QualifierSet foreign = foreign_words(spelling); !foreign.empty())
    return fmt::format("{} does not accept .{}{}", name(spelling.opcode), foreign.first().word(),
                       hint);
  const Signature* row = nearest_row(spelling, {});
  if (!row) return fmt::format("unknown form {}", spelling.text);
  const std::string_view opcode = name(spelling.opcode);
  // Other types help where a row refuses words, but not where it lacks some.
  const bool refused = !spelling.words.without(words(*row)).empty();
  if (spelling.types.size && (refused || !types_match(*row, spelling)) &&
      some_takes_words(spelling))
    if (std::string why = wrong_types(spelling, target); !why.empty()) return why;
  if (std::string why = words_refused(*row, spelling); !why.empty())
    return fmt::format("{} {}{}", opcode, why, hint);
  std::string types;
  for (const Type each : spelling.types) types += fmt::format(".{}", name(each));
  if (!shape_matches(*row, spelling))
    return fmt::format("{} {}{}", opcode,
                       spelling.shape == Shape{}
                           ? "requires a shape"
                           : fmt::format("has no shape .{} with {}", spelling.shape.text(), types),
                       hint);
  if (!majors_match(*row, spelling))
    return fmt::format("{} requires {}{}", opcode, majors_text(*row), hint);
  if (!types_match(*row, spelling))
    return fmt::format("{} {}{}", opcode,
                       types.empty() ? "requires a type" : "has no form with " + types, hint);
  if (row->refuses && !row->refuses(spelling).empty())
    return fmt::format("{} {}{}", opcode, row->refuses(spelling), hint);
  return fmt::format("{} has .{} in the wrong place{}", opcode, misplaced(spelling), hint);
}

}  // namespace tartan::TARTAN_ABI::isa
