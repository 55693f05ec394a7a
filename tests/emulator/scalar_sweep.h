// SPDX-License-Identifier: Apache-2.0
// tests/emulator/scalar_sweep.h - every scalar instruction with every qualifier, on values that
// reveal rounding, flushing, carries and NaNs.
//
// A form is an instruction, or a few that depend on each other, with registers d (the result), a,
// b, c and e (the sources). The forms come from loops over operations, qualifiers and types
// (scalar_sweep_integers.cc, _floats.cc, _conversions.cc, _video.cc), the values from the kinds of
// their sources (scalar_sweep_values.cc). A GPU's results are in
// tests/data/emulator/sweep_sm_90.bin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine.h"

namespace tartan::scalar_sweep {

inline constexpr int row_count = 160;

/// The kind of a source register, which determines its values.
enum class Kind : std::uint8_t {
  b16,
  b32,
  b64,
  f16,
  bf16,
  f32,
  f64,
  f16x2,
  bf16x2,
  small,  // 32 bits: a shift, a position or a count, in the word and just beyond
};

int bits(Kind kind);

struct Form {
  std::string text;
  int d = 32;                 // bits of the result
  std::vector<Kind> sources;  // of a, b, c, e
  bool approximate = false;   // from a hardware table, not exact
  /// If not empty: the sources' values, source s of row r at [s * rows + r], which replace those of
  /// the kinds.
  std::vector<std::uint64_t> values = {};
};

std::vector<Form> integer_forms();
std::vector<Form> float_forms();
std::vector<Form> conversion_forms();
std::vector<Form> video_forms();
/// All forms.
std::vector<Form> all_forms();

/// The values of a form's sources: source s of row r is [s * row_count + r].
std::vector<std::uint64_t> inputs_of(const Form& form);

/// Names a form and its inputs in a recording.
std::uint64_t key_of(const Form& form);

/// A module with a kernel k<i> for each form.
std::string module_text(const std::vector<Form>& forms);

/// The results of a form, one per row; nothing if it could not be run: `complaint` has the reason.
struct Run {
  std::vector<std::uint64_t> results;
  std::string complaint;
};
std::vector<Run> run_forms(detail::Engine& engine, const std::vector<Form>& forms);

}  // namespace tartan::scalar_sweep
