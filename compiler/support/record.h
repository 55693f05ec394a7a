// SPDX-License-Identifier: Apache-2.0
// compiler/support/record.h - structs as bytes and back, for entries of the cache: members in their
// order, numbers as memory has them. Such bytes are read by the build that wrote them. A parser of
// JSON or CBOR took a hundred times as long.
//
// Numbers, enumerations, strings, vectors, optionals and what they hold are known. For a struct,
// members_of() names the members, as a binding, so that none can be forgotten:
//
//   auto members_of(Place& x) { auto& [file, line, column] = x; return std::tie(file, line,
//   column); }
//
//   const std::string bytes = to_bytes(place);
//   Place again;
//   if (!from_bytes(bytes, again)) ...   // these are not bytes of a Place
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::detail {

template <typename T>
concept RecordNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class RecordWriter {
 public:
  std::string take() { return std::move(out_); }

  template <RecordNumber T>
  void add(T number) {
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    out_.append(bytes, sizeof number);
  }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    out_ += text;
  }
  void add(const std::string& text) { add(std::string_view(text)); }
  template <typename T>
  void add(const std::vector<T>& all) {
    add(std::uint64_t{all.size()});
    for (const T& each : all) add(each);
  }
  template <typename T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  template <typename T>
  requires std::is_class_v<T>
  void add(const T& record) {  // members_of() is for reading too; here nothing is written to it
    std::apply([&](const auto&... each) { (add(each), ...); }, members_of(const_cast<T&>(record)));
  }

 private:
  std::string out_;
};

/// Once anything was not as expected, it reads zeros.
class RecordReader {
 public:
  explicit RecordReader(std::string_view bytes) : rest_(bytes) {}
  /// Whether all was as expected, and nothing is left.
  bool done() const { return ok_ && rest_.empty(); }

  template <RecordNumber T>
  void get(T& number) {
    const std::string_view bytes = next(sizeof number);
    if constexpr (std::is_same_v<T, bool>) number = ok_ && bytes[0] != 0;
    else if (ok_) std::memcpy(&number, bytes.data(), sizeof number);
  }
  /// It points into the bytes.
  void get(std::string_view& text) { text = next(count()); }
  void get(std::string& text) { text = next(count()); }
  template <typename T>
  void get(std::vector<T>& all) {
    all.resize(count());
    for (T& each : all) get(each);
  }
  template <typename T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    if (there) get(value.emplace());
  }
  template <typename T>
  requires std::is_class_v<T>
  void get(T& record) {
    std::apply([&](auto&... each) { (get(each), ...); }, members_of(record));
  }

 private:
  std::string_view next(std::size_t bytes) {
    ok_ = ok_ && bytes <= rest_.size();
    if (!ok_) return {};
    const std::string_view out = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return out;
  }
  // Of what takes a byte each or more.
  std::size_t count() {
    std::uint64_t out = 0;
    get(out);
    ok_ = ok_ && out <= rest_.size();
    return ok_ ? out : 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

template <typename T>
std::string to_bytes(const T& record) {
  RecordWriter out;
  out.add(record);
  return out.take();
}

template <typename T>
bool from_bytes(std::string_view bytes, T& record) {
  RecordReader in(bytes);
  in.get(record);
  return in.done();
}

}  // namespace tartan::TARTAN_ABI::detail
