// SPDX-License-Identifier: Apache-2.0
// A program without Tartan: it loads a bundle that was made when it was built, by the plain driver
// API, and launches its kernels with the functions of the generated header.
//
//   offline kernels.fatbin [libcuda.so.1]
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "driver.h"
#include "kernels.h"  // generated: kernels::best(), prepare_product(), prepare_scale()

namespace {

// Launches what a function of the header prepared. False: it says why not.
template <typename Launch>
bool launch(const Driver& cuda, CUfunction function, Launch prepared) {
  if (!prepared.error.empty()) {
    std::fprintf(stderr, "%s\n", prepared.error.c_str());
    return false;
  }
  for (int i = 0; i < prepared.map_count; ++i) {
    const kernels::Map& map = prepared.maps[i];
    cuda("cuTensorMapEncodeTiled", static_cast<void*>(prepared.arguments[map.argument].bytes),
         map.type, map.rank, reinterpret_cast<void*>(map.address), map.extents, map.strides,
         map.box, map.element_strides, map.interleave, map.swizzle, map.promotion, map.fill);
  }
  constexpr int max_dynamic_shared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  cuda("cuFuncSetAttribute", function, max_dynamic_shared, static_cast<int>(prepared.shared));
  const kernels::Dim3 &grid = prepared.grid, &block = prepared.block;
  cuda("cuLaunchKernel", function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
       prepared.shared, CUstream(nullptr), prepared.pointers(), static_cast<void**>(nullptr));
  return true;
}

// f16 bits of 0, 1 and 2.
std::uint16_t half(int value) {
  return static_cast<std::uint16_t>(value == 0 ? 0 : value == 1 ? 0x3c00 : 0x4000);
}

template <typename T>
CUdeviceptr upload(const Driver& cuda, const std::vector<T>& values) {
  CUdeviceptr address = 0;
  cuda("cuMemAlloc_v2", &address, values.size() * sizeof(T));
  cuda("cuMemcpyHtoD_v2", address, static_cast<const void*>(values.data()),
       values.size() * sizeof(T));
  return address;
}

}  // namespace

int main(int argc, char** argv) {
  const Driver cuda(argc > 2 ? argv[2] : "libcuda.so.1");
  if (!cuda) {
    std::printf("skipped: no driver\n");
    return 0;
  }
  CUdevice device = 0;
  CUcontext context = nullptr;
  int major = 0, minor = 0;
  cuda("cuInit", 0u);
  cuda("cuDeviceGet", &device, 0);
  cuda("cuDeviceGetAttribute", &major, 75, device);  // compute capability
  cuda("cuDeviceGetAttribute", &minor, 76, device);
  cuda("cuDevicePrimaryCtxRetain", &context, device);
  cuda("cuCtxPushCurrent_v2", context);

  // The driver takes from the bundle what best() says.
  const kernels::Image* const image = kernels::best(10 * major + minor);
  if (!image) {
    std::printf("skipped: the bundle has nothing for compute capability %d.%d\n", major, minor);
    return 0;
  }
  std::ifstream file(argc > 1 ? argv[1] : "kernels.fatbin", std::ios::binary);
  const std::vector<char> bundle{std::istreambuf_iterator<char>(file), {}};
  CUmodule module = nullptr;
  CUfunction product = nullptr, scale = nullptr;
  cuda("cuModuleLoadData", &module, static_cast<const void*>(bundle.data()));
  cuda("cuModuleGetFunction", &product, module, "product");
  cuda("cuModuleGetFunction", &scale, module, "scale");

  const int m = 200, n = 136, depth = 72;
  std::vector<std::uint16_t> a, b;
  for (int i = 0; i < m * depth; ++i) a.push_back(half(i % 3));
  for (int i = 0; i < depth * n; ++i) b.push_back(half(i / 5 % 3));
  std::vector<float> c(m * n);
  const CUdeviceptr at_a = upload(cuda, a), at_b = upload(cuda, b), at_c = upload(cuda, c);
  const kernels::Global<kernels::f16> A(at_a, a.size() * 2), B(at_b, b.size() * 2);
  const kernels::Global<kernels::f32> C(at_c, c.size() * 4);

  if (!launch(cuda, product, kernels::prepare_product(*image, {4}, m, n, depth, A, B, C))) return 1;
  const unsigned blocks = (m * n + 255) / 256;
  if (!launch(cuda, scale, kernels::prepare_scale(*image, {blocks}, m * n, 0.5f, C))) return 1;
  cuda("cuMemcpyDtoH_v2", static_cast<void*>(c.data()), at_c, c.size() * 4);

  int mismatches = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      int sum = 0;
      for (int x = 0; x < depth; ++x) sum += ((i * depth + x) % 3) * ((x * n + j) / 5 % 3);
      mismatches += c[i * n + j] != 0.5f * static_cast<float>(sum);
    }
  std::printf("%s: mismatches %d of %d\n", image->target, mismatches, m * n);
  return mismatches != 0;
}
