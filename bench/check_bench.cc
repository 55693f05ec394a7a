// SPDX-License-Identifier: Apache-2.0
// Speed of parsing and verifying PTX text: a module of every documented warp-level form, and
// compiled kernels.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tartan/isa/instruction.h"
#include "tartan/ptx/parser.h"
#include "tartan/verify/verify.h"

namespace tartan {
namespace {

std::string vector(Type type, int count) {
  std::string out = "{";
  for (int i = 0; i < count; ++i) out += fmt::format("{}%{}_{}", i ? ", " : "", name(type), i);
  return out + "}";
}

std::string operand(const isa::OperandSpec& spec) {
  switch (spec.kind) {
    case isa::OperandKind::Vector: return vector(spec.type, spec.count);
    case isa::OperandKind::Register: return fmt::format("%{}_0", name(spec.type));
    case isa::OperandKind::Address: return "[%b64_0]";
    case isa::OperandKind::Immediate: return "0";
    case isa::OperandKind::Pair: return "{0, 0}";
  }
  return "";
}

// Every form that sm_120a has, in one kernel.
std::string all_forms() {
  std::string out = ".version 8.8\n.target sm_120a\n.address_size 64\n.visible .entry forms()\n{\n";
  for (const std::string_view type : {"b32", "f32", "f64", "b64"})
    out += fmt::format(".reg .{} %{}_<32>;\n", type, type);
  for (const isa::Form& form : isa::forms()) {
    const auto row = isa::find(form);
    if (!row->since.has(*Target::parse("sm_120a"))) continue;
    out += isa::spell(form) + " ";
    for (std::size_t i = 0; i < row->operands.size(); ++i)
      out += (i ? ", " : "") + operand(row->operands[i]);
    out += ";\n";
  }
  return out + "ret;\n}\n";
}

std::string compiled_kernels() {
  std::string out;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SOURCE_ROOT "/tests/data/programs")) {
    if (entry.path().extension() != ".ptx") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    if (text.str().size() > out.size()) out = text.str();
  }
  return out;
}

void check(benchmark::State& state, const std::string& text) {
  const auto source = std::make_shared<const Source>("bench.ptx", text);
  if (text.empty() || !verify::check(source).ok())
    return state.SkipWithError("the text has errors");
  for (auto _ : state) benchmark::DoNotOptimize(verify::check(source));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}

void parse(benchmark::State& state, const std::string& text) {
  const auto source = std::make_shared<const Source>("bench.ptx", text);
  for (auto _ : state) {
    Diags diags;
    benchmark::DoNotOptimize(ptx::parse(source, diags));
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}

BENCHMARK_CAPTURE(parse, forms, all_forms());
BENCHMARK_CAPTURE(check, forms, all_forms());
BENCHMARK_CAPTURE(parse, kernels, compiled_kernels());
BENCHMARK_CAPTURE(check, kernels, compiled_kernels());

}  // namespace
}  // namespace tartan
