// SPDX-License-Identifier: Apache-2.0
#include "tartan/runtime/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "compiler/support/step_timer.h"
#include "runtime/engine.h"

namespace tartan::TARTAN_ABI {
namespace {

// `part` as a pointer that also keeps `whole` alive, and releases the part first.
template <typename Part>
std::shared_ptr<Part> keeping(std::shared_ptr<void> whole, std::shared_ptr<Part> part) {
  struct Kept {
    std::shared_ptr<void> whole;
    std::shared_ptr<Part> part;
  };
  auto kept = std::make_shared<Kept>(Kept{std::move(whole), std::move(part)});
  Part* pointer = kept->part.get();
  return std::shared_ptr<Part>(std::move(kept), pointer);
}

// The result of `call`, or a diagnostic if the host runs out of memory.
template <typename Call>
auto within_memory(std::string_view what, const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return {"out-of-memory"_rule, fmt::format("out of host memory: cannot {}", what)};
  }
}

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

Status check_range(std::size_t offset, std::size_t bytes, std::size_t size) {
  if (offset <= size && bytes <= size - offset) return Done{};
  return {"buffer-range"_rule,
          fmt::format("copy out of bounds: {} bytes at offset {} of a buffer of {} bytes", bytes,
                      offset, size)};
}

}  // namespace

namespace detail {

Status Engine::copy(std::uint64_t address, Engine& source, std::uint64_t from, std::size_t bytes,
                    EngineStream* stream) {
  std::vector<std::byte> host(bytes);
  if (auto status = source.read(from, host); !status) return status;
  if (!stream) return write(address, host);
  if (auto status = write(address, host, *stream); !status) return status;
  return stream->synchronize();  // `host` goes
}

}  // namespace detail

Status Buffer::write(std::span<const std::byte> bytes, std::size_t offset) {
  if (auto status = check_range(offset, bytes.size(), size_); !status || bytes.empty())
    return status;
  return engine_->write(address_ + offset, bytes);
}

Status Buffer::read(std::span<std::byte> bytes, std::size_t offset) const {
  if (auto status = check_range(offset, bytes.size(), size_); !status || bytes.empty())
    return status;
  return engine_->read(address_ + offset, bytes);
}

Status Buffer::fill(std::uint8_t byte) {
  return size_ == 0 ? Status(Done{}) : engine_->fill(address_, size_, byte);
}

Status Buffer::write(std::span<const std::byte> bytes, const Stream& stream, std::size_t offset) {
  assert(stream.stream_ && "empty Stream: use Device::stream()");
  if (auto status = check_range(offset, bytes.size(), size_); !status || bytes.empty())
    return status;
  return engine_->write(address_ + offset, bytes, *stream.stream_);
}

Status Buffer::read(std::span<std::byte> bytes, const Stream& stream, std::size_t offset) const {
  assert(stream.stream_ && "empty Stream: use Device::stream()");
  if (auto status = check_range(offset, bytes.size(), size_); !status || bytes.empty())
    return status;
  return engine_->read(address_ + offset, bytes, *stream.stream_);
}

Status Buffer::fill(std::uint8_t byte, const Stream& stream) {
  assert(stream.stream_ && "empty Stream: use Device::stream()");
  return size_ == 0 ? Status(Done{}) : engine_->fill(address_, size_, byte, *stream.stream_);
}

Status Buffer::copy_from(const Buffer& source, std::size_t offset, const Stream* stream) {
  if (auto status = check_range(offset, source.size_, size_); !status || source.size_ == 0)
    return status;
  return within_memory("copy between devices", [&] {
    return engine_->copy(address_ + offset, *source.engine_, source.address_, source.size_,
                         stream ? stream->stream_.get() : nullptr);
  });
}

Result<Buffer> Buffer::part(std::size_t offset, std::size_t bytes) const {
  if (auto status = check_range(offset, bytes, size_); !status) return status.diags();
  Buffer part = *this;
  part.address_ += offset;
  part.size_ = bytes;
  return part;
}

std::optional<Unwritten> Buffer::unwritten() const {
  return engine_ ? engine_->unwritten(address_, size_) : std::nullopt;
}

Status Stream::synchronize() {
  assert(stream_ && "empty Stream: use Device::stream()");
  return stream_->synchronize();
}

Status Stream::wait(const Event& event) {
  assert(stream_ && event.event_ && "empty Stream or Event");
  return stream_->wait(*event.event_);
}

void* Stream::handle() const { return stream_ ? stream_->handle() : nullptr; }

Status Event::record(const Stream* stream) {
  assert(event_ && "empty Event: use Device::event()");
  return event_->record(stream ? stream->stream_.get() : nullptr);
}

Result<double> Event::milliseconds_since(const Event& start) const {
  assert(event_ && start.event_ && "empty Event: use Device::event()");
  return event_->milliseconds_since(*start.event_);
}

const std::string& LoadedKernel::name() const { return kernel_->name(); }
const std::vector<KernelParam>& LoadedKernel::params() const { return kernel_->params(); }

Result<KernelResources> LoadedKernel::resources() const { return kernel_->resources(); }
Result<int> LoadedKernel::blocks_per_sm(std::uint32_t threads, std::uint32_t dynamic_shared) const {
  return kernel_->blocks_per_sm(threads, dynamic_shared);
}

