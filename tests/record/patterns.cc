// SPDX-License-Identifier: Apache-2.0
// Launches kernels on a GPU, one warp each, for the profiler to count:
// tests/data/profile/record.py runs it.
//
//   record_patterns PTX KERNEL...
#include <fmt/format.h>

#include "tartan/runtime/device.h"
#include "tartan/support/source.h"

int main(int argc, char** argv) {
  using namespace tartan;
  const auto fail = [](const Diags& diags) {
    fmt::print(stderr, "{}", diags.text());
    return 1;
  };
  if (argc < 3) {
    fmt::print(stderr, "usage: {} PTX KERNEL...\n", argv[0]);
    return 2;
  }
  const auto text = read_source(argv[1]);
  if (!text) return fail(text.diags());
  auto device = Device::open("cuda");
  if (!device) return fail(device.diags());
  const auto module = device->load(std::string(text->text()), argv[1]);
  if (!module) return fail(module.diags());
  const auto buffer = device->allocate(16384);
  if (!buffer) return fail(buffer.diags());
  for (int i = 2; i < argc; ++i) {
    auto kernel = module->kernel(argv[i]);
    if (!kernel) return fail(kernel.diags());
    if (auto status = kernel->launch({.grid = {1}, .block = {32}}, Arguments().add(*buffer));
        !status)
      return fail(status.diags());
  }
  if (auto status = device->synchronize(); !status) return fail(status.diags());
  return 0;
}
