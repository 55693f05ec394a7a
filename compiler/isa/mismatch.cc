// SPDX-License-Identifier: Apache-2.0
// What is wrong with a spelling that no signature has, and which legal one is near.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "compiler/isa/hints.h"
#include "compiler/isa/matching.h"
#include "compiler/support/nearest.h"
#include "tartan/isa/form.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

using Words = std::vector<std::string>;

// "mbarrier.init.shared" -> "mbarrier", ".init", ".shared"
Words split(std::string_view text) {
  Words out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('.', 1), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

std::string joined(const Words& words) {
  std::string out;
  for (const std::string& each : words) out += each;
  return out;
}

bool is_legal(std::string_view text) {
  const Spelling read = read_spelling(text);
  return !read.signatures.empty() && read.unknown.empty();
}

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

// Four bytes in a register, which few mean.
bool holds_bytes(const TypeInfo& type) {
  return type.type == Type::u8x4 || type.type == Type::s8x4;
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

// The words that the form of a matrix instruction may have, but for its shape.
Words form_words(Opcode opcode) {
  Words out;
  const auto take = [&](std::string_view word) {
    const std::string text = fmt::format("{}.{}", name(opcode), word);
    if (parse_form(text).unknown.empty()) out.push_back(fmt::format(".{}", word));
  };
  for (const std::string_view each : qualifier_words) take(each);
  for (const TypeInfo& each : type_table)
    if (each.type != Type::none) take(each.name);
  return out;
}

std::string unknown_word(const Spelling& spelling) {
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
  return fmt::format("{} does not accept {}{}", opcode, written,
                     other ? fmt::format("; the nearest is {}", longer->name) : nearest_text(near));
}

// ---- Types.

bool is_type(std::string_view word) { return parse_type(word.substr(1)).has_value(); }

// "u" of u32 and u16x2, "bf" of bf16
std::string_view kind(const TypeInfo& type) {
  return type.name.substr(0, type.name.find_first_of("0123456789"));
}

// Whether a reader may have meant `type`: it has the kind of the one that he wrote, or its size and
// no kind.
bool alike(const TypeInfo& written, const TypeInfo& type) {
  if (holds_bytes(written) != holds_bytes(type)) return false;
  return kind(type) == kind(written) || (kind(type) == "b" && type.bits == written.bits);
}

// The types that make the spelling legal in place of one of those written, the most similar sizes
// first.
Words types_in_place(const Spelling& spelling) {
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
      if (is_legal(joined(other))) found.push_back({other[i], std::abs(each.bits - written.bits)});
    }
  }
  std::ranges::stable_sort(found, {}, &Candidate::away);
  Words out;
  for (const Candidate& each : found)
    if (out.size() < 4 && std::ranges::find(out, each.word) == out.end()) out.push_back(each.word);
  return out;
}

// The most common of the types that a row takes.
Type common(const TypeSet& types) {
  for (const Type each : {Type::u32, Type::b32, Type::f32, Type::b64, Type::f16})
    if (types.has(each)) return each;
  for (const TypeInfo& each : type_table)
    if (each.type != Type::none && types.has(each.type)) return each.type;
  return Type::none;
}

// The type itself if the set has it, else one of its kind.
Type closest(Type written, const TypeSet& types) {
  if (written == Type::none) return common(types);
  if (types.has(written)) return written;
  const TypeInfo& from = info(written);
  const TypeInfo* out = nullptr;
  for (const TypeInfo& each : type_table)
    if (each.type != Type::none && types.has(each.type) && alike(from, each) &&
        (!out || std::abs(each.bits - from.bits) < std::abs(out->bits - from.bits)))
      out = &each;
  return out ? out->type : common(types);
}

bool has_alike(Type written, const TypeSet& types) {
  return std::ranges::any_of(type_table, [&](const TypeInfo& each) {
    return each.type != Type::none && written != Type::none && types.has(each.type) &&
           alike(info(written), each);
  });
}

// ---- What a row rejects.

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

