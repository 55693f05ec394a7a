// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_signature.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/ptx/kernel_directives.h"
#include "compiler/support/demangle.h"
#include "compiler/support/nearest.h"
#include "runtime/element.h"

namespace tartan::tools {
namespace {

using Kind = KernelParameter::Kind;

struct SourceType {
  std::string_view text;
  Type type;
};
constexpr SourceType source_types[] = {
    {"float", Type::f32},
    {"double", Type::f64},
    {"int", Type::s32},
    {"unsigned int", Type::u32},
    {"long", Type::s64},
    {"unsigned long", Type::u64},
    {"long long", Type::s64},
    {"unsigned long long", Type::u64},
    {"short", Type::s16},
    {"unsigned short", Type::u16},
    {"signed char", Type::s8},
    {"unsigned char", Type::u8},
    {"char", Type::s8},
    {"bool", Type::u8},
    {"__half", Type::f16},
    {"__nv_bfloat16", Type::bf16},
    {"__nv_fp8_e4m3", Type::e4m3},
    {"__nv_fp8_e5m2", Type::e5m2},
};

std::string_view without_qualifiers(std::string_view text) {
  for (const std::string_view word : {" const", " volatile", " __restrict__", " __restrict", " "})
    if (text.ends_with(word)) return without_qualifiers(text.substr(0, text.size() - word.size()));
  return text;
}

// ---- What a kernel does with its parameters.

struct Use {
  bool accessed = false, read = false, written = false;
  Type element = Type::none;
};

// Follows the parameters' values through moves, casts and sums, without an order: an address of
// one of them leads there.
class Uses {
 public:
  Uses(const ptx::Module& module, const ptx::Function& kernel) : module_(module) {
    for (std::size_t i = 0; i < kernel.params.size(); ++i)
      params_.emplace(module.variables[kernel.params[i]].name, i);
    all_.resize(kernel.params.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (const ptx::Statement& each : kernel.statements)
        if (each.kind == ptx::StatementKind::Instruction)
          changed |= follow(module.instructions[each.index]);
    }
    for (const ptx::Statement& each : kernel.statements)
      if (each.kind == ptx::StatementKind::Instruction) look(module.instructions[each.index]);
  }

  const std::vector<Use>& all() const { return all_; }

 private:
  using Set = std::vector<std::size_t>;  // of parameters, sorted

  const Set* of(const ptx::Operand& operand) const {
    const auto found = values_.find(operand.text);
    return operand.kind == ptx::OperandKind::Name && found != values_.end() ? &found->second
                                                                            : nullptr;
  }

  // Whether the instruction's result has become known to come from more parameters.
  bool follow(const ptx::Instruction& instruction) {
    const auto operands = module_.operands_of(instruction);
    if (operands.size() < 2 || operands[0].kind != ptx::OperandKind::Name) return false;
    const isa::Opcode opcode = module_.spelling(instruction).opcode;
    if (const auto param = parameter_at(operands[1]); opcode == isa::Opcode::ld)
      return param && add(operands[0].text, {*param});
    constexpr isa::Opcode passing[] = {isa::Opcode::mov, isa::Opcode::cvta, isa::Opcode::add,
                                       isa::Opcode::sub, isa::Opcode::mad,  isa::Opcode::selp,
                                       isa::Opcode::cvt};
    if (std::ranges::find(passing, opcode) == std::end(passing)) return false;
    // Of a product and a sum, the sum is the address.
    const std::size_t first = opcode == isa::Opcode::mad ? operands.size() - 1 : 1;
    bool changed = false;
    for (std::size_t i = first; i < operands.size(); ++i)
      if (const Set* set = of(operands[i])) changed |= add(operands[0].text, Set(*set));
    return changed;
  }

  bool add(std::string_view name, const Set& more) {
    Set& set = values_[name];
    const std::size_t before = set.size();
    for (const std::size_t each : more)
      if (!std::ranges::binary_search(set, each))
        set.insert(std::ranges::upper_bound(set, each), each);
    return set.size() != before;
  }

  // The parameter whose place in the parameter space is read: [name].
  std::optional<std::size_t> parameter_at(const ptx::Operand& operand) const {
    const auto children = module_.children(operand);
    if (operand.kind != ptx::OperandKind::Address || children.empty()) return std::nullopt;
    const auto found = params_.find(children[0].text);
    return found == params_.end() ? std::nullopt : std::optional(found->second);
  }

