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
#include "tartan/support/source.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

using nlohmann::ordered_json;

constexpr int file_version = 1;

// What the product is, without the configuration.
Gemm product_of(const Gemm& options) {
  Gemm out;
  out.m = options.m, out.n = options.n, out.k = options.k;
  out.a = options.a, out.b = options.b, out.c = options.c, out.accumulator = options.accumulator;
  out.a_major = options.a_major, out.b_major = options.b_major;
  out.promote = options.promote, out.epilogue = options.epilogue, out.batched = options.batched;
  return out;
}

bool partial(const Gemm& options) { return options.splits > 1 || options.stream_blocks > 0; }

// Sorts the file, and tells entries apart.
std::string key_of(const TuningEntry& entry) {
  const Gemm& at = entry.choice;
  return fmt::format("{}\n{}\n{}\n{}\n{} {:010} {:010} {:010} {} {}", entry.on.gpu, entry.target,
                     entry.on.driver, entry.on.library, name(at.a), at.m, at.n, at.k,
                     kernels::key_of(product_of(at)), partial(at));
}

// ---- Members of an entry's "product" and "choice": their name, how they are written and read.

struct Word {
  const char* name;
  ordered_json (*get)(const Gemm&);
  bool (*set)(Gemm&, const ordered_json&);  // false: not such a value
};

bool number(const ordered_json& from, int least, int& out) {
  if (!from.is_number_integer()) return false;
  const auto value = from.get<std::int64_t>();
  if (value < least || value > 0x7FFFFFFF) return false;
  out = static_cast<int>(value);
  return true;
}

bool type(const ordered_json& from, Type& out) {
  const auto found = from.is_string() ? parse_type(from.get<std::string>()) : std::nullopt;
  if (found) out = *found;
  return bool(found);
}

bool major(const ordered_json& from, Major& out) {
  if (from != "row" && from != "col") return false;
  out = from == "row" ? Major::row : Major::col;
  return true;
}

bool flag(const ordered_json& from, bool& out) {
  if (!from.is_boolean()) return false;
  out = from.get<bool>();
  return true;
}

const char* text(Major major) { return major == Major::row ? "row" : "col"; }

#define SIZE(member)                                                                              \
  {                                                                                               \
#member, [](const Gemm& g)                                                                    \
                  -> ordered_json { return g.member; },                                           \
                                                     [](Gemm & g,                                 \
                                                        const ordered_json&                       \
                                                            j) { return number(j, 1, g.member); } \
  }
#define TYPE(member)                                                                               \
  {                                                                                                \
#member, [](const Gemm& g)                                                                     \
                  -> ordered_json { return name(g.member); },                                      \
                                                           [](Gemm & g,                            \
                                                              const ordered_json&                  \
                                                                  j) { return type(j, g.member); } \
  }
#define MAJOR(member)                                                                             \
  {                                                                                               \
#member,                                                                                      \
        [](const Gemm& g)                                                                         \
             -> ordered_json { return text(g.member); }, [](Gemm & g,                             \
                                                            const ordered_json&                   \
                                                                j) { return major(j, g.member); } \
  }
#define PART(member)                                                        \
  {                                                                         \
#member, [](const Gemm& g) -> ordered_json { return g.epilogue.member; }, \
        [](Gemm& g, const ordered_json& j) { return flag(j, g.epilogue.member); } \
  }
#define COUNT(member, least)                                                                     \
  {                                                                                              \
#member,                                                                                     \
        [](const Gemm& g)                                                                        \
             -> ordered_json { return g.member; },                                               \
                                                [](Gemm & g,                                     \
                                                   const ordered_json&                           \
                                                       j) { return number(j, least, g.member); } \
  }
constexpr Word product_words[] = {SIZE(m),           SIZE(n),        SIZE(k),
                                  TYPE(a),           TYPE(b),        TYPE(c),
                                  TYPE(accumulator), MAJOR(a_major), MAJOR(b_major)};
// Left out where they have the values of Gemm{}.
constexpr Word further_words[] = {
    COUNT(promote, 0),
    PART(alpha),
    PART(beta),
    PART(row_scales),
    PART(column_scales),
    PART(bias),
    PART(residual),
    {"activation",
     [](const Gemm& g) -> ordered_json { return static_cast<int>(g.epilogue.activation); },
     [](Gemm& g, const ordered_json& j) {
       int value = 0;
       if (!number(j, 0, value) || value > static_cast<int>(Activation::sigmoid)) return false;
       g.epilogue.activation = static_cast<Activation>(value);
       return true;
     }}};

