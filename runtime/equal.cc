// SPDX-License-Identifier: Apache-2.0
#include "runtime/equal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <set>

#include "runtime/equal_compare.h"
#include "runtime/equal_explain.h"
#include "runtime/equal_launch.h"
#include "runtime/formula.h"
#include "runtime/launch_findings.h"
#include "runtime/outcome.h"

namespace tartan::inline TARTAN_ABI {
namespace {

using detail::EqualBuffer;
using detail::EqualRun;

std::uint64_t hash(std::string_view text) {
  std::uint64_t out = 0;
  for (const char c : text) out = emulator::mix(out, static_cast<unsigned char>(c));
  return out;
}

// ---- Numbers for inputs that the manifests do not give.

std::uint32_t rounded(Type type, double x) {
  using namespace emulator;
  switch (type) {
    case Type::f16: return narrow(format_f16, x, Rounding::rn);
    case Type::bf16: return narrow(format_bf16, x, Rounding::rn);
    case Type::e4m3: return narrow(format_e4m3, x, Rounding::rn);
    case Type::e5m2: return narrow(format_e5m2, x, Rounding::rn);
    case Type::e2m3: return narrow(format_e2m3, x, Rounding::rn);
    case Type::e3m2: return narrow(format_e3m2, x, Rounding::rn);
    case Type::e2m1: return narrow(format_e2m1, x, Rounding::rn);
    case Type::s8:
    case Type::u8: return static_cast<std::uint32_t>(static_cast<std::int32_t>(x * 100)) & 0xFF;
    default: return std::bit_cast<std::uint32_t>(static_cast<float>(x));
  }
}

// In (-1, 1); unsigned types in (0, 1); scales of blocks from 1/16 to 16.
void draw(std::uint64_t key, Type type, std::byte* to) {
  if (type == Type::ue8m0 || type == Type::ue4m3) {
    const std::uint64_t exponent = emulator::mix(key, 1) % 9;
    *to = static_cast<std::byte>(type == Type::ue8m0 ? 123 + exponent : (3 + exponent) << 3);
    return;
  }
  double x = std::ldexp(static_cast<double>(emulator::mix(key, 1) >> 11), -53);
  if (type != Type::u8) x = 2 * x - 1;
  if (type == Type::f64) return void(std::memcpy(to, &x, 8));
  const std::uint32_t bits = rounded(type, x);
  std::memcpy(to, &bits, static_cast<std::size_t>(tartan::bits(type)) / 8);
}

class Comparison {
 public:
  Comparison(const Manifest& a, const EqualOptions& options, Equality& out)
      : a_(a), options_(options), out_(out) {
    out_.a = a.name;
  }

  void with(const Manifest& b) {
    out_.b = b.name;
    b_ = &b;
    if (match() && has_named()) judge();
  }

  void with(const std::string& text) {
    out_.b = text;
    auto read = detail::parse_formula(text);
    if (!read) return refuse(read.diags());
    formula_ = std::move(*read);
    for (const ManifestBuffer* each : a_.all_buffers()) add(*each, nullptr);
    if (const auto diags = detail::check_formula(*formula_, buffers_); !diags.ok())
      return refuse(diags);
    for (const std::string& name : options_.outputs)
      if (name != formula_->output)
        return refuse(Diags::one("usage"_rule, {},
                                 fmt::format("--output {}: the formula says what is compared: {}",
                                             name, formula_->output)));
    if (has_named()) judge();
  }

 private:
  void refuse(Diags diags) {
    out_.verdict = Equality::Verdict::refused;
    out_.refused.append(std::move(diags));
  }

  void add(const ManifestBuffer& one, const ManifestBuffer* other) {
    EqualBuffer buffer{.name = one.name, .bytes = one.size};
    const ManifestBuffer& from = one.contents.empty() && other ? *other : one;
    buffer.given = !from.contents.empty();
    buffer.contents = from.contents;
    buffer.contents.resize(one.size, std::byte{from.fill});
    buffer.exact = std::ranges::find(options_.exact, one.name) != options_.exact.end();
    buffer.key = emulator::mix(hash(one.name), options_.seed);
    if (other && !one.contents.empty() && !other->contents.empty() &&
        one.contents != other->contents)
      out_.notes.push_back(fmt::format("{} starts as the first manifest's in both", one.name));
    buffers_.push_back(std::move(buffer));
    names_a_.push_back(one.name);
    names_b_.push_back(other ? other->name : one.name);
  }

  // The buffers that options name.
  bool has_named() {
    Diags diags;
    const auto check = [&](std::string_view option, const std::vector<std::string>& names) {
      for (const std::string& name : names)
        if (std::ranges::find(buffers_, name, &EqualBuffer::name) == buffers_.end())
          diags.report("usage"_rule, {},
                       fmt::format("{} {}: no such buffer; expected one of {}", option, name,
                                   fmt::join(names_a_, ", ")));
    };
    check("--exact", options_.exact), check("--output", options_.outputs);
    const bool ok = diags.ok();
    if (!ok) refuse(std::move(diags));
    return ok;
  }

