// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace tartan::TARTAN_ABI::detail {
namespace {

// Names of generated code have megabytes; nobody reads them.
constexpr std::size_t longest = 4096;

constexpr std::string_view anonymous = "(anonymous namespace)";

// Where the bracket ends that opens at `at`; brackets of all kinds nest.
std::size_t behind_bracket(std::string_view text, std::size_t at) {
  int depth = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '<' || text[i] == '{' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == '}' || text[i] == ']') --depth;
    if (text[i] == '>' && (i == 0 || text[i - 1] != '-')) --depth;  // "->" is no bracket
    if (depth == 0) return i + 1;
  }
  return text.size();
}

bool is_mangled(std::string_view name) { return name.starts_with("_Z") && name.size() <= longest; }

// The parameters' list, "(float const*, int)", of a demangled function; empty: none.
std::string_view parameter_list(std::string_view text) {
  std::string_view last;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '(' && text[i] != '<' && text[i] != '{') {
      ++i;
      continue;
    }
    const std::size_t end = behind_bracket(text, i);
    if (text[i] == '(' && !text.substr(i).starts_with(anonymous)) last = text.substr(i, end - i);
    i = end;
  }
  return last;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string demangled(std::string_view name) {
  if (!is_mangled(name)) return std::string(name);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : std::string(name);
}

std::string demangled_name(std::string_view name) {
  if (!is_mangled(name)) return std::string(name);
  const std::string all = demangled(name);
  const std::string_view text = all;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool bracket = text[i] == '(' || text[i] == '<' || text[i] == '{';
    const std::size_t end = bracket ? behind_bracket(text, i) : i + 1;
    const bool parameters = text[i] == '(' && !text.substr(i).starts_with(anonymous);
    if (!bracket && text[i] == ' ') out.clear();  // a result type is in front of it
    else if (parameters && text.substr(end).find("::") == std::string_view::npos) break;
    else if (!parameters) out += text.substr(i, end - i);
    i = end;
  }
  return out.empty() ? all : out;
}

std::vector<std::string> demangled_parameters(std::string_view name) {
  if (!is_mangled(name)) return {};
  const std::string all = demangled(name);
  std::string_view list = parameter_list(all);
  if (list.size() < 2) return {};
  list = list.substr(1, list.size() - 2);
  std::vector<std::string> out;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size();) {
    if (i < list.size() && list[i] != ',') {
      const bool bracket = list[i] == '(' || list[i] == '<' || list[i] == '{' || list[i] == '[';
      i = bracket ? behind_bracket(list, i) : i + 1;
      continue;
    }
    const std::string_view one = trimmed(list.substr(begin, i - begin));
    if (!one.empty() && one != "void") out.emplace_back(one);
    begin = ++i;
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI::detail
