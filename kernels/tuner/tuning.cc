// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/tuning.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "kernels/common/keys.h"
#include "kernels/common/options.h"
#include "tartan/support/source.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

using nlohmann::ordered_json;

constexpr int file_version = 1;

// Part of an entry's "product": that of run-time sizes, which entries do not have, is not.
template <typename Options>
bool of_product(const detail::OptionRow<Options>& row) {
  return row.chosen == detail::Chosen::never && !row.word.starts_with("multiple");
}

// `to` with the members of `from` whose rows are of that kind.
template <typename Which>
Gemm with_members(Gemm to, const Gemm& from, const Which& which) {
  detail::each_member(
      [&](const auto& row, auto& member, const auto& other) {
        if (which(row)) detail::assign(member, other);
      },
      to, from);
  return to;
}

// What the product is, without the configuration.
Gemm product_of(const Gemm& options) {
  return with_members({}, options, [](const auto& row) { return of_product(row); });
}

bool partial(const Gemm& options) { return options.splits > 1 || options.stream_blocks > 0; }

// Sorts the file, and tells entries apart.
std::string key_of(const TuningEntry& entry) {
  const Gemm& at = entry.choice;
  return fmt::format("{}\n{}\n{}\n{}\n{} {:010} {:010} {:010} {} {}", entry.on.gpu, entry.target,
                     entry.on.driver, entry.on.library, name(at.a), at.m, at.n, at.k,
                     kernels::key_of(product_of(at)), partial(at));
}

// ---- Members of an entry's "product" and "choice". These are in each entry, in this order; others
// follow where they have not the values of Gemm{}, activation as the last.

constexpr std::string_view product_members[] = {"m", "n",           "k",       "a",      "b",
                                                "c", "accumulator", "a_major", "b_major"};
constexpr std::string_view choice_members[] = {
    "tile",  "warps",  "stages",         "producers", "cluster",       "cluster-columns",
    "group", "splits", "cluster-splits", "swap",      "stream-blocks", "persistent"};

bool in_each_entry(std::string_view name) {
  return std::ranges::find(product_members, name) != std::end(product_members) ||
         std::ranges::find(choice_members, name) != std::end(choice_members);
}

template <typename Options>
std::string name_in_file(const detail::OptionRow<Options>& row) {
  std::string out(row.word);
  if (of_product(row)) std::ranges::replace(out, '-', '_');
  return out;
}

template <typename Value>
ordered_json json_of(const Value& value) {
  if constexpr (std::is_arithmetic_v<Value>) return value;
  else if constexpr (std::is_same_v<Value, Activation>) return static_cast<int>(value);
  else return detail::word_of(value);
}

ordered_json to_json(const TuningEntry& entry) {
  ordered_json product, choice, more, last;
  for (const std::string_view name : product_members) product[std::string(name)] = nullptr;
  for (const std::string_view name : choice_members) choice[std::string(name)] = nullptr;
  const Gemm usual;
  detail::each_member(
      [&]<typename Value>(const auto& row, const Value& value, const auto& of_usual) {
        const bool in_product = of_product(row), each = in_each_entry(name_in_file(row));
        if (!in_product && row.chosen == detail::Chosen::never) return;
        if (!each && value == of_usual) return;
        ordered_json& to = !in_product                         ? choice
                           : std::is_same_v<Value, Activation> ? last
                                                               : product;
        to[name_in_file(row)] = json_of(value);
      },
      entry.choice, usual);
  if (!last.is_null()) product.update(last);
  return {{"gpu", entry.on.gpu},
          {"driver", entry.on.driver},
          {"library", entry.on.library},
          {"target", entry.target},
          {"kernel", "gemm"},
          {"product", std::move(product)},
          {"choice", std::move(choice)},
          {"us", std::round(entry.us * 1000) / 1000}};
}

// Whether `from` is a value of the member, which then has it.
bool set(const ordered_json& from, const detail::Legal& legal, int& out) {
  if (!from.is_number_integer()) return false;
  const auto value = from.get<std::int64_t>();
  if (value < legal.least || value > legal.most) return false;
  out = static_cast<int>(value);
  return true;
}

bool set(const ordered_json& from, const detail::Legal&, bool& out) {
  if (!from.is_boolean()) return false;
  out = from.get<bool>();
  return true;
}