  // By name where each has all names of the other; else in order.
  bool match() {
    const auto as = a_.all_buffers(), bs = b_->all_buffers();
    const auto find = [](const auto& list, const std::string& name) -> const ManifestBuffer* {
      for (const ManifestBuffer* each : list)
        if (each->name == name) return each;
      return nullptr;
    };
    const bool named = std::ranges::all_of(as, [&](auto* one) { return find(bs, one->name); }) ||
                       std::ranges::all_of(bs, [&](auto* one) { return find(as, one->name); });
    if (!named && as.size() != bs.size()) {
      refuse(Diags::one("usage"_rule, {b_->name, 0, 0},
                        fmt::format("the buffers of the two manifests do not match: expected the "
                                    "same names, or as many in the same order, found {} and {}",
                                    as.size(), bs.size())));
      return false;
    }
    if (!named) out_.notes.emplace_back("buffers are matched in order: their names differ");
    for (std::size_t i = 0; i < as.size(); ++i) {
      const ManifestBuffer* other = named ? find(bs, as[i]->name) : bs[i];
      if (!other) continue;
      if (as[i]->size != other->size) {
        refuse(Diags::one("usage"_rule, {b_->name, 0, 0},
                          fmt::format("buffer {}: expected {} bytes, as in {}, found {}",
                                      other->name, as[i]->size, a_.name, other->size)));
        return false;
      }
      add(*as[i], other);
    }
    return true;
  }

  EqualRun run_first(const detail::Replaced& replaced = {}) {
    return detail::run_under_algebra(a_, buffers_, names_a_, options_, replaced);
  }
  EqualRun run_second(EqualRun& first, const detail::Replaced& replaced = {}) {
    if (b_) return detail::run_under_algebra(*b_, buffers_, names_b_, options_, replaced);
    return detail::evaluate_formula(*formula_, buffers_, first, replaced);
  }

  // Whether both came to their ends.
  bool finished(const EqualRun& run, const std::string& ptx) {
    if (run.good()) return true;
    out_.ptx = ptx;
    if (!run.refused.ok()) refuse(run.refused);
    else out_.verdict = Equality::Verdict::trapped;
    out_.findings = run.findings;
    return false;
  }

  // The first run says what the inputs' elements are; those that no file gives are drawn.
  bool fill(const EqualRun& a, const EqualRun& b) {
    bool filled = false;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      EqualBuffer& buffer = buffers_[i];
      if (buffer.given || buffer.exact || buffer.bytes == 0) continue;
      const std::uint32_t first = a.algebra->inputs()[i].first;
      for (std::uint32_t at = 0; at < buffer.bytes;) {
        std::uint8_t use = a.algebra->use(first + at);
        Type type = a.algebra->type(first + at);
        use |= b.algebra->use(first + at);
        if (type == Type::none) type = b.algebra->type(first + at);
        const std::uint64_t key = emulator::mix(buffer.key, at);
        if (use & emulator::as_metadata) {  // two of four: a pair of indices that rise
          constexpr std::uint8_t codes[] = {0x4, 0x8, 0xC, 0x9, 0xD, 0xE};
          const bool wide = wide_metadata(a, b);
          const auto code = [&](std::uint64_t which) {
            return wide ? (emulator::mix(key, which) & 1 ? 0xE : 0x4)
                        : codes[emulator::mix(key, which) % std::size(codes)];
          };
          buffer.contents[at] = static_cast<std::byte>(code(2) | code(3) << 4);
          ++at;
          filled = true;
          continue;
        }
        if (type == Type::none) {
          ++at;
          continue;
        }
        draw(key, type, &buffer.contents[at]);
        at += static_cast<std::uint32_t>(tartan::bits(type)) / 8;
        filled = true;
      }
    }
    return filled;
  }

  // Codes of sparse tf32 mean one of two.
  static bool wide_metadata(const EqualRun& a, const EqualRun& b) {
    for (const EqualRun* run : {&a, &b})
      if (run->algebra && run->algebra->sparse_words) return true;
    return false;
  }

