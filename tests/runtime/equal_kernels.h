// SPDX-License-Identifier: Apache-2.0
// tests/runtime/equal_kernels.h - small kernels for `tartan equal`: a warp whose threads each read
// elements of A and B and write one of C.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/equal.h"

namespace tartan::testing_equal {

/// A kernel of that body: %f1 is the thread's element of A, %f2 of B; %f0 is stored into C. %r1 is
/// the thread, %rd1, %rd2 and %rd3 are its places in A, B and C, `s` is shared memory.
inline Manifest kernel_of(const std::string& body) {
  const std::string head = R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 pa, .param .u64 pb, .param .u64 pc)
{
.reg .f32 %f<32>;
.reg .f64 %d<8>;
.reg .b16 %h<16>;
.reg .b32 %r<32>;
.reg .b64 %rd<16>;
.reg .pred %p<4>;
.shared .align 16 .b8 s[1024];
ld.param.u64 %rd1, [pa];
ld.param.u64 %rd2, [pb];
ld.param.u64 %rd3, [pc];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd4, %r1, 4;
add.s64 %rd1, %rd1, %rd4;
add.s64 %rd2, %rd2, %rd4;
add.s64 %rd3, %rd3, %rd4;
ld.global.f32 %f1, [%rd1];
ld.global.f32 %f2, [%rd2];
)";
  Manifest out;
  out.name = "test.json";
  out.ptx = Source("test.ptx", head + body + "\nst.global.f32 [%rd3], %f0;\nret;\n}\n");
  out.kernel = "test";
  out.launch.block = {32};
  for (const char* name : {"A", "B", "C"}) {
    ManifestParam param;
    param.buffer.emplace();
    param.buffer->name = name;
    param.buffer->size = 128;
    out.params.push_back(param);
  }
  return out;
}

struct NamedSize {
  const char* name;
  std::size_t bytes;
};

/// A kernel of that body for one CTA: %rd1, %rd2, ... are the addresses of the buffers, %r1 is the
/// thread, %rd9 four times its number.
inline Manifest kernel_on(const std::vector<NamedSize>& buffers, const std::string& body,
                          std::uint32_t threads = 64) {
  std::string params, loads;
  for (std::size_t i = 1; i <= buffers.size(); ++i) {
    const std::string number = std::to_string(i);
    params += (i > 1 ? ", .param .u64 p" : ".param .u64 p") + number;
    loads += "ld.param.u64 %rd" + number + ", [p" + number + "];\n";
  }
  Manifest out;
  out.name = "test.json";
  out.ptx = Source(
      "test.ptx", ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry test(" + params +
                      ")\n{\n.reg .f32 %f<32>;\n.reg .b16 %h<16>;\n.reg .b32 %r<32>;\n"
                      ".reg .b64 %rd<32>;\n.reg .pred %p<8>;\n" +
                      loads + "mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd9, %r1, 4;\n" + body +
                      "\nret;\n}\n");
  out.kernel = "test";
  out.launch.block = {threads};
  for (const NamedSize& each : buffers) {
    ManifestParam param;
    param.buffer.emplace();
    param.buffer->name = each.name;
    param.buffer->size = each.bytes;
    out.params.push_back(param);
  }
  return out;
}

inline Equality compare(const std::string& a, const std::string& b) {
  return equal(kernel_of(a), kernel_of(b), {.explain = 0});
}

}  // namespace tartan::testing_equal
