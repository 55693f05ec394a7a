// SPDX-License-Identifier: Apache-2.0
#include "tests/verify/opcode_sweep.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace tartan::sweep {
namespace {

const std::string folder = TEST_DATA "/isa/sweep/";

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

bool digit(char c) { return c >= '0' && c <= '9'; }

std::string joined(const std::vector<std::string>& parts, const char* by) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) out += (i ? by : "") + parts[i];
  return out;
}

using Chosen = std::map<std::string, std::string>;

// The number that ends in the last digits of `word`.
std::optional<int> last_number(const std::string& word) {
  std::size_t end = word.size();
  while (end > 0 && !digit(word[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && digit(word[begin - 1])) --begin;
  if (begin == end) return std::nullopt;
  return std::stoi(word.substr(begin, end - begin));
}

// The replacement of "<inner>index"; nothing if the type has no such register.
std::optional<std::string> placeholder(const Common& common, std::string inner,
                                       const std::string& index, const Chosen& chosen) {
  std::string count, first = "0";
  if (const std::size_t star = inner.find('*'); star != std::string::npos) {
    count = inner.substr(star + 1), inner.resize(star);
    if (const std::size_t at = count.find('@'); at != std::string::npos)
      first = count.substr(at + 1), count.resize(at);
  }
  const std::string kinds = " +-~b";
  char kind = ' ';
  if (inner.size() > 1 && std::string("+-~b#!").find(inner.back()) != std::string::npos)
    kind = inner.back(), inner.pop_back();
  const auto word = chosen.find(inner);
  if (kind == '!') return word->second;
  const auto row = common.types.find(word == chosen.end() ? inner : word->second);
  if (row == common.types.end()) return std::nullopt;
  if (kind == '#') return row->second.at(5);
  const std::string& name = row->second.at(kinds.find(kind));
  if (name == "-") return std::nullopt;
  if (count.empty()) return fmt::format("%{}_{}", name, index);
  const auto counted = chosen.find(count);
  const std::optional<int> many = last_number(counted == chosen.end() ? count : counted->second);
  const int from = std::stoi(first);
  if (!many) return fmt::format("%{}_{}", name, from);
  std::string out = "{";
  for (int i = 0; i < *many; ++i) out += fmt::format("{}%{}_{}", i ? ", " : "", name, from + i);
  return out + "}";
}

std::optional<std::string> fill(const Common& common, const std::string& text,
                                const Chosen& chosen) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '<') {
      out += text[i++];
      continue;
    }
    const std::size_t close = text.find('>', i);
    std::size_t end = close + 1;
    while (end < text.size() && digit(text[end])) ++end;
    const auto one = placeholder(common, text.substr(i + 1, close - i - 1),
                                 text.substr(close + 1, end - close - 1), chosen);
    if (!one) return std::nullopt;
    out += *one, i = end;
  }
  return out;
}

std::vector<std::string> split_operands(const std::string& text) {
  if (text.empty()) return {};
  std::vector<std::string> parts = {""};
  int depth = 0;
  for (const char c : text) {
    depth += (c == '[' || c == '{' || c == '(') - (c == ']' || c == '}' || c == ')');
    if (c == ',' && depth == 0) parts.emplace_back();
    else if (c != ' ' || !parts.back().empty()) parts.back() += c;
  }
  for (std::string& part : parts) part.resize(part.find_last_not_of(' ') + 1);
  return parts;
}

std::string mnemonic(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words)
    if (!word.empty()) out += (out.empty() ? "" : ".") + word;
  return out;
}

std::string statement(const std::string& mnemonic, const std::vector<std::string>& operands) {
  if (!operands.empty()) return mnemonic + " " + joined(operands, ", ") + ";";
  return mnemonic.ends_with('}') || mnemonic.ends_with(':') ? mnemonic : mnemonic + ";";
}

// The statement after one random mutation.
std::string mutated(const Common& common, const std::string& name,
                    std::vector<std::string> operands, std::uint32_t seed) {
  std::vector<std::string> words = split(name, ".");
  unsigned kind = mix(seed) % 8;
  const std::size_t where = mix(seed + 1), which = mix(seed + 2);
  const std::size_t word = 1 + where % std::max<std::size_t>(words.size() - 1, 1);
  const std::size_t operand = where % std::max<std::size_t>(operands.size(), 1);
  if (kind >= 4 && operands.empty()) kind -= 4;
  if (kind < 2 && words.size() == 1) kind = 2;
  const auto at = [](auto& list, std::size_t i) { return list.begin() + static_cast<long>(i); };
  if (kind == 0) words.erase(at(words, word));
  else if (kind == 1) words.insert(at(words, word), std::string(words[word]));
  else if (kind <= 3) words.insert(at(words, word), common.words[which % common.words.size()]);
  else if (kind == 4) operands.erase(at(operands, operand));
  else if (kind == 5) operands.insert(at(operands, operand), std::string(operands[operand]));
  else operands[operand] = common.operands[which % common.operands.size()];
  return statement(mnemonic(words), operands);
}

