// SPDX-License-Identifier: Apache-2.0
// Directives: of kernels and functions (.maxntid, .noreturn), .alias, .file, .pragma, and the
// options of .target (PTX ISA 9.0, 11).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <unordered_set>

#include "compiler/isa/target_name.h"
#include "compiler/support/names.h"
#include "compiler/support/nearest.h"
#include "compiler/verify/parameters.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using ptx::Directive;
using ptx::Function;

// A directive between a function's parameters and its body.
struct DirectiveRow {
  std::string_view name;
  bool kernel = true;                 // for kernels, else for functions
  std::uint32_t least = 0, most = 0;  // how many numbers
  bool positive = false;
  bool once = false;
  Since since = {{1, 0}, 10};
};

constexpr Version sized_addresses{2, 3};  // .address_size
constexpr Since cluster{{7, 8}, 90}, abi{{9, 0}, 80};
constexpr DirectiveRow rows[] = {
    {.name = ".maxntid", .least = 1, .most = 3, .positive = true},
    {.name = ".reqntid", .least = 1, .most = 3, .positive = true},
    {.name = ".minnctapersm", .least = 1, .most = 1, .positive = true},
    {.name = ".maxnreg", .least = 1, .most = 1, .positive = true},
    {.name = ".reqnctapercluster", .least = 1, .most = 3, .since = cluster},
    {.name = ".explicitcluster", .since = cluster},
    {.name = ".maxclusterrank", .least = 1, .most = 1, .since = cluster},
    {.name = ".blocksareclusters", .since = {{9, 0}, 90}},
    {.name = ".minperctamemory", .least = 1, .most = 1, .since = {{9, 4}, 80}},
    {.name = ".noreturn", .kernel = false, .since = {{6, 4}, 30}},
    {.name = ".abi_preserve", .kernel = false, .least = 1, .most = 1, .once = true, .since = abi},
    {.name = ".abi_preserve_control",
     .kernel = false,
     .least = 1,
     .most = 1,
     .once = true,
     .since = abi},
};

// A kernel states at most one of each pair.
constexpr std::string_view exclusive[][2] = {{".maxntid", ".reqntid"},
                                             {".maxclusterrank", ".reqnctapercluster"}};
constexpr std::string_view target_options[] = {"debug", "texmode_unified", "texmode_independent",
                                               "map_f64_to_f32"};
constexpr std::string_view no_return = ".noreturn";
// Of .language, by number.
constexpr std::string_view languages[] = {"unknown",       "sass",     "nvsal",         "ptx",
                                          "nvvm",          "cuda c++", "cuda c++ tile", "tile ir",
                                          "python-cutile", "fortran",  "optix"};

enum class PragmaValue : std::uint8_t { None, Any, Integer, Positive };

struct PragmaRow {
  std::string_view name;
  bool in_function = true;  // only in bodies
  PragmaValue value = PragmaValue::None;
  Since since = {{2, 0}, 10};
};
constexpr PragmaRow pragmas[] = {
    {.name = "nounroll", .in_function = false},
    {.name = "used_bytes_mask", .value = PragmaValue::Integer, .since = {{8, 3}, 50}},
    {.name = "enable_smem_spilling", .value = PragmaValue::Any, .since = {{8, 7}, 75}},
    {.name = "mma_throughput", .since = {{9, 3}, 10}},
    {.name = "frequency", .value = PragmaValue::Positive, .since = {{9, 0}, 10}},
};

// 15, 0xF, 017, -1; the assembler knows no binary numbers here.
bool is_value(std::string_view text, PragmaValue kind) {
  if (kind == PragmaValue::Integer && text.starts_with('-')) text.remove_prefix(1);
  std::string_view digits = "0123456789";
  if (text.starts_with("0x") || text.starts_with("0X"))
    digits = "0123456789abcdefABCDEF", text.remove_prefix(2);
  else if (text.starts_with('0')) digits = "01234567";
  if (text.empty() || text.find_first_not_of(digits) != std::string_view::npos) return false;
  return kind == PragmaValue::Integer || text.find_first_not_of('0') != std::string_view::npos;
}

const DirectiveRow* find_row(std::string_view name) {
  const auto* found = std::ranges::find(rows, name, &DirectiveRow::name);
  return found == std::end(rows) ? nullptr : found;
}