// The number of things that it rejects; types that do not fit weigh more.
int objections(const Signature& signature, const Spelling& spelling) {
  int out = spelling.words.without(words(signature)).count() * 2;
  for (const QualifierSet& set : signature.one) out += (set & spelling.words).count() != 1;
  for (const QualifierSet& set : signature.any) out += (set & spelling.words).count() > 1;
  if (types_match(signature, spelling)) return out;
  out += 3;
  for (std::size_t i = 0; i < signature.types.size; ++i)
    if (!signature.types[i].has(spelling.type(i)))
      out += has_alike(spelling.type(i), signature.types[i]) ? 1 : 3;
  return out;
}

// ---- The nearest legal spelling.

// The spelling with the words that `row` accepts, and the first of those that it lacks.
std::string repaired(const Spelling& spelling, const Signature& row) {
  const QualifierSet known = words(row);
  QualifierSet kept;
  Words qualifiers, types;
  for (const std::string& word : split(spelling.text.substr(name(spelling.opcode).size()))) {
    const auto qualifier = find_qualifier(std::string_view(word).substr(1));
    if (qualifier && known.has(*qualifier) && !kept.has(*qualifier)) {
      const auto excludes = [&](const QualifierSet& set) {
        return set.has(*qualifier) && !(set & kept).empty();
      };
      if (std::ranges::any_of(row.one, excludes) || std::ranges::any_of(row.any, excludes))
        continue;
      kept.add(*qualifier);
      qualifiers.push_back(word);
    }
  }
  for (const QualifierSet& set : row.one) {
    if (!(set & kept).empty()) continue;
    // A word without a choice, such as .sync, precedes others.
    qualifiers.insert(set.count() == 1 ? qualifiers.begin() : qualifiers.end(),
                      fmt::format(".{}", set.first().word()));
  }
  for (std::size_t i = 0; i < row.types.size; ++i) {
    const Type written = spelling.type(i);
    types.push_back(fmt::format(".{}", name(closest(written, row.types[i]))));
  }
  std::ranges::stable_partition(qualifiers, [&](const std::string& word) {
    const auto qualifier = find_qualifier(std::string_view(word).substr(1));
    return qualifier && spelling.row().leading.has(*qualifier);
  });
  return std::string(name(spelling.opcode)) + joined(qualifiers) + joined(types);
}

// The words that a row takes in place of one, those listed beside it first: .v4 for .v8.
std::vector<std::string_view> others(Qualifier word, const Signature& row) {
  std::vector<Qualifier> found;
  for (const auto* sets : {&row.one, &row.any})
    for (const QualifierSet& set : *sets)
      if (set.has(word))
        for (QualifierSet rest = set.without(word); !rest.empty();
             rest = rest.without(rest.first()))
          found.push_back(rest.first());
  std::ranges::stable_sort(
      found, {}, [&](Qualifier each) { return std::abs(int{each.index} - int{word.index}); });
  std::vector<std::string_view> out;
  for (const Qualifier each : found) out.push_back(each.word());
  return out;
}

// A legal spelling that differs from the written one in a single word: another of the row's words,
// or none.
std::string one_word_changed(const Spelling& spelling, const Signature& row) {
  const Words written = split(spelling.text);
  const auto first = split(name(spelling.opcode)).size();
  const auto replaced = [&](std::size_t i, std::string_view by) {
    Words other = written;
    other[i] = by.empty() ? std::string() : fmt::format(".{}", by);
    return joined(other);
  };
  for (std::size_t i = written.size(); i-- > first;) {
    const auto qualifier = find_qualifier(std::string_view(written[i]).substr(1));
    if (!qualifier) continue;
    for (const std::string_view word : others(*qualifier, row))
      if (std::string text = replaced(i, word); is_legal(text)) return text;
    if (std::string text = replaced(i, {}); is_legal(text)) return text;
  }
  return {};
}

std::string form_hint(const Spelling& spelling, const Signature& row) {
  std::string text = repaired(spelling, row);
  if (text == spelling.text || !is_legal(text)) text = one_word_changed(spelling, row);
  return text.empty() ? text : fmt::format("; the nearest is {}", text);
}

bool some_takes_words(const Spelling& spelling) {
  return std::ranges::any_of(signatures(spelling.opcode), [&](const Signature& each) {
    return words_refused(each, spelling).empty();
  });
}