  void look(const ptx::Instruction& instruction) {
    const auto operands = module_.operands_of(instruction);
    const isa::Spelling& spelling = module_.spelling(instruction);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (spelling.opcode == isa::Opcode::cvta && i == 1)
        for (const std::size_t param : params_of(operands[i])) all_[param].accessed = true;
      const auto children = module_.children(operands[i]);
      if (operands[i].kind == ptx::OperandKind::Address && !children.empty())
        for (const std::size_t param : params_of(children[0])) use(all_[param], spelling);
    }
  }

  Set params_of(const ptx::Operand& operand) const {
    const Set* set = of(operand);
    return set ? *set : Set();
  }

  static void use(Use& use, const isa::Spelling& spelling) {
    const isa::Opcode opcode = spelling.opcode;
    const bool stores = opcode == isa::Opcode::st;
    const bool loads = opcode == isa::Opcode::ld || opcode == isa::Opcode::ldu;
    use.accessed = true;
    use.written |= !loads;
    use.read |= !stores;
    const bool plain = stores || loads || opcode == isa::Opcode::atom || opcode == isa::Opcode::red;
    if (plain && element_size(spelling.type()) > 0 &&
        (use.element == Type::none || is_bits(use.element)))
      use.element = spelling.type();
  }

  const ptx::Module& module_;
  std::unordered_map<std::string_view, std::size_t> params_;
  std::unordered_map<std::string_view, Set> values_;  // by register
  std::vector<Use> all_;
};

// ---- Signatures.

KernelParameter parameter_of(const ptx::Variable& variable, std::string_view kernel, const Use& use,
                             const std::string& source_type) {
  KernelParameter out{.ptx_name = std::string(variable.name), .source_type = source_type};
  out.name = out.ptx_name;
  if (variable.name.starts_with(kernel) &&
      variable.name.substr(kernel.size()).starts_with("_param_"))
    out.name = variable.name.substr(kernel.size() + 1);
  out.bytes = element_size(variable.type) * variable.elements * variable.vector;
  const std::string_view source = without_qualifiers(source_type);
  const bool is_pointer = source.ends_with('*') || source.ends_with('&') ||
                          variable.attributes.find(".ptr") != std::string_view::npos ||
                          use.accessed;
  if (!variable.array && element_size(variable.type) == 8 && is_pointer) {
    out.kind = Kind::pointer;
    if (source.ends_with('*') || source.ends_with('&'))
      out.element = type_of_source(source.substr(0, source.size() - 1));
    if (out.element == Type::none) out.element = use.element;
    const bool known = use.read || use.written;
    out.read = !known || use.read;
    out.written = use.written;
    return out;
  }
  if (variable.array) {
    const Type narrow = type_of_source(source);  // __half is an array of two bytes
    const bool is_narrow = narrow != Type::none && element_size(narrow) == out.bytes;
    out.kind = is_narrow ? Kind::scalar : Kind::bytes;
    if (is_narrow) out.type = narrow;
    return out;
  }
  out.type = variable.type;
  const Type source_scalar = type_of_source(source);
  if (source_scalar != Type::none && element_size(source_scalar) == out.bytes)
    out.type = source_scalar;
  const bool maybe = out.bytes == 8 && !info(out.type).floating && source_scalar == Type::none;
  out.kind = maybe ? Kind::word : Kind::scalar;
  return out;
}

KernelSignature signature_of(const ptx::Module& module, const ptx::Function& kernel) {
  KernelSignature out{.ptx_name = std::string(kernel.name),
                      .name = detail::demangled_name(kernel.name)};
  const std::vector<std::string> sources = detail::demangled_parameters(kernel.name);
  const Uses uses(module, kernel);
  for (std::size_t i = 0; i < kernel.params.size(); ++i)
    out.parameters.push_back(
        parameter_of(module.variables[kernel.params[i]], kernel.name, uses.all()[i],
                     sources.size() == kernel.params.size() ? sources[i] : std::string()));
  if (ptx::find_directive(module, kernel, ".reqntid")) {
    const ptx::Extents extents = ptx::extents_of(module, kernel, ".reqntid");
    out.block = {extents[0], extents[1], extents[2]};
  }
  return out;
}

// ---- Names.

// "a::scale<float>" -> "scale".
std::string base_name(std::string_view name) {
  std::size_t depth = 0, begin = 0, end = name.size();
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' && depth++ == 0) end = i;
    if (name[i] == '>') --depth;
    if (depth == 0 && name.substr(i).starts_with("::")) begin = i + 2, end = name.size();
  }
  return std::string(name.substr(begin, end - begin));
}

