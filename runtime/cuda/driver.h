// SPDX-License-Identifier: Apache-2.0
// runtime/cuda/driver.h - the entry points of the CUDA driver that Tartan uses, found with dlopen.
//
// The driver's C interface is stable, so these declarations replace its header. The library is
// searched for in this order:
//   1. the path in the environment variable TARTAN_CUDA_DRIVER, exclusively;
//   2. libcuda.so.1 and libcuda.so, where the system's loader looks;
//   3. /usr/lib/wsl/lib/libcuda.so.1, where Windows puts it for its Linux.
//
// An entry point is called through Driver::call, which turns the driver's code into a Status that
// names the call:
//   DeviceAddress address = 0;
//   if (auto status = driver.call(driver.memory_allocate, &address, bytes); !status) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI::cuda {

/// The result of every entry point. Values that Tartan distinguishes; others pass through.
enum class Code : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  Deinitialized = 4,
  StubLibrary = 34,
  DeviceUnavailable = 46,
  NoDevice = 100,
  InvalidContext = 201,
  NoBinaryForGpu = 209,
  UncorrectableEcc = 214,
  InvalidPtx = 218,
  UnsupportedPtxVersion = 222,
  NotFound = 500,
  IllegalAddress = 700,
  LaunchTimeout = 702,
  PeerAccessAlreadyEnabled = 704,
  ContextIsDestroyed = 709,
  Assert = 710,
  HardwareStackError = 714,
  IllegalInstruction = 715,
  MisalignedAddress = 716,
  InvalidAddressSpace = 717,
  InvalidPc = 718,
  LaunchFailed = 719,
  SystemNotReady = 802,
  DriverMismatch = 803,
  CaptureUnsupported = 900,
  CaptureImplicit = 906,
  Unknown = 999,
};

// Handles and numbers of the interface.
using DeviceOrdinal = int;
using DeviceAddress = std::uint64_t;
using ContextHandle = struct ContextTag*;
using ModuleHandle = struct ModuleTag*;
using FunctionHandle = struct FunctionTag*;
using StreamHandle = struct StreamTag*;
using GraphHandle = struct GraphTag*;
using RunnableHandle = struct RunnableTag*;  // CUgraphExec
using EventHandle = struct EventTag*;
using LinkHandle = struct LinkTag*;

enum class DeviceAttribute : int {
  Multiprocessors = 16,
  CapabilityMajor = 75,
  CapabilityMinor = 76,
  SharedPerBlockOptIn = 97,  // bytes
};

enum class FunctionAttribute : int {
  MaxThreadsPerBlock = 0,
  StaticShared = 1,           // bytes
  LocalBytes = 3,             // of a thread
  Registers = 4,              // of a thread
  MaxDynamicShared = 8,       // bytes; may be set
  LargeClustersAllowed = 14,  // of more than 8 blocks; may be set
};

/// An attribute of a launch (CUlaunchAttribute): those that Tartan uses.
struct LaunchAttribute {
  static constexpr int cooperative = 2, cluster_dimension = 4, programmatic = 6;
  int id = cluster_dimension;
  alignas(8) unsigned value[3] = {};  // 1; the cluster
  char rest[52] = {};
};
static_assert(sizeof(LaunchAttribute) == 72);

/// A launch with attributes (CUlaunchConfig).
struct LaunchConfiguration {
  unsigned grid[3] = {}, block[3] = {}, dynamic_shared = 0;
  StreamHandle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

enum class PointerAttribute : int {
  MemoryType = 2,  // MemoryType below
  DeviceOrdinal = 9,
};
inline constexpr unsigned device_memory = 2;  // of PointerAttribute::MemoryType; 1 is the host's

enum class CaptureMode : int { ThreadLocal = 1 };
enum class JitOption : int {
  InfoLog = 3,
  InfoLogBytes = 4,
  ErrorLog = 5,
  ErrorLogBytes = 6,
  OptimizationLevel = 7,  // 0 to 4
  Target = 9,
};
// Of JitOption::Target: an architecture's number times ten, and these for its suffix.
inline constexpr unsigned suffix_a_target = 0x10000, suffix_f_target = 0x20000;
inline constexpr int jit_input_ptx = 1;

/// A shared library that stays loaded until the process ends: objects of static lifetime may still
/// free driver resources at exit.
class Library {
 public:
  explicit Library(void* handle) : handle_(handle) {}
  /// The symbol's address, or null and recorded as missing.
  void* find(const char* symbol);
  /// The same for entry points of newer drivers: nothing is recorded.
  void* find_if_there(const char* symbol) const;
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  void* handle_;
  std::vector<std::string> missing_;
};

/// For an Entry that may be null.
struct IfThere {};

/// One entry point: its symbol and its parameters.
template <typename... Params>
struct Entry {
  const char* symbol;
  Code (*address)(Params...);
  Entry(const Library& library, const char* symbol, IfThere)
      : symbol(symbol),
        address(reinterpret_cast<Code (*)(Params...)>(library.find_if_there(symbol))) {}
  Entry(Library& library, const char* symbol)
      : symbol(symbol), address(reinterpret_cast<Code (*)(Params...)>(library.find(symbol))) {}
};

class Driver {
 public:
  /// The first library of `candidates` that can be loaded and has every entry point; initialised.
  static Result<const Driver*> load(const std::vector<std::string>& candidates);
  /// The paths where libcuda is searched for on this system.
  static std::vector<std::string> candidates();