void read_options(Block& block, const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "alone") {
      block.alone = true;
    } else if (words[i] == "apart") {
      block.apart = true;
    } else if (words[i] == "keep") {
      const auto parts = split(words.at(++i), "/");
      block.keep = static_cast<unsigned>(std::stoi(parts.at(0)));
      block.of = static_cast<unsigned>(std::stoi(parts.at(1)));
    } else if (words[i] == "mutate") {
      block.mutate = static_cast<unsigned>(std::stoi(words.at(++i)));
    } else if (words[i] == "pairs") {
      block.pairs = words.at(++i);
    } else {
      throw std::runtime_error("block " + block.name + ": " + words[i]);
    }
  }
}

std::size_t letter_index(const std::string& text, std::size_t& at) {
  const auto one = [&] {
    const char c = text.at(at++);
    return static_cast<std::size_t>(c >= 'a' ? c - 'a' : c - 'A' + 26);
  };
  if (text[at] != '.') return one();
  ++at;
  const std::size_t high = one();
  return 52 + high * 52 + one();
}

// module.ptx or function.ptx: "?sm_70/8.3 text" applies from there on, "?texmode_independent text"
// to targets with that option.
std::vector<std::string> prelude(const std::string& name, const Pair& pair) {
  const auto version = [](const std::string& text) {
    const auto parts = split(text, ".");
    return std::pair(std::stoi(parts.at(0)), std::stoi(parts.at(1)));
  };
  std::vector<std::string> out;
  for (std::string line : lines_of(folder + name)) {
    if (line.starts_with("//")) continue;
    if (line.starts_with("?")) {
      const std::size_t space = line.find(' ');
      const auto condition = split(line.substr(1, space - 1), "/");
      line = line.substr(space + 1);
      if (condition.size() == 1
              ? pair.target.find(condition[0]) == std::string::npos
              : std::stoi(pair.target.substr(3)) < std::stoi(condition[0].substr(3)) ||
                    version(pair.ptx) < version(condition[1]))
        continue;
    }
    out.push_back(line);
  }
  return out;
}

}  // namespace

std::uint32_t mix(std::uint32_t value) {
  value = (value ^ (value >> 16)) * 0x7FEB352Du;
  value = (value ^ (value >> 15)) * 0x846CA68Bu;
  return value ^ (value >> 16);
}

Common read_common() {
  Common common;
  std::vector<std::string>* list = nullptr;
  for (const std::string& line : lines_of(folder + "common.txt")) {
    std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    const std::string key = words[0];
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    if (key == "pairs") common.pairs[rest.at(0)] = {rest.begin() + 1, rest.end()};
    else if (key == "type") common.types[rest.at(0)] = {rest.begin() + 1, rest.end()};
    else if (key == "words") common.words = rest;
    else if (key == "operands") common.operands = rest;
    else if (key == "list") list = &common.lists[rest.at(0)];
    else if (key == "=") list->push_back(line.substr(2));
  }
  return common;
}

std::vector<Block> read_family(const Common& common, const std::string& family) {
  std::vector<Block> blocks;
  for (const std::string& line : lines_of(folder + family + ".txt")) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string key = line.substr(0, space);
    const std::string rest = space == line.size() ? "" : line.substr(space + 1);
    std::vector<std::string> words = words_of(rest);
    if (key == "block") {
      read_options(blocks.emplace_back(Block{.name = words.at(0)}), words);
    } else if (key == "=") {
      blocks.back().operands.push_back(rest);
    } else if (key == "use") {
      for (const std::string& word : words)
        for (const std::string& each : common.lists.at(word))
          blocks.back().operands.push_back(each);
    } else {
      for (std::string& word : words) {
        if (word == "-") word.clear();
        for (char& c : word)
          if (c == '~') c = ' ';
      }
      blocks.back().slots.push_back({key[0], std::move(words), key.back() != '='});
    }
  }
  return blocks;
}

