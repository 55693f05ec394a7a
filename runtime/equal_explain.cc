// SPDX-License-Identifier: Apache-2.0
#include "runtime/equal_explain.h"

#include <fmt/format.h>

#include <chrono>
#include <numeric>

namespace tartan::TARTAN_ABI::detail {
namespace {

using emulator::Algebra;
using emulator::FieldP;
using Clock = std::chrono::steady_clock;

// An element of an input.
struct Variable {
  std::uint32_t offset = 0;
  Type type = Type::none;
};

std::vector<Variable> variables_of(const EqualRun& a, const EqualRun& b, std::size_t buffer,
                                   std::size_t bytes) {
  std::vector<Variable> out;
  const auto& inputs = a.algebra->inputs();
  const std::uint32_t first = inputs[buffer].first;
  const bool second = b.algebra->inputs().size() > buffer;
  for (std::uint32_t at = 0; at < bytes;) {
    Type type = a.algebra->type(first + at);
    if (type == Type::none && second) type = b.algebra->type(first + at);
    if (type != Type::none) out.push_back({at, type});
    at += type == Type::none ? 1 : static_cast<std::uint32_t>(bits(type)) / 8;
  }
  return out;
}

// How much the two results change.
struct Change {
  std::uint64_t a = 0, b = 0;
  bool known = false;
  bool differs() const { return known && a != b; }
};

class Search {
 public:
  Search(EqualRun& a, EqualRun& b, const std::vector<EqualBuffer>& buffers,
         const ComparedElement& where, const RunBoth& run, double seconds)
      : a_(a),
        b_(b),
        buffers_(buffers),
        where_(where),
        run_(run),
        end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

  std::optional<UnequalTerm> operator()() {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].exact || Clock::now() > end_) continue;
      variables_ = variables_of(a_, b_, i, buffers_[i].bytes);
      if (variables_.empty()) continue;
      const Change change = change_of(i, 0, variables_.size());
      if (change.differs()) return narrow(i, change);
    }
    return std::nullopt;
  }

 private:
  Change change_of(std::size_t buffer, std::size_t first, std::size_t last) {
    constexpr std::uint64_t other = 0x6f74686572;
    Replaced replaced;
    for (std::size_t i = first; i < last; ++i) {
      const std::uint64_t key =
          Algebra::variable_key(buffers_[buffer].key, variables_[i].offset, variables_[i].type);
      replaced.emplace(key, emulator::mix(key, other));
    }
    auto [a, b] = run_(replaced);
    if (!a.good() || !b.good()) return {};
    const ComparedElement now = compare_element(a, b, where_.buffer, where_.offset);
    using Kind = emulator::Value::Kind;
    if (now.a.kind != Kind::number || now.b.kind != Kind::number || now.type != where_.type)
      return {};
    return {FieldP::add(now.a.number.p, FieldP::negate(where_.a.number.p)),
            FieldP::add(now.b.number.p, FieldP::negate(where_.b.number.p)), true};
  }

  UnequalTerm narrow(std::size_t buffer, Change change) {
    std::size_t first = 0, last = variables_.size();
    while (last - first > 1 && Clock::now() < end_) {
      const std::size_t middle = std::midpoint(first, last);
      const Change left = change_of(buffer, first, middle);
      const Change right = left.differs() ? left : change_of(buffer, middle, last);
      if (!left.differs() && !right.differs()) break;  // only together
      (left.differs() ? last : first) = middle;
      change = right;
    }
    UnequalTerm out{.buffer = buffers_[buffer].name, .elements = last - first};
    const auto size = static_cast<std::uint32_t>(bits(variables_[first].type)) / 8;
    out.index = variables_[first].offset / size;
    out.text = text_of(change);
    return out;
  }

  // Of small ratios the one that the changes have.
  static std::string text_of(const Change& change) {
    if (change.a == 0) return "only the second result depends on it";
    if (change.b == 0) return "only the first result depends on it";
    constexpr std::int64_t most = 64;
    for (std::int64_t n = 1; n <= most; ++n)
      for (std::int64_t d = 1; d <= most; ++d) {
        if (std::gcd(n, d) != 1) continue;
        for (const std::int64_t sign : {1, -1})
          if (FieldP::multiply(change.a, FieldP::of(sign * n)) ==
              FieldP::multiply(change.b, FieldP::of(d)))
            return fmt::format(
                "it counts {}{}{} times as much in the second result as in the first",
                sign < 0 ? "-" : "", n, d == 1 ? "" : fmt::format("/{}", d));
      }
    return "both results depend on it, differently";
  }

  EqualRun &a_, &b_;
  const std::vector<EqualBuffer>& buffers_;
  const ComparedElement& where_;
  const RunBoth& run_;
  const Clock::time_point end_;
  std::vector<Variable> variables_;
};

}  // namespace

std::optional<UnequalTerm> find_term(EqualRun& a, EqualRun& b,
                                     const std::vector<EqualBuffer>& buffers,
                                     const ComparedElement& where, const RunBoth& run,
                                     double seconds) {
  using Kind = emulator::Value::Kind;
  if (where.a.kind != Kind::number || where.b.kind != Kind::number) return std::nullopt;
  return Search(a, b, buffers, where, run, seconds)();
}

}  // namespace tartan::TARTAN_ABI::detail