  /// Calls an entry point. A failure is reported as rule `driver`, with the call's name and the
  /// driver's message.
  template <typename... Params, typename... Arguments>
  Status call(const Entry<Params...>& entry, Arguments... arguments) const {
    const Code code = entry.address(arguments...);
    if (code == Code::Success) return Done{};
    return failure(entry.symbol, code);
  }

  /// "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY: out of memory", as a diagnostic of the code's rule.
  Diags failure(std::string_view call, Code code) const;
  std::string describe(std::string_view call, Code code) const;
  /// The CUDA version of the driver, as 13000 for 13.0.
  int version() const;

 private:
  explicit Driver(void* handle) : library_(handle) {}
  Library library_;

 public:
  // clang-format off
  Entry<unsigned> initialize{library_, "cuInit"};
  Entry<int*> driver_version{library_, "cuDriverGetVersion"};
  Entry<Code, const char**> error_name{library_, "cuGetErrorName"};
  Entry<Code, const char**> error_text{library_, "cuGetErrorString"};

  Entry<int*> device_count{library_, "cuDeviceGetCount"};
  Entry<DeviceOrdinal*, int> device{library_, "cuDeviceGet"};
  Entry<char*, int, DeviceOrdinal> device_name{library_, "cuDeviceGetName"};
  Entry<int*, DeviceAttribute, DeviceOrdinal> device_attribute{library_, "cuDeviceGetAttribute"};

  Entry<ContextHandle*, DeviceOrdinal> context_retain{library_, "cuDevicePrimaryCtxRetain"};
  Entry<DeviceOrdinal> context_release{library_, "cuDevicePrimaryCtxRelease_v2"};
  Entry<ContextHandle*> context_current{library_, "cuCtxGetCurrent"};
  Entry<DeviceOrdinal*> context_device{library_, "cuCtxGetDevice"};
  Entry<ContextHandle> context_push{library_, "cuCtxPushCurrent_v2"};
  Entry<ContextHandle*> context_pop{library_, "cuCtxPopCurrent_v2"};
  Entry<> context_synchronize{library_, "cuCtxSynchronize"};

  Entry<ModuleHandle*, const void*, unsigned, JitOption*, void**> module_load{library_, "cuModuleLoadDataEx"};
  Entry<unsigned, JitOption*, void**, LinkHandle*> link_create{library_, "cuLinkCreate_v2"};
  // link; kind of input; text and its bytes; name; options
  Entry<LinkHandle, int, void*, std::size_t, const char*, unsigned, JitOption*, void**> link_add{library_, "cuLinkAddData_v2"};
  Entry<LinkHandle, void**, std::size_t*> link_complete{library_, "cuLinkComplete"};
  Entry<LinkHandle> link_destroy{library_, "cuLinkDestroy"};
  Entry<ModuleHandle> module_unload{library_, "cuModuleUnload"};
  Entry<FunctionHandle*, ModuleHandle, const char*> module_function{library_, "cuModuleGetFunction"};
  // address; bytes; module; name
  Entry<DeviceAddress*, std::size_t*, ModuleHandle, const char*> module_variable{library_, "cuModuleGetGlobal_v2"};
  // What a cubin has: from CUDA 12.4 on.
  Entry<unsigned*, ModuleHandle> module_function_count{library_, "cuModuleGetFunctionCount", IfThere{}};
  Entry<FunctionHandle*, unsigned, ModuleHandle> module_functions{library_, "cuModuleEnumerateFunctions", IfThere{}};
  Entry<const char**, FunctionHandle> function_name{library_, "cuFuncGetName", IfThere{}};
  // function; index of a parameter; its offset and bytes
  Entry<FunctionHandle, std::size_t, std::size_t*, std::size_t*> function_param{library_, "cuFuncGetParamInfo", IfThere{}};
  // blocks; function; threads of a block; dynamic shared bytes
  Entry<int*, FunctionHandle, int, std::size_t> occupancy{library_, "cuOccupancyMaxActiveBlocksPerMultiprocessor"};
  Entry<int*, FunctionAttribute, FunctionHandle> function_attribute{library_, "cuFuncGetAttribute"};
  Entry<FunctionHandle, FunctionAttribute, int> set_function_attribute{library_, "cuFuncSetAttribute"};
  // function; grid x, y, z; block x, y, z; dynamic shared bytes; stream; parameters; extra
  Entry<FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, StreamHandle, void**, void**> launch{library_, "cuLaunchKernel"};
  // configuration; function; parameters; extra. From CUDA 11.8 on.
  Entry<const LaunchConfiguration*, FunctionHandle, void**, void**> launch_extended{library_, "cuLaunchKernelEx", IfThere{}};

