// SPDX-License-Identifier: Apache-2.0
#include "tools/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "tartan/isa/target.h"
#include "tartan/version.h"

namespace tartan::tools {
namespace {

using Words = std::vector<std::string>;

std::vector<CLI::App*> commands_of(CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// "-h", "--help"; none for what has a place and no name.
Words names_of(const CLI::Option& option) {
  Words out;
  for (const std::string& each : option.get_snames()) out.push_back("-" + each);
  for (const std::string& each : option.get_lnames()) out.push_back("--" + each);
  return out;
}

Words names_of(const CLI::App& app) {
  Words out;
  for (const CLI::Option* option : app.get_options())
    for (std::string& name : names_of(*option)) out.push_back(std::move(name));
  return out;
}

// What a value may be, if there is a list of it: that of its check, "TEXT:{auto,always}", or all
// architectures.
Words values_of(const CLI::Option& option) {
  Words out;
  for (const std::string& name : option.get_lnames())
    if (name == "target" || name == "hardware") {
      for (const ArchRow& row : archs) out.push_back(row.arch.text());
      return out;
    }
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return out;
  for (std::size_t at = begin + 1; at < end;) {
    const std::size_t comma = std::min(type.find(',', at), end);
    out.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

// The word for a value: what the help text calls it.
std::string value_name(const CLI::Option& option) {
  if (!option.get_option_text().empty())
    return option.get_option_text().substr(0, option.get_option_text().find(' '));
  if (const Words values = values_of(option); !values.empty() && values.size() < 8)
    return fmt::format("{}", fmt::join(values, "|"));
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string roff(const std::string& text) {
  std::string out = replaced(text, "\\", "\\e");
  out = replaced(std::move(out), "-", "\\-");
  out = replaced(std::move(out), "'", "\\(aq");
  out = replaced(std::move(out), "`", "\\(ga");
  out = replaced(std::move(out), "\n", "\n.br\n");
  if (out.starts_with(".")) out.insert(0, "\\&");
  return out;
}

std::string man_option(const CLI::Option& option) {
  std::string head;
  if (option.get_positional()) {
    head = fmt::format("\\fI{}\\fR", roff(option.get_name(true)));
  } else {
    Words names = names_of(option);
    for (std::string& each : names) each = fmt::format("\\fB{}\\fR", roff(each));
    head = fmt::format("{}", fmt::join(names, ", "));
    if (takes_value(option)) head += fmt::format(" \\fI{}\\fR", roff(value_name(option)));
  }
  std::string about = option.get_description();
  if (!option.get_default_str().empty())
    about += fmt::format("; default: {}", option.get_default_str());
  return fmt::format(".TP\n{}\n{}\n", head, roff(about));
}

std::string man_command(const CLI::App& command) {
  std::string usage = fmt::format("\\fBtartan {}\\fR [\\fIOPTION\\fR...]", command.get_name());
  std::string positionals, options;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) {
      positionals += man_option(*option);
      const std::string dots = option->get_expected_max() > 1 ? "..." : "";
      const std::string word = fmt::format("\\fI{}\\fR{}", roff(option->get_name(true)), dots);
      usage += option->get_required() ? " " + word : fmt::format(" [{}]", word);
    } else if (!option->check_name("--help")) {
      options += man_option(*option);
    }
  }
  std::string out = fmt::format(".SS {}\n{}\n.PP\n{}.\n{}{}", command.get_name(), usage,
                                roff(command.get_description()), positionals, options);
  if (!command.get_footer().empty()) out += fmt::format(".PP\n{}\n", roff(command.get_footer()));
  return out;
}

// In single quotes for a shell.
std::string in_quotes(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

// A description inside of _arguments: brackets and colons have a meaning there.
std::string zsh_description(const std::string& text) {
  std::string out = replaced(text, "\\", "\\\\");
  for (const std::string_view special : {"[", "]", ":"})
    out = replaced(std::move(out), special, "\\" + std::string(special));
  return replaced(std::move(out), "\n", " ");
}

std::string zsh_option(const CLI::Option& option) {
  const Words values = values_of(option);
  const std::string action =
      values.empty() ? "_files" : fmt::format("({})", fmt::join(values, " "));
  if (option.get_positional())
    return "    " + in_quotes((option.get_expected_max() > 1 ? "*:" : ":") +
                              zsh_description(option.get_name(true)) + ":_files");
  Words out;
  for (const std::string& name : names_of(option)) {
    std::string word = fmt::format("{}[{}]", name, zsh_description(option.get_description()));
    if (takes_value(option))
      word += fmt::format(":{}:{}", zsh_description(value_name(option)), action);
    out.push_back("    " + in_quotes(word));
  }
  return fmt::format("{}", fmt::join(out, " \\\n"));
}

std::string zsh_options(const CLI::App& app) {
  Words out;
  for (const CLI::Option* option : app.get_options()) out.push_back(zsh_option(*option));
  return fmt::format("{}", fmt::join(out, " \\\n"));
}

}  // namespace

std::string man_page(CLI::App& app) {
  std::string out = fmt::format(
      ".\\\" SPDX-License-Identifier: Apache-2.0\n"
      ".TH TARTAN 1 \"\" \"Tartan {}\" \"User Commands\"\n"
      ".SH NAME\ntartan \\- generate, check and run PTX for tensor cores\n"
      ".SH SYNOPSIS\n\\fBtartan\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n"
      ".SH DESCRIPTION\n{}.\n.SH OPTIONS\n",
      version(), roff(app.get_description()));
  for (const CLI::Option* option : app.get_options()) out += man_option(*option);
  out += ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app)) out += man_command(*command);
  out += R"(.SH ENVIRONMENT
.TP
\fBTARTAN_CUDA_DRIVER\fR
The file of NVIDIA\(aqs driver, in place of libcuda.so.1
.TP
\fBTARTAN_CACHE_DIR\fR
The folder of compiled kernels, in place of $XDG_CACHE_HOME/tartan or ~/.cache/tartan
.TP
\fBNO_COLOR\fR
No colors, whatever the terminal can do
)";
  return out;
}

std::string bash_completion(CLI::App& app) {
  const std::vector<CLI::App*> commands = commands_of(app);
  Words names, options, values;
  const auto add_values = [&](const std::string& command, const CLI::App& of) {
    for (const CLI::Option* option : of.get_options())
      if (const Words words = values_of(*option); !words.empty())
        for (const std::string& name : names_of(*option))
          values.push_back(fmt::format("    {}:{}) words={} ;;\n", command, name,
                                       in_quotes(fmt::format("{}", fmt::join(words, " ")))));
  };
  add_values("*", app);
  for (const CLI::App* command : commands) {
    names.push_back(command->get_name());
    options.push_back(fmt::format("    {}) words={} ;;\n", command->get_name(),
                                  in_quotes(fmt::format("{} {}", fmt::join(names_of(*command), " "),
                                                        fmt::join(names_of(app), " ")))));
    add_values(command->get_name(), *command);
  }
  return fmt::format(R"(# SPDX-License-Identifier: Apache-2.0
# Completion of tartan for bash. Where no word is known, files are completed.
_tartan() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command='' word words=''
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case $word in
      {0}) command=$word; break ;;
    esac
  done
  case $command:$previous in
{1}  esac
  if [[ -z $words ]]; then
    case $command:$current in
      :-*) words={2} ;;
      :*) words={3} ;;
      *:-*)
        case $command in
{4}        esac ;;
      emit:*) [[ $previous != emit ]] || words=$(tartan emit --list 2>/dev/null | sed -n 's/^\([a-z0-9_]*\) .*/\1/p') ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _tartan tartan
)",
                     fmt::join(names, " | "), fmt::join(values, ""),
                     in_quotes(fmt::format("{}", fmt::join(names_of(app), " "))),
                     in_quotes(fmt::format("{}", fmt::join(names, " "))), fmt::join(options, ""));
}

std::string zsh_completion(CLI::App& app) {
  Words commands, cases;
  for (const CLI::App* command : commands_of(app)) {
    commands.push_back("    " + in_quotes(command->get_name() + ":" +
                                          zsh_description(command->get_description())));
    cases.push_back(
        fmt::format("  {}) _arguments \\\n{} ;;\n", command->get_name(), zsh_options(*command)));
  }
  return fmt::format(R"(#compdef tartan
# SPDX-License-Identifier: Apache-2.0
_tartan() {{
  local state line
  local -a commands=(
{}
  )
  _arguments -C \
{} \
    '1:command:->command' '*::argument:->argument' && return
  if [[ $state == command ]]; then
    _describe command commands
    return
  fi
  case $words[1] in
{}  esac
}}
_tartan "$@"
)",
                     fmt::join(commands, "\n"), zsh_options(app), fmt::join(cases, ""));
}

}  // namespace tartan::tools
