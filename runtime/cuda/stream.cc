// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/stream.h"

namespace tartan::inline TARTAN_ABI::cuda {
namespace {

constexpr unsigned default_flags = 0;

class Event final : public detail::EngineEvent {
 public:
  Event(std::shared_ptr<Context> context, EventHandle handle)
      : context_(std::move(context)), handle_(handle) {}
  ~Event() override { context_->invoke(context_->driver().event_destroy, handle_); }

  Status record(detail::EngineStream* stream) override {
    const auto queue = stream_handle(stream);
    if (!queue) return queue.diags();
    return context_->call(context_->driver().event_record, handle_, *queue);
  }

  Result<double> milliseconds_since(const detail::EngineEvent& start) const override {
    const auto* from = dynamic_cast<const Event*>(&start);
    if (!from) return {"foreign-device"_rule, "the start event does not belong to a GPU"};
    const Driver& driver = context_->driver();
    if (auto status = context_->call(driver.event_synchronize, from->handle_); !status)
      return status.diags();
    if (auto status = context_->call(driver.event_synchronize, handle_); !status)
      return status.diags();
    float milliseconds = 0;
    if (auto status = context_->call(driver.event_elapsed, &milliseconds, from->handle_, handle_);
        !status)
      return status.diags();
    return double{milliseconds};
  }

  EventHandle handle() const { return handle_; }

 private:
  std::shared_ptr<Context> context_;
  EventHandle handle_;
};

class Stream final : public detail::EngineStream {
 public:
  Stream(std::shared_ptr<Context> context, StreamHandle handle, bool owned)
      : context_(std::move(context)), handle_(handle), owned_(owned) {}
  ~Stream() override {
    if (owned_) context_->invoke(context_->driver().stream_destroy, handle_);
  }
  Status synchronize() override {
    return context_->call(context_->driver().stream_synchronize, handle_);
  }
  Status wait(detail::EngineEvent& event) override {
    const auto* of = dynamic_cast<const Event*>(&event);
    if (!of) return {"foreign-device"_rule, "the event does not belong to a GPU"};
    return context_->call(context_->driver().stream_wait, handle_, of->handle(), default_flags);
  }
  void* handle() const override { return handle_; }

 private:
  std::shared_ptr<Context> context_;
  StreamHandle handle_;
  bool owned_;
};

}  // namespace

Result<std::shared_ptr<detail::EngineStream>> make_stream(std::shared_ptr<Context> context) {
  StreamHandle handle = nullptr;
  if (auto status = context->call(context->driver().stream_create, &handle, default_flags); !status)
    return status.diags();
  return std::shared_ptr<detail::EngineStream>(
      std::make_shared<Stream>(std::move(context), handle, true));
}

std::shared_ptr<detail::EngineStream> adopt_stream(std::shared_ptr<Context> context,
                                                   StreamHandle handle) {
  return std::make_shared<Stream>(std::move(context), handle, false);
}

Result<std::shared_ptr<detail::EngineEvent>> make_event(std::shared_ptr<Context> context) {
  EventHandle handle = nullptr;
  if (auto status = context->call(context->driver().event_create, &handle, default_flags); !status)
    return status.diags();
  return std::shared_ptr<detail::EngineEvent>(std::make_shared<Event>(std::move(context), handle));
}

Result<StreamHandle> stream_handle(detail::EngineStream* stream) {
  if (!stream) return StreamHandle{nullptr};
  const auto* own = dynamic_cast<const Stream*>(stream);
  if (!own) return {"foreign-device"_rule, "the stream does not belong to a GPU"};
  return static_cast<StreamHandle>(own->handle());
}

}  // namespace tartan::inline TARTAN_ABI::cuda
