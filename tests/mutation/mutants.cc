// SPDX-License-Identifier: Apache-2.0
#include "tests/mutation/mutants.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "tartan/ptx/parser.h"

namespace tartan::mutation {
namespace {

using isa::Opcode;
using isa::operator""_q;
using ptx::OperandKind;
using ptx::StatementKind;

/// The synchronization that an instruction is part of; none of it: nothing.
std::optional<Topic> synchronization(const isa::Spelling& spelling) {
  switch (spelling.opcode) {
    case Opcode::bar:
    case Opcode::bar_warp:
    case Opcode::barrier: return Topic::Barrier;
    case Opcode::barrier_cluster_wait:
    case Opcode::cp_async_wait_group:
    case Opcode::cp_async_wait_all:
    case Opcode::cp_async_bulk_wait_group:
    case Opcode::wgmma_wait_group:
    case Opcode::mbarrier_test_wait:
    case Opcode::mbarrier_try_wait: return Topic::Wait;
    case Opcode::membar:
    case Opcode::fence:
    case Opcode::fence_proxy:
    case Opcode::fence_mbarrier_init:
    case Opcode::wgmma_fence: return Topic::Fence;
    case Opcode::barrier_cluster_arrive:
    case Opcode::cp_async_commit_group:
    case Opcode::cp_async_bulk_commit_group:
    case Opcode::cp_async_mbarrier_arrive:
    case Opcode::wgmma_commit_group:
    case Opcode::mbarrier_init:
    case Opcode::mbarrier_inval:
    case Opcode::mbarrier_expect_tx:
    case Opcode::mbarrier_arrive:
    case Opcode::mbarrier_arrive_drop:
    case Opcode::griddepcontrol: return Topic::Arrive;
    default: return std::nullopt;
  }
}

/// Whether the instruction accesses memory that other threads may access too.
bool shares_memory(const isa::Spelling& spelling) {
  if (isa::is_matrix(spelling.opcode)) return true;
  if (spelling.has("param"_q) || spelling.has("local"_q) || spelling.has("const"_q)) return false;
  return std::ranges::any_of(spelling.signatures,
                             [](const auto* each) { return each->memory.size != 0; });
}

/// Whether it computes an index, where one of its operands is a constant.
bool computes_index(const isa::Spelling& spelling) {
  if (info(spelling.type()).floating) return false;
  switch (spelling.opcode) {
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mul:
    case Opcode::mad:
    case Opcode::shl:
    case Opcode::shr:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_: return true;
    default: return false;
  }
}

struct Words {
  std::string_view from, to;
};

constexpr Words weaker[] = {{"acquire", "relaxed"}, {"release", "relaxed"}, {"acq_rel", "relaxed"},
                            {"volatile", "weak"},   {"sc", "acq_rel"},      {"sys", "cta"},
                            {"gpu", "cta"},         {"cluster", "cta"},     {"gl", "cta"}};
constexpr Words next_to[] = {{"lt", "le"}, {"le", "lt"}, {"gt", "ge"}, {"ge", "gt"}, {"eq", "ne"},
                             {"ne", "eq"}, {"lo", "ls"}, {"ls", "lo"}, {"hi", "hs"}, {"hs", "hi"}};

/// An opcode with one of the words behind its name replaced; empty: it has no such word.
std::string with_word(std::string_view opcode, std::size_t name, Words words) {
  std::string out(opcode.substr(0, name));
  bool found = false;
  for (std::size_t from = name + 1; from <= opcode.size();) {
    const std::size_t end = std::min(opcode.find('.', from), opcode.size());
    std::string_view word = opcode.substr(from, end - from);
    if (word == words.from && !found) word = words.to, found = true;
    out.append(".").append(word);
    from = end + 1;
  }
  return found ? out : "";
}

class Maker {
 public:
  Maker(const ptx::Module& module, const ptx::Function& function)
      : module_(module), function_(function), text_(module.source->text()) {}

