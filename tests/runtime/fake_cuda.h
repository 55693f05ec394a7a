// SPDX-License-Identifier: Apache-2.0
// tests/runtime/fake_cuda.h - settings and records of the CUDA driver's test double (fake_cuda.cc).
//
// The double is a shared library with the entry points of libcuda. Device memory is host memory, a
// launch calls `kernel`, and every call that needs a current context fails without one, as in the
// driver. Tests access its state through fake_cuda().
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#if __has_include("tests/paths.h")  // of a test, not of the double itself
#include "tests/paths.h"
#endif

struct FakeLaunch {
  unsigned grid[3], block[3], shared;
  void* stream;
  void** params;  // while the kernel runs
  unsigned cluster[3] = {};
  bool cooperative = false, programmatic = false;
};

/// The kernels that any machine code has, for the double.
inline constexpr const char* machine_code_kernels = "scale other gemm gemm_sum";

struct FakeCuda {
  // Settings.
  int driver_version = 13000;
  int devices = 1;
  int capability = 90;
  int multiprocessors = 114;
  int shared_per_block = 232448;
  int static_shared = 0;
  int max_threads = 1024;
  int registers = 40, local_bytes = 16, occupancy = 3;
  std::size_t free_bytes = 1000, all_bytes = 80'000;
  int peers = 1;                 // whether GPUs are connected
  int memory_owner = 0;          // GPU of all memory
  std::vector<std::byte> cubin;  // what the linker makes
  std::vector<std::pair<std::string, std::vector<std::size_t>>>
      functions;                // of a cubin: sizes of parameters
  bool foreign_holder = false;  // other code holds the primary context, too
  float milliseconds = 1.5f;
  int machine_code_failure = 0;                             // the code for cubins
  std::string error_log, info_log;                          // what the JIT writes
  std::map<std::string, std::vector<std::byte>> variables;  // of every module
  std::map<std::string, int> failures;            // entry point -> the code that it returns
  std::map<std::string, int> failures_once;       // the same, the first time
  std::function<void(const FakeLaunch&)> kernel;  // what a launch does
  std::function<void(const std::string&)> waits;  // what an entry point does first

  // Records.
  std::vector<std::string> calls;
  std::vector<FakeLaunch> launches;
  std::map<std::uint64_t, std::unique_ptr<std::byte[]>> memory;
  int contexts = 0, modules = 0, streams = 0, events = 0, links = 0, host_buffers = 0;  // alive
  std::vector<std::string> copies;  // those in streams: "write 4", "peer 8"
  void* current_context = nullptr;  // the last that was made current
  unsigned jit_target = 0;
  int dead = 0;  // the code that every call of the context returns, since kernel_fails()
  int max_dynamic_shared = 48 * 1024;
  bool large_clusters = false;
  std::string loaded;  // the last module's text

  /// What a failed kernel does: the context is destroyed, until nobody holds it.
  void kernel_fails(int code) { dead = code; }
  bool called(const std::string& entry) const {
    for (const std::string& call : calls)
      if (call == entry) return true;
    return false;
  }
};

#ifdef FAKE_CUDA_PATH
/// The double's state; makes Tartan load the double as the driver.
inline FakeCuda& fake_cuda() {
  static FakeCuda* const state = [] {
    setenv("TARTAN_CUDA_DRIVER", FAKE_CUDA_PATH, 1);
    void* library = dlopen(FAKE_CUDA_PATH, RTLD_NOW);
    auto* function =
        library ? reinterpret_cast<FakeCuda* (*)()>(dlsym(library, "fake_cuda_state")) : nullptr;
    if (!function) std::abort();
    return function();
  }();
  return *state;
}
#endif
