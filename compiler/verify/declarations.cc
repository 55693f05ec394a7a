// SPDX-License-Identifier: Apache-2.0
// Registers, variables and parameters: state space, linkage, type, length and alignment (PTX ISA
// 5).
#include "compiler/ptx/declarations.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/verify/parameters.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using ptx::Variable;

constexpr TypeSet declarable{Type::pred, Type::b8,  Type::b16, Type::b32,   Type::b64, Type::b128,
                             Type::u8,   Type::u16, Type::u32, Type::u64,   Type::s8,  Type::s16,
                             Type::s32,  Type::s64, Type::f16, Type::f16x2, f32,       Type::f64};
constexpr std::uint32_t most_param_alignment = 128;
constexpr Since wide_numbers{{8, 3}, 70}, pairs{{4, 2}, 53}, many_parameters{{8, 1}, 70},
    common{{5, 0}, 10}, unified{{8, 1}, 90}, open_list{{6, 0}, 30};

enum class Where { Module, Body, Kernel, Function };  // the latter two: parameters

class DeclarationChecker {
 public:
  explicit DeclarationChecker(Context& context) : context_(context), module_(context.module) {}

  void run() {
    context_.passes_registers = std::ranges::any_of(
        module_.functions, [](const ptx::Function& each) { return each.results.size() > 1; });
    for (const ptx::Item& item : module_.items) {
      if (item.kind == ptx::ItemKind::Variable)
        variable(module_.variables[item.index], Where::Module);
      if (item.kind == ptx::ItemKind::Function) function(module_.functions[item.index]);
    }
    constants();
    for (const ptx::Prototype& each : module_.prototypes)
      prototype(FunctionType(each), each.returns);
  }

 private:
  void function(const ptx::Function& function) {
    const FunctionType signature(module_, function);
    for (const Variable* each : signature.results) variable(*each, Where::Function);
    for (const Variable* each : signature.params) {
      variable(*each, function.entry ? Where::Kernel : Where::Function);
      if (each->unsized && each != signature.params.back())
        error(each->name,
              fmt::format("{} has no length: only the last parameter may be declared {}[]",
                          each->name, each->name));
    }
    several_results(signature);
    if (function.body && !function.entry) small_numbers(signature);
    if (function.entry) parameter_space(function, signature);
    for (const ptx::Statement& statement : function.statements) {
      if (statement.kind == ptx::StatementKind::Variable)
        variable(module_.variables[statement.index], Where::Body);
      if (statement.kind == ptx::StatementKind::Registers)
        registers(module_.registers[statement.index]);
    }
  }

  // Constant memory has 64 KiB.
  void constants() {
    constexpr std::uint64_t most = 65536;
    std::uint64_t size = 0;
    for (const ptx::Item& item : module_.items) {
      if (item.kind != ptx::ItemKind::Variable) continue;
      const Variable& each = module_.variables[item.index];
      if (each.space != StateSpace::constant || each.linkage == ".extern") continue;
      const std::uint64_t align = alignment_of(each), before = size;
      size = (size + align - 1) / align * align + bytes_of(each) * each.numbered.value_or(1);
      if (before <= most && size > most)
        error(each.name,
              fmt::format("{} exceeds constant memory: expected at most {} bytes, found {}",
                          each.name, most, size));
    }
  }

  static std::uint64_t bytes_of(const Variable& variable) {
    return static_cast<std::uint64_t>(std::max(bits(variable.type), 8)) / 8 * variable.vector *
           variable.elements;
  }

  void prototype(const FunctionType& signature, bool returns) {
    for (const Variable* each : signature.results) variable(*each, Where::Function);
    for (const Variable* each : signature.params) variable(*each, Where::Function);
    several_results(signature);
    if (!returns && !signature.results.empty())
      error(signature.results[0]->name, "a prototype with results cannot be .noreturn");
  }

  void small_numbers(const FunctionType& signature) {
    if (context_.passes_registers) return;
    for (const auto* list : {&signature.results, &signature.params})
      for (const Variable* each : *list)
        if (unsupported(*each))
          error(each->name,
                fmt::format(
                    "functions cannot pass scalars of 8 or 16 bits: expected .b32, found .{} {}",
                    tartan::name(each->type), each->name));
  }

  void several_results(const FunctionType& signature) {
    if (signature.results.size() < 2) return;
    for (const Variable* each : signature.results)
      if (each->space != StateSpace::reg)
        return error(each->name, fmt::format("{} is one of several results: expected .reg, found "
                                             ".{}; use one .param array for all of them",
                                             each->name, tartan::name(each->space)));
  }

  // Bytes of a kernel's parameters.
  void parameter_space(const ptx::Function& kernel, const FunctionType& signature) {
    constexpr std::uint64_t many = 32764, few = 4352;
    const Target& target = context_.target;
    const bool unknown = target.arch.sm == 0;
    const std::uint64_t most = unknown || many_parameters.has(target) ? many : few;
    std::uint64_t size = 0;
    for (const Variable* each : signature.params) {
      const std::uint64_t align = alignment_of(*each);
      size = (size + align - 1) / align * align + bytes_of(*each);
    }
    if (size > most)
      error(kernel.name,
            fmt::format("the parameters of {} are too large: expected at most {} bytes, found {}{}",
                        kernel.name, most, size,
                        size > many || most == many
                            ? ""
                            : fmt::format("; PTX {} with sm_{} or newer allows {}",
                                          many_parameters.ptx.text(), many_parameters.sm, many)));
  }

  void registers(const ptx::Registers& registers) {
    type(registers.name, registers.type, registers.vector, StateSpace::reg);
  }

