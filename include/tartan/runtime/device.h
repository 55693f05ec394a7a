// SPDX-License-Identifier: Apache-2.0
// tartan/runtime/device.h - running PTX: one interface for NVIDIA GPUs (through the CUDA driver)
// and for the built-in emulator.
//
//   Result<Device> device = Device::best();         // the first GPU, else the emulator
//   Result<Module> module = device->load(ptx);      // the driver compiles, the emulator decodes
//   Result<LoadedKernel> kernel = module->kernel("scale");
//   Result<Buffer> out = device->allocate(1024);
//   const auto arguments = Arguments().add(*out).add(std::uint32_t{64});
//   Status launched = kernel->launch({.grid = {8}, .block = {32}}, arguments);
//   Status finished = device->synchronize();        // what failed in the kernel
//   Result<std::vector<float>> values = out->read_all<float>();
//
// Each Result may hold diagnostics instead of a value: check it before `*` and `->`. launch() of
// tartan/launch.h launches the result of compile(): it knows the block size and the further
// arguments.
//
// Every object keeps what it needs alive; destroying one frees its resource. Any thread may call,
// and none has to be set up first: the GPU's context is current for the time of a call, and the
// caller's is restored. Devices, modules and kernels may be used by several threads at a time; one
// buffer, stream or event only by one. A program that links Tartan runs on machines without a
// driver: libcuda is loaded only when a GPU is requested. The environment variable
// TARTAN_CUDA_DRIVER names another file to load instead.
//
// Objects of others (a CUcontext, CUstream, device memory) are adopted: Device::adopt(),
// Device::adopt_stream(), Device::view(). A kernel that fails on a GPU destroys its context: every
// later call on that Device says so, and a new Device works.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tartan/isa/target.h"
#include "tartan/runtime/profile.h"
#include "tartan/support/diagnostic.h"
#include "tartan/support/dim3.h"

