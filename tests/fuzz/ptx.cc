// SPDX-License-Identifier: Apache-2.0
// Any bytes as PTX: the parser and the verifier must end with a module or diagnostics, and printed
// text must parse to the same text again.
#include <cstdlib>

#include "tartan/ptx/parser.h"
#include "tartan/verify/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tartan;
  const auto source = std::make_shared<const Source>(
      "fuzz.ptx", std::string(reinterpret_cast<const char*>(data), size));
  Diags diags;
  const ptx::Module module = ptx::parse(source, diags);
  (void)verify::verify(module).text();
  if (!diags.ok()) return 0;
  const std::string printed = ptx::print(module);
  Diags again;
  const ptx::Module second =
      ptx::parse(std::make_shared<const Source>("printed.ptx", printed), again);
  if (!again.ok() || ptx::print(second) != printed) std::abort();
  return 0;
}
