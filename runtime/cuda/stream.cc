// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/stream.h"

namespace tartan::TARTAN_ABI::cuda {
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
  Result<std::function<Status()>> captured(const std::function<Status()>& work) override;

 private:
  bool has_graphs() const;
  std::shared_ptr<Context> context_;
  StreamHandle handle_;
  bool owned_;
};

bool Stream::has_graphs() const {
  const Driver& driver = context_->driver();
  return handle_ && driver.begin_capture.address && driver.end_capture.address &&
         driver.graph_destroy.address && driver.graph_instantiate.address &&
         driver.runnable_destroy.address && driver.graph_launch.address;
}

Result<std::function<Status()>> Stream::captured(const std::function<Status()>& work) {
  if (!has_graphs()) return std::function<Status()>();
  const Driver& driver = context_->driver();
  if (const Status begun = context_->call(driver.begin_capture, handle_, CaptureMode::ThreadLocal);
      !begun)
    return begun.diags();
  const Status worked = work();
  GraphHandle graph = nullptr;
  const Status ended = context_->call(driver.end_capture, handle_, &graph);
  if (!worked || !ended) {
    if (graph) context_->invoke(driver.graph_destroy, graph);
    return (worked ? ended : worked).diags();
  }
  RunnableHandle runnable = nullptr;
  const Status made = context_->call(driver.graph_instantiate, &runnable, graph, 0ull);
  context_->invoke(driver.graph_destroy, graph);
  if (!made) return made.diags();
  const std::shared_ptr<void> owner(runnable, [context = context_](void* each) {
    context->invoke(context->driver().runnable_destroy, static_cast<RunnableHandle>(each));
  });
  return std::function<Status()>([context = context_, owner, stream = handle_] {
    return context->call(context->driver().graph_launch, static_cast<RunnableHandle>(owner.get()),
                         stream);
  });
}

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

}  // namespace tartan::TARTAN_ABI::cuda
