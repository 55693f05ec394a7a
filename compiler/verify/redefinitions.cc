// SPDX-License-Identifier: Apache-2.0
// Duplicate declarations: registers, variables, parameters and labels within one block, variables
// and functions within the module. A prototype may precede its definition, and a variable may be
// declared .extern any number of times.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/isa/special_registers.h"
#include "compiler/ptx/declarations.h"
#include "compiler/support/names.h"
#include "compiler/verify/parameters.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
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

// The names of one block. `x<5>` declares x0 to x4 without storing their names.
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

  /// At the block's end: reports names that also belong to a numbered row.
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
  NameMap<Plain> plain_;
  NameMap<Numbered> numbered_;
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

// The names of a module: one definition each, and declarations that match it.
class ModuleChecker {
 public:
  explicit ModuleChecker(Context& context) : context_(context), module_(context.module) {}

  void run() {
    for (const ptx::Item& item : module_.items) {
      if (item.kind == ptx::ItemKind::Function) {
        const ptx::Function& function = module_.functions[item.index];
        name(function.name, {function.offset, function.body, &function, nullptr});
      } else if (item.kind == ptx::ItemKind::Variable) {
        const ptx::Variable& variable = module_.variables[item.index];
        if (variable.numbered) numbered_.numbered(variable.name, *variable.numbered);
        else
          name(variable.name, {variable.offset, variable.linkage != ".extern", nullptr, &variable});
      }
    }
    for (const ptx::Directive& each : module_.directives)
      if (each.name == ".alias" && each.count > 0)
        aliases_.insert(module_.operands_of(each)[0].text);
    for (const auto& [text, each] : declared_)
      if (each.variable) numbered_.variable(text);
    numbered_.finish();
    for (const ptx::Function& each : module_.functions) undefined(each);
  }

 private:
  struct Declared {
    std::uint32_t offset;
    bool defined;
    const ptx::Function* function;
    const ptx::Variable* variable;
  };

  void name(std::string_view text, Declared now) {
    const auto [at, fresh] = declared_.try_emplace(text, now);
    if (fresh) {
      if (now.variable && isa::find_special_register(text))
        differ(text, "is the name of a special register", now.offset);
      if (now.function && now.defined && now.function->linkage == ".extern")
        differ(text, "is .extern but has a body: expected one of the two", now.offset);
      return;
    }
    Declared& first = at->second;
    const bool again = first.defined && (now.defined || now.function);
    if (again || !first.function != !now.function)
      return report(context_, now.function ? "function " : "", text,
                    first.defined ? "defined" : "declared", first.offset);
    if (now.function) functions(*first.function, *now.function);
    else variables(*first.variable, *now.variable);
    if (now.defined) first = now;
  }

  void functions(const ptx::Function& first, const ptx::Function& now) {
    if (first.entry != now.entry)
      return differ(now.name, "is declared as a kernel and as a function", first.offset);
    const std::string what = difference(FunctionType(module_, first), FunctionType(module_, now));
    if (!what.empty())
      return differ(now.name, fmt::format("is declared with differences in {}", what),
                    first.offset);
    if (states(module_, first, ".noreturn") != states(module_, now, ".noreturn"))
      return differ(now.name, "is declared with and without .noreturn", first.offset);
    if (now.body && (first.linkage == ".extern" || now.linkage == ".extern"))
      return differ(now.name, "is .extern but has a body: expected one of the two", first.offset);
    if (now.linkage != first.linkage && !now.linkage.empty())
      differ(now.name,
             fmt::format("is declared {} and {}", linkage_text(first.linkage),
                         linkage_text(now.linkage)),
             first.offset);
  }

  void variables(const ptx::Variable& first, const ptx::Variable& now) {
    const bool lengths = !first.unsized && !now.unsized && first.elements != now.elements;
    if (first.type != now.type || first.vector != now.vector || first.array != now.array || lengths)
      return differ(now.name,
                    fmt::format("is declared as {} and {}", describe(first), describe(now)),
                    first.offset);
    if (first.space != now.space)
      return differ(now.name,
                    fmt::format("is declared in .{} and .{}", tartan::name(first.space),
                                tartan::name(now.space)),
                    first.offset);
    if (first.linkage.empty() != now.linkage.empty())
      differ(now.name, "is .extern: expected a definition that is .visible or .weak", first.offset);
  }

  // Every function must have a body, or be declared .extern.
  void undefined(const ptx::Function& function) {
    const ptx::Function* known = module_.function(function.name);
    if (function.body || function.linkage == ".extern" || (known && known->body) ||
        aliases_.contains(function.name) || !reported_.insert(function.name).second)
      return;
    context_.report(
        "redeclaration"_rule, function.name,
        fmt::format("{} has no body: expected one in this module, or .extern in front of {}",
                    function.name, function.entry ? ".entry" : ".func"));
  }

  static std::string_view linkage_text(std::string_view linkage) {
    return linkage.empty() ? "for this module alone" : linkage;
  }

  void differ(std::string_view text, std::string_view how, std::uint32_t first) {
    context_.report("redeclaration"_rule, text,
                    fmt::format("{} {}; the first declaration is on line {}", text, how,
                                module_.source->line(first)));
  }

  Context& context_;
  const ptx::Module& module_;
  BlockNames numbered_{context_};  // x<4>
  NameMap<Declared> declared_;
  NameSet aliases_, reported_;
};

}  // namespace

void check_module_names(Context& context) { ModuleChecker(context).run(); }

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

}  // namespace tartan::TARTAN_ABI::verify
