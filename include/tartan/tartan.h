// SPDX-License-Identifier: Apache-2.0
// tartan/tartan.h - all of Tartan: describe kernels, check PTX, run it.
//
//   compiler/isa/      the instruction tables, and which lane holds which element
//   compiler/ptx/      PTX text to a tree and back
//   compiler/verify/   whether a module is legal, with diagnostics
//   dsl/               kernels as C++ functions, compiled to verified PTX
//   kernels/           the built-in kernels, such as GEMM and attention, and their tuning
//   runtime/           running PTX on a GPU, or on the built-in emulator
//
// A program that needs one of these may include its header alone; paths are the same as in the
// source tree.
#pragma once

#include "tartan/bundle.h"
#include "tartan/config.h"
#include "tartan/isa/advice.h"
#include "tartan/isa/feature.h"
#include "tartan/isa/form.h"
#include "tartan/isa/fragment.h"
#include "tartan/isa/gpus.h"
#include "tartan/isa/instruction.h"
#include "tartan/isa/layout_algebra.h"
#include "tartan/isa/target.h"
#include "tartan/isa/tensor_memory.h"
#include "tartan/isa/type.h"
#include "tartan/ptx/parser.h"
#include "tartan/runtime/device.h"
#include "tartan/runtime/dlpack.h"
#include "tartan/runtime/host_types.h"
#include "tartan/runtime/reference.h"
#include "tartan/runtime/tensor_map.h"
#include "tartan/runtime/timeline.h"
#include "tartan/runtime/trace.h"
#include "tartan/support/diagnostic.h"
#include "tartan/support/source.h"
#include "tartan/support/times.h"
#include "tartan/verify/verify.h"
#include "tartan/version.h"
#if TARTAN_HAS_LLVM
#include "tartan/dsl/builder.h"
#include "tartan/dsl/line_ring.h"
#include "tartan/dsl/math.h"
#include "tartan/dsl/model.h"
#include "tartan/function.h"
#include "tartan/kernels/kernels.h"
#include "tartan/launch.h"
#include "tartan/load.h"
#include "tartan/offline.h"
#include "tartan/run.h"
#include "tartan/tune.h"
#endif
