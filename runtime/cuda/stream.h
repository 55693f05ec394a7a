// SPDX-License-Identifier: Apache-2.0
// runtime/cuda/stream.h - streams and events of the driver.
//
// Streams are blocking: they and the default stream wait for each other.
#pragma once

#include "runtime/cuda/context.h"

namespace tartan::TARTAN_ABI::cuda {

Result<std::shared_ptr<detail::EngineStream>> make_stream(std::shared_ptr<Context> context);
/// A stream of the caller's, which is not destroyed.
std::shared_ptr<detail::EngineStream> adopt_stream(std::shared_ptr<Context> context,
                                                   StreamHandle handle);
Result<std::shared_ptr<detail::EngineEvent>> make_event(std::shared_ptr<Context> context);

/// The driver's handle of `stream`; null gives the default stream's. An error if another engine
/// made the stream.
Result<StreamHandle> stream_handle(detail::EngineStream* stream);

}  // namespace tartan::TARTAN_ABI::cuda
