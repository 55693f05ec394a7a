// SPDX-License-Identifier: Apache-2.0
// A shared object on one part of Tartan. used_by_PART() is the file whose code it runs; with RUNS
// only after a kernel gave the right numbers on the emulator.
#include <dlfcn.h>
#include <tartan/runtime/device.h>
#include <tartan/version.h>

#include <string>

#define JOINED(a, b) a##b
#define NAME_OF(part) JOINED(used_by_, part)

#ifdef RUNS
static std::string run() {
  const std::string ptx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry squares(.param .u64 out) {
  .reg .b32 %r<3>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [out];
  mov.u32 %r1, %tid.x;
  mul.lo.s32 %r2, %r1, %r1;
  mul.wide.u32 %d2, %r1, 4;
  add.s64 %d3, %d1, %d2;
  st.global.u32 [%d3], %r2;
  ret;
})";
  auto device = tartan::Device::open("emulator");
  if (!device) return device.diags().text();
  auto module = device->load(ptx);
  if (!module) return module.diags().text();
  auto kernel = module->kernel("squares");
  auto out = device->allocate(32 * 4);
  if (!kernel || !out) return "no kernel or no buffer";
  if (auto launched = kernel->launch({.grid = {1}, .block = {32}}, tartan::Arguments().add(*out));
      !launched)
    return launched.diags().text();
  const auto squares = out->read_all<std::uint32_t>();
  for (std::uint32_t i = 0; i < 32; ++i)
    if (!squares || (*squares)[i] != i * i) return "wrong squares";
  return {};
}
#else
static std::string run() { return {}; }
#endif

std::string NAME_OF(PART)() {
  if (const std::string problem = run(); !problem.empty()) return problem;
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&tartan::version), &info);
  return info.dli_fname;
}
