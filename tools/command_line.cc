// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/nearest.h"
#include "runtime/outcome.h"
#include "tools/commands.h"
#include "tools/terminal.h"
#include "tools/wording.h"

namespace tartan::tools {
namespace {

std::vector<CLI::App*> commands(CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// Rejects an empty value of an option that takes a value: it would mean the same as no option.
void refuse_empty_values(CLI::App& app) {
  const auto check = [](const std::string& value) {
    return std::string(value.empty() ? "expected a value, found an empty one" : "");
  };
  for (CLI::Option* option : app.get_options())
    if (option->get_items_expected_max() > 0) option->check(check);
  for (CLI::App* each : commands(app)) refuse_empty_values(*each);
}

std::vector<std::string_view> option_names(const CLI::App& app) {
  std::vector<std::string_view> out;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) out.push_back(name);
  return out;
}

// The command named on the command line.
const CLI::App* chosen(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? nullptr : parsed.front();
}

// The message for arguments that nothing accepts.
std::string unexpected(const CLI::App& app, const CLI::App* command) {
  const std::string word = app.remaining(true).front();
  if (word.size() < 2 || word[0] != '-') return fmt::format("unexpected argument {}", word);
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string_view> known = option_names(app);
  if (command)
    for (const std::string_view each : option_names(*command)) known.push_back(each);
  const std::string_view bare = std::string_view(name).substr(name.starts_with("--") ? 2 : 1);
  return fmt::format("unknown option {}{}", name, nearest_hint(bare, known, "--"));
}

std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = chosen(app);
  std::string why = reworded(error.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) why = unexpected(app, command);
  else if (!command && dynamic_cast<const CLI::RequiredError*>(&error))
    why = app.remaining(true).empty() ? "a command is required; `tartan --help` lists them"
                                      : unexpected(app, nullptr);
  return command ? fmt::format("{}: {}", command->get_name(), why) : why;
}

int refuse(const CLI::App* command, const std::string& message, bool json) {
  const Diags diags = Diags::one("usage"_rule, {}, message);
  if (!json || !command || command->get_name() != "run") return fail(exit_usage, diags, json);
  fmt::print("{}\n", refused(diags).json());
  return exit_usage;
}

bool asks_help(int argc, char** argv) { return argc > 1 && std::string_view(argv[1]) == "help"; }

// `tartan help check` is `tartan check --help`.
void parse(CLI::App& app, int argc, char** argv) {
  if (!asks_help(argc, argv)) return app.parse(argc, argv);
  std::vector<const char*> words{argv[0]};
  if (argc > 2) words.push_back(argv[2]);
  words.push_back("--help");
  app.parse(static_cast<int>(words.size()), words.data());
}

// The first argument, if it should be a command and is not.
std::string unknown_command(CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::vector<std::string_view> known;
  std::vector<std::string> names;
  for (const CLI::App* each : commands(app)) {
    if (each->check_name(argv[1])) return {};
    names.push_back(each->get_name());
  }
  known.assign(names.begin(), names.end());
  for (const std::string_view option : option_names(app))  // version
    if (argv[1] == option) return fmt::format("unknown command {0}; the option is --{0}", option);
  return fmt::format("unknown command {}: expected one of {}{}", argv[1], fmt::join(names, ", "),
                     nearest_hint(argv[1], known));
}

}  // namespace

std::string given_beside(const CLI::App& command, const std::string& option) {
  for (const CLI::Option* each : command.get_options())
    if (each->count() > 0 && !each->check_lname(option)) return each->get_name();
  return {};
}

std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
  const bool json = std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;
  const bool help = asks_help(argc, argv);  // of a command, perhaps
  if (const std::string wrong =
          help ? unknown_command(app, argc - 1, argv + 1) : unknown_command(app, argc, argv);
      !wrong.empty())
    return refuse(nullptr, wrong, json);
  refuse_empty_values(app);
  try {
    parse(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app.exit(error);
      return exit_ok;
    }
    return refuse(chosen(app), complaint(app, error), json);
  }
  return std::nullopt;
}

void add_step_limit(CLI::App& command, std::uint64_t& steps, const std::string& text) {
  command.add_option("--max-steps", steps, text)
      ->check(CLI::Range(std::uint64_t{1}, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
}

void add_time_limit(CLI::App& command, double& seconds, const std::string& text) {
  command.add_option("--timeout", seconds, text)
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
}

}  // namespace tartan::tools
