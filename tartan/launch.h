// SPDX-License-Identifier: Apache-2.0
// tartan/launch.h - the arguments that a compiled kernel needs beside those of its description.
#pragma once

#include "dsl/kernel.h"
#include "runtime/device.h"

namespace tartan {

/// `arguments` are those of the description's parameters, in their order. Adds the tensor maps
/// (Compiled::maps) that the copy engine of sm_90 and later reads its matrices through; for kernels
/// without any, nothing. Matrices that it cannot read are diagnostics: an address or a line that is
/// no multiple of 16 bytes.
///   kernel.launch(launch, *arguments_of(compiled, Arguments().add(m).add(n).add(a).add(b)));
Result<Arguments> arguments_of(const Compiled& compiled, Arguments arguments);

}  // namespace tartan
