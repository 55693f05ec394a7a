// SPDX-License-Identifier: Apache-2.0
// tests/emulator/random_writer.h - builds the text of a random kernel: registers, the values that
// later instructions may read, and the random numbers.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/isa/form.h"
#include "tests/emulator/random_program.h"

namespace tartan::test {

/// Parts of the input buffer, zone_bytes bytes each, with numbers of one kind. The calm ones have
/// few special values, so that sums of many products are mostly numbers.
enum class Zone : std::uint8_t {
  bits,
  f16,
  bf16,
  f32,
  f64,
  e4m3,
  e5m2,
  calm_f16,
  calm_bf16,
  calm_f32,
  calm_f64,
  codes,       // metadata of sparse products: every code legal
  codes_tf32,  // the same of tf32
};
inline constexpr int zones = 13, zone_bytes = 4096;
Zone zone_of(Type type, bool calm);

class Writer {
 public:
  Writer(RandomProgram& program) : program(program), random_(program.seed * 2 + 1) {}

  // ---- Random numbers: the same on every machine.
  std::uint32_t below(std::uint32_t count) {
    return static_cast<std::uint32_t>((random_() >> 20) % count);
  }
  /// The row of a list for statement `number`. The first `turns` of a program take rows in turn, so
  /// that some thousand programs use all; the others take any.
  std::size_t row(std::size_t number, std::size_t turns, std::size_t rows) {
    if (number < turns) return (program.seed * turns + number) % rows;
    return below(static_cast<std::uint32_t>(rows));
  }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  template <std::size_t N>
  std::string_view one_of(const std::string_view (&choices)[N]) {
    return choices[below(N)];
  }

  // ---- Text.
  void line(std::string text) { body_ += text + "\n"; }
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    body_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  std::string label() { return fmt::format("$L{}_{}", program.seed, labels_++); }

  // ---- Registers: %p 1 bit, %h 16, %r 32, %d 64, %f f32, %g f64 (for instructions that require
  // their type).
  std::string fresh(char letter);
  static char letter(int bits) {
    return bits == 1 ? 'p' : bits == 16 ? 'h' : bits == 32 ? 'r' : 'd';
  }
  /// A register for a result: initially zero if the instruction may be skipped.
  std::string destination(int bits);
  /// The value now in `reg` may be read by later instructions, and is stored at the end.
  void result(const std::string& reg, int bits, std::string_view type, std::string instruction);
  /// The same for a loaded value. NVIDIA's assembler assumes from then on that the upper half of
  /// the 32-bit register of a 16-bit load is zero, but does not preserve it: an instruction that it
  /// cannot evaluate is inserted.
  void loaded(const std::string& reg, int bits, std::string_view type, std::string instruction) {
    if (bits == 16) copy(reg, reg, bits);
    result(reg, bits, type, std::move(instruction));
  }
  /// Copies 16 or 32 bits by an instruction that NVIDIA's assembler cannot evaluate.
  void copy(const std::string& to, const std::string& from, int bits) {
    line("or.b{} {}, {}, %zero{};", bits, to, from, bits == 16 ? "16" : "");
  }
  /// A value of so many bits, preferably one that was computed as `type`.
  std::string source(int bits, std::string_view type = {});
  std::vector<std::string> sources(int bits, int count) {
    std::vector<std::string> out;
    for (int i = 0; i < count; ++i) out.push_back(source(bits));
    return out;
  }

  /// Input: an address operand for this thread; neighbouring threads are `stride` bytes (8 or 16)
  /// apart.
  std::string input(Zone zone, int align, int stride = 8);

  // ---- The current position.
  int depth = 0;         // inside branches and loops that not every lane takes
  bool guarded = false;  // inside anything that may be skipped
  /// After divergent branches: instructions of a whole warp must reconverge first.
  bool diverged = false;
  void converge() {
    if (diverged) line("bar.warp.sync 0xffffffff;");
    diverged = false;
  }
  void block_barrier() {
    converge();
    line("bar.sync 0;");
  }
  int threads() const { return static_cast<int>(program.launch.block.x); }

  /// The whole kernel.
  std::string text() const;

  RandomProgram& program;

 private:
  /// A skipped instruction leaves its results unchanged: zero, not undefined.
  void zero_where_skipped(const std::string& reg, int bits);

  struct Value {
    std::string reg;
    int bits;
    std::string type;
  };
  std::mt19937_64 random_;
  std::string body_, zeros_, stores_;
  std::set<std::string> zeroed_;
  std::vector<Value> values_;
  int counts_[128] = {};
  int labels_ = 0;
};

// Statements, by file.
void scalar_statement(Writer& writer);             // random_scalar.cc
void matrix_statement(Writer& writer);             // random_matrix.cc: a product
void matrix_move_statement(Writer& writer);        // random_matrix.cc
void load_statement(Writer& writer);               // random_memory.cc
void exchange_statement(Writer& writer);           // through shared memory
void asynchronous_copy_statement(Writer& writer);  //
void reduction_statement(Writer& writer);          // red on global and shared memory
void table_statement(Writer& writer);              // local and constant memory
void collective_statement(Writer& writer);         // random_memory.cc: shfl, vote, match, redux

}  // namespace tartan::test
