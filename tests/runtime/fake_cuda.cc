// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/fake_cuda.h"

#include <algorithm>
#include <cstring>

namespace {

constexpr int invalid_value = 1, invalid_context = 201, not_found = 500;

FakeCuda& state() {
  static FakeCuda state;
  return state;
}

thread_local std::vector<void*> current;  // contexts, the current one last

int context_tag, module_tag, function_tag, stream_tag, event_tag;

// Records a call, and returns the configured code.
int enter(const char* entry, bool needs_context = true) {
  state().calls.push_back(entry);
  if (const auto failure = state().failures.find(entry); failure != state().failures.end())
    return failure->second;
  return needs_context && current.empty() ? invalid_context : 0;
}

void write_log(const std::string& text, void* buffer, void* capacity) {
  const auto size = reinterpret_cast<std::size_t>(capacity);
  const std::size_t length = std::min(size - 1, text.size());
  std::memcpy(buffer, text.data(), length);
  static_cast<char*>(buffer)[length] = 0;
}

std::byte* at(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// CUlaunchConfig and CUlaunchAttribute of cuda.h.
struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    char room[64];
    unsigned cluster[3];
    int cooperative;
  };
};
struct LaunchConfiguration {
  unsigned grid[3], block[3], shared;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

}  // namespace

extern "C" {

FakeCuda* fake_cuda_state() { return &state(); }

int cuInit(unsigned) { return enter("cuInit", false); }

int cuDriverGetVersion(int* version) {
  *version = state().driver_version;
  return 0;
}

int cuGetErrorName(int code, const char** name) {
  *name = code == 1     ? "CUDA_ERROR_INVALID_VALUE"
          : code == 2   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == 100 ? "CUDA_ERROR_NO_DEVICE"
          : code == 201 ? "CUDA_ERROR_INVALID_CONTEXT"
          : code == 218 ? "CUDA_ERROR_INVALID_PTX"
          : code == 222 ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
          : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                        : nullptr;
  return *name ? 0 : invalid_value;
}

int cuGetErrorString(int code, const char** text) {
  *text = code == 700 ? "an illegal memory access was encountered" : nullptr;
  return *text ? 0 : invalid_value;
}

int cuDeviceGetCount(int* count) {
  *count = state().devices;
  return enter("cuDeviceGetCount", false);
}

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return enter("cuDeviceGet", false);
}

int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(size));
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 75: *value = state().capability / 10; return 0;
    case 76: *value = state().capability % 10; return 0;
    case 97: *value = state().shared_per_block; return 0;
    default: return invalid_value;
  }
}

int cuDevicePrimaryCtxRetain(void** context, int) {
  if (const int code = enter("cuDevicePrimaryCtxRetain", false)) return code;
  ++state().contexts;
  *context = &context_tag;
  return 0;
}

int cuDevicePrimaryCtxRelease_v2(int) {
  --state().contexts;
  return enter("cuDevicePrimaryCtxRelease", false);
}

int cuCtxPushCurrent_v2(void* context) {
  if (const auto failure = state().failures.find("cuCtxPushCurrent");
      failure != state().failures.end())
    return failure->second;
  current.push_back(context);
  return 0;
}

int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return invalid_context;
  *context = current.back();
  current.pop_back();
  return 0;
}

int cuCtxSynchronize() { return enter("cuCtxSynchronize"); }

int cuModuleLoadDataEx(void** module, const void* text, unsigned count, int* options,
                       void** values) {
  void *buffer[2] = {}, *capacity[2] = {};
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == 3) buffer[0] = values[i];
    if (options[i] == 4) capacity[0] = values[i];
    if (options[i] == 5) buffer[1] = values[i];
    if (options[i] == 6) capacity[1] = values[i];
  }
  if (buffer[0]) write_log(state().info_log, buffer[0], capacity[0]);
  if (buffer[1]) write_log(state().error_log, buffer[1], capacity[1]);
  if (const int code = enter("cuModuleLoadDataEx")) return code;
  state().loaded = static_cast<const char*>(text);
  ++state().modules;
  *module = &module_tag;
  return 0;
}

int cuModuleUnload(void*) {
  --state().modules;
  return enter("cuModuleUnload");
}

int cuModuleGetFunction(void** function, void*, const char* name) {
  if (const int code = enter("cuModuleGetFunction")) return code;
  if (state().loaded.find(name) == std::string::npos) return not_found;
  *function = &function_tag;
  return 0;
}