  void variable(const Variable& variable, Where where) {
    if (!space(variable, where)) return;
    if (variable.type == Type::none) opaque(variable, where);
    else type(variable.name, variable.type, variable.vector, variable.space);
    if (variable.linkage == ".common" && variable.space != StateSpace::global)
      error(variable.name, fmt::format("{} is .common: expected .global, found .{}", variable.name,
                                       tartan::name(variable.space)));
    length(variable, where);
    if (where == Where::Body && variable.space == StateSpace::param &&
        variable.align > most_param_alignment)
      error(variable.name,
            fmt::format("the alignment of {} is too large: expected at most {}, found {}",
                        variable.name, most_param_alignment, variable.align));
    if (variable.linkage == ".common") since(variable.name, ".common", common);
    if (where == Where::Function && variable.unsized) since(variable.name, "name[]", open_list);
    if (variable.attributes.find(".unified") != std::string_view::npos)
      since(variable.name, ".unified", unified);
    if (variable.attributes.starts_with(".attribute") && variable.space != StateSpace::global)
      error(variable.name,
            fmt::format("{} has an attribute of global memory: expected .global, found .{}",
                        variable.name, tartan::name(variable.space)));
  }

  // False: errors were reported.
  bool space(const Variable& variable, Where where) {
    std::string_view expected;
    const StateSpace space = variable.space;
    const bool param = space == StateSpace::param, reg = space == StateSpace::reg;
    const bool global = context_.target.ptx >= Version{3, 0};  // early PTX had it outside functions
    if (where == Where::Module && (param || (global && (reg || space == StateSpace::local))))
      expected = ".global, .const or .shared";
    if (where == Where::Kernel && !param) expected = ".param";
    if (where == Where::Function && !param && !reg) expected = ".param or .reg";
    if (expected.empty()) return true;
    constexpr std::string_view places[] = {"at module scope", "in a function's body",
                                           "as a parameter of a kernel",
                                           "as a parameter of a function"};
    error(variable.name,
          fmt::format("{} cannot be declared {}: expected {}, found .{}", variable.name,
                      places[static_cast<int>(where)], expected, tartan::name(space)));
    return false;
  }

  void type(std::string_view name, Type type, int vector, StateSpace space) {
    const bool in_register = space == StateSpace::reg;
    if (!declarable.has(type))
      return error(name, fmt::format("{} has an instruction type: expected .b{}, found .{}", name,
                                     nearest_size(type), tartan::name(type)));
    if (type == Type::pred && (!in_register || vector > 1))
      return error(name, fmt::format("{} is a predicate: expected one .reg, found .{}{}", name,
                                     tartan::name(space), vector > 1 ? " with a length" : ""));
    if (vector == 8 || vector * bits(type) > 128)
      return error(
          name,
          fmt::format(
              "the vector {} is too long: expected at most 128 bits and 4 elements, found .v{} .{}",
              name, vector, tartan::name(type)));
    if (space == StateSpace::param && (vector > 1 || type == Type::f16x2))
      return error(name, fmt::format("the parameter {} is a vector: expected .align {} .b8[{}], "
                                     "found .{}",
                                     name, vector * bits(type) / 8, vector * bits(type) / 8,
                                     tartan::name(type)));
    if (type == Type::b128) since(name, ".b128", wide_numbers);
    if (type == Type::f16x2) since(name, ".f16x2", pairs);
  }

  void since(std::string_view at, std::string_view what, const Since& since) {
    const Target& target = context_.target;
    if (target.arch.sm == 0 || since.has(target)) return;
    context_.report(since.has(target.arch) ? "version-support"_rule : "target-support"_rule, at,
                    fmt::format("{} requires sm_{} and PTX {}, the module states {} and {}", what,
                                since.sm, since.ptx.text(), target.arch.text(), target.ptx.text()));
  }

  static int nearest_size(Type type) {
    for (const int size : {8, 16, 32, 64})
      if (bits(type) <= size) return size;
    return 128;
  }

  // .texref, .samplerref, .surfref
  void opaque(const Variable& variable, Where where) {
    const bool module = where == Where::Module && variable.space == StateSpace::global;
    if (!module && where != Where::Kernel)
      error(variable.name, fmt::format("{} is {}: expected .global at module scope, or a parameter "
                                       "of a kernel",
                                       variable.name, variable.attributes));
    const bool sampler = variable.attributes.ends_with(".samplerref");
    if (sampler &&
        std::ranges::find(module_.targets, "texmode_independent") == module_.targets.end())
      error(variable.name, fmt::format("{} is a sampler: expected .target {}, texmode_independent",
                                       variable.name, context_.target.arch.text()));
  }

  void length(const Variable& variable, Where where) {
    if (variable.array && variable.space == StateSpace::reg)
      return error(
          variable.name,
          fmt::format("{} is an array of registers: expected .reg .{} {}<{}>", variable.name,
                      tartan::name(variable.type), variable.name, variable.elements));
    const bool nothing = (variable.unsized && !variable.initialiser) || variable.elements == 0;
    if (!nothing || !variable.array || variable.linkage == ".extern" || where == Where::Function)
      return;
    error(variable.name,
          fmt::format("{} has no length: expected {}[1] or more, found {}{}", variable.name,
                      variable.name, variable.name, variable.dimensions));
  }

  void error(std::string_view at, std::string message) {
    context_.report("declaration"_rule, at, std::move(message));
  }

  Context& context_;
  const ptx::Module& module_;
};

}  // namespace

void check_declarations(Context& context) { DeclarationChecker(context).run(); }

}  // namespace tartan::TARTAN_ABI::verify
