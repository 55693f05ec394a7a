// SPDX-License-Identifier: Apache-2.0
// A plugin that links the Tartan that it was compiled against; PLUGIN is its name. It says which
// version answers, through C++ and through C, and runs a kernel through both.
#include <array>
#include <string>
#include <vector>

#include "tartan/c.h"
#include "tartan/runtime/device.h"
#include "tartan/support/source.h"
#include "tartan/verify/verify.h"
#include "tartan/version.h"

#define JOINED(plugin, name) plugin##_##name
#define NAMED(plugin, name) JOINED(plugin, name)
#define EXPORTED(name) extern "C" __attribute__((visibility("default"))) auto NAMED(PLUGIN, name)

namespace {

using namespace tartan;

const std::string scale = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 at, .param .f32 by) {
  .reg .b64 %a<3>; .reg .b32 %i; .reg .f32 %x<3>;
  ld.param.u64 %a0, [at]; ld.param.f32 %x0, [by];
  mov.u32 %i, %tid.x; mul.wide.u32 %a1, %i, 4; add.s64 %a2, %a0, %a1;
  ld.global.f32 %x1, [%a2]; mul.f32 %x2, %x1, %x0; st.global.f32 [%a2], %x2;
  ret;
}
)";
constexpr float by = 3;

template <typename Values>
bool scaled(const Values& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != by * static_cast<float>(i)) return false;
  return true;
}

std::vector<float> numbers() {
  std::vector<float> out(32);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i);
  return out;
}

bool runs() {
  auto device = Device::open("emulator");
  if (!device) return false;
  const auto module = device->load(scale);
  auto kernel = module ? module->kernel("scale") : module.diags();
  auto buffer = device->allocate(32 * sizeof(float));
  if (!kernel || !buffer || !buffer->write(numbers())) return false;
  const std::vector<Buffer> copies(3, *buffer);
  if (!kernel->launch({.block = {32}}, Arguments().add(copies.back()).add(by))) return false;
  const auto values = buffer->read_all<float>();
  return values && scaled(*values);
}

bool checks() {
  const Diags found =
      verify::check(std::make_shared<const Source>("wrong", scale + "nonsense\n"), {});
  return !found.ok() && verify::check(std::make_shared<const Source>("right", scale), {}).ok();
}

bool runs_in_c() {
  tartan_device* device = nullptr;
  tartan_function* function = nullptr;
  tartan_buffer* buffer = nullptr;
  std::array<float, 32> values;
  const std::vector<float> given = numbers();
  if (tartan_open("emulator", nullptr, &device) ||
      tartan_load_ptx(device, scale.c_str(), "scale", &function) ||
      tartan_allocate(device, sizeof values, &buffer) ||
      tartan_write(buffer, 0, given.data(), sizeof values))
    return false;
  const uint64_t at = tartan_buffer_address(buffer);
  const tartan_argument arguments[] = {{&at, sizeof at, sizeof values}, {&by, sizeof by, 0}};
  tartan_launch_options options = {};
  options.size = sizeof options;
  options.block[0] = 32;
  if (tartan_launch(function, &options, arguments, 2) ||
      tartan_read(buffer, 0, values.data(), sizeof values))
    return false;
  tartan_buffer_free(buffer), tartan_function_free(function), tartan_device_free(device);
  return scaled(values);
}

}  // namespace

EXPORTED(compiled_against)()->const char* { return TARTAN_VERSION; }
EXPORTED(version)()->const char* { return version().data(); }
EXPORTED(version_in_c)()->const char* { return tartan_version(); }
EXPORTED(works)()->bool { return runs() && checks() && runs_in_c(); }
