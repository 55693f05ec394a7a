// SPDX-License-Identifier: Apache-2.0
// compiler/ir/function.h - a kernel as it is described: operations in regions, before any of
// them is LLVM's. Not installed.
//
// FunctionBuilder records it, call by call; LlvmBuilder makes LLVM IR of it. Control flow is
// structured: the body of a loop or of a condition is a region. Values are defined once, and an
// operand names the value and the type that its user took it for.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/operation.h"
#include "tartan/ir/value.h"
#include "tartan/isa/form.h"
#include "tartan/isa/target.h"

namespace tartan::TARTAN_ABI::ir {

struct Param {
  std::string name;
  StateSpace space = StateSpace::none;  // global: a pointer parameter
  Type type = Type::none;               // not none: a scalar parameter
};

struct LaunchBounds {
  int block[3] = {0, 1, 1};  // threads: .reqntid; 0: not stated
  int min_blocks = 0;        // blocks per multiprocessor: .minnctapersm
  int max_registers = 0;     // .maxnreg
  int cluster = 1;           // blocks along x: .reqnctapercluster (sm_90 on)
};

/// A value as an operation takes or makes it: a number, an address or a variable.
struct Operand {
  int id = -1;                          // -1: an operand that is left out
  Type type = Type::none;               // of a number or a variable
  StateSpace space = StateSpace::none;  // of an address

  Operand() = default;
  Operand(Value value) : id(value.id), type(value.type) {}
  Operand(Variable variable) : id(variable.id), type(variable.type) {}
  Operand(Pointer pointer) : id(pointer.id), space(pointer.space) {}
};

/// A part of one of the function's lists.
struct Slice {
  std::uint32_t first = 0, count = 0;
};

/// One call of a FunctionBuilder.
struct Operation {
  OperationKind kind = {};
  Type type = Type::none;     // that the call names: of what is loaded, converted to, ...
  std::uint32_t place = 0;    // in Function::places
  Slice operands, results;    // in Function::operands, ::results
  Slice numbers;              // in Function::numbers: constants, counts, enumerations
  Slice texts;                // in Function::texts
  Slice regions;              // in Function::regions
  std::uint32_t form = none;  // in Function::forms, of matrix instructions

  static constexpr std::uint32_t none = 0xffffffff;
};

/// Operations in the order in which they are executed, by their places in Function::operations.
struct Region {
  std::vector<std::uint32_t> operations;
  std::vector<Operand> arguments;  // of a loop: its index
  Operand result;                  // of a condition
  std::uint32_t end = 0;           // the C++ place at its end
};

struct Function {
  std::string name;
  Target target;
  LaunchBounds bounds;
  std::vector<Param> params;

  std::vector<Operation> operations;
  std::vector<Region> regions;
  std::vector<Operand> operands, results;
  std::vector<std::int64_t> numbers;
  std::vector<std::string> texts;
  std::vector<isa::Form> forms;
  std::vector<std::source_location> places;  // the first one is no place
  int values = 0;                            // ids in use
  // What `shared` declares becomes parts of one variable of so many bytes; none: it stays apart.
  std::optional<std::int64_t> dynamic_bytes;

  /// The first region has what has no place in the code: parameters, constants, shared memory.
  static constexpr std::uint32_t frame = 0, body = 1;

  template <typename Element>
  static std::span<const Element> part(const std::vector<Element>& of, Slice slice) {
    return std::span(of).subspan(slice.first, slice.count);
  }
};

}  // namespace tartan::TARTAN_ABI::ir