class DirectiveChecker {
 public:
  explicit DirectiveChecker(Context& context) : context_(context), module_(context.module) {}

  void run() {
    target_options_of_module();
    for (const ptx::Item& item : module_.items) {
      if (item.kind == ptx::ItemKind::Function) {
        const Function& function = module_.functions[item.index];
        directives_of(function);
        functions_[function.name].push_back(&function);
        for (const ptx::Statement& each : function.statements)
          if (each.kind == ptx::StatementKind::Directive)
            directive(module_.directives[each.index], Where::Body);
      } else if (item.kind == ptx::ItemKind::Variable) {
        variables_.insert(module_.variables[item.index].name);
      } else {
        directive(module_.directives[item.index], Where::Module);
      }
    }
  }

 private:
  enum class Where : std::uint8_t { Module, Function, Body };

  void directive(const Directive& directive, Where where) {
    if (directive.name == ".alias") alias(directive);
    if (directive.name == ".file") file(directive);
    if (directive.name == ".pragma") pragma(directive, where);
    if (directive.name == ".loc_intermediate") since(directive, directive.name, {{9, 4}, 10});
    if (directive.name == ".branchtargets") since(directive, directive.name, {{6, 0}, 30});
    if (!directive.prototype) return;
    if (!module_.prototypes[*directive.prototype].returns)
      since(directive, no_return, find_row(no_return)->since);
    if (directive.text.find(".abi_preserve") != std::string_view::npos)
      since(directive, ".abi_preserve", abi);
  }

  void target_options_of_module() {
    for (std::size_t i = 1; i < module_.targets.size(); ++i) {
      const std::string_view option = module_.targets[i];
      const auto named = read_target_name(option);
      const bool known = std::ranges::find(target_options, option) != std::end(target_options);
      if (!known && !named)
        context_.report("unknown-target"_rule, option,
                        fmt::format("unknown target or option {}{}", option,
                                    nearest_hint(option, target_options)));
      if (option == "map_f64_to_f32" && !lacks_doubles(i))
        context_.report("target-support"_rule, option,
                        "map_f64_to_f32 is legal only for targets up to sm_12");
      if (option == "texmode_unified" && has_option("texmode_independent"))
        context_.report(
            "unknown-target"_rule, option,
            "conflicting texmode_unified and texmode_independent: expected one of them");
    }
    const Version found = context_.target.ptx;
    if (module_.address_size && !(found == Version{}) && found < sized_addresses)
      context_.report("version-support"_rule, module_.target_offset, 7,
                      fmt::format(".address_size requires PTX {}, the module states {}",
                                  sized_addresses.text(), found.text()));
    if (module_.address_size == 32 && context_.target.arch.sm != 0)
      context_.report(
          "target-support"_rule, module_.target_offset, 7,
          fmt::format("target {} has 64-bit addresses only: expected .address_size 64, found 32",
                      context_.target.arch.text()));
  }

  // Whether the target in front of word `i` of .target has no .f64: the module may then map it.
  bool lacks_doubles(std::size_t i) const {
    constexpr int first_with_doubles = 13;
    const auto target = named_target(std::span(module_.targets).first(i));
    return target && target->older && target->older < first_with_doubles;
  }

  bool has_option(std::string_view option) const {
    return std::ranges::find(module_.targets, option) != module_.targets.end();
  }

  // ---- .maxntid and the like

  void directives_of(const Function& function) {
    NameSet seen;
    for (const std::uint32_t index : function.directives) {
      const Directive& each = module_.directives[index];
      const bool again = !seen.insert(each.name).second;
      if (each.name == ".pragma") pragma(each, Where::Function);
      else if (each.name == ".language") language(each);
      else check(function, each, again);
    }
    for (const auto& [one, other] : exclusive)
      if (seen.contains(one) && seen.contains(other))
        error(function.name,
              fmt::format("conflicting directives of {}: {} and {}; expected one of them",
                          function.name, one, other));
    if (seen.contains(".blocksareclusters") &&
        !(seen.contains(".reqntid") && seen.contains(".reqnctapercluster")))
      error(function.name,
            fmt::format(".blocksareclusters of {} requires .reqntid and .reqnctapercluster",
                        function.name));
    if (seen.contains(no_return) && !function.results.empty())
      error(function.name, fmt::format("{} has results: .noreturn requires none", function.name));
    if (!seen.empty() && function.entry && !function.body)
      error(function.name,
            fmt::format("{} has no body: directives go to its definition", function.name));
  }

