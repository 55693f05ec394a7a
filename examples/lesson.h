// SPDX-License-Identifier: Apache-2.0
// examples/lesson.h - shared by the lessons: opens a device, and compiles and runs a kernel on
// arrays.
//
// A lesson runs on the first GPU, or on the emulator without one; `./02_corner emulator` requests
// one of them. The output is the same on both; lesson 3 omits stmatrix before sm_90.
#pragma once

#include <tartan/tartan.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace lesson {

/// The value; without one, prints the diagnostics and exits. (A Status is a Result<Done>.)
template <typename T>
T must(tartan::Result<T> result) {
  if (result) return std::move(*result);
  std::cerr << result.diags().text();
  std::exit(1);
}

inline tartan::Device open_device(int argc, char** argv) {
  tartan::Device device = must(tartan::Device::open(argc > 1 ? argv[1] : "auto"));
  std::cerr << "on " << device.name() << '\n';
  return device;
}

/// f16 bits of a small integer, and back: the numbers of the lessons.
inline std::uint16_t half(int value) {
  if (value == 0) return 0;
  const int magnitude = value < 0 ? -value : value;
  int exponent = 0;
  while (magnitude >> (exponent + 1)) ++exponent;
  const int fraction = exponent <= 10 ? (magnitude << (10 - exponent)) & 1023
                                      : (magnitude >> (exponent - 10)) & 1023;
  return static_cast<std::uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 15) << 10 | fraction);
}
inline float value(std::uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  float out = exponent ? static_cast<float>(1024 + fraction) : static_cast<float>(fraction);
  for (int i = exponent ? exponent : 1; i < 25; ++i) out /= 2;
  for (int i = 25; i < exponent; ++i) out *= 2;
  return half & 0x8000 ? -out : out;
}

/// Within a kernel: the two halves of a register, written from element `first` of a row of `out`
/// on.
inline void write_halves(tartan::Builder& k, const tartan::Global& out, const tartan::Scalar& row,
                         tartan::Scalar first, const tartan::Scalar& word, tartan::Type type) {
  const auto [low, high] = k.halves(word, type);
  k.write(out, row, first, low);
  k.write(out, row, first + 1, high);
}

/// Compiles `kernel` for the device and runs one grid of it: first the inputs, then one output of
/// `count` elements, in the kernel's parameter order if the output is last, or with the output
/// first for kernels that have no input.
template <typename Out, typename In = std::uint16_t>
std::vector<Out> run(tartan::Device& device, const tartan::Kernel& kernel, std::size_t count,
                     const std::vector<std::vector<In>>& inputs = {}, tartan::Dim3 grid = {}) {
  const tartan::Compiled compiled = must(tartan::compile(kernel, device.arch()));
  tartan::LoadedKernel loaded =
      must(must(device.load(compiled.ptx, compiled.name)).kernel(compiled.name));
  tartan::Arguments arguments;
  std::vector<tartan::Buffer> buffers;
  for (const std::vector<In>& input : inputs) {
    buffers.push_back(must(device.allocate(input.size() * sizeof(In))));
    must(buffers.back().write(input));
    arguments.add(buffers.back());
  }
  tartan::Buffer out = must(device.allocate(count * sizeof(Out)));
  must(out.fill(0xFF));
  arguments.add(out);
  must(tartan::launch(loaded, compiled, grid, arguments));
  must(device.synchronize());
  return must(out.template read_all<Out>());
}

}  // namespace lesson
