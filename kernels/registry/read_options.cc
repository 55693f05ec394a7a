// SPDX-License-Identifier: Apache-2.0
#include "kernels/registry/read_options.h"

#include <charconv>

namespace tartan::TARTAN_ABI::builtins {
namespace {

using kernels::Activation;
using kernels::Epilogue;

// "128x64": positive numbers separated by x; nothing otherwise.
std::vector<int> numbers_of(std::string_view word) {
  std::vector<int> out;
  const char *at = word.data(), *end = word.data() + word.size();
  while (at < end) {
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 1 || (next < end && (*next != 'x' || next + 1 == end)))
      return {};
    out.push_back(value);
    at = next < end ? next + 1 : end;
  }
  return out;
}

// Calls visit(word, action) with the words of --epilogue, which the action puts there.
template <typename Visit>
void each_epilogue(Epilogue& epilogue, const Visit& visit) {
  kernels::detail::each_member(
      [&]<typename Value>(const auto& row, Value& value) {
        if constexpr (std::is_same_v<Value, bool>) visit(row.word, value, true);
        else if constexpr (std::is_same_v<Value, Activation>)
          for (const auto& each : kernels::detail::names_of(value))
            visit(each.name, value, each.value);
      },
      epilogue);
}

}  // namespace

std::string epilogue_words() {
  Epilogue epilogue;
  std::vector<std::string_view> names;
  each_epilogue(epilogue, [&](std::string_view name, auto&, auto) { names.push_back(name); });
  return fmt::format("{}", fmt::join(names, ", "));
}

void OptionReader::wrong(std::string_view word, std::string_view found, std::string_view expected) {
  diags_.report("usage"_rule, {}, fmt::format("--{} {}: expected {}", word, found, expected));
}

std::string OptionReader::either(const std::vector<std::string_view>& words) {
  const std::span all(words);
  return fmt::format("{} or {}", fmt::join(all.first(all.size() - 1), ", "), all.back());
}

void OptionReader::read(std::string_view word, const kernels::detail::Legal& legal, int& out) {
  out = registry_.value<int>(word);
  if (out < legal.least || out > legal.most)
    wrong(word, fmt::format("{}", out),
          legal.most == kernels::detail::Legal::any
              ? fmt::format("a number of at least {}", legal.least)
              : fmt::format("a number from {} to {}", legal.least, legal.most));
}

void OptionReader::read(std::string_view word, const kernels::detail::Legal&, bool& out) {
  out = registry_.value<bool>(word);
}

void OptionReader::read(std::string_view word, const kernels::detail::Legal& legal, Type& out) {
  const std::string& text = registry_.value<std::string>(word);
  const bool any = legal.types.mask == 0;
  const auto found = parse_type(text);
  if (found && (any || legal.types.has(*found))) return void(out = *found);
  if (any) return wrong(word, text, "an element type such as f16, bf16, tf32, s8 or e4m3");
  std::vector<std::string_view> expected;
  for (const TypeInfo& each : type_table)
    if (legal.types.has(each.type)) expected.push_back(each.name);
  wrong(word, text, either(expected));
}

void OptionReader::read(std::string_view word, const kernels::detail::Legal& legal,
                        kernels::detail::BothOf& out) {
  read(word, legal, out.a);
  out.b = out.a;
}

void OptionReader::read(std::string_view word, const kernels::detail::Legal& legal,
                        kernels::detail::SizesOf<int>& out) {
  const std::string& text = registry_.value<std::string>(word);
  std::vector<int> found = numbers_of(text);
  if (found.size() == 2 && out.third == kernels::detail::Third::one) found.push_back(1);
  if (found.size() == 2 && out.third == kernels::detail::Third::follows)
    found.push_back(*out.each[2]);
  if (found.size() != 3) return wrong(word, text, out.expected);
  const int most = legal.most;
  if (most != kernels::detail::Legal::any &&
      (found[0] > most || found[1] > most / found[0] || found[2] > most / (found[0] * found[1])))
    return wrong(word, text, fmt::format("at most {} {} in total, such as 4x8", most, word));
  for (std::size_t i = 0; i < 3; ++i) *out.each[i] = found[i];
}

void OptionReader::read(std::string_view word, const kernels::detail::Legal&, Epilogue& out) {
  const auto& words = registry_.value<std::vector<std::string>>(word);
  const std::string all = fmt::format("{}", fmt::join(words, ","));
  int activations = 0;
  for (const std::string& each : words) {
    if (std::ranges::count(words, each) > 1) return wrong(word, all, each + " once");
    bool known = false;
    each_epilogue(out, [&](std::string_view name, auto& value, auto put) {
      if (name != each) return;
      known = true, value = put;
      activations += std::is_same_v<decltype(put), Activation>;
    });
    if (!known) wrong(word, each, "one of " + epilogue_words());
  }
  if (activations > 1) wrong(word, all, "at most one activation");
}

void OptionReader::choose_types(kernels::Gemm& out) {
  if (!gives("accumulator")) out.accumulator = usual_accumulator(out.a);
  if (!gives("c")) out.c = out.accumulator;
}

void OptionReader::check(int m, int n, int k, Type a, Type b, Type c) {
  if (const std::string& type = registry_.value<std::string>("type"); gives("type"))
    if (const auto both = parse_type(type); both && *both != a && *both != b)
      wrong("type", type, "no --a and --b beside it, which replace it");
  if (!diags_.ok()) return;
  const auto matrix = [&](std::string_view name, std::string_view rows, int height,
                          std::string_view columns, int width, Type type) {
    const double bytes = static_cast<double>(height) * width * bits(type) / 8;
    if (bytes > 0x1p49)  // gemm(), which knows the tile, checks the rest
      diags_.report(
          "usage"_rule, {},
          fmt::format(
              "--{} {} --{} {}: {} exceeds the 2^49 bytes that a GPU addresses: {:.3g} bytes", rows,
              height, columns, width, name, bytes));
  };
  matrix("A", "m", m, "k", k, a);
  matrix("B", "k", k, "n", n, b);
  matrix("C", "m", m, "n", n, c);
}

}  // namespace tartan::TARTAN_ABI::builtins