// "max.NaN has no form with .f64; the nearest are .f32 and .f16": empty if other types do not help.
std::string wrong_types(const Spelling& spelling) {
  const Words near = types_in_place(spelling);
  if (near.empty()) return {};
  Words qualifiers, types;
  for (const std::string& word : split(spelling.text.substr(name(spelling.opcode).size())))
    (is_type(word) ? types : qualifiers).push_back(word);
  return fmt::format("{}{} has no form with {}{}", name(spelling.opcode), joined(qualifiers),
                     joined(types), nearest_text(near));
}

// The row with the fewest objections; null if the opcode has no rows.
const Signature* nearest_row(const Spelling& spelling) {
  const Signature* out = nullptr;
  int least = std::numeric_limits<int>::max();
  for (const Signature& each : signatures(spelling.opcode))
    if (const int wrong = objections(each, spelling); wrong < least) least = wrong, out = &each;
  return out;
}

}  // namespace

std::string word_hint(Opcode opcode, std::string_view word) {
  const Words dotted = form_words(opcode);
  const std::vector<std::string_view> known(dotted.begin(), dotted.end());
  const std::string written = fmt::format(".{}", word);
  // A word that is legal elsewhere is not misspelled.
  return std::ranges::find(known, written) == known.end() ? nearest_hint(written, known) : "";
}

std::string longer_hint(const Spelling& spelling, const Target& target) {
  for (const Signature& row : signatures(spelling.opcode)) {
    if (!spelling.words.without(words(row)).empty() || !types_match(row, spelling)) continue;
    const std::string text = repaired(spelling, row);
    const Spelling longer = read_spelling(text);
    if (text == spelling.text || !matches(row, longer) || missing(row, longer, target)) continue;
    const bool masked = spelling.row().convergence == Convergence::Mask;
    return fmt::format("; write {}{}", text, masked ? " with a member mask" : "");
  }
  return {};
}

std::string_view nearest_opcode(std::string_view text) {
  const auto near = nearest_name(text);
  return near ? near->name : std::string_view();
}

const Rule& mismatch_rule(const Spelling& spelling) {
  if (spelling.opcode == Opcode::none) return "unknown-instruction"_rule;
  const bool word = !spelling.unknown.empty() || !spelling.repeated.empty();
  return word ? "unknown-qualifier"_rule : "unknown-form"_rule;
}

std::string mismatch(const Spelling& spelling) {
  if (spelling.opcode == Opcode::none) return unknown_instruction(spelling.text);
  if (!spelling.unknown.empty()) return unknown_word(spelling);
  if (!spelling.signatures.empty()) return {};
  if (!spelling.repeated.empty())
    return fmt::format("qualifier .{} is repeated", spelling.repeated);
  const Signature* row = nearest_row(spelling);
  if (!row) return fmt::format("unknown form {}", spelling.text);
  const std::string_view opcode = name(spelling.opcode);
  // Other types help where a row refuses words, but not where it lacks some.
  const bool refused = !spelling.words.without(words(*row)).empty();
  if (spelling.types.size && (refused || !types_match(*row, spelling)) &&
      some_takes_words(spelling))
    if (std::string why = wrong_types(spelling); !why.empty()) return why;
  if (std::string why = words_refused(*row, spelling); !why.empty())
    return fmt::format("{} {}{}", opcode, why, form_hint(spelling, *row));
  if (!types_match(*row, spelling)) {
    std::string types;
    for (const Type each : spelling.types) types += fmt::format(".{}", name(each));
    return fmt::format("{} {}{}", opcode,
                       types.empty() ? "requires a type" : "has no form with " + types,
                       form_hint(spelling, *row));
  }
  if (row->refuses && !row->refuses(spelling).empty())
    return fmt::format("{} {}{}", opcode, row->refuses(spelling), form_hint(spelling, *row));
  return fmt::format("{} has .{} in the wrong place{}", opcode, misplaced(spelling),
                     form_hint(spelling, *row));
}

}  // namespace tartan::TARTAN_ABI::isa
