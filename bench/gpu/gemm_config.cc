// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/gemm_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "bench/gpu/words.h"
#include "kernels/common/options.h"
#include "tartan/kernels/gemm_schedule.h"

namespace gpu {

using namespace tartan;

namespace {

// A part of a configuration that is no option of the kernel, or none by that name.
struct Part {
  std::string_view name;
  void (*set)(Config& config, int value);  // 0: a name without a number
  std::string_view help;
};

constexpr Part parts[] = {
    {"persistent", [](Config& c, int value) { c.gemm.persistent = true, c.blocks = value; },
     "[=N] CTAs that compute tile after tile; one a multiprocessor"},
    {"warps_k", [](Config& c, int value) { c.gemm.tile.warps_k = value; },
     "=N times as many warps, which divide the k of a tile"},
    {"sparse", [](Config& c, int) { c.sparse = true; }, " A is compressed; with --sparse"},
    {"alone", [](Config& c, int) { c.alone = true; },
     " launches begin when the one in front has ended, not beside its end"},
    {"dynamic", [](Config& c, int) { c.dynamic = true; }, " sizes are parameters of the kernel"},
};

// Calls visit(name, member, ...) with the numbers and flags of a configuration that have a name.
template <typename Visit, typename... Gemms>
void each_option(const Visit& visit, Gemms&... gemms) {
  kernels::detail::each_member(
      [&](const auto& row, auto& member, const auto&... others) {
        using Value = std::decay_t<decltype(member)>;
        if constexpr (std::is_same_v<Value, int> || std::is_same_v<Value, bool>)
          if (row.chosen != kernels::detail::Chosen::never || row.word == "promote") {
            std::string name(row.word == "stream-blocks" ? "stream" : row.word);
            std::ranges::replace(name, '-', '_');
            visit(name, row.help, member, others...);
          }
      },
      gemms...);
}

// "128x256x64" into so many positive numbers.
bool read_numbers(std::string_view word, std::initializer_list<int*> out) {
  const auto parts = split(word, 'x');
  if (parts.size() != out.size()) return false;
  std::size_t i = 0;
  for (int* each : out)
    if (!read_number(parts[i++], *each) || *each == 0) return false;
  return true;
}

bool read_option(std::string_view word, Config& config) {
  const auto named = read_named(word);
  if (!named) return false;
  for (const Part& part : parts)
    if (part.name == named->name) return part.set(config, named->value), true;
  bool found = false;
  each_option(
      [&]<typename Value>(std::string_view name, std::string_view, Value& member) {
        if (name != named->name) return;
        found = true;
        if constexpr (std::is_same_v<Value, bool>) member = true;
        else member = named->value;
      },
      config.gemm);
  return found;
}

char letter(Major major) { return major == Major::row ? 'r' : 'c'; }

std::optional<Major> major_of(char letter) {
  if (letter == 'r') return Major::row;
  if (letter == 'c') return Major::col;
  return {};
}

}  // namespace

std::string Product::text() const {
  const std::string types =
      a == b ? std::string(name(a)) : fmt::format("{} x {}", name(a), name(b));
  return fmt::format("{}x{}x{} {} to {}, {}{}{}", m, n, k, types, name(c), letter(a_major),
                     letter(b_major), sparse ? ", half of A zero" : "");
}

bool read_size(const std::string& word, Product& product) {
  if (read_numbers(word, {&product.m, &product.n, &product.k})) return true;
  if (!read_numbers(word, {&product.m})) return false;
  product.n = product.k = product.m;
  return true;
}

Type usual_c(Type a) {
  switch (a) {
    case Type::f32:
    case Type::tf32: return f32;
    case Type::s8:
    case Type::u8: return s32;
    case Type::e4m3:
    case Type::e5m2: return bf16;
    default: return a;
  }
}

bool read_type(const std::string& word, Product& product) {
  const auto whole = parse_type(word);
  const std::size_t between = word.find('x');
  const auto a = whole ? whole : parse_type(word.substr(0, between));
  const auto b = whole || between == word.npos ? whole : parse_type(word.substr(between + 1));
  if (!a || !b) return false;
  product.a = *a, product.b = *b, product.c = usual_c(*a);
  return true;
}

bool read_majors(const std::string& word, Product& product) {
  if (word.size() != 2 || !major_of(word[0]) || !major_of(word[1])) return false;
  product.a_major = *major_of(word[0]), product.b_major = *major_of(word[1]);
  return true;
}

std::optional<Config> read_config(const std::string& word) {
  Config out{.tuned = word == "tuned", .text = word};
  if (out.tuned) return out;
  const auto parts = split(word, ':');
  Tile& tile = out.gemm.tile;
  if (parts.size() < 3 || !read_numbers(parts[0], {&tile.m, &tile.n, &tile.k}) ||
      !read_numbers(parts[1], {&tile.warps_m, &tile.warps_n}) ||
      !read_numbers(parts[2], {&out.gemm.stages}))
    return {};
  for (std::size_t i = 3; i < parts.size(); ++i)
    if (!(i == 3 && read_number(parts[i], out.gemm.producers)) && !read_option(parts[i], out))
      return {};
  return out;
}

std::string config_help() {
  std::string out;
  const kernels::Gemm usual;
  each_option(
      [&]<typename Value>(std::string_view name, std::string_view help, const Value&) {
        out += fmt::format("  :{}{} {}\n", name, std::is_same_v<Value, int> ? "=N" : "", help);
      },
      usual);
  for (const Part& part : parts) out += fmt::format("  :{}{}\n", part.name, part.help);
  return out;
}

std::string config_text(const kernels::Gemm& gemm) {
  // That of recordings, which find configurations by their texts; new options follow.
  constexpr std::string_view order[] = {"persistent", "group",  "cluster",        "cluster_columns",
                                        "splits",     "stream", "cluster_splits", "warps_k",
                                        "products",   "swap",   "direct"};
  std::vector<std::string> named;
  const auto add = [&](const auto& name, const auto& value, const auto& usual) {
    if (value == usual || name == "stages" || name == "producers" || name == "promote") return;
    named.push_back(std::is_same_v<decltype(value), const bool&>
                        ? std::string(name)
                        : fmt::format("{}={}", name, value));
  };
  const kernels::Gemm usual;
  each_option([&](const auto& name, std::string_view, const auto& value,
                  const auto& of_usual) { add(name, value, of_usual); },
              gemm, usual);
  add(std::string_view("warps_k"), gemm.tile.warps_k, 1);
  std::ranges::stable_sort(named, {}, [&](const std::string& each) {
    return std::ranges::find(order, std::string_view(each).substr(0, each.find('='))) - order;
  });
  const Tile& tile = gemm.tile;
  std::string out = fmt::format("{}x{}x{}:{}x{}:{}", tile.m, tile.n, tile.k, tile.warps_m,
                                tile.warps_n, gemm.stages);
  if (gemm.producers) out += fmt::format(":{}", gemm.producers);
  for (const std::string& each : named) out += ":" + each;
  return out;
}

Config completed(const Config& config, const Product& product, const kernels::Gpu& gpu) {
  if (!config.tuned) return config;
  Config out{.gemm = kernels::tuned(options_of(config, product), gpu)};
  out.text = "tuned, " + config_text(out.gemm);
  return out;
}

kernels::Gemm options_of(const Config& config, const Product& product) {
  kernels::Gemm out = config.gemm;
  out.m = product.m, out.n = product.n, out.k = product.k;
  if (config.dynamic) out.m = out.n = out.k = 0;
  out.a = product.a, out.b = product.b, out.c = product.c;
  out.accumulator = product.a == f64 ? f64 : info(product.a).floating ? f32 : s32;
  out.a_major = product.a_major, out.b_major = product.b_major;
  if (config.dynamic) out.multiple = 128 / bits(product.a), out.multiple_c = 128 / bits(product.c);
  out.epilogue.alpha = bits(product.c) == 8;
  return out;
}

Dim3 grid_of(const Config& config, const Product& product, int multiprocessors) {
  const kernels::Gemm& gemm = config.gemm;
  const unsigned blocks = config.blocks ? static_cast<unsigned>(config.blocks)
                                        : gemm.grid_x(product.m, product.n, multiprocessors);
  return {blocks, static_cast<unsigned>(gemm.splits)};
}

unsigned sum_blocks_of(const Config& config, const Product& product) {
  return kernels::GemmLaunch::of(config.gemm, product.m, product.n, 1).sum.x;
}

namespace {

std::vector<Config> configs(std::initializer_list<std::string> words) {
  std::vector<Config> out;
  for (const std::string& word : words) out.push_back(*read_config(word));
  return out;
}

}  // namespace

std::vector<Config> usual_configs(const Product& product) {
  const int k = 1024 / bits(product.a);  // lines of 128 bytes
  const auto tile = [&](std::string_view shape, std::string_view rest) {
    return fmt::format("{}x{}:{}", shape, k, rest);
  };
  if (product.m <= 64)
    return configs({"tuned", tile("64x64", "4x1:8:4"), tile("64x32", "4x1:8:4"),
                    tile("64x128", "4x1:4:4:splits=2")});
  if (product.operations() < 5e8) return configs({"tuned", tile("64x64", "4x1:8:4")});
  if (product.operations() < 8e9)
    return configs(
        {"tuned", tile("64x64", "4x1:8:4"), tile("64x128", "4x1:6:4"), tile("128x128", "8x1:6:4")});
  if (product.operations() < 2e10)
    return configs({"tuned", tile("128x256", "8x1:4:4"), tile("128x128", "8x1:6:4:persistent")});
  return configs({"tuned", tile("128x256", "8x1:3:4:persistent:group=16"),
                  tile("128x256", "8x1:4:4:persistent:group=16"),
                  tile("128x256", "2x4:3:4:persistent"),
                  fmt::format("128x256x{}:2x4:2:4:persistent", 2 * k)});
}

std::vector<Product> usual_products() {
  struct Row {
    const char *size, *type, *majors, *c = nullptr;
  };
  static constexpr Row rows[] = {
      {"4096", "f16", "rc"},
      {"8192", "f16", "rc"},
      {"4096", "bf16", "rc"},
      {"8192", "bf16", "rc"},
      {"4096", "tf32", "rc"},
      {"8192", "tf32", "rc"},
      {"8192", "s8", "rc"},
      {"8192", "s8", "rc", "s8"},
      {"8192", "e4m3", "rc"},
      {"8192", "e5m2xe4m3", "rc"},
      {"4096", "bf16", "rr"},
      {"4096", "bf16", "cr"},
      {"4096", "bf16", "cc"},
      {"4095x4097x4104", "bf16", "rc"},
      {"4096x4098x4096", "bf16", "rc"},
      {"3000x5000x4096", "bf16", "rc"},
      {"5120", "bf16", "rc"},
      {"512", "bf16", "rc"},
      {"1024", "bf16", "rc"},
      {"2048", "bf16", "rc"},
      {"1024", "s8", "rc"},
      {"1024", "e4m3", "rc"},
      {"16x8192x8192", "bf16", "rc"},
      {"64x14336x4096", "bf16", "rc"},
      {"128x4096x4096", "bf16", "rc"},
  };
  std::vector<Product> out;
  for (const Row& row : rows) {
    Product& product = out.emplace_back();
    (void)read_size(row.size, product), (void)read_type(row.type, product);
    (void)read_majors(row.majors, product);
    if (row.c) product.c = *parse_type(row.c);
  }
  return out;
}

}  // namespace gpu
