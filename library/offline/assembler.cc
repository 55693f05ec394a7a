// SPDX-License-Identifier: Apache-2.0
#include "library/offline/assembler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tartan/support/source.h"

extern char** environ;

namespace tartan::TARTAN_ABI::offline {
namespace {

namespace fs = std::filesystem;

// A folder for this call's files.
class Folder {
 public:
  Folder() {
    std::error_code none;
    std::string name = (fs::temp_directory_path(none) / "tartan-XXXXXX").string();
    if (::mkdtemp(name.data())) path_ = name;
  }
  ~Folder() {
    std::error_code none;
    if (!path_.empty()) fs::remove_all(path_, none);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  bool made() const { return !path_.empty(); }
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return std::move(out).str();
}

// Runs a program, standard output and error to a file; its exit code, or -1 with errno.
int run(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& each : words) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&files, 1, 2);
  pid_t process = 0;
  errno = ::posix_spawnp(&process, arguments[0], &files, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (errno != 0) return -1;
  int status = 0;
  while (::waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<std::string> assemble(const std::string& ptxas, const std::string& ptx, Arch arch) {
  const Folder folder;
  if (!folder.made())
    return {"file"_rule, fmt::format("no folder for temporary files: {}", std::strerror(errno))};
  const std::string from = folder.file("module.ptx"), to = folder.file("module.cubin"),
                    log = folder.file("log");
  if (const Status written = write_file(from, ptx); !written) return written.diags();
  const int code = run({ptxas, "-arch=" + arch.text(), from, "-o", to}, log);
  if (code == -1 || code == 127)
    return {"file"_rule, fmt::format("--ptxas {}: cannot be run: {}", ptxas,
                                     code == -1 ? std::strerror(errno) : "no such program")};
  if (code != 0)
    return {"module-load"_rule, fmt::format("{} refused the module for {} (exit code {})\n{}",
                                            ptxas, arch.text(), code, contents(log))};
  return contents(to);
}

}  // namespace tartan::TARTAN_ABI::offline
