// SPDX-License-Identifier: Apache-2.0
// tests/support/sanitizer.h - whether the library is built with sanitizers. Tests compile alike in
// every build, so they ask the program that they are linked into.
#pragma once

extern "C" {
__attribute__((weak)) void __asan_init();
__attribute__((weak)) void __lsan_disable();
__attribute__((weak)) void __lsan_enable();
}

namespace tartan::test {

inline bool sanitized() { return __asan_init != nullptr; }

/// Allocations during its lifetime may leak.
struct LeaksExpected {
  LeaksExpected() {
    if (__lsan_disable) __lsan_disable();
  }
  ~LeaksExpected() {
    if (__lsan_enable) __lsan_enable();
  }
};

}  // namespace tartan::test
