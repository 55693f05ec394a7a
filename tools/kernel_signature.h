// SPDX-License-Identifier: Apache-2.0
// tools/kernel_signature.h - what a kernel takes: its parameters in PTX, with what C++ names and
// the kernel's accesses say of them.
//
//   const auto kernel = find_kernel(module, "add");        // or "_Z3addPKfS0_Pfi", or "" if alone
//   kernel->text()              // "add(param_0: float const*, ..., param_3: int)"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/ptx/tree.h"
#include "tartan/runtime/device.h"

namespace tartan::tools {

struct KernelParameter {
  /// pointer: the kernel accesses memory there, or its C++ type is one. word: 64 bits that may be
  /// one. bytes: an array, such as a struct or a tensor map.
  enum class Kind : std::uint8_t { scalar, word, pointer, bytes };
  std::string ptx_name;
  std::string name;  // the same, "param_3" in place of nvcc's "_Z3addPKfS0_Pfi_param_3"
  Kind kind = Kind::scalar;
  Type type = Type::none;     // scalars and words; f16 and bf16 too, which nvcc declares as bytes
  Type element = Type::none;  // pointers, where it is known
  std::size_t bytes = 0;
  std::string source_type;  // "float const*"; empty where the name does not tell
  bool written = false;     // pointers: the kernel stores there
  bool read = false;        // pointers: it reads, or nobody knows

  /// "x: float const*", "n: .u32".
  std::string text() const;
  /// Which argument it takes: "an array of f32", "a number of s32".
  std::string expected() const;
};

struct KernelSignature {
  std::string ptx_name;
  std::string name;  // "add", "scale<float>"
  std::vector<KernelParameter> parameters;
  Dim3 block = {0, 0, 0};  // that the kernel requires; 0: it does not

  std::string text() const;
};

/// The kernel of that name: as PTX has it, as C++ has it with or without parameters, namespaces and
/// template arguments. An empty name: the only kernel. The diagnostic lists the module's kernels.
Result<KernelSignature> find_kernel(const ptx::Module& module, const std::string& name);

/// An element or scalar type of CUDA C++: "float" -> f32, "__nv_bfloat16" -> bf16.
Type type_of_source(std::string_view text);

}  // namespace tartan::tools
