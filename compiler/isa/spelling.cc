// SPDX-License-Identifier: Apache-2.0
#include "tartan/isa/spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "compiler/isa/hints.h"
#include "compiler/isa/matching.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

// A word's meaning, looked up once for the whole list.
struct Word {
  std::optional<Qualifier> qualifier;
  Type type = Type::none;
};

const std::unordered_map<std::string_view, Word>& dictionary() {
  static const std::unordered_map<std::string_view, Word> all = [] {
    std::unordered_map<std::string_view, Word> out;
    for (std::size_t i = 0; i < qualifier_count; ++i)
      out[qualifier_words[i]].qualifier = Qualifier{static_cast<std::uint16_t>(i)};
    for (const TypeInfo& each : type_table)
      if (each.type != Type::none) out[each.name].type = each.type;
    return out;
  }();
  return all;
}

// "m16n8k16" or "m8n8".
std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](char letter, std::int16_t& into) {
    if (at == end || *at != letter || at + 1 == end || at[1] < '1' || at[1] > '9') return false;
    const auto [next, error] = std::from_chars(at + 1, end, into);
    at = next;
    return error == std::errc();
  };
  if (!number('m', shape.m) || !number('n', shape.n)) return std::nullopt;
  if (at != end && !number('k', shape.k)) return std::nullopt;
  if (at != end) return std::nullopt;
  return shape;
}

void repeat(Spelling& spelling, std::string_view word) {
  if (spelling.repeated.empty()) spelling.repeated = word;
  ++spelling.repetitions;
}

// Takes a shape or a layout, which matrix instructions alone have. The assembler also accepts their
// .sync several times.
bool take_of_matrix(Spelling& spelling, std::string_view word) {
  if (const auto shape = parse_shape(word)) {
    if (spelling.shape != Shape{}) repeat(spelling, word);
    spelling.shape = *shape;
    return true;
  }
  if (word == "row" || word == "col") {
    const bool row = word == "row";
    spelling.words.add(row ? "row"_q : "col"_q);
    auto& majors = spelling.majors;
    if (majors.size == 2) repeat(spelling, word);
    else majors.items[majors.size++] = row ? Major::row : Major::col;
    return true;
  }
  return word == "sync" && spelling.has("sync"_q);
}

void take(Spelling& spelling, std::string_view word) {
  if (is_matrix(spelling.opcode) && take_of_matrix(spelling, word)) return;
  const auto found = dictionary().find(word);
  if (found == dictionary().end()) {
    if (spelling.unknown.empty()) spelling.unknown = word.empty() ? spelling.text : word;
  } else if (found->second.qualifier) {
    if (spelling.words.has(*found->second.qualifier)) repeat(spelling, word);
    spelling.words.add(*found->second.qualifier);
  } else if (spelling.types.size < spelling.types.items.size()) {
    spelling.types.items[spelling.types.size++] = found->second.type;
  } else {
    ++spelling.excess_types;
  }
}

bool repetition_matches(const Signature& signature, const Spelling& spelling) {
  if (spelling.repeated.empty()) return true;
  const auto word = find_qualifier(spelling.repeated);
  return spelling.repetitions == 1 && word && signature.twice.has(*word);
}

// Words that name a state space; for an access the first one counts.
struct SpaceWord {
  StateSpace space;
  Qualifier word;
};
constexpr SpaceWord space_words[] = {{StateSpace::shared_cluster, "shared::cluster"_q},
                                     {StateSpace::shared_cta, "shared::cta"_q},
                                     {StateSpace::shared, "shared"_q},
                                     {StateSpace::global, "global"_q},
                                     {StateSpace::constant, "const"_q},
                                     {StateSpace::local, "local"_q},
                                     {StateSpace::param, "param"_q},
                                     {StateSpace::param_entry, "param::entry"_q},
                                     {StateSpace::param_func, "param::func"_q}};
constexpr bool spaces_have_their_names() {
  for (const SpaceWord& row : space_words)
    if (row.word.word() != name(row.space)) return false;
  return true;
}
static_assert(spaces_have_their_names());

bool applies(const Need& need, const Spelling& spelling) {
  const bool word = !(need.words & spelling.words).empty();
  const bool type =
      std::ranges::any_of(spelling.types, [&](Type each) { return need.types.has(each); });
  return need.together ? word && type : word || type;
}

}  // namespace

bool types_match(const Signature& signature, const Spelling& spelling) {
  if (spelling.excess_types || spelling.types.size != signature.types.size) return false;
  for (std::size_t i = 0; i < signature.types.size; ++i)
    if (!signature.types[i].has(spelling.types[i])) return false;
  return true;
}

bool shape_matches(const Signature& signature, const Spelling& spelling) {
  const Shape &has = signature.shape, &written = spelling.shape;
  return has.m == written.m && has.k == written.k && (has.n == written.n || has.n == 0);
}

