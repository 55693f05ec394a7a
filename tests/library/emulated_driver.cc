// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 whose GPU is Tartan's emulator, with the entry points that examples/offline calls:
// shows that a program without Tartan launches a bundle's kernels rightly. TARTAN_EMULATED_GPU is
// the GPU's architecture: sm_90.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tartan/bundle.h"

using namespace tartan;

namespace {

struct State {
  Device device;
  int sm = 0;
  std::map<std::uint64_t, Buffer> buffers;
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<std::unique_ptr<LoadedKernel>> kernels;
};

State& state() {
  static State state = [] {
    const char* const gpu = std::getenv("TARTAN_EMULATED_GPU");
    auto device = Device::open("emulator", {.hardware = gpu ? gpu : "sm_90"});
    if (!device) std::abort();
    return State{*device, device->arch().sm, {}, {}, {}};
  }();
  return state;
}

constexpr int failed = 1;

// What went wrong, and CUDA_ERROR_INVALID_VALUE.
template <typename T>
int refuse(const Result<T>& result) {
  std::fprintf(stderr, "%s", result.diags().text().c_str());
  return failed;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal; }
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? state().sm / 10 : state().sm % 10;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &state();
  return 0;
}
int cuCtxPushCurrent_v2(void*) { return 0; }

// The bytes that a fatbin's header announces.
int cuModuleLoadData(void** module, const void* image) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, static_cast<const char*>(image) + 8, sizeof bytes);
  const auto bundle = Bundle::parse({static_cast<const char*>(image), 16 + bytes});
  if (!bundle) return refuse(bundle);
  auto loaded = load(state().device, *bundle);
  if (!loaded) return refuse(loaded);
  state().modules.push_back(std::make_unique<Module>(*loaded));
  *module = state().modules.back().get();
  return 0;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  auto kernel = static_cast<Module*>(module)->kernel(name);
  if (!kernel) return refuse(kernel);
  state().kernels.push_back(std::make_unique<LoadedKernel>(*kernel));
  *function = state().kernels.back().get();
  return 0;
}

int cuFuncSetAttribute(void*, int, int) { return 0; }

int cuTensorMapEncodeTiled(void* out, int type, unsigned rank, void* address,
                           const std::uint64_t* extents, const std::uint64_t* strides,
                           const std::uint32_t* box, const std::uint32_t* element_strides, int,
                           int swizzle, int promotion, int) {
  // In the order of CUtensorMapDataType.
  constexpr Type types[] = {Type::u8,  Type::u16, Type::u32, Type::s32, Type::u64,
                            Type::s64, Type::f16, Type::f32, Type::f64, Type::bf16};
  TensorMap map{.type = types[type], .address = reinterpret_cast<std::uint64_t>(address)};
  map.extents.assign(extents, extents + rank);
  map.strides.assign(strides, strides + rank - 1);
  map.box.assign(box, box + rank);
  map.element_strides.assign(element_strides, element_strides + rank);
  map.swizzle = static_cast<TensorMap::Swizzle>(swizzle);
  map.promotion = static_cast<TensorMap::Promotion>(promotion);
  const auto bytes = map.encode();
  if (!bytes) return refuse(bytes);
  std::memcpy(out, &*bytes, sizeof *bytes);
  return 0;
}

int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void*, void** arguments, void**) {
  auto& kernel = *static_cast<LoadedKernel*>(function);
  Arguments given;
  for (std::size_t i = 0; i < kernel.params().size(); ++i)
    given.add_bytes({static_cast<const std::byte*>(arguments[i]), kernel.params()[i].bytes});
  Status done =
      kernel.launch({.grid = {gx, gy, gz}, .block = {bx, by, bz}, .dynamic_shared = shared}, given);
  if (done) done = state().device.synchronize();
  return done ? 0 : refuse(done);
}

int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  auto buffer = state().device.allocate(bytes);
  if (!buffer) return refuse(buffer);
  *address = buffer->address();
  state().buffers.emplace(*address, std::move(*buffer));
  return 0;
}

int cuMemcpyHtoD_v2(std::uint64_t to, const void* from, std::size_t bytes) {
  const Status done =
      state().buffers.at(to).write(std::span(static_cast<const std::byte*>(from), bytes));
  return done ? 0 : refuse(done);
}

int cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t bytes) {
  const Status done = state().buffers.at(from).read(std::span(static_cast<std::byte*>(to), bytes));
  return done ? 0 : refuse(done);
}

}  // extern "C"
