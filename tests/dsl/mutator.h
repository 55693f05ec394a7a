// SPDX-License-Identifier: Apache-2.0
// tests/dsl/mutator.h - mistakes in DSL programs, by the thousand: a program asks a Mutator for
// each number, type, operand and statement that a person may get wrong, and gets what it wrote,
// except in the one place that is wrong this time.
//
//   Kernel program(Mutator& m) {
//     return kernel("copy", {.block = m(32)}, [&m](Builder& k) {
//       auto a = k.global("A", m(f16), row_major(m(16), 16)); ...
//       m.steps(k, {[&] { k.copy(a, s); }, [&] { k.barrier(); }, [&] { k.copy(s, c); }});
//
// A place is a line and column of the program, so a mistake in code that is described several times
// (by roles, by loops of C++) is the same each time.
#pragma once

#include <functional>
#include <map>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <tartan/tartan.h>

namespace tartan::test {

class Mutator {
 public:
  using Here = std::source_location;
  using Step = std::function<void()>;

  /// A place, and what may go wrong there.
  struct Site {
    int line = 0, column = 0;
    std::vector<std::string> changes;
    bool operator<(const Site& other) const {
      return std::pair(line, column) < std::pair(other.line, other.column);
    }
  };
  /// A mistake: which change of which place.
  struct Mutant {
    int line = 0, column = 0, change = -1;
    std::string text;
  };

  /// Records places and changes nothing.
  Mutator() = default;
  /// Makes that mistake.
  explicit Mutator(const Mutant& mutant) : mutant_(mutant) {}

  /// All mistakes of the places recorded, in the order of the text.
  std::vector<Mutant> mutants() const;

  /// Another size or number.
  int operator()(int right, Here at = Here::current());
  /// Another type.
  Type operator()(Type right, Here at = Here::current());
  /// Another instruction.
  MmaShape operator()(const MmaShape& right, Here at = Here::current());
  /// Another index: one more, one less, twice, another kind of number.
  Scalar operator()(Builder& k, const Scalar& right, Here at = Here::current());
  /// Another name at hand of the same type.
  template <typename T>
  const T& of(const T& right, const T& wrong, Here at = Here::current()) {
    return choose(at, {"another operand"}) == 0 ? wrong : right;
  }
  /// Two arguments, or the two exchanged.
  template <typename T>
  std::pair<T, T> pair(const T& first, const T& second, Here at = Here::current()) {
    if (choose(at, {"swapped"}) == 0) return {second, first};
    return {first, second};
  }
  /// A layout, or that of the other major order, padded, or transposed.
  Layout layout(const Layout& right, const Layout& other, Here at = Here::current());
  /// Statements: one is dropped, repeated, exchanged with the next, moved, made conditional or put
  /// into a loop.
  void steps(Builder& k, const std::vector<Step>& all, Here at = Here::current());

 private:
  /// Which of the changes is made here: its number, or -1.
  int choose(const Here& at, const std::vector<std::string>& changes);

  std::map<std::pair<int, int>, Site> sites_;
  Mutant mutant_;
};

/// A program, its arguments, and what it computes.
struct MutatedProgram {
  std::string name;
  std::vector<std::string> targets;
  std::function<Kernel(Mutator&)> make;
  Dim3 grid;
  /// Buffers, the output last; numbers are arguments before them.
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::int32_t> numbers;
  Type type = Type::none;        // of the output
  std::vector<double> expected;  // by a naive loop
};

std::vector<MutatedProgram> mutated_programs();
std::vector<MutatedProgram> mutated_products();

}  // namespace tartan::test
