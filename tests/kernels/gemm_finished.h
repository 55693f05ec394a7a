// SPDX-License-Identifier: Apache-2.0
// tests/kernels/gemm_finished.h - a GEMM with an epilogue, and what it must give.
#pragma once

#include "tests/kernels/activations.h"
#include "tests/kernels/gemm_run.h"

namespace tartan::testing_gemm {

// To nearest even, saturated, as in the manual's cvt.rn.satfinite (and as cvt.rn of bf16, whose
// range nothing here exceeds).
inline double rounded(Type type, double x) {
  const int mantissa = type == bf16         ? 7
                       : type == Type::e4m3 ? 3
                                            : 2,
            lowest = type == bf16         ? -126
                     : type == Type::e4m3 ? -6
                                          : -14;
  const double largest = type == bf16 ? 1e30 : type == Type::e4m3 ? 448 : 57344;
  int exponent = 0;
  std::frexp(x, &exponent);  // x = f * 2^exponent, f from 1/2 on
  const double unit = std::ldexp(1, std::max(exponent - 1, lowest) - mantissa);
  return std::clamp(std::nearbyint(x / unit) * unit, -largest, largest);
}

/// Every part of an epilogue, with an activation that is exact.
inline constexpr kernels::Epilogue every_part{.alpha = true,
                                              .beta = true,
                                              .row_scales = true,
                                              .column_scales = true,
                                              .bias = true,
                                              .activation = kernels::Activation::relu,
                                              .residual = true};

// A product and its epilogue's values: powers of two times small integers, so that everything but
// the activations is exact.
struct Finished {
  Product product;
  static constexpr double alpha = 0.5, beta = 2, before = 3;
  double row_scale(int i) const { return 0.25 * (i % 3 + 1); }
  double column_scale(int j) const { return j % 2 ? 0.5 : 0.125; }
  double bias(int j) const { return j % 7 - 3; }
  double residual(int i, int j) const { return (i + j) % 5 - 2; }

  Bytes vector(int count, const std::function<double(int)>& value) const {
    const Type type = product.options.accumulator == f64 ? f64 : f32;
    Bytes out;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t word = testing_numbers::float_bits(type, value(i));
      for (int byte = 0; byte < bits(type) / 8; ++byte)
        out.push_back(static_cast<std::byte>(word >> 8 * byte));
    }
    return out;
  }

  void add_extras(Device& device, Arguments& arguments, std::vector<Buffer>& buffers) const {
    const kernels::Epilogue& epilogue = product.options.epilogue;
    const bool doubles = product.options.accumulator == f64;
    const auto number = [&](double x) {
      doubles ? arguments.add(x) : arguments.add(static_cast<float>(x));
    };
    const auto memory = [&](const Bytes& bytes) {
      buffers.push_back(buffer_of(device, bytes));
      arguments.add(buffers.back());
    };
    if (epilogue.alpha) number(alpha);
    if (epilogue.beta) number(beta);
    if (epilogue.row_scales) memory(vector(product.m, [&](int i) { return row_scale(i); }));
    if (epilogue.column_scales) memory(vector(product.n, [&](int j) { return column_scale(j); }));
    if (epilogue.bias) memory(vector(product.n, [&](int j) { return bias(j); }));
    if (epilogue.residual) {
      std::vector<int> values;
      for (int i = 0; i < product.m; ++i)
        for (int j = 0; j < product.n; ++j) values.push_back(static_cast<int>(residual(i, j)));
      memory(testing_numbers::encode(product.options.c, values));
    }
  }

  Launch launch() const {
    Launch out = product.launch();
    out.arguments = [this](Device& device, Arguments& arguments, std::vector<Buffer>& buffers) {
      product.add_inputs(device, arguments, buffers);
      Buffer c = product.add_output(device, arguments);
      const std::vector<int> old(static_cast<std::size_t>(product.m) * product.n,
                                 static_cast<int>(before));
      EXPECT_TRUE(c.write(testing_numbers::encode(product.options.c, old)));
      add_extras(device, arguments, buffers);
      return c;
    };
    return out;
  }

  double expected(int i, int j) const {
    const kernels::Epilogue& epilogue = product.options.epilogue;
    double x = product.sum(i, j);
    if (epilogue.alpha) x *= alpha;
    if (epilogue.row_scales) x *= row_scale(i);
    if (epilogue.column_scales) x *= column_scale(j);
    if (epilogue.beta) x += beta * before;
    if (epilogue.bias) x += bias(j);
    x = activated(epilogue.activation, x);
    if (epilogue.residual) x += residual(i, j);
    const Type c = product.options.c;
    if (c == s8) return std::nearbyint(std::clamp(x, -128.0, 127.0));
    if (c == u8) return std::nearbyint(std::clamp(x, 0.0, 255.0));
    if (c == bf16 || c == Type::e4m3 || c == Type::e5m2) return rounded(c, x);
    return x;
  }
  bool exact() const {
    const kernels::Activation activation = product.options.epilogue.activation;
    return activation == kernels::Activation::none || activation == kernels::Activation::relu;
  }
  int wrong(double tolerance, const char* target = "sm_80") const {
    return product.wrong(
        run(kernels::gemm(product.options), testing_gemm::target(target), launch(), exact()),
        [&](int i, int j) { return expected(i, j); }, tolerance);
  }
};

}  // namespace tartan::testing_gemm
