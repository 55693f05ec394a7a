// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/parameters.h"

#include <fmt/format.h>

#include <algorithm>

namespace tartan::verify {
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

Signature::Signature(const ptx::Module& module, const ptx::Function& function) {
  for (const std::uint32_t each : function.results) results.push_back(&module.variables[each]);
  for (const std::uint32_t each : function.params) params.push_back(&module.variables[each]);
}

Signature::Signature(const ptx::Prototype& prototype) {
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

std::string describe(const ptx::Variable& variable) {
  std::string out;
  if (variable.align) out += fmt::format(".align {} ", variable.align);
  if (variable.vector > 1) out += fmt::format(".v{} ", variable.vector);
  out += fmt::format(".{}", name(variable.type));
  if (variable.unsized) return out + "[]";
  return variable.array ? out + fmt::format("[{}]", variable.elements) : out;
}

}  // namespace tartan::verify
