// SPDX-License-Identifier: Apache-2.0
// The CUDA driver's test double: memory, streams and events.
#include <algorithm>
#include <cstring>

#include "tests/runtime/fake_cuda_state.h"

using namespace fake_cuda_double;

namespace {

int graph_tag, stream_tag, event_tag;

std::byte* at(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

}  // namespace

extern "C" {

int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  ALONE;
  if (const int code = enter("cuMemAlloc")) return code;
  auto memory = std::make_unique<std::byte[]>(bytes);
  *address = reinterpret_cast<std::uint64_t>(memory.get());
  state().memory[*address] = std::move(memory);
  return 0;
}

int cuMemFree_v2(std::uint64_t address) {
  ALONE;
  if (const int code = enter("cuMemFree")) return code;
  return state().memory.erase(address) ? 0 : invalid_value;
}

int cuMemcpyHtoD_v2(std::uint64_t to, const void* from, std::size_t bytes) {
  ALONE;
  if (const int code = enter("cuMemcpyHtoD")) return code;
  std::memcpy(at(to), from, bytes);
  return 0;
}

int cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t bytes) {
  ALONE;
  if (const int code = enter("cuMemcpyDtoH")) return code;
  std::memcpy(to, at(from), bytes);
  return 0;
}

int cuMemsetD8_v2(std::uint64_t to, unsigned char byte, std::size_t bytes) {
  ALONE;
  if (const int code = enter("cuMemsetD8")) return code;
  std::memset(at(to), byte, bytes);
  return 0;
}

int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void*) {
  ALONE;
  if (const int code = enter("cuMemcpyHtoDAsync")) return code;
  state().copies.push_back("write " + std::to_string(bytes));
  std::memcpy(at(to), from, bytes);
  return 0;
}

int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void*) {
  ALONE;
  if (const int code = enter("cuMemcpyDtoHAsync")) return code;
  state().copies.push_back("read " + std::to_string(bytes));
  std::memcpy(to, at(from), bytes);
  return 0;
}

int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes, void*) {
  ALONE;
  if (const int code = enter("cuMemcpyDtoDAsync")) return code;
  state().copies.push_back("copy " + std::to_string(bytes));
  std::memcpy(at(to), at(from), bytes);
  return 0;
}

int cuMemcpyPeerAsync(std::uint64_t to, void*, std::uint64_t from, void*, std::size_t bytes,
                      void*) {
  ALONE;
  if (const int code = enter("cuMemcpyPeerAsync")) return code;
  state().copies.push_back("peer " + std::to_string(bytes));
  std::memcpy(at(to), at(from), bytes);
  return 0;
}

int cuMemsetD8Async(std::uint64_t to, unsigned char byte, std::size_t bytes, void*) {
  ALONE;
  if (const int code = enter("cuMemsetD8Async")) return code;
  state().copies.push_back("fill " + std::to_string(bytes));
  std::memset(at(to), byte, bytes);
  return 0;
}

int cuMemAllocHost_v2(void** memory, std::size_t bytes) {
  ALONE;
  if (const int code = enter("cuMemAllocHost")) return code;
  ++state().host_buffers;
  *memory = new std::byte[bytes];
  return 0;
}

int cuMemFreeHost(void* memory) {
  ALONE;
  if (const int code = enter("cuMemFreeHost")) return code;
  --state().host_buffers;
  delete[] static_cast<std::byte*>(memory);
  return 0;
}

int cuMemGetInfo_v2(std::size_t* free, std::size_t* all) {
  ALONE;
  *free = state().free_bytes;
  *all = state().all_bytes;
  return enter("cuMemGetInfo");
}

int cuPointerGetAttribute(void* value, int attribute, std::uint64_t address) {
  ALONE;
  if (const int code = enter("cuPointerGetAttribute")) return code;
  if (address < 4096) return invalid_value;
  if (attribute == 2) *static_cast<unsigned*>(value) = 2;
  else if (attribute == 9) *static_cast<int*>(value) = state().memory_owner;
  else return invalid_value;
  return 0;
}

int cuDeviceCanAccessPeer(int* can, int, int) {
  ALONE;
  *can = state().peers;
  return enter("cuDeviceCanAccessPeer", false);
}

int cuCtxEnablePeerAccess(void*, unsigned) {
  ALONE;
  return enter("cuCtxEnablePeerAccess");
}

int cuStreamCreate(void** stream, unsigned) {
  ALONE;
  if (const int code = enter("cuStreamCreate")) return code;
  ++state().streams;
  *stream = &stream_tag;
  return 0;
}

int cuStreamDestroy_v2(void*) {
  ALONE;
  --state().streams;
  return enter("cuStreamDestroy");
}

int cuStreamSynchronize(void*) {
  ALONE;
  return enter("cuStreamSynchronize");
}

int cuStreamWaitEvent(void*, void*, unsigned) {
  ALONE;
  return enter("cuStreamWaitEvent");
}

int cuStreamBeginCapture_v2(void*, int) {
  ALONE;
  return enter("cuStreamBeginCapture");
}

int cuStreamEndCapture(void*, void** graph) {
  ALONE;
  const int code = enter("cuStreamEndCapture");
  *graph = code ? nullptr : &graph_tag;
  return code;
}

int cuGraphDestroy(void*) {
  ALONE;
  return enter("cuGraphDestroy");
}

int cuGraphInstantiateWithFlags(void** runnable, void*, unsigned long long) {
  ALONE;
  if (const int code = enter("cuGraphInstantiate")) return code;
  *runnable = &graph_tag;
  return 0;
}

int cuGraphExecDestroy(void*) {
  ALONE;
  return enter("cuGraphExecDestroy");
}

int cuGraphLaunch(void*, void*) {
  ALONE;
  return enter("cuGraphLaunch");
}

int cuEventCreate(void** event, unsigned) {
  ALONE;
  if (const int code = enter("cuEventCreate")) return code;
  ++state().events;
  *event = &event_tag;
  return 0;
}

int cuEventDestroy_v2(void*) {
  ALONE;
  --state().events;
  return enter("cuEventDestroy");
}

int cuEventRecord(void*, void*) {
  ALONE;
  return enter("cuEventRecord");
}
int cuEventSynchronize(void*) { return enter("cuEventSynchronize"); }

int cuEventElapsedTime(float* milliseconds, void*, void*) {
  ALONE;
  *milliseconds = state().milliseconds;
  return enter("cuEventElapsedTime");
}

}  // extern "C"
