// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ptx/declarations.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

// .b32, .f16x2: any kind of number of that size.
bool untyped(Type type) { return info(type).name[0] == 'b' || type == Type::f16x2; }

int size_of(const ptx::Variable& variable) { return bits(variable.type) * variable.vector; }

bool same_kind(const ptx::Variable& formal, const ptx::Variable& actual) {
  if ((formal.type == Type::pred) != (actual.type == Type::pred)) return false;
  if (untyped(formal.type) || untyped(actual.type)) return true;
  if (formal.array) return formal.type == actual.type;
  return info(formal.type).floating == info(actual.type).floating;
}

}  // namespace

FunctionType::FunctionType(const ptx::Module& module, const ptx::Function& function) {
  for (const std::uint32_t each : function.results) results.push_back(&module.variables[each]);
  for (const std::uint32_t each : function.params) params.push_back(&module.variables[each]);
}

FunctionType::FunctionType(const ptx::Prototype& prototype) {
  for (const ptx::Variable& each : prototype.results) results.push_back(&each);
  for (const ptx::Variable& each : prototype.params) params.push_back(&each);
}

std::uint32_t alignment_of(const ptx::Variable& variable) {
  if (variable.align) return variable.align;
  return static_cast<std::uint32_t>(std::max(1, size_of(variable) / 8));
}

bool same_layout(const ptx::Variable& formal, const ptx::Variable& actual) {
  if (formal.array != actual.array || formal.vector != actual.vector) return false;
  const auto bytes = [](const ptx::Variable& each) {
    return static_cast<std::uint64_t>(size_of(each)) * each.elements;
  };
  if (!formal.unsized && bytes(formal) != bytes(actual)) return false;
  return same_kind(formal, actual) && alignment_of(formal) == alignment_of(actual);
}

bool takes_constant(const ptx::Variable& formal, bool floating) {
  if (formal.array || formal.vector > 1 || formal.type == Type::pred || formal.type == Type::f16x2)
    return false;
  return untyped(formal.type) || info(formal.type).floating == floating;
}

bool unsupported(const ptx::Variable& variable) {
  const TypeInfo& type = info(variable.type);
  const bool kind = type.name[0] == 'u' || type.name[0] == 's';
  return !variable.array && variable.vector == 1 &&
         (variable.type == Type::pred || (kind && type.bits <= 16));
}

std::string difference(const FunctionType& x, const FunctionType& y) {
  const auto compare = [](const std::vector<const ptx::Variable*>& left,
                          const std::vector<const ptx::Variable*>& right,
                          std::string_view what) -> std::string {
    if (left.size() != right.size())
      return fmt::format("the number of {}s: {} and {}", what, left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      const ptx::Variable &a = *left[i], &b = *right[i];
      if (a.space != b.space || a.type != b.type || a.vector != b.vector || a.array != b.array ||
          a.elements != b.elements || alignment_of(a) != alignment_of(b))
        return fmt::format("{} {}: .{} {} and .{} {}", what, i, name(a.space), describe(a),
                           name(b.space), describe(b));
    }
    return {};
  };
  const std::string results = compare(x.results, y.results, "result");
  return results.empty() ? compare(x.params, y.params, "parameter") : results;
}

bool states(const ptx::Module& module, const ptx::Function& function, std::string_view directive) {
  return std::ranges::any_of(function.directives, [&](std::uint32_t index) {
    return module.directives[index].name == directive;
  });
}

std::string describe(const ptx::Variable& variable) {
  std::string out;
  if (variable.align) out += fmt::format(".align {} ", variable.align);
  if (variable.vector > 1) out += fmt::format(".v{} ", variable.vector);
  out += fmt::format(".{}", name(variable.type));
  if (variable.unsized) return out + "[]";
  return variable.array ? out + fmt::format("[{}]", variable.elements) : out;
}

}  // namespace tartan::TARTAN_ABI::verify
