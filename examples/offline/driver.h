// SPDX-License-Identifier: Apache-2.0
// The calls of NVIDIA's driver that the example makes, found by dlopen, so that it is built without
// CUDA. With cuda.h and -lcuda a program has them already.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;

class Driver {
 public:
  explicit Driver(const char* path) : library_(dlopen(path, RTLD_NOW)) {}
  explicit operator bool() const { return library_ != nullptr; }

  /// Calls an entry point with arguments of exactly its types; a failure ends the program.
  template <typename... Arguments>
  void operator()(const char* name, Arguments... arguments) const {
    auto* const call = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    const int code = call ? call(arguments...) : -1;
    if (code == 0) return;
    std::fprintf(stderr, call ? "%s: error %d\n" : "%s: the driver has no such call\n", name, code);
    std::exit(1);
  }

 private:
  void* library_;
};