int cuModuleGetGlobal_v2(std::uint64_t* address, std::size_t* bytes, void*, const char* name) {
  if (const int code = enter("cuModuleGetGlobal")) return code;
  const auto found = state().variables.find(name);
  if (found == state().variables.end()) return not_found;
  *address = reinterpret_cast<std::uint64_t>(found->second.data());
  *bytes = found->second.size();
  return 0;
}

int cuFuncGetAttribute(int* value, int attribute, void*) {
  switch (attribute) {
    case 0: *value = state().max_threads; break;
    case 1: *value = state().static_shared; break;
    default: return invalid_value;
  }
  return enter("cuFuncGetAttribute");
}

int cuFuncSetAttribute(void*, int attribute, int value) {
  if (const int code = enter("cuFuncSetAttribute")) return code;
  if (attribute == 14) {
    state().large_clusters = value != 0;
    return 0;
  }
  if (attribute != 8) return invalid_value;
  state().max_dynamic_shared = value;
  return 0;
}

int cuLaunchKernel(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** params, void**) {
  if (const int code = enter("cuLaunchKernel")) return code;
  if (static_cast<int>(shared) > state().max_dynamic_shared) return invalid_value;
  const FakeLaunch launch{{gx, gy, gz}, {bx, by, bz}, shared, stream, params};
  if (state().kernel) state().kernel(launch);
  state().launches.push_back(launch);
  return 0;
}

int cuLaunchKernelEx(const LaunchConfiguration* launch, void*, void** params, void**) {
  if (const int code = enter("cuLaunchKernelEx")) return code;
  const auto &grid = launch->grid, &block = launch->block;
  FakeLaunch made{{grid[0], grid[1], grid[2]},
                  {block[0], block[1], block[2]},
                  launch->shared,
                  launch->stream,
                  params};
  for (unsigned i = 0; i < launch->attribute_count; ++i) {
    const LaunchAttribute& attribute = launch->attributes[i];
    if (attribute.id == 4) std::copy_n(attribute.cluster, 3, made.cluster);
    else if (attribute.id == 2) made.cooperative = attribute.cooperative != 0;
    else if (attribute.id == 6) made.programmatic = attribute.cooperative != 0;
    else return invalid_value;
  }
  state().launches.push_back(made);
  return 0;
}

int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  if (const int code = enter("cuMemAlloc")) return code;
  auto memory = std::make_unique<std::byte[]>(bytes);
  *address = reinterpret_cast<std::uint64_t>(memory.get());
  state().memory[*address] = std::move(memory);
  return 0;
}

int cuMemFree_v2(std::uint64_t address) {
  if (const int code = enter("cuMemFree")) return code;
  return state().memory.erase(address) ? 0 : invalid_value;
}

int cuMemcpyHtoD_v2(std::uint64_t to, const void* from, std::size_t bytes) {
  if (const int code = enter("cuMemcpyHtoD")) return code;
  std::memcpy(at(to), from, bytes);
  return 0;
}

int cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t bytes) {
  if (const int code = enter("cuMemcpyDtoH")) return code;
  std::memcpy(to, at(from), bytes);
  return 0;
}

int cuMemsetD8_v2(std::uint64_t to, unsigned char byte, std::size_t bytes) {
  if (const int code = enter("cuMemsetD8")) return code;
  std::memset(at(to), byte, bytes);
  return 0;
}

int cuStreamCreate(void** stream, unsigned) {
  if (const int code = enter("cuStreamCreate")) return code;
  ++state().streams;
  *stream = &stream_tag;
  return 0;
}

int cuStreamDestroy_v2(void*) {
  --state().streams;
  return enter("cuStreamDestroy");
}

int cuStreamSynchronize(void*) { return enter("cuStreamSynchronize"); }

int cuEventCreate(void** event, unsigned) {
  if (const int code = enter("cuEventCreate")) return code;
  ++state().events;
  *event = &event_tag;
  return 0;
}

int cuEventDestroy_v2(void*) {
  --state().events;
  return enter("cuEventDestroy");
}

int cuEventRecord(void*, void*) { return enter("cuEventRecord"); }
int cuEventSynchronize(void*) { return enter("cuEventSynchronize"); }

int cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = state().milliseconds;
  return enter("cuEventElapsedTime");
}

}  // extern "C"
