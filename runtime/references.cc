// SPDX-License-Identifier: Apache-2.0
#include "runtime/references.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/support/nearest.h"
#include "runtime/element.h"
#include "runtime/formula_numbers.h"

namespace tartan::TARTAN_ABI {
namespace {

using detail::Formula;
using detail::FormulaMatrix;

Diag& report(const Manifest& manifest, std::size_t number, std::string message, Diags& diags) {
  const std::string path =
      manifest.references.size() > 1 ? fmt::format("reference[{}]", number) : "reference";
  return diags.report("manifest"_rule, {manifest.name, 0, 0}, fmt::format("{}: {}", path, message));
}

const ManifestBuffer* find(const Manifest& manifest, std::string_view name) {
  for (const ManifestBuffer* each : manifest.all_buffers())
    if (each->name == name) return each;
  return nullptr;
}

ManifestBuffer& buffer_of(Manifest& manifest, std::string_view name) {
  std::vector<ManifestBuffer*> all;
  const auto add = [&](std::vector<ManifestParam>& params) {
    for (ManifestParam& each : params)
      if (each.buffer) all.push_back(&*each.buffer);
  };
  add(manifest.params);
  for (ManifestLaunch& each : manifest.then) add(each.params);
  for (ManifestBuffer& each : manifest.buffers) all.push_back(&each);
  return **std::ranges::find(all, name, &ManifestBuffer::name);
}

// The buffers that a formula names, its output first.
std::vector<std::string> named(const Formula& formula) {
  std::vector<std::string> out{formula.output};
  out.insert(out.end(), formula.arguments.begin(), formula.arguments.end());
  for (const Formula::Term& term : formula.terms)
    for (const Formula::Factor& factor : term.matrices) out.push_back(factor.buffer);
  return out;
}

std::string unknown_buffer(const Manifest& manifest, const std::string& name) {
  std::vector<std::string_view> known;
  for (const ManifestBuffer* each : manifest.all_buffers()) known.push_back(each->name);
  return fmt::format("no buffer is called {}: expected one of {}{}", name, fmt::join(known, ", "),
                     nearest_hint(name, known));
}

Result<FormulaMatrix> matrix_of(const Manifest& manifest, const std::string& name, Type type) {
  const ManifestBuffer& buffer = *find(manifest, name);
  if (type == Type::none) type = buffer.type;
  if (type == Type::none || !Comparison::takes(type))
    return {"usage"_rule,
            fmt::format("{} has no type: expected {}:f32, or a type in its field", name, name)};
  if (buffer.uninitialized)
    return {"usage"_rule, fmt::format("{} starts uninitialized: expected contents", name)};
  const std::size_t size = element_size(type), count = buffer.size / size;
  FormulaMatrix out;
  out.shape = type == buffer.type ? buffer.extents() : std::vector<std::uint64_t>{count};
  out.values.resize(count);
  std::uint64_t filled = 0;
  std::memset(&filled, buffer.fill, size);
  for (std::size_t i = 0; i < count; ++i)
    out.values[i] = element_value(
        type, buffer.contents.empty() ? filled : load_element(buffer.contents, i, size));
  return out;
}

// The results rounded to the output's elements.
Status expect(ManifestBuffer& output, const std::vector<double>& values) {
  const std::size_t size = element_size(output.type);
  std::vector<std::byte> bytes(values.size() * size);
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = info(output.type).floating ? values[i] : std::nearbyint(values[i]);
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
    const auto word = element_bits(output.type, value);
    if (!word)
      return {"usage"_rule,
              fmt::format("element {} is {}, which {} does not hold", i, value, name(output.type))};
    store_element(bytes, i, size, *word);
  }
  output.expect = std::move(bytes);
  if (output.compared) return Done{};
  const double tolerance = reference_tolerance(output.type);
  output.comparison = {output.type, tolerance, tolerance * largest};
  return Done{};
}

Status evaluate(Manifest& manifest, const std::string& text) {
  const auto formula = detail::parse_formula(text, detail::scalars_of(manifest));
  if (!formula) return formula.diags();
  ManifestBuffer& output = buffer_of(manifest, formula->output);
  const auto values = detail::formula_numbers(
      *formula, output.extents(),
      [&](const std::string& name, Type type) { return matrix_of(manifest, name, type); });
  if (!values) return values.diags();
  return expect(output, *values);
}

}  // namespace

double reference_tolerance(Type type) {
  switch (type) {
    case Type::f64: return 1e-12;
    case Type::f32: return 1e-5;
    case Type::tf32: return 0x1p-9;
    case Type::f16: return 0x1p-9;
    case Type::bf16: return 0x1p-6;
    case Type::e4m3: return 0x1p-2;
    case Type::e5m2: return 0x1p-1;
    default: return 0;
  }
}

std::vector<std::string> reference_outputs(const Manifest& manifest, Diags& diags) {
  std::vector<std::string> out;
  const auto scalars = detail::scalars_of(manifest);
  for (std::size_t i = 0; i < manifest.references.size(); ++i) {
    const auto formula = detail::parse_formula(manifest.references[i], scalars);
    if (!formula) {
      report(manifest, i, formula.diags()[0].message, diags);
      continue;
    }
    for (const std::string& name : named(*formula))
      if (!find(manifest, name)) report(manifest, i, unknown_buffer(manifest, name), diags);
    if (std::ranges::find(out, formula->output) != out.end())
      report(manifest, i, fmt::format("another formula computes {}, too", formula->output), diags);
    const ManifestBuffer* output = find(manifest, formula->output);
    if (output && output->type == Type::none)
      report(manifest, i,
             fmt::format("buffer {} has no type: expected one such as f32", formula->output),
             diags);
    out.push_back(formula->output);
  }
  return out;
}

Diags expect_references(Manifest& manifest) {
  Diags out;
  for (std::size_t i = 0; i < manifest.references.size(); ++i)
    if (const Status done = evaluate(manifest, manifest.references[i]); !done)
      for (const Diag& each : done.diags()) report(manifest, i, each.message, out);
  return out;
}

}  // namespace tartan::TARTAN_ABI
