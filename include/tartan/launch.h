// SPDX-License-Identifier: Apache-2.0
// tartan/launch.h - launches the result of compile(), with its block size, shared memory and tensor
// maps.
//
//   const Result<Compiled> compiled = compile(product, device->arch());
//   const Result<Module> module = device->load(compiled->ptx, compiled->name);
//   Result<LoadedKernel> kernel = module->kernel(compiled->name);
//   const auto arguments = Arguments().add(m).add(n).add(a).add(b).add(c);
//   const Status launched = launch(*kernel, *compiled, {blocks}, arguments);
#pragma once

#include "tartan/dsl/kernel.h"
#include "tartan/runtime/device.h"

namespace tartan::TARTAN_ABI {

/// Starts `kernel`, which is `compiled` loaded on a device. `grid` counts blocks; `arguments` are
/// those of the description's parameters, in order; arguments_of() adds the others. Invalid
/// arguments are rejected before anything runs, each with a diagnostic. `programmatic`: see
/// Launch::programmatic.
Status launch(LoadedKernel& kernel, const Compiled& compiled, Dim3 grid, const Arguments& arguments,
              const Stream* stream = nullptr, bool programmatic = false);

/// The arguments of a launch by LoadedKernel::launch(): those of the description's parameters, in
/// their order, then the TMA tensor maps (Compiled::maps), if the kernel has any.
///
/// Diagnostics: a wrong number of arguments; one whose size differs from its parameter's (pointers
/// have 8 bytes); and whatever TMA does not support: a matrix whose address or leading dimension is
/// not a multiple of 16 bytes, or an extent of 0. An empty product is not launched at all.
Result<Arguments> arguments_of(const Compiled& compiled, Arguments arguments);

}  // namespace tartan::TARTAN_ABI
