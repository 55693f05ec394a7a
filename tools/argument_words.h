// SPDX-License-Identifier: Apache-2.0
// tools/argument_words.h - the values of --arg, as parameters of a manifest:
//
//   in.npy  in.npy:bf16  in.bin:f32:256x128      a file; a type converts .npy, and reads others
//   zeros:f32:256x128  empty:...  random:f32:256:1  full:f32:256:0.5      an array
//   256  -1.5  f16:0.5  bytes:0001ff             a scalar, and any parameter as its bytes
//   address:x+64                                 inside the buffer of another argument
//   tensormap:x:64x32:swizzle=128                a tensor map of it
//
// tensor_map_words.h has the words of tensor maps.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/kernel_signature.h"

namespace tartan::tools {

using Json = nlohmann::ordered_json;

/// An array's extents, "256x128" or "256,128"; nothing where it is not written so.
std::optional<std::vector<std::uint64_t>> extents_of(std::string_view text);

/// How arguments become parameters.
struct ArgumentContext {
  std::string
      folder;  // of the manifest: names of files in it are relative to that; empty: as given
};

/// `path` as a manifest in the context's folder names it.
std::string file_name(const ArgumentContext& context, const std::string& path);

/// The parameter of a value; `name` is the argument's. The diagnostic (rule "usage") begins with
/// `words`, the option as it was given.
Result<Json> parameter_json(const KernelParameter& parameter, const std::string& name,
                            const std::string& value, const std::string& words,
                            const ArgumentContext& context);

/// A parameter that nobody has given: a user edits it.
Json blank_parameter(const KernelParameter& parameter);

}  // namespace tartan::tools
