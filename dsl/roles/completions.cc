// SPDX-License-Identifier: Apache-2.0
#include "dsl/roles/completions.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

template <typename Holds>
bool any_row(const Accesses& accesses, const Holds& holds) {
  return std::ranges::any_of(completions, [&](const CompletionRow& row) {
    return accesses.has(row.access) && holds(row);
  });
}

}  // namespace

Publish publish(const Accesses& writes, const Accesses& reads) {
  const auto by_threads = [](const CompletionRow& row) { return row.publish == Arrives::thread; };
  Publish out;
  out.by_issuer =
      any_row(writes, [](const CompletionRow& row) { return row.publish == Arrives::issuer; });
  out.by_threads = any_row(writes, by_threads);
  out.grouped = out.by_threads && !any_row(writes, [&](const CompletionRow& row) {
                  return by_threads(row) && row.completion != isa::Completion::CpAsyncGroup;
                });
  out.fenced = out.by_threads && any_row(reads, [](const CompletionRow& row) {
                 return row.release != Arrives::none && row.proxy == isa::Proxy::Async;
               });
  return out;
}

std::string text(const Publish& publish) {
  if (!publish.by_issuer) return publish.by_threads ? "copies of threads" : "nothing";
  return publish.by_threads ? "TMA and copies of threads" : "TMA";
}

Release release(const Accesses& reads, bool converged) {
  const bool by_threads =
      any_row(reads, [](const CompletionRow& row) { return row.release == Arrives::thread; });
  const bool commits =
      any_row(reads, [](const CompletionRow& row) { return row.release == Arrives::issuer; });
  const bool each = by_threads && !converged;
  return {.by_threads = each, .syncs = !each && (by_threads || commits), .commits = commits};
}

}  // namespace tartan::TARTAN_ABI::detail
