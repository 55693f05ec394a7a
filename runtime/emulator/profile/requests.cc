// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/profile/requests.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::emulator {
namespace {

std::uint32_t conflicts(const SharedRequest& request) {
  const Wavefronts now = wavefronts(request);
  return now.all - now.minimum;
}

}  // namespace

void RequestRecorder::add(int line, const SharedRequest& request) {
  const auto at = std::ranges::lower_bound(requests_, line, {}, &RecordedRequest::line);
  if (at == requests_.end() || at->line != line) requests_.insert(at, {line, request});
  else if (conflicts(request) > conflicts(at->request)) at->request = request;
}

}  // namespace tartan::TARTAN_ABI::emulator
