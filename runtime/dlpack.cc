// SPDX-License-Identifier: Apache-2.0
#include "tartan/runtime/dlpack.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tartan::TARTAN_ABI {
namespace {

// DLDeviceType and DLDataTypeCode of dlpack.h.
enum DlpackDevice { dl_cpu = 1, dl_cuda = 2, dl_cuda_host = 3, dl_cuda_managed = 13 };
struct DlpackType {
  int code, bits;
  Type type;
};
constexpr int dl_int = 0, dl_uint = 1, dl_float = 2, dl_bfloat = 4, dl_e4m3fn = 10, dl_e5m2 = 12,
              dl_e8m0fnu = 14;
constexpr DlpackType dlpack_types[] = {
    {dl_float, 16, Type::f16},  {dl_bfloat, 16, Type::bf16}, {dl_float, 32, Type::f32},
    {dl_float, 64, Type::f64},  {dl_int, 8, Type::s8},       {dl_int, 16, Type::s16},
    {dl_int, 32, Type::s32},    {dl_int, 64, Type::s64},     {dl_uint, 8, Type::u8},
    {dl_uint, 16, Type::u16},   {dl_uint, 32, Type::u32},    {dl_uint, 64, Type::u64},
    {dl_e4m3fn, 8, Type::e4m3}, {dl_e5m2, 8, Type::e5m2},    {dl_e8m0fnu, 8, Type::ue8m0},
};

Type type_of(const DlpackFields& tensor) {
  if (tensor.type_lanes == 1)
    for (const DlpackType& row : dlpack_types)
      if (row.code == tensor.type_code && row.bits == tensor.type_bits) return row.type;
  return Type::none;
}

using Extents = std::vector<std::int64_t>;

Extents row_major(const Extents& shape) {
  Extents strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<std::int64_t>(shape[i], 1);
  return strides;
}

std::string text(const Extents& numbers) {
  std::string out;
  for (const std::int64_t each : numbers)
    out += (out.empty() ? "" : " x ") + (each < 0 ? std::string("any") : fmt::format("{}", each));
  return out.empty() ? "no dimension" : out;
}

bool fits(const Extents& shape, const Extents& expected) {
  return expected.empty() || std::ranges::equal(shape, expected, [](auto found, auto wanted) {
           return wanted < 0 || found == wanted;
         });
}

// Elements from the first to the last; 0 where an extent is 0.
std::uint64_t span_of(const TensorView& view) {
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == 0) return 0;
    last +=
        static_cast<std::uint64_t>(view.shape[i] - 1) * static_cast<std::uint64_t>(view.strides[i]);
  }
  return last + 1;
}

class TensorChecks {
 public:
  TensorChecks(const ExpectedTensor& expected, const DlpackFields& tensor)
      : expected_(expected), tensor_(tensor) {}

  void device(const Device& device) {
    const int found = tensor_.device_type;
    if (device.emulated())
      report("foreign-device"_rule,
             "the emulator has memory of its own: allocate a buffer, and write() the elements");
    else if (found != dl_cuda && found != dl_cuda_managed && found != dl_cuda_host)
      report("foreign-device"_rule,
             fmt::format("expected a tensor on a CUDA device, found {}",
                         found == dl_cpu ? "one on the CPU"
                                         : fmt::format("device type {} of DLPack", found)));
  }

  void type(Type found) {
    const Type wanted = expected_.type;
    if (found == Type::none)
      report("launch-arguments"_rule,
             fmt::format("unsupported element type: code {} of DLPack, {} bits, {} lanes",
                         tensor_.type_code, tensor_.type_bits, tensor_.type_lanes));
    else if (wanted != Type::none && found != wanted &&
             !(wanted == Type::tf32 && found == Type::f32))
      report("launch-arguments"_rule,
             fmt::format("wrong element type: expected {}, found {}", name(wanted), name(found)));
  }

  void shape(const TensorView& view) {
    if (std::ranges::any_of(view.shape, [](auto extent) { return extent < 0; }))
      report("launch-arguments"_rule, fmt::format("negative extent: {}", text(view.shape)));
    else if (!fits(view.shape, expected_.shape))
      report("launch-arguments"_rule, fmt::format("wrong shape: expected {}, found {}",
                                                  text(expected_.shape), text(view.shape)));
  }

  // The stride of a dimension with one element means nothing.
  void strides(const TensorView& view) {
    const Extents compact = row_major(view.shape);
    for (std::size_t i = 0; i < view.shape.size(); ++i) {
      if (view.shape[i] <= 1) continue;
      if (view.strides[i] < 0)
        report("launch-arguments"_rule,
               fmt::format("negative stride of dimension {}: {}", i, view.strides[i]));
      else if (expected_.contiguous && view.strides[i] != compact[i])
        report("launch-arguments"_rule,
               fmt::format("not contiguous: expected stride {} of dimension {}, found {}; "
                           "call contiguous() on it",
                           compact[i], i, view.strides[i]));
    }
  }

  const Diags& diags() const { return diags_; }

 private:
  void report(const Rule& rule, std::string_view message) {
    diags_.report(rule, {}, fmt::format("{}: {}", expected_.name, message));
  }

  const ExpectedTensor& expected_;
  const DlpackFields& tensor_;
  Diags diags_;
};

}  // namespace

Result<TensorView> view_tensor(Device& device, const DlpackFields& tensor,
                               const ExpectedTensor& expected, std::shared_ptr<void> keep) {
  TensorView view;
  view.type = type_of(tensor);
  view.shape.assign(tensor.shape.begin(), tensor.shape.end());
  view.strides.assign(tensor.strides.begin(), tensor.strides.end());
  if (view.strides.empty()) view.strides = row_major(view.shape);
  TensorChecks checks(expected, tensor);
  checks.device(device);
  checks.type(view.type);
  checks.shape(view);
  checks.strides(view);
  if (!checks.diags().ok()) return checks.diags();
  const std::uint64_t bytes = span_of(view) * static_cast<std::uint64_t>(bits(view.type)) / 8;
  auto buffer = device.view(reinterpret_cast<std::uint64_t>(tensor.data) + tensor.byte_offset,
                            bytes, std::move(keep));
  if (!buffer) return buffer.diags();
  view.buffer = std::move(*buffer);
  return view;
}

}  // namespace tartan::TARTAN_ABI
