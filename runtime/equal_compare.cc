// SPDX-License-Identifier: Apache-2.0
#include "runtime/equal_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tartan::TARTAN_ABI::detail {
namespace {

using emulator::Algebra;
using emulator::Ref;
using emulator::Tag;
using emulator::Value;

// Two results that differ by no more than this part of their size differ as constants do that were
// rounded at different places: no function of interest does.
constexpr double rounding = 0x1p-16;

// The type and size of what starts at a tag.
struct Shape {
  Type type = Type::none;
  std::size_t bytes = 1;
};

Shape shape_of(const Algebra& algebra, Tag tag) {
  if (!emulator::is_valued(tag)) return {};
  const Type type = algebra.values[emulator::ref_of(tag)].type;
  const std::size_t bytes = emulator::size_of_element(tag);
  return {type, bytes};
}

ComparedElement undecided(ComparedElement out, const Algebra& algebra, const Value& value,
                          bool of_b) {
  const emulator::Reason& reason = algebra.values.reasons()[value.number.p];
  out.state = ComparedElement::State::undecided;
  out.reason = reason.text;
  out.line = reason.line;
  out.of_b = of_b;
  return out;
}

bool close(double x, double y, double scale) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (std::isinf(x) || std::isinf(y)) return x == y;
  return std::fabs(x - y) <= rounding * std::max({std::fabs(x), std::fabs(y), scale});
}

// The usual size of a buffer's values: where much cancels, a result's own says little.
double scale_of(const EqualRun& run, std::size_t buffer) {
  double sum = 0;
  std::size_t count = 0;
  for (const Tag tag : run.tags[buffer]) {
    if (!emulator::is_valued(tag) || emulator::part_of(tag) != 0) continue;
    const Value& value = run.algebra->values[emulator::ref_of(tag)];
    if (value.kind != Value::Kind::number || !std::isfinite(value.number.real)) continue;
    sum += value.number.real * value.number.real;
    ++count;
  }
  return count ? std::sqrt(sum / static_cast<double>(count)) / 16 : 0;
}

// Equal images of which numbers differ: of x and -x the image of a root of a sum may be either.
ComparedElement compare_signs(ComparedElement out) {
  const double x = out.a.number.real, y = out.b.number.real;
  if (!std::isfinite(x) || !std::isfinite(y)) return out;
  const bool clear = std::fabs(x - y) > std::max(std::fabs(x), std::fabs(y)) / 4;
  out.state = clear ? ComparedElement::State::different : ComparedElement::State::undecided;
  out.reason = "the results agree but for the sign of a root";
  return out;
}

// Neither as a number nor in its bits infinite or NaN.
bool is_finite(const EqualRun& run, const ComparedElement& one, const Value& value) {
  if (!std::isfinite(value.number.real)) return false;
  if (!info(one.type).floating) return true;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &run.bits[one.buffer][one.offset], one.bytes);
  return std::isfinite(emulator::decode_element(one.type, bits));
}

