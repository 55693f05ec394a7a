// SPDX-License-Identifier: Apache-2.0
// The transposing copy.
#include "tests/kernels/gemm_run.h"

namespace tartan {
namespace {

using testing_gemm::Bytes;
using testing_gemm::Launch;

TEST(Transpose, AnySize) {
  for (const char* target : {"sm_75", "sm_90"})
    for (const auto& [rows, cols] : {std::pair{1, 1},
                                     {1, 65},
                                     {7, 16},
                                     {16, 200},
                                     {63, 7},
                                     {64, 64},
                                     {65, 63},
                                     {127, 1},
                                     {200, 127},
                                     {8, 136}}) {
      SCOPED_TRACE(fmt::format("{} {} x {}", target, rows, cols));
      std::vector<std::uint16_t> in;
      for (int i = 0; i < rows * cols; ++i) in.push_back(static_cast<std::uint16_t>(i * 7 + 1));
      Bytes bytes(in.size() * 2);
      std::memcpy(bytes.data(), in.data(), bytes.size());
      const int multiple =
          std::min(testing_gemm::largest_power(rows), testing_gemm::largest_power(cols));
      const Launch launch{
          {static_cast<unsigned>(cols + 63) / 64, static_cast<unsigned>(rows + 63) / 64},
          [&, rows = rows, cols = cols](Device& device, Arguments& arguments,
                                        std::vector<Buffer>& buffers) {
            arguments.add(rows).add(cols);
            buffers.push_back(testing_gemm::buffer_of(device, bytes));
            arguments.add(buffers.back());
            Buffer out = *device.allocate(bytes.size());
            arguments.add(out);
            return out;
          }};
      const Bytes got =
          testing_gemm::run(kernels::transpose(multiple), testing_gemm::target(target), launch);
      ASSERT_EQ(got.size(), bytes.size());
      int wrong = 0;
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < cols; ++j)
          wrong += std::memcmp(&got[static_cast<std::size_t>(j * rows + i) * 2],
                               &in[static_cast<std::size_t>(i * cols + j)], 2) != 0;
      EXPECT_EQ(wrong, 0);
    }
}

}  // namespace
}  // namespace tartan
