// SPDX-License-Identifier: Apache-2.0
// tartan_manual FOLDER: writes tartan.1, tartan.bash and _tartan (for zsh), at build time.
#include <cstdio>
#include <string>

#include "tartan/support/source.h"
#include "tools/application.h"
#include "tools/manual.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: tartan_manual FOLDER\n", stderr);
    return 2;
  }
  CLI::App app;
  int exit_code = 0;
  tartan::tools::add_commands(app, exit_code);
  const std::string folder = std::string(argv[1]) + "/";
  for (const auto& [name, text] : {std::pair{"tartan.1", tartan::tools::man_page(app)},
                                   {"tartan.bash", tartan::tools::bash_completion(app)},
                                   {"_tartan", tartan::tools::zsh_completion(app)}})
    if (const auto written = tartan::write_file(folder + name, text); !written) {
      std::fputs(written.diags().text().c_str(), stderr);
      return 2;
    }
}
