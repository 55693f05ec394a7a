// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/live_registers.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "compiler/support/names.h"
#include "tartan/isa/signature.h"
#include "tartan/isa/spelling.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::Opcode;

// A set of registers, by number.
class Set {
 public:
  explicit Set(std::size_t size = 0) : words_((size + 63) / 64) {}
  bool has(std::uint32_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  void add(std::uint32_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void remove(std::uint32_t i) { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  /// Adds another set's; whether some were new.
  bool add(const Set& other) {
    bool grown = false;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      grown |= (other.words_[i] & ~words_[i]) != 0;
      words_[i] |= other.words_[i];
    }
    return grown;
  }
  template <typename Body>
  void each(Body&& body) const {
    for (std::size_t i = 0; i < words_.size(); ++i)
      for (std::uint64_t left = words_[i]; left; left &= left - 1)
        body(static_cast<std::uint32_t>(64 * i + static_cast<unsigned>(std::countr_zero(left))));
  }

 private:
  std::vector<std::uint64_t> words_;
};

class Liveness {
 public:
  Liveness(const ptx::Module& module, const ptx::Function& function)
      : module_(module), function_(function) {}

  LiveRegisters run() {
    declare();
    read();
    if (!has_matrix_) return {};
    find_first_products();
    find_varying();
    find_cheap();
    divide();
    flow();
    for (const Block& block : blocks_) measure(block);
    return out_;
  }

 private:
  // An instruction; what it writes and reads, in registers_.
  struct Step {
    const ptx::Instruction* instruction;
    Opcode opcode;
    std::uint32_t writes, reads, end;
    bool keeps;  // what it writes may keep its value: guarded, or accumulators
  };
  struct Block {
    std::size_t begin, end;  // of steps_
    std::vector<std::uint32_t> next;
    Set in;
  };

  // Registers of inner blocks count as those of the same name outside.
  void declare() {
    for (const ptx::Statement& statement : function_.statements) {
      if (statement.kind != ptx::StatementKind::Registers) continue;
      const ptx::Registers& each = module_.registers[statement.index];
      const int size = each.type == Type::pred ? 0 : std::max(1, bits(each.type) / 32);
      (each.numbered ? rows_ : plain_)[each.name] = size * each.vector;
    }
  }

  // Nothing if the name is no register.
  std::optional<std::uint32_t> number(std::string_view name) {
    const auto [known, fresh] = numbers_.try_emplace(name);
    if (!fresh) return known->second;
    std::optional<int> size;
    if (const auto plain = plain_.find(name); plain != plain_.end()) {
      size = plain->second;
    } else if (const auto numbered = ptx::numbered_name(name)) {
      if (const auto row = rows_.find(numbered->row); row != rows_.end()) size = row->second;
    }
    if (!size) return std::nullopt;
    sizes_.push_back(*size);
    return known->second = static_cast<std::uint32_t>(sizes_.size() - 1);
  }

  void add(const ptx::Operand& operand) {
    if (operand.kind == ptx::OperandKind::Name)
      if (const auto at = number(operand.text)) registers_.push_back(*at);
    for (const ptx::Operand& child : module_.children(operand)) add(child);
  }

  std::uint32_t added() const { return static_cast<std::uint32_t>(registers_.size()); }

  static bool writes_first(Opcode opcode, const ptx::Operand& first) {
    if (first.kind == ptx::OperandKind::Address) return false;
    if (opcode == Opcode::call) return first.kind == ptx::OperandKind::List;
    const auto rows = isa::signatures(opcode);
    return !rows.empty() && rows[0].operands.size > 0 && rows[0].operands[0].written;
  }

  void read() {
    for (const ptx::Statement& statement : function_.statements) {
      if (statement.kind == ptx::StatementKind::Label)
        labels_[module_.labels[statement.index].name] = steps_.size();
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      const ptx::Instruction& instruction = module_.instructions[statement.index];
      const Opcode opcode = module_.spelling(instruction).opcode;
      has_matrix_ |= isa::is_matrix(opcode);
      const auto operands = module_.operands_of(instruction);
      const std::size_t results = !operands.empty() && writes_first(opcode, operands[0]);
      Step step{&instruction, opcode, added(), 0, 0, false};
      step.keeps = !instruction.guard.empty() || opcode == Opcode::wgmma;
      for (const ptx::Operand& each : operands.first(results)) add(each);
      step.reads = added();
      for (const ptx::Operand& each : operands.subspan(results)) add(each);
      step.end = added();
      steps_.push_back(step);
    }
  }

  // A product whose scale-d is false does not read its accumulators.
  void find_first_products() {
    std::vector<int> written(sizes_.size());
    Set falses(sizes_.size());
    for (const Step& step : steps_) {
      for (std::uint32_t at = step.writes; at < step.reads; ++at) ++written[registers_[at]];
      const auto operands = module_.operands_of(*step.instruction);
      if (step.opcode == Opcode::mov && operands.size() == 2 && operands[1].text == "0" &&
          step.reads == step.writes + 1 && sizes_[registers_[step.writes]] == 0)
        falses.add(registers_[step.writes]);
    }
    for (Step& step : steps_) {
      if (step.opcode != Opcode::wgmma) continue;
      for (std::uint32_t at = step.reads; at < step.end; ++at) {
        const std::uint32_t each = registers_[at];
        if (falses.has(each) && written[each] == 1) step.keeps = !step.instruction->guard.empty();
      }
    }
  }

  // Whether the result is the same in all lanes where the operands are.
  bool keeps_uniform(const Step& step) const {
    const isa::Spelling& spelling = module_.spelling(*step.instruction);
    for (const Type type : spelling.types)
      if (info(type).floating && step.opcode != Opcode::mov) return false;
    switch (step.opcode) {
      case Opcode::ld:
        return std::ranges::count(isa::state_spaces(spelling), StateSpace::param) > 0;
      case Opcode::mov: {
        const auto operands = module_.operands_of(*step.instruction);
        return operands.size() == 2 && !operands[1].text.starts_with("%tid") &&
               !operands[1].text.starts_with("%lane");
      }
      case Opcode::add:
      case Opcode::sub:
      case Opcode::mul:
      case Opcode::mad:
      case Opcode::div:
      case Opcode::rem:
      case Opcode::min:
      case Opcode::max:
      case Opcode::neg:
      case Opcode::and_:
      case Opcode::or_:
      case Opcode::xor_:
      case Opcode::not_:
      case Opcode::shl:
      case Opcode::shr:
      case Opcode::setp:
      case Opcode::selp:
      case Opcode::cvt:
      case Opcode::cvta: return true;
      default: return false;
    }
  }

  // Registers that may differ between lanes.
  void find_varying() {
    varying_ = Set(sizes_.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (const Step& step : steps_) {
        bool varies = !keeps_uniform(step);
        for (std::uint32_t at = step.reads; at < step.end; ++at)
          varies |= varying_.has(registers_[at]);
        if (!varies) continue;
        for (std::uint32_t at = step.writes; at < step.reads; ++at) {
          changed |= !varying_.has(registers_[at]);
          varying_.add(registers_[at]);
        }
      }
    }
  }

  // Whether the assembler rather computes the result again than keeps it, if it can.
  static bool is_cheap(const Step& step) {
    switch (step.opcode) {
      case Opcode::mov:
      case Opcode::add:
      case Opcode::sub:
      case Opcode::min:
      case Opcode::max:
      case Opcode::neg:
      case Opcode::and_:
      case Opcode::or_:
      case Opcode::xor_:
      case Opcode::shl:
      case Opcode::shr:
      case Opcode::mul:
      case Opcode::cvt: return !step.keeps;
      default: return false;
    }
  }

  void find_cheap() {
    std::vector<int> written(sizes_.size());
    cheap_.assign(sizes_.size(), nullptr);
    for (const Step& step : steps_)
      for (std::uint32_t at = step.writes; at < step.reads; ++at) {
        ++written[registers_[at]];
        if (is_cheap(step)) cheap_[registers_[at]] = &step;
      }
    for (std::size_t each = 0; each < written.size(); ++each)
      if (written[each] != 1) cheap_[each] = nullptr;
  }

  // Whether one register that lives, or is computed again itself, gives this one's value.
  bool computed_again(std::uint32_t each, const Set& live) const {
    const Step* step = cheap_[each];
    if (!step) return false;
    int varying = 0;
    for (std::uint32_t at = step->reads; at < step->end; ++at) {
      const std::uint32_t source = registers_[at];
      if (!varying_.has(source)) continue;
      if (++varying > 1) return false;
      if (!live.has(source) && !(cheap_[source] < step && computed_again(source, live)))
        return false;
    }
    return true;
  }

  isa::Control control(const Step& step) const {
    return module_.spelling(*step.instruction).row().control;
  }
  bool falls_through(const Step& step) const {
    return control(step) == isa::Control::FallsThrough || control(step) == isa::Control::Calls;
  }

  void divide() {
    std::vector<bool> starts(steps_.size() + 1);
    for (const auto& [name, at] : labels_) starts[at] = true;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (!falls_through(steps_[i])) starts[i + 1] = true;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (i == 0 || starts[i]) blocks_.push_back({i, i, {}, Set(sizes_.size())});
      block_of_.push_back(static_cast<std::uint32_t>(blocks_.size() - 1));
      blocks_.back().end = i + 1;
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) link(i);
  }

  void link(std::size_t index) {
    Block& block = blocks_[index];
    const Step& last = steps_[block.end - 1];
    const auto leads_to = [&](std::size_t step) {
      if (step < steps_.size()) block.next.push_back(block_of_[step]);
    };
    if (falls_through(last) || !last.instruction->guard.empty()) leads_to(block.end);
    if (last.opcode == Opcode::brx_idx)
      for (const auto& [name, at] : labels_) leads_to(at);
    if (last.opcode == Opcode::bra)
      for (const ptx::Operand& operand : module_.operands_of(*last.instruction))
        if (const auto at = labels_.find(operand.text); at != labels_.end()) leads_to(at->second);
  }

  // From what lives after the instruction to what lives before.
  void before(const Step& step, Set& live) const {
    if (!step.keeps)
      for (std::uint32_t at = step.writes; at < step.reads; ++at) live.remove(registers_[at]);
    for (std::uint32_t at = step.keeps ? step.writes : step.reads; at < step.end; ++at)
      live.add(registers_[at]);
  }

  Set live_after(const Block& block) const {
    Set out(sizes_.size());
    for (const std::uint32_t next : block.next) out.add(blocks_[next].in);
    return out;
  }

  void flow() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = blocks_.size(); i-- > 0;) {
        Set live = live_after(blocks_[i]);
        for (std::size_t at = blocks_[i].end; at-- > blocks_[i].begin;) before(steps_[at], live);
        changed |= blocks_[i].in.add(live);
      }
    }
  }

  // The block's steps, each load just before its first use in the block.
  std::vector<std::size_t> late_loads(const Block& block) {
    load_of_.assign(sizes_.size(), std::nullopt);
    std::vector<std::size_t> use(block.end - block.begin);  // of each step that is such a load
    std::vector<std::vector<std::size_t>> first(block.end - block.begin);  // loads to place here
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const Step& step = steps_[i];
      for (std::uint32_t at = step.reads; at < step.end; ++at)
        if (const auto load = load_of_[registers_[at]]; load && use[*load - block.begin] == 0) {
          use[*load - block.begin] = i;
          first[i - block.begin].push_back(*load);
        }
      const bool loads = step.opcode == Opcode::ld || step.opcode == Opcode::ldmatrix;
      for (std::uint32_t at = step.writes; at < step.reads; ++at)
        load_of_[registers_[at]] = loads && !step.keeps ? std::optional(i) : std::nullopt;
    }
    std::vector<std::size_t> out, left;
    for (std::size_t i = block.begin; i < block.end; ++i) {
      if (use[i - block.begin] != 0) continue;
      left = {i};  // in reverse: the step, the loads that it reads, those that they read
      for (std::size_t next = 0; next < left.size(); ++next) {
        const auto& loads = first[left[next] - block.begin];
        left.insert(left.end(), loads.rbegin(), loads.rend());
      }
      out.insert(out.end(), left.rbegin(), left.rend());
    }
    return out;
  }

  void measure(const Block& block) {
    Set live = live_after(block);
    const std::vector<std::size_t> order = late_loads(block);
    for (std::size_t i = order.size(); i-- > 0;) {
      const Step& step = steps_[order[i]];
      if (isa::is_matrix(step.opcode)) measure(step, live);
      before(step, live);
    }
  }

  void measure(const Step& step, const Set& after) {
    int sum = 0;
    const auto count = [&](std::uint32_t at) { sum += varying_.has(at) ? sizes_[at] : 0; };
    after.each([&](std::uint32_t at) {
      if (!computed_again(at, after)) count(at);
    });
    for (std::uint32_t at = step.writes; at < step.reads; ++at)
      if (!after.has(registers_[at])) count(registers_[at]);
    if (sum > out_.most) out_.most = sum, out_.line = line(step);
    if (step.opcode != Opcode::wgmma) return;
    int product = 0;
    for (const ptx::Operand& operand : module_.operands_of(*step.instruction))
      if (operand.kind == ptx::OperandKind::Vector) product += static_cast<int>(operand.count);
    if (product > out_.product) out_.product = product, out_.product_line = line(step);
  }

  int line(const Step& step) const { return module_.source->line(step.instruction->offset); }

  const ptx::Module& module_;
  const ptx::Function& function_;
  NameMap<int> rows_, plain_;  // declared: the 32-bit registers of each; of predicates 0
  NameMap<std::optional<std::uint32_t>> numbers_;
  std::vector<int> sizes_;  // by number
  std::vector<std::uint32_t> registers_;
  std::vector<Step> steps_;
  NameMap<std::size_t> labels_;  // the step that follows
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> block_of_;              // of a step
  std::vector<std::optional<std::size_t>> load_of_;  // of a register, within a block
  Set varying_;
  std::vector<const Step*> cheap_;  // of a register: the only instruction that writes it
  bool has_matrix_ = false;
  LiveRegisters out_;
};

}  // namespace

LiveRegisters live_registers(const ptx::Module& module, const ptx::Function& function) {
  return Liveness(module, function).run();
}

}  // namespace tartan::TARTAN_ABI::verify
