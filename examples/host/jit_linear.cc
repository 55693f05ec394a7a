// SPDX-License-Identifier: Apache-2.0
// A host program that compiles while it runs: a linear layer, Y = gelu(X * W + bias), for the sizes
// that requests happen to have. Each set of sizes is compiled once; a machine without a GPU
// computes the same on the emulator. The program needs NVIDIA's driver or nothing.
//
//   jit_linear [DEVICE]     cuda, cuda:1, emulator; without: the first GPU, else the emulator
#include <tartan/tartan.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <vector>

using namespace tartan;

namespace {

struct Sizes {
  int rows, out, in;  // X: rows x in; W: in x out, each column contiguous; Y: rows x out
  auto operator<=>(const Sizes&) const = default;
};

// A kernel for some sizes, on a device.
struct Layer {
  kernels::Gemm options;
  Compiled compiled;
  LoadedKernel kernel;
};

Result<Layer> make_layer(Device& device, const Sizes& sizes) {
  kernels::Gemm options{.m = sizes.rows, .n = sizes.out, .k = sizes.in, .c = f16};
  options.epilogue = {.bias = true, .activation = kernels::Activation::gelu};
  options = kernels::tuned(options, kernels::Gpu::of(device));
  options.splits = 1, options.stream_blocks = 0;  // one launch, no workspace
  auto compiled = compile(kernels::gemm(options), device.arch());
  if (!compiled) return compiled.diags();
  const auto module = device.load(compiled->ptx, compiled->name);
  if (!module) return module.diags();
  auto kernel = module->kernel(compiled->name);
  if (!kernel) return kernel.diags();
  return Layer{options, std::move(*compiled), std::move(*kernel)};
}

class Linear {
 public:
  explicit Linear(Device device) : device_(std::move(device)) {}

  // The layer's output for `x`, which has sizes.rows rows.
  Result<std::vector<host::f16>> operator()(const Sizes& sizes, const std::vector<host::f16>& x,
                                            const std::vector<host::f16>& w,
                                            const std::vector<float>& bias) {
    auto found = layers_.find(sizes);
    if (found == layers_.end()) {
      auto made = make_layer(device_, sizes);
      if (!made) return made.diags();
      found = layers_.emplace(sizes, std::move(*made)).first;
    }
    Layer& layer = found->second;
    auto stream = device_.stream();
    auto dx = upload(x, *stream), dw = upload(w, *stream);
    auto db = upload(bias, *stream);
    auto dy =
        device_.allocate(static_cast<std::size_t>(sizes.rows) * sizes.out * sizeof(host::f16));
    for (const Result<Buffer>* each : {&dx, &dw, &db, &dy})
      if (!*each) return each->diags();
    const unsigned blocks = layer.options.grid_x(sizes.rows, sizes.out, device_.multiprocessors());
    const auto arguments = Arguments().add(*dx).add(*dw).add(*dy).add(*db);
    if (auto status = launch(layer.kernel, layer.compiled, {blocks}, arguments, &*stream); !status)
      return status.diags();
    std::vector<host::f16> y(static_cast<std::size_t>(sizes.rows) * sizes.out);
    if (auto status = dy->read(std::as_writable_bytes(std::span(y)), *stream); !status)
      return status.diags();
    if (auto status = stream->synchronize(); !status) return status.diags();
    return y;
  }

  std::size_t compiled() const { return layers_.size(); }

 private:
  template <typename T>
  Result<Buffer> upload(const std::vector<T>& values, const Stream& stream) {
    auto buffer = device_.allocate(values.size() * sizeof(T));
    if (!buffer) return buffer;
    if (auto status = buffer->write(std::as_bytes(std::span(values)), stream); !status)
      return status.diags();
    return buffer;
  }

  Device device_;
  std::map<Sizes, Layer> layers_;
};

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

// The largest difference from the layer's formula in double, of outputs up to about 10.
double largest_difference(const Sizes& sizes, const std::vector<host::f16>& x,
                          const std::vector<host::f16>& w, const std::vector<float>& bias,
                          const std::vector<host::f16>& y) {
  double largest = 0;
  for (int i = 0; i < sizes.rows; ++i)
    for (int j = 0; j < sizes.out; ++j) {
      double sum = bias[j];
      for (int k = 0; k < sizes.in; ++k)
        sum += double{float(x[i * sizes.in + k])} * double{float(w[j * sizes.in + k])};
      largest = std::max(largest, std::abs(gelu(sum) - double{float(y[i * sizes.out + j])}));
    }
  return largest;
}

int fail(const Diags& diags) {
  std::fputs(diags.text().c_str(), stderr);
  return 1;
}

}  // namespace

int main(int count, char** words) {
  auto device = Device::open(count > 1 ? words[1] : "auto");
  if (!device) return fail(device.diags());
  std::printf("device: %s\n", device->name().c_str());
  Linear linear(*device);
  for (const Sizes& sizes : {Sizes{7, 96, 64}, {200, 96, 64}, {33, 40, 136}, {7, 96, 64}}) {
    std::vector<host::f16> x(static_cast<std::size_t>(sizes.rows) * sizes.in);
    std::vector<host::f16> w(static_cast<std::size_t>(sizes.in) * sizes.out);
    std::vector<float> bias(static_cast<std::size_t>(sizes.out));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = host::f16((i * 7 % 31 - 15.0) / 16);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = host::f16((i * 5 % 29 - 14.0) / 16);
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i % 3) - 1;
    const auto y = linear(sizes, x, w, bias);
    if (!y) return fail(y.diags());
    const double difference = largest_difference(sizes, x, w, bias, *y);
    std::printf("%3d x %d x %d: %s, %zu compiled\n", sizes.rows, sizes.out, sizes.in,
                difference < 0.02 ? "right" : "wrong", linear.compiled());
    if (difference >= 0.02) return 1;
  }
}
