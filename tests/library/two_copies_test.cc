// SPDX-License-Identifier: Apache-2.0
// two_copies_test LIBRARY: a process that has loaded the library twice, as two plugins of different
// versions do. Each copy compiles and runs with its own code and data, also when the other has
// gone.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "tartan/c.h"

namespace {

namespace fs = std::filesystem;

// A copy of the library, and its functions.
struct Copy {
  void* library = nullptr;
  decltype(&tartan_compile) compile = nullptr;
  decltype(&tartan_kernel_ptx) ptx = nullptr;
  decltype(&tartan_kernel_free) kernel_free = nullptr;
  decltype(&tartan_open) open = nullptr;
  decltype(&tartan_load) load = nullptr;
  decltype(&tartan_function_free) function_free = nullptr;
  decltype(&tartan_device_free) device_free = nullptr;

  explicit Copy(const std::string& path) : library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!library) std::fprintf(stderr, "%s\n", dlerror());
    find(compile, "tartan_compile"), find(ptx, "tartan_kernel_ptx");
    find(kernel_free, "tartan_kernel_free"), find(open, "tartan_open"), find(load, "tartan_load");
    find(function_free, "tartan_function_free"), find(device_free, "tartan_device_free");
  }

  template <typename Function>
  void find(Function& function, const char* symbol) {
    function = library ? reinterpret_cast<Function>(dlsym(library, symbol)) : nullptr;
  }

  // The PTX of a GEMM, loaded on an emulator of the copy's; empty if something fails.
  [[nodiscard]] std::string gemm() const {
    tartan_kernel* kernel = nullptr;
    tartan_device* device = nullptr;
    tartan_function* function = nullptr;
    if (!compile || compile("gemm", "sm_90a", "{}", &kernel)) return {};
    std::string text = ptx(kernel);
    if (open("emulator", nullptr, &device) || load(device, kernel, &function)) return {};
    function_free(function);
    device_free(device);
    kernel_free(kernel);
    return text;
  }
};

int fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  return 1;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  const std::string name = "tartan_copy_" + std::to_string(getpid()) + ".so";
  const fs::path copied = fs::temp_directory_path() / name;
  fs::copy_file(words[1], copied, fs::copy_options::overwrite_existing);
  const Copy first(words[1]), second(copied);
  fs::remove(copied);
  if (!first.compile || !second.compile) return fail("a copy does not load");
  if (first.compile == second.compile) return fail("the copies are one");
  const std::string text = first.gemm();
  if (text.empty() || text != second.gemm()) return fail("the copies compile differently");
  dlclose(first.library);
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(second.compile), &found) == 0 || copied != found.dli_fname)
    return fail("the second copy calls the first");
  if (second.gemm() != text) return fail("the second copy needs the first");
  std::puts("both work");
  return 0;
}
