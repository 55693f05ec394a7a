// SPDX-License-Identifier: Apache-2.0
#include "kernels/registry/given.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "kernels/common/gpus.h"
#include "kernels/common/options.h"
#include "kernels/tuner/tuned_with.h"
#include "tartan/kernels/tuning.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

using kernels::Gemm;
using kernels::KGroupedGemm;
using kernels::ScaledGemm;
using kernels::Tuning;
using kernels::detail::Chosen;

/// The settings of the schedule that a request gives, with the values that were read.
template <typename Options>
class Given {
 public:
  Given(const Options& read, const Request& request) : read_(read), request_(request) {}

  bool hold(const Options& in,
            std::initializer_list<Chosen> of = {Chosen::kept, Chosen::put, Chosen::sought,
                                                Chosen::shape}) const {
    bool out = true;
    each(
        [&](const auto& row, const auto& here, const auto& given) {
          out &= std::ranges::find(of, row.chosen) == of.end() || here == given;
        },
        in);
    return out;
  }
  void put(Options& in) const {
    each(
        [&](const auto& row, auto& here, const auto& given) {
          if (row.chosen != Chosen::shape) kernels::detail::assign(here, given);
        },
        in);
  }

  /// "--stages 5 --swap=false"
  std::string text() const {
    return text_of(read_, [](bool) { return true; });
  }
  /// What `in` has of them that differs.
  std::string text_in(const Options& in) const {
    return text_of(in, [](bool same) { return !same; });
  }

 private:
  template <typename Visit, typename Object>
  void each(const Visit& visit, Object& in) const {
    kernels::detail::each_member(
        [&](const auto& row, auto& here, const auto& given) {
          if (row.chosen != Chosen::never && request_.gives(row.word)) visit(row, here, given);
        },
        in, read_);
  }
  template <typename Which>
  std::string text_of(const Options& of, const Which& which) const {
    std::vector<std::string> out;
    each(
        [&]<typename Value>(const auto& row, const Value& here, const auto& given) {
          if (!which(here == given)) return;
          if constexpr (std::is_same_v<Value, bool>)
            out.push_back(fmt::format("--{}{}", row.word, here ? "" : "=false"));
          else if constexpr (std::is_same_v<Value, int>)
            out.push_back(fmt::format("--{} {}", row.word, here));
        },
        of);
    return fmt::format("{}", fmt::join(out, " "));
  }

  const Options& read_;
  const Request& request_;
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
Result<Options> chosen_of(const Options& read, int groups, const Request& request) {
  const Given<Options> given(read, request);
  auto out = kernels::detail::tuned_with(read, request.gpu, groups, [&](const Options& each) {
    return given.hold(each, {Chosen::sought, Chosen::shape});
  });
  if (!out)
    out = kernels::detail::tuned_with(read, request.gpu, groups, [&](const Options& each) {
      return given.hold(each, {Chosen::shape}) && takes_cluster(each, read.cluster);
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
Result<std::optional<Gemm>> measured(const std::string& path, int workspace, const Gemm& read,
                                     const Given<Gemm>& given, const Request& request) {
  if (path.empty()) return std::optional<Gemm>();
  const auto tuning = read_tuning(path, request);
  if (!tuning) return tuning.diags();
  auto found = tuning->find(read, request.gpu.target(), workspace);
  if (!found || !*found || given.hold(**found)) return found;
  return {"usage"_rule,
          fmt::format("{}: --tuning {} has {} for this product; leave out one of them",
                      given.text(), path, given.text_in(**found))};
}

Diags workspace_errors(int workspace, const Gemm& options, const Request& request) {
  Diags out;
  if (workspace < 0)
    out.report("usage"_rule, {},
               fmt::format("--workspace {}: expected a number of at least 0", workspace));
  else if (const auto bytes = kernels::workspace_bytes(options);
           request.gives("workspace") && bytes > workspace)
    out.report(
        "usage"_rule, {},
        fmt::format("--workspace {}: the partial sums of --{} take {} bytes", workspace,
                    options.stream_blocks ? fmt::format("stream-blocks {}", options.stream_blocks)
                                          : fmt::format("splits {}", options.splits),
                    bytes));
  return out;
}

}  // namespace

Result<Completed> completed_gemm(const KernelRegistry& registry, const Request& request) {
  const auto read = read_gemm(registry, request);
  if (!read) return read.diags();
  const std::string& tuning = registry.value<std::string>("tuning");
  const int workspace = registry.value<int>("workspace");
  if (!tuning.empty() && request.gives("tile"))
    return {"usage"_rule, "--tuning: not together with --tile, which it would replace"};
  Completed out{*read, {}};
  if (!request.gives("tile")) {
    const Given<Gemm> given(*read, request);
    const auto found = measured(tuning, workspace, *read, given, request);
    if (!found) return found.diags();
    if (!*found && !tuning.empty())
      out.warnings.report("tuning-entry"_rule, {},
                          fmt::format("--tuning {}: it has no entry for this product on {}; the "
                                      "configuration is the model's choice",
                                      tuning, request.gpu.target().text()));
    const auto best = *found ? *found
                             : kernels::detail::tuned_with(
                                   *read, request.gpu, workspace,
                                   {.hold = [&](const Gemm& each) { return given.hold(each); },
                                    .put = [&](Gemm& each) { given.put(each); }});
    if (!best) return none(given.text(), request);
    out.gemm = *best;
  }
  const Diags wrong = workspace_errors(workspace, out.gemm, request);
  if (!wrong.ok()) return wrong;
  return out;
}

Result<ScaledGemm> chosen(const ScaledGemm& read, const Request& request) {
  return chosen_of(read, 1, request);
}

Result<KGroupedGemm> chosen(const KGroupedGemm& read, const Request& request) {
  return chosen_of(read, 8, request);
}

}  // namespace tartan::TARTAN_ABI::builtins
