// SPDX-License-Identifier: Apache-2.0
#include "runtime/equal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <string_view>
#include <unordered_map>

#include "runtime/equal_judge.h"

namespace tartan::TARTAN_ABI {
namespace {

using detail::EqualBuffer;

std::uint64_t hash(std::string_view text) {
  std::uint64_t out = 0;
  for (const char c : text) out = emulator::mix(out, static_cast<unsigned char>(c));
  return out;
}

class Comparison {
 public:
  Comparison(const Manifest& a, const EqualOptions& options, Equality& out)
      : out_(out), options_(options), sides_{.a = a} {
    out_.a = a.name;
  }

  void with(const Manifest& b) {
    out_.b = b.name;
    sides_.b = &b;
    if (match() && has_named()) detail::judge(sides_, options_, out_);
  }

  void with(const std::string& text) {
    out_.b = text;
    auto read = detail::parse_formula(text, detail::scalars_of(sides_.a));
    if (!read) return refuse(read.diags());
    sides_.formula = std::move(*read);
    for (const ManifestBuffer* each : sides_.a.all_buffers()) add(*each, nullptr);
    if (const auto diags = detail::check_formula(*sides_.formula, sides_.buffers); !diags.ok())
      return refuse(diags);
    for (const std::string& name : options_.outputs)
      if (name != sides_.formula->output)
        return refuse(Diags::one("usage"_rule, {},
                                 fmt::format("--output {}: the formula says what is compared: {}",
                                             name, sides_.formula->output)));
    if (has_named()) detail::judge(sides_, options_, out_);
  }

 private:
  void refuse(Diags diags) {
    out_.verdict = Equality::Verdict::refused;
    out_.refused.append(std::move(diags));
  }

  void add(const ManifestBuffer& one, const ManifestBuffer* other) {
    EqualBuffer buffer{.name = one.name, .bytes = one.size};
    const auto states = [](const ManifestBuffer& each) {
      return each.filled || !each.contents.empty();
    };
    const bool of_other =
        other &&
        (one.contents.empty() && !other->contents.empty() ? true : !states(one) && states(*other));
    const ManifestBuffer& from = of_other ? *other : one;
    buffer.given = !from.contents.empty();
    buffer.filled = from.filled;
    buffer.contents = from.contents;
    buffer.contents.resize(one.size, std::byte{from.fill});
    buffer.exact = std::ranges::find(options_.exact, one.name) != options_.exact.end();
    buffer.given |= buffer.exact;
    buffer.key = emulator::mix(hash(one.name), options_.seed);
    if (other && !one.contents.empty() && !other->contents.empty() &&
        one.contents != other->contents)
      out_.notes.push_back(fmt::format("{} starts as the first manifest's in both", one.name));
    sides_.buffers.push_back(std::move(buffer));
    sides_.names_a.push_back(one.name);
    sides_.names_b.push_back(other ? other->name : one.name);
  }

  // The buffers that options name.
  bool has_named() {
    Diags diags;
    const auto check = [&](std::string_view option, const std::vector<std::string>& names) {
      for (const std::string& name : names)
        if (std::ranges::find(sides_.buffers, name, &EqualBuffer::name) == sides_.buffers.end())
          diags.report("usage"_rule, {},
                       fmt::format("{} {}: no such buffer; expected one of {}", option, name,
                                   fmt::join(sides_.names_a, ", ")));
    };
    check("--exact", options_.exact), check("--output", options_.outputs);
    const bool ok = diags.ok();
    if (!ok) refuse(std::move(diags));
    return ok;
  }

  // By name where each has all names of the other; else in order.
  bool match() {
    const auto as = sides_.a.all_buffers(), bs = sides_.b->all_buffers();
    using Names = std::unordered_map<std::string_view, const ManifestBuffer*>;
    Names of_a, of_b;
    for (const ManifestBuffer* each : as) of_a.emplace(each->name, each);
    for (const ManifestBuffer* each : bs) of_b.emplace(each->name, each);
    const auto has_all = [](const Names& one, const Names& other) {
      return std::ranges::all_of(other, [&](const auto& each) { return one.contains(each.first); });
    };
    const bool named = has_all(of_b, of_a) || has_all(of_a, of_b);
    if (!named && as.size() != bs.size()) {
      refuse(Diags::one("usage"_rule, {sides_.b->name, 0, 0},
                        fmt::format("the buffers of the two manifests do not match: expected the "
                                    "same names, or as many in the same order, found {} and {}",
                                    as.size(), bs.size())));
      return false;
    }
    if (!named) out_.notes.emplace_back("buffers are matched in order: their names differ");
    for (std::size_t i = 0; i < as.size(); ++i) {
      const auto same = of_b.find(as[i]->name);
      const ManifestBuffer* other = !named ? bs[i] : same == of_b.end() ? nullptr : same->second;
      if (!other) continue;
      if (as[i]->size != other->size) {
        refuse(Diags::one("usage"_rule, {sides_.b->name, 0, 0},
                          fmt::format("buffer {}: expected {} bytes, as in {}, found {}",
                                      other->name, as[i]->size, sides_.a.name, other->size)));
        return false;
      }
      add(*as[i], other);
    }
    return true;
  }

  Equality& out_;
  const EqualOptions& options_;
  detail::EqualSides sides_;
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

}  // namespace tartan::TARTAN_ABI