// The kernels of a name, by the strictest reading that finds one.
std::vector<std::string_view> named(const std::vector<std::string_view>& kernels,
                                    const std::string& name) {
  const auto same = [&](auto&& text_of) {
    std::vector<std::string_view> out;
    for (const std::string_view each : kernels)
      if (text_of(each) == name) out.push_back(each);
    return out;
  };
  auto out = same([](std::string_view each) { return std::string(each); });
  if (out.empty()) out = same([](std::string_view each) { return detail::demangled(each); });
  if (out.empty()) out = same([](std::string_view each) { return detail::demangled_name(each); });
  if (out.empty())
    out = same([](std::string_view each) { return base_name(detail::demangled_name(each)); });
  return out;
}

std::string list_of(const std::vector<std::string_view>& kernels) {
  constexpr std::size_t most = 20;
  std::vector<std::string> texts;
  for (const std::string_view each : kernels) {
    if (texts.size() == most) {
      texts.push_back(fmt::format("{} more", kernels.size() - most));
      break;
    }
    texts.push_back(detail::demangled(each));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Type type_of_source(std::string_view text) {
  text = without_qualifiers(text);
  for (const SourceType& each : source_types)
    if (each.text == text) return each.type;
  return Type::none;
}

std::string KernelParameter::text() const {
  if (!source_type.empty()) return fmt::format("{}: {}", name, source_type);
  switch (kind) {
    case Kind::pointer:
      return element == Type::none ? fmt::format("{}: pointer", name)
                                   : fmt::format("{}: pointer to {}", name, tartan::name(element));
    case Kind::bytes: return fmt::format("{}: {} bytes", name, bytes);
    default: return fmt::format("{}: {}", name, tartan::name(type));
  }
}

std::string KernelParameter::expected() const {
  switch (kind) {
    case Kind::pointer:
      return element == Type::none ? std::string("an array")
                                   : fmt::format("an array of {}", tartan::name(element));
    case Kind::word: return fmt::format("a number of {}, or an array", tartan::name(type));
    case Kind::bytes: return fmt::format("a file of {} bytes, or bytes:HEX", bytes);
    default: return fmt::format("a number of {}", tartan::name(type));
  }
}

std::string KernelSignature::text() const {
  std::vector<std::string> texts;
  for (const KernelParameter& each : parameters) texts.push_back(each.text());
  return fmt::format("{}({})", name, fmt::join(texts, ", "));
}

Result<KernelSignature> find_kernel(const ptx::Module& module, const std::string& name) {
  const std::vector<std::string_view> kernels = module.kernels();
  const std::string& file = module.source->name();
  if (kernels.empty())
    return Diags::one("unknown-kernel"_rule, {file, 0, 0},
                      "the module has no kernel (.entry with a body)");
  if (name.empty() && kernels.size() > 1)
    return Diags::one("usage"_rule, {file, 0, 0},
                      fmt::format("--kernel is required: the module has {} kernels, {}",
                                  kernels.size(), list_of(kernels)));
  const auto found = name.empty() ? kernels : named(kernels, name);
  if (found.size() == 1) return signature_of(module, *module.function(found[0]));
  if (found.size() > 1)
    return Diags::one("unknown-kernel"_rule, {file, 0, 0},
                      fmt::format("--kernel {}: expected one kernel, found {}: {}", name,
                                  found.size(), list_of(found)));
  std::vector<std::string> bases;
  for (const std::string_view each : kernels)
    bases.push_back(base_name(detail::demangled_name(each)));
  const std::vector<std::string_view> views(bases.begin(), bases.end());
  return Diags::one("unknown-kernel"_rule, {file, 0, 0},
                    fmt::format("--kernel {}: unknown kernel; the module has {}{}", name,
                                list_of(kernels), nearest_hint(name, views)));
}

}  // namespace tartan::tools
