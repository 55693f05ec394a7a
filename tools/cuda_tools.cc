// SPDX-License-Identifier: Apache-2.0
#include "tools/cuda_tools.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "tools/terminal.h"

extern char** environ;

namespace tartan::tools {
namespace {

namespace fs = std::filesystem;

constexpr double patience = 600;  // seconds, for nvcc

// Waits for a program that has so many seconds; ends it then.
std::optional<int> status_of(pid_t child, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  auto pause = std::chrono::milliseconds(1);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() >= end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return std::nullopt;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(50));
  }
  return status;
}

}  // namespace

std::optional<fs::path> find_tool(const std::string& name) {
  std::vector<fs::path> folders;
  const char* const home = std::getenv("CUDA_HOME");
  if (home && *home) {
    folders.push_back(fs::path(home) / "bin");
  } else {
    const char* const path = std::getenv("PATH");
    std::istringstream list(path ? path : "");
    for (std::string folder; std::getline(list, folder, ':');) folders.emplace_back(folder);
    folders.emplace_back("/usr/local/cuda/bin");
  }
  for (const fs::path& folder : folders)
    if (access((folder / name).c_str(), X_OK) == 0) return folder / name;
  return std::nullopt;
}

TemporaryFolder::TemporaryFolder() {
  std::error_code none;
  std::string name = (fs::temp_directory_path(none) / "tartan_XXXXXX").string();
  if (mkdtemp(name.data())) path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Printed output_of(std::vector<std::string> words, const fs::path& log, double seconds) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return {};
  const auto status = status_of(child, seconds);
  if (!status) return {.late = true};
  const auto text = read_source(log.string());
  return {.ok = text && WIFEXITED(*status) && WEXITSTATUS(*status) == 0,
          .text = text ? std::string(text->text()) : std::string()};
}

bool is_cuda_source(const std::string& path) { return path.ends_with(".cu"); }

Result<Source> compile_cuda(const std::string& path, const std::string& target,
                            const std::vector<std::string>& options) {
  const auto wrong = [&](const Rule& rule, const std::string& why) {
    return Diags::one(rule, {path, 0, 0}, why);
  };
  std::error_code none;
  if (!fs::exists(path, none)) return wrong("file"_rule, "cannot read the file: no such file");
  const auto nvcc = find_tool("nvcc");
  if (!nvcc)
    return wrong("file"_rule,
                 "CUDA C++ is compiled by nvcc, which was not found: install NVIDIA's CUDA toolkit "
                 "(https://developer.nvidia.com/cuda-downloads; Debian: nvidia-cuda-toolkit), set "
                 "CUDA_HOME or add it to PATH; or compile elsewhere by nvcc -ptx -lineinfo, and "
                 "give the PTX");
  const TemporaryFolder folder;
  if (!folder.made()) return wrong("file"_rule, "no folder for temporary files");
  const std::string ptx = (folder / "k.ptx").string();
  std::vector<std::string> words{nvcc->string(), "-ptx", "-lineinfo", "-o", ptx};
  if (!target.empty()) words.push_back("-arch=" + target);
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(path);
  const Printed printed = output_of(words, folder / "log", patience);
  if (printed.late)
    return wrong("file"_rule, fmt::format("nvcc was not done within {} seconds", patience));
  std::string said = printed.text;
  while (said.ends_with('\n') || said.ends_with(' ')) said.pop_back();
  if (!printed.ok)
    return wrong("module-load"_rule, fmt::format("{} refused it\n{}", nvcc->string(), said));
  complain(for_terminal(printed.text));
  const auto text = read_source(ptx);
  if (!text) return text.diags();
  return Source(path + " (PTX)", std::string(text->text()));
}

}  // namespace tartan::tools
