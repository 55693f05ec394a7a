// SPDX-License-Identifier: Apache-2.0
// tartan/support/diagnostic.h - diagnostics and results.
//
// Three kinds of failure are kept apart. Invalid input (a kernel description, PTX text, a manifest)
// gives diagnostics: all of them, each with a place, the expected and the found. A wrong
// environment (no driver, no file) gives a Result whose diagnostic says what to install or set.
// Bugs of Tartan are asserts.
//
// Every diagnostic names a Rule: a row of the table in tartan/support/rules.h, whose id is stable
// across releases and documented in docs/diagnostics.md.
#pragma once

#include <cassert>
#include <cstddef>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tartan/support/rules.h"

namespace tartan::TARTAN_ABI {

/// A place in a text or a C++ file. Lines and columns count from 1; 0 means unknown.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;

  Place() = default;
  Place(std::string in, int at_line, int at_column)
      : file(std::move(in)), line(at_line), column(at_column) {}
  Place(const std::source_location& at)  // implicit: DSL calls pass their caller's location
      : file(at.file_name()),
        line(static_cast<int>(at.line())),
        column(static_cast<int>(at.column())) {}

  bool known() const { return !file.empty(); }
  bool operator==(const Place&) const = default;
};

/// One error, warning or note.
struct Diag {
  Level level = Level::Error;
  std::string_view id;  // a rule's id: static storage
  Place place;
  std::string
      message;  // lower case, no full stop: "operand a of mma.m16n8k16 takes 4 registers, got 2"
  std::string source;  // the line of the text it is about, if there is one (for the caret)
  int width = 0;       // columns, from place.column on
  int caret = 0;       // its column in `source`, where that is a part of a long line; else 0
};

/// `text` as a terminal may show it: control characters, characters that change the direction of
/// text, and bytes that are not UTF-8 become `\xNN`.
std::string printable(std::string_view text);

/// `file:line:column: error: message [id]`: a diagnostic as one line of text. It is printable();
/// further lines of a message (a driver's log) are indented.
std::string to_string(const Diag& diag);

/// Same over several lines: the source line and a caret under it. With `colour`, for a terminal.
std::string to_text(const Diag& diag, bool colour);

/// Levels of rules that override those of the table in tartan/support/rules.h.
class RuleLevels {
 public:
  /// None: diagnostics of the rule are omitted.
  void set(const Rule& rule, std::optional<Level> level);
  /// False if there is no rule with that id.
  bool set(std::string_view id, std::optional<Level> level);
  std::optional<Level> of(const Rule& rule) const;
  /// Nothing where the rule's level was not set, else what it was set to.
  std::optional<std::optional<Level>> overridden(const Rule& rule) const;

 private:
  std::vector<std::pair<std::string_view, std::optional<Level>>> levels_;  // by id
};

/// Limits and levels of a list of diagnostics.
struct Reporting {
  RuleLevels levels;
  /// The number of errors that are kept, first in the text first; the others are counted. 0: all.
  int max_errors = 0;
};

/// A list of diagnostics, in the order in which they were found.
class Diags {
 public:
  Diags() = default;
  explicit Diags(Reporting reporting) : reporting_(std::move(reporting)) {}

  void add(Diag diag);
  /// Adds a diagnostic of `rule`, at the rule's level. The reference is valid until the next call.
  Diag& report(const Rule& rule, Place place, std::string message);
  /// A list of one.
  static Diags one(const Rule& rule, Place place, std::string message);
  void append(Diags other);

  bool ok() const { return errors_ == 0; }  // no error (warnings and notes do not count)
  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }
  std::size_t count(Level level) const;
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  const Diag& operator[](std::size_t i) const { return list_[i]; }
  /// Sorts by file, line and column; diagnostics of one place keep their order. Drops what follows
  /// the last error that Reporting::max_errors keeps.
  void sort();
  /// The number of errors that were dropped.
  std::size_t left_out() const { return left_out_; }

  std::string text(bool colour = false) const;  // to_text of each, a line break after each
  /// {"schema_version","diagnostics":[{"file","line","column","level","id","message"}],"truncated"}:
  /// `truncated` is the number of errors that were dropped.
  std::string json() const;

 private:
  void keep(Diag diag);

  Reporting reporting_;
  std::vector<Diag> list_;
  std::size_t errors_ = 0, left_out_ = 0;  // errors in all; those of them that are not in list_
  std::size_t full_ = 0;                   // diagnostics at which the limit is applied next
  Diag ignored_;                           // what is reported of a rule that is left out
};

/// Of the JSON that commands write. New fields do not change it.
inline constexpr int json_schema_version = 1;

namespace detail {
[[noreturn]] void throw_no_value(const Diags& diags);
}

/// A value, or the diagnostics of the failure.
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
  /// The value. Without one, throws std::logic_error with the diagnostics' text.
  T& value() {
    if (!*this) detail::throw_no_value(diags());
    return *std::get_if<T>(&state_);
  }
  const T& value() const { return const_cast<Result*>(this)->value(); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Diags& diags() const {
    assert(!*this && "Result holds a value");
    return std::get<Diags>(state_);
  }

 private:
  std::variant<T, Diags> state_;
};

/// The result of an operation without a value.
struct Done {};
using Status = Result<Done>;

}  // namespace tartan::TARTAN_ABI
