// SPDX-License-Identifier: Apache-2.0
// dsl/compile/compile_cache.h - what compile() finds in a cache and puts there.
#pragma once

#include <optional>
#include <string>

#include "compiler/verify/live_registers.h"
#include "tartan/cache.h"
#include "tartan/dsl/kernel.h"

namespace tartan::TARTAN_ABI::detail {

/// The PTX of a kernel, what the checker says of it, and the registers that it needs.
struct CompiledText {
  std::string ptx;
  Diags warnings;
  verify::LiveRegisters registers;
};

/// The start of a key: this build of the library, and the target.
CacheKey compile_key(std::string_view kind, std::string_view target);

/// Nothing if the entry is not there; one that is no such thing is deleted.
std::optional<CompiledText> held_text(const Cache& cache, const CacheKey& key);
std::optional<Compiled> held_compiled(const Cache& cache, const CacheKey& key);

void hold(const Cache& cache, const CacheKey& key, const CompiledText& text);
void hold(const Cache& cache, const CacheKey& key, const Compiled& compiled);

/// All of it, as an entry of the cache has it: equal for equals.
std::string entry_of(const Compiled& compiled);

}  // namespace tartan::TARTAN_ABI::detail
