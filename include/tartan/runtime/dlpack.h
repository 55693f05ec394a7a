// SPDX-License-Identifier: Apache-2.0
// tartan/runtime/dlpack.h - tensors of other libraries (PyTorch, CuPy, JAX) as buffers, without a
// copy, through the structures of DLPack.
//
//   #include <dlpack/dlpack.h>             // yours: any version of it
//   DLManagedTensor* managed = ...;        // of torch.utils.dlpack.to_dlpack()
//   const auto a = view_tensor(device, managed->dl_tensor, {"A", f16, {m, k}});
//   if (!a) std::cerr << a.diags().text(); // another type, shape, stride or GPU: all that is wrong
//   arguments.add(a->buffer);
//
// The tensor's memory must live as long as the buffer: `keep` of view_tensor() is released with the
// last copy of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tartan/isa/type.h"
#include "tartan/runtime/device.h"

namespace tartan::TARTAN_ABI {

/// What a kernel expects of a tensor.
struct ExpectedTensor {
  std::string name = "tensor";           // in diagnostics
  Type type = Type::none;                // none: any that Tartan has
  std::vector<std::int64_t> shape = {};  // -1: any extent; empty: any shape
  /// Row-major without gaps; else strides may be any that are not negative, and the kernel is given
  /// TensorView::strides.
  bool contiguous = true;
};

/// A tensor in device memory. The buffer starts at its first element and ends after its last.
struct TensorView {
  Buffer buffer;
  Type type = Type::none;
  std::vector<std::int64_t> shape, strides;  // strides in elements
};

/// The fields of a DLTensor.
struct DlpackFields {
  const void* data = nullptr;
  int device_type = 0;                                // kDLCUDA is 2
  int type_code = 0, type_bits = 0, type_lanes = 0;   // of DLDataType
  std::span<const std::int64_t> shape, strides = {};  // strides in elements; none: row-major
  std::uint64_t byte_offset = 0;
};

/// The tensor as a buffer of `device`, or all that differs from what is expected. The emulator has
/// memory of its own, in which there are no tensors of others: copy them with Buffer::write().
Result<TensorView> view_tensor(Device& device, const DlpackFields& tensor,
                               const ExpectedTensor& expected = {},
                               std::shared_ptr<void> keep = {});

/// Same for a DLTensor, whatever version of DLPack's header declares it.
template <typename Tensor>
requires requires(const Tensor& t) {
  t.device.device_type, t.dtype.lanes, t.shape[0], t.strides[0], t.ndim, t.byte_offset;
}
Result<TensorView> view_tensor(Device& device, const Tensor& tensor,
                               const ExpectedTensor& expected = {},
                               std::shared_ptr<void> keep = {}) {
  const auto rank = static_cast<std::size_t>(tensor.ndim);
  DlpackFields fields{.data = tensor.data,
                      .device_type = static_cast<int>(tensor.device.device_type),
                      .type_code = tensor.dtype.code,
                      .type_bits = tensor.dtype.bits,
                      .type_lanes = tensor.dtype.lanes,
                      .shape = {tensor.shape, rank},
                      .byte_offset = tensor.byte_offset};
  if (tensor.strides) fields.strides = {tensor.strides, rank};
  return view_tensor(device, fields, expected, std::move(keep));
}

}  // namespace tartan::TARTAN_ABI
