// SPDX-License-Identifier: Apache-2.0
#include "kernels/registry/given.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <type_traits>

#include "kernels/common/gpus.h"
#include "kernels/registry/product_options.h"
#include "kernels/tuner/tuned_with.h"
#include "tartan/kernels/tuning.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

using kernels::Gemm;
using kernels::KGroupedGemm;
using kernels::ScaledGemm;
using kernels::Tuning;

/// A setting of a configuration that an option of its name gives.
template <typename Options>
struct Setting {
  std::string_view option;
  int (*get)(const Options&);
  void (*put)(Options&, int) = nullptr;  // null: it decides what shape the kernel has
  bool flag = false;
  bool sought = false;  // put only where no configuration that is chosen has it
};

template <auto member>
struct Member;
template <typename Options, typename Value, Value Options::*member>
struct Member<member> {
  static constexpr Setting<Options> shape(std::string_view option) {
    return {.option = option,
            .get = [](const Options& of) { return int{of.*member}; },
            .flag = std::is_same_v<Value, bool>};
  }
  static constexpr Setting<Options> setting(std::string_view option) {
    Setting<Options> out = shape(option);
    out.put = [](Options& of, int value) { of.*member = static_cast<Value>(value); };
    return out;
  }
  static constexpr Setting<Options> sought(std::string_view option) {
    Setting<Options> out = setting(option);
    out.sought = true;
    return out;
  }
};

constexpr Setting<Gemm> gemm_settings[] = {
    Member<&Gemm::stages>::setting("stages"),
    Member<&Gemm::producers>::setting("producers"),
    Member<&Gemm::cluster>::setting("cluster"),
    Member<&Gemm::cluster_columns>::setting("cluster-columns"),
    Member<&Gemm::group>::setting("group"),
    Member<&Gemm::persistent>::setting("persistent"),
    Member<&Gemm::splits>::shape("splits"),
    Member<&Gemm::stream_blocks>::shape("stream-blocks"),
    Member<&Gemm::cluster_splits>::shape("cluster-splits"),
    Member<&Gemm::swap>::shape("swap"),
    Member<&Gemm::direct>::shape("direct"),
    {"products", [](const Gemm& of) { return of.tile.products; }}};

constexpr Setting<ScaledGemm> scaled_settings[] = {
    Member<&ScaledGemm::stages>::setting("stages"),
    Member<&ScaledGemm::group>::setting("group"),
    Member<&ScaledGemm::cluster>::sought("cluster"),
    Member<&ScaledGemm::cluster_splits>::shape("cluster-splits"),
    Member<&ScaledGemm::blocks_k>::shape("blocks-k"),
    Member<&ScaledGemm::share_a>::sought("share-a")};

constexpr Setting<KGroupedGemm> k_grouped_settings[] = {
    Member<&KGroupedGemm::stages>::setting("stages"),
    Member<&KGroupedGemm::group>::setting("group"),
    Member<&KGroupedGemm::cluster>::sought("cluster"),
    Member<&KGroupedGemm::share_a>::sought("share-a")};

/// The settings that a request gives, with the values that were read.
template <typename Options>
class Given {
 public:
  Given(std::span<const Setting<Options>> all, const Options& read, const Request& request)
      : read_(read) {
    for (const Setting<Options>& each : all)
      if (request.gives(each.option)) settings_.push_back(each);
  }

  bool hold(const Options& in) const {
    return std::ranges::all_of(settings_, [&](const auto& each) { return same(each, in); });
  }
  // In the settings that cannot be put there.
  bool hold_fixed(const Options& in) const {
    return std::ranges::all_of(settings_,
                               [&](const auto& each) { return each.put || same(each, in); });
  }
  // And in those that are sought.
  bool hold_in_shape(const Options& in) const {
    return std::ranges::all_of(
        settings_, [&](const auto& each) { return (each.put && !each.sought) || same(each, in); });
  }
  void put(Options& in) const {
    for (const auto& each : settings_)
      if (each.put) each.put(in, each.get(read_));
  }

  std::string text() const {
    std::vector<std::string> out;
    for (const auto& each : settings_) out.push_back(text(each, read_));
    return fmt::format("{}", fmt::join(out, " "));
  }
  // What `in` has of them.
  std::string text_in(const Options& in) const {
    std::vector<std::string> out;
    for (const auto& each : settings_)
      if (!same(each, in)) out.push_back(text(each, in));
    return fmt::format("{}", fmt::join(out, " "));
  }

 private:
  bool same(const Setting<Options>& each, const Options& in) const {
    return each.get(in) == each.get(read_);
  }
  static std::string text(const Setting<Options>& each, const Options& of) {
    if (each.flag) return fmt::format("--{}{}", each.option, each.get(of) ? "" : "=false");
    return fmt::format("--{} {}", each.option, each.get(of));
  }

  const Options& read_;
  std::vector<Setting<Options>> settings_;
};