  void check(const Function& function, const Directive& directive, bool again) {
    const DirectiveRow* row = find_row(directive.name);
    if (!row || row->kernel != function.entry) return misplaced(function, directive, row);
    if (directive.count < row->least || directive.count > row->most)
      return error(
          directive.name,
          fmt::format("wrong number of values for {}: expected {}{}, found {}", row->name,
                      row->least, row->least == row->most ? "" : fmt::format(" to {}", row->most),
                      directive.count));
    for (const ptx::Operand& each : module_.operands_of(directive))
      if (each.value > UINT32_MAX || (row->positive && each.value == 0))
        error(each.text, fmt::format("{} is out of range: expected 1 to {}, found {}", row->name,
                                     UINT32_MAX, each.text));
    if (directive.name == ".abi_preserve" && module_.operands_of(directive)[0].value > 255)
      error(directive.name, ".abi_preserve exceeds the 255 registers of a thread");
    if (again && row->once)
      error(directive.name, fmt::format("{} is repeated: expected it once", row->name));
    since(directive, row->name, row->since);
  }

  // .language 5, .language "Fortran": what the function was written in.
  void language(const Directive& directive) {
    since(directive, directive.name, {{9, 2}, 10});
    if (directive.count == 0)
      error(directive.name, fmt::format(".language has no value: expected 0 to {}, or a name",
                                        std::size(languages) - 1));
    for (const ptx::Operand& each : module_.operands_of(directive)) {
      const bool named = each.kind == ptx::OperandKind::String;
      const std::string_view name = named ? each.text.substr(1, each.text.size() - 2) : "";
      const auto same = [&](std::string_view other) {
        return std::ranges::equal(name, other, {}, [](char c) { return std::tolower(c); });
      };
      if (named ? std::ranges::any_of(languages, same) : each.value < std::size(languages))
        continue;
      error(each.text, fmt::format("unknown language {}: expected 0 to {}, or a name such as "
                                   "\"CUDA C++\" or \"Fortran\"",
                                   each.text, std::size(languages) - 1));
    }
  }

  void misplaced(const Function& function, const Directive& directive, const DirectiveRow* row) {
    if (row)
      return error(directive.name,
                   fmt::format("{} applies to {}, {} is a {}", row->name,
                               row->kernel ? "kernels (.entry)" : "functions (.func)",
                               function.name, function.entry ? "kernel" : "function"));
    std::vector<std::string_view> names;
    for (const DirectiveRow& each : rows)
      if (each.kernel == function.entry) names.push_back(each.name);
    context_.report(
        "unknown-directive"_rule, directive.name,
        fmt::format("unexpected directive {} of a {}{}", directive.name,
                    function.entry ? "kernel" : "function", nearest_hint(directive.name, names)));
  }

  void since(const Directive& directive, std::string_view what, const Since& since) {
    const Target& target = context_.target;
    if (target.arch.sm == 0 || since.has(target)) return;
    const bool arch = !since.has(target.arch);
    context_.report(arch ? "target-support"_rule : "version-support"_rule, directive.offset,
                    directive.name.size(),
                    fmt::format("{} requires sm_{} and PTX {}, the module states {} and {}", what,
                                since.sm, since.ptx.text(), target.arch.text(), target.ptx.text()));
  }

  void error(std::string_view at, std::string message) {
    context_.report("function-directive"_rule, at, std::move(message));
  }

  // ---- .alias name, function;

  void alias(const Directive& directive) {
    since(directive, directive.name, {{6, 3}, 30});
    if (directive.count != 2)
      return alias_error(
          directive.name,
          fmt::format("wrong number of names: .alias expects 2, found {}", directive.count));
    const auto names = module_.operands_of(directive);
    const Function* alias = alias_part(names[0].text);
    const Function* of = alias_part(names[1].text);
    if (!alias || !of) return;
    if (alias->name == of->name)
      return alias_error(names[0].text, fmt::format("{} is an alias of itself", alias->name));
    if (body_of(alias->name))
      return alias_error(names[0].text,
                         fmt::format("{} has a body: expected a declaration alone", alias->name));
    if (!aliases_.insert(alias->name).second)
      return alias_error(names[0].text, fmt::format("{} already is an alias", alias->name));
    if (of->linkage == ".weak" || of->linkage == ".extern" || aliases_.contains(of->name))
      return alias_error(
          names[1].text,
          fmt::format(
              "{} is {}: expected a function with a body that is .visible or local to this module",
              of->name, aliases_.contains(of->name) ? "an alias" : of->linkage));
    if (const std::string difference = differ(*alias, *of); !difference.empty())
      alias_error(names[0].text,
                  fmt::format("{} and {} differ in {}", alias->name, of->name, difference));
  }

