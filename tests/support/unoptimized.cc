// SPDX-License-Identifier: Apache-2.0
#include "tests/support/unoptimized.h"

#include <cstring>

#include "runtime/cuda/context.h"

namespace tartan::test {

std::vector<std::byte> assemble_unoptimized(const std::string& ptx) {
  const auto context = cuda::Context::open(0);
  if (!context) return {};
  const cuda::Driver& driver = (*context)->driver();
  cuda::JitOption option = cuda::JitOption::OptimizationLevel;
  void* level = nullptr;  // 0: a number in place of a pointer
  cuda::LinkHandle link = nullptr;
  std::vector<std::byte> cubin;
  void* image = nullptr;
  std::size_t bytes = 0;
  const auto done = [](cuda::Code code) { return code == cuda::Code::Success; };
  if (!done((*context)->invoke(driver.link_create, 1u, &option, &level, &link))) return {};
  if (done((*context)->invoke(driver.link_add, link, cuda::jit_input_ptx,
                              static_cast<void*>(const_cast<char*>(ptx.c_str())), ptx.size() + 1,
                              "unoptimized", 0u, static_cast<cuda::JitOption*>(nullptr),
                              static_cast<void**>(nullptr))) &&
      done((*context)->invoke(driver.link_complete, link, &image, &bytes))) {
    cubin.resize(bytes);
    std::memcpy(cubin.data(), image, bytes);
  }
  (*context)->invoke(driver.link_destroy, link);
  return cubin;
}

}  // namespace tartan::test
