// SPDX-License-Identifier: Apache-2.0
// Three libraries with the same names inside, in one process: each caller has its own.
#include <cstdio>
#include <string>

std::string used_by_ptx();
std::string used_by_emulator();
std::string used_by_tartan();

int main() {
  int wrong = 0;
  const auto expect = [&](const std::string& file, const std::string& library) {
    std::puts(file.c_str());
    if (file.find("/" + library + ".so") != std::string::npos) return;
    std::printf("  expected a file %s.so\n", library.c_str());
    wrong = 1;
  };
  expect(used_by_ptx(), "libtartan-ptx");
  expect(used_by_emulator(), "libtartan-emulator");
  expect(used_by_tartan(), "libtartan");
  return wrong;
}
