// SPDX-License-Identifier: Apache-2.0
// A program of two plugins, each with its own version of Tartan: all four are in its global scope.
#include <cstdio>
#include <cstring>
#include <thread>

#define DECLARE(plugin)                               \
  extern "C" const char* plugin##_compiled_against(); \
  extern "C" const char* plugin##_version();          \
  extern "C" const char* plugin##_version_in_c();     \
  extern "C" bool plugin##_works()
DECLARE(first);
DECLARE(second);

namespace {

bool own(const char* plugin, const char* expected, const char* version, const char* in_c) {
  const bool right = std::strcmp(expected, version) == 0 && std::strcmp(expected, in_c) == 0;
  std::printf("%s: compiled against %s, answers %s, in C %s\n", plugin, expected, version, in_c);
  return right;
}

}  // namespace

int main() {
  bool first = false, second = false;
  const auto both = [&](bool& out, bool (*works)()) {
    for (int i = 0; i < 20; ++i)
      if (!(out = works())) return;
  };
  const bool differ = std::strcmp(first_compiled_against(), second_compiled_against()) != 0;
  const bool own_first =
      own("first", first_compiled_against(), first_version(), first_version_in_c());
  const bool own_second =
      own("second", second_compiled_against(), second_version(), second_version_in_c());
  std::thread other(both, std::ref(second), second_works);
  both(first, first_works);
  other.join();
  std::printf("first %s, second %s\n", first ? "works" : "FAILS", second ? "works" : "FAILS");
  return differ && own_first && own_second && first && second ? 0 : 1;
}
