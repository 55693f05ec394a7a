// SPDX-License-Identifier: Apache-2.0
#include "tests/support/ptx_mutants.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace tartan::testing_mutants {
namespace {

// An instruction's line: "  @%p1 add.s32 %r1, %r2, 16;" in its parts.
struct Line {
  std::string guard, opcode;
  std::vector<std::string> operands;
};

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

std::optional<Line> read(std::string_view raw) {
  std::string text = trimmed(raw.substr(0, raw.find("//")));
  if (text.empty() || text.back() != ';' || text[0] == '.' || text[0] == '{') return std::nullopt;
  text.pop_back();
  Line out;
  if (text[0] == '@') {
    const auto end = text.find_first_of(" \t");
    out.guard = text.substr(0, end) + " ";
    text = trimmed(std::string_view(text).substr(end));
  }
  const auto end = text.find_first_of(" \t");
  out.opcode = text.substr(0, end);
  if (end == text.npos) return out;
  int depth = 0;
  std::string operand;
  for (const char c : text.substr(end)) {
    depth += c == '{' || c == '[';
    depth -= c == '}' || c == ']';
    if (c == ',' && depth == 0) {
      out.operands.push_back(trimmed(operand));
      operand.clear();
    } else {
      operand += c;
    }
  }
  out.operands.push_back(trimmed(operand));
  return out;
}

std::string write(const Line& line) {
  return fmt::format("\t{}{} \t{};", line.guard, line.opcode, fmt::join(line.operands, ", "));
}

// A vector's two registers change places.
bool swap_registers(std::string& vector, std::size_t i, std::size_t j) {
  if (vector.empty() || vector[0] != '{') return false;
  std::vector<std::string> parts;
  std::string_view rest = std::string_view(vector).substr(1, vector.size() - 2);
  while (true) {
    const auto comma = rest.find(',');
    parts.push_back(trimmed(rest.substr(0, comma)));
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (j >= parts.size() || parts[i] == parts[j]) return false;
  std::swap(parts[i], parts[j]);
  vector = fmt::format("{{{}}}", fmt::join(parts, ", "));
  return true;
}

std::optional<long> number(std::string_view text) {
  long out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

// [base+16] becomes [base+32], [base] too.
bool move_address(std::string& address, long distance) {
  if (address.size() < 3 || address.front() != '[' || address.find(',') != address.npos)
    return false;
  const auto plus = address.find('+');
  const std::string base =
      address.substr(1, (plus == address.npos ? address.size() - 1 : plus) - 1);
  long offset = 0;
  if (plus != address.npos) {
    const auto found =
        number(std::string_view(address).substr(plus + 1, address.size() - plus - 2));
    if (!found) return false;
    offset = *found;
  }
  address = fmt::format("[{}+{}]", base, offset + distance);
  return true;
}

class Mutator {
 public:
  Mutator(const std::string& text, std::string_view kernel) {
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      lines_.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    const auto named = std::ranges::find_if(lines_, [&](const std::string& line) {
      return line.find(".entry") != line.npos &&
             line.find(std::string(" ") + std::string(kernel) + "(") != line.npos;
    });
    first_ = static_cast<std::size_t>(named - lines_.begin());
  }

  std::vector<Mutant> operator()() {
    for (at_ = first_; at_ < lines_.size() && lines_[at_] != "}"; ++at_)
      if (const auto line = read(lines_[at_])) mutate(*line);
    return std::move(out_);
  }

 private:
  void add(const Line& line, std::string_view what) { replace(write(line), what); }
  void replace(const std::string& with, std::string_view what) {
    std::string text;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      text += i == at_ ? with : lines_[i];
      text += '\n';
    }
    out_.push_back({fmt::format("line {}: {}: {}", at_ + 1, trimmed(lines_[at_]), what), text});
  }
  void leave_out() { replace("", "left out"); }
  void swap_in(const Line& line, std::size_t operand, std::size_t i, std::size_t j) {
    Line changed = line;
    if (operand < line.operands.size() && swap_registers(changed.operands[operand], i, j))
      add(changed, fmt::format("registers {} and {} of operand {} change places", i, j, operand));
  }
  void swap_operands(const Line& line, std::size_t i, std::size_t j) {
    if (j >= line.operands.size() || line.operands[i] == line.operands[j]) return;
    Line changed = line;
    std::swap(changed.operands[i], changed.operands[j]);
    add(changed, "operands change places");
  }
  void rename(const Line& line, std::string_view from, std::string_view to) {
    const auto found = line.opcode.find(from);
    if (found == line.opcode.npos) return;
    Line changed = line;
    changed.opcode.replace(found, from.size(), to);
    add(changed, fmt::format("{} for {}", to, from));
  }
  void move(const Line& line, std::size_t operand, long distance) {
    Line changed = line;
    if (operand < line.operands.size() && move_address(changed.operands[operand], distance))
      add(changed, fmt::format("{} bytes on", distance));
  }

  void mutate(const Line& line) {
    const auto is = [&](std::string_view name) { return line.opcode.starts_with(name); };
    if (is("mma.") || is("wmma.mma")) return mutate_product(line);
    if (is("wgmma.mma")) {
      leave_out();
      swap_in(line, 0, 0, 1);
    } else if (is("ldmatrix")) {
      swap_in(line, 0, 0, 1);
      move(line, 1, 16);
      rename(line, ".trans", "");
    } else if (is("cp.async.c")) {
      move(line, 1, 16);
    } else if (is("st.global") || is("st.shared")) {
      leave_out();
      swap_in(line, 1, 0, 1);
    } else if (is("mul.f32") || is("mul.rn.f32")) {
      rename(line, "mul", "add");
    } else if (is("fma.rn")) {
      swap_operands(line, 2, 3);
    } else if (is("sub.f32") || is("sub.rn.f32") || is("div.")) {
      swap_operands(line, 1, 2);
    } else if (is("add.f32") || is("add.rn.f32")) {
      rename(line, "add", "sub");
    } else if (is("max.f32")) {
      rename(line, "max", "min");
    } else if (is("cvt.rn.f16x2") || is("cvt.rn.bf16x2")) {
      swap_operands(line, 1, 2);
    } else if (is("selp.")) {
      swap_operands(line, 1, 2);
    } else if (is("ex2.")) {
      Line changed = line;
      changed.opcode = "mov.f32";
      add(changed, "no exponential");
    } else if (is("add.s") || is("shl.b") || is("mad.lo") || is("mul.wide")) {
      mutate_constant(line);
    }
  }
  void mutate_product(const Line& line) {
    leave_out();
    swap_in(line, 0, 0, 1);
    swap_in(line, 1, 0, 1);
    swap_in(line, 2, 0, 1);
  }
  void mutate_constant(const Line& line) {
    for (std::size_t i = 1; i < line.operands.size(); ++i) {
      const auto value = number(line.operands[i]);
      if (!value || *value == 0) continue;
      Line changed = line;
      changed.operands[i] =
          std::to_string(line.opcode.starts_with("shl") ? *value + 1 : *value * 2);
      add(changed, "another constant");
      return;
    }
  }

  std::vector<std::string> lines_;
  std::size_t first_ = 0, at_ = 0;
  std::vector<Mutant> out_;
};

}  // namespace

std::vector<Mutant> mutants_of(const std::string& text, std::string_view kernel) {
  return Mutator(text, kernel)();
}

}  // namespace tartan::testing_mutants
