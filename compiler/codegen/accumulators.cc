// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/accumulators.h"

#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/codegen/assembly.h"

namespace tartan::TARTAN_ABI::codegen {
namespace {

// A statement of wgmma each of whose results takes the register of an operand: those of
// warpgroup_product() and warpgroup_wait().
struct Statement {
  llvm::CallInst* call = nullptr;
  int block = -1;
  unsigned results = 0;
  unsigned inputs = 0;                          // operands before the tied ones
  bool waits = false;                           // its results may be read behind it
  std::vector<llvm::ExtractValueInst*> values;  // of the results; null where nothing uses one
  std::vector<bool> is_read;                    // by other code than the accumulator's

  llvm::Value* tied(unsigned result) const { return call->getArgOperand(inputs + result); }
  const llvm::InlineAsm& assembly() const {
    return *llvm::cast<llvm::InlineAsm>(call->getCalledOperand());
  }
};

std::string tied_constraints(unsigned results) {
  std::string out;
  for (unsigned i = 0; i < results; ++i) out += std::to_string(i) + ",";
  return out + "~{memory}";
}

std::optional<Statement> as_statement(llvm::Instruction& instruction) {
  auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  if (!call || !call->isInlineAsm()) return std::nullopt;
  const auto* const type = llvm::dyn_cast<llvm::StructType>(call->getType());
  Statement out{.call = call};
  if (!type || !out.assembly().getAsmString().starts_with("wgmma.")) return std::nullopt;
  out.results = type->getNumElements();
  if (!out.assembly().getConstraintString().ends_with(tied_constraints(out.results)))
    return std::nullopt;
  out.inputs = call->arg_size() - out.results;
  out.waits = out.assembly().getAsmString().starts_with("wgmma.wait_group");
  out.values.resize(out.results);
  for (llvm::User* const user : call->users()) {
    auto* const value = llvm::dyn_cast<llvm::ExtractValueInst>(user);
    if (!value || value->getNumIndices() != 1 || out.values[value->getIndices()[0]])
      return std::nullopt;
    out.values[value->getIndices()[0]] = value;
  }
  return out;
}

// The blocks by number, in reverse post-order.
struct Graph {
  explicit Graph(llvm::Function& function) {
    for (llvm::BasicBlock* const block :
         llvm::ReversePostOrderTraversal<llvm::Function*>(&function)) {
      numbers[block] = static_cast<int>(blocks.size());
      blocks.push_back(block);
    }
    for (llvm::BasicBlock* const block : blocks) {
      before.emplace_back();
      for (llvm::BasicBlock* const each : llvm::predecessors(block))
        if (const int number = number_of(each); number >= 0) before.back().push_back(number);
    }
  }
  /// -1: it is never reached.
  int number_of(const llvm::BasicBlock* block) const {
    const auto found = numbers.find(block);
    return found == numbers.end() ? -1 : found->second;
  }
  std::vector<llvm::BasicBlock*> blocks;
  std::vector<std::vector<int>> before;  // predecessors

 private:
  llvm::DenseMap<const llvm::BasicBlock*, int> numbers;
};

// What flows through one register. The other accumulators of a product have an equal one.
struct Flow {
  struct Step {
    int at;    // the statement
    int from;  // the value of the operand
    auto operator<=>(const Step&) const = default;
  };
  struct Entry {
    int block;                              // that has a phi
    std::vector<std::pair<int, int>> from;  // predecessors and their values
    auto operator<=>(const Entry&) const = default;
  };
  auto operator<=>(const Flow&) const = default;

  // Values.
  static constexpr int anything = -1;  // undefined
  static constexpr int constant = -2;
  static int phi(int block) { return 3 * block; }
  static int result(int statement) { return 3 * statement + 1; }

