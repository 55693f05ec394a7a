// SPDX-License-Identifier: Apache-2.0
#include "tartan/runtime/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/engine.h"

namespace tartan::inline TARTAN_ABI {
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

Status check_range(std::size_t offset, std::size_t bytes, std::size_t size) {
  if (offset <= size && bytes <= size - offset) return Done{};
  return {"buffer-range"_rule,
          fmt::format("copy out of bounds: {} bytes at offset {} of a buffer of {} bytes", bytes,
                      offset, size)};
}

}  // namespace

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

std::optional<Unwritten> Buffer::unwritten() const {
  return engine_ ? engine_->unwritten(address_, size_) : std::nullopt;
}

Status Stream::synchronize() {
  assert(stream_ && "empty Stream: use Device::stream()");
  return stream_->synchronize();
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

Status LoadedKernel::launch(const Launch& launch, const Arguments& arguments,
                            const Stream* stream) {
  assert(kernel_ && "empty LoadedKernel: use Module::kernel()");
  return within_memory("launch a kernel", [&] {
    return kernel_->launch(launch, arguments, stream ? stream->stream_.get() : nullptr);
  });
}

Result<LoadedKernel> Module::kernel(const std::string& name) const {
  assert(module_ && "empty Module: use Device::load()");
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

Result<Module> Device::load(const std::string& ptx, const std::string& name) {
  auto loaded = within_memory("load a module", [&] { return engine_->load(ptx, name); });
  if (!loaded) return loaded.diags();
  Module module;
  module.engine_ = engine_;
  module.module_ = keeping(engine_, std::move(*loaded));
  return module;
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

Result<Stream> Device::stream() {
  auto made = engine_->stream();
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

}  // namespace tartan::inline TARTAN_ABI
