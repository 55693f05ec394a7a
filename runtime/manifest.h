// SPDX-License-Identifier: Apache-2.0
// runtime/manifest.h - a launch of compiled PTX as JSON, with its input data and expected output.
//
//   {
//     "ptx": "softmax.ptx",
//     "kernel": "softmax_rows",
//     "grid": [4], "block": [128],
//     "params": [
//       {"buffer": "in", "file": "in.npy"},
//       {"buffer": "out", "type": "f32", "shape": [4, 128], "save": "out.npy", "print": ":,0:8"},
//       {"u32": 128, "name": "columns"}
//     ],
//     "reference": "out = softmax(in, columns=128)"
//   }
//
// docs/manifest.md describes every field. A command line of `tartan run k.ptx` becomes such a text
// first (tools/launch_words.h), so that there is one description of a launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/comparison.h"
#include "runtime/slice.h"
#include "tartan/runtime/device.h"
#include "tartan/runtime/tensor_map.h"
#include "tartan/support/source.h"

namespace tartan::TARTAN_ABI {

struct ManifestBuffer {
  std::string name;
  std::size_t size = 0;              // bytes
  Type type = Type::none;            // of its elements; none: bytes of any type
  std::vector<std::uint64_t> shape;  // of elements; empty: one row
  std::vector<std::byte> contents;   // of `size` bytes; empty: filled
  std::uint8_t fill = 0;
  bool filled = false;         // the manifest states `fill`
  bool uninitialized = false;  // zeros that count as never written
  std::optional<std::vector<std::byte>> expect;
  Comparison comparison;
  bool compared = false;      // the manifest states `compare`
  std::string save;           // the path of a file for its results; empty: none
  std::vector<Slice> prints;  // of its results

  /// The extents of its elements: the shape, or one row.
  std::vector<std::uint64_t> extents() const;
};

/// A tensor map whose address is known once the buffers are allocated.
struct ManifestTensorMap {
  std::string buffer;
  std::uint64_t offset = 0;  // bytes
  TensorMap map;             // address 0
  bool whole = false;        // of all elements of the buffer: those of `map` follow from it
};

/// Bytes of a parameter that are known once the buffers are allocated: a tensor map, or an address.
struct ManifestMember {
  std::size_t at = 0;  // bytes from the parameter's start
  std::optional<ManifestTensorMap> tensor_map;
  std::string buffer;        // of an address
  std::uint64_t offset = 0;  // bytes
  std::size_t field = 0;     // of the struct, for messages
};

/// A buffer, a tensor map, or the bytes of a scalar, an address or a struct.
struct ManifestParam {
  std::optional<ManifestBuffer> buffer;
  std::optional<ManifestTensorMap> tensor_map;
  std::vector<std::byte> scalar;
  std::vector<ManifestMember> members;  // over the bytes of `scalar`
  bool is_struct = false;
  std::string name;        // of a scalar, where it has one
  Type type = Type::none;  // of a scalar; none: bytes
};

/// A launch after the first one.
struct ManifestLaunch {
  std::string kernel;
  Launch launch;
  std::vector<ManifestParam> params;
};

struct Manifest {
  std::string name;  // of its own text: a path
  Source ptx{"", ""};
  std::string kernel;
  Launch launch;
  std::string hardware;  // "sm_90"; empty where it is not stated
  std::vector<ManifestParam> params;
  std::vector<ManifestBuffer> buffers;  // beside those of `params`
  std::vector<std::string> references;  // formulas of what buffers hold afterwards
  std::vector<ManifestLaunch> then;

  /// All of it: those of the launches' parameters, in their order, then `buffers`.
  std::vector<const ManifestBuffer*> all_buffers() const;
};

/// Reads a manifest and every file it names. Every wrong field and every unreadable file gives a
/// diagnostic.
Result<Manifest> read_manifest(const std::string& path);

/// The same for a text; file names are relative to the folder of the source's name. `ptx`, if
/// given, is taken in place of what the field names.
Result<Manifest> parse_manifest(const Source& source, std::optional<Source> ptx = std::nullopt);

}  // namespace tartan::TARTAN_ABI
