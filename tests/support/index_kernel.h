// SPDX-License-Identifier: Apache-2.0
// tests/support/index_kernel.h - a kernel in which every thread writes its number, multiplied.
#pragma once

#include <string>

namespace tartan::test {

inline const std::string index_kernel =
    R"(.visible .entry index(.param .u64 out, .param .u32 factor)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [factor];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mul.lo.u32 %r6, %r5, %r1;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r6;
  ret;
}
)";

}  // namespace tartan::test