Diags none(const std::string& given, const Request& request) {
  return Diags::one("usage"_rule, {},
                    fmt::format("{}: the configurations that are chosen for {} have no such one of "
                                "this product; name a --tile, or leave out some of these",
                                given, request.gpu.target().arch.text()));
}

// Whether the kernel may have a cluster of that size.
bool takes_cluster(const ScaledGemm& kernel, int cluster) {
  return kernel.cluster_splits == 1 || cluster == 1;
}
bool takes_cluster(const KGroupedGemm& /*kernel*/, int /*cluster*/) { return true; }

template <typename Options>
Result<Options> chosen_of(std::span<const Setting<Options>> settings, const Options& read,
                          int groups, const Request& request) {
  const Given<Options> given(settings, read, request);
  auto out = kernels::detail::tuned_with(
      read, request.gpu, groups, [&](const Options& each) { return given.hold_in_shape(each); });
  if (!out)
    out = kernels::detail::tuned_with(read, request.gpu, groups, [&](const Options& each) {
      return given.hold_fixed(each) && takes_cluster(each, read.cluster);
    });
  if (!out) return none(given.text(), request);
  given.put(*out);
  return *out;
}

/// The entries of a file for the GPU that the request names; of all, if it names none.
Result<Tuning> read_tuning(const std::string& path, const Request& request) {
  auto all = Tuning::read(path);
  if (!all || !request.gives("gpu")) return all;
  Tuning out;
  std::set<std::string> others;
  for (const kernels::TuningEntry& each : all->entries())
    if (isa::gpu_named(each.on.gpu) == kernels::detail::GpuAccess::row(request.gpu)) out.add(each);
    else others.insert(each.on.gpu);
  if (out.entries().empty() && !others.empty())
    return {"usage"_rule,
            fmt::format("--tuning {}: expected entries of --gpu {}, found those of {}", path,
                        request.gpu.name(), fmt::join(others, ", "))};
  return out;
}

/// What a file of tune() has of the product, if there is one.
Result<std::optional<Gemm>> measured(const ProductWords& words, const Gemm& read,
                                     const Given<Gemm>& given, const Request& request) {
  if (words.tuning.empty()) return std::optional<Gemm>();
  const auto tuning = read_tuning(words.tuning, request);
  if (!tuning) return tuning.diags();
  auto found = tuning->find(read, request.gpu.target(), words.workspace);
  if (!found || !*found || given.hold(**found)) return found;
  return {"usage"_rule,
          fmt::format("{}: --tuning {} has {} for this product; leave out one of them",
                      given.text(), words.tuning, given.text_in(**found))};
}

Diags workspace_errors(const ProductWords& words, const Gemm& options, const Request& request) {
  Diags out;
  if (words.workspace < 0)
    out.report("usage"_rule, {},
               fmt::format("--workspace {}: expected a number of at least 0", words.workspace));
  else if (const auto bytes = kernels::workspace_bytes(options);
           request.gives("workspace") && bytes > words.workspace)
    out.report(
        "usage"_rule, {},
        fmt::format("--workspace {}: the partial sums of --{} take {} bytes", words.workspace,
                    options.stream_blocks ? fmt::format("stream-blocks {}", options.stream_blocks)
                                          : fmt::format("splits {}", options.splits),
                    bytes));
  return out;
}

}  // namespace

Result<Completed> completed(const ProductWords& words, const Gemm& read, const Request& request) {
  if (!words.tuning.empty() && !words.tile.empty())
    return {"usage"_rule, "--tuning: not together with --tile, which it would replace"};
  Gemm out = read;
  Diags warnings;
  if (words.tile.empty()) {
    const Given<Gemm> given(gemm_settings, read, request);
    const auto found = measured(words, read, given, request);
    if (!found) return found.diags();
    if (!*found && !words.tuning.empty())
      warnings.report("tuning-entry"_rule, {},
                      fmt::format("--tuning {}: it has no entry for this product on {}; the "
                                  "configuration is the model's choice",
                                  words.tuning, request.gpu.target().text()));
    const auto best = *found ? *found
                             : kernels::detail::tuned_with(
                                   read, request.gpu, words.workspace,
                                   {.hold = [&](const Gemm& each) { return given.hold(each); },
                                    .put = [&](Gemm& each) { given.put(each); }});
    if (!best) return none(given.text(), request);
    out = *best;
  }
  const Diags wrong = workspace_errors(words, out, request);
  if (!wrong.ok()) return wrong;
  return Completed{out, warnings};
}

Result<ScaledGemm> chosen(const ScaledGemm& read, const Request& request) {
  return chosen_of<ScaledGemm>(scaled_settings, read, 1, request);
}

Result<KGroupedGemm> chosen(const KGroupedGemm& read, const Request& request) {
  return chosen_of<KGroupedGemm>(k_grouped_settings, read, 8, request);
}

}  // namespace tartan::TARTAN_ABI::builtins
