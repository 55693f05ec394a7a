// SPDX-License-Identifier: Apache-2.0
#include "compiler/isa/nearest_spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "compiler/isa/hints.h"
#include "compiler/isa/matching.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

// ---- Types.

// "u" of u32 and u16x2, "bf" of bf16
std::string_view kind(const TypeInfo& type) {
  return type.name.substr(0, type.name.find_first_of("0123456789"));
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

// ---- Distance.

// The number of things that it rejects; types that do not fit weigh more.
int objections(const Signature& signature, const Spelling& spelling) {
  int out = spelling.words.without(words(signature)).count() * 2;
  const Shape &shape = signature.shape, &written = spelling.shape;
  out += (shape.m != written.m) + (shape.n != written.n && shape.n != 0) + (shape.k != written.k);
  out += std::abs(signature.majors.size - spelling.majors.size);
  for (std::size_t i = 0; i < signature.majors.size && i < spelling.majors.size; ++i)
    out += !signature.majors[i].has(spelling.majors[i]);
  for (const QualifierSet& set : signature.one) out += (set & spelling.words).count() != 1;
  for (const QualifierSet& set : signature.any) out += (set & spelling.words).count() > 1;
  if (types_match(signature, spelling)) return out;
  out += 3;
  for (std::size_t i = 0; i < signature.types.size; ++i)
    if (!signature.types[i].has(spelling.type(i)))
      out += has_alike(spelling.type(i), signature.types[i]) ? 1 : 3;
  return out;
}

// ---- Repair.

// The written n if the row has it, else the nearest.
Shape closest_shape(const Spelling& spelling, const Signature& row) {
  Shape out = row.shape;
  if (out.n || !out.m) return out;
  Spelling other = spelling;
  for (int n = 8; n <= 256; n += 8) {
    other.shape.n = static_cast<std::int16_t>(n);
    const int written = spelling.shape.n;
    if (row.refuses(other).empty() && (!out.n || std::abs(n - written) < std::abs(out.n - written)))
      out.n = other.shape.n;
  }
  return out;
}

// ".m16n8k16.row.col" of a matrix instruction, else nothing.
std::string shape_and_majors(const Spelling& spelling, const Signature& row) {
  if (!row.shape.m) return {};
  std::string out = "." + closest_shape(spelling, row).text();
  for (std::size_t i = 0; i < row.majors.size; ++i) {
    const Majors& majors = row.majors[i];
    const bool kept = i < spelling.majors.size && majors.has(spelling.majors[i]);
    out += fmt::format(".{}", name(kept         ? spelling.majors[i]
                                   : majors.row ? Major::row
                                                : Major::col));
  }
  return out;
}

// The spelling with the words that `row` accepts, and the first of those that it lacks.
std::string repaired(const Spelling& spelling, const Signature& row) {
  const QualifierSet known = words(row);
  QualifierSet kept;
  Words qualifiers, types;
  for (const std::string& word : split(spelling.text.substr(name(spelling.opcode).size()))) {
    const auto qualifier = find_qualifier(std::string_view(word).substr(1));
    const bool layout = word == ".row" || word == ".col";
    if (qualifier && known.has(*qualifier) && !kept.has(*qualifier) && !layout) {
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
  const std::string out = std::string(name(spelling.opcode)) + joined(qualifiers) +
                          shape_and_majors(spelling, row) + joined(types);
  // Matrix instructions in the manual's order.
  return row.shape.m ? spell(form_of(read_spelling(out))) : out;
}

// The words that a row takes in place of one, those listed next to it first: .v4 for .v8.
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
std::string one_word_changed(const Spelling& spelling, const Signature& row, const Target& target) {
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
      if (std::string text = replaced(i, word); is_legal(text, target)) return text;
    if (std::string text = replaced(i, {}); is_legal(text, target)) return text;
  }
  return {};
}

}  // namespace

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

bool is_legal(std::string_view text, const Target& target) {
  const Spelling read = read_spelling(text);
  return read.unknown.empty() && std::ranges::any_of(read.signatures, [&](const Signature* each) {
           return !each->undocumented && (target == Target{} || !missing(*each, read, target));
         });
}

bool holds_bytes(const TypeInfo& type) {
  return type.type == Type::u8x4 || type.type == Type::s8x4;
}

bool alike(const TypeInfo& written, const TypeInfo& type) {
  if (holds_bytes(written) != holds_bytes(type)) return false;
  return kind(type) == kind(written) || (kind(type) == "b" && type.bits == written.bits);
}

const Signature* nearest_row(const Spelling& spelling, const Target& target) {
  const Signature* out = nullptr;
  int least = std::numeric_limits<int>::max();
  for (const Signature& each : signatures(spelling.opcode)) {
    if (each.undocumented || (target != Target{} && !each.since.has(target))) continue;
    if (const int wrong = objections(each, spelling); wrong < least) least = wrong, out = &each;
  }
  return out;
}

std::string nearest_spelling(const Spelling& spelling, const Target& target) {
  const Signature* row = nearest_row(spelling, target);
  // Another matrix form that is far away does not help.
  constexpr int farthest = 12;
  if (!row || (row->shape.m && objections(*row, spelling) > farthest)) return {};
  std::string text = repaired(spelling, *row);
  if (!is_legal(text, target)) text = one_word_changed(spelling, *row, target);
  return text;
}

std::string nearest_hint(const Spelling& spelling, const Target& target) {
  const std::string text = nearest_spelling(spelling, target);
  if (text.empty()) return text;
  // The target is named where others have a nearer one.
  const bool elsewhere = nearest_row(spelling, {}) != nearest_row(spelling, target);
  return fmt::format("; the nearest{} is {}", elsewhere ? " on " + target.text() : "", text);
}

std::string longer_hint(const Spelling& spelling, const Target& target) {
  for (const Signature& row : signatures(spelling.opcode)) {
    if (!spelling.words.without(words(row)).empty() || !types_match(row, spelling) ||
        !shape_matches(row, spelling))
      continue;
    const std::string text = repaired(spelling, row);
    const Spelling longer = read_spelling(text);
    if (text == spelling.text || !matches(row, longer) || missing(row, longer, target)) continue;
    const bool masked = spelling.row().convergence == Convergence::Mask;
    return fmt::format("; write {}{}", text, masked ? " with a member mask" : "");
  }
  return {};
}

}  // namespace tartan::TARTAN_ABI::isa
