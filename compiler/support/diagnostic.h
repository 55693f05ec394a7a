// SPDX-License-Identifier: Apache-2.0
// compiler/support/diagnostic.h - how Tartan says that something is wrong.
//
// Three kinds of failure are kept apart. Wrong input (a kernel description, PTX text, a manifest)
// gives diagnostics: all of them, each with a place, what was expected and what was found. A wrong
// environment (no driver, no file) gives a Result whose diagnostic says what to install or set. Our
// own bugs are asserts.
//
// Every diagnostic names a Rule: a row of the table in compiler/support/rules.h, whose id is stable
// across releases and documented in docs/diagnostics.md.
#pragma once

#include <cassert>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/support/rules.h"

namespace tartan {

/// Where in a text or a C++ file something stands. Lines and columns count from 1; 0 means unknown.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;

  Place() = default;
  Place(std::string file, int line, int column)
      : file(std::move(file)), line(line), column(column) {}
  Place(const std::source_location& at)  // implicit: DSL calls pass their caller's location
      : file(at.file_name()),
        line(static_cast<int>(at.line())),
        column(static_cast<int>(at.column())) {}

  bool known() const { return !file.empty(); }
  bool operator==(const Place&) const = default;
};

/// One thing that is wrong, or worth knowing.
struct Diag {
  Level level = Level::Error;
  std::string_view id;  // a rule's id: static storage
  Place place;
  std::string
      message;  // lower case, no full stop: "operand a of mma.m16n8k16 takes 4 registers, got 2"
  std::string source;  // the line of the text it is about, when there is one (for the caret)
  int width = 0;       // how many columns from place.column on it is about
  int caret = 0;       // its column in `source`, where that is a part of a long line; else 0
};

/// `file:line:column: error: message [id]`, the one spelling of a diagnostic as text.
std::string to_string(const Diag& diag);

/// The same over several lines: the source line and a caret under it. With `colour`, for a
/// terminal.
std::string to_text(const Diag& diag, bool colour);

/// A list of diagnostics, in the order in which they were found.
class Diags {
 public:
  void add(Diag diag) { list_.push_back(std::move(diag)); }
  /// Adds a diagnostic of `rule`, at the rule's own level.
  Diag& report(const Rule& rule, Place place, std::string message);
  /// A list of one.
  static Diags one(const Rule& rule, Place place, std::string message);
  void append(Diags other);

  bool ok() const;  // no error among them (warnings and notes do not count)
  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }
  std::size_t count(Level level) const;
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  const Diag& operator[](std::size_t i) const { return list_[i]; }
  /// Orders by file, line and column; diagnostics of one place keep their order.
  void sort();

  std::string text(bool colour = false) const;  // to_text of each, a line break after each
  std::string json() const;  // {"diagnostics":[{"file","line","column","level","id","message"}]}

 private:
  std::vector<Diag> list_;
};

/// A value, or the diagnostics that say why there is none.
///
///   Result<Device> device = Device::open("cuda");
///   if (!device) { std::cerr << device.diags().text(); return 2; }
///   std::cout << device->name();
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Diags diags) : state_(std::move(diags)) { assert(!std::get<Diags>(state_).ok()); }
  Result(const Rule& rule, std::string message)
      : state_(Diags::one(rule, {}, std::move(message))) {}

  explicit operator bool() const { return std::holds_alternative<T>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return std::get<T>(state_); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &std::get<T>(state_); }
  T& value() {
    assert(*this && "Result has no value: look at diags() first");
    return std::get<T>(state_);
  }
  const Diags& diags() const {
    assert(!*this && "Result holds a value");
    return std::get<Diags>(state_);
  }

 private:
  std::variant<T, Diags> state_;
};

/// Result of something that has no value to give.
struct Done {};
using Status = Result<Done>;

}  // namespace tartan