namespace tartan::TARTAN_ABI {

namespace detail {
class Exploration;  // what goes through the schedules of a launch
class Trial;        // what finds the level of a finding
class Watch;        // what shows where a launch is, and stops it
}  // namespace detail
class Timeline;  // tartan/runtime/timeline.h

/// The shape of a launch: blocks, threads per block, bytes of dynamic shared memory per block, and
/// blocks per cluster (sm_90 and later; the grid is a whole number of clusters).
struct Launch {
  Dim3 grid = {};
  Dim3 block = {};
  std::uint32_t dynamic_shared = 0;
  Dim3 cluster{0, 0, 0};  // zero: what the kernel states (.reqnctapercluster), else one block
  /// All blocks run at the same time and may wait for each other, as grid.sync() of CUDA's
  /// cooperative groups does.
  bool cooperative = false;
  /// Programmatic dependent launch, from sm_90 on: the kernel may start while the launch before it
  /// in its stream still runs, and waits for its end by griddepcontrol.wait. On the emulator with
  /// checks, what it accesses before that is compared with what that launch accessed.
  bool programmatic = false;
};

/// The block of a finding that concerns no particular block.
inline constexpr Dim3 no_block{0xffffffff, 0xffffffff, 0xffffffff};

/// A problem that a run found: an entry of "findings" in `tartan run --json`. `id` is a rule of
/// tartan/support/rules.h.
struct Finding {
  std::string id;
  std::string message;
  int line = 0;           // of the PTX text; 0 where unknown
  std::string source;     // "gemm.cc:42", from .loc; empty where unknown
  Dim3 block = no_block;  // ctaid
  int lane = -1;          // thread of the block (linear index); -1 where it is about all of them
  std::uint64_t address = 0;
  /// Error: the outcome can differ, or hardware is known to misbehave. docs/diagnostics.md has the
  /// level of each id.
  Level level = Level::Error;
  bool stopped = false;  // the launch ended there
};

/// How well emulated results match the hardware. `level` is "recorded" (reproduces bits recorded on
/// that hardware), "partly recorded" (the same, but special values were not recorded), "measured"
/// (public measurements agree for ordinary numbers), "documented" (the manual's semantics or error
/// bound) or "assumed" (the nearest generation's rule); empty if everything is exact by definition.
struct NumericTrust {
  std::string level;
  std::string instruction;  // the least known of the kernel's: "mma.sync.aligned.m16n8k16..."
  std::string source;       // what the emulator's rule for it comes from
};

/// What the last launches did; emulator only (all zero on a GPU).
struct Report {
  std::uint64_t warp_instructions = 0;  // instructions issued, one per warp
  std::uint64_t lane_instructions = 0;  // the same, times active lanes
  std::uint64_t multiply_adds = 0;      // of matrix instructions
  double seconds = 0;                   // host time inside launches
  NumericTrust trust;                   // the weakest of all kernels launched
  /// In the order of the text; empty without DeviceOptions::profile.
  std::vector<InstructionProfile> instructions;
};

/// What the emulator looks for beside bad addresses, deadlocks and, in shared memory, the races of
/// kernels with bulk copies, wgmma or mbarriers. Launches with checks take one host thread and more
/// time: docs/emulator.md has a table.
enum class Checks : std::uint8_t {
  none,
  memory,  ///< all races: in shared, distributed shared and global memory
  all      ///< also results that depend on what was never written, and illegal sparse metadata
};

/// How a device is opened; the emulator's checks and limits.
struct DeviceOptions {
  /// Emulator: whose arithmetic ("sm_90"); empty: that of the module's target. A module for another
  /// target is loaded all the same: `tartan check --target` says whether it fits that hardware.
  std::string hardware;
  /// Emulator: instructions that one warp may issue before the launch is stopped as an endless
  /// loop.
  std::uint64_t max_steps = 1'000'000'000;
  /// Emulator: seconds after which a launch is stopped; 0: no limit.
  double timeout = 0;
  /// Emulator: host threads that share the blocks of a launch; 0: one per core.
  int threads = 0;
  /// Emulator: the order of warps, CTAs and asynchronous operations: the number of a seed, from
  /// which all of it is drawn, or a schedule that `tartan run --schedules` names. Such a launch
  /// takes one host thread and is the same each time. Empty: the usual order, in which asynchronous
  /// operations are done when they are issued.
  std::string schedule = {};
  /// For `tartan run --schedules all`, which sets it for its own runs.
  std::shared_ptr<detail::Exploration> exploration = {};
  /// For `tartan run`, which sets it for its own runs.
  std::shared_ptr<detail::Trial> trial = {};
  /// Emulator: what is looked for.
  Checks checks = Checks::none;
  /// Emulator: launches count what each instruction does (Report::instructions). They then take
  /// one host thread.
  bool profile = false;
  /// Emulator: launches add the order of their copies, products, barriers and waits. They then take
  /// one host thread.
  std::shared_ptr<Timeline> timeline = {};
  /// Emulator: told at the start of a launch and after every block how many blocks are done, from
  /// any of those threads; it may not throw.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};
  /// Emulator: told what kernels print, as they print it, from any of those threads; empty: it goes
  /// to standard output.
  std::function<void(std::string_view text)> print = {};
  /// For `tartan run`: its progress line and Ctrl-C.
  std::shared_ptr<detail::Watch> watch = {};
};

namespace detail {
class Engine;  // what an engine implements: runtime/engine.h
class EngineModule;
class EngineKernel;
class EngineStream;
class EngineEvent;
class DeviceAccess;  // for what joins the layers: runtime/device_access.h
}  // namespace detail

class Stream;

/// Bytes of a buffer that nobody has written.
struct Unwritten {
  std::size_t bytes = 0;
  std::size_t first = 0;  // the offset of the first
};

/// Device memory, freed when the last copy goes; of Device::view(), somebody else's.
class Buffer {
 public:
  std::size_t size() const { return size_; }
  std::uint64_t address() const { return address_; }
  /// Copies between host and device; waits for the device first. The range must lie inside the
  /// buffer.
  Status write(std::span<const std::byte> bytes, std::size_t offset = 0);
  Status read(std::span<std::byte> bytes, std::size_t offset = 0) const;
  Status fill(std::uint8_t byte);
  /// Same, in the order of `stream` and without waiting: the host's bytes must stay as they are
  /// until the stream has reached it (Stream::synchronize()). From a HostBuffer the copy runs
  /// beside the host's work; from other memory the driver may wait. On the emulator it is done on
  /// return.
  Status write(std::span<const std::byte> bytes, const Stream& stream, std::size_t offset = 0);
  Status read(std::span<std::byte> bytes, const Stream& stream, std::size_t offset = 0) const;
  Status fill(std::uint8_t byte, const Stream& stream);
  /// Copies all of `source`, which may be on another device, to `offset` here. With `stream`, of
  /// this buffer's device, in its order and without waiting; else it waits for both devices first,
  /// and is done on return.
  Status copy_from(const Buffer& source, std::size_t offset = 0, const Stream* stream = nullptr);
  /// A range of the buffer, which keeps all of it alive.
  Result<Buffer> part(std::size_t offset, std::size_t bytes) const;
  /// What neither the host nor a kernel has written, on the emulator with Checks::all; elsewhere
  /// nobody keeps account of it, and there is nothing.
  std::optional<Unwritten> unwritten() const;