  // Buffers of which one takes bits where the other takes values: their bits count for both.
  bool settle(const EqualRun& a, const EqualRun& b) {
    bool changed = false;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      EqualBuffer& buffer = buffers_[i];
      const std::uint32_t first = a.algebra->inputs()[i].first;
      for (std::uint32_t at = 0; at < buffer.bytes && !buffer.exact; ++at) {
        std::uint8_t use = a.algebra->use(first + at);
        use |= b.algebra->use(first + at);
        const bool both = use & emulator::by_value && use & emulator::by_bits;
        const bool types = b_ && a.algebra->type(first + at) != b.algebra->type(first + at) &&
                           a.algebra->type(first + at) != Type::none &&
                           b.algebra->type(first + at) != Type::none;
        if (types && !both)
          out_.notes.push_back(fmt::format("{} is read as {} and as {}", buffer.name,
                                           name(a.algebra->type(first + at)),
                                           name(b.algebra->type(first + at))));
        if (types && !both) break;
        if (!both) continue;
        buffer.exact = changed = true;
        out_.notes.push_back(
            fmt::format("{}: the verdict holds for these elements only: integer instructions take "
                        "their bits",
                        buffer.name));
      }
    }
    return changed;
  }

  void judge() {
    EqualRun a, b;
    for (int round = 0; round < 4; ++round) {
      a = run_first();
      if (!finished(a, a_.ptx.name())) return;
      b = run_second(a);
      if (round == 0 && (b_ ? b.good() : true) && fill(a, b)) continue;
      if (!finished(b, b_ ? b_->ptx.name() : std::string())) return;
      if (!settle(a, b)) break;
    }
    conclude(a, b);
  }

  void conclude(EqualRun& a, EqualRun& b) {
    std::vector<std::string> outputs = options_.outputs;
    if (formula_) outputs = {formula_->output};
    detail::Comparing compared = detail::compare_runs(a, b, buffers_, outputs);
    out_.elements = compared.elements;
    out_.unequal = compared.unequal;
    for (const auto& [run, of_b] : {std::pair{&a, false}, std::pair{&b, true}})
      if (!run->algebra->given_up().empty()) {
        const emulator::Reason& reason = run->algebra->given_up().front();
        return undecided(reason.text, reason.line, of_b);
      }
    if (compared.different) return different(a, b, *compared.different);
    if (compared.undecided) {
      show(*compared.undecided);
      return undecided(compared.undecided->reason, compared.undecided->line,
                       compared.undecided->of_b);
    }
    if (compared.close) {
      show(*compared.close);
      const bool opaque = !compared.close->a.interpreted || !compared.close->b.interpreted;
      return undecided(
          opaque ? "the results agree as numbers, not as functions: they rest on functions of "
                   "which nothing is known (lg2, tanh, sin, cos)"
                 : "the results agree as numbers, not as functions: constants that were rounded at "
                   "different places, or exponentials of exponentials",
          0, false);
    }
    if (compared.elements == 0)
      return undecided("neither kernel wrote anything into a buffer that both have", 0, false);
    out_.verdict = Equality::Verdict::same;
  }

  void undecided(const std::string& reason, int line, bool of_b) {
    out_.verdict = Equality::Verdict::undecided;
    out_.reason = reason;
    out_.line = line;
    if (line) out_.ptx = of_b ? b_->ptx.name() : a_.ptx.name();
  }

  void show(const detail::ComparedElement& one) {
    out_.first = UnequalElement{.buffer = buffers_[one.buffer].name,
                                .index = one.offset / one.bytes,
                                .offset = one.offset,
                                .type = std::string(name(one.type)),
                                .a = detail::image_text(one.a),
                                .b = detail::image_text(one.b),
                                .real_a = detail::real_text(one.a),
                                .real_b = detail::real_text(one.b)};
    if (one.type == Type::none) out_.first->type = "b8";
  }

  void different(EqualRun& a, EqualRun& b, const detail::ComparedElement& first) {
    out_.verdict = Equality::Verdict::different;
    show(first);
    if (first.type == Type::none || options_.explain <= 0) return;
    out_.term = detail::find_term(
        a, b, buffers_, first,
        [&](const detail::Replaced& replaced) {
          auto one = std::make_pair(run_first(replaced), EqualRun{});
          one.second = run_second(one.first, replaced);
          return one;
        },
        options_.explain);
  }

  const Manifest& a_;
  const Manifest* b_ = nullptr;
  std::optional<detail::Formula> formula_;
  const EqualOptions& options_;
  Equality& out_;
  std::vector<EqualBuffer> buffers_;
  std::vector<std::string> names_a_, names_b_;
};

template <typename Other>
Equality compare_with(const Manifest& a, const Other& b, const EqualOptions& options) {
  Equality out;
  try {
    Comparison(a, options, out).with(b);
  } catch (const std::bad_alloc&) {
    out.verdict = Equality::Verdict::refused;
    out.refused.report("out-of-memory"_rule, {a.name, 0, 0}, "out of host memory");
  }
  return out;
}

}  // namespace

Equality equal(const Manifest& a, const Manifest& b, const EqualOptions& options) {
  return compare_with(a, b, options);
}

Equality equal(const Manifest& a, const std::string& formula, const EqualOptions& options) {
  return compare_with(a, formula, options);
}

}  // namespace tartan::inline TARTAN_ABI
