// SPDX-License-Identifier: Apache-2.0
// tartan/tartan.h - all of Tartan: describe kernels, check PTX, run it.
//
//   compiler/isa/      what the matrix instructions are, and which lane holds which element
//   compiler/ptx/      PTX text to a tree and back
//   compiler/verify/   whether a module is legal, and what is wrong with it
//   dsl/               kernels as C++ functions, compiled to verified PTX
//   runtime/           running PTX on a GPU, or on the built-in emulator
//
// A program that needs one of these may include its header alone: the paths are the same as in the
// source tree.
#pragma once

#include "compiler/isa/form.h"
#include "compiler/isa/fragment.h"
#include "compiler/isa/instruction.h"
#include "compiler/isa/layout_algebra.h"
#include "compiler/isa/target.h"
#include "compiler/isa/type.h"
#include "compiler/ptx/parser.h"
#include "compiler/support/diagnostic.h"
#include "compiler/support/source.h"
#include "compiler/verify/verify.h"
#include "runtime/device.h"
#include "runtime/tensor_map.h"
#include "tartan/config.h"
#include "tartan/version.h"
#if TARTAN_HAS_LLVM
#include "dsl/builder.h"
#include "dsl/kernels/kernels.h"
#include "dsl/math.h"
#include "tartan/launch.h"
#endif