  /// Same for arrays of plain values.
  template <typename T>
  Status write(const std::vector<T>& values) {
    return write(std::as_bytes(std::span(values)));
  }
  template <typename T>
  Result<std::vector<T>> read_all() const {
    std::vector<T> values;
    try {
      values.resize(size_ / sizeof(T));
    } catch (const std::bad_alloc&) {
      return {"out-of-memory"_rule, "the host has no memory for a copy of the buffer"};
    }
    if (auto status = read(std::as_writable_bytes(std::span(values))); !status)
      return status.diags();
    return values;
  }

 private:
  friend class Device;
  friend class Module;
  std::shared_ptr<detail::Engine> engine_;
  std::shared_ptr<void> hold_;
  std::uint64_t address_ = 0;
  std::size_t size_ = 0;
};

/// The arguments of a launch, in the kernel's parameter order. Scalars must have the parameter's
/// size.
class Arguments {
 public:
  /// The buffer's address. launch() of tartan/launch.h compares its size with what the kernel's
  /// layout spans, which it cannot for an address that is added as a number.
  Arguments& add(const Buffer& buffer) { return add_memory(buffer.address(), buffer.size()); }
  template <typename T>
  requires std::is_trivially_copyable_v<T> Arguments& add(const T& value) {
    return add_bytes(std::as_bytes(std::span(&value, 1)));
  }
  /// An argument as its bytes.
  Arguments& add_bytes(std::span<const std::byte> bytes) {
    values_.push_back({{bytes.begin(), bytes.end()}, std::nullopt});
    return *this;
  }
  /// The address of memory that is no Buffer, and its size.
  Arguments& add_memory(std::uint64_t address, std::size_t bytes) {
    add(address);
    values_.back().buffer_size = bytes;
    return *this;
  }
  std::size_t size() const { return values_.size(); }
  const std::vector<std::byte>& operator[](std::size_t i) const { return values_[i].bytes; }
  /// The size of the memory at an argument that is an address, where it is known.
  std::optional<std::size_t> buffer_size(std::size_t i) const { return values_[i].buffer_size; }

 private:
  struct Value {
    std::vector<std::byte> bytes;
    std::optional<std::size_t> buffer_size;
  };
  std::vector<Value> values_;
};

/// Memory of the host that a GPU copies from and to without the driver's help (page-locked), freed
/// when the last copy goes.
class HostBuffer {
 public:
  std::span<std::byte> bytes() const { return bytes_; }
  template <typename T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  friend class Device;
  std::shared_ptr<void> hold_;
  std::span<std::byte> bytes_;
};

class Event;

/// A queue of work on a device. Launches without a Stream use the device's own.
class Stream {
 public:
  /// Waits until all work of the stream is done, and reports errors in it.
  Status synchronize();
  /// What is put into the stream from now on waits for the event, which may be another device's. An
  /// event that nobody has recorded is waited for by nothing.
  Status wait(const Event& event);
  /// The driver's handle (CUstream), for other libraries that use this stream; null on the
  /// emulator.
  void* handle() const;