  std::vector<Mutant> operator()() {
    for (at_ = 0; at_ < function_.statements.size(); ++at_)
      if (const auto* each = instruction(at_)) mutate(*each);
    return std::move(out_);
  }

 private:
  struct Span {
    std::uint32_t begin, end;
  };

  const ptx::Instruction* instruction(std::size_t i) const {
    const ptx::Statement& statement = function_.statements[i];
    if (statement.kind != StatementKind::Instruction) return nullptr;
    return &module_.instructions[statement.index];
  }

  /// From the @ of the guard to behind the semicolon.
  Span span(const ptx::Instruction& of) const {
    std::uint32_t begin = of.offset;
    if (!of.guard.empty()) begin = static_cast<std::uint32_t>(text_.rfind('@', begin));
    return {begin, of.end};
  }

  std::string text_of(Span span) const {
    return std::string(text_.substr(span.begin, span.end - span.begin));
  }

  void add(Topic topic, const ptx::Instruction& of, std::string change, std::vector<Edit> edits) {
    std::string words = text_of(span(of));
    std::ranges::replace_if(
        words, [](char c) { return c == '\n' || c == '\t'; }, ' ');
    out_.push_back({topic, module_.source->line(of.offset), span(of).begin, std::move(change),
                    std::string(of.opcode), std::move(words), std::move(edits)});
  }

  static Edit replace(Span span, std::string text) {
    return {span.begin, span.end - span.begin, std::move(text)};
  }

  void mutate(const ptx::Instruction& of) {
    const isa::Spelling& spelling = module_.spelling(of);
    if (const auto topic = synchronization(spelling)) {
      remove(*topic, of, spelling);
      move(*topic, of);
      weaken_words(*topic, of);
      weaken_numbers(*topic, of, spelling);
    } else if (shares_memory(spelling)) {
      weaken_words(Topic::Order, of);
      index(of, spelling);
    } else if (spelling.opcode == Opcode::setp) {
      for (const Words& words : next_to) replace_word(Topic::Compare, of, words);
    } else if (computes_index(spelling)) {
      stride(of, spelling);
    }
    guard(of, spelling);
  }

  // ---- Synchronization.

  void remove(Topic topic, const ptx::Instruction& of, const isa::Spelling& spelling) {
    const auto operands = module_.operands_of(of);
    const bool tests = spelling.opcode == Opcode::mbarrier_test_wait ||
                       spelling.opcode == Opcode::mbarrier_try_wait;
    const bool result = operands.size() && operands[0].kind == OperandKind::Name &&
                        spelling.opcode == Opcode::mbarrier_arrive && operands[0].text != "_";
    if (tests)
      return add(
          topic, of, "complete at once",
          {replace({of.offset, of.end}, fmt::format("setp.eq.u32 {}, 0, 0;", operands[0].text))});
    if (result) return;  // a wait needs its state
    add(topic, of, "delete", {replace(span(of), "")});
  }

  /// The nearest instruction before (-1) or behind (1) it, with no label, branch or other
  /// synchronization between, that accesses memory.
  const ptx::Instruction* neighbour(int step) const {
    for (std::size_t i = at_ + static_cast<std::size_t>(step); i < function_.statements.size();
         i += static_cast<std::size_t>(step)) {
      if (function_.statements[i].kind == StatementKind::Label) return nullptr;
      const ptx::Instruction* each = instruction(i);
      if (!each) continue;
      const isa::Spelling& spelling = module_.spelling(*each);
      if (spelling.row().control != isa::Control::FallsThrough) return nullptr;
      if (synchronization(spelling)) return nullptr;
      if (shares_memory(spelling)) return each;
    }
    return nullptr;
  }

  /// Whether it names registers that may not exist, or hold something else, elsewhere.
  bool uses_registers(const ptx::Instruction& of) const {
    if (!of.guard.empty()) return true;
    return std::ranges::any_of(module_.operands_of(of), [](const ptx::Operand& each) {
      return each.kind != OperandKind::Integer;
    });
  }