bool set(const ordered_json& from, const detail::Legal&, Type& out) {
  const auto found = from.is_string() ? parse_type(from.get<std::string>()) : std::nullopt;
  if (found) out = *found;
  return bool(found);
}

bool set(const ordered_json& from, const detail::Legal&, Activation& out) {
  int value = 0;
  if (!set(from, {0, static_cast<int>(Activation::sigmoid)}, value)) return false;
  out = static_cast<Activation>(value);
  return true;
}

template <typename Enum>
bool set(const ordered_json& from, const detail::Legal&, Enum& out) {
  for (const auto& each : detail::names_of(out))
    if (from == each.name) return out = each.value, true;
  return false;
}

bool set(const ordered_json& from, const detail::Legal&, detail::SizesOf<int>& out) {
  if (!from.is_string()) return false;
  std::stringstream text(from.get<std::string>());
  const auto at_end = [&] { return text.peek() == std::stringstream::traits_type::eof(); };
  char between = 'x';
  for (int* const each : out.each) {
    if (each == out.each[2] && out.third == detail::Third::one && at_end()) return *each = 1, true;
    if (each != out.each[0] && !(text >> between)) return false;
    if (between != 'x' || !(text >> *each) || *each < 1) return false;
  }
  return at_end();
}

// Reads a file's entries, and collects what is wrong with them.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  Result<Tuning> read(std::string_view text) {
    const auto all = ordered_json::parse(text, nullptr, false);
    if (all.is_discarded()) return one("not JSON: the file is damaged or no tuning file");
    if (!all.is_object() || !all.contains("tartan_tuning") || !all.contains("entries") ||
        !all["entries"].is_array())
      return one("expected an object with \"tartan_tuning\" and \"entries\"");
    if (all["tartan_tuning"] != file_version)
      return one(fmt::format("\"tartan_tuning\": expected {}, found {}", file_version,
                             all["tartan_tuning"].dump()));
    Tuning out;
    for (const ordered_json& each : all["entries"]) {
      if (auto entry = read_entry(each)) out.add(std::move(*entry));
      ++number_;
    }
    if (!diags_.ok()) return diags_;
    return out;
  }

 private:
  Diags one(const std::string& message) { return Diags::one("file"_rule, {file_, 0, 0}, message); }

  void wrong(std::string_view member, const ordered_json* found) {
    diags_.report("file"_rule, {file_, 0, 0},
                  fmt::format("entry {}: \"{}\" is {}", number_, member,
                              found ? "not a legal value: " + found->dump() : "missing"));
  }

  void members(const ordered_json& entry, Gemm& out) {
    detail::each_member(
        [&](const auto& row, auto& member) {
          if (!of_product(row) && row.chosen == detail::Chosen::never) return;
          const ordered_json& part = entry[of_product(row) ? "product" : "choice"];
          const std::string name = name_in_file(row);
          const auto found = part.find(name);
          if (found == part.end()) {
            if (in_each_entry(name)) wrong(name, nullptr);
          } else if (!set(*found, row.legal, member)) {
            wrong(name, &*found);
          }
        },
        out);
    for (const char* size : {"m", "n", "k"})
      if (entry["product"].value(size, ordered_json(1)) == 0) wrong(size, &entry["product"][size]);
  }

  std::optional<TuningEntry> read_entry(const ordered_json& from) {
    const std::size_t before = diags_.size();
    TuningEntry out;
    if (!from.is_object()) return wrong("entry", &from), std::nullopt;
    const auto string = [&](const char* name, std::string& to) {
      const auto found = from.find(name);
      if (found == from.end()) return wrong(name, nullptr);
      if (!found->is_string()) return wrong(name, &*found);
      found->get_to(to);
    };
    string("gpu", out.on.gpu), string("driver", out.on.driver);
    string("library", out.on.library), string("target", out.target);
    std::string kernel;
    string("kernel", kernel);
    if (kernel != "gemm" && diags_.size() == before) wrong("kernel", &from["kernel"]);
    for (const char* part : {"product", "choice"})
      if (!from.contains(part)) wrong(part, nullptr);
      else if (!from[part].is_object()) wrong(part, &from[part]);
    if (!from.contains("us")) wrong("us", nullptr);
    else if (!from["us"].is_number() || from["us"].get<double>() < 0) wrong("us", &from["us"]);
    else from["us"].get_to(out.us);
    if (diags_.size() != before) return std::nullopt;
    members(from, out.choice);
    if (diags_.size() != before) return std::nullopt;
    return out;
  }

  std::string file_;
  int number_ = 0;  // of the entry
  Diags diags_;
};

