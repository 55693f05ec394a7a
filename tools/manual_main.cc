// SPDX-License-Identifier: Apache-2.0
// tartan_manual FOLDER: writes tartan.1, tartan.bash and _tartan (for zsh), at build time.
#include <cstdio>
#include <exception>
#include <string>

#include "tartan/support/source.h"
#include "tools/application.h"
#include "tools/manual.h"

namespace {

using namespace tartan::tools;

int write_files(const std::string& folder) {
  CLI::App app;
  int exit_code = 0;
  add_commands(app, exit_code);
  for (const auto& [name, text] : {std::pair{"/tartan.1", man_page(app)},
                                   {"/tartan.bash", bash_completion(app)},
                                   {"/_tartan", zsh_completion(app)}})
    if (const auto written = tartan::write_file(folder + name, text); !written) {
      std::fputs(written.diags().text().c_str(), stderr);
      return 2;
    }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: tartan_manual FOLDER\n", stderr);
    return 2;
  }
  try {
    return write_files(argv[1]);
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    return 2;
  }
}