bool majors_match(const Signature& signature, const Spelling& spelling) {
  if (spelling.majors.size != signature.majors.size) return false;
  for (std::size_t i = 0; i < signature.majors.size; ++i)
    if (!signature.majors[i].has(spelling.majors[i])) return false;
  return true;
}

std::string_view misplaced(const Spelling& spelling) {
  const QualifierSet leading = spelling.words & spelling.row().leading;
  if (leading.empty()) return {};
  const std::string_view word = leading.first().word();
  return word == spelling.first ? std::string_view{} : word;
}

bool matches(const Signature& signature, const Spelling& spelling) {
  if (!shape_matches(signature, spelling) || !types_match(signature, spelling)) return false;
  if (!repetition_matches(signature, spelling) || !majors_match(signature, spelling)) return false;
  if (!misplaced(spelling).empty()) return false;
  const QualifierSet extra = spelling.words.without(words(signature));
  if (!extra.empty()) return false;
  for (const QualifierSet& set : signature.one)
    if ((set & spelling.words).count() != 1) return false;
  for (const QualifierSet& set : signature.any)
    if ((set & spelling.words).count() > 1) return false;
  return !signature.refuses || signature.refuses(spelling).empty();
}

Spelling read_spelling(std::string_view text) {
  Spelling out;
  out.text = text;
  out.opcode = find_opcode(text);
  if (out.opcode == Opcode::none) return out;
  std::string_view rest = text.substr(name(out.opcode).size());
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the dot
    const std::string_view word = rest.substr(0, rest.find('.'));
    if (out.first.empty()) out.first = word;
    take(out, word);
    rest.remove_prefix(word.size());
  }
  if (!out.unknown.empty()) return out;
  for (const Signature& each : signatures(out.opcode))
    if (matches(each, out)) out.signatures.push_back(&each);
  const auto undocumented = [](const Signature* each) { return each->undocumented; };
  if (!std::ranges::all_of(out.signatures, undocumented))
    std::erase_if(out.signatures, undocumented);
  return out;
}

Qualifier qualifier_of(StateSpace space) {
  const auto* found = std::ranges::find(space_words, space, &SpaceWord::space);
  assert(found != std::end(space_words));
  return found->word;
}

List<StateSpace, 9> state_spaces(const Spelling& spelling) {
  List<StateSpace, 9> out;
  for (const SpaceWord& row : space_words)
    if (spelling.has(row.word)) out.items[out.size++] = row.space;
  return out;
}

bool needs_all_lanes(const Spelling& spelling) {
  const Convergence needs = spelling.row().convergence;
  if (needs == Convergence::None || needs == Convergence::Mask) return false;
  return is_matrix(spelling.opcode) || spelling.opcode == Opcode::bar || spelling.has("aligned"_q);
}

List<const OperandRow*, 12> operands(const Signature& signature, const Spelling& spelling) {
  List<const OperandRow*, 12> out;
  for (const OperandRow& each : signature.operands)
    if (each.with.empty() || !(each.with & spelling.words).empty()) out.items[out.size++] = &each;
  return out;
}

std::vector<Since> requirements(const Signature& signature, const Spelling& spelling) {
  std::vector<Since> out{signature.since};
  for (const Need& need : signature.needs)
    if (applies(need, spelling)) out.push_back(need.since);
  return out;
}

Version first_version(const Spelling& spelling) {
  std::optional<Version> out;
  for (const Signature* each : spelling.signatures) {
    Version needed;
    for (const Since& since : requirements(*each, spelling)) needed = std::max(needed, since.ptx);
    out = std::min(out.value_or(needed), needed);
  }
  return out.value_or(Version{});
}

const Since* missing(const Signature& signature, const Spelling& spelling, const Target& target) {
  const Since* out = nullptr;
  const auto consider = [&](const Since& since) {
    if (since.has(target)) return;
    const auto asks_more = [&](const Since& x, const Since& y) {
      if (x.has(target.arch) != y.has(target.arch)) return !x.has(target.arch);
      return x.sm != y.sm ? x.sm > y.sm : x.ptx > y.ptx;
    };
    if (!out || asks_more(since, *out)) out = &since;
  };
  consider(signature.since);
  for (const Need& need : signature.needs)
    if (applies(need, spelling)) consider(need.since);
  return out;
}

int written_elements(const Spelling& spelling) {
  return spelling.has("v16"_q)  ? 16
         : spelling.has("v8"_q) ? 8
         : spelling.has("v4"_q) ? 4
         : spelling.has("v2"_q) ? 2
                                : 1;
}

int access_bits(const Spelling& spelling) {
  return written_elements(spelling) * bits(spelling.type());
}

}  // namespace tartan::TARTAN_ABI::isa