  std::vector<Step> steps;
  std::vector<Entry> entries;
};

// Whether a register holds, on every path, the value that each statement and phi expects in it.
class Residence {
 public:
  Residence(const Graph& graph, const std::vector<Statement>& statements, const Flow& flow)
      : graph_(graph),
        flow_(flow),
        phis_(graph.blocks.size(), nobody),
        moved_(phis_),
        last_(phis_),
        steps_(graph.blocks.size()) {
    for (const Flow::Step& step : flow.steps)
      steps_[static_cast<std::size_t>(statements[static_cast<std::size_t>(step.at)].block)]
          .push_back(&step);
    for (const Flow::Entry& entry : flow.entries) {
      phis_[static_cast<std::size_t>(entry.block)] = Flow::phi(entry.block);
      for (const auto& [block, value] : entry.from)
        if (value == Flow::constant) move_in(block, 3 * entry.block + 2);
    }
  }

  bool holds() {
    if (clash_) return false;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t b = 0; b < last_.size(); ++b) {
        const int now = leaving(b);
        changed |= now != last_[b];
        last_[b] = now;
      }
    }
    for (std::size_t b = 0; b < last_.size(); ++b) {
      int held = entering(b);
      for (const Flow::Step* const step : steps_[b]) {
        if (step->from >= 0 && step->from != held) return false;
        held = Flow::result(step->at);
      }
    }
    return std::all_of(flow_.entries.begin(), flow_.entries.end(), [&](const Flow::Entry& entry) {
      return std::all_of(entry.from.begin(), entry.from.end(), [&](const auto& from) {
        return from.second < 0 || from.second == last_[static_cast<std::size_t>(from.first)];
      });
    });
  }

 private:
  static constexpr int nobody = -1, several = -2;  // not known yet; none that is of use

  // A constant enters at the end of a block, for one of its successors alone.
  void move_in(int block, int mark) {
    int& moved = moved_[static_cast<std::size_t>(block)];
    clash_ |= moved != nobody && moved != mark;
    moved = mark;
  }
  int entering(std::size_t block) const {
    if (phis_[block] != nobody) return phis_[block];
    if (block == 0) return several;
    int out = nobody;
    for (const int each : graph_.before[block]) {
      const int from = last_[static_cast<std::size_t>(each)];
      if (from == nobody || from == out) continue;
      if (out != nobody) return several;
      out = from;
    }
    return out;
  }
  int leaving(std::size_t block) const {
    if (moved_[block] != nobody) return moved_[block];
    return steps_[block].empty() ? entering(block) : Flow::result(steps_[block].back()->at);
  }

  const Graph& graph_;
  const Flow& flow_;
  std::vector<int> phis_, moved_, last_;  // of blocks
  std::vector<std::vector<const Flow::Step*>> steps_;
  bool clash_ = false;
};

// Values that may have one register: results of statements, the operands that enter in their
// registers, and the phis between them.
struct Web {
  std::vector<std::pair<int, unsigned>> results;  // statements and their results
  std::vector<llvm::PHINode*> phis;
  int joined = -1;  // to that web
  int number = -1;  // of the register
};

class Accumulators {
 public:
  explicit Accumulators(llvm::Function& function) : graph_(function) {
    for (std::size_t b = 0; b < graph_.blocks.size(); ++b)
      for (llvm::Instruction& each : *graph_.blocks[b])
        if (auto statement = as_statement(each)) {
          statement->block = static_cast<int>(b);
          numbers_[statement->call] = static_cast<int>(statements_.size());
          statements_.push_back(*std::move(statement));
        }
  }

  /// Returns the number of registers: none where one accumulator does not fit.
  int name() {
    find_webs();
    int count = 0;
    for (Web& web : webs_) {
      if (web.joined >= 0) continue;
      if (!fits_a_register(web)) return 0;
      web.number = count++;
    }
    if (count == 0) return 0;
    for (Statement& each : statements_)
      for (const llvm::ExtractValueInst* const value : each.values)
        each.is_read.push_back(value && is_read(value));
    for (llvm::BasicBlock* const block : graph_.blocks) move_in(*block);
    for (std::size_t s = 0; s < statements_.size(); ++s) rewrite(s);
    drop_values();
    return count;
  }