 private:
  friend class Buffer;
  friend class Device;
  friend class LoadedKernel;
  friend class Event;
  std::shared_ptr<detail::EngineStream> stream_;
};

/// A point in a stream, for measuring time and for other streams to wait for.
class Event {
 public:
  Status record(const Stream* stream = nullptr);
  /// Milliseconds from `start` to this event; waits for both.
  Result<double> milliseconds_since(const Event& start) const;

 private:
  friend class Device;
  friend class Stream;
  std::shared_ptr<detail::EngineEvent> event_;
};

/// A parameter of a loaded kernel, as its module declares it.
struct KernelParam {
  std::string name;
  std::size_t bytes = 0;
  bool operator==(const KernelParam&) const = default;
};

/// A kernel's name and parameters.
struct KernelInterface {
  std::string name;
  std::vector<KernelParam> params;
  bool operator==(const KernelInterface&) const = default;
};

/// What the driver's assembler gave a kernel. Nothing where it is not known: the emulator assigns
/// no registers.
struct KernelResources {
  std::optional<int> registers;              // of a thread
  std::optional<std::size_t> local_bytes;    // of a thread: spilled registers, and arrays
  std::optional<std::size_t> static_shared;  // of a block, in bytes
  int max_threads = 0;                       // of a block: registers and .maxntid decide
};

/// A kernel of a loaded module, ready to be launched.
class LoadedKernel {
 public:
  const std::string& name() const;
  /// The parameters, where the engine knows them (both do for modules given as PTX text).
  const std::vector<KernelParam>& params() const;
  Result<KernelResources> resources() const;
  /// Occupancy: how many blocks of so many threads, with so many bytes of dynamic shared memory, an
  /// SM holds at a time; 0 if not one. A GPU's driver computes it; the emulator refuses, because
  /// registers decide.
  Result<int> blocks_per_sm(std::uint32_t threads, std::uint32_t dynamic_shared = 0) const;
  /// Starts the kernel. A launch that does not fit the kernel (arguments, grid, block, more shared
  /// memory than a block has) is rejected before anything runs. Too little dynamic_shared is a
  /// fault at run time: PTX does not state how much a kernel uses.
  Status launch(const Launch& launch, const Arguments& arguments, const Stream* stream = nullptr);

 private:
  friend class Module;
  friend class detail::DeviceAccess;
  std::shared_ptr<detail::EngineKernel> kernel_;
};

/// PTX that a device has loaded: its kernels and variables.
class Module {
 public:
  /// The kernel of that name; otherwise the message lists the existing ones.
  Result<LoadedKernel> kernel(const std::string& name) const;
  std::vector<std::string> kernels() const;
  /// The .global or .const variable of that name, as a buffer: cudaMemcpyToSymbol is its write().
  /// Otherwise the message lists the existing ones.
  Result<Buffer> variable(const std::string& name) const;
  /// Instructions of the module that the engine cannot run: a warning for each place. Loading
  /// rejects them only in the kernels that are requested. On a GPU: what the driver's assembler
  /// remarks.
  Diags warnings() const;
  /// The time that Device::load() took: on a GPU nearly all of it in the driver's assembler, unless
  /// the driver has the machine code in its own cache.
  double milliseconds() const { return milliseconds_; }

