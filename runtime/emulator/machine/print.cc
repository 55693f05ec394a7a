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

namespace tartan::inline TARTAN_ABI::emulator {
namespace {

constexpr std::size_t longest_text = 1 << 16;

// A string in the lane's memory; nothing, with a finding, at a bad address.
std::optional<std::string> read_text(Warp& warp, int lane, std::uint64_t address) {
  std::string out;
  while (out.size() < longest_text) {
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
  char buffer[512];
  const int length = std::snprintf(buffer, sizeof buffer, spec.c_str(), value);
  return {buffer,
          static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(sizeof buffer) - 1))};
}

// One conversion of the format, starting at its '%'; moves `at` behind it.
std::optional<std::string> convert(Warp& warp, int lane, const std::string& format, std::size_t& at,
                                   Arguments& arguments) {
  std::string spec = "%";
  ++at;
  while (at < format.size() && std::strchr("-+ #0123456789.*", format[at])) {
    if (format[at] == '*') {
      const auto width = arguments.take(4);
      if (!width) return std::nullopt;
      spec += std::to_string(static_cast<std::int32_t>(*width));
    } else {
      spec += format[at];
    }
    ++at;
  }
  bool wide = false;
  while (at < format.size() && std::strchr("hlLqjzt", format[at])) wide |= format[at++] != 'h';
  if (at >= format.size() || spec.size() > 64) return spec;
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
      const auto text = read_text(warp, lane, *value);
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
    std::fwrite(out.data(), 1, out.size(), stdout);
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

}  // namespace tartan::inline TARTAN_ABI::emulator
