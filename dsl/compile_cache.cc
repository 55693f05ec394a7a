// SPDX-License-Identifier: Apache-2.0
#include "dsl/compile_cache.h"

#include <nlohmann/json.hpp>

#include "compiler/support/build_id.h"
#include "dsl/compiled_json.h"

namespace tartan::inline TARTAN_ABI::detail {
namespace {

using nlohmann::json;

CompiledText text_from(const json& in) {
  const json& registers = in.at("registers");
  return {in.at("ptx"),
          diags_from(in.at("warnings")),
          {registers.at(0), registers.at(1), registers.at(2), registers.at(3)}};
}

template <typename From>
auto held(const Cache& cache, const CacheKey& key, From from)
    -> std::optional<decltype(from(json()))> {
  const auto contents = cache.find(key);
  if (!contents) return std::nullopt;
  try {
    return from(json::from_cbor(*contents));
  } catch (const json::exception&) {
    cache.remove(key);
    return std::nullopt;
  }
}

// What could not be written is among the cache's problems; the result stands without it.
void hold(const Cache& cache, const CacheKey& key, const json& contents) {
  std::string bytes;
  json::to_cbor(contents, bytes);
  (void)cache.store(key, bytes);
}

}  // namespace

CacheKey compile_key(std::string_view kind, std::string_view target) {
  return CacheKey(kind).add("build", build_id()).add("target", target);
}

std::optional<CompiledText> held_text(const Cache& cache, const CacheKey& key) {
  return held(cache, key, text_from);
}
std::optional<Compiled> held_compiled(const Cache& cache, const CacheKey& key) {
  return held(cache, key, compiled_from);
}

void hold(const Cache& cache, const CacheKey& key, const CompiledText& text) {
  const verify::LiveRegisters& need = text.registers;
  hold(cache, key,
       json{{"ptx", text.ptx},
            {"warnings", to_json(text.warnings)},
            {"registers", {need.most, need.line, need.product, need.product_line}}});
}
void hold(const Cache& cache, const CacheKey& key, const Compiled& compiled) {
  hold(cache, key, to_json(compiled));
}

}  // namespace tartan::inline TARTAN_ABI::detail
