// SPDX-License-Identifier: Apache-2.0
// docs/cmake.md's program: compiles a kernel for the GPU it finds, and runs it.
#include <tartan/tartan.h>

#include <cstdio>
#include <stdexcept>

using namespace tartan;

// A Status is a Result<Done>: must() takes it, too.
template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.diags().text());
  return std::move(*result);
}

int main() {
  Device device = must(Device::open("auto"));            // the first GPU, else the emulator
  const kernels::Gemm any_size{.m = 0, .n = 0, .k = 0};  // sizes are arguments
  const kernels::Gemm options = kernels::tuned(any_size, kernels::Gpu::of(device));
  const Compiled compiled = must(compile(kernels::gemm(options), device.arch()));
  const Module module = must(device.load(compiled.ptx, compiled.name));
  LoadedKernel kernel = must(module.kernel(compiled.name));

  const int m = 256, n = 256, k = 256;
  Buffer a = must(device.allocate(m * k * 2)), b = must(device.allocate(k * n * 2));
  Buffer c = must(device.allocate(m * n * 4));
  const std::vector<std::uint16_t> ones(m * k, 0x3c00);  // 1.0 as f16
  must(a.write(ones)), must(b.write(ones));
  const auto arguments = Arguments().add(m).add(n).add(k).add(a).add(b).add(c);
  must(launch(kernel, compiled, {options.blocks(m, n)}, arguments));
  must(device.synchronize());
  std::printf("%g\n", must(c.read_all<float>())[0]);  // 256
}
