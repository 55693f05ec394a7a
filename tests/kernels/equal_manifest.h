// SPDX-License-Identifier: Apache-2.0
// tests/kernels/equal_manifest.h - a compiled kernel's launch, as `tartan equal` takes it.
#pragma once

#include <gtest/gtest.h>

#include <tartan/tartan.h>

#include <cstring>

#include "runtime/equal.h"
#include "tartan/runtime/tensor_map.h"

namespace tartan::testing_equal {

/// A buffer by its name and size, or a scalar.
struct Argument {
  std::string buffer;
  std::size_t bytes = 0;
  std::vector<std::byte> scalar = {};

  Argument(std::string buffer, std::size_t bytes) : buffer(std::move(buffer)), bytes(bytes) {}
  template <typename T>
  requires std::is_arithmetic_v<T> Argument(T value) : scalar(sizeof value) {
    std::memcpy(scalar.data(), &value, sizeof value);
  }
};

inline Manifest manifest_of(const Compiled& compiled, Dim3 grid,
                            const std::vector<Argument>& arguments) {
  constexpr std::uint64_t apart = std::uint64_t{1} << 32;  // of addresses that stand for buffers
  Manifest out;
  out.name = std::string(compiled.target.arch.text()) + ".json";
  out.ptx = Source(std::string(compiled.target.arch.text()) + ".ptx", compiled.ptx);
  out.kernel = compiled.name;
  out.launch = {.grid = grid,
                .block = {static_cast<std::uint32_t>(compiled.block)},
                .dynamic_shared = static_cast<std::uint32_t>(compiled.dynamic_shared)};
  Arguments given;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    ManifestParam param;
    const Argument& each = arguments[i];
    if (each.buffer.empty()) {
      param.scalar = each.scalar;
      given.add_bytes(each.scalar);
    } else {
      param.buffer.emplace();
      param.buffer->name = each.buffer;
      param.buffer->size = each.bytes;
      given.add((i + 1) * apart);
    }
    out.params.push_back(std::move(param));
  }
  const auto all = arguments_of(compiled, given);
  EXPECT_TRUE(all) << (all ? "" : all.diags().text());
  for (std::size_t i = arguments.size(); all && i < all->size(); ++i) {
    TensorMap map = *TensorMap::decode(std::span<const std::byte, 128>((*all)[i].data(), 128));
    ManifestParam param;
    param.tensor_map.emplace();
    param.tensor_map->buffer = arguments[map.address / apart - 1].buffer;
    param.tensor_map->offset = map.address % apart;
    map.address = 0;
    param.tensor_map->map = std::move(map);
    out.params.push_back(std::move(param));
  }
  return out;
}

inline Compiled compiled_for(const Kernel& kernel, std::string_view target) {
  Target parsed = *Target::parse(target);
  parsed.ptx = newest_version;
  auto out = compile(kernel, parsed);
  EXPECT_TRUE(out) << target << ": " << (out ? "" : out.diags().text());
  return out ? *out : Compiled{};
}

}  // namespace tartan::testing_equal