bool read_sizes(const ordered_json& from, std::initializer_list<int*> out) {
  if (!from.is_string()) return false;
  std::stringstream text(from.get<std::string>());
  char between = 'x';
  bool first = true;
  for (int* each : out) {
    if (!first && !(text >> between)) return false;
    if (between != 'x' || !(text >> *each) || *each < 1) return false;
    first = false;
  }
  return text.peek() == std::stringstream::traits_type::eof();
}

// The options of `tartan emit gemm`.
constexpr Word choice_words[] = {
    {"tile",
     [](const Gemm& g) -> ordered_json {
       return fmt::format("{}x{}x{}", g.tile.m, g.tile.n, g.tile.k);
     },
     [](Gemm& g, const ordered_json& j) {
       return read_sizes(j, {&g.tile.m, &g.tile.n, &g.tile.k});
     }},
    {"warps",
     [](const Gemm& g) -> ordered_json {
       std::string out = fmt::format("{}x{}", g.tile.warps_m, g.tile.warps_n);
       if (g.tile.warps_k > 1) out += fmt::format("x{}", g.tile.warps_k);
       return out;
     },
     [](Gemm& g, const ordered_json& j) {
       return read_sizes(j, {&g.tile.warps_m, &g.tile.warps_n}) ||
              read_sizes(j, {&g.tile.warps_m, &g.tile.warps_n, &g.tile.warps_k});
     }},
    COUNT(stages, 1),
    COUNT(producers, 0),
    COUNT(cluster, 1),
    {"cluster-columns", [](const Gemm& g) -> ordered_json { return g.cluster_columns; },
     [](Gemm& g, const ordered_json& j) { return number(j, 1, g.cluster_columns); }},
    COUNT(group, 1),
    COUNT(splits, 1),
    {"cluster-splits", [](const Gemm& g) -> ordered_json { return g.cluster_splits; },
     [](Gemm& g, const ordered_json& j) { return number(j, 1, g.cluster_splits); }},
    {"swap", [](const Gemm& g) -> ordered_json { return g.swap; },
     [](Gemm& g, const ordered_json& j) { return flag(j, g.swap); }},
    {"stream-blocks", [](const Gemm& g) -> ordered_json { return g.stream_blocks; },
     [](Gemm& g, const ordered_json& j) { return number(j, 0, g.stream_blocks); }},
    {"persistent", [](const Gemm& g) -> ordered_json { return g.persistent; },
     [](Gemm& g, const ordered_json& j) { return flag(j, g.persistent); }}};
// Left out where they have the values of Gemm{}.
constexpr Word further_choice_words[] = {
    {"products", [](const Gemm& g) -> ordered_json { return g.tile.products; },
     [](Gemm& g, const ordered_json& j) { return number(j, 1, g.tile.products); }},
    {"direct", [](const Gemm& g) -> ordered_json { return g.direct; },
     [](Gemm& g, const ordered_json& j) { return flag(j, g.direct); }}};
#undef SIZE
#undef TYPE
#undef MAJOR
#undef PART
#undef COUNT

ordered_json to_json(const TuningEntry& entry) {
  ordered_json product, choice;
  for (const Word& each : product_words) product[each.name] = each.get(entry.choice);
  for (const Word& each : further_words)
    if (each.get(entry.choice) != each.get(Gemm{})) product[each.name] = each.get(entry.choice);
  for (const Word& each : choice_words) choice[each.name] = each.get(entry.choice);
  for (const Word& each : further_choice_words)
    if (each.get(entry.choice) != each.get(Gemm{})) choice[each.name] = each.get(entry.choice);
  return {{"gpu", entry.on.gpu},
          {"driver", entry.on.driver},
          {"library", entry.on.library},
          {"target", entry.target},
          {"kernel", "gemm"},
          {"product", std::move(product)},
          {"choice", std::move(choice)},
          {"us", std::round(entry.us * 1000) / 1000}};
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

  void words(const ordered_json& from, std::span<const Word> all, bool required, Gemm& out) {
    for (const Word& each : all) {
      const auto found = from.find(each.name);
      if (found == from.end()) {
        if (required) wrong(each.name, nullptr);
      } else if (!each.set(out, *found)) {
        wrong(each.name, &*found);
      }
    }
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
    words(from["product"], product_words, true, out.choice);
    words(from["product"], further_words, false, out.choice);
    words(from["choice"], choice_words, true, out.choice);
    words(from["choice"], further_choice_words, false, out.choice);
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
  Gemm out = product;
  out.tile = choice.tile, out.stages = choice.stages, out.producers = choice.producers;
  out.cluster = choice.cluster, out.group = choice.group, out.persistent = choice.persistent;
  out.splits = choice.splits, out.stream_blocks = choice.stream_blocks;
  out.cluster_columns = choice.cluster_columns;
  out.cluster_splits = choice.cluster_splits, out.swap = choice.swap;
  out.direct = choice.direct;
  return out;
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
