// SPDX-License-Identifier: Apache-2.0
// A program of the CUDA runtime that has kernels of its own, from nvcc, and takes the product from
// Tartan: all of them in one stream, on memory from cudaMalloc. Then the same work again as a CUDA
// graph that was captured from that stream.
#include <tartan/tartan.h>

#include <cstdio>
#include <memory>

#include "own_kernels.h"

using namespace tartan;

namespace {

constexpr int m = 1000, n = 512, k = 768;

int fail(const Diags& diags) {
  std::fputs(diags.text().c_str(), stderr);
  return 1;
}

// Ends the program if a call of the CUDA runtime fails.
void check(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(code));
  std::exit(1);
}

// Memory of the program, from cudaMalloc.
template <typename T>
std::shared_ptr<T> cuda_array(std::size_t count) {
  T* memory = nullptr;
  check(cudaMalloc(reinterpret_cast<void**>(&memory), count * sizeof(T)));
  return {memory, [](T* old) { cudaFree(old); }};
}

// That memory as a buffer of Tartan's, which keeps it alive.
template <typename T>
Result<Buffer> buffer_of(Device& device, const std::shared_ptr<T>& memory, std::size_t count) {
  return device.view(reinterpret_cast<std::uint64_t>(memory.get()), count * sizeof(T), memory);
}

}  // namespace

int main() {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
    std::puts("skipped: no GPU");
    return 77;
  }
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const auto a = cuda_array<__half>(m * k), b = cuda_array<__half>(k * n);
  const auto c = cuda_array<float>(m * n);
  const auto wrong = cuda_array<unsigned>(1);

  auto device = Device::open("cuda:0");  // the GPU's primary context, as the CUDA runtime's
  if (!device) return fail(device.diags());
  const kernels::Gemm options =
      kernels::tuned(kernels::Gemm{.m = m, .n = n, .k = k}, kernels::Gpu::of(*device));
  const auto compiled = compile(kernels::gemm(options), device->arch());
  if (!compiled) return fail(compiled.diags());
  const auto module = device->load(compiled->ptx, compiled->name);
  if (!module) return fail(module.diags());
  auto product = module->kernel(compiled->name);
  const auto queue = device->adopt_stream(stream);
  const auto tartan_a = buffer_of(*device, a, m * k), tartan_b = buffer_of(*device, b, k * n);
  const auto tartan_c = buffer_of(*device, c, m * n);
  for (const Result<Buffer>* each : {&tartan_a, &tartan_b, &tartan_c})
    if (!*each) return fail(each->diags());
  const unsigned blocks = options.grid_x(m, n, device->multiprocessors());

  const auto all_of_it = [&]() -> Status {
    fill_pattern(a.get(), m * k, 7, 31, stream);
    fill_pattern(b.get(), k * n, 5, 29, stream);
    const auto arguments = Arguments().add(*tartan_a).add(*tartan_b).add(*tartan_c);
    if (auto status = launch(*product, *compiled, {blocks}, arguments, &*queue); !status)
      return status;
    relu(c.get(), m * n, stream);
    check(cudaMemsetAsync(wrong.get(), 0, sizeof(unsigned), stream));
    count_wrong(a.get(), b.get(), c.get(), m, n, k, wrong.get(), stream);
    return Done{};
  };
  const auto report = [&](const char* how) {
    unsigned count = 0;
    check(cudaMemcpyAsync(&count, wrong.get(), sizeof count, cudaMemcpyDeviceToHost, stream));
    check(cudaStreamSynchronize(stream));
    std::printf("%s: %u of %d elements are wrong\n", how, count, m * n);
    return count == 0;
  };

  if (auto status = all_of_it(); !status) return fail(status.diags());
  bool right = report("in a stream");

  check(cudaMemset(c.get(), 0, m * n * sizeof(float)));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  if (auto status = all_of_it(); !status) return fail(status.diags());
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&executable, graph, 0));
  for (int round = 0; round < 3; ++round) check(cudaGraphLaunch(executable, stream));
  right &= report("as a graph");
  check(cudaGraphExecDestroy(executable));
  check(cudaGraphDestroy(graph));
  check(cudaStreamDestroy(stream));
  return right ? 0 : 1;
}
