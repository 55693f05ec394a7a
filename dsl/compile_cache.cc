// SPDX-License-Identifier: Apache-2.0
#include "dsl/compile_cache.h"

#include <nlohmann/json.hpp>

#include "compiler/support/build_id.h"
#include "compiler/support/packed.h"
#include "compiler/support/step_timer.h"
#include "dsl/compiled_json.h"

namespace tartan::inline TARTAN_ABI::detail {
namespace {

using nlohmann::json;

// Each entry's bulk is the PTX.
CompiledText text_from(const Unpacked& in) {
  const json& registers = in.rest.at("registers");
  return {std::string(in.bulk),
          diags_from(in.rest.at("warnings")),
          {registers.at(0), registers.at(1), registers.at(2), registers.at(3)}};
}

Compiled compiled_of(const Unpacked& in) {
  Compiled out = compiled_from(in.rest);
  out.ptx = in.bulk;
  return out;
}

template <typename From>
auto held(const Cache& cache, const CacheKey& key, From from)
    -> std::optional<decltype(from(Unpacked()))> {
  const StepTimer timer(&StepTimes::cache);
  const auto contents = cache.find(key);
  if (!contents) return std::nullopt;
  try {
    return from(unpack(*contents));
  } catch (const json::exception&) {
    cache.remove(key);
    return std::nullopt;
  }
}

// What could not be written is among the cache's problems; the result stands without it.
void hold(const Cache& cache, const CacheKey& key, std::string_view ptx, const json& rest) {
  (void)cache.store(key, pack(ptx, rest));
}

}  // namespace

CacheKey compile_key(std::string_view kind, std::string_view target) {
  return CacheKey(kind).add("build", build_id()).add("target", target);
}

std::optional<CompiledText> held_text(const Cache& cache, const CacheKey& key) {
  return held(cache, key, text_from);
}
std::optional<Compiled> held_compiled(const Cache& cache, const CacheKey& key) {
  return held(cache, key, compiled_of);
}

void hold(const Cache& cache, const CacheKey& key, const CompiledText& text) {
  const StepTimer timer(&StepTimes::cache);
  const verify::LiveRegisters& need = text.registers;
  hold(cache, key, text.ptx,
       json{{"warnings", to_json(text.warnings)},
            {"registers", {need.most, need.line, need.product, need.product_line}}});
}
void hold(const Cache& cache, const CacheKey& key, const Compiled& compiled) {
  const StepTimer timer(&StepTimes::cache);
  json rest = to_json(compiled);
  rest["ptx"] = "";
  hold(cache, key, compiled.ptx, rest);
}

}  // namespace tartan::inline TARTAN_ABI::detail
