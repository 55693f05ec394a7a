// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the DSL: what compile() must say about a wrong description.
//
//   test::expect_told(compile(kernel, target), {"expected an integer", "found barrier 2"});
//
// The description stands in the file that calls: every diagnostic must name a line of it.
#pragma once

#include <gtest/gtest.h>
#include <tartan/tartan.h>

#include <functional>
#include <source_location>
#include <string_view>
#include <vector>

namespace tartan::test {

/// Expects that `compiled` was refused, that each of the texts is in a message, that every message
/// names a line of the caller's file, and that none is a mistake of code generation.
inline void expect_told(const Result<Compiled>& compiled,
                        const std::vector<std::string_view>& texts,
                        const std::source_location& at = std::source_location::current()) {
  SCOPED_TRACE(testing::Message() << "called in line " << at.line());
  ASSERT_FALSE(compiled) << "nothing was refused";
  for (const std::string_view text : texts) {
    bool found = false;
    for (const Diag& diag : compiled.diags()) found |= diag.message.find(text) != std::string::npos;
    EXPECT_TRUE(found) << text << " is not in\n" << compiled.diags().text();
  }
  for (const Diag& diag : compiled.diags()) {
    EXPECT_EQ(diag.place.file, at.file_name()) << diag.message;
    EXPECT_GT(diag.place.line, 0) << diag.message;
    EXPECT_NE(diag.id, "codegen") << diag.message;
  }
}

/// The same of a kernel that has `body` and runs on sm_80.
inline void expect_told(const std::function<void(Builder&)>& body,
                        const std::vector<std::string_view>& texts,
                        const std::source_location& at = std::source_location::current()) {
  expect_told(compile(kernel("wrong", {.block = 64}, body), *Target::parse("sm_80")), texts, at);
}

/// The same with the thread's index, a u32, and an element of f32.
inline void expect_told(const std::function<void(Builder&, Scalar, Scalar)>& body,
                        const std::vector<std::string_view>& texts,
                        const std::source_location& at = std::source_location::current()) {
  expect_told(
      [&](Builder& k) {
        auto g = k.global("g", f32, row_major(1, 64));
        body(k, k.thread(), k.read(g, 0, k.thread()));
      },
      texts, at);
}

}  // namespace tartan::test
