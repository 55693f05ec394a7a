// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries as buffers, on the CUDA driver's test double.
#include "tartan/runtime/dlpack.h"

#include <gtest/gtest.h>

#include "tests/runtime/cuda_double.h"

namespace tartan {
namespace {

// dlpack.h of DLPack 1.1.
struct DLDevice {
  int device_type;
  std::int32_t device_id;
};
struct DLDataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};

class Dlpack : public test::CudaDouble {
 protected:
  std::vector<std::uint16_t> memory = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::int64_t shape[2] = {3, 4}, strides[2] = {4, 1};
  DLTensor tensor{memory.data(), {2, 0}, 2, {2, 16, 1}, shape, nullptr, 0};
};

TEST_F(Dlpack, TensorIsViewed) {
  const auto view = view_tensor(*device, tensor, {"A", Type::f16, {3, 4}});
  ASSERT_TRUE(view) << view.diags().text();
  EXPECT_EQ(view->type, Type::f16);
  EXPECT_EQ(view->shape, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(view->strides, (std::vector<std::int64_t>{4, 1}));
  EXPECT_EQ(view->buffer.address(), reinterpret_cast<std::uint64_t>(memory.data()));
  EXPECT_EQ(view->buffer.size(), 24u);
  tensor.strides = strides;
  EXPECT_TRUE(view_tensor(*device, tensor, {"A", Type::none, {-1, 4}}));
}

TEST_F(Dlpack, OffsetAndStridesCount) {
  shape[0] = 2, shape[1] = 2;
  strides[0] = 6, strides[1] = 2;
  tensor.strides = strides;
  tensor.byte_offset = 4;
  const auto view = view_tensor(*device, tensor, {.contiguous = false});
  ASSERT_TRUE(view) << view.diags().text();
  EXPECT_EQ(*view->buffer.read_all<std::uint16_t>(),
            (std::vector<std::uint16_t>{3, 4, 5, 6, 7, 8, 9, 10, 11}))
      << "from the first element to the last";
  shape[0] = 0;
  EXPECT_EQ(view_tensor(*device, tensor, {.contiguous = false})->buffer.size(), 0u);
}

TEST_F(Dlpack, AllThatIsWrongIsReported) {
  strides[0] = 5;
  tensor.strides = strides;
  tensor.device.device_type = 1;
  EXPECT_EQ(
      complaints(view_tensor(*device, tensor, {"A", Type::bf16, {3, 5}})),
      "error: A: expected a tensor on a CUDA device, found one on the CPU [foreign-device]\n"
      "error: A: wrong element type: expected bf16, found f16 [launch-arguments]\n"
      "error: A: wrong shape: expected 3 x 5, found 3 x 4 [launch-arguments]\n"
      "error: A: not contiguous: expected stride 4 of dimension 0, found 5; call contiguous() "
      "on it [launch-arguments]");
  tensor.dtype = {2, 32, 4};
  strides[1] = -1;
  const std::string text = complaints(view_tensor(*device, tensor, {.contiguous = false}));
  EXPECT_NE(text.find("unsupported element type: code 2 of DLPack, 32 bits, 4 lanes"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("negative stride of dimension 1: -1"), std::string::npos) << text;
}

TEST_F(Dlpack, OneElementHasAnyStride) {
  shape[0] = 1;
  strides[0] = 77;
  tensor.strides = strides;
  EXPECT_EQ(view_tensor(*device, tensor)->buffer.size(), 8u);
}

TEST_F(Dlpack, Types) {
  const std::pair<DLDataType, Type> types[] = {{{4, 16, 1}, Type::bf16}, {{2, 32, 1}, Type::f32},
                                               {{0, 8, 1}, Type::s8},    {{1, 8, 1}, Type::u8},
                                               {{10, 8, 1}, Type::e4m3}, {{12, 8, 1}, Type::e5m2},
                                               {{0, 32, 1}, Type::s32}};
  for (const auto& [dtype, type] : types) {
    tensor.dtype = dtype;
    shape[0] = 1, shape[1] = 1;
    EXPECT_EQ(view_tensor(*device, tensor)->type, type);
  }
  tensor.dtype = {2, 32, 1};
  EXPECT_TRUE(view_tensor(*device, tensor, {.type = Type::tf32})) << "as PyTorch has it";
}

TEST_F(Dlpack, TensorsOfOtherGpusAndEmulatorsAreRefused) {
  fake.memory_owner = 1;
  EXPECT_NE(complaints(view_tensor(*device, tensor)).find("is memory of GPU 1"), std::string::npos);
  auto emulator = Device::open("emulator");
  EXPECT_NE(complaints(view_tensor(*emulator, tensor)).find("allocate a buffer"),
            std::string::npos);
}

}  // namespace
}  // namespace tartan
