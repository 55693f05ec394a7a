// SPDX-License-Identifier: Apache-2.0
// A program's view of an installed Tartan: the umbrella header, one library.
#include <tartan/tartan.h>

#include <cstdio>

int main() {
  if (tartan::version() != TARTAN_VERSION) {
    std::puts("the header and the library are of different versions");
    return 1;
  }
  if (*tartan::Target::parse("sm_90a") != tartan::Target({90, 'a'}, {8, 0})) {
    std::puts("sm_90a is not what it should be");
    return 1;
  }
}
