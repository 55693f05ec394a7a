// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/driver.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>

#include "bench/gpu/library.h"

namespace gpu {
namespace {

constexpr int multiprocessor_count = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr int relaxed_capture = 2;        // CU_STREAM_CAPTURE_MODE_RELAXED

}  // namespace

Driver::Driver() {
  const char* chosen = std::getenv("TARTAN_CUDA_DRIVER");
  library_ = chosen ? load_library({chosen})
                    : load_library({"libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"});
  int device = 0;
  void* context = nullptr;
  if (call(library_, "cuInit", 0u) != 0 || call(library_, "cuDeviceGet", &device, 0) != 0) return;
  if (call(library_, "cuDevicePrimaryCtxRetain", &context, device) == 0)
    (void)call(library_, "cuCtxSetCurrent", context);
  if (call(library_, "cuDeviceGetAttribute", &multiprocessors_, multiprocessor_count, device) != 0)
    multiprocessors_ = 0;
}

std::function<void()> Driver::graph(const tartan::Stream& stream,
                                    const std::function<void()>& work) const {
  void* const queue = stream.handle();
  if (!queue || call(library_, "cuStreamBeginCapture_v2", queue, relaxed_capture) != 0) return {};
  work();
  void *graph = nullptr, *made = nullptr;
  if (call(library_, "cuStreamEndCapture", queue, &graph) != 0 || !graph) return {};
  const int code = call(library_, "cuGraphInstantiateWithFlags", &made, graph, 0ull);
  (void)call(library_, "cuGraphDestroy", graph);
  if (code != 0) return {};
  const std::shared_ptr<void> executable(
      made, [library = library_](void* each) { (void)call(library, "cuGraphExecDestroy", each); });
  return [library = library_, executable, queue] {
    if (const int failed = call(library, "cuGraphLaunch", executable.get(), queue)) {
      std::cerr << "cuGraphLaunch: error " << failed << '\n';
      std::exit(1);
    }
  };
}

std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word)  // the first word that looks like a version number
    if (word.find('.') != std::string::npos && word[0] >= '0' && word[0] <= '9') return word;
  return "";
}

}  // namespace gpu
