// SPDX-License-Identifier: Apache-2.0
// tests/runtime/equal_kernels.h - small kernels for `tartan equal`: a warp whose threads each read
// elements of A and B and write one of C.
#pragma once

#include <string>

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

inline Equality compare(const std::string& a, const std::string& b) {
  return equal(kernel_of(a), kernel_of(b), {.explain = 0});
}

}  // namespace tartan::testing_equal