 private:
  // ---- Webs.

  int root(int web) const {
    while (webs_[static_cast<std::size_t>(web)].joined >= 0)
      web = webs_[static_cast<std::size_t>(web)].joined;
    return web;
  }
  const Web& web_of(std::size_t statement, unsigned result) const {
    return webs_[static_cast<std::size_t>(root(first_web_[statement] + static_cast<int>(result)))];
  }
  /// Null: the value is in no web.
  const Web* web_of(const llvm::Value* value) const {
    const auto found = web_of_.find(value);
    return found == web_of_.end() ? nullptr : &webs_[static_cast<std::size_t>(root(found->second))];
  }

  void join(int x, int y) {
    x = root(x), y = root(y);
    if (x == y) return;
    Web &to = webs_[static_cast<std::size_t>(std::min(x, y))],
        &from = webs_[static_cast<std::size_t>(std::max(x, y))];
    to.results.insert(to.results.end(), from.results.begin(), from.results.end());
    to.phis.insert(to.phis.end(), from.phis.begin(), from.phis.end());
    from = Web{.joined = std::min(x, y)};
  }
  void add(llvm::Value* value, int web) {
    if (const auto [found, is_new] = web_of_.try_emplace(value, web); !is_new)
      return join(found->second, web);
    if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(value)) {
      webs_[static_cast<std::size_t>(root(web))].phis.push_back(phi);
      phis_.push_back(phi);
    }
  }
  void add_operand(llvm::Value* value, int web) {
    if (llvm::isa<llvm::PHINode>(value) || web_of_.count(value)) add(value, web);
  }
  void add_phis_of(llvm::Value* value) {
    for (llvm::User* const user : value->users())
      if (llvm::isa<llvm::PHINode>(user)) add(user, web_of_[value]);
  }

  void find_webs() {
    for (std::size_t s = 0; s < statements_.size(); ++s) {
      first_web_.push_back(static_cast<int>(webs_.size()));
      for (unsigned i = 0; i < statements_[s].results; ++i) {
        webs_.push_back({.results = {{static_cast<int>(s), i}}});
        if (llvm::Value* const value = statements_[s].values[i])
          add(value, static_cast<int>(webs_.size()) - 1);
      }
    }
    for (std::size_t s = 0; s < statements_.size(); ++s)
      for (unsigned i = 0; i < statements_[s].results; ++i) {
        add_operand(statements_[s].tied(i), first_web_[s] + static_cast<int>(i));
        if (statements_[s].values[i]) add_phis_of(statements_[s].values[i]);
      }
    for (std::size_t i = 0; i < phis_.size(); ++i) {
      llvm::PHINode* const phi = phis_[i];
      for (llvm::Value* const from : phi->incoming_values()) add_operand(from, web_of_[phi]);
      add_phis_of(phi);
    }
  }

  // ---- Whether a register can hold a web.

  // Whether other code than the web's reads a value.
  bool is_read(const llvm::Value* value) const {
    return std::any_of(value->use_begin(), value->use_end(), [&](const llvm::Use& use) {
      if (llvm::isa<llvm::PHINode>(use.getUser())) return false;
      const auto found = numbers_.find(use.getUser());
      return found == numbers_.end() ||
             use.getOperandNo() < statements_[static_cast<std::size_t>(found->second)].inputs;
    });
  }

  // As PTX; nothing for what is no constant.
  static std::string literal(const llvm::Value* value) {
    if (const auto* const real = llvm::dyn_cast<llvm::ConstantFP>(value))
      return fmt::format("0f{:08X}", real->getValueAPF().bitcastToAPInt().getZExtValue());
    if (const auto* const whole = llvm::dyn_cast<llvm::ConstantInt>(value))
      return std::to_string(whole->getZExtValue());
    return "";
  }

  std::optional<int> in_flow(const Web& web, const llvm::Value* value) const {
    if (llvm::isa<llvm::UndefValue>(value)) return Flow::anything;
    if (llvm::isa<llvm::ConstantFP, llvm::ConstantInt>(value)) return Flow::constant;
    if (web_of(value) != &web) return std::nullopt;
    if (const auto* const phi = llvm::dyn_cast<llvm::PHINode>(value))
      return Flow::phi(graph_.number_of(phi->getParent()));
    return Flow::result(
        numbers_.find(llvm::cast<llvm::ExtractValueInst>(value)->getAggregateOperand())->second);
  }

  // Nothing where a value in flight would have to move, and where accumulators start from other
  // values than constants or are not carried from product to product: values that move in and out
  // between products make the assembler's code slower.
  std::optional<Flow> flow_of(const Web& web) const {
    Flow out;
    bool multiplies = false;
    if (web.phis.empty()) return std::nullopt;
    for (const auto& [s, i] : web.results) {
      const Statement& statement = statements_[static_cast<std::size_t>(s)];
      const llvm::Type* const type = statement.tied(i)->getType();
      const auto from = in_flow(web, statement.tied(i));
      const bool is_read_in_flight =
          !statement.waits && statement.values[i] && is_read(statement.values[i]);
      if (!from || is_read_in_flight || !(type->isFloatTy() || type->isIntegerTy(32)))
        return std::nullopt;
      multiplies |= !statement.waits;
      out.steps.push_back({s, *from});
    }
    if (!multiplies) return std::nullopt;
    for (const llvm::PHINode* const phi : web.phis) {
      Flow::Entry entry{graph_.number_of(phi->getParent()), {}};
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        const int block = graph_.number_of(phi->getIncomingBlock(i));
        const auto from = in_flow(web, phi->getIncomingValue(i));
        if (!from || block < 0) return std::nullopt;
        entry.from.emplace_back(block, *from);
      }
      if (entry.block < 0 || is_read(phi)) return std::nullopt;
      out.entries.push_back(std::move(entry));
    }
    std::sort(out.steps.begin(), out.steps.end());
    std::sort(out.entries.begin(), out.entries.end());
    const bool twice =
        std::adjacent_find(out.steps.begin(), out.steps.end(), [](const auto& x, const auto& y) {
          return x.at == y.at;
        }) != out.steps.end();
    const bool twice_in_block = std::adjacent_find(out.entries.begin(), out.entries.end(),
                                                   [](const auto& x, const auto& y) {
                                                     return x.block == y.block;
                                                   }) != out.entries.end();
    if (twice || twice_in_block) return std::nullopt;
    return out;
  }

  bool fits_a_register(const Web& web) {
    const auto flow = flow_of(web);
    if (!flow) return false;
    const auto [found, is_new] = holds_.try_emplace(*flow, false);
    if (is_new) found->second = Residence(graph_, statements_, *flow).holds();
    return found->second;
  }

  // ---- The code.

  static std::string name_of(const Web& web) { return fmt::format("%acc{}", web.number); }
  static std::string move(const std::string& to, const std::string& from) {
    return "mov.b32 \t" + to + ", " + from + ";";
  }

  // Constants that come to the phis behind a block, in their order, as LLVM would move them: the
  // assembler's code depends on it.
  void move_in(llvm::BasicBlock& block) const {
    std::string text;
    for (llvm::BasicBlock* const next : llvm::successors(&block))
      for (const llvm::PHINode& phi : next->phis()) {
        const Web* const web = web_of(&phi);
        const std::string value = literal(phi.getIncomingValueForBlock(&block));
        if (web && !value.empty())
          text += (text.empty() ? "" : "\n\t") + move(name_of(*web), value);
      }
    if (text.empty()) return;
    llvm::IRBuilder<> build(block.getTerminator());
    Assembly(text).call(build);
  }

  // The text names the registers. A wait's results that are read move out behind it.
  void rewrite(std::size_t s) {
    const Statement& statement = statements_[s];
    std::vector<std::string> operands;
    std::vector<unsigned> results;
    std::string before, behind;
    Assembly assembly("");
    for (unsigned i = 0; i < statement.results; ++i) {
      operands.push_back(name_of(web_of(s, i)));
      if (const std::string value = literal(statement.tied(i)); !value.empty())
        before += move(operands.back(), value) + "\n\t";
      if (!statement.is_read[i]) continue;
      behind += "\n\t" + move(fmt::format("${}", results.size()), operands.back());
      assembly.hold(statement.tied(i)->getType(), kind_of(statement.tied(i)));
      results.push_back(i);
    }
    llvm::SmallVector<llvm::StringRef> kinds;
    llvm::StringRef(statement.assembly().getConstraintString()).split(kinds, ',');
    for (unsigned i = 0; i < statement.inputs; ++i) {
      operands.push_back(fmt::format("${}", results.size() + i));
      assembly.keep(statement.call->getArgOperand(i), kinds[statement.results + i].str().c_str());
    }
    assembly.clobber_memory();
    assembly.write(before);
    write_with(assembly, statement.assembly().getAsmString(), operands);
    assembly.write(behind);
    llvm::IRBuilder<> build(statement.call);
    llvm::CallInst* const call = assembly.call(build);
    call->setAttributes(statement.call->getAttributes());
    for (unsigned i = 0; i < results.size(); ++i)
      statement.values[results[i]]->replaceAllUsesWith(
          results.size() == 1 ? call : build.CreateExtractValue(call, i));
  }
  static const char* kind_of(const llvm::Value* value) {
    return constraint(value->getType()->isFloatTy() ? Type::f32 : Type::b32);
  }
  // The text with other operands for $0, $1...
  static void write_with(Assembly& assembly, std::string_view text,
                         const std::vector<std::string>& operands) {
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t mark = std::min(text.find('$', i), text.size());
      assembly.write(text.substr(i, mark - i));
      std::size_t operand = 0;
      for (i = mark + 1; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
        operand = 10 * operand + static_cast<std::size_t>(text[i] - '0');
      if (mark < text.size()) assembly.write(operands.at(operand));
    }
  }

  // Old statements, their results, and the phis.
  void drop_values() {
    const auto erase = [](llvm::Instruction* instruction) {
      instruction->replaceAllUsesWith(llvm::PoisonValue::get(instruction->getType()));
      instruction->eraseFromParent();
    };
    for (llvm::PHINode* const phi : phis_) erase(phi);
    for (const Statement& statement : statements_) {
      for (llvm::ExtractValueInst* const value : statement.values)
        if (value) erase(value);
      erase(statement.call);
    }
  }

  Graph graph_;
  std::vector<Statement> statements_;
  llvm::DenseMap<const llvm::Value*, int> numbers_;  // of statements
  std::vector<Web> webs_;
  std::vector<int> first_web_;  // of each statement, which has one for each of its results
  llvm::DenseMap<const llvm::Value*, int> web_of_;
  std::vector<llvm::PHINode*> phis_;  // in webs
  std::map<Flow, bool> holds_;
};

class NameAccumulators : public llvm::FunctionPass {
 public:
  static char ID;
  explicit NameAccumulators(std::string& declaration) : FunctionPass(ID), out_(declaration) {}
  bool runOnFunction(llvm::Function& function) override {
    const int count = Accumulators(function).name();
    if (count > 0) out_ = fmt::format("\t.reg .b32 \t%acc<{}>;\n", count);
    return count > 0;
  }

 private:
  std::string& out_;
};
char NameAccumulators::ID = 0;

}  // namespace

llvm::FunctionPass* name_accumulators(std::string& declaration) {
  return new NameAccumulators(declaration);
}

}  // namespace tartan::TARTAN_ABI::codegen
