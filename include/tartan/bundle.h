// SPDX-License-Identifier: Apache-2.0
// tartan/bundle.h - bundles: one file with a module for each of several targets, as PTX and, if
// NVIDIA's assembler was there, as machine code (cubin). offline_main() of tartan/offline.h writes
// them.
//
//   Result<Bundle> bundle = Bundle::read("kernels.fatbin");
//   Result<Module> module = load(device, *bundle);           // what fits the device best
//   Result<LoadedKernel> kernel = module->kernel("product");
//   auto prepared = kernels::prepare_product(*kernels::best(device.arch().sm), {64}, m, n, a, b);
//   Status launched = launch(*kernel, prepared);             // of the header beside the bundle
//
// The format is NVIDIA's own fatbin, so that a program without Tartan hands the file's bytes to
// cuModuleLoadData and the driver picks. docs/offline.md has its layout.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tartan/isa/target.h"
#include "tartan/runtime/device.h"
#include "tartan/runtime/tensor_map.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI {

/// A module of a bundle, for one target.
struct BundleImage {
  Arch arch;
  bool cubin = false;  // machine code in place of PTX text
  std::string bytes;   // the text, without a zero at its end; or the ELF file
  bool operator==(const BundleImage&) const = default;
};

/// A module for each of several targets.
class Bundle {
 public:
  Bundle() = default;
  explicit Bundle(std::vector<BundleImage> images) : images_(std::move(images)) {}

  /// Reads a fatbin of Tartan or of NVIDIA's `fatbinary --compress=false`; images that are neither
  /// PTX nor cubin are left out. `name` names it in diagnostics. What is damaged, truncated or
  /// compressed is refused.
  static Result<Bundle> parse(std::string_view bytes, const std::string& name = "<bundle>");
  /// The same from a file.
  static Result<Bundle> read(const std::string& path);
  /// The fatbin: the same bytes for the same images.
  std::string bytes() const;

  const std::vector<BundleImage>& images() const { return images_; }
  /// The PTX for a device of compute capability sm / 10: the highest target that it runs. sm_90a
  /// runs on sm_90 alone, sm_100f on its family (sm_100 to sm_109 from there on), sm_80 on all from
  /// there on; of the same number, sm_90a comes before sm_90. Null: none runs.
  const BundleImage* best(int sm) const;
  /// The machine code for exactly that architecture, if the best PTX has some.
  const BundleImage* best_cubin(int sm) const;

 private:
  std::vector<BundleImage> images_;
};

/// Whether a module for `target` runs on a device of compute capability sm / 10.
constexpr bool runs_on(Arch target, int sm) {
  if (target.suffix == 'a') return target.sm == sm;
  if (target.suffix == 'f') return target.sm <= sm && target.sm / 10 == sm / 10;
  return target.sm <= sm;
}

/// Loads the best module of the bundle. On a GPU that is machine code, if there is some for exactly
/// its architecture and the driver takes it; else the driver compiles the PTX. That it refused
/// machine code, and why, is a warning, added to `warnings`: the kernel is right, and loading it
/// takes longer. The emulator runs the PTX; it computes as DeviceOptions::hardware or, without it,
/// as sm_90.
///
///   Diags warnings;
///   const auto module = load(device, bundle, "kernels.fatbin", &warnings);
Result<Module> load(Device& device, const Bundle& bundle, const std::string& name = "<bundle>",
                    Diags* warnings = nullptr);

/// Starts a kernel with the numbers and arguments that a function prepare_...() of a generated
/// header has prepared, tensor maps included. Its mistakes, if any, are the diagnostics.
template <typename Prepared>
requires requires(const Prepared& x) {
  x.arguments[0].bytes;
  x.maps[0].box;
}
Status launch(LoadedKernel& kernel, const Prepared& prepared, const Stream* stream = nullptr) {
  if (!prepared.error.empty()) return {"launch-arguments"_rule, prepared.error};
  Arguments arguments;
  for (int i = 0; i < prepared.count; ++i)
    arguments.add_bytes(
        std::as_bytes(std::span(prepared.arguments[i].bytes, prepared.arguments[i].size)));
  for (int i = 0; i < prepared.map_count; ++i) {
    const auto& from = prepared.maps[i];
    // In the order of CUtensorMapDataType.
    constexpr Type types[] = {Type::u8,  Type::u16, Type::u32, Type::s32, Type::u64,
                              Type::s64, Type::f16, Type::f32, Type::f64, Type::bf16};
    const auto rank = static_cast<std::size_t>(from.rank);
    TensorMap map{.type = from.type == 11 ? Type::tf32 : types[from.type]};
    map.address = from.address;
    map.extents.assign(from.extents, from.extents + rank);
    map.strides.assign(from.strides, from.strides + rank - 1);
    map.box.assign(from.box, from.box + rank);
    map.swizzle = static_cast<TensorMap::Swizzle>(from.swizzle);
    map.promotion = static_cast<TensorMap::Promotion>(from.promotion);
    const auto bytes = map.encode();
    if (!bytes) return bytes.diags();
    arguments.add(*bytes);
  }
  return kernel.launch({.grid = {prepared.grid.x, prepared.grid.y, prepared.grid.z},
                        .block = {prepared.block.x, prepared.block.y, prepared.block.z},
                        .dynamic_shared = prepared.shared},
                       arguments, stream);
}

}  // namespace tartan::TARTAN_ABI