  Entry<DeviceAddress*, std::size_t> memory_allocate{library_, "cuMemAlloc_v2"};
  Entry<DeviceAddress> memory_free{library_, "cuMemFree_v2"};
  Entry<DeviceAddress, const void*, std::size_t> copy_to_device{library_, "cuMemcpyHtoD_v2"};
  Entry<void*, DeviceAddress, std::size_t> copy_to_host{library_, "cuMemcpyDtoH_v2"};
  Entry<DeviceAddress, unsigned char, std::size_t> memory_set{library_, "cuMemsetD8_v2"};
  Entry<DeviceAddress, const void*, std::size_t, StreamHandle> copy_to_device_on{library_, "cuMemcpyHtoDAsync_v2"};
  Entry<void*, DeviceAddress, std::size_t, StreamHandle> copy_to_host_on{library_, "cuMemcpyDtoHAsync_v2"};
  Entry<DeviceAddress, DeviceAddress, std::size_t, StreamHandle> copy_on{library_, "cuMemcpyDtoDAsync_v2"};
  // to and its context; from and its context; bytes; stream
  Entry<DeviceAddress, ContextHandle, DeviceAddress, ContextHandle, std::size_t, StreamHandle> copy_peer_on{library_, "cuMemcpyPeerAsync"};
  Entry<DeviceAddress, unsigned char, std::size_t, StreamHandle> memory_set_on{library_, "cuMemsetD8Async"};
  Entry<void**, std::size_t> host_allocate{library_, "cuMemAllocHost_v2"};
  Entry<void*> host_free{library_, "cuMemFreeHost"};
  Entry<std::size_t*, std::size_t*> memory_info{library_, "cuMemGetInfo_v2"};  // free; all
  Entry<void*, PointerAttribute, DeviceAddress> pointer_attribute{library_, "cuPointerGetAttribute"};
  Entry<int*, DeviceOrdinal, DeviceOrdinal> can_access_peer{library_, "cuDeviceCanAccessPeer"};
  Entry<ContextHandle, unsigned> enable_peer_access{library_, "cuCtxEnablePeerAccess"};

  Entry<StreamHandle*, unsigned> stream_create{library_, "cuStreamCreate"};
  Entry<StreamHandle> stream_destroy{library_, "cuStreamDestroy_v2"};
  Entry<StreamHandle> stream_synchronize{library_, "cuStreamSynchronize"};
  Entry<StreamHandle, EventHandle, unsigned> stream_wait{library_, "cuStreamWaitEvent"};

  // Graphs: from CUDA 11.4 on.
  Entry<StreamHandle, CaptureMode> begin_capture{library_, "cuStreamBeginCapture_v2", IfThere{}};
  Entry<StreamHandle, GraphHandle*> end_capture{library_, "cuStreamEndCapture", IfThere{}};
  Entry<GraphHandle> graph_destroy{library_, "cuGraphDestroy", IfThere{}};
  Entry<RunnableHandle*, GraphHandle, unsigned long long> graph_instantiate{library_, "cuGraphInstantiateWithFlags", IfThere{}};
  Entry<RunnableHandle> runnable_destroy{library_, "cuGraphExecDestroy", IfThere{}};
  Entry<RunnableHandle, StreamHandle> graph_launch{library_, "cuGraphLaunch", IfThere{}};

  Entry<EventHandle*, unsigned> event_create{library_, "cuEventCreate"};
  Entry<EventHandle> event_destroy{library_, "cuEventDestroy_v2"};
  Entry<EventHandle, StreamHandle> event_record{library_, "cuEventRecord"};
  Entry<EventHandle> event_synchronize{library_, "cuEventSynchronize"};
  Entry<float*, EventHandle, EventHandle> event_elapsed{library_, "cuEventElapsedTime"};
  // clang-format on
};

/// The installed driver, loaded and initialised once; later calls give the same one.
Result<const Driver*> installed_driver();

/// Whether `code` says that a kernel failed while it ran. The context is then lost: every later
/// call returns this code.
bool kernel_failed(Code code);

/// The rule of a diagnostic about `code`.
const Rule& rule_of(Code code);

}  // namespace tartan::TARTAN_ABI::cuda