// The lock of a file, until it is destroyed.
class Lock {
 public:
  explicit Lock(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    while (file_ >= 0 && ::flock(file_, LOCK_EX) != 0)
      if (errno != EINTR) {
        ::close(file_);
        file_ = -1;
      }
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    if (file_ >= 0) ::close(file_);
  }
  explicit operator bool() const { return file_ >= 0; }

 private:
  int file_;
};

// The entry's configuration for a product with these leading dimensions and run-time sizes.
Gemm applied(const Gemm& choice, const Gemm& product) {
  return with_members(product, choice,
                      [](const auto& row) { return row.chosen != detail::Chosen::never; });
}

}  // namespace

std::int64_t workspace_bytes(const Gemm& options) {
  if (!partial(options) || options.tile.m < 1 || options.tile.n < 1) return 0;
  return options.workspace_elements(options.m, options.n) * bits(options.accumulator) / 8;
}

Result<Tuning> Tuning::parse(std::string_view text, const std::string& name) {
  return Reader(name).read(text);
}

Result<Tuning> Tuning::read(const std::string& path) {
  const auto source = read_source(path);
  if (!source) return source.diags();
  return parse(source->text(), path);
}

std::string Tuning::text() const {
  std::string out = fmt::format("{{\"tartan_tuning\": {}, \"entries\": [", file_version);
  bool first = true;
  for (const TuningEntry& each : entries_) {
    out += fmt::format("{}\n{}", first ? "" : ",", to_json(each).dump());
    first = false;
  }
  return out + "\n]}\n";
}

void Tuning::add(TuningEntry entry) {
  const std::string key = key_of(entry);
  const auto at = std::lower_bound(
      entries_.begin(), entries_.end(), key,
      [](const TuningEntry& each, const std::string& than) { return key_of(each) < than; });
  if (at != entries_.end() && key_of(*at) == key) *at = std::move(entry);
  else entries_.insert(at, std::move(entry));
}

Status Tuning::merge_into(const std::string& path) const {
  const Lock lock(path + ".lock");
  if (!lock)
    return {"file"_rule, fmt::format("cannot lock {}.lock: {}", path, std::strerror(errno))};
  Tuning all;
  std::error_code none;
  if (std::filesystem::exists(path, none)) {
    auto old = read(path);
    if (!old) return old.diags();
    all = std::move(*old);
  }
  for (const TuningEntry& each : entries_) all.add(each);
  return write_file(path, all.text());
}

namespace {

bool same_product(const Gemm& a, const Gemm& b) {
  return kernels::key_of(product_of(a)) == kernels::key_of(product_of(b));
}

}  // namespace

std::optional<Gemm> Tuning::find(const Gemm& product, const Target& target, const TunedOn& on,
                                 std::int64_t workspace) const {
  const TuningEntry* best = nullptr;
  for (const TuningEntry& each : entries_)
    if (each.on == on && each.target == target.arch.text() && same_product(each.choice, product) &&
        workspace_bytes(each.choice) <= workspace && (!best || each.us < best->us))
      best = &each;
  if (!best) return std::nullopt;
  return applied(best->choice, product);
}

Result<std::optional<Gemm>> Tuning::find(const Gemm& product, const Target& target,
                                         std::int64_t workspace) const {
  const TuningEntry* best = nullptr;
  for (const TuningEntry& each : entries_) {
    if (each.target != target.arch.text() || !same_product(each.choice, product) ||
        workspace_bytes(each.choice) > workspace)
      continue;
    if (best && best->on.gpu != each.on.gpu &&
        kernels::key_of(best->choice) != kernels::key_of(each.choice))
      return {"file"_rule,
              fmt::format("the entries of {} and {} disagree about {} x {} x {} on {}: expected a "
                          "file with entries of one GPU of that target",
                          best->on.gpu, each.on.gpu, product.m, product.n, product.k, each.target)};
    if (!best || each.us < best->us) best = &each;
  }
  if (!best) return std::optional<Gemm>();
  return std::optional<Gemm>(applied(best->choice, product));
}

}  // namespace tartan::TARTAN_ABI::kernels
