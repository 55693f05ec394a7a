// SPDX-License-Identifier: Apache-2.0
#include "library/call_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace tartan::TARTAN_ABI::detail {
namespace {

using Limits = std::numeric_limits<std::int64_t>;

std::int64_t times(std::int64_t x, std::int64_t y) {
  std::int64_t out = 0;
  if (!__builtin_mul_overflow(x, y, &out)) return out;
  return (x < 0) == (y < 0) ? Limits::max() : Limits::min();
}

std::int64_t plus(std::int64_t x, std::int64_t y) {
  std::int64_t out = 0;
  if (!__builtin_add_overflow(x, y, &out)) return out;
  return x < 0 ? Limits::min() : Limits::max();
}

// How many elements the layout of pointer `i` spans, and its shape in words; 0: any number.
std::int64_t spanned(const Compiled& compiled, const Arguments& arguments, std::size_t i,
                     std::string& shape) {
  const CompiledParam& param = compiled.params[i];
  if (!param.span) return param.elements;
  const auto value = [&](const MapNumber& of) { return computed(compiled, arguments, of); };
  const std::int64_t rows = value(param.span->rows), cols = value(param.span->cols);
  if (rows <= 0 || cols <= 0) return 0;
  shape = fmt::format(" ({} x {})", rows, cols);
  return plus(plus(times(rows - 1, value(param.span->row_stride)),
                   times(cols - 1, value(param.span->col_stride))),
              1);
}

void check_extent(const Compiled& compiled, const Arguments& arguments, std::size_t i,
                  std::uint64_t bytes, Diags& diags) {
  std::string shape;
  const std::int64_t wanted = spanned(compiled, arguments, i, shape);
  const Type type = compiled.params[i].type;
  const auto width = static_cast<std::uint64_t>(bits(type));
  // Without overflow: bytes * 8 / width.
  const std::uint64_t elements = bytes / width * 8 + bytes % width * 8 / width;
  if (wanted > 0 && elements < static_cast<std::uint64_t>(wanted))
    report_argument(compiled, i,
                    fmt::format("too small: its layout spans {} elements of {}{}, found {}", wanted,
                                name(type), shape, elements),
                    diags);
}

}  // namespace

bool elements_fit(Type param, Type given) {
  constexpr TypeSet untyped{Type::b8, Type::b16, Type::b32, Type::b64};
  return given == param || given == Type::b8 || (untyped.has(param) && bits(param) == bits(given));
}

std::int64_t number(const Compiled& compiled, const Arguments& arguments, std::size_t param) {
  const std::vector<std::byte>& argument = arguments[param];
  std::int64_t out = 0;
  std::memcpy(&out, argument.data(), std::min(argument.size(), sizeof out));
  const bool wide = argument.size() >= sizeof out;
  return wide || compiled.params[param].type == u32 ? out : static_cast<std::int32_t>(out);
}

std::int64_t computed(const Compiled& compiled, const Arguments& arguments, const MapNumber& of) {
  std::int64_t product = 1;
  for (const int param : of.params)
    product = times(product, number(compiled, arguments, static_cast<std::size_t>(param)));
  return times(of.value, plus(product, of.divisor - 1) / of.divisor);
}

void report_argument(const Compiled& compiled, std::size_t i, std::string_view what, Diags& diags) {
  diags.report("launch-arguments"_rule, {},
               fmt::format("{} (parameter {}) of kernel {}: {}", compiled.params[i].name, i,
                           compiled.name, what));
}

void check_memory(const Compiled& compiled, const Arguments& arguments, Diags& diags) {
  for (std::size_t i = 0; i < compiled.params.size(); ++i) {
    if (!compiled.params[i].pointer) continue;
    const auto address = static_cast<std::uint64_t>(number(compiled, arguments, i));
    if (address % 16 != 0)
      report_argument(compiled, i,
                      fmt::format("the address 0x{:x} is not a multiple of 16", address), diags);
    if (const auto bytes = arguments.buffer_size(i))
      check_extent(compiled, arguments, i, *bytes, diags);
  }
}

}  // namespace tartan::TARTAN_ABI::detail
