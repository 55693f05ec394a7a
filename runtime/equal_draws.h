// SPDX-License-Identifier: Apache-2.0
// runtime/equal_draws.h - the contents of inputs that no manifest gives, in `tartan equal`.
//
//   DrawnInputs inputs(buffers);
//   inputs.learn(a, b);                  // what two runs read
//   inputs.fill({});                     // the usual draw
//   inputs.fill({1, 20});                // another one: magnitudes from 2^-20 to 2^20
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/equal_launch.h"

namespace tartan::TARTAN_ABI::detail {

/// Draw 0: floats in (-1, 1), integers that are small. Others: magnitudes from 2^-exponent to
/// 2^exponent; an even draw has the signs of the one before it turned.
struct Draw {
  unsigned number = 0;
  int exponent = 0;
  unsigned strata = 1;  // pairs of draws that share the magnitudes among each element's
  bool edge = false;    // every other integer that has a bound is the largest, and the first one
};

class DrawnInputs {
 public:
  explicit DrawnInputs(std::vector<EqualBuffer>& buffers) : buffers_(buffers) {}

  /// Takes the contents as they are for those that stay.
  void start();
  /// Of elements that nobody has named before: true if there are some.
  bool learn(const EqualRun& a, const EqualRun& b);
  bool any() const { return elements() > 0; }
  std::size_t elements() const;
  void fill(const Draw& draw);

  /// Buffers with integers.
  std::vector<std::size_t> integers() const;
  /// Those of a buffer are below `limit`; 0: as large as they like.
  void bound(std::size_t buffer, std::uint64_t limit) { plans_[buffer].limit = limit; }
  std::uint64_t bound(std::size_t buffer) const { return plans_[buffer].limit; }
  /// Numbers of elements of the other buffers, and 2, that are below the buffer's bound: the
  /// largest first.
  std::vector<std::uint64_t> bounds(std::size_t buffer) const;
  /// Buffers with integers that threads wait for or count with: they stay.
  std::vector<std::string> signals() const;

 private:
  // What starts at a byte.
  struct Element {
    enum class Kind : std::uint8_t { none, part, number, metadata, integer, signal };
    Kind kind = Kind::none;
    Type type = Type::none;  // of a number
    std::uint8_t bytes = 1;
    bool fields = false;  // of an integer: it is taken apart
    bool operator==(const Element&) const = default;
  };
  struct Plan {
    std::vector<Element> elements;  // by byte
    std::vector<std::byte> contents;
    std::uint64_t limit = 0;
  };

  static Element element_at(const EqualRun& a, const EqualRun& b, std::uint32_t byte);
  bool add(Plan& plan, std::size_t at, const Element& element);
  std::vector<Element> spread(const Plan& plan) const;
  void draw(const Draw& draw, std::size_t buffer, std::size_t at, const Element& element);
  std::uint64_t integer(const Draw& draw, std::size_t buffer, std::uint64_t key,
                        const Element& element) const;
  std::uint64_t smallest(std::size_t buffer) const;

  std::vector<EqualBuffer>& buffers_;
  std::vector<Plan> plans_;
  bool wide_metadata_ = false;  // codes of sparse tf32 mean one of two
};

}  // namespace tartan::TARTAN_ABI::detail
