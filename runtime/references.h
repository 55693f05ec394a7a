// SPDX-License-Identifier: Apache-2.0
// runtime/references.h - formulas of a manifest: what a buffer holds after the launches.
#pragma once

#include <string>
#include <vector>

#include "runtime/manifest.h"

namespace tartan::TARTAN_ABI {

/// The buffers that the formulas compute. Formulas that cannot be read, and buffers that they do
/// not find, are reported.
std::vector<std::string> reference_outputs(const Manifest& manifest, Diags& diags);

/// Evaluates the formulas on what the buffers start with: their results become `expect`, rounded to
/// the output's type. Where the manifest does not say how to compare, the difference may be
/// reference_tolerance() of an element, or of the largest one.
Diags expect_references(Manifest& manifest);

/// What sums in another order may change, relative: 1e-5 for f32, two units in the last place for
/// smaller types, 1e-12 for f64, nothing for integers.
double reference_tolerance(Type type);

}  // namespace tartan::TARTAN_ABI
