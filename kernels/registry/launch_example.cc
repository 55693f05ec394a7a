// SPDX-License-Identifier: Apache-2.0
#include "kernels/registry/launch_example.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "tartan/kernels/mla_decode.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

struct Size {
  std::string_view param;
  std::int64_t value;
};

// Small enough for the emulator, and several tiles, heads and groups. One sequence, one product of
// a batch along z: there is no parameter for these.
constexpr Size sizes[] = {
    {"stride_a", 1 << 18},
    {"stride_b", 1 << 18},
    {"stride_c", 1 << 18},
    {"m", 192},
    {"n", 192},
    {"k", 128},
    {"rows", 192},
    {"cols", 128},
    {"count", 2048},
    {"batch", 8},
    {"queries", 256},
    {"keys", 256},
    {"heads", 2},
    {"kv_heads", 1},
    {"groups", 2},
    {"most_pages", 2},
    {"window", 64},
    {"sequences", 1},
    {"tokens", 100},
    {"key_heads", 1},
};

std::int64_t example_size(std::string_view param) {
  const auto found = std::ranges::find(sizes, param, &Size::param);
  return found == std::end(sizes) ? 1 : found->value;
}

}  // namespace

LaunchExample::LaunchExample(const KernelRegistry& registry, std::string name,
                             const Described& described, const Compiled& compiled,
                             int multiprocessors)
    : registry_(registry), name_(std::move(name)), compiled_(compiled) {
  const LaunchSizes of_launch{
      .of = example_size, .multiprocessors = multiprocessors, .given = {0, 0, 1}};
  if (described.grid && described.grid->count() > 0) {
    grid_ = *described.grid;
  } else {
    const LaunchGrid grid = described.launch_grid(of_launch);
    grid_ = {grid.x.value_or(1), grid.y.value_or(1), grid.z.value_or(1)};
  }
  work_ = described.work(compiled, of_launch, grid_);
}

std::int64_t LaunchExample::scalar(const std::string& param) const { return example_size(param); }

std::int64_t LaunchExample::number(const MapNumber& of) const {
  std::int64_t product = 1;
  for (const int param : of.params)
    product *= example_size(compiled_.params[static_cast<std::size_t>(param)].name);
  return of.value * ((product + of.divisor - 1) / of.divisor);
}

std::vector<std::uint64_t> LaunchExample::extents(const CompiledMap& map) const {
  std::vector<std::int64_t> out;
  for (const MapNumber& each : map.extents) out.push_back(number(each));
  const auto all = elements(compiled_.params[static_cast<std::size_t>(map.of)]);
  if (all && out.size() > 1 && map.strides.size() + 1 == out.size()) {
    std::int64_t matrix = out[0];  // all dimensions but the last one
    for (std::size_t i = 1; i + 1 < out.size(); ++i)
      matrix += (out[i] - 1) * number(map.strides[i - 1]);
    const std::int64_t stride = std::max<std::int64_t>(number(map.strides.back()), 1);
    out.back() = std::clamp<std::int64_t>((*all - matrix) / stride + 1, 1, out.back());
  }
  return {out.begin(), out.end()};
}

// An option's value, a number.
std::int64_t LaunchExample::option(std::string_view name) const {
  for (const Option& each : registry_.options())
    if (each.name == name)
      if (const auto* const* value = std::get_if<int*>(&each.value)) return **value;
  return 0;
}

// ---- The sizes of buffers that a kernel's header states and no layout does: of several matrices
// one after the other, which the kernel chooses from.

std::int64_t LaunchExample::of_decode(std::string_view buffer) const {
  const std::int64_t rows = option("queries") * option("heads-per-kv"), d = option("head-dim"),
                     heads = example_size("batch") * example_size("kv_heads");
  if (buffer == "Q" || buffer == "O") return heads * rows * d;
  return buffer == "K" || buffer == "V" ? heads * example_size("most_pages") * option("page") * d
                                        : 0;
}

std::int64_t LaunchExample::of_mla_decode(std::string_view buffer) const {
  using kernels::MlaDecode;
  const std::int64_t rows = option("queries") * option("heads");
  if (buffer == "Q") return example_size("batch") * rows * MlaDecode::key;
  if (buffer == "KV")
    return example_size("batch") * example_size("most_pages") * option("page") * MlaDecode::key;
  return buffer == "O" ? example_size("batch") * rows * MlaDecode::latent : 0;
}

std::int64_t LaunchExample::of_delta_rule(std::string_view buffer) const {
  const std::int64_t keys = option("key-dim"), values = option("value-dim"),
                     sequences = example_size("sequences"), tokens = example_size("tokens"),
                     heads = example_size("heads");
  if (buffer == "starts") return sequences + 1;
  if (buffer == "S" || buffer == "S0" || buffer == "S1") return sequences * heads * keys * values;
  if (name_ != "delta_rule_decode") return 0;
  if (buffer == "Q" || buffer == "K") return sequences * tokens * example_size("key_heads") * keys;
  // Gates may be those of elements of keys.
  return sequences * tokens * heads * (buffer == "g" ? keys : buffer == "beta" ? 1 : values);
}

// At most 64 x 64 elements each.
std::int64_t LaunchExample::of_small_products(std::string_view) const {
  return example_size("batch") * 64 * 64;
}

std::int64_t LaunchExample::beyond_layout(std::string_view buffer) const {
  const auto work = std::ranges::find(work_, buffer, &WorkBuffer::param);
  if (work != work_.end()) return work->elements;
  if (name_ == "decode") return of_decode(buffer);
  if (name_ == "mla_decode") return of_mla_decode(buffer);
  if (name_.starts_with("delta_rule")) return of_delta_rule(buffer);
  if (name_ == "small_products") return of_small_products(buffer);
  if (name_ == "k_grouped_gemm" && buffer == "C") return of_products(buffer);
  return 0;
}

// Batches and groups of products, whatever their layout: as many as a launch has groups.
std::int64_t LaunchExample::of_products(std::string_view buffer) const {
  const auto size = [&](const char* name) {
    const std::int64_t given = option(name);
    return given ? given : example_size(name);
  };
  const std::int64_t groups = example_size("groups");
  if (buffer == "A" || buffer == "SA") return groups * size("m") * size("k");
  if (buffer == "B" || buffer == "SB") return groups * size("k") * size("n");
  if (buffer == "C") return groups * size("m") * size("n");
  return buffer == "query_starts" || buffer == "key_starts" ? example_size("sequences") + 1 : 0;
}

// A parameter's layout is that of one matrix, of which there may be several.
std::int64_t LaunchExample::matrices() const {
  if (name_.starts_with("attention")) return example_size("heads");
  return 1;
}

std::optional<std::int64_t> LaunchExample::elements(const CompiledParam& param) const {
  if (const std::int64_t stated = beyond_layout(param.name)) return stated;
  std::int64_t one = param.elements;
  if (param.span) {
    const auto end = [&](const MapNumber& count, const MapNumber& stride) {
      return (number(count) - 1) * number(stride);
    };
    one = end(param.span->rows, param.span->row_stride) +
          end(param.span->cols, param.span->col_stride) + 1;
  }
  if (one <= 0) one = of_products(param.name);
  if (one <= 0) return std::nullopt;
  return one * matrices();
}

}  // namespace tartan::TARTAN_ABI::builtins
