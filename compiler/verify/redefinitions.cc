// SPDX-License-Identifier: Apache-2.0
// No name is declared twice: registers, variables, parameters and labels within one block,
// variables and functions within the module. A prototype may stand before its definition, and a
// variable may be declared .extern any number of times.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/verify/pass.h"

namespace tartan::verify {
namespace {

std::uint32_t offset_of(const Context& context, std::string_view name) {
  return static_cast<std::uint32_t>(name.data() - context.module.source->text().data());
}

void report(Context& context, std::string_view what, std::string_view name, std::string_view how,
            std::uint32_t first) {
  context.report("redefined-name"_rule, name,
                 fmt::format("{}{} is already {} on line {}", what, name, how,
                             context.module.source->line(first)));
}

// The names of one block. `x<5>` declares x0 to x4 without taking their names one by one.
class BlockNames {
 public:
  explicit BlockNames(Context& context) : context_(&context) {}

  void label(std::string_view name) {
    const auto [first, fresh] = plain_.try_emplace(name, Plain{offset_of(*context_, name), true});
    if (!fresh) report(*context_, "label ", name, "defined", first->second.offset);
  }

  void variable(std::string_view name) {
    const auto [first, fresh] = plain_.try_emplace(name, Plain{offset_of(*context_, name), false});
    if (!fresh) report(*context_, "", name, "declared", first->second.offset);
  }

  void numbered(std::string_view name, std::uint32_t count) {
    const auto [first, fresh] =
        numbered_.try_emplace(name, Numbered{offset_of(*context_, name), count});
    if (fresh) return;
    report(*context_, "", name, "declared", first->second.offset);
    first->second.count = std::max(first->second.count, count);
  }

  /// At the block's end: which of the names stand for one of a numbered row, too.
  void finish() const {
    if (numbered_.empty()) return;
    for (const auto& [name, plain] : plain_)
      if (!plain.label) check_numbers(name, plain.offset);
  }

 private:
  struct Plain {
    std::uint32_t offset;
    bool label;
  };
  struct Numbered {
    std::uint32_t offset, count;
  };

  void check_numbers(std::string_view name, std::uint32_t offset) const {
    const auto numbered = ptx::numbered_name(name);
    const auto row = numbered ? numbered_.find(numbered->row) : numbered_.end();
    if (row == numbered_.end() || numbered->number >= row->second.count) return;
    const bool later = row->second.offset > offset;
    if (later) report(*context_, "one of ", row->first, "declared", offset);
    else report(*context_, "", name, "declared", row->second.offset);
  }

  Context* context_;
  std::unordered_map<std::string_view, Plain> plain_;
  std::unordered_map<std::string_view, Numbered> numbered_;
};

void declare(const Context& context, const ptx::Statement& statement, BlockNames& names) {
  const ptx::Module& module = context.module;
  if (statement.kind == ptx::StatementKind::Label) {
    names.label(module.labels[statement.index].name);
  } else if (statement.kind == ptx::StatementKind::Registers) {
    const ptx::Registers& registers = module.registers[statement.index];
    if (registers.numbered) names.numbered(registers.name, registers.count);
    else names.variable(registers.name);
  } else if (statement.kind == ptx::StatementKind::Variable) {
    const ptx::Variable& variable = module.variables[statement.index];
    if (variable.numbered) names.numbered(variable.name, *variable.numbered);
    else if (variable.linkage != ".extern") names.variable(variable.name);
  }
}

class ModuleChecker {
 public:
  explicit ModuleChecker(Context& context) : context_(context) {}

  void item(const ptx::Item& item) {
    if (item.kind == ptx::ItemKind::Function) {
      const ptx::Function& function = context_.module.functions[item.index];
      name(function.name, "function ", {function.offset, true, function.body});
    } else if (item.kind == ptx::ItemKind::Variable) {
      const ptx::Variable& variable = context_.module.variables[item.index];
      name(variable.name, "", {variable.offset, false, variable.linkage != ".extern"});
    }
  }

 private:
  struct Declared {
    std::uint32_t offset;
    bool function;
    bool defined;
  };

  void name(std::string_view text, std::string_view what, Declared now) {
    const auto [at, fresh] = declared_.try_emplace(text, now);
    if (fresh) return;
    Declared& first = at->second;
    const bool again = first.defined && (now.defined || now.function);
    if (again || first.function != now.function)
      return report(context_, what, text, first.defined ? "defined" : "declared", first.offset);
    if (now.defined) first = now;
  }

  Context& context_;
  std::unordered_map<std::string_view, Declared> declared_;
};

}  // namespace

void check_module_names(Context& context) {
  ModuleChecker checker(context);
  for (const ptx::Item& item : context.module.items) checker.item(item);
}

void check_redefinitions(Context& context, const FunctionView& view) {
  std::vector<BlockNames> blocks{BlockNames(context)};
  for (const auto* list : {&view.function.results, &view.function.params})
    for (const std::uint32_t index : *list)
      blocks.back().variable(context.module.variables[index].name);
  for (const ptx::Statement& statement : view.function.statements) {
    if (statement.kind == ptx::StatementKind::BlockBegin) {
      blocks.emplace_back(context);
    } else if (statement.kind == ptx::StatementKind::BlockEnd && blocks.size() > 1) {
      blocks.back().finish();
      blocks.pop_back();
    } else {
      declare(context, statement, blocks.back());
    }
  }
  for (const BlockNames& block : blocks) block.finish();
}

}  // namespace tartan::verify
