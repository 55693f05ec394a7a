// SPDX-License-Identifier: Apache-2.0
#include "tartan/isa/nested_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace tartan::TARTAN_ABI {
namespace {

constexpr int deepest = 16;  // nesting depth that parse() accepts

std::int64_t product(std::int64_t x, std::int64_t y) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(x, y, &out) ? INT64_MAX : out;
}

std::int64_t sum(std::int64_t x, std::int64_t y) {
  std::int64_t out = 0;
  return __builtin_add_overflow(x, y, &out) ? INT64_MAX : out;
}

// Splits `index` into digits; the last mode takes the remainder.
std::int64_t walk(const NestedLayout& layout, std::int64_t& index, bool last) {
  if (layout.is_tuple()) {
    std::int64_t out = 0;
    for (std::size_t i = 0; i < layout.rank(); ++i)
      out += walk(layout[i], index, last && i + 1 == layout.rank());
    return out;
  }
  const auto [extent, stride] = layout.mode();
  const std::int64_t digit = last ? index : index % extent;
  index = last ? 0 : index / extent;
  return digit * stride;
}

void flatten(const NestedLayout& layout, std::vector<Mode>& out) {
  if (!layout.is_tuple()) return out.push_back(layout.mode());
  for (std::size_t i = 0; i < layout.rank(); ++i) flatten(layout[i], out);
}

std::string numbers(const NestedLayout& layout, std::int64_t Mode::*which) {
  if (!layout.is_tuple()) return std::to_string(layout.mode().*which);
  std::string out = "(";
  for (std::size_t i = 0; i < layout.rank(); ++i) out += (i ? "," : "") + numbers(layout[i], which);
  return out + ")";
}

NestedLayout compact(const NestedLayout& like, std::int64_t& stride) {
  if (!like.is_tuple()) {
    const NestedLayout out(like.mode().extent, stride);
    stride = product(stride, like.mode().extent);
    return out;
  }
  std::vector<NestedLayout> modes;
  for (std::size_t i = 0; i < like.rank(); ++i) modes.push_back(compact(like[i], stride));
  return NestedLayout::tuple(std::move(modes));
}

// A number or a tuple of numbers, and its place.
struct Numbers {
  std::int64_t value = 0;
  std::vector<Numbers> parts;
  bool tuple = false;
  std::size_t column = 0;
};

// Reads from `at` on; stops at the first error.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<NestedLayout> layout() {
    const auto shape = numbers("an extent");
    if (!shape) return std::nullopt;
    NestedLayout out;
    if (skip(':')) {
      const auto stride = numbers("a stride");
      if (!stride) return std::nullopt;
      const auto both = together(*shape, *stride);
      if (!both) return std::nullopt;
      out = *both;
    } else {
      out = tartan::compact(extents(*shape));
    }
    if (std::string problem = out.problem(); !problem.empty())
      return wrong(shape->column, std::move(problem)), std::nullopt;
    return out;
  }

  std::optional<Swizzle> swizzle() {
    Swizzle out;
    const std::size_t column = place();
    for (const char letter : std::string_view("swizzle<"))
      if (!expect(letter, "swizzle<B,M,S>")) return std::nullopt;
    for (int* part : {&out.bits, &out.base, &out.shift}) {
      const auto value = number("a number of bits");
      if (!value || !expect(part == &out.shift ? '>' : ',', "swizzle<B,M,S>")) return std::nullopt;
      *part = static_cast<int>(std::min<std::int64_t>(*value, 99));
    }
    if (out.shift < out.bits || out.bits + out.base + out.shift > 30) {
      wrong(column, "illegal swizzle: swizzle<B,M,S> requires S >= B and at most 30 bits in total");
      return std::nullopt;
    }
    return out;
  }

  bool skip(char letter) {
    place();
    if (at_ >= text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }
  bool expect(char letter, std::string_view what) {
    if (skip(letter)) return true;
    missing(what);
    return false;
  }
  bool done() { return place() == text_.size(); }
  void missing(std::string_view what) {
    const std::size_t at = place();
    wrong(at, at == text_.size() ? fmt::format("expected {}, found the end", what)
                                 : fmt::format("expected {}, found {}", what, text_[at]));
  }
  Diags diags() const {
    return Diags::one("layout-mismatch"_rule, {}, fmt::format("{}: {}", text_, problem_));
  }

 private:
  void wrong(std::size_t at, std::string problem) {
    if (problem_.empty()) problem_ = fmt::format("column {}: {}", at + 1, problem);
  }

  // The place of the next word.
  std::size_t place() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_;
  }

  // CuTe prints constants as _8.
  std::optional<std::int64_t> number(std::string_view what) {
    place();
    std::size_t first = at_;
    if (first < text_.size() && text_[first] == '_') ++first;
    std::int64_t value = 0;
    const bool digit = first < text_.size() && text_[first] >= '0' && text_[first] <= '9';
    if (!digit) return missing(what), std::nullopt;
    const auto [end, error] =
        std::from_chars(text_.data() + first, text_.data() + text_.size(), value);
    if (error != std::errc() || value > NestedLayout::limit)
      return wrong(at_, "number too large"), std::nullopt;
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  std::optional<Numbers> numbers(std::string_view what, int depth = 0) {
    Numbers out;
    out.column = place();
    if (!skip('(')) {
      const auto value = number(fmt::format("{} or (", what));
      if (!value) return std::nullopt;
      out.value = *value;
      return out;
    }
    if (depth == deepest) return wrong(out.column, "nesting too deep"), std::nullopt;
    out.tuple = true;
    do {
      auto part = numbers(what, depth + 1);
      if (!part) return std::nullopt;
      out.parts.push_back(std::move(*part));
    } while (skip(','));
    if (!expect(')', ", or )")) return std::nullopt;
    return out;
  }

  std::optional<NestedLayout> together(const Numbers& shape, const Numbers& stride) {
    const auto named = [](const Numbers& numbers) {
      return numbers.tuple ? fmt::format("a tuple of {}", numbers.parts.size()) : "a number";
    };
    if (shape.tuple != stride.tuple || shape.parts.size() != stride.parts.size())
      return wrong(stride.column,
                   fmt::format("structure mismatch: the stride is {} where the shape has {}",
                               named(stride), named(shape))),
             std::nullopt;
    if (!shape.tuple) return NestedLayout(shape.value, stride.value);
    std::vector<NestedLayout> modes;
    for (std::size_t i = 0; i < shape.parts.size(); ++i) {
      auto mode = together(shape.parts[i], stride.parts[i]);
      if (!mode) return std::nullopt;
      modes.push_back(std::move(*mode));
    }
    return NestedLayout::tuple(std::move(modes));
  }

  static NestedLayout extents(const Numbers& shape) {
    if (!shape.tuple) return NestedLayout(shape.value);
    std::vector<NestedLayout> modes;
    for (const Numbers& part : shape.parts) modes.push_back(extents(part));
    return NestedLayout::tuple(std::move(modes));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string problem_;
};

}  // namespace

