// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/emulator/machine/block.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::size_t longest_text = 1 << 16;
constexpr int longest_field = 511;  // what one conversion gives
// CUDA takes no more, and prints conversions behind them as they are written (CUDA C++ programming
// guide, "Formatted Output").
constexpr std::uint32_t most_arguments = 32;

// A string in the lane's memory; nothing, with a finding, at a bad address.
std::optional<std::string> read_text(Warp& warp, int lane, std::uint64_t address,
                                     std::size_t longest = longest_text) {
  std::string out;
  while (out.size() < longest) {
    const std::byte* at = resolve_one(warp, lane, address++, 1);
    if (!at) return std::nullopt;
    if (*at == std::byte{0}) break;
    out += static_cast<char>(*at);
  }
  return out;
}

// The arguments follow each other in a buffer, each at a multiple of its size; ints take 4 bytes,
// everything else 8.
class Arguments {
 public:
  Arguments(Warp& warp, int lane, std::uint64_t at) : warp_(warp), lane_(lane), at_(at) {}
  std::optional<std::uint64_t> take(std::uint32_t bytes) {
    at_ = (at_ + bytes - 1) / bytes * bytes;
    const std::byte* from = resolve_one(warp_, lane_, at_, bytes);
    if (!from) return std::nullopt;
    std::uint64_t value = 0;
    std::memcpy(&value, from, bytes);
    at_ += bytes;
    ++count;
    return value;
  }
  std::uint32_t count = 0;

 private:
  Warp& warp_;
  int lane_;
  std::uint64_t at_;
};

template <typename T>
std::string print_one(const std::string& spec, T value) {
  char buffer[longest_field + 1];
  const int length = std::snprintf(buffer, sizeof buffer, spec.c_str(), value);
  return {buffer, static_cast<std::size_t>(std::clamp(length, 0, longest_field))};
}

// The width or the precision at `at`, which moves behind it: digits, or * for an argument. The C
// library would take memory and time for all of it, whatever is kept of the result.
std::optional<std::int32_t> read_number(const std::string& format, std::size_t& at,
                                        Arguments& arguments) {
  std::int64_t number = 0;
  if (at < format.size() && format[at] == '*') {
    ++at;
    const auto given = arguments.take(4);
    if (!given) return std::nullopt;
    number = static_cast<std::int32_t>(*given);
  }
  for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at)
    number = std::min<std::int64_t>(10 * number + (format[at] - '0'), longest_field);
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(number, -longest_field, longest_field));
}

// %[flags][width][.precision], of which `at` moves behind the '%' and all of that.
std::optional<std::string> read_spec(const std::string& format, std::size_t& at,
                                     Arguments& arguments) {
  std::string spec = "%";
  for (++at; at < format.size() && format[at] && std::strchr("-+ #0", format[at]); ++at)
    if (spec.find(format[at]) == spec.npos) spec += format[at];
  const auto width = read_number(format, at, arguments);
  if (!width) return std::nullopt;
  if (*width) spec += std::to_string(*width);
  if (at == format.size() || format[at] != '.') return spec;
  const auto precision = read_number(format, ++at, arguments);
  if (!precision) return std::nullopt;
  if (*precision >= 0) spec += '.' + std::to_string(*precision);
  return spec;
}

// One conversion of the format, starting at its '%'; moves `at` behind it.
std::optional<std::string> convert(Warp& warp, int lane, const std::string& format, std::size_t& at,
                                   Arguments& arguments) {
  const std::size_t start = at;
  const auto read = read_spec(format, at, arguments);
  if (!read) return std::nullopt;
  const std::string& spec = *read;
  bool wide = false;
  while (at < format.size() && std::strchr("hlLqjzt", format[at])) wide |= format[at++] != 'h';
  if (at >= format.size()) return spec;
  if (arguments.count >= most_arguments && format[at] != '%')
    return format.substr(start, ++at - start);
  const char kind = format[at++];
  switch (kind) {
    case '%': return "%";
    case 'd':
    case 'i': {
      const auto value = arguments.take(wide ? 8 : 4);
      if (!value) return std::nullopt;
      return print_one(spec + "lld",
                       wide ? static_cast<long long>(*value) : static_cast<std::int32_t>(*value));
    }
    case 'u':
    case 'x':
    case 'X':
    case 'o': {
      const auto value = arguments.take(wide ? 8 : 4);
      if (!value) return std::nullopt;
      return print_one(spec + "ll" + kind, static_cast<unsigned long long>(*value));
    }
    case 'c': {
      const auto value = arguments.take(4);
      if (!value) return std::nullopt;
      return print_one(spec + "c", static_cast<int>(*value));
    }
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
      const auto value = arguments.take(8);
      if (!value) return std::nullopt;
      return print_one(spec + kind, std::bit_cast<double>(*value));
    }
    case 'p': {
      const auto value = arguments.take(8);
      if (!value) return std::nullopt;
      return fmt::format("0x{:x}", *value);
    }
    case 's': {
      const auto value = arguments.take(8);
      if (!value) return std::nullopt;
      const auto text = read_text(warp, lane, *value, longest_field);
      return text ? std::optional(print_one(spec + "s", text->c_str())) : std::nullopt;
    }
    default: return spec + kind;
  }
}

}  // namespace

void print_formatted(Warp& warp, const Op& op) {
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  const auto *formats = lanes<std::uint64_t>(warp, slots[0]),
             *buffers = lanes<std::uint64_t>(warp, slots[1]);
  auto* d = lanes<std::uint32_t>(warp, op.d);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const auto format = read_text(warp, lane, formats[lane]);
    if (!format) return;
    Arguments arguments(warp, lane, buffers[lane]);
    std::string out;
    for (std::size_t at = 0; at < format->size();) {
      if ((*format)[at] != '%') {
        out += (*format)[at++];
        continue;
      }
      const auto text = convert(warp, lane, *format, at, arguments);
      if (!text) return;
      out += *text;
    }
    d[lane] = arguments.count;
    if (const auto* const print = warp.block->context().print) (*print)(out);
    else std::fwrite(out.data(), 1, out.size(), stdout);
  }
}

void fail_assertion(Warp& warp, const Op& op) {
  const std::uint32_t* slots = warp.program->slots.data() + op.list;
  const int lane = std::countr_zero(warp.mask);
  const auto text = [&](int i) {
    return read_text(warp, lane, lanes<std::uint64_t>(warp, slots[i])[lane]).value_or("?");
  };
  const std::string message = text(0), file = text(1), function = text(3);
  warp.fail("trap"_rule,
            fmt::format("{}:{}: {}: assertion `{}` failed", file,
                        lanes<std::uint32_t>(warp, slots[2])[lane], function, message),
            lane);
}

}  // namespace tartan::TARTAN_ABI::emulator
