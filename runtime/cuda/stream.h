// SPDX-License-Identifier: Apache-2.0
// runtime/cuda/stream.h - streams and events of the driver.
//
// Streams are of the blocking kind: work of the default stream waits for them, and they for it.
#pragma once

#include "runtime/cuda/context.h"

namespace tartan::inline TARTAN_ABI::cuda {

Result<std::shared_ptr<detail::EngineStream>> make_stream(std::shared_ptr<Context> context);
Result<std::shared_ptr<detail::EngineEvent>> make_event(std::shared_ptr<Context> context);

/// The driver's handle of `stream`: that of the default stream for null. An error if another engine
/// made it.
Result<StreamHandle> stream_handle(detail::EngineStream* stream);

}  // namespace tartan::inline TARTAN_ABI::cuda
