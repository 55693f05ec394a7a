// SPDX-License-Identifier: Apache-2.0
#include "dsl/compile/compile_cache.h"

#include "compiler/support/build_id.h"
#include "compiler/support/record.h"
#include "compiler/support/step_timer.h"

namespace tartan::TARTAN_ABI {

// Argument-dependent lookup finds those of tartan's structs here.
static auto members_of(Place& x) {
  auto& [file, line, column] = x;
  return std::tie(file, line, column);
}
static auto members_of(Arch& x) {
  auto& [sm, suffix] = x;
  return std::tie(sm, suffix);
}
static auto members_of(Version& x) {
  auto& [major, minor] = x;
  return std::tie(major, minor);
}
static auto members_of(Target& x) {
  auto& [arch, ptx] = x;
  return std::tie(arch, ptx);
}
static auto members_of(MapNumber& x) {
  auto& [value, params, divisor] = x;
  return std::tie(value, params, divisor);
}
static auto members_of(MatrixSpan& x) {
  auto& [rows, cols, row_stride, col_stride] = x;
  return std::tie(rows, cols, row_stride, col_stride);
}
static auto members_of(CompiledParam& x) {
  auto& [name, type, pointer, elements, span, multiple_of, reads, writes] = x;
  return std::tie(name, type, pointer, elements, span, multiple_of, reads, writes);
}
static auto members_of(CompiledMap::Pixels& x) {
  auto& [lower, upper, steps] = x;
  return std::tie(lower, upper, steps);
}
static auto members_of(CompiledMap& x) {
  auto& [name, of, type, extents, strides, box, swizzle, pixels] = x;
  return std::tie(name, of, type, extents, strides, box, swizzle, pixels);
}
static auto members_of(LaunchBound& x) {
  auto& [of, number, offset, tiles, exact, what, place, factor] = x;
  return std::tie(of, number, offset, tiles, exact, what, place, factor);
}
static auto members_of(Choice& x) {
  auto& [place, what, taken, reason, refused] = x;
  return std::tie(place, what, taken, reason, refused);
}
static auto members_of(Diag& x) {
  auto& [level, id, place, message, source, width, caret] = x;
  return std::tie(level, id, place, message, source, width, caret);
}
// Warnings are apart: listed().
static auto members_of(Compiled& x) {
  auto& [name, target, ptx, block, shared_bytes, dynamic_shared, cluster, params, maps, bounds,
         choices, warnings] = x;
  return std::tie(name, target, ptx, block, shared_bytes, dynamic_shared, cluster, params, maps,
                  bounds, choices);
}

namespace verify {
static auto members_of(LiveRegisters& x) {
  auto& [most, line, product, product_line] = x;
  return std::tie(most, line, product, product_line);
}
}  // namespace verify

namespace detail {

static auto members_of(CompiledText& x) {
  auto& [ptx, warnings, registers] = x;
  return std::tie(ptx, registers);
}

namespace {

std::vector<Diag> listed(const Diags& diags) { return {diags.begin(), diags.end()}; }

// Their ids point into the entry. A diagnostic of a rule that this version does not have is
// omitted.
Diags diags_from(const std::vector<Diag>& listed) {
  Diags out;
  for (Diag each : listed) {
    const Rule* rule = find_rule(each.id);
    if (!rule) continue;
    each.id = rule->id;
    out.add(std::move(each));
  }
  return out;
}

template <typename T>
std::string entry_with_warnings(const T& made) {
  RecordWriter out;
  out.add(made);
  out.add(listed(made.warnings));
  return out.take();
}

template <typename T>
std::optional<T> held(const Cache& cache, const CacheKey& key) {
  const StepTimer timer(&StepTimes::cache);
  const auto entry = cache.find(key);
  if (!entry) return std::nullopt;
  RecordReader in(*entry);
  T out;
  std::vector<Diag> warnings;
  in.get(out);
  in.get(warnings);
  if (!in.done()) {
    cache.remove(key);
    return std::nullopt;
  }
  out.warnings = diags_from(warnings);
  return out;
}

// What could not be written is among the cache's problems; the result stands without it.
template <typename T>
void hold_entry(const Cache& cache, const CacheKey& key, const T& made) {
  const StepTimer timer(&StepTimes::cache);
  (void)cache.store(key, entry_with_warnings(made));
}

}  // namespace

CacheKey compile_key(std::string_view kind, std::string_view target) {
  return CacheKey(kind).add("build", build_id()).add("target", target);
}

std::optional<CompiledText> held_text(const Cache& cache, const CacheKey& key) {
  return held<CompiledText>(cache, key);
}
std::optional<Compiled> held_compiled(const Cache& cache, const CacheKey& key) {
  return held<Compiled>(cache, key);
}

void hold(const Cache& cache, const CacheKey& key, const CompiledText& text) {
  hold_entry(cache, key, text);
}
void hold(const Cache& cache, const CacheKey& key, const Compiled& compiled) {
  hold_entry(cache, key, compiled);
}

std::string entry_of(const Compiled& compiled) { return entry_with_warnings(compiled); }

}  // namespace detail
}  // namespace tartan::TARTAN_ABI