 private:
  friend class Device;
  std::shared_ptr<detail::Engine> engine_;
  std::shared_ptr<detail::EngineModule> module_;
  double milliseconds_ = 0;
};

/// PTX that the driver's assembler has turned into machine code.
struct Assembled {
  std::vector<std::byte> cubin;          // for Device::load(), in this process or another one
  std::vector<KernelInterface> kernels;  // what a cubin does not tell every driver
  Diags warnings;                        // of the assembler, at the C++ line if there is a .loc
  double milliseconds = 0;
};

/// A GPU or the emulator: loads modules, allocates buffers, waits for launches.
class Device {
 public:
  /// The first GPU, else the emulator. If `options.hardware` names an architecture other than the
  /// GPU's: the emulator, which computes as that one; remark() says so.
  static Result<Device> best(const DeviceOptions& options = {});
  /// "auto" (as best()), "emulator", "cuda" (the first GPU) or "cuda:N".
  static Result<Device> open(const std::string& name, const DeviceOptions& options = {});
  /// The GPU of an existing context (a CUcontext of the driver's interface); null: the one that is
  /// current on this thread. The caller keeps the context alive. Device::open() uses the GPU's
  /// primary context, which is also that of the CUDA runtime and of PyTorch: there is nothing to
  /// adopt then.
  static Result<Device> adopt(void* context = nullptr);
  /// The number of GPUs, which are cuda:0 and up; 0 without a driver, and Device::open() says why.
  static int count();

  bool emulated() const;
  /// A remark on the choice of this device; empty if none.
  const std::string& remark() const { return remark_; }
  std::string name() const;  // "NVIDIA H100 80GB HBM3 (sm_90), driver 13.0", "emulator"
  /// The architecture to compile for: a GPU's own, with suffix a if it has one; on the emulator the
  /// hardware option, or sm_90a.
  Arch arch() const;
  /// How many multiprocessors (SMs) it has: what a persistent kernel's grid is chosen by. On the
  /// emulator those of the largest data-centre GPU of its architecture: 132 for sm_90a.
  int multiprocessors() const;

  /// The newest PTX version that the driver takes; compile(kernel, arch()) takes the oldest that
  /// has what the kernel needs. load() compares a module's with it.
  Version newest_ptx() const;
  /// What decides the machine code of a PTX text, for keys of caches: "sm_90, CUDA 13.0, driver
  /// 580.65.06"; empty on the emulator, which has no assembler.
  std::string assembler() const;

  /// Loads PTX text. `name` names it in diagnostics. What the driver's assembler rejects is
  /// reported at the C++ line, where the text has .loc directives.
  Result<Module> load(const std::string& ptx, const std::string& name = "<ptx>");
  /// Loads machine code: a cubin or a fatbin for this GPU. `kernels` (Assembled::kernels) tells the
  /// parameters, which drivers before CUDA 12.4 do not know. The emulator refuses it.
  Result<Module> load(std::span<const std::byte> image, const std::string& name = "<cubin>",
                      const std::vector<KernelInterface>& kernels = {});
  /// Runs the driver's assembler and loads nothing.
  Result<Assembled> assemble(const std::string& ptx, const std::string& name = "<ptx>");

  Result<Buffer> allocate(std::size_t bytes);
  /// Device memory that somebody else has allocated and frees, as a buffer: an address of this GPU,
  /// of cuMemAlloc, cudaMalloc or a tensor of PyTorch. `keep` is released with the last copy.
  Result<Buffer> view(std::uint64_t address, std::size_t bytes, std::shared_ptr<void> keep = {});
  Result<HostBuffer> host_buffer(std::size_t bytes);
  Result<Stream> stream();
  /// Somebody else's stream (a CUstream of this GPU's context, null for the default stream), which
  /// is not destroyed. It may be capturing a graph: launches and copies with a stream are captured.
  Result<Stream> adopt_stream(void* handle);
  Result<Event> event();
  /// Waits for all work, and reports errors in it.
  Status synchronize();

  /// Findings of launches since the last clear_findings() (emulator: traps and faults with their
  /// places).
  std::vector<Finding> findings() const;
  void clear_findings();
  Report report() const;

 private:
  friend class detail::DeviceAccess;
  explicit Device(std::shared_ptr<detail::Engine> engine, std::string remark = {})
      : engine_(std::move(engine)), remark_(std::move(remark)) {}
  template <typename Load>
  Result<Module> loaded(const Load& load);
  Result<Stream> stream(Result<std::shared_ptr<detail::EngineStream>> made);
  std::shared_ptr<detail::Engine> engine_;
  std::string remark_;
};

}  // namespace tartan::TARTAN_ABI
