// SPDX-License-Identifier: Apache-2.0
// kernels/registry/read_options.h - the options of a kernel by name, from the rows of its struct:
// adds them to the registry, and reads them of it.
//
//   const auto words = add_options<Gate>(registry, "gate");       // "activation", "type"
//   const auto options = read_options<Gate>(registry, request);   // or all that is wrong with them
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/common/options.h"
#include "kernels/registry/registry.h"

namespace tartan::TARTAN_ABI::builtins {

/// Of products of a type.
inline Type usual_accumulator(Type type) {
  return !info(type).floating ? s32 : type == f64 ? f64 : f32;
}

/// The words of --epilogue.
std::string epilogue_words();

/// An option's value as the registry holds it by default; what callers leave open is empty.
template <typename Options, typename Value>
OptionValue usual_value(const kernels::detail::OptionRow<Options>& row, const Value& value) {
  constexpr bool type = std::is_same_v<Value, Type>;
  if constexpr (std::is_same_v<Value, int> || std::is_same_v<Value, bool>) return value;
  else if constexpr (std::is_same_v<Value, kernels::Epilogue>) return std::vector<std::string>();
  else if constexpr (std::is_same_v<Value, kernels::detail::BothOf>) return std::string();
  else if (kernels::detail::is_chosen(row.chosen) || (type && row.legal.types.mask == 0))
    return std::string();
  else return kernels::detail::word_of(value);
}

template <typename Options, typename Value>
std::string help_of(const kernels::detail::OptionRow<Options>& row, const Value& value) {
  std::string out(row.help);
  if constexpr (std::is_same_v<Value, int>)
    if (kernels::detail::is_chosen(row.chosen))
      out += fmt::format("; default with --tile: {}", value);
  if constexpr (std::is_same_v<Value, kernels::Epilogue>) out += ": " + epilogue_words();
  return out;
}

/// Adds the words of a struct that no kernel before has, and returns all of them but `except`:
/// those that its kernel takes.
template <typename Options>
std::vector<std::string> add_options(KernelRegistry& registry, std::string_view kernel,
                                     std::initializer_list<std::string_view> except = {}) {
  std::vector<std::string> words, shared;
  std::vector<std::pair<Option, OptionValue>> added;
  Options usual;
  kernels::detail::each_member<true>(
      [&](const auto& row, const auto& value) {
        if (row.word.empty() || std::ranges::find(except, row.word) != except.end()) return;
        words.emplace_back(row.word);
        if (registry.has(row.word)) return shared.push_back(fmt::format("--{}", row.word));
        OptionValue held = usual_value(row, value);
        const auto* const number = std::get_if<int>(&held);
        const auto* const text = std::get_if<std::string>(&held);
        added.push_back({{.name = std::string(row.word),
                          .help = help_of(row, value),
                          .shows_default = (number && !kernels::detail::is_chosen(row.chosen)) ||
                                           (text && !text->empty())},
                         std::move(held)});
      },
      usual);
  for (auto& [option, value] : added) {
    option.group = shared.empty()
                       ? fmt::format("Options of {}", kernel)
                       : fmt::format("Options of {} (and {})", kernel, fmt::join(shared, ", "));
    registry.add_option(std::move(option), std::move(value));
  }
  return words;
}

/// Whether the request gives any of what tuned() would choose.
template <typename Options>
bool gives_schedule(const Request& request) {
  bool out = false;
  Options usual;
  kernels::detail::each_member<true>(
      [&](const auto& row, const auto&) {
        out |= kernels::detail::is_chosen(row.chosen) && request.gives(row.word);
      },
      usual);
  return out;
}

/// Reads options of a request, and collects what is wrong with them.
class OptionReader {
 public:
  OptionReader(const KernelRegistry& registry, const Request& request)
      : registry_(registry), request_(request) {}

  bool gives(std::string_view word) const { return request_.gives(word); }

  /// Those that the caller gives, or whose defaults the help shows; others stay as they are.
  template <typename Options>
  void read(Options& out) {
    kernels::detail::each_member<true>(
        [&](const auto& row, auto& value) {
          if (gives(row.word) || registry_.shows_default(row.word))
            read(row.word, row.legal, value);
        },
        out);
    if (gives("warps") && !gives("tile"))
      wrong("warps", registry_.value<std::string>("warps"), "a --tile to divide among the warps");
  }

  /// Without --accumulator and --c: what follows from the types of A and B.
  void choose_types(kernels::Gemm& out);
  /// --type beside --a and --b, and matrices of more bytes than there are.
  void check(int m, int n, int k, Type a, Type b, Type c);
  void wrong(std::string_view word, std::string_view found, std::string_view expected);

  template <typename Options>
  Result<Options> result(const Options& out) const {
    if (!diags_.ok()) return diags_;
    return out;
  }

 private:
  void read(std::string_view word, const kernels::detail::Legal& legal, int& out);
  void read(std::string_view word, const kernels::detail::Legal& legal, bool& out);
  void read(std::string_view word, const kernels::detail::Legal& legal, Type& out);
  void read(std::string_view word, const kernels::detail::Legal& legal,
            kernels::detail::BothOf& out);
  void read(std::string_view word, const kernels::detail::Legal& legal,
            kernels::detail::SizesOf<int>& out);
  void read(std::string_view word, const kernels::detail::Legal& legal, kernels::Epilogue& out);
  template <typename Enum>
  void read(std::string_view word, const kernels::detail::Legal&, Enum& out) {
    const std::string& text = registry_.value<std::string>(word);
    std::vector<std::string_view> expected;
    for (const auto& each : kernels::detail::names_of(out)) {
      if (each.name == text) return void(out = each.value);
      expected.push_back(each.name);
    }
    wrong(word, text, either(expected));
  }
  static std::string either(const std::vector<std::string_view>& words);  // "a, b or c"

  const KernelRegistry& registry_;
  const Request& request_;
  Diags diags_;
};

template <typename Options>
Result<Options> read_options(const KernelRegistry& registry, const Request& request,
                             Options usual = {}) {
  OptionReader reader(registry, request);
  reader.read(usual);
  return reader.result(usual);
}

}  // namespace tartan::TARTAN_ABI::builtins