Status LoadedKernel::launch(const Launch& launch, const Arguments& arguments,
                            const Stream* stream) {
  assert(kernel_ && "empty LoadedKernel: use Module::kernel()");
  return within_memory("launch a kernel", [&] {
    return kernel_->launch(launch, arguments, stream ? stream->stream_.get() : nullptr);
  });
}

Result<LoadedKernel> Module::kernel(const std::string& name) const {
  assert(module_ && "empty Module: use Device::load()");
  const detail::StepTimer timer(&StepTimes::load);
  auto found = within_memory("prepare a kernel", [&] { return module_->kernel(name); });
  if (!found) return found.diags();
  LoadedKernel kernel;
  kernel.kernel_ = keeping(module_, std::move(*found));
  return kernel;
}

std::vector<std::string> Module::kernels() const { return module_->kernels(); }

Result<Buffer> Module::variable(const std::string& name) const {
  assert(module_ && "empty Module: use Device::load()");
  const auto found = module_->variable(name);
  if (!found) return found.diags();
  Buffer buffer;
  buffer.engine_ = engine_;
  buffer.hold_ = module_;
  buffer.address_ = found->address;
  buffer.size_ = found->bytes;
  return buffer;
}

Diags Module::warnings() const { return module_->warnings(); }

bool Device::emulated() const { return engine_->emulated(); }
std::string Device::name() const { return engine_->name(); }
Arch Device::arch() const { return engine_->arch(); }
int Device::multiprocessors() const { return engine_->multiprocessors(); }
Version Device::newest_ptx() const { return engine_->newest_ptx(); }
std::string Device::assembler() const { return engine_->assembler(); }

Result<Module> Device::load(const std::string& ptx, const std::string& name) {
  const detail::StepTimer timer(emulated() ? &StepTimes::load : &StepTimes::assemble);
  // A text that is given with its length may have its terminator, too.
  if (ptx.ends_with('\0'))
    return loaded([&] { return engine_->load(ptx.substr(0, ptx.size() - 1), name); });
  return loaded([&] { return engine_->load(ptx, name); });
}

Result<Module> Device::load(std::span<const std::byte> image, const std::string& name,
                            const std::vector<KernelInterface>& kernels) {
  const detail::StepTimer timer(&StepTimes::load);
  return loaded([&] { return engine_->load(image, name, kernels); });
}

template <typename Load>
Result<Module> Device::loaded(const Load& load) {
  const auto begin = Clock::now();
  auto loaded = within_memory("load a module", load);
  if (!loaded) return loaded.diags();
  Module module;
  module.engine_ = engine_;
  module.module_ = keeping(engine_, std::move(*loaded));
  module.milliseconds_ = milliseconds_since(begin);
  return module;
}

Result<Assembled> Device::assemble(const std::string& ptx, const std::string& name) {
  const detail::StepTimer timer(&StepTimes::assemble);
  const auto begin = Clock::now();
  auto assembled = within_memory("assemble a module", [&] { return engine_->assemble(ptx, name); });
  if (assembled) assembled->milliseconds = milliseconds_since(begin);
  return assembled;
}

Result<Buffer> Device::allocate(std::size_t bytes) {
  const auto address = engine_->allocate(std::max<std::size_t>(bytes, 1));
  if (!address) return address.diags();
  Buffer buffer;
  buffer.engine_ = engine_;
  buffer.address_ = *address;
  buffer.size_ = bytes;
  buffer.hold_ = std::shared_ptr<void>(
      nullptr, [engine = engine_, at = *address](void*) { engine->free(at); });
  return buffer;
}

Result<Buffer> Device::view(std::uint64_t address, std::size_t bytes, std::shared_ptr<void> keep) {
  if (bytes != 0)
    if (auto status = engine_->check_memory(address, bytes); !status) return status.diags();
  Buffer buffer;
  buffer.engine_ = engine_;
  buffer.hold_ = std::move(keep);
  buffer.address_ = address;
  buffer.size_ = bytes;
  return buffer;
}

Result<HostBuffer> Device::host_buffer(std::size_t bytes) {
  const auto memory = engine_->allocate_host(std::max<std::size_t>(bytes, 1));
  if (!memory) return memory.diags();
  HostBuffer buffer;
  buffer.bytes_ = {*memory, bytes};
  buffer.hold_ = std::shared_ptr<void>(
      nullptr, [engine = engine_, at = *memory](void*) { engine->free_host(at); });
  return buffer;
}

Result<Stream> Device::stream() { return stream(engine_->stream()); }
Result<Stream> Device::adopt_stream(void* handle) { return stream(engine_->adopt_stream(handle)); }

Result<Stream> Device::stream(Result<std::shared_ptr<detail::EngineStream>> made) {
  if (!made) return made.diags();
  Stream stream;
  stream.stream_ = keeping(engine_, std::move(*made));
  return stream;
}

Result<Event> Device::event() {
  auto made = engine_->event();
  if (!made) return made.diags();
  Event event;
  event.event_ = keeping(engine_, std::move(*made));
  return event;
}

Status Device::synchronize() { return engine_->synchronize(); }

std::vector<Finding> Device::findings() const { return engine_->findings(); }
void Device::clear_findings() { engine_->clear_findings(); }
Report Device::report() const { return engine_->report(); }

}  // namespace tartan::TARTAN_ABI