  void move(Topic topic, const ptx::Instruction& of) {
    if (uses_registers(of)) return;
    const Span from = span(of);
    if (const auto* next = neighbour(1)) {
      const Span to = span(*next);
      add(topic, of, "move down",
          {replace(from, ""), replace({to.end, to.end}, " " + text_of(from))});
    }
    if (const auto* previous = neighbour(-1)) {
      const Span to = span(*previous);
      add(topic, of, "move up",
          {replace({to.begin, to.begin}, text_of(from) + " "), replace(from, "")});
    }
  }

  void replace_word(Topic topic, const ptx::Instruction& of, const Words& words) {
    const std::string changed = with_word(of.opcode, module_.spelling(of).row().name.size(), words);
    if (changed.empty()) return;
    const std::uint32_t offset = module_.offset_of(of.opcode);
    add(topic, of, fmt::format("{} to {}", words.from, words.to),
        {{offset, static_cast<std::uint32_t>(of.opcode.size()), changed}});
  }

  void weaken_words(Topic topic, const ptx::Instruction& of) {
    for (const Words& words : weaker) replace_word(topic, of, words);
  }

  void weaken_numbers(Topic topic, const ptx::Instruction& of, const isa::Spelling& spelling) {
    const auto operands = module_.operands_of(of);
    if (operands.empty()) return;
    const auto address = static_cast<std::size_t>(
        std::ranges::find(operands, OperandKind::Address, &ptx::Operand::kind) - operands.begin());
    if (address == operands.size()) {  // wait_group n; bar.sync 1, n: another barrier may do
      const bool waits = topic == Topic::Wait && operands[0].kind == OperandKind::Integer;
      if (topic == Topic::Barrier && operands.size() > 1)
        change(topic, of, operands[1], "add", 32, "more threads");
      if (waits) change(topic, of, operands[0], "add", 1, "one more");
      return;
    }
    if (address + 1 == operands.size()) return;
    const ptx::Operand& number = operands[address + 1];
    if (spelling.has("parity"_q)) return change(topic, of, number, "xor", 1, "other parity");
    if (topic == Topic::Wait) return;
    const bool bytes = spelling.has("expect_tx"_q) || spelling.opcode == Opcode::mbarrier_expect_tx;
    change(topic, of, number, "add", bytes ? 16 : 1, "more");
    if (number.kind != OperandKind::Integer || number.value > 1)
      change(topic, of, number, "add", bytes ? -16 : -1, "fewer");
  }

  /// The operand, a number or a register of 32 bits, is `op` by `by`.
  void change(Topic topic, const ptx::Instruction& of, const ptx::Operand& operand,
              std::string_view op, std::int64_t by, std::string_view what) {
    const Span place{operand.offset,
                     operand.offset + static_cast<std::uint32_t>(operand.text.size())};
    const auto number = static_cast<std::int64_t>(operand.value);
    if (operand.kind == OperandKind::Integer) {
      const std::int64_t result = op == "xor" ? number ^ by : number + by;
      return add(topic, of, fmt::format("{}: {}", what, result),
                 {replace(place, std::to_string(result))});
    }
    if (operand.kind == OperandKind::Name) with_copy(topic, of, place, operand, op, by, what);
  }

  /// A block around the instruction, with a register that is the operand changed.
  void with_copy(Topic topic, const ptx::Instruction& of, Span place, const ptx::Operand& operand,
                 std::string_view op, std::int64_t by, std::string_view what) {
    const Span whole = span(of);
    const bool add_op = op == "add";
    std::string before = fmt::format("{{ .reg .b32 %mutant; {} %mutant, {}, {}; ",
                                     add_op ? "add.s32" : "xor.b32", operand.text, by);
    add(topic, of, fmt::format("{}: {} {}", what, op, by),
        {{whole.begin, 0, std::move(before)}, replace(place, "%mutant"), {whole.end, 0, " }"}});
  }

  // ---- Conditions and indices.

