// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/decode/symbols.h - variables by name, and where they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "runtime/emulator/machine/program.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::emulator {

/// What the names of variables stand for. A row, `a<3>`, has the names a0, a1 and a2; `a` itself is
/// none of them.
template <typename T>
class VariableNames {
 public:
  struct Found {
    const T* value = nullptr;
    std::uint32_t number = 0;  // in its row
  };

  void add(const ptx::Variable& variable, T value) {
    (variable.numbered ? rows_ : plain_)
        .insert_or_assign(variable.name, Named{std::move(value), variable.numbered.value_or(1)});
  }

  Found find(std::string_view name) const {
    if (const auto found = plain_.find(name); found != plain_.end()) return {&found->second.value};
    const auto numbered = rows_.empty() ? std::nullopt : ptx::numbered_name(name);
    if (!numbered || !numbered->plain) return {};
    const auto row = rows_.find(numbered->row);
    if (row == rows_.end() || numbered->number >= row->second.count) return {};
    return {&row->second.value, numbered->number};
  }

 private:
  struct Named {
    T value;
    std::uint32_t count = 1;
  };
  std::unordered_map<std::string_view, Named> plain_, rows_;
};

/// A variable, and where it is; of a row, the first one.
struct Symbol {
  Window window = Window::global;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  bool dynamic = false;  // extern shared: behind everything static
  bool framed = false;   // local: the address counts from the start of the function's frame
};

class Symbols {
 public:
  void add(const ptx::Variable& variable, const Symbol& symbol);
  std::optional<Symbol> find(std::string_view name) const;

 private:
  struct Placed {
    Symbol first;
    std::uint64_t step = 0;  // to the next of its row
  };
  VariableNames<Placed> names_;
};

/// Bytes of a variable, and of all variables of its row: each begins where its alignment wants it.
std::uint64_t size_of(const ptx::Variable& variable);
std::uint64_t size_with_row(const ptx::Variable& variable);
std::uint32_t alignment_of(const ptx::Variable& variable);

}  // namespace tartan::TARTAN_ABI::emulator