NestedLayout NestedLayout::tuple(std::vector<NestedLayout> modes) {
  NestedLayout out;
  out.modes_ = std::move(modes);
  out.tuple_ = true;
  return out;
}

Result<NestedLayout> NestedLayout::parse(std::string_view text) {
  Reader reader(text);
  auto out = reader.layout();
  if (out && !reader.done()) {
    const auto swizzle = reader.swizzle();
    if (swizzle && !reader.done()) reader.missing("the end");
    if (!swizzle || !reader.done()) return reader.diags();
    out->swizzle_ = *swizzle;
  }
  if (!out) return reader.diags();
  return *out;
}

int NestedLayout::depth() const {
  int deepest_mode = -1;
  for (const NestedLayout& mode : modes_) deepest_mode = std::max(deepest_mode, mode.depth());
  return tuple_ ? std::max(deepest_mode, 0) + 1 : 0;
}

std::vector<Mode> NestedLayout::flat() const {
  std::vector<Mode> out;
  flatten(*this, out);
  return out;
}

std::int64_t NestedLayout::size() const {
  if (!tuple_) return mode_.extent;
  std::int64_t out = 1;
  for (const NestedLayout& mode : modes_) out = product(out, mode.size());
  return out;
}

std::int64_t NestedLayout::cosize() const {
  std::int64_t out = 1;
  for (const auto& [extent, stride] : flat()) out = sum(out, product(extent - 1, stride));
  return out;
}

std::int64_t NestedLayout::plain_offset(std::int64_t index) const {
  return walk(*this, index, true);
}

std::int64_t NestedLayout::operator()(std::int64_t index) const {
  return swizzle_(plain_offset(index));
}

std::int64_t NestedLayout::operator()(std::span<const std::int64_t> indices) const {
  assert(indices.size() == rank());
  std::int64_t out = 0;
  for (std::size_t i = 0; i < indices.size(); ++i) out += (*this)[i].plain_offset(indices[i]);
  return swizzle_(out);
}

NestedLayout NestedLayout::swizzled(Swizzle by) const {
  NestedLayout out = *this;
  out.swizzle_ = by;
  return out;
}

std::string NestedLayout::text() const {
  std::string out = numbers(*this, &Mode::extent) + ":" + numbers(*this, &Mode::stride);
  if (swizzle_.bits)
    out += fmt::format(" swizzle<{},{},{}>", swizzle_.bits, swizzle_.base, swizzle_.shift);
  return out;
}

std::string NestedLayout::problem() const {
  if (tuple_ && modes_.empty()) return "empty tuple: expected at least one mode";
  for (const NestedLayout& mode : modes_) {
    if (mode.swizzle_.bits) return "a swizzle applies to the whole layout, found one on a mode";
    if (std::string problem = mode.problem(); !problem.empty()) return problem;
  }
  if (mode_.extent < 1)
    return fmt::format("illegal extent: expected at least 1, found {}", mode_.extent);
  if (mode_.stride < 0 || mode_.stride > limit)
    return fmt::format("illegal stride: expected 0 to {}, found {}", limit, mode_.stride);
  if (size() > limit) return fmt::format("too many elements: expected at most {}", limit);
  const auto& [bits, base, shift] = swizzle_;
  if (bits < 0 || base < 0 || shift < bits || shift > 30 || bits + base + shift > 30)
    return "illegal swizzle: swizzle<B,M,S> requires S >= B and at most 30 bits in total";
  return {};
}

NestedLayout compact(const NestedLayout& like) {
  std::int64_t stride = 1;
  return compact(like, stride);
}

Result<Tiler> parse_tiler(std::string_view text) {
  Reader reader(text);
  Tiler out;
  if (!reader.expect('<', "<")) return reader.diags();
  do {
    auto layout = reader.layout();
    if (!layout) return reader.diags();
    out.push_back(std::move(*layout));
  } while (reader.skip(','));
  if (!reader.expect('>', ", or >")) return reader.diags();
  if (!reader.done()) {
    reader.missing("the end");
    return reader.diags();
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI
