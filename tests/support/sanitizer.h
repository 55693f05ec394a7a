// SPDX-License-Identifier: Apache-2.0
// tests/support/sanitizer.h - whether sanitizers watch the library. Tests are compiled alike in
// every build, so they ask the program that they are linked into.
#pragma once

extern "C" {
__attribute__((weak)) void __asan_init();
__attribute__((weak)) void __lsan_disable();
__attribute__((weak)) void __lsan_enable();
}

namespace tartan::test {

inline bool sanitized() { return __asan_init != nullptr; }

/// While it lives, what is allocated may stay so.
struct LeaksExpected {
  LeaksExpected() {
    if (__lsan_disable) __lsan_disable();
  }
  ~LeaksExpected() {
    if (__lsan_enable) __lsan_enable();
  }
};

}  // namespace tartan::test