  void guard(const ptx::Instruction& of, const isa::Spelling& spelling) {
    if (of.guard.empty()) return;
    const Span whole = span(of);
    const std::string opposite = fmt::format("@{}{} ", of.guard_negated ? "" : "!", of.guard);
    const bool branches = spelling.row().control == isa::Control::Branches;
    add(Topic::Guard, of, "always", {replace({whole.begin, of.offset}, "")});
    if (branches) add(Topic::Guard, of, "never", {replace(whole, "")});
    else add(Topic::Guard, of, "otherwise", {replace({whole.begin, of.offset}, opposite)});
  }

  void index(const ptx::Instruction& of, const isa::Spelling& spelling) {
    for (const ptx::Operand& operand : module_.operands_of(of)) {
      if (operand.kind != OperandKind::Address || operand.count == 0) continue;
      const auto children = module_.children(operand);
      const auto end = static_cast<std::uint32_t>(text_.find_first_of("],", operand.offset));
      const bool tensor = operand.count > 1;
      const int bytes = isa::is_matrix(spelling.opcode) ? 0 : isa::access_bits(spelling) / 8;
      const std::int64_t step = bytes ? bytes : 16;
      if (!tensor) {
        const Span place{operand.offset, end + 1};
        const auto was = static_cast<std::int64_t>(operand.value);
        add(Topic::Index, of, fmt::format("{} to {} bytes", was, was + step),
            {replace(place, fmt::format("[{}+{}]", children[0].text, was + step))});
      } else if (children[1].kind == OperandKind::Vector) {
        const ptx::Operand& first = module_.children(children[1])[0];
        change(Topic::Index, of, first, "add", 1, "coordinate");
      }
    }
  }

  void stride(const ptx::Instruction& of, const isa::Spelling& spelling) {
    const auto operands = module_.operands_of(of);
    for (const ptx::Operand& operand :
         operands.subspan(std::min<std::size_t>(1, operands.size()))) {
      if (operand.kind != OperandKind::Integer) continue;
      const bool shift = spelling.opcode == Opcode::shl || spelling.opcode == Opcode::shr;
      const auto number = static_cast<std::int64_t>(operand.value);
      const std::int64_t result = shift || number == 0 || number == -1 ? number + 1 : 2 * number;
      if (shift && result >= bits(spelling.type())) continue;
      add(Topic::Stride, of, fmt::format("{} to {}", number, result),
          {{operand.offset, static_cast<std::uint32_t>(operand.text.size()),
            std::to_string(result)}});
    }
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Mutant> out_;
};

}  // namespace

std::string_view name(Topic topic) {
  constexpr std::array<std::string_view, topic_count> names{
      "barrier", "wait", "fence", "arrive", "order", "guard", "compare", "index", "stride"};
  return names[static_cast<std::size_t>(topic)];
}

std::vector<Mutant> mutants_of(const ptx::Module& module, std::string_view kernel) {
  const ptx::Function* function = module.function(kernel);
  return function ? Maker(module, *function)() : std::vector<Mutant>();
}

std::vector<Mutant> sample(const std::vector<Mutant>& all, const std::vector<int>& most) {
  std::array<std::size_t, topic_count> total{}, seen{};
  for (const Mutant& each : all) ++total[static_cast<std::size_t>(each.topic)];
  std::vector<Mutant> out;
  for (const Mutant& each : all) {
    const auto topic = static_cast<std::size_t>(each.topic);
    const auto share = static_cast<std::size_t>(most[topic]);
    const std::size_t i = seen[topic]++;
    if (total[topic] <= share || i * share / total[topic] != (i + 1) * share / total[topic])
      out.push_back(each);
  }
  return out;
}

std::string mutated(std::string_view text, const Mutant& mutant) {
  std::string out;
  std::size_t from = 0;
  for (const Edit& edit : mutant.edits) {
    out.append(text.substr(from, edit.offset - from)).append(edit.text);
    from = edit.offset + edit.length;
  }
  return out.append(text.substr(from));
}

}  // namespace tartan::mutation