std::vector<std::string> Block::statements(const Common& common) const {
  if (alone) return operands;
  std::size_t total = operands.size();
  for (const Slot& slot : slots) total *= slot.words.size();
  std::vector<std::string> out;
  for (std::size_t i = 0; i < total; ++i) {
    const auto seed = static_cast<std::uint32_t>(i);
    if (mix(seed) % of >= keep) continue;
    std::size_t rest = i / operands.size();
    std::vector<std::string> words;
    Chosen chosen;
    for (std::size_t j = slots.size(); j-- > 0;) {
      const std::string& word = slots[j].words[rest % slots[j].words.size()];
      rest /= slots[j].words.size();
      chosen.emplace(std::string(1, slots[j].letter), word);
      if (slots[j].part) words.insert(words.begin(), word);
    }
    const auto filled = fill(common, operands[i % operands.size()], chosen);
    if (!filled) continue;
    const std::vector<std::string> list = split_operands(*filled);
    const std::string name = mnemonic(words);
    out.push_back(statement(name, list));
    if (mutate && mix(seed + 77) % mutate == 0)
      out.push_back(mutated(common, name, list, seed * 3 + 1));
  }
  return out;
}

std::map<std::string, Recorded> read_verdicts(const std::string& family) {
  std::map<std::string, Recorded> out;
  Recorded* block = nullptr;
  std::vector<std::uint64_t> classes;
  for (const std::string& line : lines_of(folder + "verdicts/" + family + ".txt")) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> words = words_of(line);
    if (words[0] == "block") {
      block = &out[words.at(1)];
      block->count = std::stoul(words.at(2)), block->checksum = words.at(3);
    } else if (words[0] == "crashes") {
      for (std::size_t i = 1; i < words.size(); ++i) block->crashes.insert(std::stoul(words[i]));
    } else if (words[0] == "verdicts") {
      classes.clear();
      for (std::size_t i = 1; i < words.size(); ++i)
        classes.push_back(std::stoull(words[i], nullptr, 16));
    } else {
      for (std::size_t at = 0; at < line.size();) {
        const std::uint64_t verdict = classes.at(letter_index(line, at));
        std::size_t many = 0;
        while (at < line.size() && digit(line[at]))
          many = many * 10 + static_cast<std::size_t>(line[at++] - '0');
        block->verdicts.insert(block->verdicts.end(), std::max<std::size_t>(many, 1), verdict);
      }
    }
  }
  return out;
}

std::uint32_t crc32(std::string_view text) {
  std::uint32_t crc = ~0u;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

std::string checksum(const std::vector<std::string>& statements) {
  std::string all;
  for (const std::string& each : statements) all += each + "\n";
  return fmt::format("{:08x}", crc32(all));
}

bool is_unfinished(const std::string& family) {
  for (const std::string& line : lines_of(folder + "unfinished.txt"))
    if (line == family) return true;
  return false;
}

Pair::Pair(const std::string& text)
    : target(text.substr(0, text.find('/'))), ptx(text.substr(text.find('/') + 1)) {}

std::string module_alone(const Pair& pair, std::string statement) {
  const auto replace = [&](const std::string& what, const std::string& by) {
    for (std::size_t at = 0; (at = statement.find(what, at)) != std::string::npos; at += by.size())
      statement.replace(at, what.size(), by);
  };
  replace("\\n", "\n");
  if (statement.find(".version") == std::string::npos)
    return fmt::format(".version {}\n.target {}\n.address_size 64\n{}\n", pair.ptx, pair.target,
                       statement);
  replace("$PTX", pair.ptx);
  replace("$TARGET", pair.target);
  return statement + "\n";
}

Text module_text(const Pair& pair, const std::vector<std::pair<std::string, bool>>& statements) {
  constexpr std::size_t size = 500;  // statements of a function
  Text out;
  int line = 0;
  const auto add = [&](const std::string& text) { out.text += text + "\n", ++line; };
  add(".version " + pair.ptx);
  add(".target " + pair.target);
  add(".address_size 64");
  for (const std::string& text : prelude("module.ptx", pair)) add(text);
  const std::vector<std::string> begin = prelude("function.ptx", pair);
  std::size_t in_function = 0;
  const auto close = [&] {
    for (const char* text : {"L_end:", "ret;", "}"}) add(text);
    in_function = 0;
  };
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const auto& [text, apart] = statements[i];
    if (in_function > 0 && (apart || in_function >= size)) close();
    const int first = line + 1;
    if (in_function == 0) {
      for (std::string each : begin) {
        if (const std::size_t at = each.find("$NAME"); at != std::string::npos)
          each.replace(at, 5, fmt::format("k{}", i));
        add(each);
      }
    }
    add(text);
    out.places[line] = i;
    ++in_function;
    if (!apart) continue;
    close();
    for (int each = first; each <= line; ++each) out.places[each] = i;
  }
  if (in_function > 0) close();
  return out;
}

}  // namespace tartan::sweep