ComparedElement compare_at(EqualRun& a, EqualRun& b, std::size_t buffer, std::size_t offset,
                           double scale, bool wide) {
  const Tag x = a.tags[buffer][offset], y = b.tags[buffer][offset];
  ComparedElement out{.buffer = buffer, .offset = offset};
  if (!emulator::is_valued(x) && !emulator::is_valued(y)) {
    if (x != y || a.bits[buffer][offset] != b.bits[buffer][offset]) {
      out.state = ComparedElement::State::different;
      out.a.number.real = std::to_integer<int>(a.bits[buffer][offset]);
      out.b.number.real = std::to_integer<int>(b.bits[buffer][offset]);
    }
    return out;
  }
  const Shape shape = emulator::is_valued(x) ? shape_of(*a.algebra, x) : shape_of(*b.algebra, y);
  for (const auto& [run, tag, of_b] : {std::tuple{&a, x, false}, std::tuple{&b, y, true}}) {
    if (!emulator::is_valued(tag)) continue;
    const Value& value = run->algebra->values[emulator::ref_of(tag)];
    if (value.kind == Value::Kind::undecided) return undecided(out, *run->algebra, value, of_b);
  }
  out.type = shape.type;
  out.bytes = shape.bytes;
  if (shape.type == Type::none || offset + shape.bytes > a.tags[buffer].size()) {
    out.bytes = 1;
    out.state = ComparedElement::State::undecided;
    out.reason = "a value of no type is stored";
    return out;
  }
  for (const auto& [run, value, of_b] :
       {std::tuple{&a, &out.a, false}, std::tuple{&b, &out.b, true}}) {
    const Ref ref = run->algebra->read(nullptr, &run->tags[buffer][offset],
                                       &run->bits[buffer][offset], shape.type);
    *value = run->algebra->values[ref];
    if (value->kind == Value::Kind::undecided) return undecided(out, *run->algebra, *value, of_b);
  }
  const bool numbers = out.a.kind == Value::Kind::number && out.b.kind == Value::Kind::number;
  const double x_real = out.a.number.real, y_real = out.b.number.real;
  if (numbers && out.a.number.p == out.b.number.p) {
    if (close(x_real, y_real, scale) || !(a.algebra->values.rooted || b.algebra->values.rooted))
      return out;
    return compare_signs(out);
  }
  const bool near = close(x_real, y_real, wide ? 0 : scale);
  if (!numbers && out.a.kind == out.b.kind && near) return out;
  const bool finite = is_finite(a, out, out.a) && is_finite(b, out, out.b);
  out.state = near     ? ComparedElement::State::close
              : finite ? ComparedElement::State::different
                       : ComparedElement::State::overflowed;
  return out;
}

// Whether a run left something else there than what the buffer had.
bool is_written(const EqualRun& run, const EqualBuffer& buffer, std::size_t index,
                const ComparedElement& one) {
  if (run.bits[index][one.offset] != buffer.contents[one.offset]) return true;
  if (buffer.exact) return run.tags[index][one.offset] != 0;
  const std::uint32_t first = run.algebra->inputs()[index].first;
  return run.tags[index][one.offset] !=
         emulator::input_tag(first + static_cast<std::uint32_t>(one.offset));
}

}  // namespace

ComparedElement compare_element(EqualRun& a, EqualRun& b, std::size_t buffer, std::size_t offset) {
  return compare_at(a, b, buffer, offset, 0, false);
}

Comparing compare_runs(EqualRun& a, EqualRun& b, const std::vector<EqualBuffer>& buffers,
                       const std::vector<std::string>& outputs, bool wide) {
  Comparing out;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!outputs.empty() && std::ranges::find(outputs, buffers[i].name) == outputs.end()) continue;
    const double scale = std::max(scale_of(a, i), scale_of(b, i));
    for (std::size_t offset = 0; offset < buffers[i].bytes;) {
      const ComparedElement one = compare_at(a, b, i, offset, scale, wide);
      offset += one.bytes;
      out.elements += is_written(a, buffers[i], i, one) || is_written(b, buffers[i], i, one);
      if (one.state == ComparedElement::State::same) continue;
      ++out.unequal;
      auto& first = one.state == ComparedElement::State::different    ? out.different
                    : one.state == ComparedElement::State::close      ? out.close
                    : one.state == ComparedElement::State::overflowed ? out.overflowed
                                                                      : out.undecided;
      if (!first) first = one;
    }
  }
  return out;
}

bool writes(const EqualRun& run, const std::vector<EqualBuffer>& buffers, std::size_t buffer) {
  for (std::size_t at = 0; at < buffers[buffer].bytes; ++at) {
    ComparedElement one{.buffer = buffer, .offset = at};
    if (is_written(run, buffers[buffer], buffer, one)) return true;
  }
  return false;
}

std::string image_text(const Value& value) {
  if (value.kind == Value::Kind::number) return fmt::format("0x{:016x}", value.number.p);
  return real_text(value);
}

std::string real_text(const Value& value) {
  if (std::isnan(value.number.real)) return "nan";
  return fmt::format("{:.6g}", value.number.real);
}

}  // namespace tartan::TARTAN_ABI::detail
