// SPDX-License-Identifier: Apache-2.0
// The static shared memory of each kernel. All variables of its body count, and of the functions
// that it may call; those at file scope count where an instruction names them.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ptx/call_graph.h"
#include "compiler/support/names.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using ptx::Function;
using ptx::Operand;
using ptx::Variable;

constexpr std::uint64_t far_too_much = std::uint64_t{1} << 40;  // sums stay exact

// What ptxas accepts; a driver accepts all that the GPU has.
std::uint64_t offline_limit(const ArchRow& row) {
  constexpr std::uint64_t usual = 49152;
  return row.arch.suffix == 'a' ? static_cast<std::uint64_t>(row.shared_bytes) : usual;
}

std::uint64_t bytes(const Variable& variable) {
  return static_cast<std::uint64_t>(bits(variable.type)) / 8 * variable.vector;
}

std::uint64_t alignment(const Variable& variable) {
  return std::max<std::uint64_t>({variable.align, bytes(variable), 1});
}

std::uint64_t size(const Variable& variable) {
  const std::uint64_t each = bytes(variable);
  if (variable.elements > far_too_much / std::max<std::uint64_t>(each, 1)) return far_too_much;
  return each * variable.elements;
}

std::uint64_t rounded(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

bool is_dynamic(const Variable& variable) {
  return variable.linkage == ".extern" && variable.unsized;
}

// Rows t<4> are many variables, of which the assembler keeps those that are named.
bool is_static(const Variable& variable) {
  return variable.space == StateSpace::shared && !is_dynamic(variable) && !variable.numbered;
}

class SharedChecker {
 public:
  SharedChecker(Context& context, const ArchRow& row)
      : context_(context), module_(context.module), reach_(context.module, false), row_(row) {}

  void run() {
    std::uint64_t all = 0;
    for (const Variable& each : module_.variables)
      if (each.space == StateSpace::shared) all += size(each) + alignment(each);
    if (all <= offline_limit(row_)) return;
    for (const ptx::Item& item : module_.items)
      if (item.kind == ptx::ItemKind::Variable) file_scope(module_.variables[item.index]);
    for (const Function& each : module_.functions)
      if (each.entry && each.body) kernel(each);
  }

 private:
  void file_scope(const Variable& variable) {
    if (variable.space != StateSpace::shared) return;
    if (is_dynamic(variable)) dynamic_ = std::max(dynamic_, alignment(variable));
    if (!is_static(variable)) return;
    file_scope_.push_back(&variable);
    by_name_.try_emplace(variable.name, &variable);
  }

  void kernel(const Function& kernel) {
    const std::uint64_t found = rounded(static_bytes(kernel), dynamic_);
    const auto most = static_cast<std::uint64_t>(row_.shared_bytes);
    if (found > most)
      report("shared-memory"_rule, kernel, found, most, fmt::format("a block of {}", arch()));
    else if (found > offline_limit(row_))
      report("static-shared"_rule, kernel, found, offline_limit(row_),
             fmt::format("ptxas for {}", arch()));
  }

  std::string arch() const { return row_.arch.text(); }

  void report(const Rule& rule, const Function& kernel, std::uint64_t found, std::uint64_t most,
              const std::string& whose) {
    context_.report(
        rule, kernel.name,
        fmt::format(
            "too much static shared memory of {}: expected at most {} bytes, the limit of "
            "{}, found {}; {}",
            kernel.name, most, whose, found,
            rule.level == Level::Error
                ? "use less"
                : "use dynamic shared memory (.extern .shared), or let the driver assemble"));
  }

  // In the assembler's order: variables of bodies, then those at file scope.
  std::uint64_t static_bytes(const Function& kernel) {
    std::uint64_t end = 0;
    std::unordered_set<const Variable*> used;
    for (const Function* function : reach_.from(kernel)) {
      const Use& use = use_of(*function);
      for (const Variable* each : use.own) place(*each, end);
      used.insert(use.of_file.begin(), use.of_file.end());
    }
    if (used.empty()) return end;
    for (const Variable* each : file_scope_)
      if (used.contains(each)) place(*each, end);
    return end;
  }

  static void place(const Variable& variable, std::uint64_t& end) {
    end = std::min(rounded(end, alignment(variable)) + size(variable), far_too_much);
  }

  // The static variables of a function: its own, and those at file scope that it names.
  struct Use {
    std::vector<const Variable*> own, of_file;
  };

  const Use& use_of(const Function& function) {
    const auto [at, is_new] = uses_.try_emplace(&function);
    if (!is_new) return at->second;
    NameSet known;  // what is its own, or is listed
    for (const ptx::Statement& each : function.statements) {
      if (each.kind == ptx::StatementKind::Registers)
        known.insert(module_.registers[each.index].name);
      if (each.kind != ptx::StatementKind::Variable) continue;
      const Variable& variable = module_.variables[each.index];
      known.insert(variable.name);
      if (is_static(variable)) at->second.own.push_back(&variable);
    }
    for (const ptx::Statement& each : function.statements)
      if (each.kind == ptx::StatementKind::Instruction)
        for (const Operand& operand : module_.operands_of(module_.instructions[each.index]))
          add_uses(operand, known, at->second.of_file);
    return at->second;
  }

  void add_uses(const Operand& operand, NameSet& known, std::vector<const Variable*>& to) {
    for (const Operand& child : module_.children(operand)) add_uses(child, known, to);
    if (operand.kind != ptx::OperandKind::Name && operand.kind != ptx::OperandKind::Element) return;
    const auto found = by_name_.find(operand.text);
    if (found != by_name_.end() && known.insert(operand.text).second) to.push_back(found->second);
  }

  Context& context_;
  const ptx::Module& module_;
  ptx::Reach reach_;
  const ArchRow& row_;
  std::vector<const Variable*> file_scope_;
  std::uint64_t dynamic_ = 1;  // the alignment of dynamic shared memory, which follows
  std::unordered_map<std::string_view, const Variable*> by_name_;
  std::unordered_map<const Function*, Use> uses_;
};

}  // namespace

void check_shared_memory(Context& context) {
  if (const ArchRow* row = find_arch(context.target.arch)) SharedChecker(context, *row).run();
}

}  // namespace tartan::TARTAN_ABI::verify
