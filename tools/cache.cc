// SPDX-License-Identifier: Apache-2.0
// tools/cache.cc - tartan cache: what compile() has kept, and how to be rid of it.
#include "tartan/cache.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <vector>

#include "compiler/support/cache_folder.h"
#include "tools/commands.h"
#include "tools/terminal.h"

namespace tartan::tools {
namespace {

struct CacheWords {
  bool stats = false, clear = false, json = false;
  std::string folder;
};

std::string counted(std::uint64_t entries) {
  return fmt::format("{} {}", entries, entries == 1 ? "entry" : "entries");
}

using Kinds = std::vector<detail::CacheKind>;

void print_text(const std::string& folder, const CacheStats& stats, const Kinds& kinds) {
  fmt::print("{}: {}, {} bytes\n", folder, counted(stats.entries), stats.bytes);
  for (const detail::CacheKind& each : kinds)
    fmt::print("{:>10}: {}, {} bytes\n", each.name, counted(each.entries), each.bytes);
}

void print_json(const std::string& folder, const CacheStats& stats, const Kinds& kinds) {
  nlohmann::ordered_json by_kind = nlohmann::ordered_json::object();
  for (const detail::CacheKind& each : kinds)
    by_kind[each.name] = {{"entries", each.entries}, {"bytes", each.bytes}};
  const nlohmann::ordered_json out = {{"schema_version", json_schema_version},
                                      {"folder", folder},
                                      {"entries", stats.entries},
                                      {"bytes", stats.bytes},
                                      {"kinds", std::move(by_kind)}};
  fmt::print("{}\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

int no_folder(const CacheWords& words, const std::string& folder) {
  if (folder.empty())
    return fail(exit_usage,
                Diags::one("file"_rule, {},
                           "no folder for the cache: HOME is not set; set TARTAN_CACHE_DIR, or "
                           "name it with --folder"),
                words.json);
  return fail(exit_usage,
              Diags::one("file"_rule, {}, fmt::format("there is no cache folder {}", folder)),
              words.json);
}

int run(const CacheWords& words) {
  if (words.stats == words.clear)
    return usage_error("cache: expected one of --stats and --clear", words.json);
  const std::string folder = words.folder.empty() ? detail::standard_cache_folder() : words.folder;
  std::error_code none;
  const bool there = !folder.empty() && std::filesystem::exists(folder, none);
  // Nobody has compiled anything yet: an empty cache. A folder that was named should be there.
  if (!there && (folder.empty() || !words.folder.empty())) return no_folder(words, folder);
  CacheStats stats;
  Kinds kinds;
  if (there) {
    const auto cache = Cache::open({.folder = folder});
    if (!cache) return fail(exit_usage, cache.diags(), words.json);
    stats = cache->stats(), kinds = detail::kinds_of(folder);
    if (words.clear)
      if (const Status cleared = cache->clear(); !cleared)
        return fail(exit_usage, cleared.diags(), words.json);
  }
  if (words.clear && !words.json) fmt::print("deleted ");
  if (words.json) print_json(folder, stats, kinds);
  else print_text(folder, stats, kinds);
  return exit_ok;
}

}  // namespace

void add_cache(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<CacheWords>();
  CLI::App* command =
      app.add_subcommand("cache", "Show or delete what programs that use a cache have compiled");
  command->add_flag("--stats", words->stats, "Print the folder, its entries and their bytes");
  command->add_flag("--clear", words->clear, "Delete all entries, and print what was deleted");
  command->add_option("--folder", words->folder,
                      "The cache's folder; default: TARTAN_CACHE_DIR, else XDG_CACHE_HOME/tartan, "
                      "else ~/.cache/tartan");
  command->add_flag("--json", words->json, "Print one JSON object");
  command->footer("Exit codes: 0 done, 2 usage, or the folder cannot be used");
  command->callback([words, &exit_code] { exit_code = run(*words); });
}

}  // namespace tartan::tools
