// SPDX-License-Identifier: Apache-2.0
// runtime/manifest.h - a launch of compiled PTX as JSON, with its input data and expected output.
//
//   {
//     "ptx": "softmax.ptx",              paths are relative to the manifest's folder
//     "kernel": "softmax_rows",
//     "grid": [4, 1, 1],                 blocks; one to three numbers
//     "block": [128, 1, 1],              threads per block
//     "dynamic_shared": 0,               bytes per block; 0 where it is left out
//     "cluster": [2, 1, 1],              blocks; left out: what the kernel states, else one
//     "cooperative": true,               blocks run at the same time, for grid.sync(); left out:
//                                        false
//     "programmatic": true,              may start before the launch in front of it ends, and waits
//                                        by griddepcontrol.wait; left out: false
//     "hardware": "sm_90",               whose arithmetic; left out: that of the PTX target
//     "params": [                        the kernel's parameters, in order
//       {"buffer": "in", "file": "in.bin"},
//       {"buffer": "out", "bytes": 16000, "fill": 0, "expect": "out.bin",
//        "compare": {"type": "f32", "max_rel": 1e-05, "max_abs": 1e-07}},
//       {"u32": 1000},
//       {"tensor_map": "matrix", "type": "f16", "extents": [512, 256], "strides": [1024],
//        "box": [64, 128], "swizzle": 128},
//       {"address": "matrix", "offset": 4096},
//       {"struct": 256, "fields": [
//         {"at": 0, "address": "in"},
//         {"at": 8, "f32": 0.5},
//         {"at": 128, "tensor_map": "matrix", "type": "f16", "extents": [512, 256],
//          "strides": [1024], "box": [64, 128], "swizzle": 128}
//       ]}
//     ],
//     "buffers": [                       those that are no parameter of their own
//       {"buffer": "matrix", "file": "matrix.bin", "part": [4096, 262144]}
//     ],
//     "then": [                          further launches, one after the other in one stream, with
//       {"kernel": "add", "grid": [4],   fields as above; buffers have one name in all of them:
//        "block": [32],                  {"address": "out"} is the first launch's
//        "params": [{"address": "out"}]}
//     ]
//   }
//
// A buffer starts as a file, as a part of it ([offset, bytes]), or as `bytes` bytes of value `fill`
// (default 0); with `"uninitialized": true` in place of `fill` it counts as never written, and the
// emulator's checks report results that depend on it. With `expect` it is compared afterwards with
// that file, which must have the same size: as `compare` says, by default "bits" (see
// runtime/comparison.h). A scalar is one of u8, s8, u16, s16, u32, s32, u64, s64, f32, f64; any
// other parameter by value is written as its bytes, {"bytes": [1, 0, 255]}.
//
// "address" is that of a buffer, plus `offset` bytes (default 0).
//
// A "struct" is a parameter of so many bytes (.param .b8 name[256]): zeros, or the bytes of `file`,
// which must have that size. Fields overwrite them, each at byte `at`: a scalar, an address, or a
// tensor map, which starts at a multiple of 64. Fields do not overlap.
//
// A tensor map describes a tensor in a named buffer, `offset` bytes from its start (default 0), as
// in tartan/runtime/tensor_map.h: dimension 0 is the innermost one, extents and box count elements,
// strides are bytes, of dimensions 1 and up. Optional: `swizzle` (0, 32, 64 or 128 bytes),
// `promotion` (0, 64, 128 or 256 bytes), `fill` ("zero" or "nan"), `element_strides`,
// `flush_subnormals` (true or false).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/comparison.h"
#include "tartan/runtime/device.h"
#include "tartan/runtime/tensor_map.h"
#include "tartan/support/source.h"

namespace tartan::inline TARTAN_ABI {

struct ManifestBuffer {
  std::string name;
  std::size_t size = 0;             // bytes
  std::vector<std::byte> contents;  // of `size` bytes; empty: filled
  std::uint8_t fill = 0;
  bool filled = false;         // the manifest states `fill`
  bool uninitialized = false;  // zeros that count as never written
  std::optional<std::vector<std::byte>> expect;
  Comparison comparison;
};

/// A tensor map whose address is known once the buffers are allocated.
struct ManifestTensorMap {
  std::string buffer;
  std::uint64_t offset = 0;  // bytes
  TensorMap map;             // address 0
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
  std::vector<ManifestLaunch> then;

  /// All of it: those of the launches' parameters, in their order, then `buffers`.
  std::vector<const ManifestBuffer*> all_buffers() const;
};

/// Reads a manifest and every file it names. Every wrong field and every unreadable file gives a
/// diagnostic.
Result<Manifest> read_manifest(const std::string& path);

/// The same for a text; file names are relative to the folder of the source's name.
Result<Manifest> parse_manifest(const Source& source);

}  // namespace tartan::inline TARTAN_ABI
