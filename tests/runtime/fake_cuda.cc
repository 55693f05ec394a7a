// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/fake_cuda_state.h"

#include <algorithm>
#include <cstring>

namespace fake_cuda_double {

FakeCuda& state() {
  static FakeCuda state;
  return state;
}

int enter(const char* entry, bool needs_context) {
  state().calls.push_back(entry);
  if (state().waits) state().waits(entry);
  if (const auto once = state().failures_once.extract(entry)) return once.mapped();
  if (const auto failure = state().failures.find(entry); failure != state().failures.end())
    return failure->second;
  if (!needs_context) return 0;
  return current.empty() ? invalid_context : state().dead;
}

}  // namespace fake_cuda_double

using namespace fake_cuda_double;

namespace {

int context_tags[8], module_tag, function_tag, link_tag;

void write_log(const std::string& text, void* buffer, void* capacity) {
  const auto size = reinterpret_cast<std::size_t>(capacity);
  const std::size_t length = std::min(size - 1, text.size());
  std::memcpy(buffer, text.data(), length);
  static_cast<char*>(buffer)[length] = 0;
}

// Writes the logs to where the options of a call that assembles say.
void read_logs(unsigned count, const int* options, void** values) {
  void *buffer[2] = {}, *capacity[2] = {};
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == 3) buffer[0] = values[i];
    if (options[i] == 4) capacity[0] = values[i];
    if (options[i] == 5) buffer[1] = values[i];
    if (options[i] == 6) capacity[1] = values[i];
  }
  if (buffer[0]) write_log(state().info_log, buffer[0], capacity[0]);
  if (buffer[1]) write_log(state().error_log, buffer[1], capacity[1]);
}

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

int cuInit(unsigned) {
  ALONE;
  return enter("cuInit", false);
}

int cuDriverGetVersion(int* version) {
  ALONE;
  *version = state().driver_version;
  return 0;
}

int cuGetErrorName(int code, const char** name) {
  ALONE;
  *name = code == 1     ? "CUDA_ERROR_INVALID_VALUE"
          : code == 2   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == 100 ? "CUDA_ERROR_NO_DEVICE"
          : code == 200 ? "CUDA_ERROR_INVALID_IMAGE"
          : code == 201 ? "CUDA_ERROR_INVALID_CONTEXT"
          : code == 209 ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : code == 218 ? "CUDA_ERROR_INVALID_PTX"
          : code == 222 ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
          : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
          : code == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
                        : nullptr;
  return *name ? 0 : invalid_value;
}

int cuGetErrorString(int code, const char** text) {
  ALONE;
  *text = code == 700 ? "an illegal memory access was encountered" : nullptr;
  return *text ? 0 : invalid_value;
}

int cuDeviceGetCount(int* count) {
  ALONE;
  *count = state().devices;
  return enter("cuDeviceGetCount", false);
}

int cuDeviceGet(int* device, int ordinal) {
  ALONE;
  *device = ordinal;
  return enter("cuDeviceGet", false);
}

int cuDeviceGetName(char* name, int size, int) {
  ALONE;
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(size));
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  ALONE;
  switch (attribute) {
    case 16: *value = state().multiprocessors; return 0;
    case 75: *value = state().capability / 10; return 0;
    case 76: *value = state().capability % 10; return 0;
    case 97: *value = state().shared_per_block; return 0;
    default: return invalid_value;
  }
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  ALONE;
  if (const int code = enter("cuDevicePrimaryCtxRetain", false)) return code;
  ++state().contexts;
  *context = &context_tags[device];
  return 0;
}

int cuDevicePrimaryCtxRelease_v2(int) {
  ALONE;
  --state().contexts;
  if (state().contexts == 0 && !state().foreign_holder) {
    state().dead = 0;  // and all that was in it
    state().memory.clear();
  }
  return enter("cuDevicePrimaryCtxRelease", false);
}

int cuCtxPushCurrent_v2(void* context) {
  ALONE;
  if (const auto failure = state().failures.find("cuCtxPushCurrent");
      failure != state().failures.end())
    return failure->second;
  state().current_context = context;
  current.push_back(context);
  return 0;
}

int cuCtxPopCurrent_v2(void** context) {
  ALONE;
  if (current.empty()) return invalid_context;
  *context = current.back();
  current.pop_back();
  return 0;
}

int cuCtxGetCurrent(void** context) {
  ALONE;
  *context = current.empty() ? nullptr : current.back();
  return enter("cuCtxGetCurrent", false);
}

int cuCtxGetDevice(int* device) {
  ALONE;
  *device = 0;
  return enter("cuCtxGetDevice");
}

int cuCtxSynchronize() {
  ALONE;
  return enter("cuCtxSynchronize");
}