  const Function* alias_part(std::string_view name) {
    const auto found = functions_.find(name);
    if (found == functions_.end()) {
      alias_error(
          name,
          variables_.contains(name)
              ? fmt::format("{} is a variable: expected a function", name)
              : fmt::format(
                    "{} is undeclared: expected a function declared before .alias, as in .func {};",
                    name, name));
      return nullptr;
    }
    const Function* function = found->second.front();
    if (!function->entry) return function;
    alias_error(name, fmt::format("{} is a kernel: expected a function (.func)", name));
    return nullptr;
  }

  // The definition, anywhere in the module.
  const Function* body_of(std::string_view name) const {
    const Function* found = module_.function(name);
    return found && found->body ? found : nullptr;
  }

  std::string differ(const Function& x, const Function& y) const {
    if (states(module_, x, no_return) != states(module_, y, no_return))
      return std::string(no_return);
    return difference(FunctionType(module_, x), FunctionType(module_, y));
  }

  void alias_error(std::string_view at, std::string message) {
    context_.report("alias"_rule, at, std::move(message));
  }

  // ---- .file

  void file(const Directive& directive) {
    if (directive.count == 0) return;
    const ptx::Operand& number = module_.operands_of(directive)[0];
    if (!files_.insert(number.value).second)
      context_.report("redefined-name"_rule, number.text,
                      fmt::format("file number {} is already used", number.text));
  }

  // ---- .pragma "nounroll";

  void pragma(const Directive& directive, Where where) {
    for (const ptx::Operand& each : module_.operands_of(directive)) {
      const std::string_view text = each.text.substr(1, each.text.size() - 2);
      const std::string_view name = text.substr(0, text.find(' '));
      const auto* row = std::ranges::find(pragmas, name, &PragmaRow::name);
      if (row == std::end(pragmas) || (row->value == PragmaValue::None && text != name))
        unknown_pragma(each.text, name, where);
      else if (row->in_function && where != Where::Body)
        error(each.text, fmt::format("{} outside a function: expected it in a body", each.text));
      else pragma(directive, each.text, *row, text.substr(std::min(name.size() + 1, text.size())));
    }
  }

  void pragma(const Directive& directive, std::string_view at, const PragmaRow& row,
              std::string_view value) {
    since(directive, row.name, row.since);
    const bool needs = row.value == PragmaValue::Integer || row.value == PragmaValue::Positive;
    const std::string_view what =
        row.value == PragmaValue::Positive ? "a positive number" : "an integer";
    if (!needs || is_value(value, row.value)) return;
    error(at, value.empty()
                  ? fmt::format("{} has no value: expected {} after {}", at, what, row.name)
                  : fmt::format("wrong value of {}: expected {}, found {}", row.name, what, value));
  }

  void unknown_pragma(std::string_view at, std::string_view name, Where where) {
    std::vector<std::string_view> names;
    for (const PragmaRow& each : pragmas)
      if (where == Where::Body || !each.in_function) names.push_back(each.name);
    const std::string hint = nearest_hint(name, names);
    if (where == Where::Module)
      return error(at, fmt::format("unknown pragma {} of a module{}", at, hint));
    context_.report("unknown-pragma"_rule, at,
                    fmt::format("unknown pragma {}, which the assembler ignores{}", at, hint));
  }

  Context& context_;
  const ptx::Module& module_;
  NameMap<std::vector<const Function*>> functions_;  // so far
  NameSet variables_, aliases_;
  std::unordered_set<std::uint64_t> files_;
};

}  // namespace

void check_directives(Context& context) { DirectiveChecker(context).run(); }

}  // namespace tartan::TARTAN_ABI::verify
