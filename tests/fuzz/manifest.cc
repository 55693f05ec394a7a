// SPDX-License-Identifier: Apache-2.0
// Any text as a manifest: it is read, or rejected with a reason.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const tartan::Source source("fuzz.json", std::string(reinterpret_cast<const char*>(data), size));
  const auto manifest = tartan::parse_manifest(source);
  if (!manifest && manifest.diags().text().empty()) std::abort();
  return 0;
}