int cuModuleLoadDataEx(void** module, const void* text, unsigned count, int* options,
                       void** values) {
  ALONE;
  read_logs(count, options, values);
  if (const int code = enter("cuModuleLoadDataEx")) return code;
  const bool machine_code = std::memcmp(text,
                                        "\x7f"
                                        "ELF",
                                        4) == 0;
  if (machine_code && state().machine_code_failure) return state().machine_code_failure;
  state().loaded = machine_code ? machine_code_kernels : static_cast<const char*>(text);
  ++state().modules;
  *module = &module_tag;
  return 0;
}

int cuLinkCreate_v2(unsigned count, int* options, void** values, void** link) {
  ALONE;
  const int failed = enter("cuLinkCreate");
  if (failed) return failed;
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == 9)
      state().jit_target = static_cast<unsigned>(reinterpret_cast<std::size_t>(values[i]));
  read_logs(count, options, values);
  ++state().links;
  *link = &link_tag;
  return 0;
}

int cuLinkAddData_v2(void*, int kind, void* text, std::size_t bytes, const char*, unsigned, int*,
                     void**) {
  ALONE;
  if (const int code = enter("cuLinkAddData")) return code;
  if (kind != 1 || static_cast<const char*>(text)[bytes - 1] != 0) return invalid_value;
  state().loaded = static_cast<const char*>(text);
  return 0;
}

int cuLinkComplete(void*, void** cubin, std::size_t* bytes) {
  ALONE;
  if (const int code = enter("cuLinkComplete")) return code;
  *cubin = state().cubin.data();
  *bytes = state().cubin.size();
  return 0;
}

int cuLinkDestroy(void*) {
  ALONE;
  --state().links;
  return enter("cuLinkDestroy");
}

int cuModuleGetFunctionCount(unsigned* count, void*) {
  ALONE;
  *count = static_cast<unsigned>(state().functions.size());
  return enter("cuModuleGetFunctionCount");
}

int cuModuleEnumerateFunctions(void** functions, unsigned count, void*) {
  ALONE;
  for (unsigned i = 0; i < count; ++i) functions[i] = &state().functions[i];
  return enter("cuModuleEnumerateFunctions");
}

using FakeFunction = std::pair<std::string, std::vector<std::size_t>>;

int cuFuncGetName(const char** name, void* function) {
  ALONE;
  *name = static_cast<FakeFunction*>(function)->first.c_str();
  return enter("cuFuncGetName");
}

int cuFuncGetParamInfo(void* function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  ALONE;
  const auto& sizes = static_cast<FakeFunction*>(function)->second;
  if (index >= sizes.size()) return invalid_value;
  *offset = 8 * index;
  *bytes = sizes[index];
  return enter("cuFuncGetParamInfo");
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, std::size_t) {
  ALONE;
  *blocks = state().occupancy;
  return enter("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}

int cuModuleUnload(void*) {
  ALONE;
  --state().modules;
  return enter("cuModuleUnload");
}

int cuModuleGetFunction(void** function, void*, const char* name) {
  ALONE;
  if (const int code = enter("cuModuleGetFunction")) return code;
  if (state().loaded.find(name) == std::string::npos) return not_found;
  *function = &function_tag;
  return 0;
}

int cuModuleGetGlobal_v2(std::uint64_t* address, std::size_t* bytes, void*, const char* name) {
  ALONE;
  if (const int code = enter("cuModuleGetGlobal")) return code;
  const auto found = state().variables.find(name);
  if (found == state().variables.end()) return not_found;
  *address = reinterpret_cast<std::uint64_t>(found->second.data());
  *bytes = found->second.size();
  return 0;
}

int cuFuncGetAttribute(int* value, int attribute, void*) {
  ALONE;
  switch (attribute) {
    case 0: *value = state().max_threads; break;
    case 1: *value = state().static_shared; break;
    case 3: *value = state().local_bytes; break;
    case 4: *value = state().registers; break;
    default: return invalid_value;
  }
  return enter("cuFuncGetAttribute");
}

int cuFuncSetAttribute(void*, int attribute, int value) {
  ALONE;
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
  ALONE;
  if (const int code = enter("cuLaunchKernel")) return code;
  if (static_cast<int>(shared) > state().max_dynamic_shared) return invalid_value;
  const FakeLaunch launch{{gx, gy, gz}, {bx, by, bz}, shared, stream, params};
  if (state().kernel) state().kernel(launch);
  state().launches.push_back(launch);
  return 0;
}

int cuLaunchKernelEx(const LaunchConfiguration* launch, void*, void** params, void**) {
  ALONE;
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

}  // extern "C"
